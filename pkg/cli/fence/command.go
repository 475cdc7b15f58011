// Package fence is `kubectl mssql fence`: keep one replica out of roles and routing, its
// server stopped, until a person takes the fence away.
package fence

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/change"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

// New is the command with its sub-commands.
func New(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fence",
		Short: "Keep a replica out: its server is stopped, pod and data stay",
		Long: `Keep one replica out of roles and routing until it is taken back.

Its server is stopped and stays so through restarts of its pod and of the operator; the pod, the volume and
its data stay. The order stands in the group's annotation, with who gave it, when and why.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exit.Errorf(exit.Usage, fmt.Sprintf("see %s --help", cmd.CommandPath()), "unknown verb %q: it is on, off or list", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newOn(f, s), newOff(f, s), newList(f, s))
	return cmd
}

func newOn(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	o := &Options{Call: change.Call{Factory: f, Streams: s, Verb: "fence on"}}
	cmd := &cobra.Command{
		Use:   "on NAME REPLICA",
		Short: "Stop a replica's server and keep it stopped",
		Long: `Stop a replica's server and keep it stopped.

The primary is moved away first, without loss. A fence that would stop writes is refused, and one that takes
the last replica that could take over asks for its name. A standalone instance has one server, NAME-0: it is
stopped until the fence is taken away.`,
		Example: fmt.Sprintf(`  %[1]s fence on demo demo-2 --reason "disk is failing"`, f.Name()),
		Args:    twoNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name, o.Target = args[0], args[1]
			return o.Run(cmd.Context(), o.on, o.instanceOn)
		},
	}
	o.AddTo(cmd, 2*time.Minute)
	cmd.Flags().StringVar(&o.OperatorNamespace, "operator-namespace", defaultOperatorNamespace, "where the operator runs")
	return cmd
}

func newOff(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	o := &Options{Call: change.Call{Factory: f, Streams: s, Verb: "fence off"}}
	cmd := &cobra.Command{
		Use:     "off NAME REPLICA",
		Short:   "Let a fenced replica come back",
		Long:    "Let a fenced replica come back: its server starts, catches up, and is a candidate again.",
		Example: fmt.Sprintf(`  %[1]s fence off demo demo-2`, f.Name()),
		Args:    twoNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name, o.Target = args[0], args[1]
			return o.Run(cmd.Context(), o.off, o.instanceOff)
		},
	}
	o.AddTo(cmd, 5*time.Minute)
	return cmd
}

func twoNames(cmd *cobra.Command, args []string) error {
	if len(args) != 2 {
		return exit.Errorf(exit.Usage, fmt.Sprintf("see %s --help", cmd.CommandPath()), "want the names of a group or instance and of one of its replicas, got %d arguments", len(args))
	}
	return nil
}
