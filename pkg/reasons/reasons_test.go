package reasons

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite docs/runbooks/README.md")

func TestEveryEntryIsWholeAndItsCodeUnique(t *testing.T) {
	t.Parallel()
	shape := regexp.MustCompile(`^MSSQL[0-9]{4}$`)
	codes, names := map[string]string{}, map[string]string{}
	for _, e := range All() {
		if !shape.MatchString(e.Code) {
			t.Errorf("%s is no code", e.Code)
			continue
		}
		if other, ok := codes[e.Code]; ok {
			t.Errorf("%s is %s and %s", e.Code, other, e.Name)
		}
		if other, ok := names[strings.ToLower(e.Name)]; ok {
			t.Errorf("%s has the codes %s and %s", e.Name, other, e.Code)
		}
		codes[e.Code], names[strings.ToLower(e.Name)] = e.Name, e.Code
		if len(e.Do) == 0 || !strings.HasSuffix(e.Summary, ".") {
			t.Errorf("%s %s needs a sentence and what to do", e.Code, e.Name)
		}
	}
}

func TestEveryReasonOfTheCodeHasAnEntry(t *testing.T) {
	t.Parallel()
	constant := regexp.MustCompile(`(?m)^\s*Reason\w+\s*=\s*"(\w+)"`)
	seen := 0
	for _, file := range []string{"../../api/v1alpha1/conditions.go", "../sql/ag/reason.go"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range constant.FindAllStringSubmatch(string(text), -1) {
			seen++
			if Code(m[1]) == "" {
				t.Errorf("%s: the reason %s has no entry in pkg/reasons/table_*.go", file, m[1])
			}
		}
	}
	if seen < 30 {
		t.Fatalf("only %d reasons were found", seen)
	}
}

func TestFind_TakesCodesNumbersReasonsAndRules(t *testing.T) {
	t.Parallel()
	for _, what := range []string{"MSSQL2001", "mssql2001", "2001", "NoSafeCandidate", "nosafecandidate", " MSSQL2001 "} {
		if e, ok := Find(what); !ok || e.Name != "NoSafeCandidate" {
			t.Errorf("%q: got %v", what, e)
		}
	}
	if e, ok := Find("r12"); !ok || e.Code != "MSSQL9012" {
		t.Errorf("r12: got %v", e)
	}
	if _, ok := Find("nothing"); ok {
		t.Error("an unknown word was found")
	}
	if got := CodeOr("", "NoSuchReason", "LogHeld"); got != "MSSQL3004" {
		t.Errorf("got %q", got)
	}
}

func TestRunbook_IsGenerated(t *testing.T) {
	t.Parallel()
	const file = "../../docs/runbooks/README.md"
	got := Runbook()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is not what pkg/reasons says; make golden writes it\n%s", file, diff)
	}
}
