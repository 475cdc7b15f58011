package ag

// Omit names rules of the safety design that are left out, so that a proof can show what
// each of them prevents. Its zero value leaves nothing out. tests/arch sees to it that
// only tests call [OmitRules].
type Omit struct{ rules []string }

// OmitRules leaves out the rules of these names ("R9", "R12 stale", …).
func OmitRules(rules ...string) Omit { return Omit{rules: rules} }

// Has tells whether the rule is left out.
func (o Omit) Has(rule string) bool {
	for _, r := range o.rules {
		if r == rule {
			return true
		}
	}
	return false
}

// Rules lists what is left out.
func (o Omit) Rules() []string { return append([]string(nil), o.rules...) }
