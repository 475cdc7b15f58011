package completion

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

func plugin(t *testing.T) (dir, path string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("links")
	}
	dir = t.TempDir()
	path = filepath.Join(dir, "kubectl-mssql")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return dir, path
}

func TestShim_IsTheFileThatPackagesShip(t *testing.T) {
	t.Parallel()
	got, err := os.ReadFile("../../../completions/" + LinkName)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Shim, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestInstall_LinksBesideThePluginAndIsRepeatable(t *testing.T) {
	t.Parallel()
	dir, path := plugin(t)
	for _, want := range []string{"created", "unchanged"} {
		link, state, err := Install(dir, path, false)
		if err != nil || state != want {
			t.Fatalf("%s: %s, %v", link, state, err)
		}
		if to, err := os.Readlink(link); err != nil || to != "kubectl-mssql" {
			t.Errorf("the link leads to %q, %v", to, err)
		}
	}
}

func TestInstall_LeadsToTheNameOnPathNotToKrewsStore(t *testing.T) {
	t.Parallel()
	store, path := plugin(t)
	bin := t.TempDir()
	onPath := filepath.Join(bin, "kubectl-mssql")
	if err := os.Symlink(path, onPath); err != nil {
		t.Fatal(err)
	}
	link, _, err := Install(bin, onPath, false)
	if err != nil {
		t.Fatal(err)
	}
	if to, _ := os.Readlink(link); to != "kubectl-mssql" || strings.Contains(to, store) {
		t.Errorf("the link leads to %q", to)
	}
}

func TestInstall_ReplacesItsOwnAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		make  func(link string) error
		force bool
		want  string
		code  exit.Code
	}{
		"a link to a plugin that is gone": {func(l string) error { return os.Symlink("/nowhere/kubectl-mssql", l) }, false, "replaced", 0},
		"the shim":                        {func(l string) error { return os.WriteFile(l, []byte(Shim), 0o755) }, false, "replaced", 0},
		"somebody's script":               {func(l string) error { return os.WriteFile(l, []byte("mine"), 0o755) }, false, "", exit.Refused},
		"somebody's link":                 {func(l string) error { return os.Symlink("/bin/true", l) }, false, "", exit.Refused},
		"somebody's script, with --force": {func(l string) error { return os.WriteFile(l, []byte("mine"), 0o755) }, true, "replaced", 0},
	} {
		dir, path := plugin(t)
		if err := tc.make(filepath.Join(dir, LinkName)); err != nil {
			t.Fatal(err)
		}
		_, state, err := Install(dir, path, tc.force)
		if state != tc.want || exit.Of(err) != tc.code {
			t.Errorf("%s: %q, %v", name, state, err)
		}
		left, err := os.ReadDir(dir)
		if err != nil || len(left) != 2 {
			t.Errorf("%s: %d files are left, %v", name, len(left), err)
		}
	}
}

func TestKubectl_SaysWhenTheDirectoryIsNotOnPath(t *testing.T) {
	t.Parallel()
	dir, path := plugin(t)
	for _, onPath := range []bool{true, false} {
		s, _, out, errOut := iostreams.Test()
		list := []string{"/usr/bin"}
		if onPath {
			list = append(list, dir+"/")
		}
		cmd := New(path, list, "kubectl mssql", s)
		cmd.SetArgs([]string{"kubectl", "--install"})
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(out.String(), filepath.Join(dir, LinkName)) {
			t.Errorf("output %q", out)
		}
		if strings.Contains(errOut.String(), "not on PATH") == onPath {
			t.Errorf("on PATH %v, said %q", onPath, errOut)
		}
	}
}

func TestKubectl_RefusesFlagsWithoutInstall(t *testing.T) {
	t.Parallel()
	s, _, out, _ := iostreams.Test()
	cmd := New("kubectl-mssql", nil, "kubectl mssql", s)
	cmd.SetArgs([]string{"kubectl", "--force"})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.ExecuteContext(t.Context()); exit.Of(err) != exit.Usage || out.Len() != 0 {
		t.Errorf("%v, output %q", err, out)
	}
}
