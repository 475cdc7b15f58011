// Package cli_test runs the real plugin: as scripts over the built program against an
// API server in memory, on terminals, and under the shells' completion; and holds the
// command tree to rules that every verb must keep.
package cli_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// binary is the built plugin; its directory also has the link that completes.
var binary string

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		code = 1
	}
	os.Exit(code)
}

// run builds the program as `make build` does, so that the packages come from the
// same cache.
func run(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "kubectl-mssql-cli")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "kubectl-mssql")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	build := exec.CommandContext(context.Background(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "../../cmd/kubectl-mssql")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build the plugin: %w\n%s", err, out)
	}
	return m.Run(), nil
}
