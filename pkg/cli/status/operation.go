package status

import (
	"fmt"
	"strings"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// operation is the move under way, from the Lease where it could be read.
func (d *Document) operation(in Input) {
	var op *ag.Operation
	if in.Lease != nil {
		op = in.Lease.Authority.Operation
	} else if a := in.Group.Status.Authority; a != nil && a.Operation != nil {
		o := a.Operation
		op = &ag.Operation{
			ID: o.ID, Kind: ag.OperationKind(o.Kind), Phase: ag.OperationPhase(o.Phase), From: o.From, Target: o.Target,
			StartedAt: o.StartedAt.Time, Deadline: o.Deadline.Time,
		}
		for _, s := range o.Steps {
			op.Steps = append(op.Steps, ag.Step{At: s.At.Time, What: s.What})
		}
	}
	if op == nil {
		return
	}
	o := &Operation{
		ID: op.ID, Kind: string(op.Kind), Phase: string(op.Phase), From: op.From, Target: op.Target, Cause: op.Cause, Owner: op.Owner,
		Started: instant(op.StartedAt), Deadline: instant(op.Deadline), Steps: []Step{}, Next: []string{},
	}
	for _, s := range op.Steps {
		o.Steps = append(o.Steps, Step{max(0, s.At.Sub(op.StartedAt).Seconds()), s.What})
	}
	o.Now, o.Next = under(in, op), following(in, op)
	d.Operation = o
	d.moves(in, op)
}

// moves: the Lease tells of the move before the resource does, which is written later or,
// when the operator ends in the middle, by the next one.
func (d *Document) moves(in Input, op *ag.Operation) {
	if d.Phase != string(api.PhaseHealthy) && d.Phase != string(api.PhaseDegraded) {
		return
	}
	switch op.Kind {
	case ag.OperationSwitchover, ag.OperationHandover:
		d.Phase = string(api.PhaseSwitchingOver)
	case ag.OperationFailover, ag.OperationForced:
		d.Phase = string(api.PhaseFailingOver)
	case ag.OperationBootstrap:
		return
	}
	d.Reason = fmt.Sprintf("%s to %s: %s", op.Kind, orWord(op.Target, "?"), op.Phase)
	if len(in.Reports) > 0 {
		d.asServersSay(in)
	}
}

// under says what the phase is about in a person's words, with the numbers of the target.
func under(in Input, op *ag.Operation) string {
	switch op.Phase {
	case ag.PhaseDemoting:
		return "taking " + op.From + " offline"
	case ag.PhaseFencing:
		return "making sure that " + orWord(op.From, "the old primary") + " cannot write"
	case ag.PhasePromoting:
		return "promoting " + op.Target + recovery(in, op.Target)
	case ag.PhasePublishing:
		return "pointing " + in.Group.ListenerName() + " at " + op.Target
	case ag.PhaseAborting:
		return "taking the move back"
	case ag.PhaseCreating:
		return "creating the group on " + op.Target
	}
	return string(op.Phase)
}

// recovery is how far the target's databases are.
func recovery(in Input, target string) string {
	r, ok := in.Reports[target]
	if !ok {
		return ""
	}
	copies := r.CopiesOf(target)
	online := 0
	for _, c := range copies {
		if c.State == string(ag.DatabaseOnline) {
			online++
		}
	}
	if len(copies) == 0 || online == len(copies) {
		return ""
	}
	text := fmt.Sprintf(", %d of %d databases recovered", online, len(copies))
	var left []string
	for _, c := range copies {
		if c.State != string(ag.DatabaseOnline) && c.RedoQueue != nil && *c.RedoQueue > 0 {
			left = append(left, fmt.Sprintf("%s: %s of redo", c.Database, size(*c.RedoQueue)))
		}
	}
	if len(left) > 0 {
		text += "; " + strings.Join(left, ", ")
	}
	return text
}

// following are the steps that follow, in order.
func following(in Input, op *ag.Operation) []string {
	var rejoin []string
	for _, name := range in.Group.ReplicaNames() {
		if name != op.Target && name != op.From {
			rejoin = append(rejoin, name)
		}
	}
	promote, publish := "promoting "+op.Target, "pointing "+in.Group.ListenerName()+" at "+op.Target
	var after []string
	if len(rejoin) > 0 {
		after = append(after, "rejoining "+strings.Join(rejoin, ", "))
	}
	out := []string{}
	switch op.Phase {
	case ag.PhaseDemoting, ag.PhaseFencing:
		out = append(out, promote, publish)
	case ag.PhasePromoting:
		out = append(out, publish)
	case ag.PhasePublishing:
	default:
		return out
	}
	return append(out, after...)
}

func orWord(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
