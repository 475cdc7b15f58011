package decide

import (
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// ruleReadiness says for every replica whether it would be promoted now, and if not
// which rule refuses it: with the code that would decide it.
func ruleReadiness(v *view, d *draft) bool {
	p := v.primary()
	q := question{}
	if p != nil {
		q = question{without: []string{p.Name}, live: true}
	}
	b := v.elect(q)
	d.d.Elected = b.winner
	for i := range v.snap.Replicas {
		d.d.Readiness = append(d.d.Readiness, v.readiness(&v.snap.Replicas[i], p, b))
	}
	return false
}

func (v *view) readiness(r, p *ag.Replica, b ballot) ag.Readiness {
	out := ag.Readiness{Replica: r.Name}
	if x := v.forcible(r); !x.none() {
		out.ForceRule, out.ForceMessage = x.rule, x.why
	}
	if p != nil && r.Name == p.Name {
		out.Message = "it is the primary"
		return out
	}
	// A fenced replica does not answer; that it is fenced is what people want to hear.
	var x refusal
	if r.Fenced {
		x = refuse("R12", "it is fenced")
	}
	if x.none() {
		x = v.answers(r)
	}
	if x.none() {
		x = v.mayWin(r, false)
	}
	if x.none() {
		x, _ = b.refusalOf(r.Name)
	}
	if x.none() && p != nil {
		x = v.notSynchronized(r)
	}
	if x.none() && !b.enough {
		x = refusal{rule: b.rule, why: b.why}
	}
	if x.none() && p == nil && b.winner != r.Name {
		x = refuse("R12", "%s", orText(wins(b.winner), b.why))
	}
	if x.none() && p != nil && v.auth.NoWriteLease {
		x = refuse("R9", "the group has no working write lease: only proof of the primary's end would let it be promoted")
	}
	if x.none() && !(v.pol.External && v.pol.AutoFailover) {
		x = refuse("", "automatic failover is off")
	}
	out.Ready, out.Rule, out.Message = x.none(), x.rule, x.why
	return out
}

func wins(name string) string {
	if name == "" {
		return ""
	}
	return name + " would win"
}

// readinessText is the same in one line, without the primary.
func (v *view) readinessText(primary string) string {
	b := v.elect(question{without: []string{primary}, live: true})
	p := v.primary()
	var parts []string
	for i := range v.snap.Replicas {
		r := &v.snap.Replicas[i]
		if r.Name == primary {
			continue
		}
		if x := v.readiness(r, p, b); !x.Ready {
			parts = append(parts, r.Name+": "+x.Message)
		}
	}
	return strings.Join(parts, "; ")
}
