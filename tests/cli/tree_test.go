package cli_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/rights"
)

// verbs lists every command of the tree that does something, by path.
func verbs(t *testing.T) map[string]*cobra.Command {
	t.Helper()
	root, _, _, _ := newRoot()
	out := map[string]*cobra.Command{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, child := range c.Commands() {
			if child.Runnable() && !child.HasSubCommands() && child.Name() != "help" {
				out[rights.Path(child)] = child
			}
			walk(child)
		}
	}
	walk(root)
	if len(out) < 10 {
		t.Fatalf("only %d verbs were found", len(out))
	}
	return out
}

// needed are the flags without which a verb refuses to begin.
func needed() map[string][]string {
	return map[string][]string{
		"create ag":       {"--accept-eula"},
		"create instance": {"--accept-eula"},
		"sql":             {"-Q", "SELECT 1"},
		"logs":            {"--no-operator"},
		"resize":          {"--storage", "20Gi"},
		"scale":           {"--replicas", "5"},
		"check":           {"--strict"}, // without it what was not seen is a warning and ends with 0
	}
}

// Words of a Use line that a user replaces: NAME, REPLICA, on|off.
func arguments(cmd *cobra.Command) []string {
	values := map[string]string{"NAME": "demo", "REPLICA": "demo-1", "CODE": "MSSQL9001", "ID": "r1"}
	var out []string
	for _, w := range strings.Fields(cmd.Use)[1:] {
		switch {
		case strings.HasPrefix(w, "[") || strings.HasPrefix(w, "-"):
		case strings.Contains(w, "|"):
			out = append(out, strings.Split(w, "|")[0])
		case values[w] != "":
			out = append(out, values[w])
		}
	}
	if cmd.Name() == "ag" || cmd.Name() == "instance" {
		return []string{"fresh"}
	}
	return out
}

// line is a call of the verb that should work on the fixture.
func line(path string, cmd *cobra.Command, more ...string) []string {
	args := append(strings.Fields(path), arguments(cmd)...)
	return append(append(args, needed()[path]...), more...)
}

// call runs the tree inside this process against a server with the fixture.
func call(t *testing.T, args []string, prepare ...func(*clitest.API)) (exit.Code, string, string, *clitest.API) {
	t.Helper()
	a := clitest.Start(t)
	text, err := os.ReadFile("testdata/objects/demo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.AddYAML(string(text)); err != nil {
		t.Fatal(err)
	}
	for _, p := range prepare {
		p(a)
	}
	root, s, out, errOut := newRoot()
	all := append(slices.Clone(args), "--kubeconfig", a.Kubeconfig(t, t.TempDir(), "default"))
	if cmd, _, err := root.Find(args); err == nil && cmd.Flag("kubeconfig") == nil {
		all = args
	}
	code := cli.Execute(t.Context(), root, s, all)
	return code, out.String(), errOut.String(), a
}

func TestTree_EveryVerbExplainsItself(t *testing.T) {
	t.Parallel()
	for path, cmd := range verbs(t) {
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: the short text is %q", path, cmd.Short)
		}
		if !strings.Contains(cmd.Example, "kubectl mssql ") && !strings.HasPrefix(path, "completion ") {
			t.Errorf("%s has no example that begins with the plugin's name", path)
		}
		if cmd.Args == nil {
			t.Errorf("%s takes any arguments", path)
		}
		if _, ok := rights.Of(cmd); !ok {
			t.Errorf("%s has no row in pkg/cli/rights/table.go", path)
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s: --%s says nothing", path, f.Name)
			}
			if f.Name != strings.ToLower(f.Name) {
				t.Errorf("%s: --%s is not in lower case", path, f.Name)
			}
		})
	}
}

func TestTree_ExamplesAreCallsThatTheTreeKnows(t *testing.T) {
	t.Parallel()
	for path, cmd := range verbs(t) {
		for _, l := range strings.Split(cmd.Example, "\n") {
			words, is := strings.CutPrefix(strings.TrimSpace(l), "kubectl mssql ")
			if !is {
				continue
			}
			words = regexp.MustCompile(`\s[|>].*`).ReplaceAllString(words, "")
			root, _, _, _ := newRoot()
			found, rest, err := root.Find(strings.Fields(words))
			if err != nil || found == root {
				t.Errorf("%s: the example %q calls nothing", path, l)
				continue
			}
			found.InheritedFlags()
			for _, w := range rest {
				name, _, _ := strings.Cut(w, "=")
				if long, is := strings.CutPrefix(name, "--"); is && found.Flag(long) == nil {
					t.Errorf("%s: the example %q uses the unknown flag --%s", path, l, long)
				} else if !is && len(name) > 1 && name[0] == '-' && found.Flags().ShorthandLookup(name[1:2]) == nil {
					t.Errorf("%s: the example %q uses the unknown flag %s", path, l, name)
				}
			}
		}
	}
}

