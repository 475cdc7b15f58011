package decide

import (
	"fmt"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// ruleLag keeps, in this process only, how far every replica was behind by the primary's
// last words. A forced failover of the policy is bounded by it (maxReplicationLag).
func ruleLag(v *view, d *draft) bool {
	w := &d.d.Watch
	if v.standing() != holderWriting {
		if w.NotWriting == 0 {
			w.NotWriting, w.Died = v.in.Clock.Ended, v.dead(v.auth.Holder) != ""
		}
		return false
	}
	w.NotWriting, w.Died = 0, false
	if v.pol.MaxLag <= 0 {
		w.Lags = nil
		return false
	}
	var next []ag.LagSighting
	for i := range v.snap.Replicas {
		r := &v.snap.Replicas[i]
		if r.Remote == nil {
			continue
		}
		if seconds, known := ag.WorstLag(r.Remote.Databases); known {
			next = append(next, ag.LagSighting{Replica: r.Name, Seconds: seconds, Seen: v.in.Clock.Began})
		}
	}
	w.Lags = next
	return false
}

// tooFarBehind is why this replica may lack more than the policy lets be lost, or nothing.
// It lacks at most what it lacked when the primary last spoke of it, and what the primary
// has acknowledged since: until it was seen to be dead, or for the full wait when it was
// merely not seen.
func (v *view) tooFarBehind(r *ag.Replica) string {
	if v.pol.MaxLag <= 0 {
		return ""
	}
	for _, s := range v.watch.Lags {
		if s.Replica != r.Name {
			continue
		}
		until, died := v.watch.NotWriting, v.watch.Died
		if until == 0 {
			until, died = v.in.Clock.Ended, v.dead(v.auth.Holder) != ""
		}
		most := time.Duration(s.Seconds)*second + max(until-s.Seen, 0)
		if !died {
			most += v.tm.D()
		}
		if most > v.pol.MaxLag {
			return fmt.Sprintf("it may lack up to %s, and at most %s may be lost (maxReplicationLagSeconds)", (most + second - 1).Truncate(second), v.pol.MaxLag)
		}
		return ""
	}
	return fmt.Sprintf("how far it was behind is not known, and at most %s may be lost (maxReplicationLagSeconds)", v.pol.MaxLag)
}
