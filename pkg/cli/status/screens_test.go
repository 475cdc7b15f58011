package status

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

var update = flag.Bool("update", false, "rewrite golden files")

var now = time.Date(2026, 8, 22, 8, 15, 35, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

func ptr(v int64) *int64 { return &v }

// group is a healthy group of three; the cases change it.
func group() (*api.SQLServerAvailabilityGroup, Input) {
	g := &api.SQLServerAvailabilityGroup{}
	g.Namespace, g.Name = "prod", "sales"
	for range 3 {
		g.Spec.Replicas = append(g.Spec.Replicas, api.AGReplicaSpec{AvailabilityMode: api.SynchronousCommit, FailoverMode: api.FailoverAutomatic, ReadableSecondary: true})
	}
	for _, n := range []string{"audit", "crm", "hr", "orders"} {
		g.Spec.Databases = append(g.Spec.Databases, api.DatabaseSpec{Name: n})
	}
	st := &g.Status
	st.Phase, st.PrimaryReplica, st.InitializationComplete, st.Version = api.PhaseHealthy, "sales-0", true, "16.0.4195.2"
	for i, node := range []string{"node-a", "node-b", "node-c"} {
		r := api.ReplicaStatus{Name: g.ReplicaName(i), Role: "SECONDARY", AvailabilityMode: api.SynchronousCommit, SynchronizationState: "SYNCHRONIZED",
			Connected: true, Reachable: true, State: "synchronized", SequenceNumber: 25769803779, FailoverReady: true, Ready: true, Node: node}
		if i == 0 {
			r.Role, r.State, r.FailoverReady = "PRIMARY", "online", false
		}
		st.ReplicaStatuses = append(st.ReplicaStatuses, r)
	}
	st.CommitRule = &api.CommitRuleStatus{K: 1, Number: 3}
	st.Conditions = []metav1.Condition{{Type: api.ConditionAvailable, Status: metav1.ConditionTrue, Reason: api.ReasonAllGood, LastTransitionTime: ago(12 * 24 * time.Hour)}}
	st.History = []api.RoleChange{{Kind: "planned", To: "sales-0", Result: "done", StartedAt: ago(12 * 24 * time.Hour), CompletedAt: ago(12 * 24 * time.Hour)}}
	in := Input{Group: g, Now: now, Plugin: "1.4.0", Self: "kubectl mssql", Pods: map[string]time.Time{}, Measured: map[string]Measured{}}
	for i := range 3 {
		in.Pods[g.ReplicaName(i)] = now.Add(-41 * 24 * time.Hour)
		if i > 0 {
			in.Measured[g.ReplicaName(i)] = Measured{ptr(0), ptr(int64(i-1) * 12 * 1024), ptr(0)}
		}
	}
	return g, in
}

func screens() map[string]Input {
	cases := map[string]Input{}
	_, cases["healthy"] = group()

	g, in := group()
	st := &g.Status
	st.Phase, st.TargetPrimary = api.PhaseFailingOver, "sales-1"
	st.Conditions[0].Status, st.Conditions[0].LastTransitionTime = metav1.ConditionFalse, ago(31*time.Second)
	st.Authority = &api.AuthorityStatus{Holder: "sales-1", Epoch: 8, Operation: &api.OperationStatus{
		ID: "fo-7c1d", Kind: "failover", Phase: "promoting", From: "sales-0", Target: "sales-1", StartedAt: ago(18 * time.Second),
		Steps: []api.TimelineEntry{
			{At: ago(18 * time.Second), What: "primary declared lost: its container ended (exit code 137)"},
			{At: ago(17 * time.Second), What: "sales-1 chosen: sequence 25769803779, 2 of 2 needed answers"},
			{At: ago(16 * time.Second), What: "old primary fenced: proof of death"},
		}}}
	st.ReplicaStatuses[0] = api.ReplicaStatus{Name: "sales-0", State: "lost 31s", Node: "node-a", AvailabilityMode: api.SynchronousCommit, FailoverRefusal: "R9: it lost the Lease and is not fenced"}
	st.ReplicaStatuses[1].Role, st.ReplicaStatuses[1].State = "RESOLVING", "promoting"
	st.ReplicaStatuses[2].State = "disconnected"
	in.Measured = map[string]Measured{"sales-2": {nil, ptr(0), nil}}
	cases["failing-over"] = in

	g, in = group()
	st = &g.Status
	st.Phase, st.Reason = api.PhaseBlocked, "no secondary is known to hold every commit"
	st.Conditions[0].Status, st.Conditions[0].LastTransitionTime = metav1.ConditionFalse, ago(6*time.Minute+12*time.Second)
	st.Conditions = append(st.Conditions, metav1.Condition{Type: api.ConditionFailoverBlocked, Status: metav1.ConditionTrue, Reason: api.ReasonNotEnoughAnswers,
		Message: "1 of 2 needed replicas answered; bring sales-0 or sales-2 back"})
	st.ReplicaStatuses[0] = api.ReplicaStatus{Name: "sales-0", State: "lost 6m12s", Node: "node-a", AvailabilityMode: api.SynchronousCommit, FailoverRefusal: "R13: no answer"}
	st.ReplicaStatuses[2] = api.ReplicaStatus{Name: "sales-2", State: "lost 6m", Node: "node-c", AvailabilityMode: api.SynchronousCommit, FailoverRefusal: "R13: no answer"}
	st.ReplicaStatuses[1].FailoverReady, st.ReplicaStatuses[1].FailoverRefusal, st.ReplicaStatuses[1].State = false, "R13: 1 of 2 needed answers", "disconnected"
	st.Memory = &api.MemoryStatus{Blocks: []api.BlockStatus{
		{Reason: api.ReasonNotEnoughAnswers, Replica: "sales-1", Message: "R13: 1 of 2 needed answers; commits waited for 1 secondary"},
		{Reason: api.ReasonNotEnoughAnswers, Replica: "sales-2", Message: "no answer: pod Pending, 0/3 nodes are available"},
	}}
	in.Measured = nil
	cases["blocked"] = in

	g, in = group()
	st = &g.Status
	st.Phase, st.Reason = api.PhaseDegraded, "seeding sales-2"
	st.ReplicaStatuses[2].State, st.ReplicaStatuses[2].FailoverReady, st.ReplicaStatuses[2].Ready = "seeding 2/4", false, false
	st.ReplicaStatuses[2].FailoverRefusal = "R12: 2 of 4 databases are not joined"
	st.ReplicaStatuses[2].SynchronizationState = "SYNCHRONIZED"
	st.ReplicaStatuses[2].Databases = []api.ReplicaDatabaseStatus{
		{Name: "audit", SynchronizationState: "NOT SYNCHRONIZING", Message: "seeding, attempt 2"},
		{Name: "crm", SynchronizationState: "NOT SYNCHRONIZING", Message: "seeding, 61 %"},
	}
	in.Measured["sales-2"] = Measured{}
	cases["seeding"] = in

	g, in = group()
	st = &g.Status
	st.Phase, st.Reason = api.PhaseDegraded, "sales-2 is fenced"
	st.ReplicaStatuses[2].State, st.ReplicaStatuses[2].Fenced, st.ReplicaStatuses[2].FailoverReady, st.ReplicaStatuses[2].Ready = "FENCED", true, false, false
	st.ReplicaStatuses[2].FailoverRefusal = "fenced by a person"
	in.Measured["sales-2"] = Measured{}
	cases["fenced"] = in

	g, in = group()
	g.Status = api.SQLServerAvailabilityGroupStatus{}
	in.Pods, in.Measured = nil, nil
	cases["new"] = in
	return cases
}

func TestScreens_Golden(t *testing.T) {
	t.Parallel()
	for name, in := range screens() {
		for _, width := range []int{0, 100, 80, 60} {
			for _, color := range []bool{false, true} {
				if color && width != 100 {
					continue
				}
				file := fmt.Sprintf("%s-%d", name, width)
				if color {
					file += "-color"
				}
				t.Run(file, func(t *testing.T) {
					t.Parallel()
					s, _, out, _ := iostreams.Test()
					err := WriteText(out, s, Build(in), TextOptions{Width: width, Color: color, Now: now, Self: "kubectl mssql"})
					if err != nil {
						t.Fatal(err)
					}
					if width >= 80 && !color {
						for _, l := range strings.Split(out.String(), "\n") {
							if n := utf8.RuneCountInString(l); n > width {
								t.Errorf("%d columns in a terminal of %d: %q", n, width, l)
							}
						}
					}
					golden(t, file+".golden", out.Bytes())
				})
			}
		}
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs; run make golden and read the diff\n%s", name, cmp.Diff(string(want), string(got)))
	}
}

func TestASCII_HasNothingElse(t *testing.T) {
	t.Parallel()
	for name, in := range screens() {
		s, _, out, _ := iostreams.Test()
		s.ASCII = true
		if err := WriteText(out, s, Build(in), TextOptions{Now: now, Self: "kubectl mssql"}); err != nil {
			t.Fatal(err)
		}
		for _, r := range out.String() {
			if r > 127 {
				t.Errorf("%s: %q is outside ASCII", name, r)
			}
		}
	}
}

func TestJSON_KeepsEveryKeyAndNeverInventsAValue(t *testing.T) {
	t.Parallel()
	keys := map[string]bool{}
	for name, in := range screens() {
		b, err := json.Marshal(Build(in))
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(b, &m); err != nil {
			t.Fatal(err)
		}
		for k, v := range m {
			if k == "replicas" || k == "problems" || k == "errors" || k == "databases" || k == "conditions" || k == "refusals" {
				if _, ok := v.([]any); !ok {
					t.Errorf("%s: %s is %v, want a list", name, k, v)
				}
			}
			keys[k] = true
		}
		if len(m) != len(keys) {
			t.Errorf("%s: %d keys, another document has %d", name, len(m), len(keys))
		}
	}
	d := Build(screens()["failing-over"])
	if d.Replicas[0].Lag != nil || d.Replicas[0].SendQueue != nil {
		t.Error("a value that was not measured has a number")
	}
}

func TestExitCode_TellsWritesDownFromDegraded(t *testing.T) {
	t.Parallel()
	cases := screens()
	for name, want := range map[string]int{"healthy": 0, "failing-over": 9, "blocked": 9, "seeding": 8, "fenced": 8, "new": 9} {
		if got := Build(cases[name]).ExitCode; got != want {
			t.Errorf("%s: exit code %d, want %d", name, got, want)
		}
	}
}
