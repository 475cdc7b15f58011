package decide

import (
	"fmt"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// Reasons of a suspended copy (FG 3.6): a person, or a FORCE on another replica (FG 4.9).
// All others are errors of the copy itself, such as SUSPEND_FROM_REDO.
const (
	suspendedByUser    = "SUSPEND_FROM_USER"
	suspendedByPartner = "SUSPEND_FROM_PARTNER"
)

// resumeRounds bounds the tries to resume a copy; resumePause, doubling, is their distance.
const (
	resumeRounds = 5
	resumePause  = 15 * second
)

// resume lets the copies of a replica go on that are suspended, where RESUME discards
// nothing that anybody may need. A copy that a person has suspended stays so.
func (v *view) resume(d *draft, p, r *ag.Replica, rec *ag.Recovery) {
	due := rec.Attempts == 0 || elapsed(rec.LastAttemptAt, v.now) >= resumePause<<(min(rec.Attempts, resumeRounds)-1)
	sent, why := false, ""
	for _, db := range r.Local.Databases {
		if !db.Suspended {
			continue
		}
		x := v.notResumed(p, r, db)
		if x == "" && rec.Attempts >= resumeRounds {
			if db.SuspendReason != suspendedByPartner && due && rec.Rung != ag.RungReseed && v.mayReseed(r, p).none() && v.rejoining(d, r.Name) == "" {
				v.climb(d, p, r, rec, ladderStep{ag.RungReseed, settleTime})
				return
			}
			x = fmt.Sprintf("%d RESUME have not helped; the server's log tells why", rec.Attempts)
		}
		if x != "" {
			why = fmt.Sprintf("database %s is suspended (%s): %s", db.Name, orText(db.SuspendReason, "no reason given"), x)
			continue
		}
		if due {
			d.do(ag.ResumeDatabase{Replica: r.Name, Database: db.Name})
			sent = true
		}
	}
	if sent {
		rec.Attempts++
		rec.Rung, rec.LastAttemptAt = ag.RungResume, v.now
		d.wait(resumePause, "the effect of RESUME on %s", r.Name)
	}
	if why != "" {
		d.block(ag.ReasonCopySuspended, "", r.Name, "%s", why)
	}
}

// notResumed is why this copy is not resumed, or nothing. RESUME discards what the primary
// does not have: after FORCE that may be what people miss, unless the newest role change
// was one that has lost nothing. A copy with an error of its own was following.
func (v *view) notResumed(p, r *ag.Replica, db ag.Database) string {
	switch db.SuspendReason {
	case suspendedByUser:
		return "a person has suspended it: resume it when that is no longer wanted"
	case suspendedByPartner, "":
		if !v.lossless(p, r) && !v.knobs.without("I4") {
			return "resume it when nothing on it is needed any more, RESUME discards what the primary does not have"
		}
	}
	return ""
}

// lossless: the newest role change used FORCE and has lost nothing, so that this copy
// holds no acknowledged commit that the primary lacks. Under clusterType NONE FORCE is the
// only statement, and R20 has compared both ends before it was sent; a primary that was
// forced onto itself is the last primary.
func (v *view) lossless(p, r *ag.Replica) bool {
	h := v.in.Memory.History
	if len(h) == 0 || h[0].Epoch != v.auth.Epoch {
		return false
	}
	primary := h[0].To
	if h[0].Result == resultAborted {
		primary = h[0].From
	}
	if primary != p.Name {
		return false
	}
	planned := h[0].Kind == changeKind(ag.OperationSwitchover)
	return planned && !v.pol.External && !contains(v.auth.Stale, r.Name) || h[0].From == h[0].To
}
