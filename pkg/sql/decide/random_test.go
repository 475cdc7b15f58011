package decide

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// topology of a random schedule.
type topology struct {
	name string
	make func() *world
}

func topologies() []topology {
	k := func(k int32) func(*world) { return func(w *world) { w.policy.K = k } }
	alone := func(w *world) { w.promoteAlone = true }
	return []topology{
		{"three synchronous", func() *world { return newWorld(3) }},
		{"three synchronous, promotion without majority", func() *world { return newWorld(3, alone) }},
		{"two synchronous, k=1", func() *world { return newWorld(2) }},
		{"two synchronous, a change judged by the old value, too", func() *world {
			return newWorld(2, func(w *world) { w.oldQuorum = true })
		}},
		{"two synchronous, k=0", func() *world { return newWorld(2, k(0)) }},
		{"two synchronous and a witness", func() *world { return newWorld(2, withWitness, k(0)) }},
		{"five synchronous", func() *world { return newWorld(5) }},
		{"three synchronous, k=2", func() *world { return newWorld(3, k(2)) }},
		{"three synchronous and an asynchronous one", func() *world { return newWorld(3, withAsync) }},
	}
}

// draw is a source of choices: a number below n.
type draw func(n int, what string) int

// faults that a schedule may draw. All of them end with healAll.
func (w *world) fault(draw draw) string {
	s := w.servers[draw(len(w.servers), "replica")]
	if draw(3, "aimed") > 0 {
		// Aim at who matters now: the holder, or a target.
		if h := w.find(w.lease.Holder.Replica); h != nil {
			s = h
		}
	}
	o := w.servers[draw(len(w.servers), "other")]
	switch draw(16, "fault") {
	case 0, 1:
		if s.up {
			w.kill(s, time.Duration(1+draw(40, "down"))*time.Second)
		}
		return "kill " + s.name
	case 2:
		if s.up {
			w.kill(s, -1)
		}
		return "kill " + s.name + " for long"
	case 3, 4:
		w.silence(s, true)
		return "silence " + s.name
	case 5:
		w.silence(s, false)
		return "unsilence " + s.name
	case 6, 7:
		w.cuts[link(s.name, o.name)] = true
		return "cut " + link(s.name, o.name)
	case 8:
		w.cuts[link(s.name, "api")] = true
		return "cut " + s.name + " api"
	case 9:
		w.cuts[link(s.name, "controller")] = true
		return "cut " + s.name + " controller"
	case 10:
		w.cuts = map[string]bool{}
		return "all links up"
	case 11:
		w.apiOff = !w.apiOff
		return fmt.Sprintf("api away=%v", w.apiOff)
	case 12:
		w.controller("forget")
		return "controller forgets"
	case 13:
		w.request = &ag.Request{ID: fmt.Sprintf("r%d", int(w.now/time.Second)), Kind: requestFailover, Target: o.name}
		return "request failover to " + o.name
	case 14:
		w.slow = time.Duration(1+draw(30, "slow")) * time.Second
		return "promotions take " + w.slow.String()
	}
	if s.up && s.role != ag.RoleNone {
		w.offline(s)
	}
	return "OFFLINE by hand on " + s.name
}

func (w *world) silence(s *server, on bool) {
	for _, o := range append([]string{"api", "controller"}, w.names()...) {
		if o != s.name {
			w.cuts[link(s.name, o)] = on
		}
	}
}

// healAll ends every fault.
func (w *world) healAll() {
	w.cuts, w.apiOff, w.slow = map[string]bool{}, false, recoveryTime
	for _, s := range w.servers {
		if !s.up {
			s.downUntil = w.now
		}
		s.frozen, s.latched = false, false
	}
}

// TestRandomSchedules: no schedule of faults makes two writers, or loses a commit that
// was acknowledged; and when the faults are over the group is writable again.
func TestRandomSchedules(t *testing.T) {
	t.Parallel()
	for _, top := range topologies() {
		t.Run(top.name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				w := top.make()
				w.sparse = 10
				story := w.schedule(func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(t, what) })
				if v := w.violations; len(v) > 0 {
					t.Fatalf("%s\nVIOLATION %s", strings.Join(story, "\n"), strings.Join(v, "\n"))
				}
			})
		})
	}
}

// schedule draws faults, heals, and waits for the group to be writable.
func (w *world) schedule(draw draw) []string {
	w.policy.Threshold = time.Duration([]int{10, 30}[draw(2, "threshold")]) * time.Second
	w.policy.FailsafeHold = 30 * time.Second
	var story []string
	note := func(l string) { story = append(story, l) }
	w.runFor(5*time.Second, note)
	for range 1 + draw(12, "faults") {
		note(clock(w.now) + " * " + w.fault(draw))
		w.runFor(time.Duration([]int{0, 1, 2, 3, 5, 8, 15, 30, 45}[draw(9, "pause")])*time.Second, note)
		if len(w.violations) > 0 {
			return story
		}
	}
	w.healAll()
	note(clock(w.now) + " * healed")
	for range 40 {
		w.runFor(15*time.Second, note)
		if len(w.violations) > 0 || w.writable() {
			return story
		}
	}
	in, ok := w.input()
	if ok {
		note(Explain(decide(in, w.knobs)))
	}
	note(w.line() + w.table())
	w.violation("I3: not writable ten minutes after every fault was over")
	return story
}

// writable: the holder is PRIMARY and acknowledges.
func (w *world) writable() bool {
	h := w.find(w.lease.Holder.Replica)
	return h != nil && w.alive(h) && h.role == ag.RolePrimary && len(h.waiting) == 0 && w.lease.Operation == nil
}

// TestEachLockAlone: time (R9) and the commit rule (R11) hold each with the other one
// switched off. With k = 0 there is no second lock, so that only time is tried there.
func TestEachLockAlone(t *testing.T) {
	t.Parallel()
	for _, lock := range []struct {
		name, off string
		kAtLeast  int32
	}{{"time alone", "R11", 0}, {"commit rule alone", "R9", 1}} {
		for _, top := range topologies() {
			if probe := top.make(); probe.lease.Rule.K < lock.kAtLeast || lock.off == "R9" && probe.promoteAlone {
				continue
			}
			t.Run(lock.name+"/"+top.name, func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(t *rapid.T) {
					w := top.make()
					w.sparse, w.knobs = 50, knobs{off: []string{lock.off}}
					story := w.schedule(func(n int, what string) int { return rapid.IntRange(0, n-1).Draw(t, what) })
					for _, v := range w.violations {
						if strings.Contains(v, "I1:") || strings.Contains(v, "I2:") {
							t.Fatalf("%s\nVIOLATION %s", strings.Join(story, "\n"), v)
						}
					}
				})
			})
		}
	}
}
