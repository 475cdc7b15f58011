package status_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/status"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
)

type call struct {
	out, errOut *clitest.Buffer
	streams     *iostreams.IOStreams
}

func newCall() call {
	c := call{out: &clitest.Buffer{}, errOut: &clitest.Buffer{}}
	c.streams = &iostreams.IOStreams{In: &bytes.Buffer{}, Out: c.out, ErrOut: c.errOut, Color: iostreams.ColorAuto}
	return c
}

func (c call) run(ctx context.Context, t testing.TB, a *clitest.API, args ...string) error {
	t.Helper()
	path := a.Kubeconfig(t, t.TempDir(), "prod")
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = &path
	cmd := status.New(factory.New(flags, "kubectl mssql"), c.streams)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	return cmd.ExecuteContext(ctx)
}

func run(t *testing.T, a *clitest.API, args ...string) (string, string, error) {
	t.Helper()
	c := newCall()
	err := c.run(t.Context(), t, a, args...)
	return c.out.String(), c.errOut.String(), err
}

// sales is a healthy group of n replicas with their pods, managers and the operator.
func sales(t testing.TB, a *clitest.API, n int) {
	t.Helper()
	g := &api.SQLServerAvailabilityGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "sales"}}
	g.Status.Phase, g.Status.PrimaryReplica, g.Status.InitializationComplete = api.PhaseHealthy, "sales-0", true
	g.Status.Conditions = []metav1.Condition{{Type: api.ConditionAvailable, Status: metav1.ConditionTrue, Reason: api.ReasonAsExpected}}
	g.Spec.Databases = []api.DatabaseSpec{{Name: "orders"}}
	var copies []managerapi.Copy
	zero, fresh := int64(0), 0.1
	for i := range n {
		name := g.ReplicaName(i)
		g.Spec.Replicas = append(g.Spec.Replicas, api.AGReplicaSpec{AvailabilityMode: api.SynchronousCommit, FailoverMode: api.FailoverAutomatic})
		r := api.ReplicaStatus{Name: name, Role: "SECONDARY", AvailabilityMode: api.SynchronousCommit, State: "synchronized", Ready: true, Reachable: true, FailoverReady: true, SynchronizationState: "SYNCHRONIZED"}
		c := managerapi.Copy{Replica: name, Database: "orders", Sync: ag.SyncSynchronized, SendQueue: &zero, RedoQueue: &zero, LagSeconds: &zero}
		if i == 0 {
			r.Role, r.State, r.FailoverReady = "PRIMARY", "online", false
			c.SendQueue, c.RedoQueue, c.LagSeconds, c.State = nil, nil, nil, "ONLINE"
		}
		copies = append(copies, c)
		g.Status.ReplicaStatuses = append(g.Status.ReplicaStatuses, r)
		a.Add(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: name, Labels: map[string]string{
			api.LabelInstance: "sales", api.LabelManagedBy: api.ManagedBy, api.LabelAG: "sales",
		}}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}})
	}
	for i := range n {
		r := managerapi.Report{Replica: g.ReplicaName(i), Server: "running", Role: ag.RoleSecondary, Sequence: 7, MeasuredAgoSeconds: &fresh}
		if i == 0 {
			r.Role, r.Holder, r.Copies = ag.RolePrimary, true, copies
		}
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		a.Page(g.ReplicaName(i), api.PortProbes, managerapi.PathReport, string(b))
	}
	a.Add(t, g, operator())
}

func operator() *appsv1.Deployment {
	one := int32(1)
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kubectl-mssql-system", Name: "controller", Labels: map[string]string{manifests.LabelPart: manifests.LabelPartValue}},
		Spec: appsv1.DeploymentSpec{Replicas: &one, Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "controller", Image: "example.com/kubectl-mssql:1.4.0"}},
		}}},
		Status: appsv1.DeploymentStatus{ReadyReplicas: 1, Replicas: 1},
	}
}

func TestStatus_OfNineReplicasAsksAllAtOnce(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	sales(t, a, 9)
	a.Together("pods/proxy", 9) // one after the other would get no answer
	out, errOut, err := run(t, a, "sales")
	if err != nil {
		t.Fatal(err, errOut)
	}
	if !strings.HasPrefix(out, "✔ prod/sales  Healthy   9/9 replicas ready · primary sales-0 · 8 can take over") {
		t.Errorf("got %s", out)
	}
	count := map[string]int{}
	for _, r := range a.Requests() {
		count[r.Verb+" "+r.Resource]++
	}
	want := map[string]int{
		"get sqlserveravailabilitygroups": 1, "list pods": 1, "get leases": 2, "list deployments": 1, "list endpointslices": 1, "get pods/proxy": 9,
	}
	if fmt.Sprint(count) != fmt.Sprint(want) {
		t.Errorf("round trips %v, want %v", count, want)
	}
	if w := a.Writes(); len(w) > 0 {
		t.Errorf("status writes: %v", w)
	}
}

