package agops

import (
	"context"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// records is a store whose Lease is another one at each reading.
type records struct {
	Store
	counts []int64
	read   int
}

func (r *records) Load(context.Context, ag.Key) (Loaded, error) {
	n := r.counts[min(r.read, len(r.counts)-1)]
	r.read++
	return Loaded{Policy: ag.Policy{UID: "u", Initialized: true}, Memory: ag.Memory{Initialized: true}, Authority: ag.Authority{Exists: true, AGUID: "u", Epoch: 3, Swaps: n}}, nil
}

func (r *records) Save(context.Context, ag.Key, ag.Memory, ag.Memory) error { return nil }
func (r *records) Swap(_ context.Context, _ ag.Key, _ ag.Authority, s ag.Swap) (ag.Authority, error) {
	return s.Next, nil
}

// sighted is a snapshot in which a manager has seen so many swaps.
type sighted int64

func (s sighted) Observe(context.Context, ag.Key, ag.Policy, string) (ag.Snapshot, error) {
	return ag.Snapshot{Replicas: []ag.Replica{{Name: "ag1-0", Manager: ag.Manager{Reach: ag.ReachOK, HighestSwaps: int64(s)}}}}, nil
}

func TestAPassThatWasOvertakenIsNoRestoredLease(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		counts []int64
		seen   sighted
		// conflict: the pass is given up; blocked: the Lease is taken for a restored one.
		conflict, blocked bool
	}{
		{"a manager has seen a swap that was made meanwhile", []int64{19, 20}, 20, true, false},
		{"a manager has seen more than the Lease has still", []int64{19}, 23, false, true},
		{"a manager has seen as much", []int64{19}, 19, false, false},
		{"the Lease is of a release that did not count", []int64{0}, 23, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := NewEngine(Options{Store: &records{counts: c.counts}, Observer: c.seen, Clock: clocktesting.NewFakeClock(time.Unix(1, 0)), Identity: "controller/1"})
			r, err := e.Step(context.Background(), ag.Key{Name: "ag1"})
			if err != nil || r.Conflict != c.conflict {
				t.Fatalf("%v, conflict %v", err, r.Conflict)
			}
			blocked := false
			for _, b := range r.Decision.Blocks {
				blocked = blocked || b.Reason == ag.ReasonAuthorityLost
			}
			for _, o := range r.Outcomes {
				if s, ok := o.Action.(ag.Swap); ok {
					blocked = blocked || s.Next.Epoch == 4
				}
			}
			if blocked != c.blocked {
				t.Errorf("taken for a restored one: %v; blocks %v, outcomes %v", blocked, r.Decision.Blocks, r.Outcomes)
			}
		})
	}
}
