package cli_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/spf13/cobra"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// tab completes a line as kubectl does: through the link's name.
func tab(t *testing.T, a *clitest.API, words ...string) (string, time.Duration) {
	t.Helper()
	out := &bytes.Buffer{}
	root := cli.NewRoot("kubectl_complete-mssql", &iostreams.IOStreams{In: &bytes.Buffer{}, Out: out, ErrOut: &bytes.Buffer{}, Color: iostreams.ColorNever})
	path := a.Kubeconfig(t, t.TempDir(), "prod")
	last := len(words) - 1
	args := append(append(append([]string{}, words[:last]...), "--kubeconfig", path), words[last])
	if strings.HasSuffix(strings.Join(words[:last], " "), "--context") || last > 0 && strings.HasPrefix(words[last-1], "-") {
		args = append(append(append([]string{}, words[:last-1]...), "--kubeconfig", path), words[last-1:]...)
	}
	root.SetArgs(cli.Args(append([]string{"kubectl_complete-mssql"}, args...)))
	start := time.Now()
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String(), time.Since(start)
}

func demo(t *testing.T) *clitest.API {
	t.Helper()
	a := clitest.Start(t)
	g := &api.SQLServerAvailabilityGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "demo"}}
	g.Spec.Replicas = []api.AGReplicaSpec{{AvailabilityMode: api.SynchronousCommit}, {AvailabilityMode: api.SynchronousCommit}, {AvailabilityMode: api.AsynchronousCommit}, {AvailabilityMode: api.ConfigurationOnly}}
	g.Spec.Databases = []api.DatabaseSpec{{Name: "orders"}}
	g.Status.Phase, g.Status.PrimaryReplica = api.PhaseHealthy, "demo-0"
	g.Status.ReplicaStatuses = []api.ReplicaStatus{
		{Name: "demo-0", Role: "PRIMARY", State: "online"}, {Name: "demo-1", Role: "SECONDARY", State: "synchronized", FailoverReady: true},
		{Name: "demo-2", Role: "SECONDARY", State: "synchronizing", FailoverRefusal: "R12: asynchronous"}, {Name: "demo-3", Role: "SECONDARY", State: "witness"},
	}
	i := &api.SQLServerInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "one"}}
	i.Status.Phase = api.PhaseRunning
	i.Annotations = map[string]string{api.AnnotationRequest: api.Request{ID: "re-9", Kind: api.RequestRestart}.String()}
	a.Add(t, g, i, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "prod"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "test"}})
	zero, far, fresh := int64(0), int64(42), 0.1
	b, err := json.Marshal(managerapi.Report{Replica: "demo-0", Server: "running", Role: ag.RolePrimary, MeasuredAgoSeconds: &fresh, Copies: []managerapi.Copy{
		{Replica: "demo-1", Database: "orders", LagSeconds: &zero}, {Replica: "demo-2", Database: "crm", LagSeconds: &far},
	}})
	if err != nil {
		t.Fatal(err)
	}
	a.Page("demo-0", api.PortProbes, managerapi.PathReport, string(b))
	return a
}

func TestCompletion_OfEachWord(t *testing.T) {
	t.Parallel()
	a := demo(t)
	for _, tt := range []struct {
		name  string
		words []string
		want  []string // lines, in order; nothing else but the directive
	}{
		{"names of groups and instances", []string{"status", ""}, []string{"demo\tgroup, healthy, primary demo-0", "one\tinstance, running"}},
		{"names that begin so", []string{"status", "o"}, []string{"one\tinstance, running"}},
		{"history is of groups only", []string{"history", ""}, []string{"demo\tgroup, healthy, primary demo-0"}},
		{"a second name is not offered", []string{"status", "demo", ""}, nil},
		{"any replica for logs", []string{"logs", "demo", ""}, []string{
			"demo-0\tprimary, online", "demo-1\tsynchronized, lag 0s", "demo-2\tasync, synchronizing, lag 42s, refused by R12", "demo-3\twitness",
		}},
		{"the pod of an instance", []string{"logs", "one", ""}, []string{"one-0"}},
		{"secondaries with data for a move", []string{"failover", "demo", "--to", ""}, []string{
			"demo-1\tsynchronized, lag 0s", "demo-2\tasync, synchronizing, lag 42s, refused by R12",
		}},
		{"databases, declared and found", []string{"sql", "demo", "--database", ""}, []string{"crm", "master", "orders"}},
		{"namespaces", []string{"status", "--namespace", ""}, []string{"prod", "test"}},
		{"contexts", []string{"status", "--context", ""}, []string{"test"}},
		{"colours", []string{"status", "--color", "a"}, []string{"auto", "always"}},
		{"levels", []string{"logs", "demo", "--level", "w"}, []string{"warn"}},
		{"what a watch waits for", []string{"status", "demo", "--until", ""}, []string{"healthy"}},
		{"codes", []string{"explain", "MSSQL2001"}, []string{"MSSQL2001\tNo replica may be promoted without loss."}},
		{"orders that are not answered", []string{"cancel", ""}, []string{"re-9\trestart of one"}},
		{"a new name is not completed", []string{"create", "ag", ""}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, _ := tab(t, a, tt.words...)
			lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
			got := lines[:len(lines)-1]
			if strings.Join(got, "\n") != strings.Join(tt.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
			}
			if !strings.HasPrefix(lines[len(lines)-1], ":") {
				t.Errorf("no directive: %q", out)
			}
		})
	}
}

func TestCompletion_SaysWhyItHasNoAnswer(t *testing.T) {
	t.Parallel()
	a := demo(t)
	a.Forbid("list", "sqlserveravailabilitygroups")
	a.Forbid("list", "sqlserverinstances")
	if out, _ := tab(t, a, "status", ""); !strings.Contains(out, "_activeHelp_ no names: you may not list them") {
		t.Errorf("got %q", out)
	}
	if out, _ := tab(t, demo(t), "logs", "nobody", ""); !strings.Contains(out, "_activeHelp_ no names: ") {
		t.Errorf("got %q", out)
	}
}

func TestCompletion_WaitsTwoSecondsAtMost(t *testing.T) {
	t.Parallel()
	a := demo(t)
	a.Together("sqlserveravailabilitygroups", 1000) // never answers
	out, took := tab(t, a, "history", "")
	if !strings.Contains(out, "_activeHelp_ no names: the cluster did not answer within 2s") || took < time.Second {
		t.Errorf("after %s: %q", took, out)
	}
}

func TestEveryVerbCompletesItsNames(t *testing.T) {
	t.Parallel()
	root := cli.NewRoot("kubectl-mssql", &iostreams.IOStreams{In: &bytes.Buffer{}, Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}})
	seen := 0
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, x := range c.Commands() {
			walk(x)
		}
		if strings.Contains(c.Use, " NAME") || strings.Contains(c.Use, "[NAME") {
			if c.HasParent() && c.Parent().Name() == "create" {
				return
			}
			seen++
			if c.ValidArgsFunction == nil {
				t.Errorf("%s completes nothing", c.CommandPath())
			}
		}
	}
	walk(root)
	if seen < 5 {
		t.Fatalf("only %d verbs take a name", seen)
	}
}
