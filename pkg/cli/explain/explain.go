// Package explain is `kubectl mssql explain`: what a code, a reason or a rule means and
// what to do about it, without a cluster and without the web.
package explain

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/output"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/reasons"
)

// Document is the machine-readable form.
type Document struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Items      []reasons.Entry `json:"items"`
}

// New is the command; name is how the user calls us.
func New(name string, s *iostreams.IOStreams) *cobra.Command {
	out := output.New()
	cmd := &cobra.Command{
		Use:   "explain [CODE|REASON|RULE]",
		Short: "Explain a code, a reason or a safety rule, and what to do; needs no cluster",
		Example: fmt.Sprintf(`  # a code of status or check
  %[1]s explain MSSQL2001

  # a reason of a condition or event; a rule that refuses a replica
  %[1]s explain NotEnoughAnswers
  %[1]s explain R12

  # all of them
  %[1]s explain`, name),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exit.Errorf(exit.Usage, "", "want one code, got %d arguments", len(args))
			}
			return nil
		},
		ValidArgsFunction: complete,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := out.Validate(); err != nil {
				return err
			}
			if len(args) == 0 {
				return run(name, s, out, reasons.All(), true)
			}
			e, ok := reasons.Find(args[0])
			if !ok {
				hint := name + " explain lists all codes"
				if near := reasons.Near(args[0]); len(near) > 0 {
					hint = "did you mean " + strings.Join(near, ", ") + "?"
				}
				return exit.Errorf(exit.NotFound, hint, "nothing is known of %q", args[0])
			}
			return run(name, s, out, []reasons.Entry{e}, false)
		},
	}
	out.AddTo(cmd)
	return cmd
}

func complete(_ *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var words []cobra.Completion
	for _, e := range reasons.All() {
		for _, w := range []string{e.Code, e.Name} {
			if strings.HasPrefix(strings.ToLower(w), strings.ToLower(prefix)) {
				words = append(words, cobra.CompletionWithDesc(w, e.Summary))
				break
			}
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

func run(name string, s *iostreams.IOStreams, out *output.Flags, entries []reasons.Entry, list bool) error {
	if !out.Text() {
		names := make([]string, 0, len(entries))
		for _, e := range entries {
			names = append(names, e.Code)
		}
		return out.Write(s.Out, Document{output.APIVersion, "Explanation", entries}, false, names...)
	}
	var b strings.Builder
	if list {
		width := 0
		for _, e := range entries {
			width = max(width, len(e.Name))
		}
		for _, e := range entries {
			summary := e.Summary
			if room := s.Width - 13 - width; s.Width > 0 && len([]rune(summary)) > room && room > 20 {
				summary = string([]rune(summary)[:room-1]) + "…"
			}
			fmt.Fprintf(&b, "%s  %-*s  %s\n", e.Code, width, e.Name, summary)
		}
	} else {
		one(&b, s, entries[0])
	}
	_, err := io.WriteString(s.Out, s.Plain(strings.ReplaceAll(b.String(), "kubectl mssql", name)))
	return err
}

func one(b *strings.Builder, s *iostreams.IOStreams, e reasons.Entry) {
	fmt.Fprintf(b, "%s  %s\n\n%s\n", iostreams.Paint(s.ColorOut(), iostreams.StyleBold, e.Code), e.Name, iostreams.Wrap(e.Summary, s.Width))
	for _, part := range []struct {
		title string
		lines []string
	}{{"Look", e.Look}, {"Do", e.Do}} {
		if len(part.lines) == 0 {
			continue
		}
		fmt.Fprintf(b, "\n%s\n", part.title)
		for _, l := range part.lines {
			fmt.Fprintf(b, "%s\n", iostreams.Wrap("  "+l, s.Width))
		}
	}
}
