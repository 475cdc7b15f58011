package decide

import (
	"fmt"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// longestPause between two readings of one row, in renew intervals, and at least
// shortestPause: a pass over a group with a silent replica takes several seconds.
const (
	longestPause  = 5
	shortestPause = 10 * time.Second
)

// look carries the watch forward over this pass' reading of the Lease.
func (v *view) look() ag.Watch { return Look(v.in.Watch, v.auth, v.in.Clock, v.tm.Renew) }

// Look carries the watch forward over one reading of the Lease that began and ended at
// these times: what is seen for the first time counts from its end, what was seen before
// keeps its start. Whoever has the Lease's events calls it for each of them, with renew
// 0, so that an event is not counted as a reading of its own.
func Look(old ag.Watch, a ag.Authority, c ag.Clock, renew time.Duration) ag.Watch {
	end := c.Ended
	w := ag.Watch{Renewals: a.Renewals, Epoch: a.Epoch, Seen: end, Lags: old.Lags, NotWriting: old.NotWriting, Died: old.Died, CommitsWait: old.CommitsWait, Reads: ag.Reads{From: end, Last: end, Counted: 1, CountedAt: end}}
	if old.Epoch == w.Epoch && old.Renewals == w.Renewals && old.Seen <= end {
		w.Seen = old.Seen
		w.Reads = again(old.Reads, w.Reads, c, renew)
	}
	for _, g := range a.Unfenced {
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
	if op := a.Operation; op != nil {
		phase := fmt.Sprintf("%s/%s/%d", op.ID, op.Phase, a.Epoch)
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

// again is one more reading of a row, or the first of a new one after too long a pause.
func again(row, first ag.Reads, c ag.Clock, renew time.Duration) ag.Reads {
	switch {
	case row.Counted == 0 || row.Last > c.Ended || c.Began-row.Last > max(longestPause*renew, shortestPause):
		return first
	case renew > 0 && c.Began-row.CountedAt >= strikeRenewals*renew:
		row.Counted, row.CountedAt = min(row.Counted+1, 1000), c.Ended
	}
	row.Last = c.Ended
	return row
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
