// Package versioncmd is `kubectl mssql version`.
package versioncmd

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/check"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

// New is the command.
func New(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	var output string
	var clientOnly, short bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of the plugin, the operators, the instance managers and the servers",
		Long: `Show every version there is: of the plugin, of Kubernetes, of the operator in each namespace, of the
resource definitions, and for each group and instance of SQL Server and its instance managers.

Without a cluster the plugin's version is shown and the reason why nothing else is; that is no failure.`,
		Example: fmt.Sprintf(`  # everything
  %[1]s version

  # the plugin alone, without a cluster
  %[1]s version --client`, f.Name()),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch output {
			case "", "json", "yaml":
			default:
				return exit.Errorf(exit.Usage, "use -o json or -o yaml", "unknown output format %q", output)
			}
			doc := newDocument()
			if !clientOnly {
				collect(cmd, f, doc)
			}
			if short {
				if output != "" {
					return exit.Errorf(exit.Usage, "leave out one of them", "--short and -o do not go together")
				}
				return writeShort(s, doc)
			}
			return write(s, output, doc, clientOnly)
		},
	}
	cmd.Flags().BoolVar(&clientOnly, "client", false, "show the plugin's version only; no cluster is needed")
	cmd.Flags().BoolVar(&short, "short", false, "numbers only: the plugin, and each operator with its namespace")
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json or yaml")
	return cmd
}

// collect never fails: what keeps the cluster from being seen is in the document.
func collect(cmd *cobra.Command, f factory.Factory, doc *Document) {
	config, err := f.RESTConfig()
	if err != nil {
		doc.Errors = append(doc.Errors, err.Error())
		return
	}
	ns, _, err := f.Namespace()
	if err != nil {
		doc.Errors = append(doc.Errors, err.Error())
		return
	}
	c, err := f.Client()
	if err != nil {
		doc.Errors = append(doc.Errors, err.Error())
		return
	}
	doc.cluster(cmd.Context(), c, check.AskServer(config, f.Clock()), ns)
}

// writeShort writes one line for the plugin and for each operator.
func writeShort(s *iostreams.IOStreams, doc *Document) error {
	text := "plugin " + doc.Plugin.Version + "\n"
	for _, op := range doc.Operators {
		v := op.Version
		if v == "" {
			v = op.Image
		}
		text += "operator " + v + " " + op.Namespace + "\n"
	}
	if _, err := fmt.Fprint(s.Out, text); err != nil {
		return fmt.Errorf("write the version: %w", err)
	}
	return nil
}

func write(s *iostreams.IOStreams, output string, doc *Document, clientOnly bool) error {
	switch output {
	case "json":
		enc := json.NewEncoder(s.Out)
		enc.SetIndent("", "  ")
		if err := enc.Encode(doc); err != nil {
			return fmt.Errorf("write the version: %w", err)
		}
		return nil
	case "yaml":
		text, err := yaml.Marshal(doc)
		if err != nil {
			return fmt.Errorf("write the version: %w", err)
		}
		if _, err = s.Out.Write(text); err != nil {
			return fmt.Errorf("write the version: %w", err)
		}
		return nil
	}
	if _, err := fmt.Fprint(s.Out, screen(doc)); err != nil {
		return fmt.Errorf("write the version: %w", err)
	}
	if clientOnly {
		return nil
	}
	for _, e := range doc.Errors {
		fmt.Fprintf(s.ErrOut, "not seen    %s\n", e)
	}
	if len(doc.Operators) == 0 && len(doc.Errors) == 0 {
		fmt.Fprintln(s.ErrOut, "operator    none is installed")
	}
	for _, op := range doc.Operators {
		if op.Skew != "" {
			fmt.Fprintf(s.ErrOut, "%s %s\n", iostreams.Paint(s.ColorErr(), iostreams.StyleYellow, s.Mark(iostreams.MarkWarn)), op.Skew)
		}
	}
	return nil
}

func screen(doc *Document) string {
	var b strings.Builder
	p := doc.Plugin
	fmt.Fprintf(&b, "plugin      %s  %s  %s\n", p.Version, p.Platform, p.GoVersion)
	if doc.Kubernetes != "" {
		fmt.Fprintf(&b, "kubernetes  %s\n", strings.TrimPrefix(doc.Kubernetes, "v"))
	}
	for _, op := range doc.Operators {
		v := op.Version
		if v == "" {
			v = op.Image
		}
		line := fmt.Sprintf("operator    %s  %d/%d ready in namespace %s", v, op.Ready, op.Replicas, op.Namespace)
		if len(op.WatchNamespaces) > 0 {
			line += ", watches " + strings.Join(op.WatchNamespaces, ", ")
		}
		if op.ManagedBy != "" {
			line += ", managed by " + op.ManagedBy
		}
		b.WriteString(line + "\n")
	}
	for _, d := range doc.Definitions {
		fmt.Fprintf(&b, "definition  %s  served %s, stored %s\n", d.Name, strings.Join(d.Served, ", "), strings.Join(d.StoredVersions, ", "))
	}
	for _, s := range doc.Servers {
		build := s.SQLServer
		if build == "" {
			build = "?"
		}
		fmt.Fprintf(&b, "server      %s/%s  SQL Server %s  managers %s\n", s.Namespace, s.Name, build, managers(s.Managers))
	}
	return b.String()
}

// managers is one version when all agree, else each replica with its own.
func managers(list []Manager) string {
	if len(list) == 0 {
		return "?"
	}
	same := true
	for _, m := range list {
		same = same && m.Version == list[0].Version
	}
	if same {
		return list[0].Version
	}
	texts := make([]string, len(list))
	for i, m := range list {
		texts[i] = m.Replica + " " + m.Version
	}
	return strings.Join(texts, ", ")
}
