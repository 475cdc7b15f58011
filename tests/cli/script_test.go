package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
)

// patience bounds everything that a script waits for.
const patience = 30 * time.Second

type apiKey struct{}

// TestScripts runs testdata/script/*.txtar. Each script has an API server of its own,
// a kubeconfig for it, and the plugin on PATH. docs/contributing/cli-tests.md lists
// the commands.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			tb, ok := e.T().(testing.TB)
			if !ok {
				return errors.New("no testing.TB behind the script")
			}
			a := clitest.Start(tb)
			e.Values[apiKey{}] = a
			home := filepath.Join(e.WorkDir, ".home")
			if err := os.MkdirAll(home, 0o755); err != nil {
				return err
			}
			e.Setenv("HOME", home)
			e.Setenv("KUBECONFIG", a.Kubeconfig(tb, home, "default"))
			e.Setenv("API", a.URL())
			e.Setenv("PATH", filepath.Dir(binary)+string(os.PathListSeparator)+e.Getenv("PATH"))
			e.Setenv("LANG", "C.UTF-8")
			e.Setenv("OBJECTS", objectsDir(tb))
			return nil
		},
		Condition: func(cond string) (bool, error) {
			name, ok := strings.CutPrefix(cond, "program:")
			if !ok {
				return false, errors.New("unknown condition")
			}
			_, err := exec.LookPath(name)
			return err == nil, nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits":     cmdExits,
			"api":       cmdAPI,
			"interrupt": cmdInterrupt,
			"terminal":  cmdTerminal,
			"json":      cmdJSON,
			"narrower":  cmdNarrower,
		},
	})
}

func objectsDir(tb testing.TB) string {
	dir, err := filepath.Abs("testdata/objects")
	if err != nil {
		tb.Fatal(err)
	}
	return dir
}

func server(ts *testscript.TestScript) *clitest.API {
	a, ok := ts.Value(apiKey{}).(*clitest.API)
	if !ok {
		ts.Fatalf("no API server")
	}
	return a
}

func number(ts *testscript.TestScript, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		ts.Fatalf("%q is no number", s)
	}
	return n
}

func exitCode(err error) int {
	var e *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return e.ExitCode()
	}
	return -1
}

// cmdExits: `exits CODE program args…` runs a program and demands its exit status.
func cmdExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE program [args…]")
	}
	want := number(ts, args[0])
	a := server(ts)
	before := len(a.Requests())
	if got := exitCode(ts.Exec(args[1], args[2:]...)); got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
	if args[1] == "kubectl-mssql" {
		if beyond := beyondRights(args[2:], a.Requests()[before:]); beyond != "" {
			ts.Fatalf("%s", beyond)
		}
	}
}

// cmdAPI talks to the API server of the script.
func cmdAPI(ts *testscript.TestScript, neg bool, args []string) {
	usage := func() { ts.Fatalf("unknown: api %s", strings.Join(args, " ")) }
	if len(args) == 0 {
		usage()
	}
	a := server(ts)
	switch verb, rest := args[0], args[1:]; {
	case verb == "add":
		for _, f := range rest {
			ts.Check(a.AddYAML(ts.ReadFile(f)))
		}
	case verb == "forbid" && len(rest) == 2:
		a.Forbid(rest[0], rest[1])
	case verb == "refuse" && len(rest) == 3:
		a.Refuse(rest[0], rest[1], int32(number(ts, rest[2])))
	case verb == "remove" && len(rest) == 1:
		a.Remove(rest[0])
	case verb == "log" && len(rest) == 2:
		a.Log(rest[0], ts.ReadFile(rest[1]))
	case verb == "set" && len(rest) == 4: // set resource namespace/name path value
		set(ts, a, rest)
	case verb == "operator" && len(rest) >= 1:
		operator(ts, a, rest[0], strings.Join(rest[1:], " "))
	case verb == "forget":
		a.Forget()
	case verb == "writes" && len(rest) == 1:
		if n := len(a.Writes()); n != number(ts, rest[0]) {
			ts.Fatalf("%d writes reached the API server: %v", n, a.Writes())
		}
	case verb == "asked" && len(rest) == 2:
		found := a.Await(0, func(r clitest.Request) bool { return r.Verb == rest[0] && r.Resource == rest[1] })
		if found == neg {
			ts.Fatalf("asked %s %s: %v; all: %v", rest[0], rest[1], found, a.Requests())
		}
	default:
		usage()
	}
}

// cmdInterrupt: `interrupt CODE VERBS RESOURCE program args…` starts a program, presses
// Ctrl-C when the API server has seen these requests in this order ("patch,get"), and
// demands the exit status.
func cmdInterrupt(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: interrupt CODE VERBS RESOURCE program [args…]")
	}
	want, verbs, resource := number(ts, args[0]), strings.Split(args[1], ","), args[2]
	path, err := lookPath(ts, args[3])
	ts.Check(err)
	cmd := exec.Command(path, args[4:]...)
	cmd.Dir, cmd.Env = ts.MkAbs("."), environment(ts)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	a := server(ts)
	a.Forget()
	ts.Check(cmd.Start())
	inOrder := func(all []clitest.Request) bool {
		done := 0
		for _, r := range all {
			if done < len(verbs) && r.Resource == resource && r.Verb == verbs[done] {
				done++
			}
		}
		return done == len(verbs)
	}
	if !a.AwaitAll(patience, inOrder) {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		ts.Fatalf("no %s of %s within %s; stderr: %s", args[1], resource, patience, errOut.String())
	}
	ts.Check(cmd.Process.Signal(os.Interrupt))
	got := exitCode(cmd.Wait())
	_, _ = io.Copy(ts.Stdout(), &out)
	_, _ = io.Copy(ts.Stderr(), &errOut)
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// cmdJSON: `json FILE` demands that a file, or stdout, is one JSON document and
// nothing else.
func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: json FILE")
	}
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	var doc any
	if err := dec.Decode(&doc); err != nil {
		ts.Fatalf("%s is no JSON: %v", args[0], err)
	}
	if err := dec.Decode(&doc); !errors.Is(err, io.EOF) {
		ts.Fatalf("%s holds more than one document", args[0])
	}
}

var ansi = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|\r")

// cmdNarrower: `narrower N FILE` demands that no line is wider than N columns.
func cmdNarrower(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: narrower N FILE")
	}
	for _, l := range strings.Split(ansi.ReplaceAllString(ts.ReadFile(args[1]), ""), "\n") {
		if n := len([]rune(l)); n > number(ts, args[0]) {
			ts.Fatalf("a line has %d columns: %q", n, l)
		}
	}
}

// lookPath finds a program on the script's own PATH.
func lookPath(ts *testscript.TestScript, name string) (string, error) {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		p := filepath.Join(dir, name)
		if info, err := os.Stat(p); err == nil && !info.IsDir() {
			return p, nil
		}
	}
	return exec.LookPath(name)
}

func environment(ts *testscript.TestScript) []string {
	var env []string
	for _, name := range []string{"HOME", "KUBECONFIG", "PATH", "LANG", "LC_ALL", "TERM", "NO_COLOR", "TMPDIR", "WORK", "MSSQL_PASSWORD"} {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}
