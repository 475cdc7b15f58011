package agops_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/agops"
)

// settle steps until the setup is done, or the limit is reached.
func settle(t *testing.T, w *world, e *agops.Engine, limit int) agops.Report {
	t.Helper()
	var r agops.Report
	for range limit {
		var err error
		r, err = e.Step(context.Background(), key)
		if err != nil && !strings.Contains(err.Error(), errInjected.Error()) {
			t.Fatalf("step: %v\n%s", err, strings.Join(w.log, "\n"))
		}
		if err == nil && r.Setup.Done {
			return r
		}
		w.clock.Step(max(r.Next, time.Second))
	}
	t.Fatalf("not done after %d steps: %+v\n%s", limit, r.Setup, strings.Join(w.log, "\n"))
	return r
}

// check is what must be true of every group that is set up.
func check(t *testing.T, w *world) {
	t.Helper()
	created, primaries := 0, 0
	for _, s := range w.servers {
		created += s.created
		switch s.role {
		case ag.RolePrimary:
			primaries++
		case ag.RoleSecondary:
		case ag.RoleResolving, ag.RoleNone, ag.RoleUnknown:
			t.Errorf("%s is %s", s.name, s.role)
		}
		for _, peer := range w.servers {
			if peer != s && !s.granted[peer.certificate] {
				t.Errorf("%s does not let %s connect", s.name, peer.name)
			}
		}
		if !w.auth.Rule.Has(s.name) {
			t.Errorf("%s is not in the recorded set", s.name)
		}
	}
	if created != 1 || primaries != 1 {
		t.Errorf("created %d times, %d primaries", created, primaries)
	}
	for _, d := range w.policy.Databases {
		if !slices.Contains(w.primary().group(), d) {
			t.Errorf("database %s is not in the group", d)
		}
	}
	if !w.memory.Initialized || w.auth.Operation != nil || w.auth.LastPrimary != w.primary().name {
		t.Errorf("initialized %v, operation %v, last primary %q", w.memory.Initialized, w.auth.Operation, w.auth.LastPrimary)
	}
	if len(w.memory.History) != 1 || w.memory.History[0].Kind != "bootstrap" {
		t.Errorf("history %+v", w.memory.History)
	}
}

// index of the first line of the log that contains text, or −1.
func index(w *world, text string) int {
	return slices.IndexFunc(w.log, func(s string) bool { return strings.Contains(s, text) })
}

func TestGroupIsMadeInTheOrderOfTheRules(t *testing.T) {
	t.Parallel()
	w := newWorld(3, "app")
	settle(t, w, w.engine(), 60)
	check(t, w)
	order := []string{
		"ag1-0: CREATE ENDPOINT", "swap: grant the lease to ag1-0", "ag1-0: CREATE AVAILABILITY", "swap: confirm the group on ag1-0",
		"swap: add replica ag1-1", "ag1-0: ADD REPLICA", "ag1-1: JOIN WITH", "swap: add replica ag1-2", "ag1-2: JOIN WITH",
		"ag1-0: BACKUP", "ag1-0: ADD DATABASE",
	}
	last := -1
	for _, step := range order {
		i := index(w, step)
		if i <= last {
			t.Errorf("%q is at %d, the step before it at %d", step, i, last)
		}
		last = i
	}
	if t.Failed() {
		t.Log("\n" + strings.Join(w.log, "\n"))
	}
}

func TestSetupGoesOnAfterACrashAtEveryPoint(t *testing.T) {
	t.Parallel()
	clean := newWorld(3, "app", "crm")
	settle(t, clean, clean.engine(), 80)
	for _, kind := range []faultKind{notExecuted, answerLost} {
		for n := range clean.effects {
			t.Run(fmt.Sprintf("fault %d at effect %d", kind, n), func(t *testing.T) {
				t.Parallel()
				w := newWorld(3, "app", "crm")
				crashed := false
				w.fault = func(i int, _ string) faultKind {
					if i == n {
						crashed = true
						return kind
					}
					return noFault
				}
				e := w.engine()
				for range 120 {
					r, err := e.Step(context.Background(), key)
					if err == nil && r.Setup.Done {
						break
					}
					if crashed { // the process is gone with the fault, once
						crashed = false
						e = w.engine()
					}
					w.clock.Step(max(r.Next, time.Second))
				}
				settle(t, w, e, 5)
				check(t, w)
			})
		}
	}
}

func TestNothingIsMadeWhileAReplicaDoesNotAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(3)
	w.servers[2].down = true
	e := w.engine()
	for range 10 {
		r, err := e.Step(context.Background(), key)
		if err != nil {
			t.Fatal(err)
		}
		if r.Setup.Step != "" || len(r.Setup.Waiting) == 0 || !strings.Contains(r.Setup.Waiting[0], "ag1-2") {
			t.Fatalf("step %q, waiting for %q", r.Setup.Step, r.Setup.Waiting)
		}
		w.clock.Step(r.Next)
	}
	if w.effects != 0 {
		t.Errorf("effects: %q", w.log)
	}
	w.servers[2].down = false
	settle(t, w, e, 60)
	check(t, w)
}

