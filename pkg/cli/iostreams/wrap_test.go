package iostreams

import (
	"strings"
	"testing"
)

func FuzzWrap_LosesNoWord(f *testing.F) {
	f.Add("  a b c", 10)
	f.Add("\x1b[31mred\x1b[0m and a longer line than that", 12)
	f.Fuzz(func(t *testing.T, text string, width int) {
		if width > 500 {
			width = 500
		}
		got := strings.Join(strings.Fields(Wrap(text, width)), "")
		if want := strings.Join(strings.Fields(text), ""); got != want {
			t.Errorf("words changed: %q -> %q", want, got)
		}
	})
}
