package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestRequests_EveryRowNamesATestThatExists reads docs/contributing/plugin-requests.md.
func TestRequests_EveryRowNamesATestThatExists(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../docs/contributing/plugin-requests.md")
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	rows := 0
	for _, l := range strings.Split(string(b), "\n") {
		cells := strings.Split(strings.Trim(l, "| "), " | ")
		if !strings.HasPrefix(l, "| ") || cells[0] == "No." || cells[0] == "---" {
			continue
		}
		rows++
		if len(cells) != 3 || cells[0] != strconv.Itoa(rows) || !strings.Contains(cells[1], "(https://github.com/") {
			t.Errorf("row %d is not: number, request with its source, tests: %s", rows, l)
			continue
		}
		if why, not := strings.CutPrefix(cells[2], "not yet: "); not {
			if len(why) < 20 {
				t.Errorf("request %d: not yet, but why?", rows)
			}
			continue
		}
		names := quoted.FindAllStringSubmatch(cells[2], -1)
		if len(names) == 0 {
			t.Errorf("request %d names no test", rows)
		}
		for _, n := range names {
			if missing := missingTest(t, n[1]); missing != "" {
				t.Errorf("request %d: %s", rows, missing)
			}
		}
	}
	if rows != 41 {
		t.Errorf("%d requests, want 41", rows)
	}
}

// missingTest says what is wrong with a reference: "DIRECTORY TestName" or the path of
// a script; "" when it exists.
func missingTest(t *testing.T, ref string) string {
	t.Helper()
	dir, name, isTest := strings.Cut(ref, " ")
	if !isTest {
		if filepath.Ext(ref) != ".txtar" {
			return ref + " is neither a test nor a script"
		}
		if _, err := os.Stat(filepath.Join("../..", ref)); err != nil {
			return err.Error()
		}
		return ""
	}
	files, err := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(name, "Test") && strings.Contains(string(text), "\nfunc "+name+"(t *testing.T) {") {
			return ""
		}
	}
	return "there is no test " + name + " in " + dir
}
