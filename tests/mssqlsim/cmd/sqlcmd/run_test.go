package main

import (
	"bytes"
	"context"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/tds"
)

// server answers a few statements; each SQL text that it does not know is an error.
type server struct{ batches chan string }

func (s server) Login(_ context.Context, _ *tds.Conn, l tds.Login) (tds.Session, tds.LoginResult, error) {
	if l.User != "sa" || l.Password != "Pass" {
		return nil, tds.LoginResult{}, &tds.LoginError{Messages: []tds.Message{{Number: 18456, Class: 14, State: 1, Line: 1, Text: "Login failed for user '" + l.User + "'."}}}
	}
	return s, tds.LoginResult{Database: "master"}, nil
}

func (s server) State() tds.SessionState     { return tds.SessionState{Database: "master"} }
func (s server) Reset(context.Context, bool) {}
func (s server) Close()                      {}

func (s server) Execute(ctx context.Context, r tds.Request, out *tds.Response) {
	s.batches <- strings.TrimSuffix(r.SQL, "\n")
	for text := range strings.SplitSeq(r.SQL, ";") {
		s.statement(ctx, strings.TrimSpace(text), out)
	}
}

func (s server) statement(ctx context.Context, text string, out *tds.Response) {
	switch text {
	case "SELECT replicas":
		_ = out.Columns([]tds.Column{
			{Name: "name", Type: sqltypes.TNVarChar(12)}, {Name: "n", Type: sqltypes.TInt}, {Name: "at", Type: sqltypes.TDateTime},
			{Name: "", Type: sqltypes.TBit}, {Name: "amount", Type: sqltypes.TNumeric(6, 2)},
		})
		amount, _ := sqltypes.NewDecimal(sqltypes.TNumeric(6, 2), big.NewInt(-50))
		at := time.Date(2026, 11, 29, 23, 5, 7, 123e6, time.UTC)
		_ = out.Row([]sqltypes.Value{sqltypes.NewNVarChar("mssql-0"), sqltypes.NewInt(7), sqltypes.NewDateTime(at), sqltypes.NewBit(true), amount})
		_ = out.Row([]sqltypes.Value{sqltypes.NewNVarChar("mssql-1"), sqltypes.Null(sqltypes.TInt), sqltypes.NewDateTime(at), sqltypes.NewBit(false), amount})
		_ = out.Done(tds.Done{Count: 2, Counted: true, Command: 0xC1})
	case "SELECT one":
		_ = out.Columns([]tds.Column{{Name: "", Type: sqltypes.TInt}})
		_ = out.Row([]sqltypes.Value{sqltypes.NewInt(1)})
		_ = out.Done(tds.Done{Count: 1, Counted: true, Command: 0xC1})
	case "PRINT hello":
		_ = out.Message(tds.Message{Class: 0, State: 1, Line: 1, Text: "hello"})
		_ = out.Done(tds.Done{})
	case "ALTER AVAILABILITY GROUP ag1 FAILOVER":
		_ = out.Message(tds.Message{Number: 47104, Class: 16, State: 1, Line: 3, Text: "External cluster key missing."})
		_ = out.Done(tds.Done{})
	case "WAIT":
		<-ctx.Done()
	case "DELETE":
		_ = out.Done(tds.Done{Count: 3, Counted: true, Command: 0xC4})
	default:
		_ = out.Message(tds.Message{Number: 102, Class: 15, State: 1, Line: 1, Text: "Incorrect syntax near '" + text + "'."})
		_ = out.Done(tds.Done{})
	}
}

