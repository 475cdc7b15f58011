// Package arguments checks what stands behind a verb.
package arguments

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
)

// OneName wants exactly one argument, the name of one of what is said: "group or instance".
// The hint of its error is the way to the help.
func OneName(of string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		return exit.Errorf(exit.Usage, fmt.Sprintf("see %s --help", cmd.CommandPath()), "want the name of one %s, got %d arguments", of, len(args))
	}
}
