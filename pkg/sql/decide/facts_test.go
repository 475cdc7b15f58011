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
	for name, tt := range map[string]struct {
		manager time.Time
		change  func(*ag.Replica)
		want    string
	}{
		"the manager began within the same second":           {manager: began.Add(280 * time.Millisecond), want: "c1"},
		"the runtime noted the start just after the manager": {manager: began.Add(-10 * time.Millisecond), want: "c1"},
		"a second later it may be the next container's":      {manager: began.Add(1100 * time.Millisecond)},
		"much later it is":                           {manager: began.Add(time.Minute)},
		"the status is of a container of the future": {manager: began.Add(-3 * time.Second)},
		"a manager that does not say when it began":  {},
		"a container that does not run":              {manager: began, change: func(r *ag.Replica) { r.Pod.Container.Running = false }},
		"a status without a start":                   {manager: began, change: func(r *ag.Replica) { r.Pod.Container.StartedAt = time.Time{} }},
		"a status without a container":               {manager: began, change: func(r *ag.Replica) { r.Pod.Container.ID = "" }},
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
