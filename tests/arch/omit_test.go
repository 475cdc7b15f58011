package arch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Rules of the safety design are left out in proofs alone.
func TestProduct_LeavesNoRuleOut(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, dir := range []string{"../../pkg", "../../cmd", "../../api"} {
		err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			b, err := os.ReadFile(path) //nolint:gosec // a source file of the project
			if err != nil {
				return err
			}
			for _, line := range strings.Split(string(b), "\n") {
				if !strings.Contains(line, "OmitRules(") {
					continue
				}
				if strings.HasPrefix(line, "func OmitRules(") && strings.HasSuffix(path, "/ag/omit.go") {
					seen++
					continue
				}
				t.Errorf("%s leaves a rule out: %s", path, strings.TrimSpace(line))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen != 1 {
		t.Errorf("the only definition of OmitRules was found %d times", seen)
	}
}
