package foreign_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// tediousVersion is pinned: the newest that runs on node 20.
const tediousVersion = "18.6.1"

// missing ends the test where a client is not installed; in CI that is a failure.
func missing(t *testing.T, what, how string) {
	t.Helper()
	text := fmt.Sprintf("%s IS MISSING: the simulated server is NOT checked against it. %s", what, how)
	if os.Getenv("CI") != "" {
		t.Fatal(text)
	}
	t.Skip(text)
}

// tediousOnce makes one installation for all tests of the binary.
var tediousOnce sync.Once

// tedious installs the client into the user's cache, outside the tree, and returns the
// directory of its modules.
func tedious(t *testing.T) string {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			missing(t, strings.ToUpper(program), "Install nodejs and npm.")
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "kubectl-mssql", "tedious-"+tediousVersion)
	tediousOnce.Do(func() {
		if _, err := os.Stat(filepath.Join(dir, "complete")); err == nil {
			return
		}
		if err := os.MkdirAll(dir, 0o750); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		out, err := exec.CommandContext(ctx, "npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts",
			"--prefix", dir, "tedious@"+tediousVersion).CombinedOutput()
		if err != nil {
			missing(t, "TEDIOUS", fmt.Sprintf("npm install: %v\n%s", err, out))
		}
		if err := os.WriteFile(filepath.Join(dir, "complete"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := os.Stat(filepath.Join(dir, "complete")); err != nil {
		missing(t, "TEDIOUS", "Its installation failed in another test.")
	}
	return filepath.Join(dir, "node_modules")
}

// target is a server and a login.
type target struct {
	Host     string `json:"host"`
	Port     int    `json:"port"`
	User     string `json:"user"`
	Password string `json:"password"`
	Database string `json:"database,omitempty"`
	Encrypt  bool   `json:"encrypt"`
}

func targetOf(t *testing.T, addr, user, password string) target {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return target{Host: a.IP.String(), Port: a.Port, User: user, Password: password, Encrypt: true}
}

// step is one request of the node client.
type step struct {
	How    string  `json:"how,omitempty"`
	SQL    string  `json:"sql,omitempty"`
	Proc   string  `json:"proc,omitempty"`
	Params []param `json:"params,omitempty"`
	After  int     `json:"after,omitempty"`
}

type param struct {
	Name   string `json:"name"`
	Type   string `json:"type"`
	Value  any    `json:"value"`
	Output bool   `json:"output,omitempty"`
}

type serverMessage struct {
	Number int    `json:"number"`
	Class  int    `json:"class"`
	State  int    `json:"state"`
	Text   string `json:"text"`
	Code   string `json:"code"`
}

// answer is what one step brought.
type answer struct {
	Columns []struct{ Name, Type string } `json:"columns"`
	Rows    [][]any                       `json:"rows"`
	Errors  []serverMessage               `json:"errors"`
	Infos   []serverMessage               `json:"infos"`
	Outputs map[string]any                `json:"outputs"`
	Count   int                           `json:"count"`
}

// node runs steps on one connection of tedious.
func node(t *testing.T, to target, steps ...step) []answer {
	t.Helper()
	modules := tedious(t)
	request, err := json.Marshal(struct {
		target
		Steps []step `json:"steps"`
	}{to, steps})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	script, err := filepath.Abs(filepath.Join("testdata", "query.js"))
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(ctx, "node", script)
	c.Env = append(os.Environ(), "NODE_PATH="+modules)
	c.Stdin = bytes.NewReader(request)
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	if err := c.Run(); err != nil {
		t.Fatalf("node: %v\n%s", err, errs.String())
	}
	if out.Len() == 0 {
		t.Fatalf("node said nothing: the connection ended early\n%s", errs.String())
	}
	var answers []answer
	if err := json.Unmarshal(out.Bytes(), &answers); err != nil {
		t.Fatalf("node: %v\n%s", err, out.String())
	}
	if len(answers) != len(steps) {
		t.Fatalf("node: %d answers to %d steps", len(answers), len(steps))
	}
	return answers
}

// tsql runs a script of FreeTDS's tsql and returns its output.
func tsql(t *testing.T, to target, script string) string {
	t.Helper()
	program, err := exec.LookPath("tsql")
	if err != nil {
		missing(t, "FREETDS' TSQL", "Install freetds-bin.")
	}
	conf := filepath.Join(t.TempDir(), "freetds.conf")
	encryption := "require"
	if !to.Encrypt {
		encryption = "off"
	}
	text := fmt.Sprintf("[sim]\nhost = %s\nport = %d\ntds version = 7.4\nencryption = %s\nclient charset = UTF-8\n", to.Host, to.Port, encryption)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	args := []string{"-S", "sim", "-U", to.User, "-P", to.Password, "-o", "q"}
	if to.Database != "" {
		args = append(args, "-D", to.Database)
	}
	c := exec.CommandContext(ctx, program, args...)
	c.Env = append(os.Environ(), "FREETDSCONF="+conf, "TDSDUMP=")
	c.Stdin = strings.NewReader(script)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("tsql: %v\n%s", err, out)
	}
	return string(out)
}
