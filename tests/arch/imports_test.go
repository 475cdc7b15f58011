// Package arch tests who imports whom: the layers of docs/contributing/architecture.md.
package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const module = "github.com/kubectl-mssql/kubectl-mssql/"

type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

// packages lists the module's own packages with their direct imports and all dependencies.
func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps=false", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func isStd(path string) bool { return !strings.Contains(strings.SplitN(path, "/", 2)[0], ".") }

func TestImports_FollowTheLayers(t *testing.T) {
	t.Parallel()
	all := packages(t)
	if len(all) < 10 {
		t.Fatalf("go list found only %d packages", len(all))
	}
	for _, p := range all {
		name := strings.TrimPrefix(p.ImportPath, module)
		for _, imp := range p.Imports {
			own, isOwn := strings.CutPrefix(imp, module)
			switch {
			case name == "pkg/sql/ag" && !isStd(imp):
				t.Errorf("%s imports %s: the vocabulary needs the standard library only", name, imp)
			case (name == "pkg/sql/decide" || name == "pkg/sql/lease" || name == "pkg/sql/tsql") && !isStd(imp) && own != "pkg/sql/ag":
				t.Errorf("%s imports %s: pure packages import pkg/sql/ag only", name, imp)
			case strings.Contains(imp, "go-mssqldb") && name != "pkg/sql/mssql" && !strings.HasPrefix(name, "tests/"):
				t.Errorf("%s imports the driver: only pkg/sql/mssql does", name)
			case isOwn && strings.HasPrefix(own, "tests/") && !strings.HasPrefix(name, "tests/"):
				t.Errorf("%s imports %s: nothing outside tests imports a test double", name, own)
			case isOwn && strings.HasPrefix(name, "pkg/cli") && strings.HasPrefix(own, "pkg/controller"):
				t.Errorf("%s imports %s: the plugin never imports the operator", name, own)
			case isOwn && strings.HasPrefix(name, "pkg/controller") && strings.HasPrefix(own, "pkg/cli"):
				t.Errorf("%s imports %s: the operator never imports the plugin", name, own)
			case isOwn && strings.HasPrefix(name, "pkg/sql/agops") && (own == "api/v1alpha1"):
				t.Errorf("%s imports the API: procedures speak the vocabulary only", name)
			}
		}
		if name == "pkg/sql/agops" {
			for _, dep := range p.Deps {
				if strings.HasPrefix(dep, "sigs.k8s.io/controller-runtime") || strings.HasPrefix(dep, "github.com/spf13/cobra") {
					t.Errorf("%s depends on %s", name, dep)
				}
			}
		}
	}
}

// goFiles walks the module's Go files outside tests.
func goFiles(t *testing.T, visit func(path, text string)) {
	t.Helper()
	seen := 0
	for _, root := range []string{"../../pkg", "../../api", "../../cmd"} {
		err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			seen++
			visit(filepath.ToSlash(strings.TrimPrefix(path, "../../")), string(b))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen < 20 {
		t.Fatalf("only %d files were read", seen)
	}
}

func TestTSQL_IsWrittenInOnePackageOnly(t *testing.T) {
	t.Parallel()
	statement := regexp.MustCompile(`(?i)"[^"\n]*\b(ALTER AVAILABILITY GROUP|CREATE AVAILABILITY GROUP|DROP AVAILABILITY GROUP|sp_set_session_context|SELECT .+ FROM sys\.)`)
	goFiles(t, func(path, text string) {
		if strings.HasPrefix(path, "pkg/sql/tsql/") {
			return
		}
		if m := statement.FindString(text); m != "" {
			t.Errorf("%s holds T-SQL text %q: it belongs in pkg/sql/tsql", path, m)
		}
	})
}

func TestPureCore_NeverReadsAClock(t *testing.T) {
	t.Parallel()
	clock := regexp.MustCompile(`\btime\.(Now|Since|Until|Sleep|After|Tick|NewTimer|NewTicker)\(|math/rand`)
	goFiles(t, func(path, text string) {
		for _, pure := range []string{"pkg/sql/ag/", "pkg/sql/decide/", "pkg/sql/lease/", "pkg/sql/tsql/"} {
			if strings.HasPrefix(path, pure) && clock.MatchString(text) {
				t.Errorf("%s reads a clock or draws a number: %s", path, clock.FindString(text))
			}
		}
	})
}

func TestProduct_NeverMentionsTheSimulator(t *testing.T) {
	t.Parallel()
	goFiles(t, func(path, text string) {
		if strings.Contains(strings.ToLower(text), "mssqlsim") {
			t.Errorf("%s mentions the simulated server", path)
		}
	})
}
