// Package docgen writes the command reference and the man pages from the command
// tree, so that neither can say what the program does not do. The output depends on
// the tree alone: no dates, no machine's paths.
package docgen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/rights"
)

// Flag is one option of a page.
type Flag struct {
	Name, Shorthand string
	// Value names what the flag takes, "" for a switch.
	Value   string
	Default string
	Usage   string
}

// Page describes one command.
type Page struct {
	// Path is "kubectl mssql create ag".
	Path    string
	Use     string
	Aliases []string
	Short   string
	Long    string
	Example string
	Group   string
	Flags   []Flag
	// Need is nil for commands that only hold others.
	Need     *rights.Need
	Children []string // paths
	Parent   string
}

// Pages lists every documented command, the root first, each before its children.
func Pages(root *cobra.Command) []Page {
	root.InitDefaultHelpCmd()
	shared := sharedFlags()
	var out []Page
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		out = append(out, page(cmd, shared))
		for _, c := range children(cmd) {
			walk(c)
		}
	}
	walk(root)
	return out
}

// children are the commands that the help shows, in the order of their names.
func children(cmd *cobra.Command) []*cobra.Command {
	var out []*cobra.Command
	for _, c := range cmd.Commands() {
		if c.Hidden || c.Deprecated != "" || c.Name() == "help" {
			continue
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *cobra.Command) int { return strings.Compare(a.Name(), b.Name()) })
	return out
}

func page(cmd *cobra.Command, shared map[string]bool) Page {
	p := Page{
		Path: cmd.CommandPath(), Use: cmd.UseLine(), Aliases: cmd.Aliases, Short: cmd.Short,
		Long: strings.TrimSpace(cmd.Long), Example: dedent(cmd.Example), Group: groupTitle(cmd),
	}
	if cmd.HasParent() {
		p.Parent = cmd.Parent().CommandPath()
	}
	cmd.InheritedFlags() // merges the parents' flags in
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && !shared[f.Name] {
			p.Flags = append(p.Flags, flag(f))
		}
	})
	for _, c := range children(cmd) {
		p.Children = append(p.Children, c.CommandPath())
	}
	if need, ok := rights.Of(cmd); ok && len(p.Children) == 0 {
		p.Need = &need
	}
	return p
}

// SharedFlags are the flags that every verb has: how to reach the cluster, and how to print.
func SharedFlags(root *cobra.Command) []Flag {
	shared := sharedFlags()
	var out []Flag
	seen := map[string]bool{}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.PersistentFlags().VisitAll(func(f *pflag.Flag) {
			if shared[f.Name] && !seen[f.Name] && !f.Hidden {
				seen[f.Name] = true
				out = append(out, flag(f))
			}
		})
		for _, c := range children(cmd) {
			walk(c)
		}
	}
	walk(root)
	slices.SortFunc(out, func(a, b Flag) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func sharedFlags() map[string]bool {
	set := pflag.NewFlagSet("kubeconfig", pflag.ContinueOnError)
	genericclioptions.NewConfigFlags(true).AddFlags(set)
	shared := map[string]bool{"color": true, "ascii": true, "help": true}
	set.VisitAll(func(f *pflag.Flag) { shared[f.Name] = true })
	return shared
}

func flag(f *pflag.Flag) Flag {
	value, usage := pflag.UnquoteUsage(f)
	def := f.DefValue
	switch {
	case f.Name == "cache-dir":
		def = "$HOME/.kube/cache" // the library's default names the home of whoever runs this
	case def == "[]" || (value == "" && def == "false"):
		def = ""
	}
	if f.NoOptDefVal != "" && f.Value.Type() != "bool" && f.Value.Type() != "count" {
		value = fmt.Sprintf("[%s]", value)
	}
	return Flag{Name: f.Name, Shorthand: f.Shorthand, Value: value, Default: def, Usage: usage}
}

func groupTitle(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return ""
	}
	for _, g := range cmd.Parent().Groups() {
		if g.ID == cmd.GroupID {
			return strings.TrimSuffix(g.Title, ":")
		}
	}
	return ""
}

// dedent takes the two spaces of cobra's examples away.
func dedent(s string) string {
	lines := strings.Split(strings.Trim(s, "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(strings.TrimPrefix(l, "  "), " ")
	}
	return strings.Join(lines, "\n")
}

// file is the page's name without its ending: "kubectl-mssql-create-ag".
func file(path string) string { return strings.ReplaceAll(path, " ", "-") }

// short is the name that the reference's files have: "create-ag".
func short(path string) string {
	return file(strings.TrimPrefix(strings.TrimPrefix(path, "kubectl mssql"), " "))
}
