package cli_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/rights"
)

// newRoot is the plugin's tree for a test, with its streams.
func newRoot() (*cobra.Command, *iostreams.IOStreams, *strings.Builder, *strings.Builder) {
	s, _, _, _ := iostreams.Test()
	var out, errOut strings.Builder
	s.Out, s.ErrOut = &out, &errOut
	return cli.NewRoot("kubectl-mssql", s), s, &out, &errOut
}

// beyondRights names the first request that the table does not grant to the command
// of these words; "" when all are granted.
func beyondRights(args []string, requests []clitest.Request) string {
	root, _, _, _ := newRoot()
	cmd, _, err := root.Find(args)
	if err != nil || cmd == root || cmd.HasSubCommands() {
		return ""
	}
	need, ok := rights.Of(cmd)
	if !ok {
		return fmt.Sprintf("%q has no row in pkg/cli/rights/table.go", rights.Path(cmd))
	}
	everywhere := slices.Contains(args, "-A") || slices.Contains(args, "--all-namespaces")
	for _, r := range requests {
		if strings.HasPrefix(r.Resource, "selfsubject") {
			continue // every user may ask about themselves
		}
		if !slices.ContainsFunc(need.Rules, func(rule rights.Rule) bool {
			return rule.Group == r.Group && rule.Resource == r.Resource && slices.Contains(rule.Verbs, r.Verb) &&
				(rule.Scope == rights.InCluster || r.Namespace != "" || everywhere)
		}) {
			return fmt.Sprintf("%q sent %s, which pkg/cli/rights/table.go does not name", rights.Path(cmd), r)
		}
	}
	return ""
}

func TestRights_NameOnlyCommandsThatExist(t *testing.T) {
	t.Parallel()
	root, _, _, _ := newRoot()
	root.InitDefaultHelpCmd()
	for _, path := range rights.Paths() {
		if cmd, rest, err := root.Find(strings.Fields(path)); err != nil || len(rest) > 0 || cmd == root {
			t.Errorf("pkg/cli/rights/table.go has a row for %q, which is no command", path)
		}
	}
}

func TestRights_HaveReasonsAndVerbsOfTheAPI(t *testing.T) {
	t.Parallel()
	known := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	for _, path := range rights.Paths() {
		need, _ := rights.Lookup(path)
		if len(need.Rules) == 0 && need.None == "" {
			t.Errorf("%s: neither rules nor the reason why there are none", path)
		}
		for _, r := range need.Rules {
			if r.Why == "" || len(r.Verbs) == 0 {
				t.Errorf("%s: %s has no reason or no verbs", path, r.Name())
			}
			for _, v := range r.Verbs {
				if !slices.Contains(known, v) {
					t.Errorf("%s: %q is no verb", path, v)
				}
			}
			if r.Resource == "pods/exec" {
				t.Errorf("%s asks for pods/exec", path)
			}
		}
	}
}