// maxStatus is how long a status of nine replicas may take over an API server that answers
// in 50 ms.
const maxStatus = 500 * time.Millisecond

func BenchmarkStatus_OfNineReplicas(b *testing.B) {
	a := clitest.Start(b)
	sales(b, a, 9)
	a.Delay(50 * time.Millisecond)
	fastest := time.Hour // counts, so that a loaded machine does not decide
	for b.Loop() {
		begin := time.Now()
		if err := newCall().run(b.Context(), b, a, "sales"); err != nil {
			b.Fatal(err)
		}
		fastest = min(fastest, time.Since(begin))
	}
	b.ReportMetric(float64(fastest.Microseconds())/1000, "ms-fastest")
	if fastest > maxStatus {
		b.Errorf("a status of nine replicas takes %s at best, at most %s are wanted", fastest, maxStatus)
	}
}

func TestStatus_OfAnOldResourceIsUnknown(t *testing.T) {
	t.Parallel()
	lease := func(namespace, name, holder string, age time.Duration) *coordinationv1.Lease {
		written := metav1.NewTime(time.Now().Add(-age))
		return &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x", Time: &written}}},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: new(int32(7)), RenewTime: &metav1.MicroTime{Time: time.Unix(0, 0)}},
		}
	}
	for name, c := range map[string]struct {
		operator, primary time.Duration
		change            func(a *clitest.API)
		want              string
	}{
		"at rest":                      {time.Second, 2 * time.Second, func(*clitest.API) {}, "✔ prod/sales  Healthy"},
		"the operator does not look":   {time.Minute, 2 * time.Second, func(*clitest.API) {}, "! prod/sales  Unknown   the operator has not looked for 1m"},
		"the primary is gone":          {time.Second, 8 * time.Second, func(a *clitest.API) { a.Page("sales-0", api.PortProbes, managerapi.PathReport, "gone") }, "has not renewed its Lease for"},
		"the primary renews, unasked":  {time.Second, 2 * time.Second, func(a *clitest.API) { a.Page("sales-0", api.PortProbes, managerapi.PathReport, "gone") }, "✔ prod/sales  Healthy"},
		"the primary answers, cut off": {time.Second, time.Minute, func(*clitest.API) {}, "✔ prod/sales  Healthy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := clitest.Start(t)
			sales(t, a, 3)
			a.Add(t, lease("kubectl-mssql-system", manifests.Name, "x", c.operator))
			l := lease("prod", api.LeaseName("sales"), "sales-0", c.primary)
			uid := string(a.Get("sqlserveravailabilitygroups", "prod", "sales").GetUID())
			if err := state.Encode(l, ag.Authority{Holder: ag.Run{Replica: "sales-0", PodUID: "u"}, Epoch: 7, AGUID: uid}, time.Second); err != nil {
				t.Fatal(err)
			}
			a.Add(t, l)
			c.change(a)
			out, errOut, err := run(t, a, "sales")
			if err != nil || !strings.Contains(out, c.want) {
				t.Errorf("want %q, got %v %s\n%s", c.want, err, errOut, out)
			}
		})
	}
}

func TestList_SaysThatNobodyLooks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		age   time.Duration
		ready int32
		want  string
		code  exit.Code
	}{
		"one looks":   {time.Second, 1, "Healthy", exit.OK},
		"none looks":  {time.Minute, 1, "Unknown", exit.Degraded},
		"none is run": {time.Minute, 0, "Unattended", exit.Degraded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := clitest.Start(t)
			sales(t, a, 3)
			a.Change("deployments", "kubectl-mssql-system", "controller", func(u *unstructured.Unstructured) {
				_ = unstructured.SetNestedField(u.Object, int64(c.ready), "status", "readyReplicas") // a map of JSON can be set
			})
			written := metav1.NewTime(time.Now().Add(-c.age))
			a.Add(t, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
				Namespace: "kubectl-mssql-system", Name: manifests.Name, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x", Time: &written}},
			}, Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: new(int32(7))}})
			out, _, err := run(t, a, "--exit-code")
			if exit.Of(err) != c.code || !strings.Contains(out, c.want) {
				t.Errorf("want %s and %d, got %v\n%s", c.want, c.code, err, out)
			}
		})
	}
}

