package v1alpha1

import "testing"

func TestTimingProfiles_SatisfyTheirOwnRules(t *testing.T) {
	t.Parallel()
	for _, p := range []TimingProfile{"", TimingBalanced, TimingFast, TimingTolerant} {
		if err := (TimingSpec{Profile: p}).Effective().Validate(); err != nil {
			t.Errorf("profile %q: %v", p, err)
		}
	}
}
