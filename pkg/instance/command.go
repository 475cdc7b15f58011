package instance

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
)

// NewCommand is the command tree `instance`, hidden from the plugin's help: it is
// for containers. Errors may carry an exit code, see ExitError.
func NewCommand(streams genericiooptions.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:    "instance",
		Short:  "Run as process 1 of a SQL Server container",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return fmt.Errorf("%s needs a subcommand: run or install", cmd.CommandPath())
		},
	}
	cmd.AddCommand(newRunCommand(streams), newInstallCommand())
	return cmd
}

func newRunCommand(streams genericiooptions.IOStreams) *cobra.Command {
	o := DefaultOptions()
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Start, watch and stop sqlservr, hold its leases, serve its probes",
		Long: "Start, watch and stop sqlservr, hold its leases, serve its probes.\n\n" +
			"The pod's name, namespace, UID, address and node come from POD_NAME, POD_NAMESPACE, POD_UID, POD_IP and NODE_NAME.",
		Example: "  kubectl-mssql instance run --config /etc/kubectl-mssql/config/instance.json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := state.NoticeDeadAPIServer(); err != nil {
				return err
			}
			return Run(cmd.Context(), o, streams)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.ConfigFile, "config", o.ConfigFile, "configuration file")
	f.StringVar(&o.DataDir, "data-dir", o.DataDir, "data directory of SQL Server")
	f.StringVar(&o.Program, "sqlservr", o.Program, "program of SQL Server")
	f.StringVar(&o.SAPasswordFile, "sa-password-file", o.SAPasswordFile, "file with the password of sa")
	f.StringVar(&o.OperatorPasswordFile, "operator-password-file", o.OperatorPasswordFile, "file with the password of the login kubectl_mssql")
	f.StringVar(&o.TLSDir, "tls-dir", o.TLSDir, "directory with tls.crt, tls.key, manager.crt, manager.key and ca.crt")
	f.StringVar(&o.ProbeAddress, "probe-address", o.ProbeAddress, "address of /startup, /live, /ready and /metrics")
	f.StringVar(&o.ManagerAddress, "manager-address", o.ManagerAddress, "address of the interface for controller and peers")
	f.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "how to reach the API server; the pod's service account when empty")
	return cmd
}

func newInstallCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "install DEST",
		Short:   "Copy this program to DEST",
		Example: "  kubectl-mssql instance install /controller/kubectl-mssql",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return Install(args[0])
		},
	}
}
