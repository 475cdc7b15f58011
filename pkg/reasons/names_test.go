package reasons

import "testing"

func TestNames_AreAPartOfASentence(t *testing.T) {
	t.Parallel()
	for want, names := range map[string][]string{"": nil, "a": {"a"}, "a and b": {"a", "b"}, "a, b and c": {"a", "b", "c"}} {
		if got := Names(names); got != want {
			t.Errorf("%v: %q, want %q", names, got, want)
		}
	}
}
