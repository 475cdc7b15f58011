package decide

// knobs switch single rules off. They exist for the proofs that each rule is needed: tests
// of this package set them, and the simulation through Input.Omit.
type knobs struct {
	// off names rules that are left out: "R8", "R9", …
	off []string
}

// without tells whether the rule was switched off.
func (k knobs) without(rule string) bool {
	for _, r := range k.off {
		if r == rule {
			return true
		}
	}
	return false
}
