package decide

import (
	"strings"
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// A removal is one schedule of the safety review, run with a rule switched off: the
// violation that the rule prevents must appear, and must not when the rule is on. The
// other lock is off in both runs where it would hide the rule (safety.md §4, §8).
type removal struct {
	// off in both runs; rule is off in the second only.
	off  []string
	rule string
	make func() *world
	play func(*world)
	// want is what the checker says without the rule; empty: the group is not writable at the end.
	want string
}

func (w *world) runQuietly(d time.Duration) { w.runFor(d, func(string) {}) }

// cutOff cuts the primary from the API server and the controller; its peers it keeps.
func (w *world) cutOff(name string) {
	w.cuts[link(name, "api")], w.cuts[link(name, "controller")] = true, true
	w.policy.FailsafeHold = 20 * time.Second
	w.policy.Threshold = 10 * time.Second
}

func alone(w *world) { w.promoteAlone = true }

func explicit(k int32) func(*world) { return func(w *world) { w.policy.K = k } }

// beside: the old primary is cut off from the controller and goes on with a follower.
func beside(w *world) {
	w.runQuietly(10 * time.Second)
	w.cutOff("mssql-0")
	w.runQuietly(90 * time.Second)
}

func resolvesAlone(w *world) { w.resolvesAlone = true }

// comesBack: the old primary is silent until another one is about to be PRIMARY, and then finds
// its followers again, who were RESOLVING meanwhile.
func comesBack(w *world) {
	w.policy.Threshold, w.slow = 10*time.Second, 5*time.Second
	w.runQuietly(10 * time.Second)
	w.silence(w.find("mssql-0"), true)
	for range 30 {
		w.runQuietly(time.Second)
		if op := w.lease.Operation; op != nil && op.Phase == ag.PhasePromoting {
			break
		}
	}
	for _, n := range []string{"mssql-2", "mssql-3"} {
		w.cuts[link("mssql-0", n)] = false
		w.cuts[link(w.lease.Holder.Replica, n)] = true
	}
	w.runQuietly(3 * time.Second)
	for _, n := range []string{"mssql-2", "mssql-3"} {
		w.cuts[link(w.lease.Holder.Replica, n)] = false
	}
	w.runQuietly(60 * time.Second)
}

func removals() map[string]removal {
	return map[string]removal{
		"R9, the full wait, with the promises of R11 off": {
			off: []string{"R11"}, rule: "R9", want: "I1",
			make: func() *world { return newWorld(3, alone) }, play: beside,
		},
		"R11, the promise, with the wait of R9 off": {
			off: []string{"R9"}, rule: "R11", want: "I1",
			make: func() *world { return newWorld(3, alone) }, play: beside,
		},
		"R11, a promise is an answer, with the wait of R9 off": {
			off: []string{"R9"}, rule: "R11 answer", want: "I2",
			make: func() *world { return newWorld(4, resolvesAlone) }, play: comesBack,
		},
		"R10, the second reading, with the promises of R11 off": {
			off: []string{"R11"}, rule: "R10", want: "I2",
			make: func() *world { return newWorld(3) },
			play: func(w *world) {
				w.runQuietly(10 * time.Second)
				w.cutOff("mssql-0")
				w.runQuietly(22 * time.Second)
				w.cuts[link("mssql-0", "mssql-1")] = true // its session to the nominee ends during the wait
				w.runQuietly(60 * time.Second)
			},
		},
		"R12, the highest number, seen at the witness": {
			rule: "max", want: "I2",
			make: func() *world { return newWorld(2, withWitness, explicit(0)) },
			play: func(w *world) {
				w.runQuietly(5 * time.Second)
				w.cuts[link("mssql-0", "mssql-1")] = true
				w.runQuietly(20 * time.Second)
				w.kill(w.find("mssql-0"), -1)
				w.runQuietly(20 * time.Second)
			},
		},
		"R13, the answers, with two replicas and k = 0": {
			rule: "R13", want: "I2",
			make: func() *world { return newWorld(2, explicit(0)) },
			play: func(w *world) {
				w.runQuietly(5 * time.Second)
				w.cuts[link("mssql-0", "mssql-1")] = true
				w.runQuietly(20 * time.Second)
				w.kill(w.find("mssql-0"), -1)
				w.runQuietly(20 * time.Second)
			},
		},
		"R20, the comparison after OFFLINE": {
			rule: "R20", want: "I2",
			make: func() *world { return newWorld(3) },
			play: func(w *world) {
				w.runQuietly(5 * time.Second)
				w.move("mssql-1")
				w.beforeOffline = func(p *server) {
					// The API server is slow: between the swap and OFFLINE the target's session ends,
					// the primary drops it, and commits with mssql-2.
					w.beforeOffline = nil
					w.cuts[link(p.name, "mssql-1")] = true
					p.lastSeen["mssql-1"] = w.now - sessionTimeout
					for range 3 {
						w.primaryBeat(p)
					}
				}
				w.runQuietly(30 * time.Second)
			},
		},
		"R21, giving up a target is a failover away from it": {
			rule: "R21", want: "I2",
			make: func() *world { return newWorld(2, explicit(0)) },
			play: func(w *world) {
				w.runQuietly(5 * time.Second)
				w.slow = 66 * time.Second // within its write lease, which is renewed until it is given up
				w.move("mssql-1")
				w.runQuietly(10 * time.Second)
				w.slow = recoveryTime
				w.cuts[link("mssql-0", "mssql-1")] = true
				w.runQuietly(120 * time.Second)
			},
		},
		"R12, stale: an orphaned promotion has the highest number": {
			rule: "stale", want: "I2",
			make: func() *world { return newWorld(5, alone) },
			play: func(w *world) {
				w.runQuietly(5 * time.Second)
				w.kill(w.find("mssql-0"), -1)
				w.runQuietly(2 * time.Second)
				for _, n := range []string{"mssql-2", "mssql-3", "mssql-4"} {
					w.cuts[link("mssql-1", n)] = true
				}
				w.runQuietly(time.Second)
				w.find("mssql-1").cfg.seq += 2 << 32 // promoted again and again, followed by nobody
				w.kill(w.find("mssql-1"), -1)
				w.runQuietly(30 * time.Second)
				w.find("mssql-1").downUntil = w.now
				w.kill(w.find("mssql-2"), -1)
				w.runQuietly(60 * time.Second)
			},
		},
		"R13, the last primary itself is enough": {
			rule: "last",
			make: func() *world { return newWorld(2, explicit(0)) },
			play: func(w *world) {
				w.runQuietly(5 * time.Second)
				w.kill(w.find("mssql-1"), -1)
				w.runQuietly(20 * time.Second)
				w.kill(w.find("mssql-0"), 10*time.Second)
				w.runQuietly(60 * time.Second)
			},
		},
	}
}

func (w *world) move(target string) {
	w.request = &ag.Request{ID: "r1", Kind: requestFailover, Target: target, By: "alice"}
}

func TestRuleRemoval(t *testing.T) {
	t.Parallel()
	for name, r := range removals() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on, off := r.make(), r.make()
			on.knobs = knobs{off: r.off}
			off.knobs = knobs{off: append([]string{r.rule}, r.off...)}
			on.sparse, off.sparse = 10, 10
			r.play(on)
			r.play(off)
			if len(on.violations) > 0 {
				t.Errorf("with the rule: %s", strings.Join(on.violations, "; "))
			}
			if r.want == "" {
				if !on.writable() || off.writable() {
					t.Errorf("writable with the rule %v, without it %v", on.writable(), off.writable())
				}
				return
			}
			if got := strings.Join(off.violations, "; "); !strings.Contains(got, r.want+":") {
				t.Errorf("without %s nothing is caught: %q; the rule is not shown to be needed", r.rule, got)
			}
		})
	}
}
