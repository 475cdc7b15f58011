package decide

import (
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// ruleOperation continues, finishes or cancels the operation in flight (R2).
func ruleOperation(v *view, d *draft) bool {
	op := v.auth.Operation
	if op == nil {
		return false
	}
	if !v.mine(op) && (!v.overdue(op) || v.knobs.without("R2")) {
		d.find("", ag.SymptomNone, "%s to %s is driven by %s", op.Kind, orText(op.Target, "nobody"), op.Owner)
		d.soon("the %s of %s", op.Kind, op.Owner)
		return true
	}
	switch op.Phase {
	case ag.PhaseDemoting:
		return v.demoting(d, op)
	case ag.PhaseFencing, ag.PhaseAborting:
		return v.fencing(d, op)
	case ag.PhasePromoting:
		return v.promoting(d, op)
	case ag.PhasePublishing:
		return v.publishing(d, op)
	case ag.PhaseCreating:
		return v.creating(d, op)
	}
	return v.cancel(d, op, "its phase "+string(op.Phase)+" is unknown")
}

// mine: this process, or one like it that it succeeds, started the operation. A
// controller takes over from another controller at once: leader election has replaced it.
func (v *view) mine(op *ag.Operation) bool {
	return op.Owner == "" || op.Owner == v.in.Observer || strings.HasPrefix(op.Owner, "controller/") && strings.HasPrefix(v.in.Observer, "controller/")
}

// overdue: this process has seen the operation for longer than it was given (R2).
func (v *view) overdue(op *ag.Operation) bool {
	return v.since(v.watch.OperationSeen) >= max(op.Deadline.Sub(op.StartedAt), 0)
}

// inPhase is how long this process has seen the present phase.
func (v *view) inPhase() time.Duration { return v.since(v.watch.OperationPhase) }

// creating: the bootstrap makes the group; it ends when its target is PRIMARY.
func (v *view) creating(d *draft, op *ag.Operation) bool {
	if t := v.snap.Find(op.Target); isPrimary(t) && sameRun(t, v.auth.Holder) {
		return v.finish(d, op, t)
	}
	if v.overdue(op) {
		return v.cancel(d, op, "the group was not made in time")
	}
	d.soon("the group to be made on %s", op.Target)
	return true
}

// cancel ends an operation without a role change.
func (v *view) cancel(d *draft, op *ag.Operation, why string) bool {
	next := v.auth.Clone()
	next.Operation = nil
	d.do(ag.Swap{Next: next, Why: string(op.Kind) + " cancelled: " + why, Result: v.failedResult(op, why)})
	d.event(ag.EventWarning, ag.EventAborted, "The %s to %s was cancelled: %s", op.Kind, op.Target, why)
	d.soon("the next look")
	return true
}

// finish ends an operation whose target is PRIMARY.
func (v *view) finish(d *draft, op *ag.Operation, t *ag.Replica) bool {
	next := v.confirmed(t)
	done, result := "done", v.doneResult(op, t.Name)
	if op.Aborted != "" {
		if t.Name == op.From {
			done = resultAborted
		}
		if q := v.in.Request; q == nil || q.ID != op.RequestID || q.Target != t.Name {
			result = v.failedResult(op, op.Aborted)
		}
	}
	next.Operation = nil
	d.do(ag.Swap{Next: next, Why: t.Name + " is PRIMARY and ONLINE", Change: v.change(op, t.Name, done, v.auth.Epoch), Result: result})
	d.event(ag.EventNormal, ag.EventPublished, "%s is primary (%s, epoch %d)", t.Name, op.Kind, v.auth.Epoch)
	d.soon("the labels")
	return true
}

// confirmed is the record once this replica was seen PRIMARY as holder.
func (v *view) confirmed(t *ag.Replica) ag.Authority {
	next := v.auth.Clone()
	next.LastPrimary, next.MaybePrimary = t.Name, nil
	next.Stale = less(next.Stale, t.Name)
	next.GivenUp = withoutGivenUp(next.GivenUp, t.Name)
	next.Sequences = v.sequences()
	return next
}

// resultAborted is the result, in the history, of a move that has led back to where it began.
const resultAborted = "aborted"

// change is the row of the history for an operation that has ended with this primary. A
// move that was given up names the replica to which it was to go.
func (v *view) change(op *ag.Operation, primary, result string, epoch int64) *ag.RoleChange {
	to := primary
	if result == resultAborted {
		to = orText(op.First, op.Target)
	}
	return &ag.RoleChange{
		Kind: changeKind(op.Kind), From: op.From, To: to, Cause: op.Cause, RequestID: op.RequestID, Epoch: epoch,
		StartedAt: op.StartedAt, CompletedAt: v.now, Result: result,
		Timeline: append(append([]ag.Step(nil), op.Steps...), ag.Step{At: v.now, What: primary + " is PRIMARY"}),
	}
}

// changeKind is the word of the history: bootstrap, planned, automatic, forced, manual.
func changeKind(k ag.OperationKind) string {
	switch k {
	case ag.OperationBootstrap:
		return "bootstrap"
	case ag.OperationSwitchover, ag.OperationHandover:
		return "planned"
	case ag.OperationForced:
		return "forced"
	case ag.OperationFailover:
	}
	return "automatic"
}

func (v *view) running(op *ag.Operation) *ag.Result {
	if op == nil || op.RequestID == "" {
		return nil
	}
	return &ag.Result{ID: op.RequestID, Kind: requestFailover, Target: op.Target, Result: ResultRunning}
}

func (v *view) doneResult(op *ag.Operation, primary string) *ag.Result {
	if op.RequestID == "" {
		return nil
	}
	return &ag.Result{ID: op.RequestID, Kind: requestFailover, Target: op.Target, Result: ResultDone,
		Message: primary + " is primary", CompletedAt: v.now}
}

func (v *view) failedResult(op *ag.Operation, why string) *ag.Result {
	if op.RequestID == "" {
		return nil
	}
	return &ag.Result{ID: op.RequestID, Kind: requestFailover, Target: orText(op.First, op.Target), Result: ResultFailed,
		Reason: ag.ReasonNoSafeCandidate, Message: why, CompletedAt: v.now}
}

func (v *view) secondsOf(n int) time.Duration { return time.Duration(n) * time.Second }
