package sqlcmd

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplit_CutsAtGoLinesOnly(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		script string
		want   []Batch
	}{
		"one batch without GO":          {"SELECT 1", []Batch{{"SELECT 1", 1}}},
		"two batches":                   {"SELECT 1\nGO\nSELECT 2\ngo\n", []Batch{{"SELECT 1", 1}, {"SELECT 2", 1}}},
		"a count":                       {"INSERT t DEFAULT VALUES\nGO 3\n", []Batch{{"INSERT t DEFAULT VALUES", 3}}},
		"GO inside a string":            {"SELECT 'a\nGO\nb'", []Batch{{"SELECT 'a\nGO\nb'", 1}}},
		"GO inside a nested comment":    {"/* a /* b\nGO\n*/ c\nGO\n*/SELECT 1", []Batch{{"/* a /* b\nGO\n*/ c\nGO\n*/SELECT 1", 1}}},
		"a quote in a line comment":     {"SELECT 1 -- it's\nGO\nSELECT 2", []Batch{{"SELECT 1 -- it's", 1}, {"SELECT 2", 1}}},
		"a doubled quote":               {"SELECT 'it''s'\nGO\n", []Batch{{"SELECT 'it''s'", 1}}},
		"GO as the start of a word":     {"GOTO x", []Batch{{"GOTO x", 1}}},
		"nothing":                       {"\nGO\n\nGO\n", nil},
		"a bracketed name with a quote": {"SELECT [it's]\nGO\nSELECT 2", []Batch{{"SELECT [it's]", 1}, {"SELECT 2", 1}}},
		"windows line ends":             {"SELECT 1\r\nGO\r\n", []Batch{{"SELECT 1", 1}}},
	} {
		if diff := cmp.Diff(tc.want, Split(tc.script)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func FuzzSplit_NeverLosesText(f *testing.F) {
	f.Add("SELECT 1\nGO\nSELECT '")
	f.Add("/*")
	f.Fuzz(func(t *testing.T, script string) {
		total := 0
		for _, b := range Split(script) {
			if b.Count < 1 || strings.TrimSpace(b.Text) == "" {
				t.Errorf("batch %q × %d", b.Text, b.Count)
			}
			total += len(b.Text)
		}
		if total > len(script) {
			t.Errorf("%d bytes out of %d", total, len(script))
		}
	})
}
