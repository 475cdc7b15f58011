package docgen

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/rights"
)

// Notice opens every generated page.
const Notice = "<!-- Generated from the command tree by `make generate`; do not edit. -->\n"

// Markdown gives the files of docs/reference/cli by name.
func Markdown(root *cobra.Command) map[string]string {
	pages := Pages(root)
	out := map[string]string{"README.md": index(pages, groups(root), SharedFlags(root))}
	for _, p := range pages[1:] {
		out[short(p.Path)+".md"] = markdown(p)
	}
	return out
}

func index(pages []Page, groups []string, shared []Flag) string {
	var b strings.Builder
	root := pages[0]
	fmt.Fprintf(&b, "%s# %s\n\n%s.\n\n%s\n", Notice, root.Path, root.Short, root.Long)
	group := "-"
	for _, g := range groups {
		for _, p := range pages[1:] {
			if p.Parent != root.Path || p.Group != g {
				continue
			}
			if group != g {
				group = g
				title := g
				if title == "" {
					title = "Other"
				}
				fmt.Fprintf(&b, "\n## %s\n\n| Verb | What it does |\n| --- | --- |\n", title)
			}
			fmt.Fprintf(&b, "| [%s](%s.md) | %s |\n", short(p.Path), short(p.Path), cell(p.Short))
		}
	}
	b.WriteString("\n## Flags of every verb\n\nA flag stands after the plugin's name: kubectl refuses `kubectl -n prod mssql status`.\n\n")
	flagTable(&b, shared)
	b.WriteString(`
## Environment

| Variable | Meaning |
| --- | --- |
| ` + "`KUBECONFIG`" + ` | kubeconfig files, as for kubectl |
| ` + "`NO_COLOR`" + `, ` + "`TERM=dumb`" + ` | no colour unless ` + "`--color=always`" + ` |
| ` + "`LC_ALL`, `LC_CTYPE`, `LANG`" + ` | without UTF-8 only ASCII signs are printed, as with ` + "`--ascii`" + ` |
| ` + "`MSSQL_PASSWORD`" + ` | ` + "`sql`" + `: the password of ` + "`--login`" + ` |

Exit codes are in [exit-codes.md](../exit-codes.md), permissions of all verbs in [permissions.md](../permissions.md).
`)
	return b.String()
}

// groups in the order in which the root declares them; verbs without a group come last.
func groups(root *cobra.Command) []string {
	var out []string
	for _, g := range root.Groups() {
		out = append(out, strings.TrimSuffix(g.Title, ":"))
	}
	return append(out, "")
}

func markdown(p Page) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s# %s\n\n%s.\n\n```\n%s\n```\n", Notice, p.Path, strings.TrimSuffix(p.Short, "."), p.Use)
	if len(p.Aliases) > 0 {
		fmt.Fprintf(&b, "\nAlso: `%s`.\n", strings.Join(p.Aliases, "`, `"))
	}
	if p.Long != "" {
		fmt.Fprintf(&b, "\n%s\n", p.Long)
	}
	if len(p.Children) > 0 {
		b.WriteString("\n## Verbs\n\n")
		for _, c := range p.Children {
			fmt.Fprintf(&b, "- [%s](%s.md)\n", c, short(c))
		}
	}
	if p.Example != "" {
		fmt.Fprintf(&b, "\n## Examples\n\n```sh\n%s\n```\n", p.Example)
	}
	if len(p.Flags) > 0 {
		b.WriteString("\n## Flags\n\n")
		flagTable(&b, p.Flags)
	}
	if p.Need != nil {
		b.WriteString("\n## Permissions\n\n")
		permissions(&b, *p.Need)
	}
	b.WriteString("\nFlags of every verb: [README.md](README.md#flags-of-every-verb). Exit codes: [exit-codes.md](../exit-codes.md).\n")
	return b.String()
}

func flagTable(b *strings.Builder, flags []Flag) {
	b.WriteString("| Flag | Default | Meaning |\n| --- | --- | --- |\n")
	for _, f := range flags {
		name := "`--" + f.Name
		if f.Value != "" {
			name += " " + f.Value
		}
		name += "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		def := ""
		if f.Default != "" {
			def = "`" + f.Default + "`"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", cell(name), cell(def), cell(f.Usage))
	}
}

func permissions(b *strings.Builder, n rights.Need) {
	if len(n.Rules) == 0 {
		fmt.Fprintf(b, "%s.\n", n.None)
		return
	}
	b.WriteString("| Verbs | Resource | Where | Why |\n| --- | --- | --- | --- |\n")
	for _, r := range n.Rules {
		why := r.Why
		if r.Optional {
			why += " (optional)"
		}
		fmt.Fprintf(b, "| %s | `%s` | %s | %s |\n", strings.Join(r.Verbs, ", "), r.Name(), r.Scope, cell(why))
	}
}

// cell keeps a text inside one cell of a table.
func cell(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;").Replace(s)
}
