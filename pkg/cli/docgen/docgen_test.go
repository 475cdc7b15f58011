package docgen_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/docgen"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

// holds compares a directory with what the tree gives.
func holds(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), names); diff != "" {
		t.Errorf("%s: run make generate\n%s", dir, diff)
	}
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			continue // told above
		}
		if diff := cmp.Diff(text, string(got)); diff != "" {
			t.Errorf("%s/%s: run make generate\n%s", dir, name, diff)
		}
	}
}

func TestReference_IsWhatTheCommandTreeSays(t *testing.T) {
	t.Parallel()
	streams, _, _, _ := iostreams.Test()
	root := cli.NewRoot("kubectl-mssql", streams)
	holds(t, "../../../docs/reference/cli", docgen.Markdown(root))
	roles, err := docgen.Roles()
	if err != nil {
		t.Fatal(err)
	}
	holds(t, "../../../deploy/rbac", roles)
	got, err := os.ReadFile("../../../docs/reference/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(docgen.Permissions(root), string(got)); diff != "" {
		t.Errorf("docs/reference/permissions.md: run make generate\n%s", diff)
	}
}

func TestPages_NameNoMachine(t *testing.T) {
	t.Parallel()
	home, err := os.UserHomeDir()
	if err != nil || len(home) < 3 {
		t.Skip("no home directory")
	}
	streams, _, _, _ := iostreams.Test()
	for name, text := range docgen.Markdown(cli.NewRoot("kubectl-mssql", streams)) {
		if strings.Contains(text, home+"/") {
			t.Errorf("%s names the home directory %s", name, home)
		}
	}
}

func TestMan_HasAPageForEachCommandAndEscapesText(t *testing.T) {
	t.Parallel()
	streams, _, _, _ := iostreams.Test()
	root := cli.NewRoot("kubectl-mssql", streams)
	pages := docgen.Man(root, "kubectl-mssql 1.2.3", "2026-01-02")
	if got, want := len(pages), len(docgen.Pages(root)); got != want {
		t.Errorf("%d man pages for %d commands", got, want)
	}
	// A line that opens with a dot is a request; only these are ours.
	request := regexp.MustCompile(`^\.(TH|SH|B|BR|PP|TP|nf|fi|\\")\b|^\.\\"`)
	for name, text := range pages {
		if !strings.Contains(text, `"2026\-01\-02" "kubectl\-mssql 1.2.3"`) {
			t.Errorf("%s does not name the release", name)
		}
		for _, section := range []string{".SH NAME\n", ".SH SYNOPSIS\n", ".SH DESCRIPTION\n"} {
			if strings.Count(text, section) != 1 {
				t.Errorf("%s has %d times %q", name, strings.Count(text, section), section)
			}
		}
		for i, l := range strings.Split(text, "\n") {
			if strings.HasPrefix(l, ".") && !request.MatchString(l) || strings.HasPrefix(l, "'") {
				t.Errorf("%s:%d: %q would be read as a request", name, i+1, l)
			}
		}
	}
	if !strings.Contains(pages["kubectl-mssql-failover.1"], `.B \-\-allow\-data\-loss`) {
		t.Error("the page of failover lacks --allow-data-loss")
	}
}

func TestCompletions_NameTheProgram(t *testing.T) {
	t.Parallel()
	streams, _, _, _ := iostreams.Test()
	scripts, err := docgen.Completions(cli.NewRoot("kubectl-mssql", streams))
	if err != nil {
		t.Fatal(err)
	}
	if len(scripts) != 4 {
		t.Fatalf("%d scripts", len(scripts))
	}
	for name, text := range scripts {
		if !strings.Contains(text, "kubectl-mssql") || !strings.Contains(text, "__complete") {
			t.Errorf("%s does not complete kubectl-mssql:\n%.400s", name, text)
		}
	}
}
