package decide

import (
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// A grant names the container only when its status can be of no earlier run: the end of
// that container is later taken as the end of the grant (R8).
func TestAGrantNamesTheContainerOnlyWhenItIsTheManagers(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 1, 12, 0, 5, 0, time.UTC) // whole seconds, as the kubelet gives them
	ready := func(since time.Time) func(*ag.Replica) {
		return func(r *ag.Replica) { r.Pod.Ready, r.Pod.ReadySince = true, since }
	}
	for name, tt := range map[string]struct {
		manager time.Time
		change  func(*ag.Replica)
		want    string
	}{
		"the manager began within the same second":           {manager: began.Add(280 * time.Millisecond), want: "c1"},
		"the runtime noted the start just after the manager": {manager: began.Add(-10 * time.Millisecond), want: "c1"},
		"a second later it may be the next container's":      {manager: began.Add(1100 * time.Millisecond)},
		"a second later, and ready after that, it is not":    {manager: began.Add(1100 * time.Millisecond), change: ready(began.Add(2 * time.Second)), want: "c1"},
		"ready in the second in which the manager began":     {manager: began.Add(1100 * time.Millisecond), change: ready(began.Add(time.Second))},
		"ready before the manager began":                     {manager: began.Add(3100 * time.Millisecond), change: ready(began.Add(2 * time.Second))},
		"ready, and the manager began much later":            {manager: began.Add(4 * time.Second), change: ready(began.Add(time.Minute))},
		"much later it is":                                   {manager: began.Add(time.Minute)},
		"the status is of a container of the future":         {manager: began.Add(-3 * time.Second)},
		"a manager that does not say when it began":          {},
		"a container that does not run":                      {manager: began, change: func(r *ag.Replica) { r.Pod.Container.Running = false }},
		"a status without a start":                           {manager: began, change: func(r *ag.Replica) { r.Pod.Container.StartedAt = time.Time{} }},
		"a status without a container":                       {manager: began, change: func(r *ag.Replica) { r.Pod.Container.ID = "" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &ag.Replica{Name: "a",
				Pod:     ag.Pod{Exists: true, UID: "pod", Container: ag.Container{ID: "c1", Running: true, StartedAt: began}},
				Manager: ag.Manager{Reach: ag.ReachOK, Nonce: "run", StartedAt: tt.manager}}
			if tt.change != nil {
				tt.change(r)
			}
			if got := runOf(r).ContainerID; got != tt.want {
				t.Errorf("the grant names container %q, want %q", got, tt.want)
			}
		})
	}
}

// One event for one suspicion, however many looks it takes.
func TestASuspicionIsToldOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(3)
	w.runFor(5*time.Second, func(string) {})
	primary := w.servers[0]
	for _, o := range append([]string{"api", "controller"}, w.names()...) {
		w.cuts[link(primary.name, o)] = true
	}
	told := 0
	for range 20 {
		in, ok := w.input()
		if !ok {
			t.Fatal("the controller cannot read the Lease")
		}
		for _, e := range decide(in, w.knobs).Events {
			if e.Reason == ag.EventSuspected {
				told++
			}
		}
		w.runFor(beat, func(string) {})
	}
	if told != 1 {
		t.Errorf("the suspicion was told %d times, want once", told)
	}
}

// Where the record was made anew for nobody, a replica that was found PRIMARY beside it, or
// told so under an earlier record, is not complete by definition: no election among all chose it.
func TestOnlyWhoWasPromotedUnderTheRecordIsItsLastPrimary(t *testing.T) {
	t.Parallel()
	run := ag.Run{Replica: "a", PodUID: "pod-a", Nonce: "1"}
	for name, tt := range map[string]struct {
		change func(*ag.Authority)
		want   bool
	}{
		"entered as a possible primary":        {change: func(*ag.Authority) {}},
		"its promotion was given up":           {change: func(x *ag.Authority) { x.GivenUp = []ag.GivenUp{{Run: run}} }, want: true},
		"it is being fenced after a promotion": {change: func(x *ag.Authority) { x.Unfenced = []ag.Grant{{Run: run, Promoted: true}} }, want: true},
		"it was nominated only":                {change: func(x *ag.Authority) { x.Unfenced = []ag.Grant{{Run: run}} }},
		"it is being promoted": {change: func(x *ag.Authority) {
			x.Holder, x.Operation = run, &ag.Operation{Phase: ag.PhasePromoting}
		}, want: true},
		"it is the last primary of the record": {change: func(x *ag.Authority) { x.LastPrimary, x.MaybePrimary = "a", nil }, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := ag.Authority{Exists: true, MaybePrimary: []string{"a"}, Rule: ag.CommitRule{Set: []ag.Member{{Replica: "a"}, {Replica: "b"}}}}
			tt.change(&x)
			v := newView(Input{Authority: x, Snapshot: ag.Snapshot{Replicas: []ag.Replica{{
				Name: "a", Mode: ag.ModeSynchronous, Local: ag.Local{Reach: ag.ReachOK, Role: ag.RoleResolving, Sequence: 7},
			}}}}, knobs{})
			if got := v.lastOnOwnVolume(question{}) != nil; got != tt.want {
				t.Errorf("the return of a is enough: %v, want %v", got, tt.want)
			}
		})
	}
}

// Among equals the nominee that was found PRIMARY under a record made anew is kept, whatever the
// order and the preference are; it is not when another one is better.
func TestAnEarlyNomineeIsKeptAmongEquals(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		last  string
		maybe []string
		other int64
		want  string
	}{
		"found PRIMARY under a record for nobody":           {maybe: []string{"mssql-1"}, want: "mssql-1"},
		"another one has a higher number":                   {maybe: []string{"mssql-1"}, other: 1, want: "mssql-2"},
		"it was merely nominated":                           {want: "mssql-0"},
		"the record knows who was primary: the usual order": {last: "mssql-1", maybe: []string{"mssql-1"}, want: "mssql-0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := settledInput(t)
			in.Authority.LastPrimary, in.Authority.MaybePrimary = tt.last, tt.maybe
			in.Authority.Holder = ag.Run{Replica: "mssql-1", PodUID: "p", Nonce: "n"}
			v := newView(in, knobs{})
			for i := range v.snap.Replicas {
				r := &v.snap.Replicas[i]
				r.Local.Role = ag.RoleResolving
				if r.Name == "mssql-2" {
					r.Local.Sequence += tt.other
				}
			}
			if got := v.elect(question{keep: v.earlyNominee()}).winner; got != tt.want {
				t.Errorf("%q wins, want %q", got, tt.want)
			}
		})
	}
}
