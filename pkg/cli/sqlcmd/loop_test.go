package sqlcmd

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/peterh/liner"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
)

// typist gives lines; ^C stands for Ctrl-C.
type typist struct {
	lines   []string
	history []string
}

func (l *typist) Prompt(string) (string, error) {
	if len(l.lines) == 0 {
		return "", io.EOF
	}
	line := l.lines[0]
	l.lines = l.lines[1:]
	if line == "^C" {
		return "", liner.ErrPromptAborted
	}
	return line, nil
}

func (l *typist) AppendHistory(s string) { l.history = append(l.history, s) }

// recorder is a server that remembers the batches; one that begins with FAIL fails.
type recorder struct{ batches []string }

func (r *recorder) Stream(_ context.Context, batch string, into mssql.Sink) error {
	r.batches = append(r.batches, batch)
	if strings.HasPrefix(batch, "FAIL") {
		_ = into.Notice(mssql.Notice{Number: 208, Class: 16, Text: "no"}) // goes to a buffer
		return &ag.Error{Kind: ag.ErrMsg, Number: 208}
	}
	return into.Affected(1)
}

func TestLoop_SendsBatchesAsPeopleTypeThem(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "s.sql")
	if err := os.WriteFile(file, []byte("SELECT 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		typed string
		want  []string
	}{
		"a semicolon sends":                    {"SELECT 1;", []string{"SELECT 1;"}},
		"GO sends several lines":               {"SELECT\n1\nGO", []string{"SELECT\n1"}},
		"GO 2 sends twice":                     {"SELECT 1\ngo 2", []string{"SELECT 1", "SELECT 1"}},
		"a failed batch is not repeated":       {"FAIL\nGO 3", []string{"FAIL"}},
		"and the session goes on":              {"FAIL\nGO\nSELECT 1;", []string{"FAIL", "SELECT 1;"}},
		"GO alone sends nothing":               {"GO\nGO", nil},
		"Ctrl-C drops the lines":               {"SELECT\n^C\nSELECT 2;", []string{"SELECT 2;"}},
		":reset drops them too":                {"SELECT\n:reset\nSELECT 2;", []string{"SELECT 2;"}},
		":q ends":                              {":q\nSELECT 1;", nil},
		"exit ends":                            {"exit\nSELECT 1;", nil},
		"exit within a batch is text":          {"SELECT 1\nexit\nGO", []string{"SELECT 1\nexit"}},
		"a semicolon inside a text sends not":  {"SELECT '\na;\n';", []string{"SELECT '\na;\n';"}},
		"GO inside a text is text":             {"SELECT '\nGO\n';", []string{"SELECT '\nGO\n';"}},
		"a command inside a comment is text":   {"/*\n:q\n*/\nSELECT 1;", []string{"/*\n:q\n*/\nSELECT 1;"}},
		":r reads a file":                      {":r " + file + "\nGO", []string{"SELECT 7"}},
		"an unknown command is not for SQL":    {":nothing\nSELECT 1;", []string{"SELECT 1;"}},
		"a missing file does not end the loop": {":r /no/such/file\nSELECT 1;", []string{"SELECT 1;"}},
	} {
		s, _, _, _ := iostreams.Test()
		o := &Options{Output: "text", Streams: s}
		r := &recorder{}
		if err := o.loop(t.Context(), &typist{lines: strings.Split(tc.typed, "\n")}, r, "demo-0"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tc.want, r.batches); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestLoop_KeepsNoPasswordInTheHistory(t *testing.T) {
	t.Parallel()
	s, _, _, _ := iostreams.Test()
	o := &Options{Output: "text", Streams: s}
	typed := &typist{lines: []string{"CREATE LOGIN a WITH PASSWORD = 'x';", "select 1;", "alter login a with password='y';"}}
	if err := o.loop(t.Context(), typed, &recorder{}, "demo-0"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"select 1;"}, typed.history); diff != "" {
		t.Error(diff)
	}
}
