package scenario

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/decide"
)

var update = flag.Bool("update", false, "write the samples anew")

var now = time.Date(2026, 8, 22, 8, 15, 17, 0, time.UTC)

// sample is a group of three, as a look sees it.
func sample(change func(*decide.Input)) decide.Input {
	in := decide.Input{Now: now, Observer: "look"}
	in.Policy = ag.Policy{
		Group: "sales", UID: "u1", External: true, AutoFailover: true, Threshold: 30 * time.Second, SwitchoverMax: time.Minute, K: -1, RelaxAfter: 15 * time.Second, Initialized: true,
		Timing: ag.Timing{Renew: 2 * time.Second, Call: 1500 * time.Millisecond, A: 5500 * time.Millisecond, Q: 2 * time.Second, L: 15 * time.Second, M: 1500 * time.Millisecond},
	}
	in.Memory = ag.Memory{Initialized: true}
	in.Authority = ag.Authority{Exists: true, Version: "100", AGUID: "u1", Epoch: 3, LastPrimary: "sales-0", GroupID: "g1", Renewals: "2026-08-22T08:15:16.000000Z",
		Rule: ag.CommitRule{K: 1, Number: 2}}
	for i := range 3 {
		name := fmt.Sprintf("sales-%d", i)
		in.Policy.Replicas = append(in.Policy.Replicas, ag.ReplicaPolicy{Name: name, Ordinal: i, Mode: ag.ModeSynchronous, Auto: true})
		in.Authority.Rule.Set = append(in.Authority.Rule.Set, ag.Member{Replica: name, PVCUID: "pvc-" + name})
		role := ag.RoleSecondary
		if i == 0 {
			role = ag.RolePrimary
		}
		container := ag.Container{ID: "containerd://" + name, Running: true, StartedAt: now.Add(-time.Hour)}
		in.Snapshot.Replicas = append(in.Snapshot.Replicas, ag.Replica{
			Name: name, Ordinal: i, Mode: ag.ModeSynchronous, Auto: true,
			Pod:     ag.Pod{Exists: true, UID: "pod-" + name, IP: "10.0.0.1", Node: "node", NodeReady: true, Ready: true, RoleLabel: role, PVCUID: "pvc-" + name, Container: container},
			Manager: ag.Manager{Reach: ag.ReachOK, Nonce: "n", PodUID: "pod-" + name, HasVolumeLock: true, HighestEpoch: 3, HighestRule: 2, LastFailsafeAgo: -1, Server: "running"},
			Local: ag.Local{Reach: ag.ReachOK, ServerName: name, Role: role, GroupID: "g1", ReplicaID: name, Sequence: 4294967300, RequiredToCommit: 1, LeaseEnabled: true, External: true, HADR: true,
				Databases: []ag.Database{{Name: "orders", State: ag.DatabaseOnline, Sync: ag.SyncSynchronized, Joined: true, FailoverReady: true, HardenedLSN: "41000000119002"}}},
		})
	}
	for i := 1; i < 3; i++ {
		r := &in.Snapshot.Replicas[i]
		r.Remote = &ag.Remote{Connected: true, Role: ag.RoleSecondary, Health: "HEALTHY", Databases: r.Local.Databases}
	}
	in.Authority.Holder = ag.Run{Replica: "sales-0", PodUID: "pod-sales-0", Nonce: "n", ContainerID: "containerd://sales-0", Node: "node"}
	in.Snapshot.ObservedAt = now
	if change != nil {
		change(&in)
	}
	return in
}

func samples() map[string]Captured {
	return map[string]Captured{
		"healthy": {Title: "Three replicas, all well", Input: sample(nil)},
		"primary-ended": {Title: "The primary's container has ended, and two secondaries answer\nwith a text that holds ---- and a quote \"", Input: sample(func(in *decide.Input) {
			r := &in.Snapshot.Replicas[0]
			r.Pod.Ready = false
			r.Pod.Container = ag.Container{Restarts: 1, TerminatedID: "containerd://sales-0", TerminatedReason: "Error\n\n----\nmore", ExitCode: 137}
			in.Snapshot.Replicas[1].Remote, in.Snapshot.Replicas[2].Remote = nil, nil
			r.Manager, r.Local = ag.Manager{Reach: ag.ReachRefused, Error: "connection refused"}, ag.Local{Reach: ag.ReachRefused}
		})},
	}
}

func TestFormat_RoundTrips(t *testing.T) {
	t.Parallel()
	for name, c := range samples() {
		text, err := Format(c)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Parse(text)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		if diff := cmp.Diff(toDocument(c.Input), toDocument(back.Input)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if got := Decided(back.Input); got != Decided(c.Input) || got == "" {
			t.Errorf("%s: another decision after the round trip:\n%s", name, got)
		}
		again, err := Format(back)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(text), string(again)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		path := filepath.Join("testdata", name+".txt")
		if *update {
			if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // a golden file
				t.Fatal(err)
			}
		}
	}
}

// Every captured file is a test of the rules: what was decided then is decided now, or
// the difference is looked at and `-rewrite` takes it over.
func TestCaptured_AreDecidedAsBefore(t *testing.T) {
	t.Parallel()
	seen := 0
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		seen++
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "input" {
				t.Fatalf("%s: unknown command %s", d.Pos, d.Cmd)
			}
			in, err := ParseInput(d.Input)
			if err != nil {
				t.Fatalf("%s: %v", d.Pos, err)
			}
			return Decided(in)
		})
	})
	if seen < 2 {
		t.Errorf("only %d captured files", seen)
	}
}

func TestParse_RefusesWhatItWouldMisread(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"another command":  "run 60s\n----\nx\n",
		"no divider":       "input\n{}\n",
		"an unknown field": "input\n{\"future\":1}\n----\n",
		"two documents":    "input\n{}{}\n----\n",
		"no JSON":          "input\nx\n----\n",
	} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}

func FuzzParse_NeverPanics(f *testing.F) {
	text, err := Format(samples()["healthy"])
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse([]byte(text))
		if err != nil || strings.Contains(text, "\r") {
			return
		}
		_ = Decided(c.Input)
	})
}
