package live

import (
	"context"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/agops"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/decide"
)

// Look is a pass that changes nothing: what is there, and what the rules say of it.
func (s *System) Look(ctx context.Context, key ag.Key, clk clock.Clock) (agops.Report, error) {
	r := agops.Report{Key: key, Now: clk.Now().UTC().Truncate(time.Second)}
	loaded, err := s.Store.Load(ctx, key)
	if err != nil {
		return r, err
	}
	r.Policy, r.Authority, r.NoProof, r.Memory = loaded.Policy, loaded.Authority, loaded.NoProof, loaded.Memory
	if r.Snapshot, err = s.Observer.Observe(ctx, key, loaded.Policy, loaded.Authority.Holder.Replica); err != nil {
		return r, err
	}
	if loaded.Memory.Initialized {
		r.Decision = decide.Decide(decide.Input{Now: r.Now, Observer: "look", Authority: loaded.Authority, Snapshot: r.Snapshot,
			Policy: loaded.Policy, Memory: loaded.Memory})
	}
	return r, nil
}

// Release gives the operation that this process drives to whoever looks next, so that
// nobody waits for its deadline (R2). It is for a process that ends and has sent its last
// statement: that one may still be under way, as after the death of a controller. True
// when there was something to give.
func (s *System) Release(ctx context.Context, key ag.Key) (bool, error) {
	loaded, err := s.Store.Load(ctx, key)
	if err != nil {
		return false, err
	}
	op := loaded.Authority.Operation
	if op == nil || op.Owner != s.identity {
		return false, nil
	}
	next := loaded.Authority.Clone()
	next.Operation.Owner = ""
	if _, err := s.Store.Swap(ctx, key, loaded.Authority, ag.Swap{Next: next, Why: string(op.Kind) + " is given to whoever looks next"}); err != nil {
		return false, err
	}
	return true, nil
}

// Drive runs passes in the foreground until done says so or the context ends: the
// plugin's --direct, where no controller is there to do it. It is safe beside a
// controller that comes back meanwhile: whoever loses a swap stops and looks again.
//
// A pass that fails is repeated after a second; the newest failure is returned when
// the context ends first.
func (s *System) Drive(ctx context.Context, key ag.Key, clk clock.Clock, done func(agops.Report) bool) (agops.Report, error) {
	return drive(ctx, s.Engine.Step, key, clk, done)
}

func drive(ctx context.Context, step func(context.Context, ag.Key) (agops.Report, error), key ag.Key, clk clock.Clock, done func(agops.Report) bool) (agops.Report, error) {
	var last agops.Report
	var failed error
	for {
		report, err := step(ctx, key)
		if err == nil {
			last = report
			if done(report) {
				return report, nil
			}
		}
		failed = err
		pause := max(report.Next, time.Second)
		if report.Conflict {
			pause = report.Next
		}
		select {
		case <-ctx.Done():
			if failed == nil {
				failed = ctx.Err()
			}
			return last, failed
		case <-clk.After(pause):
		}
	}
}
