// Command gen writes what is generated from the command tree. Without arguments:
// docs/reference/cli, docs/reference/permissions.md and deploy/rbac, from the root of
// the repository. With `man DIR VERSION TIME`: the man pages; with `completions DIR`: the scripts
// of the shells. Both are made at a release.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/docgen"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	streams, _, _, _ := iostreams.Test()
	root := cli.NewRoot("kubectl-mssql", streams)
	switch {
	case len(args) == 0:
		roles, err := docgen.Roles()
		if err != nil {
			return err
		}
		if err := replace("docs/reference/cli", docgen.Markdown(root)); err != nil {
			return err
		}
		if err := replace("deploy/rbac", roles); err != nil {
			return err
		}
		return os.WriteFile("docs/reference/permissions.md", []byte(docgen.Permissions(root)), 0o644)
	case len(args) == 4 && args[0] == "man":
		released, err := time.Parse(time.RFC3339, args[3])
		if err != nil {
			return fmt.Errorf("the release's time: %w", err)
		}
		return replace(args[1], docgen.Man(root, "kubectl-mssql "+args[2], released.UTC().Format("2006-01-02")))
	case len(args) == 2 && args[0] == "completions":
		scripts, err := docgen.Completions(root)
		if err != nil {
			return err
		}
		return replace(args[1], scripts)
	}
	return fmt.Errorf("usage: gen [man DIR VERSION TIME | completions DIR]")
}

// replace makes the directory hold these files and no others.
func replace(dir string, files map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	old, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range old {
		if _, stays := files[e.Name()]; !stays && !e.IsDir() {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
