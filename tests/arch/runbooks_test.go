package arch

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestRunbooks_EveryReasonHasASection(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../docs/runbooks/README.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]bool{}
	for _, l := range strings.Split(string(b), "\n") {
		if names, ok := strings.CutPrefix(l, "### "); ok {
			for _, n := range strings.Split(names, ",") {
				sections[strings.TrimSpace(n)] = true
			}
		}
	}
	constant := regexp.MustCompile(`(?m)^\s*Reason\w+\s*=\s*"(\w+)"`)
	seen := 0
	for _, file := range []string{"../../api/v1alpha1/conditions.go", "../../pkg/sql/ag/reason.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range constant.FindAllStringSubmatch(string(text), -1) {
			seen++
			if !sections[m[1]] {
				t.Errorf("docs/runbooks/README.md has no section for the reason %s", m[1])
			}
		}
	}
	if seen < 30 {
		t.Fatalf("only %d reasons were found", seen)
	}
}