func TestTree_WrongUsageIsExitTwoAndSaysNothingOnStdout(t *testing.T) {
	t.Parallel()
	for path, cmd := range verbs(t) {
		cases := map[string][]string{
			"an unknown flag":    line(path, cmd, "--no-such-flag"),
			"too many arguments": append(strings.Fields(path), "a", "b", "c", "d", "e", "f", "g", "h", "i"),
		}
		if len(arguments(cmd)) > 0 {
			cases["too few arguments"] = strings.Fields(path)
		}
		if cmd.Flags().Lookup("output") != nil && strings.Contains(cmd.Flags().Lookup("output").Usage, "ormat") {
			cases["an unknown output format"] = line(path, cmd, "-o", "tabel")
		}
		for name, args := range cases {
			code, out, errOut, a := call(t, args)
			if code != exit.Usage || out != "" || !strings.HasPrefix(errOut, "error: ") {
				t.Errorf("%s with %s: exit %d, stdout %.80q, stderr %.200q", path, name, code, out, errOut)
			}
			if w := a.Writes(); len(w) > 0 {
				t.Errorf("%s with %s wrote: %v", path, name, w)
			}
		}
	}
}

func TestTree_DryRunsSendNoWriteAndEndWell(t *testing.T) {
	t.Parallel()
	seen := 0
	for path, cmd := range verbs(t) {
		f := cmd.Flags().Lookup("dry-run")
		if f == nil {
			continue
		}
		seen++
		modes := []string{"--dry-run"}
		if f.Value.Type() != "bool" {
			modes = []string{"--dry-run=client", "--dry-run=server"}
		}
		for _, mode := range modes {
			code, out, errOut, a := call(t, line(path, cmd, mode))
			if w := a.Writes(); len(w) > 0 {
				t.Errorf("%s %s wrote: %v", path, mode, w)
			}
			if code == exit.Usage || code == exit.Unexpected {
				t.Errorf("%s %s did not get as far as a dry run: exit %d, stderr %.300q", path, mode, code, errOut)
			}
			if out+errOut == "" {
				t.Errorf("%s %s said nothing", path, mode)
			}
			if beyond := beyondRights(line(path, cmd), a.Requests()); beyond != "" {
				t.Error(beyond)
			}
		}
	}
	if seen < 4 {
		t.Errorf("only %d verbs have a dry run", seen)
	}
}

// Verbs whose effect is the cluster's: each must ask before it changes something,
// and without a terminal say what to repeat.
func TestTree_VerbsThatAskNeverActUnasked(t *testing.T) {
	t.Parallel()
	seen := 0
	for path, cmd := range verbs(t) {
		if cmd.Flags().Lookup("yes") == nil {
			continue
		}
		seen++
		code, _, errOut, a := call(t, line(path, cmd))
		if code == exit.NotConfirmed {
			if w := a.Writes(); len(w) > 0 {
				t.Errorf("%s wrote before it was confirmed: %v", path, w)
			}
			if !strings.Contains(errOut, "--yes") {
				t.Errorf("%s does not say how to confirm: %q", path, errOut)
			}
		}
	}
	if seen < 2 {
		t.Errorf("only %d verbs ask", seen)
	}
}

func TestTree_ForbiddenIsExitSevenAndNamesThePermission(t *testing.T) {
	t.Parallel()
	for path, cmd := range verbs(t) {
		need, _ := rights.Of(cmd)
		required := slices.ContainsFunc(need.Rules, func(r rights.Rule) bool { return !r.Optional })
		if !required || path == "report" || path == "check" { // they report what they could not see
			continue
		}
		code, _, errOut, a := call(t, line(path, cmd), func(a *clitest.API) { a.Forbid("*", "*") })
		if code != exit.Forbidden || !strings.Contains(errOut, "cannot ") {
			t.Errorf("%s without any right: exit %d, stderr %.300q", path, code, errOut)
		}
		if beyond := beyondRights(line(path, cmd), a.Requests()); beyond != "" {
			t.Error(beyond)
		}
	}
}

func TestTree_ErrorsOfTheServerAreNeverSuccess(t *testing.T) {
	t.Parallel()
	for path, cmd := range verbs(t) {
		need, _ := rights.Of(cmd)
		if !slices.ContainsFunc(need.Rules, func(r rights.Rule) bool { return !r.Optional }) {
			continue
		}
		code, out, errOut, _ := call(t, line(path, cmd), func(a *clitest.API) { a.Refuse("*", "*", 500) })
		if code == exit.OK || out+errOut == "" {
			t.Errorf("%s over a broken server: exit %d, stderr %q", path, code, errOut)
		}
	}
}

func TestTree_WhatIsOfANamespaceIsAskedInTheOneThatWasNamed(t *testing.T) {
	t.Parallel()
	seen := 0
	for path, cmd := range verbs(t) {
		need, _ := rights.Of(cmd)
		if cmd.Flag("namespace") == nil {
			continue
		}
		args := line(path, cmd, "-n", "other")
		if f := cmd.Flags().Lookup("dry-run"); f != nil { // what is not answered is not waited for
			args = append(args, map[bool]string{true: "--dry-run", false: "--dry-run=server"}[f.Value.Type() == "bool"])
		}
		_, _, _, a := call(t, args)
		for _, r := range a.Requests() {
			if strings.HasPrefix(r.Resource, "selfsubject") || slices.ContainsFunc(need.Rules, func(rule rights.Rule) bool {
				return rule.Scope == rights.InCluster && rule.Group == r.Group && rule.Resource == r.Resource
			}) {
				continue
			}
			seen++
			if r.Namespace != "other" {
				t.Errorf("%s -n other sent %s", path, r)
			}
		}
	}
	if seen < 10 {
		t.Errorf("only %d requests were seen", seen)
	}
}
