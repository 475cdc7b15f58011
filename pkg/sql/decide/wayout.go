package decide

import (
	"fmt"
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// wayOut names the safest way out that a person has: the return of those that were, or
// may have been, primary. Where they are back and it is not enough, as SQL Server itself
// refuses them or they are asynchronous, only FORCE is left, and which replica to force.
func (v *view) wayOut(q question, highest int64) string {
	if q.live {
		return ""
	}
	names := v.mayHaveWritten()
	var away []string
	forced := false // an asynchronous one among them: what it holds, no election can tell
	for _, name := range names {
		switch r := v.snap.Find(name); {
		case r != nil && r.Mode == ag.ModeAsynchronous && !reached(r):
			return fmt.Sprintf("; %s was primary last and is %s: when it is back it can only be forced%s", name, modeText(r.Mode), v.force(name))
		case r == nil || !reached(r):
			away = append(away, name)
		default:
			forced = forced || r.Mode == ag.ModeAsynchronous
		}
	}
	if len(away) > 0 && !forced {
		return "; the return of " + strings.Join(away, " and ") + " ends this without loss"
	}
	only := "; only FORCE ends this"
	if others := v.silentMembers(); len(others) > 0 {
		only = "; where the return of " + strings.Join(others, " or ") + " does not end this, FORCE does"
	}
	for i := len(names) - 1; i >= 0; i-- {
		if r := v.snap.Find(names[i]); v.forcible(r).none() && (r.Mode == ag.ModeAsynchronous || v.answersOwnVolume(r).none()) {
			return only + v.force(names[i])
		}
	}
	for i := range v.snap.Replicas {
		// Nobody knows who was primary, or what that held is gone: the highest number is what is left.
		if r := &v.snap.Replicas[i]; len(names) == 0 && reached(r) && r.Local.Sequence >= highest && v.answers(r).none() && v.forcible(r).none() {
			return only + v.force(r.Name)
		}
	}
	return ""
}

// silentMembers are those of the recorded set that do not answer.
func (v *view) silentMembers() []string {
	var names []string
	for _, name := range v.auth.Rule.Names() {
		if !reached(v.snap.Find(name)) {
			names = append(names, name)
		}
	}
	return names
}

// force is the command, and what it costs.
func (v *view) force(name string) string {
	cost := "what it lacks is lost"
	if name == v.auth.LastPrimary && len(v.auth.MaybePrimary) == 0 {
		cost = "it is the last primary itself, and lacks nothing"
	}
	return fmt.Sprintf(": kubectl mssql failover NAME --to %s --allow-data-loss=unlimited (%s)", name, cost)
}
