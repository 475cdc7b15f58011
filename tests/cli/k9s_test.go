package cli_test

import (
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The commands of the file for k9s are calls that the tree knows, with flags that it has.
func TestK9s_EveryPluginCallsAVerbWithItsFlags(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/k9s/plugins.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Plugins map[string]struct {
			ShortCut, Description, Command string
			Scopes, Args                   []string
			Background                     bool
		} `json:"plugins"`
	}
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		t.Fatal(err)
	}
	keys := map[string]string{}
	for name, p := range file.Plugins {
		if other := keys[p.ShortCut]; other != "" || p.ShortCut == "" || p.Description == "" || len(p.Scopes) == 0 {
			t.Errorf("%s: shortcut %q (also of %q), description %q, scopes %v", name, p.ShortCut, other, p.Description, p.Scopes)
		}
		keys[p.ShortCut] = name
		line := strings.Join(append([]string{p.Command}, p.Args...), " ")
		_, line, ok := strings.Cut(line, "kubectl mssql ")
		if !ok {
			t.Errorf("%s calls %s %v", name, p.Command, p.Args)
			continue
		}
		line, _, _ = strings.Cut(line, " | ")
		root, _, _, _ := newRoot()
		cmd, rest, err := root.Find(strings.Fields(line))
		if err != nil || cmd == root {
			t.Errorf("%s calls nothing: %q", name, line)
			continue
		}
		if err := cmd.ParseFlags(rest); err != nil {
			t.Errorf("%s: %q: %v", name, line, err)
			continue
		}
		if got := cmd.Flags().Args(); len(got) != 1 || got[0] != "$NAME" {
			t.Errorf("%s: arguments %v", name, got)
		}
		for _, flag := range []string{"namespace", "context"} {
			if !cmd.Flag(flag).Changed {
				t.Errorf("%s does not pass --%s on", name, flag)
			}
		}
	}
	if len(file.Plugins) < 5 {
		t.Errorf("only %d plugins were read", len(file.Plugins))
	}
}
