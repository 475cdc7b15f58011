// Package cli is the plugin: one package a verb, and the root that hangs them together.
package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/cancel"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/check"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/complete"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/completion"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/create"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/events"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/explain"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/failover"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/fence"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/history"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/install"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/list"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/logs"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/maintenance"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/reinit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/report"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/resize"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/restart"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/rights"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/scale"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/skew"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/sqlcmd"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/status"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/uninstall"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/upgrade"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/versioncmd"
)

// Groups of verbs in the help text.
const (
	groupOperator = "operator"
	groupCreate   = "create"
	groupSee      = "see"
	groupMove     = "move"
	groupHold     = "hold"
	groupChange   = "change"
	groupData     = "data"
	groupShell    = "shell"
)

// NewRoot builds the command tree. argv0 decides how we call ourselves: kubectl
// starts plugins as kubectl-mssql, and people type `kubectl mssql`.
func NewRoot(argv0 string, s *iostreams.IOStreams) *cobra.Command {
	name := DisplayName(argv0)
	flags := genericclioptions.NewConfigFlags(true)
	f := factory.New(flags, name)

	root := &cobra.Command{
		Use:   "kubectl-mssql",
		Short: "SQL Server availability groups and instances in Kubernetes",
		Long: `Install, create, watch and move SQL Server availability groups in Kubernetes.

Every verb works on the namespace of the kubeconfig's context unless -n says otherwise.`,
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: name},
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exit.Errorf(exit.Usage, fmt.Sprintf("%s --help lists the verbs", name), "unknown verb %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.ErrOut)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exit.With(exit.Usage, fmt.Sprintf("see %s --help", cmd.CommandPath()), err)
	})
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		help(cmd, args)
		rights.Write(cmd.OutOrStdout(), cmd)
	})
	color := string(s.Color)
	plugin := func(cmd *cobra.Command, group string) *cobra.Command {
		cmd.GroupID = group
		// The kubeconfig flags hang on the plugin's verbs only: the operator and the
		// instance manager must not inherit --context.
		flags.AddFlags(cmd.PersistentFlags())
		cmd.PersistentFlags().StringVar(&color, "color", color, "when to use colour: auto, always or never")
		cmd.PersistentFlags().BoolVar(&s.ASCII, "ascii", s.ASCII, "no signs outside ASCII")
		before := cmd.PersistentPreRunE
		cmd.PersistentPreRunE = func(c *cobra.Command, args []string) error {
			silence(s)
			switch m := iostreams.ColorMode(color); m {
			case iostreams.ColorAuto, iostreams.ColorAlways, iostreams.ColorNever:
				s.Color = m
			default:
				return exit.Errorf(exit.Usage, "use auto, always or never", "unknown colour mode %q", color)
			}
			if before != nil {
				if err := before(c, args); err != nil {
					return err
				}
			}
			if writes(group, c) {
				return skew.Gate(c.Context(), f, s)
			}
			return nil
		}
		return cmd
	}
	root.AddGroup(
		&cobra.Group{ID: groupOperator, Title: "Operator:"},
		&cobra.Group{ID: groupCreate, Title: "Create:"},
		&cobra.Group{ID: groupSee, Title: "See:"},
		&cobra.Group{ID: groupMove, Title: "Move:"},
		&cobra.Group{ID: groupHold, Title: "Hold:"},
		&cobra.Group{ID: groupChange, Title: "Change:"},
		&cobra.Group{ID: groupData, Title: "Data:"},
		&cobra.Group{ID: groupShell, Title: "Shell:"},
	)
	root.AddCommand(
		plugin(install.New(f, s), groupOperator),
		plugin(upgrade.New(f, s), groupOperator),
		plugin(uninstall.New(f, s), groupOperator),
		plugin(check.New(f, s), groupOperator),
		plugin(versioncmd.New(f, s), groupOperator),
		plugin(create.New(f, s), groupCreate),
		plugin(status.New(f, s), groupSee),
		plugin(list.New(f, s), groupSee),
		plugin(history.New(f, s), groupSee),
		plugin(events.New(f, s), groupSee),
		plugin(logs.New(f, s), groupSee),
		plugin(report.New(f, s), groupSee),
		plugin(explain.New(name, s), groupSee),
		plugin(sqlcmd.New(f, s), groupData),
		plugin(failover.New(f, s), groupMove),
		plugin(restart.New(f, s), groupMove),
		plugin(cancel.New(f, s), groupMove),
		plugin(fence.New(f, s), groupHold),
		plugin(maintenance.New(f, s), groupHold),
		plugin(resize.New(f, s), groupChange),
		plugin(scale.New(f, s), groupChange),
		plugin(reinit.New(f, s), groupChange),
	)
	shell := completion.New(argv0, filepath.SplitList(os.Getenv("PATH")), name, s)
	shell.GroupID = groupShell
	root.AddCommand(shell)
	complete.Tree(root, f, flags)
	root.SetHelpCommandGroupID(groupShell)
	argumentsAreUsage(root)
	return root
}

// writes tells whether a verb sends orders to the operator, so that their versions
// must fit. A dry run on the client's side needs no cluster and asks none.
func writes(group string, c *cobra.Command) bool {
	switch group {
	case groupOperator, groupSee, groupData, groupShell:
		return false
	}
	if c.Name() == "list" { // a list within a group of writing verbs
		return false
	}
	dry := c.Flag("dry-run")
	return c.Runnable() && (dry == nil || dry.Value.String() == "" || dry.Value.String() == "false")
}

// argumentsAreUsage gives every verb's complaint about its arguments the exit code of
// wrong usage and the way to the help.
func argumentsAreUsage(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(c *cobra.Command, args []string) error {
			err := check(c, args)
			var coded *exit.Error
			if err == nil || errors.As(err, &coded) {
				return err
			}
			return exit.With(exit.Usage, fmt.Sprintf("see %s --help", c.CommandPath()), err)
		}
	}
	for _, c := range cmd.Commands() {
		argumentsAreUsage(c)
	}
}

// DisplayName is "kubectl mssql" when kubectl started us, else the file's own name.
func DisplayName(argv0 string) string {
	base := strings.TrimSuffix(filepath.Base(argv0), ".exe")
	if rest, ok := strings.CutPrefix(base, "kubectl-"); ok {
		return "kubectl " + strings.ReplaceAll(rest, "_", "-")
	}
	if strings.HasPrefix(base, "kubectl_complete-") {
		return "kubectl mssql"
	}
	return base
}