func TestStatus_WithMinimalRightsNamesTheMissingVerbs(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	sales(t, a, 3)
	for _, r := range [][2]string{{"list", "pods"}, {"get", "leases"}, {"list", "deployments"}, {"get", "pods/proxy"}, {"create", "pods/portforward"}} {
		a.Forbid(r[0], r[1])
	}
	out, _, err := run(t, a, "sales")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"✔ prod/sales  Healthy", "Not seen  pods: you may not list pods in namespace prod",
		"you may not get leases.coordination.k8s.io", "you may neither get pods/proxy nor create pods/portforward in namespace prod",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	out, _, err = run(t, a, "sales", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var d status.Document
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Errors) != 3 || d.Errors[0].Code != "MSSQL6002" || d.Replicas[1].Lag != nil || d.Replicas[1].IfPromoted != "no loss" {
		t.Errorf("got %+v, %+v", d.Errors, d.Replicas[1])
	}
}

func TestStatus_FormatsOfKubectl(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	sales(t, a, 3)
	for args, want := range map[string]string{
		"sales -o name": "sqlserveravailabilitygroup.kubectl-mssql.io/sales\n",
		"-o name":       "sqlserveravailabilitygroup.kubectl-mssql.io/sales\n",
		"sales -o jsonpath={.primary}/{.replicas[1].lagSeconds}":                                        "sales-0/0\n",
		"sales -o go-template={{range.replicas}}{{.ifPromoted}};{{end}}":                                "-;no loss;no loss;\n",
		"-A -o jsonpath={.items[0].phase}":                                                              "Healthy\n",
		"sales -o jsonpath={.kind}":                                                                     "AvailabilityGroupStatus\n",
		"sales -o go-template --template={{.apiVersion}}/{{.kind}}/{{.errors|len}}/{{.operator.ready}}": "cli.kubectl-mssql.io/v1/AvailabilityGroupStatus/0/1\n",
	} {
		out, _, err := run(t, a, strings.Fields(args)...)
		if err != nil || out != want {
			t.Errorf("%s: got %q, %v, want %q", args, out, err, want)
		}
	}
}

func TestStatus_RefusesWrongUsageBeforeItAsks(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	for _, args := range []string{
		"sales -o xml", "sales -A", "sales --until=healthy", "sales -w --until=dead", "sales -w --interval 1ms", "a b", "sales --timeout 5s", "sales -o jsonpath={",
	} {
		if _, _, err := run(t, a, strings.Fields(args)...); exit.Of(err) != exit.Usage {
			t.Errorf("%s: got %v, want a usage error", args, err)
		}
	}
	if n := len(a.Requests()); n > 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestStatus_ExitCodes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		phase    string
		writable string
		args     []string
		want     exit.Code
	}{
		{"healthy is 0", "Healthy", "True", []string{"sales", "--exit-code"}, exit.OK},
		{"degraded is 8", "Degraded", "True", []string{"sales", "--exit-code"}, exit.Degraded},
		{"degraded in the list is 8", "Degraded", "True", []string{"--exit-code"}, exit.Degraded},
		{"blocked is 9", "Blocked", "False", []string{"sales", "--exit-code"}, exit.WritesDown},
		{"without the flag a status that can be read is 0", "Blocked", "False", []string{"sales"}, exit.OK},
		{"a name that is not there is 3", "Healthy", "True", []string{"nobody"}, exit.NotFound},
		{"a watch that runs out of time is 124", "Degraded", "True", []string{"sales", "-w", "--until=healthy", "--interval=500ms", "--timeout=1s"}, exit.Timeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := clitest.Start(t)
			sales(t, a, 3)
			set(t, a, tt.phase, tt.writable)
			if _, _, err := run(t, a, tt.args...); exit.Of(err) != tt.want {
				t.Errorf("got %d (%v), want %d", exit.Of(err), err, tt.want)
			}
		})
	}
}

func set(t *testing.T, a *clitest.API, phase, writable string) {
	t.Helper()
	a.Change("sqlserveravailabilitygroups", "prod", "sales", func(u *unstructured.Unstructured) {
		_ = unstructured.SetNestedField(u.Object, phase, "status", "phase")
		_ = unstructured.SetNestedSlice(u.Object, []any{map[string]any{
			"type": "Available", "status": writable, "reason": "AsExpected", "lastTransitionTime": "2026-08-22T08:00:00Z", "message": "",
		}}, "status", "conditions")
	})
}

