package decide

import (
	"fmt"
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// ballot is one election: who would win on this snapshot, and if nobody, why.
type ballot struct {
	winner string
	// lastPrimary: the answers are enough because the last primary itself answers.
	lastPrimary bool
	// answers that count, synchronous ones, and how many are needed.
	answers []string
	needed  int
	enough  bool
	// refusals per replica of the spec, in order.
	refusals []refused
	// reason and why nobody wins.
	reason string
	rule   ag.Rule
	why    string
}

type refused struct {
	replica string
	refusal
}

// question says who is asked in an election.
type question struct {
	// without are replicas that are not asked at all: a primary assumed lost.
	without []string
	// avoid is not chosen while there is another, keep is chosen among equals.
	avoid, keep string
	// planned: by a person's word, failoverMode Manual is no hindrance.
	planned bool
	// live: there is a healthy primary; positions in the log move, and are not compared.
	live bool
}

// elect is R12 and R13 on this snapshot.
func (v *view) elect(q question) ballot {
	var b ballot
	var answered []*ag.Replica
	for i := range v.snap.Replicas {
		r := &v.snap.Replicas[i]
		if r.Mode != ag.ModeSynchronous || contains(q.without, r.Name) {
			continue
		}
		if x := v.answers(r); !x.none() {
			b.add(r.Name, x)
			continue
		}
		answered = append(answered, r)
		b.answers = append(b.answers, r.Name)
	}
	w, wx := v.witnessAnswers()
	b.needed, b.enough = v.enough(len(answered), wx.none())
	highest := maxSequence(answered)
	if w != nil && wx.none() {
		highest = max(highest, w.Local.Sequence)
	}
	last := v.lastOnOwnVolume(q)
	candidates := b.candidates(v, q, answered, highest)
	if b.enough {
		b.winner = v.best(q, candidates, nil)
	}
	if b.winner == "" && last != nil {
		b.enough, b.lastPrimary = true, true
		candidates = b.complete(v, q, answered, last)
		b.winner = v.best(q, candidates, last)
	}
	if x := v.disputed(); !x.none() {
		b.winner, b.reason, b.rule, b.why = "", ag.ReasonTwoPrimaries, x.rule, x.why
		return b
	}
	b.explain(v, q, len(candidates), highest, w, wx)
	return b
}

// complete are those that hold all that the last primary itself holds, which answers.
func (b *ballot) complete(v *view, q question, answered []*ag.Replica, last *ag.Replica) []*ag.Replica {
	var out []*ag.Replica
	for _, r := range withReplica(answered, last) {
		x := v.mayWin(r, q.planned)
		switch {
		case !x.none():
			b.add(r.Name, x)
		case r.Name == last.Name || r.Local.Sequence == last.Local.Sequence && !behind(r, last):
			out = append(out, r)
		}
	}
	return out
}

// add enters a refusal, the first one of each replica.
func (b *ballot) add(name string, x refusal) {
	if _, ok := b.refusalOf(name); !ok {
		b.refusals = append(b.refusals, refused{name, x})
	}
}

// enough is R13: how many answers a promotion needs, and whether there are that many.
func (v *view) enough(sync int, witness bool) (needed int, ok bool) {
	needed = v.auth.Rule.AnswersNeeded()
	if v.knobs.without("R13") {
		needed = 1
	}
	if sync == 0 || len(v.auth.Rule.Set) == 0 {
		return needed, false
	}
	if sync >= needed {
		return needed, true
	}
	if v.witness() != nil {
		voters := len(v.auth.Rule.Set) + 1
		return voters/2 + 1, witness && sync+1 >= voters/2+1
	}
	return needed, false
}

// lastOnOwnVolume is the newest that was, or may have been, primary, if all of
// lastPrimary and maybePrimary answer with their own volumes. It is complete by
// definition: the last one was elected when every earlier one could no longer write. That
// holds for a record made anew for nobody, too, where lastPrimary is empty, if the newest
// was promoted under that record: all replicas had to answer before (R4).
func (v *view) lastOnOwnVolume(q question) *ag.Replica {
	if v.knobs.without("last") {
		return nil
	}
	var newest *ag.Replica
	for _, name := range v.mayHaveWritten() {
		r := v.snap.Find(name)
		if contains(q.without, name) || !v.answersOwnVolume(r).none() {
			return nil
		}
		newest = r
	}
	if newest != nil && v.auth.LastPrimary == "" && !v.promotedHere(newest.Name) {
		return nil
	}
	return newest
}

// promotedHere: the record in force says that FAILOVER was sent to this replica under it.
func (v *view) promotedHere(name string) bool {
	for _, g := range v.auth.Unfenced {
		if g.Promoted && g.Run.Replica == name {
			return true
		}
	}
	for _, g := range v.auth.GivenUp {
		if g.Run.Replica == name {
			return true
		}
	}
	op := v.auth.Operation
	return op != nil && (op.Phase == ag.PhasePromoting || op.Phase == ag.PhasePublishing) && v.auth.Holder.Replica == name
}

// mayHaveWritten are the last primary and those that may have been primary since, the newest last.
func (v *view) mayHaveWritten() []string {
	return append(with(nil, v.auth.LastPrimary), v.auth.MaybePrimary...)
}

// candidates are those of the pool that may win and hold the highest number.
func (b *ballot) candidates(v *view, q question, pool []*ag.Replica, highest int64) []*ag.Replica {
	var out []*ag.Replica
	for _, r := range pool {
		if x := v.mayWin(r, q.planned); !x.none() {
			b.add(r.Name, x)
			continue
		}
		if r.Local.Sequence < highest && !v.knobs.without("max") {
			b.add(r.Name, refuse("R12", "its sequence number %d is below %d: it lacks a change of the group", r.Local.Sequence, highest))
			continue
		}
		out = append(out, r)
	}
	return out
}

// best chooses among equals: none that is behind another in any database, then the
// preferred one, then the lowest ordinal.
func (v *view) best(q question, candidates []*ag.Replica, last *ag.Replica) string {
	pool := candidates
	if !q.live {
		var ahead []*ag.Replica
		for _, r := range candidates {
			if last != nil && r.Name == last.Name || !behindAny(r, candidates) {
				ahead = append(ahead, r)
			}
		}
		// Two that are each behind the other in some database: what is missing was never
		// acknowledged where k overlaps every two answers.
		if len(ahead) > 0 || !v.overlapping() {
			pool = ahead
		}
	}
	choice := ""
	for _, r := range pool {
		switch {
		case r.Name == q.keep:
			return r.Name
		case r.Name == q.avoid:
		case choice == "", r.Name == v.pol.Preferred:
			choice = r.Name
		}
	}
	if choice == "" && len(pool) > 0 {
		return pool[0].Name
	}
	return choice
}

// overlapping: every acknowledged commit is on every replica of the newest set (k at
// most half, or all others).
func (v *view) overlapping() bool {
	ns, k := len(v.auth.Rule.Set), int(v.auth.Rule.K)
	return k <= ns/2 || k >= ns-1
}

func behindAny(r *ag.Replica, others []*ag.Replica) bool {
	for _, o := range others {
		if o.Name != r.Name && behind(r, o) {
			return true
		}
	}
	return false
}

// behind: in some database of the same recovery fork r has hardened less than o, or lacks it.
func behind(r, o *ag.Replica) bool {
	for _, d := range o.Local.Databases {
		if d.HardenedLSN == "" {
			continue
		}
		mine := database(r.Local.Databases, d.Name)
		if mine == nil {
			return true
		}
		if mine.RecoveryFork != "" && d.RecoveryFork != "" && mine.RecoveryFork != d.RecoveryFork {
			continue
		}
		if ag.CompareLSN(mine.HardenedLSN, d.HardenedLSN) < 0 {
			return true
		}
	}
	return false
}

func database(list []ag.Database, name string) *ag.Database {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

func maxSequence(list []*ag.Replica) int64 {
	var n int64
	for _, r := range list {
		n = max(n, r.Local.Sequence)
	}
	return n
}

func withReplica(list []*ag.Replica, r *ag.Replica) []*ag.Replica {
	for _, x := range list {
		if x.Name == r.Name {
			return list
		}
	}
	out := append([]*ag.Replica(nil), list...)
	for i, x := range out {
		if x.Ordinal > r.Ordinal {
			return append(out[:i], append([]*ag.Replica{r}, out[i:]...)...)
		}
	}
	return append(out, r)
}

// explain says why nobody wins.
func (b *ballot) explain(v *view, q question, candidates int, highest int64, w *ag.Replica, wx refusal) {
	switch {
	case b.winner != "":
	case len(v.auth.Rule.Set) == 0:
		b.reason, b.rule, b.why = ag.ReasonNotEnoughAnswers, "R13", "no commit rule is recorded: it is not known who may have answered commits"
	case !b.enough:
		b.reason, b.rule = ag.ReasonNotEnoughAnswers, "R13"
		b.why = fmt.Sprintf("%d of %d needed answers (%d synchronous replicas, k=%d recorded)%s%s",
			len(b.answers), b.needed, len(v.auth.Rule.Set), v.auth.Rule.K, b.missing(w, wx), v.wayOut(q, highest))
	case candidates > 0:
		b.reason, b.rule, b.why = ag.ReasonNoSafeCandidate, "R12", "each candidate is behind another one in some database"
	case b.onlyRefused():
		b.reason, b.rule = ag.ReasonAllCandidatesRefused, "R12"
		b.why = fmt.Sprintf("every candidate with the highest sequence number %d answered FAILOVER with Msg %d%s",
			highest, ag.MsgNotSynchronized, v.wayOut(q, highest))
	default:
		b.reason, b.rule = ag.ReasonNoSafeCandidate, "R12"
		b.why = fmt.Sprintf("no replica with the highest sequence number %d may be promoted%s", highest, b.missing(nil, refusal{}))
	}
}

func (b *ballot) onlyRefused() bool {
	n := 0
	for _, x := range b.refusals {
		if strings.Contains(x.why, "answered FAILOVER") {
			n++
		}
	}
	return n > 0
}

// missing lists who does not answer, or may not win, and why.
func (b *ballot) missing(w *ag.Replica, wx refusal) string {
	var parts []string
	for _, x := range b.refusals {
		parts = append(parts, x.replica+": "+x.why)
	}
	if w != nil && !wx.none() {
		parts = append(parts, w.Name+": "+wx.why)
	}
	if len(parts) == 0 {
		return ""
	}
	return "; " + strings.Join(parts, "; ")
}

// refusalOf is why this replica did not win, if it was refused by name.
func (b *ballot) refusalOf(name string) (refusal, bool) {
	for _, x := range b.refusals {
		if x.replica == name {
			return x.refusal, true
		}
	}
	return refusal{}, false
}
