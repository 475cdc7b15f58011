package docgen

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Man gives the man pages by file name, section 1. Source is printed at the foot,
// such as "kubectl-mssql 0.1.0"; date is the release's day, or empty.
func Man(root *cobra.Command, source, date string) map[string]string {
	out := map[string]string{}
	pages := Pages(root)
	shared := SharedFlags(root)
	for i, p := range pages {
		all := shared
		if i > 0 {
			all = nil // they stand in the page of the program
		}
		out[file(p.Path)+".1"] = man(p, all, source, date)
	}
	return out
}

func man(p Page, shared []Flag, source, date string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".\\\" Generated from the command tree; do not edit.\n")
	fmt.Fprintf(&b, ".TH %s 1 %s %s %s\n", quote(strings.ToUpper(file(p.Path))), quote(date), quote(source), quote("SQL Server in Kubernetes"))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(file(p.Path)), roff(p.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(p.Use))
	text := p.Long
	if text == "" {
		text = p.Short + "."
	}
	b.WriteString(".SH DESCRIPTION\n")
	for i, para := range strings.Split(text, "\n\n") {
		if i > 0 {
			b.WriteString(".PP\n")
		}
		b.WriteString(lines(para))
	}
	if len(p.Aliases) > 0 {
		fmt.Fprintf(&b, ".PP\nAlso: %s.\n", roff(strings.Join(p.Aliases, ", ")))
	}
	manFlags(&b, "OPTIONS", p.Flags)
	manFlags(&b, "OPTIONS OF EVERY VERB", shared)
	if p.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s.fi\n", lines(p.Example))
	}
	if p.Need != nil {
		b.WriteString(".SH PERMISSIONS\n")
		if len(p.Need.Rules) == 0 {
			fmt.Fprintf(&b, "%s.\n", roff(p.Need.None))
		}
		for _, r := range p.Need.Rules {
			note := ""
			if r.Optional {
				note = " (optional)"
			}
			fmt.Fprintf(&b, ".TP\n.B %s\n%s, %s%s\n", roff(strings.Join(r.Verbs, ",")+" "+r.Name()), roff(string(r.Scope)), roff(r.Why), note)
		}
	}
	var see []string
	if p.Parent != "" {
		see = append(see, p.Parent)
	}
	see = append(see, p.Children...)
	if len(see) > 0 {
		b.WriteString(".SH SEE ALSO\n")
		for i, s := range see {
			comma := ","
			if i == len(see)-1 {
				comma = ""
			}
			fmt.Fprintf(&b, ".BR %s (1)%s\n", roff(file(s)), comma)
		}
	}
	return b.String()
}

func manFlags(b *strings.Builder, title string, flags []Flag) {
	if len(flags) == 0 {
		return
	}
	fmt.Fprintf(b, ".SH %s\n", title)
	for _, f := range flags {
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if f.Value != "" {
			name += " " + f.Value
		}
		def := ""
		if f.Default != "" {
			def = " (default " + f.Default + ")"
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s", roff(name), lines(f.Usage+def))
	}
}

// lines writes text that keeps its line ends; a line that begins like a request of
// the formatter is protected.
func lines(s string) string {
	var b strings.Builder
	for _, l := range strings.Split(s, "\n") {
		l = roff(l)
		if strings.HasPrefix(l, ".") || strings.HasPrefix(l, "'") {
			l = `\&` + l
		}
		b.WriteString(l + "\n")
	}
	return b.String()
}

// roff escapes what the formatter would read as its own.
func roff(s string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
}

func quote(s string) string { return `"` + strings.ReplaceAll(roff(s), `"`, `\(dq`) + `"` }
