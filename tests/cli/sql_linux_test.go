package cli_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
	mssqlsim "github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/server"
)

// sqlServer is a simulated server behind the pod demo-0, and the environment to reach it.
func sqlServer(t *testing.T) []string {
	t.Helper()
	node := mssqlsim.StartCluster(t, 1, mssqlsim.ClusterOptions{}).Nodes[0]
	a := clitest.Start(t)
	text, err := os.ReadFile("testdata/objects/demo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	password := base64.StdEncoding.EncodeToString([]byte(mssqlsim.SAPassword))
	if err := a.AddYAML(strings.Replace(string(text), "SA_PASSWORD: UGFzc3cwcmQh", "SA_PASSWORD: "+password, 1)); err != nil {
		t.Fatal(err)
	}
	a.Forward("demo-0", fmt.Sprintf("127.0.0.1:%d", node.Port))
	home := t.TempDir()
	return []string{"HOME=" + home, "KUBECONFIG=" + a.Kubeconfig(t, home, "default"), "PATH=" + os.Getenv("PATH"), "TERM=xterm", "LANG=C.UTF-8"}
}

func runSQL(t *testing.T, env []string, args ...string) (code int, out, errOut string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, append([]string{"sql", "demo"}, args...)...)
	cmd.Env = env
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	code = exitCode(cmd.Run())
	return code, o.String(), e.String()
}

func TestSQL_AnswersInThreeFormatsWithTypesThatPeopleMean(t *testing.T) {
	t.Parallel()
	env := sqlServer(t)
	const query = "PRINT N'hello'; SELECT CAST(1.50 AS decimal(10,2)) AS price, CAST('2026-08-22' AS date) AS d, 0x0AFF AS b, NULL AS n, N'NULL' AS t; SELECT 2 AS two"
	code, out, errOut := runSQL(t, env, "-Q", query)
	for _, want := range []string{"hello", "1.50", "2026-08-22", "0x0AFF", "(1 row)", "two"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not shown", want)
		}
	}
	if code != 0 || strings.Contains(out, "00:00:00") {
		t.Errorf("exit %d\n%s\n%s", code, out, errOut)
	}
	code, out, errOut = runSQL(t, env, "-Q", query, "-o", "json", "-d", "master")
	var doc struct {
		Kind    string
		Results []struct{ Rows []map[string]any }
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil || code != 0 {
		t.Fatalf("exit %d, %v\n%s\n%s", code, err, out, errOut)
	}
	if len(doc.Results) != 2 || doc.Results[0].Rows[0]["price"] != 1.5 || doc.Results[0].Rows[0]["n"] != nil || doc.Results[0].Rows[0]["d"] != "2026-08-22" {
		t.Errorf("%+v", doc)
	}
	if !strings.Contains(errOut, "hello") {
		t.Errorf("PRINT is lost: %q", errOut)
	}
}

func TestSQL_AnErrorEndsTheScriptWithItsNumberAndAnExitStatus(t *testing.T) {
	t.Parallel()
	env := sqlServer(t)
	file := t.TempDir() + "/s.sql"
	if err := os.WriteFile(file, []byte("SELECT 1 AS first\nGO\nSELECT * FROM nothere\nGO\nSELECT 3 AS third\nGO\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errOut := runSQL(t, env, "-i", file)
	if code != 1 || !strings.Contains(out, "first") || strings.Contains(out, "third") {
		t.Errorf("exit %d, %q", code, out)
	}
	if !strings.Contains(errOut, "Msg 208, Level 16") || !strings.Contains(errOut, "error: the batch failed with Msg 208") {
		t.Errorf("stderr %q", errOut)
	}
	if code, _, _ := runSQL(t, env, "-Q", "WAITFOR DELAY '00:00:20'", "--timeout", "1s"); code != 124 {
		t.Errorf("a batch that takes too long ends with %d", code)
	}
}

func TestSQL_OnATerminalCtrlCCancelsTheQueryAndNotTheSession(t *testing.T) {
	t.Parallel()
	env := sqlServer(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	term, err := startTerminal(ctx, 100, t.TempDir(), env, binary, "sql", "demo")
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%v\nall: %q", err, term.text())
		}
	}
	must(term.await("demo-0> ", 0))
	must(term.send("SELECT 40 + 2 AS answer;\r"))
	must(term.await("(1 row)", 0))
	from := len(term.text())
	// The message is sent at once: when it is seen, the query is at the server.
	must(term.send("RAISERROR (N'it %s', 0, 1, N'waits') WITH NOWAIT; WAITFOR DELAY '00:01:00'\rGO\r"))
	must(term.await("it waits", from))
	must(term.send("\x03"))
	must(term.await("cancelled", from))
	from = len(term.text())
	must(term.send("SELECT 6 * 7 AS again;\r"))
	must(term.await("(1 row)", from))
	must(term.send(":q\r"))
	if code := term.wait(); code != 0 {
		t.Errorf("exit status %d", code)
	}
}
