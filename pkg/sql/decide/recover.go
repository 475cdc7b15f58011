package decide

import (
	"fmt"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// ruleRecover looks at every replica but the primary: a healthy one loses its entry, a
// sick one gets one, and one of them is helped one step.
func ruleRecover(v *view, d *draft) bool {
	v.diagnoseAll(d)
	p := v.primary()
	if p == nil || v.auth.Operation != nil || !online(p) || len(v.auth.Unfenced) > 0 || d.disrupted {
		return false
	}
	if s := v.seeding(); s != "" && !v.knobs.without("seeding") {
		d.find(s, ag.SymptomSeeding, "a database is being seeded: no role or endpoint is touched")
		d.wait(10*second, "the seeding of %s", s)
		return false
	}
	for i := range d.d.Memory.Recoveries {
		if v.help(d, p, &d.d.Memory.Recoveries[i]) {
			return true
		}
	}
	return false
}

// diagnoseAll keeps the entries of the memory: one for every sick replica, by ordinal.
func (v *view) diagnoseAll(d *draft) {
	var next []ag.Recovery
	for i := range v.snap.Replicas {
		r := &v.snap.Replicas[i]
		old := recoveryOf(d.d.Memory.Recoveries, r.Name)
		s, known := v.symptom(r)
		switch {
		case !known && old != nil:
			next = append(next, *old)
		case s == ag.SymptomNone && old != nil:
			d.event(ag.EventNormal, ag.EventRecovered, "%s is back", r.Name)
		case s == ag.SymptomNone || !known:
		case old != nil:
			if s == ag.SymptomAhead && old.Symptom != s {
				old.Attempts, old.Rung = 0, ag.RungWait // another illness, another ladder
			}
			if at := v.in.Memory.LastRoleChangeAt; old.Attempts > 0 && old.LastAttemptAt.Before(at) {
				old.Attempts, old.Rung, old.Since = 0, ag.RungWait, v.now // another primary, too
			}
			old.Symptom = s
			next = append(next, *old)
			d.find(r.Name, s, "%s", symptomText(s))
		default:
			next = append(next, ag.Recovery{Replica: r.Name, Symptom: s, Since: v.now, Rung: ag.RungWait})
			d.find(r.Name, s, "%s", symptomText(s))
		}
	}
	d.d.Memory.Recoveries = next
}

func recoveryOf(list []ag.Recovery, name string) *ag.Recovery {
	for i := range list {
		if list[i].Replica == name {
			c := list[i]
			return &c
		}
	}
	return nil
}

// symptom of one replica; not known when it does not answer, or there is no primary to
// compare with. A replica that a person has fenced is left alone.
func (v *view) symptom(r *ag.Replica) (ag.Symptom, bool) {
	p := v.primary()
	switch {
	case p == nil, v.auth.Operation != nil:
		return ag.SymptomNone, false
	case r.Name == p.Name || r.Fenced || r.Pod.Terminating:
		return ag.SymptomNone, true
	case !reached(r):
		return ag.SymptomNone, false
	case r.Local.Role == ag.RoleNone:
		return ag.SymptomNone, true // to be joined: the bootstrap's
	case r.Local.Role == ag.RolePrimary:
		return ag.SymptomNone, false // ruleTwoPrimaries
	case v.ahead(r, p):
		return ag.SymptomAhead, true
	case r.Local.Role == ag.RoleResolving:
		return ag.SymptomResolving, true
	}
	for _, db := range r.Local.Databases {
		if db.Suspended {
			return ag.SymptomSuspended, true
		}
	}
	if r.Remote == nil {
		return ag.SymptomNone, false
	}
	if !r.Remote.Connected {
		return ag.SymptomNotSynchronizing, true
	}
	for _, db := range r.Remote.Databases {
		if db.Sync == ag.SyncNotSynchronizing {
			return ag.SymptomNotSynchronizing, true
		}
	}
	return ag.SymptomNone, true
}

func symptomText(s ag.Symptom) string {
	switch s {
	case ag.SymptomResolving:
		return "its role is RESOLVING"
	case ag.SymptomNotSynchronizing:
		return "it is not synchronizing"
	case ag.SymptomSuspended:
		return "a database of it is suspended"
	case ag.SymptomAhead:
		return "its configuration is of a later promotion than the primary's, and it does not follow"
	case ag.SymptomNone, ag.SymptomStalePrimary, ag.SymptomNotJoined, ag.SymptomUnreachable, ag.SymptomSeeding:
	}
	return string(s)
}

// seeding names a replica to which a database is being seeded: SET ROLE there, or an
// endpoint restart on the way, cancels it (FG 4.7).
func (v *view) seeding() string {
	for i := range v.snap.Replicas {
		if r := &v.snap.Replicas[i]; r.Remote != nil && r.Remote.Seeding {
			return r.Name
		}
	}
	return ""
}

// help takes the next step of one replica if it is due.
func (v *view) help(d *draft, p *ag.Replica, rec *ag.Recovery) bool {
	r := v.snap.Find(rec.Replica)
	if s, known := v.symptom(r); !known || s == ag.SymptomNone || v.contested(r) {
		return false
	}
	if rec.Symptom == ag.SymptomSuspended {
		v.resume(d, p, r, rec)
		return false
	}
	if left := v.mayStart(d, rec); left > 0 {
		d.wait(left, "the turn of %s", r.Name)
		return false
	}
	steps, n := v.way(r, p, rec)
	if v.knobs.without("caps") {
		return v.climb(d, p, r, rec, steps[int(n)%len(steps)]) // at once, and for ever
	}
	if done := int(rec.Attempts); done > 0 && done <= len(steps) {
		if left := steps[done-1].pause - elapsed(rec.LastAttemptAt, v.now); left > 0 {
			d.wait(left, "the effect of %s on %s", rec.Rung, r.Name)
			return false
		}
	}
	if int(n) >= len(steps) {
		return v.usedUp(d, r, rec, "re-seed it by hand, or fence it")
	}
	if steps[n].rung == ag.RungRejoin || steps[n].rung == ag.RungReseed {
		x := v.mayRejoin(r, p)
		if steps[n].rung == ag.RungReseed {
			x = v.mayReseed(r, p)
		}
		if !x.none() {
			return v.usedUp(d, r, rec, x.why)
		}
		if other := v.rejoining(d, r.Name); other != "" {
			d.wait(settleTime, "%s to be back before %s is rejoined", other, r.Name)
			return false
		}
	}
	rec.Attempts = n
	return v.climb(d, p, r, rec, steps[n])
}

// usedUp: the ladder ends here, and only a person can go on.
func (v *view) usedUp(d *draft, r *ag.Replica, rec *ag.Recovery, what string) bool {
	rec.Rung = ag.RungBlocked
	after := ""
	if rec.Attempts > 0 {
		after = fmt.Sprintf(" after %d steps of the ladder", rec.Attempts)
	}
	d.block(ag.ReasonAttemptsUsedUp, "", r.Name, "%s%s%s: %s", symptomText(rec.Symptom), after, lastMsg(rec), what)
	return false
}

func lastMsg(rec *ag.Recovery) string {
	if rec.LastMsg == 0 {
		return ""
	}
	return fmt.Sprintf(" (last Msg %d)", rec.LastMsg)
}

// mayStart is how long the first step is still to wait: a former primary gives the new
// one time to open its endpoint, a replica that is merely disconnected time to connect.
func (v *view) mayStart(d *draft, rec *ag.Recovery) time.Duration {
	if rec.Attempts > 0 {
		return 0
	}
	wait := formerPrimaryWait
	if rec.Symptom == ag.SymptomResolving && !contains(v.auth.Stale, rec.Replica) {
		wait = 0
	}
	left := wait - elapsed(rec.Since, v.now)
	if wait > 0 && !d.d.Memory.LastRoleChangeAt.IsZero() {
		left = max(left, wait-elapsed(d.d.Memory.LastRoleChangeAt, v.now))
	}
	return left
}

// climb counts the step, and takes it.
func (v *view) climb(d *draft, p, r *ag.Replica, rec *ag.Recovery, s ladderStep) bool {
	guard := ag.Guard{PodUID: r.Pod.UID, Role: r.Local.Role}
	var a ag.Action
	switch s.rung {
	case ag.RungReseat:
		a = ag.Reseat{Replica: r.Name, Guard: guard}
	case ag.RungOffline:
		a = ag.TakeOffline{Replica: r.Name, Why: symptomText(rec.Symptom), Guard: guard}
	case ag.RungEndpointOne:
		a = ag.RestartEndpoints{Replicas: []string{r.Name}, Guard: guard}
	case ag.RungBoth:
		a = ag.RestartEndpoints{Replicas: []string{r.Name, p.Name}, Guard: guard}
	case ag.RungRejoin:
		a = ag.Rejoin{Replica: r.Name, Guard: guard}
	case ag.RungReseed:
		a = ag.Reseed{Replica: r.Name, Databases: databaseNames(p), Guard: guard}
	case ag.RungWait, ag.RungResume, ag.RungBlocked:
		return false
	}
	if !d.do(a) {
		return false
	}
	rec.Attempts++
	rec.Rung, rec.LastAttemptAt = s.rung, v.now
	d.wait(s.pause, "the effect of %s on %s", s.rung, r.Name)
	if rec.Attempts > 1 {
		d.event(ag.EventNormal, ag.EventRecoveryStep, "%s: %s, step %d: %s", r.Name, symptomText(rec.Symptom), rec.Attempts, s.rung)
	}
	return true
}
