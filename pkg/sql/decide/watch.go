package decide

import (
	"fmt"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// look carries the watch forward: what is seen for the first time counts from the end
// of this pass, what was seen before keeps its start.
func (v *view) look() ag.Watch {
	old, end := v.in.Watch, v.in.Clock.Ended
	w := ag.Watch{Renewals: v.auth.Renewals, Epoch: v.auth.Epoch, Seen: end}
	if old.Epoch == w.Epoch && old.Renewals == w.Renewals && old.Seen <= end {
		w.Seen = old.Seen
	}
	for _, g := range v.auth.Unfenced {
		s := ag.Sighting{Epoch: g.Epoch, Seen: end, From: end}
		known := false
		for _, o := range old.Unfenced {
			if o.Epoch == g.Epoch && o.Seen <= end {
				s, known = o, true
			}
		}
		// The holder's last renewal is the text on which it was taken away: when this
		// process has seen that very text before, the holder had no later proof.
		if !known && g.Renewals != "" && old.Epoch == g.Epoch && old.Renewals == g.Renewals && old.Seen <= end {
			s.From = old.Seen
		}
		w.Unfenced = append(w.Unfenced, s)
	}
	if op := v.auth.Operation; op != nil {
		phase := fmt.Sprintf("%s/%s/%d", op.ID, op.Phase, v.auth.Epoch)
		w.Operation, w.OperationSeen, w.OperationPhase = phase, end, end
		if operationID(old.Operation) == op.ID && old.OperationSeen <= end {
			w.OperationSeen = old.OperationSeen
			if old.Operation == phase {
				w.OperationPhase = old.OperationPhase
			}
		}
	}
	return w
}

func operationID(phase string) string {
	for i := range phase {
		if phase[i] == '/' {
			return phase[:i]
		}
	}
	return ""
}

// since is how long something that was first seen at t has lasted, never overstated.
func (v *view) since(t time.Duration) time.Duration {
	return max(v.in.Clock.Began-t, 0)
}
