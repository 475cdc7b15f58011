package controller

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
)

// NewCommand is the command tree `controller`, hidden from the plugin's help: it is
// for the operator's Deployment.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:    "controller",
		Short:  "Run as the operator",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return fmt.Errorf("%s needs a subcommand: run", cmd.CommandPath())
		},
	}
	cmd.AddCommand(newRunCommand(streams))
	return cmd
}

func newRunCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := DefaultOptions(os.Getenv)
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Reconcile availability groups and instances",
		Long: "Reconcile availability groups and instances, and be the external cluster manager of the former.\n\n" +
			"The cluster is found as usual: --kubeconfig, KUBECONFIG, or the pod's service account.",
		Example: "  kubectl-mssql controller run --operator-image=example.com/kubectl-mssql:0.1.0",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.Validate(); err != nil {
				return err
			}
			if err := state.NoticeDeadAPIServer(); err != nil {
				return err
			}
			cfg, err := ctrl.GetConfig()
			if err != nil {
				return fmt.Errorf("find the cluster: %w", err)
			}
			err = Run(cmd.Context(), cfg, o, streams.ErrOut)
			if errors.Is(err, ErrLeadershipLost) {
				return errors.Join(err, again())
			}
			return err
		},
	}
	o.AddFlags(cmd.Flags())
	return cmd
}
