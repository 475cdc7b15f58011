package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
)

// shell is one that completes: how it is started so that nothing but start is loaded.
type shell struct {
	start string // what a user has in the start file
	file  string // name of the start file in the home directory
	args  []string
	// needs is a file without which the shell has no programmable completion.
	needs string
}

const prompt = "READY> "

func shells() map[string]shell {
	return map[string]shell{
		"bash": {
			start: "PS1='" + prompt + "'\n. /usr/share/bash-completion/bash_completion\nsource <(kubectl-mssql completion bash)\n",
			file:  "rc", args: []string{"--noprofile", "--rcfile", "rc", "-i"}, needs: "/usr/share/bash-completion/bash_completion",
		},
		"zsh": {
			start: "PS1='" + prompt + "'\nautoload -U compinit\ncompinit -u -D\nsource <(kubectl-mssql completion zsh)\n",
			file:  ".zshrc", args: []string{"-d", "-i"},
		},
		"fish": {
			start: "function fish_prompt; echo -n '" + prompt + "'; end\nset fish_greeting\nkubectl-mssql completion fish | source\n",
			file:  "start.fish", args: []string{"--no-config", "-i", "--init-command", "source start.fish"},
		},
	}
}

// TestShells_CompleteVerbsNamesAndReplicas types into real shells on a terminal. What
// is run in the end works only with the words that Tab has put in.
func TestShells_CompleteVerbsNamesAndReplicas(t *testing.T) {
	t.Parallel()
	for name, sh := range shells() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, err := exec.LookPath(name)
			if err != nil {
				t.Skipf("%s is not installed", name)
			}
			if sh.needs != "" {
				if _, err := os.Stat(sh.needs); err != nil {
					t.Skipf("%s has no completion here: %s is missing (package bash-completion)", name, sh.needs)
				}
			}
			a := clitest.Start(t)
			text, err := os.ReadFile("testdata/objects/demo.yaml")
			if err != nil {
				t.Fatal(err)
			}
			if err := a.AddYAML(string(text)); err != nil {
				t.Fatal(err)
			}
			a.Log("demo-0", "2026-08-10T08:00:00Z the log of nought\n")
			a.Log("demo-1", "2026-08-10T08:00:00Z the log of one\n")
			home := t.TempDir()
			if err := os.WriteFile(filepath.Join(home, sh.file), []byte(sh.start), 0o600); err != nil {
				t.Fatal(err)
			}
			env := []string{
				"HOME=" + home, "ZDOTDIR=" + home, "TERM=xterm", "LANG=C.UTF-8", "KUBECONFIG=" + a.Kubeconfig(t, home, "default"),
				"PATH=" + filepath.Dir(binary) + string(os.PathListSeparator) + os.Getenv("PATH"),
			}
			term, err := startTerminal(t.Context(), 160, home, env, path, sh.args...)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = term.cmd.Process.Kill() // it may have ended
				_ = term.wait()
			})
			if err := term.await(prompt, 0); err != nil {
				t.Fatal(err)
			}
			for _, line := range []struct{ tab, rest, want string }{
				{"kubectl-mssql stat\tde\t", "-o name\r", "sqlserveravailabilitygroup.kubectl-mssql.io/demo"},
				{"kubectl-mssql logs demo de\t", "1 --no-operator\r", "the log of one"},
			} {
				from := len(term.text())
				a.Forget()
				if err := term.send(line.tab); err != nil {
					t.Fatal(err)
				}
				if !a.Await(patience, func(r clitest.Request) bool { return r.Resource == "sqlserveravailabilitygroups" }) {
					t.Fatalf("Tab after %q asked the cluster nothing; shown: %q", line.tab, term.text())
				}
				if err := term.send(line.rest); err != nil {
					t.Fatal(err)
				}
				if err := term.await(line.want, from); err != nil {
					t.Error(err)
				}
			}
		})
	}
}
