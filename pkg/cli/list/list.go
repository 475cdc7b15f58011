// Package list is `kubectl mssql list`: all availability groups and instances, worst first.
package list

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/output"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/status"
)

// New is the command: status without a name.
func New(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	o := &status.Options{Factory: f, Streams: s, Output: output.New("wide")}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List availability groups and instances, worst first",
		Example: fmt.Sprintf(`  # of the namespace, of all namespaces
  %[1]s list
  %[1]s list -A

  # the names of those that are not healthy
  %[1]s list -A -o jsonpath='{range .items[?(@.level!="ok")]}{.namespace}/{.name}{"\n"}{end}'`, f.Name()),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exit.Errorf(exit.Usage, fmt.Sprintf("%s status %s shows one of them", f.Name(), args[0]), "list takes no name, got %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return o.Run(cmd.Context()) },
	}
	o.AddListFlags(cmd)
	return cmd
}
