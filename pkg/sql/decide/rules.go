package decide

import "github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"

// rule is one link of the chain. It returns true when it claims the pass: rules after
// it may then not act, maintenance excepted.
type rule struct {
	name string
	run  func(v *view, d *draft) bool
}

// chain is the order in which rules are asked (the first that claims wins).
func chain() []rule {
	return []rule{
		{"gate", ruleGate},
		{"authority", ruleAuthority},
		{"two primaries", ruleTwoPrimaries},
		{"operation", ruleOperation},
		{"request", ruleRequest},
		{"handover", ruleHandover},
		{"primary", rulePrimary},
		{"given up", ruleGivenUp},
		{"renew", ruleRenew},
		{"failback", ruleFailback},
		{"recover", ruleRecover},
	}
}

// upkeep are the rules that are appended always; none of them is disruptive.
func upkeep() []rule {
	return []rule{
		{"record", ruleRecord},
		{"labels", ruleLabels},
		{"endpoints", ruleEndpoints},
		{"lag", ruleLag},
		{"readiness", ruleReadiness},
		{"commits wait", ruleCommitsWait},
		{"memory", ruleMemory},
	}
}

func decide(in Input, k knobs) (out ag.Decision) {
	v := newView(in, k)
	d := newDraft(v)
	for _, r := range chain() {
		if r.run(v, d) {
			break
		}
	}
	if d.stopped {
		return d.decision()
	}
	for _, r := range upkeep() {
		r.run(v, d)
	}
	return d.decision()
}