func TestBootstrapStopsAfterThreeAttemptsAndIsArmedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(2)
	broken := true
	w.fault = func(_ int, what string) faultKind {
		if broken && strings.Contains(what, "CREATE AVAILABILITY") {
			return notExecuted
		}
		return noFault
	}
	e := w.engine()
	tried := 0
	var last agops.Report
	for range 60 {
		r, err := e.Step(context.Background(), key)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(r.Setup.Step, "create group") {
			tried++
		}
		last = r
		w.clock.Step(10 * time.Second)
	}
	if tried != 3 || len(last.Setup.Blocks) != 1 || last.Setup.Blocks[0].Reason != "BootstrapAttemptsUsedUp" {
		t.Fatalf("tried %d times, blocks %+v", tried, last.Setup.Blocks)
	}
	broken = false
	w.request = &ag.Request{ID: "r1", Kind: "rebootstrap"}
	settle(t, w, e, 60)
	check(t, w)
	if w.memory.HandledRequest != "r1" || w.memory.LastResult == nil || w.memory.LastResult.Result != "Done" {
		t.Errorf("request: %q, %+v", w.memory.HandledRequest, w.memory.LastResult)
	}
}

func TestAnExistingGroupIsAdoptedAndNotMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(3, "app")
	settle(t, w, w.engine(), 60)
	w.auth, w.memory = ag.Authority{}, ag.Memory{}
	w.log = nil
	settle(t, w, w.engine(), 60)
	check(t, w)
	if i := index(w, "CREATE AVAILABILITY"); i >= 0 {
		t.Errorf("the group was made again: %q", w.log)
	}
	if w.auth.Rule.K != 0 || !slices.Contains(w.auth.Stale, "ag1-1") && index(w, "has caught up") < 0 {
		t.Errorf("adopted record: %+v", w.auth)
	}
}

// Nobody is PRIMARY and there is no record, as after a custom resource was deleted and made anew:
// as long as one replica does not answer it may be the one that holds everything.
func TestAGroupWithoutPrimaryAndWithoutRecordIsAdoptedWhenAllAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(2)
	settle(t, w, w.engine(), 60)
	w.auth, w.memory = ag.Authority{}, ag.Memory{}
	for _, s := range w.servers {
		s.role = ag.RoleResolving
	}
	w.effects, w.log = 0, nil
	w.servers[1].down = true
	r, err := w.engine().Step(context.Background(), key)
	if err != nil || len(r.Setup.Blocks) != 1 || !strings.Contains(r.Setup.Blocks[0].Message, "ag1-1") || w.effects != 0 {
		t.Errorf("blocks %+v, effects %q, %v", r.Setup.Blocks, w.log, err)
	}
	w.servers[1].down = false
	e := w.engine()
	for range 10 {
		if r, err = e.Step(context.Background(), key); err != nil {
			t.Fatal(err)
		}
		w.clock.Step(max(r.Next, time.Second))
	}
	if !w.auth.Exists || w.auth.Rule.K != 0 || len(w.auth.Rule.Set) != 2 || !w.memory.Initialized {
		t.Errorf("after ten passes: %+v, initialized %v\n%s", w.auth, w.memory.Initialized, strings.Join(w.log, "\n"))
	}
	if i := index(w, "CREATE AVAILABILITY"); i >= 0 {
		t.Errorf("the group was made again: %q", w.log)
	}
}

func TestAServerThatLostItsVolumeJoinsAsStale(t *testing.T) {
	t.Parallel()
	w := newWorld(3, "app")
	e := w.engine()
	settle(t, w, e, 60)
	s := w.server("ag1-2")
	*s = server{w: w, name: s.name, role: ag.RoleNone, run: 2,
		certificates: map[string]bool{}, logins: map[string]bool{}, granted: map[string]bool{}, databases: map[string]*database{}}
	for i := range w.auth.Rule.Set {
		if w.auth.Rule.Set[i].Replica == "ag1-2" {
			w.auth.Rule.Set[i].PVCUID = "the lost one"
		}
	}
	staleSeen := false
	for range 40 {
		r, err := e.Step(context.Background(), key)
		if err != nil {
			t.Fatal(err)
		}
		staleSeen = staleSeen || (slices.Contains(w.auth.Stale, "ag1-2") && s.role == ag.RoleNone) || slices.Contains(r.Authority.Stale, "ag1-2")
		if r.Setup.Done && s.role == ag.RoleSecondary {
			break
		}
		w.clock.Step(max(r.Next, time.Second))
	}
	if s.role != ag.RoleSecondary || !staleSeen {
		t.Errorf("role %s, was stale: %v\n%s", s.role, staleSeen, strings.Join(w.log, "\n"))
	}
}

func TestAReplicaThatIsAddedLaterEntersTheRecordBeforeTheGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(3)
	w.policy.Replicas = w.policy.Replicas[:2]
	all := w.servers
	w.servers = all[:2]
	e := w.engine()
	settle(t, w, e, 60)
	w.policy.Replicas = append(w.policy.Replicas, ag.ReplicaPolicy{Name: "ag1-2", Ordinal: 2, Mode: ag.ModeSynchronous, Auto: true, URL: "TCP://ag1-2:5022"})
	w.servers, w.log = all, nil
	settle(t, w, e, 60)
	check(t, w)
	record, add := index(w, "swap: add replica ag1-2"), index(w, "ADD REPLICA")
	if record < 0 || add < record {
		t.Errorf("recorded at %d, added at %d: %q", record, add, w.log)
	}
}