func start(t *testing.T) (addr string, batches chan string) {
	t.Helper()
	cert, err := tds.SelfSigned(time.Now(), "localhost")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := server{batches: make(chan string, 100)}
	done := make(chan error, 1)
	go func() {
		done <- tds.NewServer(s, tds.Config{Certificate: cert, ServerName: func() string { return "mssql-0" }}).Serve(ctx, l)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return strings.Replace(l.Addr().String(), ":", ",", 1), s.batches
}

type result struct {
	code     int
	out, err string
}

func sqlcmd(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	env := func(name string) string { return map[string]string{"SQLCMDPASSWORD": "Pass"}[name] }
	code := run(t.Context(), args, env, strings.NewReader(stdin), &out, &errs)
	return result{code, out.String(), errs.String()}
}

func TestOutput_LayoutOfTheProduct(t *testing.T) {
	t.Parallel()
	addr, _ := start(t)
	cases := []struct {
		name string
		args []string
		want string
	}{
		{"plain", []string{"-Q", "SELECT replicas"}, "" +
			"name         n           at                        amount  \n" +
			"------------ ----------- ----------------------- - --------\n" +
			"mssql-0                7 2026-11-29 23:05:07.123 1     -.50\n" +
			"mssql-1             NULL 2026-11-29 23:05:07.123 0     -.50\n" +
			"\n(2 rows affected)\n"},
		{"trimmed with a separator and no headers", []string{"-h", "-1", "-W", "-s", "|", "-Q", "SELECT replicas"}, "" +
			"mssql-0|7|2026-11-29 23:05:07.123|1|-.50\n" +
			"mssql-1|NULL|2026-11-29 23:05:07.123|0|-.50\n" +
			"\n(2 rows affected)\n"},
		{"trimmed with headers", []string{"-W", "-Q", "SELECT one"}, "\n-\n1\n\n(1 rows affected)\n"},
		{"a message", []string{"-Q", "PRINT hello"}, "hello\n"},
		{"a count", []string{"-Q", "DELETE"}, "\n(3 rows affected)\n"},
		{"attached values", []string{"-h-1", "-W", "-QSELECT one"}, "1\n\n(1 rows affected)\n"},
		{"an error and what follows it", []string{"-Q", "ALTER AVAILABILITY GROUP ag1 FAILOVER; DELETE"},
			"Msg 47104, Level 16, State 1, Server mssql-0, Line 3\nExternal cluster key missing.\n\n(3 rows affected)\n"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := sqlcmd(t, "", append([]string{"-S", addr, "-U", "sa", "-C"}, c.args...)...)
			if diff := cmp.Diff(result{0, c.want, ""}, r, cmp.AllowUnexported(result{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	addr, _ := start(t)
	ok := []string{"-S", addr, "-U", "sa", "-C", "-l", "10"}
	cases := []struct {
		name     string
		args     []string
		code     int
		contains string
	}{
		{"an error without -b", append(ok, "-Q", "nonsense"), 0, "Msg 102, Level 15"},
		{"an error with -b", append(ok, "-b", "-Q", "nonsense"), 1, "Msg 102, Level 15"},
		{"an error below the severity of -V", append(ok, "-V", "16", "-Q", "nonsense"), 0, "Msg 102"},
		{"an error at the severity of -V", append(ok, "-V", "15", "-Q", "nonsense"), 15, "Msg 102"},
		{"a wrong password", []string{"-S", addr, "-U", "sa", "-P", "no", "-C", "-Q", "SELECT one"}, 1, "Login failed for user 'sa'."},
		{"a certificate that nobody trusts", []string{"-S", addr, "-U", "sa", "-Q", "SELECT one"}, 1, "certificate verify failed"},
		{"optional encryption needs no trust", []string{"-S", addr, "-U", "sa", "-No", "-Q", "SELECT one"}, 0, "(1 rows affected)"},
		{"a query over its time", append(ok, "-t", "1", "-Q", "WAIT"), 1, "timeout expired"},
		{"an unknown option", []string{"-$"}, 1, "Unknown Option"},
		{"a variable that is not there", append(ok, "-Q", "SELECT $(missing_variable)"), 1, "scripting variable not defined"},
		{"a query and a file", append(ok, "-Q", "x", "-i", "y"), 1, "mutually exclusive"},
		{"a file that is not there", append(ok, "-i", "/nonexistent"), 1, "Invalid filename"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := sqlcmd(t, "", c.args...)
			if r.code != c.code || !strings.Contains(r.out+r.err, c.contains) {
				t.Errorf("code %d, want %d\nstdout: %s\nstderr: %s", r.code, c.code, r.out, r.err)
			}
		})
	}
}

func TestLogin_AServerThatSaysNothingEndsInATimeOut(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, nobody answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	began := time.Now()
	r := sqlcmd(t, "", "-S", strings.Replace(l.Addr().String(), ":", ",", 1), "-U", "sa", "-l", "1", "-Q", "SELECT one")
	if r.code != 1 || !strings.Contains(r.err, "Login timeout expired") || time.Since(began) > 8*time.Second {
		t.Errorf("code %d after %v: %s", r.code, time.Since(began), r.err)
	}
}

func TestScripts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	included := file("included.sql", "SELECT one\nGO\n")
	cases := []struct {
		name  string
		stdin string
		args  []string
		want  []string
	}{
		{"stdin runs what ends in GO", "SELECT one\ngo\nDELETE\n", nil, []string{"SELECT one"}},
		{"GO inside a string or a comment is text", "PRINT hello /*\nGO\n*/ '\nGO\n'\nGO\n", nil, []string{"PRINT hello /*\nGO\n*/ '\nGO\n'"}},
		{"GO with a count repeats", "DELETE\nGO 3\n", nil, []string{"DELETE", "DELETE", "DELETE"}},
		{"variables come from -v and :setvar", ":setvar b \"x y\"\n$(A) $(b)\nGO\n", []string{"-v", "a=1"}, []string{"1 x y"}},
		{"-x leaves variables alone", "$(A)\nGO\n", []string{"-x"}, []string{"$(A)"}},
		{":r reads another file", ":r " + included + "\nDELETE\nGO\n", nil, []string{"SELECT one", "DELETE"}},
		{"exit ends the script", "SELECT one\nGO\nexit\nDELETE\nGO\n", nil, []string{"SELECT one"}},
		{":on error exit ends it at an error", ":on error exit\nnonsense\nGO\nDELETE\nGO\n", nil, []string{"nonsense"}},
		{"a file runs to its end", "", []string{"-i", file("a.sql", "SELECT one\r\nGO\r\nDELETE")}, []string{"SELECT one", "DELETE"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			addr, batches := start(t)
			r := sqlcmd(t, c.stdin, append([]string{"-S", addr, "-U", "sa", "-C"}, c.args...)...)
			close(batches)
			var got []string
			for b := range batches {
				got = append(got, b)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("batches (-want +got):\n%s\nstderr: %s", diff, r.err)
			}
		})
	}
}

func FuzzScript(f *testing.F) {
	f.Add("SELECT 'a\nGO\nb' $(x)\nGO 2\n:setvar x 1\n[a]]b]\nGO", true)
	f.Fuzz(func(t *testing.T, text string, noVariables bool) {
		s := &script{variables: map[string]string{"x": "1"}, noVariables: noVariables, onErrorExit: func(bool) {}}
		n := 0
		s.run = func(b batch) (bool, error) {
			if strings.TrimSpace(b.text) == "" {
				t.Error("an empty batch is run")
			}
			n++
			return n > 1000, nil
		}
		if strings.Contains(text, ":r") { // reads files
			return
		}
		_, _ = s.read(strings.NewReader(text))
	})
}
