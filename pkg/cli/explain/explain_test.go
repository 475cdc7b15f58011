package explain

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/reasons"
)

func explain(t *testing.T, args ...string) (string, error) {
	t.Helper()
	s, _, out, _ := iostreams.Test()
	cmd := New("kubectl-mssql", s)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.Execute()
	return out.String(), err
}

func TestOneCode_SaysWhatToDoInTheUsersWords(t *testing.T) {
	t.Parallel()
	got, err := explain(t, "mssql2001")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"MSSQL2001  NoSafeCandidate", "No replica may be promoted", "kubectl-mssql failover NAME --dry-run", "\nDo\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

func TestList_HasEveryCode(t *testing.T) {
	t.Parallel()
	got, err := explain(t)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(got, "\n"); n != len(reasons.All()) {
		t.Errorf("%d lines for %d entries", n, len(reasons.All()))
	}
}

func TestUnknownCode_NamesWhatIsNear(t *testing.T) {
	t.Parallel()
	_, err := explain(t, "safecand")
	var e *exit.Error
	if !errors.As(err, &e) || e.Code != exit.NotFound || !strings.Contains(e.Hint, "MSSQL2001 NoSafeCandidate") {
		t.Errorf("got %v", err)
	}
	if _, err := explain(t, "R1", "R2"); exit.Of(err) != exit.Usage {
		t.Errorf("two codes: got %v", err)
	}
}

func TestJSON_HoldsTheWholeEntry(t *testing.T) {
	t.Parallel()
	got, err := explain(t, "R13", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var d Document
	if err := json.Unmarshal([]byte(got), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Items) != 1 || d.Items[0].Code != "MSSQL9013" || d.Kind != "Explanation" {
		t.Errorf("got %+v", d)
	}
}

func TestCompletion_OffersCodesReasonsAndRules(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string]string{"MSSQL200": "MSSQL2001", "NoSafe": "NoSafeCandidate", "r1": "R12"} {
		words, _ := complete(nil, nil, prefix)
		found := false
		for _, w := range words {
			found = found || strings.HasPrefix(w, want+"\t")
		}
		if !found {
			t.Errorf("%s: %v", prefix, words)
		}
	}
}