func TestStatus_WithoutTheOperatorInstalledSaysSo(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	a.Remove("sqlserveravailabilitygroups")
	a.Remove("sqlserverinstances")
	for _, args := range [][]string{{"sales"}, {}} {
		_, _, err := run(t, a, args...)
		if exit.Of(err) != exit.NotFound || !strings.Contains(err.Error(), "not installed") {
			t.Errorf("%v: got %v", args, err)
		}
	}
}

func TestStatus_OfAnInstance(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	i := &api.SQLServerInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "one"}}
	i.Status.Phase, i.Status.Endpoint, i.Status.Version = api.PhaseRunning, "one-client:1433", "16.0.4195.2"
	a.Add(t, i, operator(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "one-0", Labels: map[string]string{
		api.LabelInstance: "one", api.LabelManagedBy: api.ManagedBy,
	}}, Spec: corev1.PodSpec{NodeName: "node-a"}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}})
	a.Page("one-0", api.PortProbes, managerapi.PathReport, `{"replica":"one-0","server":"running"}`)
	out, _, err := run(t, a, "one")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"✔ prod/one  Running   ready · endpoint one-client:1433", "Server              running", " on node-a", "operator 1.4.0"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	out, _, err = run(t, a, "-o", "jsonpath={.items[0].type} {.items[0].ready}")
	if err == nil && out != "instance 1/1\n" {
		t.Errorf("list: %q", out)
	}
}

// await polls until the output of a running command holds the text.
func await(t *testing.T, o *clitest.Buffer, text string, times int) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for strings.Count(o.String(), text) < times {
		if time.Now().After(deadline) {
			t.Fatalf("%q is not there %d times:\n%s", text, times, o.String())
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestWatch_InAPipeAppendsWhatChanged(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	sales(t, a, 3)
	set(t, a, "Degraded", "True")
	c := newCall()
	done := make(chan error, 1)
	go func() { done <- c.run(t.Context(), t, a, "sales", "-w", "--until=healthy", "--interval=500ms") }()
	await(t, c.out, "Degraded", 1)
	set(t, a, "Healthy", "True")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	out := c.out.String()
	if strings.Count(out, "\n-- ") != 2 || strings.Contains(out, "\x1b") || !strings.Contains(out, "✔ prod/sales  Healthy") {
		t.Errorf("got %q", out)
	}
}

func TestWatch_OfDocumentsWritesOneALine(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	sales(t, a, 3)
	set(t, a, "Degraded", "True")
	c := newCall()
	done := make(chan error, 1)
	go func() {
		done <- c.run(t.Context(), t, a, "sales", "-w", "--until=healthy", "--interval=500ms", "-o", "json")
	}()
	await(t, c.out, "Degraded", 1)
	set(t, a, "Healthy", "True")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(c.out.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines:\n%s", len(lines), c.out.String())
	}
	for _, l := range lines {
		var d status.Document
		if err := json.Unmarshal([]byte(l), &d); err != nil {
			t.Errorf("%v: %s", err, l)
		}
	}
}

func TestWatch_OnATerminalRedrawsInPlaceAndCtrlCIsNoError(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	sales(t, a, 3)
	c := newCall()
	c.streams.StdoutTTY, c.streams.Width, c.streams.Color = true, 80, iostreams.ColorNever
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.run(ctx, t, a, "sales", "-w", "--interval=500ms") }()
	await(t, c.out, "A\r\x1b[J", 1)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(c.out.String(), "\x1b[")
	if up := fmt.Sprintf("\x1b[%dA\r\x1b[J", strings.Count(first, "\n")); !strings.Contains(c.out.String(), up) {
		t.Errorf("the cursor does not go up by the lines of the screen: %q", c.out.String())
	}
}

func TestStatus_SaysWhereKubernetesLeadsClients(t *testing.T) {
	t.Parallel()
	slice := func(pods ...string) *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "sales-rw-x", Labels: map[string]string{
			discoveryv1.LabelServiceName: "sales-rw", api.LabelInstance: "sales",
		}}}
		for _, p := range pods {
			s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: p}})
		}
		return s
	}
	for _, c := range []struct {
		name string
		pods []string
		want string
	}{
		{"to the primary is well", []string{"sales-0"}, "✔ prod/sales  Healthy"},
		{"to a secondary is told", []string{"sales-1"}, "Service sales-rw leads to sales-1, and the primary is sales-0"},
		{"nowhere is told", nil, "MSSQL2018  Service sales-rw leads nowhere, and the primary is sales-0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			a := clitest.Start(t)
			sales(t, a, 3)
			a.Add(t, slice(c.pods...))
			out, _, err := run(t, a, "sales")
			if err != nil || !strings.Contains(out, c.want) {
				t.Errorf("%v: %q is missing in\n%s", err, c.want, out)
			}
		})
	}
}
