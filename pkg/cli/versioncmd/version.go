// Package versioncmd is `kubectl mssql version`.
package versioncmd

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/version"
)

// Document is the machine-readable output.
type Document struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Plugin     version.Info `json:"plugin"`
	// Operators found in the cluster, by namespace.
	Operators []Operator `json:"operators"`
	// Errors that kept something from being seen.
	Errors []string `json:"errors"`
}

// Operator is one installation.
type Operator struct {
	Namespace string `json:"namespace"`
	Image     string `json:"image"`
	Version   string `json:"version"`
	Ready     int32  `json:"ready"`
	Replicas  int32  `json:"replicas"`
}

// New is the command.
func New(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	var output string
	var clientOnly bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the versions of the plugin and of the operators in the cluster",
		Example: fmt.Sprintf(`  # both sides
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
			doc := Document{APIVersion: "cli.kubectl-mssql.io/v1", Kind: "Version", Plugin: version.Get(),
				Operators: []Operator{}, Errors: []string{}}
			if !clientOnly {
				if ops, err := operators(cmd.Context(), f); err != nil {
					doc.Errors = append(doc.Errors, err.Error())
				} else {
					doc.Operators = ops
				}
			}
			return print(s, output, doc, clientOnly)
		},
	}
	cmd.Flags().BoolVar(&clientOnly, "client", false, "show the plugin's version only; no cluster is needed")
	cmd.Flags().StringVarP(&output, "output", "o", "", "output format: json or yaml")
	return cmd
}

func operators(ctx context.Context, f factory.Factory) ([]Operator, error) {
	c, err := f.Client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var list appsv1.DeploymentList
	if err := c.List(ctx, &list, client.MatchingLabels{manifests.LabelPart: manifests.LabelPartValue}); err != nil {
		return nil, fmt.Errorf("list operators: %w", err)
	}
	ops := make([]Operator, 0, len(list.Items))
	for _, d := range list.Items {
		op := Operator{Namespace: d.Namespace, Ready: d.Status.ReadyReplicas}
		if d.Spec.Replicas != nil {
			op.Replicas = *d.Spec.Replicas
		}
		if cs := d.Spec.Template.Spec.Containers; len(cs) > 0 {
			op.Image = cs[0].Image
			if i := strings.LastIndex(op.Image, ":"); i > strings.LastIndex(op.Image, "/") {
				op.Version = op.Image[i+1:]
			}
		}
		ops = append(ops, op)
	}
	return ops, nil
}

func print(s *iostreams.IOStreams, output string, doc Document, clientOnly bool) error {
	switch output {
	case "json":
		enc := json.NewEncoder(s.Out)
		enc.SetIndent("", "  ")
		return enc.Encode(doc)
	case "yaml":
		text, err := yaml.Marshal(doc)
		if err != nil {
			return fmt.Errorf("write the version: %w", err)
		}
		_, err = s.Out.Write(text)
		return err
	}
	p := doc.Plugin
	fmt.Fprintf(s.Out, "plugin    %s  %s  %s\n", p.Version, p.Platform, p.GoVersion)
	for _, op := range doc.Operators {
		fmt.Fprintf(s.Out, "operator  %s  %d/%d ready in namespace %s\n", op.Version, op.Ready, op.Replicas, op.Namespace)
	}
	if !clientOnly && len(doc.Operators) == 0 {
		if len(doc.Errors) > 0 {
			fmt.Fprintf(s.ErrOut, "operator  not seen: %s\n", doc.Errors[0])
		} else {
			fmt.Fprintln(s.ErrOut, "operator  none is installed")
		}
	}
	return nil
}
