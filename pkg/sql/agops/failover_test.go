package agops_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// settled makes a world whose group is complete, with k = 1 recorded.
func settled(t *testing.T) *world {
	t.Helper()
	w := newWorld(3, "app")
	settle(t, w, w.engine(), 60)
	w.auth.Rule.K = 1
	w.log, w.effects = nil, 0
	return w
}

// move steps until the request is answered and the record is at rest; at a fault the
// process is replaced by a new one.
func move(t *testing.T, w *world, limit int) {
	t.Helper()
	e := w.engine()
	w.request = &ag.Request{ID: "move", Kind: "failover", Target: "ag1-1"}
	faults := 0
	inner := w.fault
	w.fault = func(n int, what string) faultKind {
		if inner == nil {
			return noFault
		}
		k := inner(n, what)
		if k != noFault {
			faults++
		}
		return k
	}
	for range limit {
		before := faults
		r, err := e.Step(context.Background(), key)
		if err != nil && !strings.Contains(err.Error(), errInjected.Error()) {
			t.Fatal(err)
		}
		if faults > before {
			e = w.engine()
		}
		if w.memory.HandledRequest == "move" && w.auth.Operation == nil && w.primary() != nil {
			return
		}
		w.clock.Step(max(r.Next, time.Second))
	}
	t.Fatalf("not settled after %d steps: %+v, %+v\n%s", limit, w.auth.Operation, w.memory.Blocks, strings.Join(w.log, "\n"))
}

func oneHolder(t *testing.T, w *world) {
	t.Helper()
	var primaries []string
	for _, s := range w.servers {
		if s.role == ag.RolePrimary {
			primaries = append(primaries, s.name)
		}
	}
	if !slices.Equal(primaries, []string{w.auth.Holder.Replica}) {
		t.Errorf("primaries %q, holder %q\n%s", primaries, w.auth.Holder.Replica, strings.Join(w.log, "\n"))
	}
	labels := 0
	for _, s := range w.servers {
		if s.label == ag.RolePrimary {
			labels++
		}
	}
	if labels > 1 {
		t.Errorf("%d primary labels", labels)
	}
}

func TestPlannedFailoverMovesThePrimary(t *testing.T) {
	t.Parallel()
	w := settled(t)
	move(t, w, 60)
	oneHolder(t, w)
	if w.auth.Holder.Replica != "ag1-1" || w.memory.LastResult.Result != "Done" {
		t.Errorf("holder %q, %+v", w.auth.Holder.Replica, w.memory.LastResult)
	}
	offline, failover := index(w, "ag1-0: OFFLINE"), index(w, "ag1-1: FAILOVER")
	if offline < 0 || failover < offline {
		t.Errorf("OFFLINE at %d, FAILOVER at %d", offline, failover)
	}
	if !strings.HasPrefix(w.log[failover-1], "swap: ") {
		t.Errorf("FAILOVER came after %q, not after a swap", w.log[failover-1])
	}
}

func TestPlannedFailoverGoesOnAfterACrashAtEveryPoint(t *testing.T) {
	t.Parallel()
	clean := settled(t)
	move(t, clean, 60)
	for _, kind := range []faultKind{notExecuted, answerLost} {
		for n := range clean.effects {
			t.Run(fmt.Sprintf("fault %d at effect %d (%s)", kind, n, clean.log[n]), func(t *testing.T) {
				t.Parallel()
				w := settled(t)
				w.fault = func(i int, _ string) faultKind {
					if i == n {
						return kind
					}
					return noFault
				}
				move(t, w, 200)
				oneHolder(t, w)
			})
		}
	}
}

func TestFailoverIsSentOnlyRightAfterItsSwap(t *testing.T) {
	t.Parallel()
	w := settled(t)
	// The swap to phase promoting takes longer than q: what follows it is too late.
	slow := true
	w.fault = func(_ int, what string) faultKind {
		if slow && strings.HasPrefix(what, "swap: ") && strings.Contains(what, "holds all of it") {
			w.clock.Step(w.policy.Timing.Q + time.Second)
			slow = false
		}
		return noFault
	}
	move(t, w, 200)
	oneHolder(t, w)
	if slow {
		t.Fatalf("no swap was slow\n%s", strings.Join(w.log, "\n"))
	}
	var swaps []string
	for _, l := range w.log {
		if strings.HasPrefix(l, "swap: ") || strings.Contains(l, "FAILOVER") {
			swaps = append(swaps, l)
		}
	}
	first := slices.IndexFunc(swaps, func(s string) bool { return strings.Contains(s, "FAILOVER") })
	slowed := slices.IndexFunc(swaps, func(s string) bool { return strings.Contains(s, "holds all of it") })
	if first == slowed+1 {
		t.Errorf("FAILOVER was sent although its swap was too old: %q", swaps)
	}
}

func TestGroupOfClusterTypeNoneIsMadeAndMoved(t *testing.T) {
	t.Parallel()
	w := newWorld(2, "app")
	w.policy.External = false
	settle(t, w, w.engine(), 60)
	move(t, w, 100)
	oneHolder(t, w)
	if w.auth.Holder.Replica != "ag1-1" {
		t.Errorf("holder %q\n%s", w.auth.Holder.Replica, strings.Join(w.log, "\n"))
	}
}
