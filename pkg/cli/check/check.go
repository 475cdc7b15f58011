// Package check is `kubectl mssql check`: is the cluster fit for the operator, and is
// what is installed in order? Nothing is ever written.
package check

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/progress"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// Options of one call.
type Options struct {
	Name              string
	Pre               bool
	AllNamespaces     bool
	OperatorNamespace string
	Output            string
	Strict            bool
	Wait              bool
	Timeout           time.Duration

	Factory factory.Factory
	Streams *iostreams.IOStreams
}

// New is the command.
func New(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	o := &Options{Factory: f, Streams: s, OperatorNamespace: manifests.DefaultNamespace, Timeout: 5 * time.Minute, Output: formatText}
	cmd := &cobra.Command{
		Use:   "check [NAME]",
		Short: "Check the cluster before installing, or the operator and its groups afterwards",
		Long: `Check whether everything is in order, without changing anything.

With --pre: whether the operator can be installed and SQL Server can run here. Without: versions, resource
definitions, controllers, roles, and for each group or instance of the namespace its verdict, Lease,
certificates, volumes, budget and spread. Each problem has a code; explain CODE tells more.

Exit status: 0 in order or warnings, 1 when something failed, 10 for warnings with --strict.`,
		Example: fmt.Sprintf(`  # before the operator is installed
  %[1]s check --pre

  # everything in the namespace
  %[1]s check

  # one group; only what is not in order, in one line each
  %[1]s check demo -o short

  # in a pipeline: wait until all is well
  %[1]s check demo --strict --wait --timeout 10m`, f.Name()),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exit.Errorf(exit.Usage, fmt.Sprintf("see %s --help", cmd.CommandPath()), "want one name at most, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.Name = args[0]
			}
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&o.Pre, "pre", false, "check whether the operator can be installed here")
	fl.BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "check the groups and instances of all namespaces")
	fl.StringVar(&o.OperatorNamespace, "operator-namespace", o.OperatorNamespace, "with --pre: the namespace that the operator is to be installed in")
	fl.StringVarP(&o.Output, "output", "o", o.Output, "output format: text, short (problems only) or json")
	fl.BoolVar(&o.Strict, "strict", false, "exit with 10 when there are warnings")
	fl.BoolVar(&o.Wait, "wait", false, "repeat until nothing fails (with --strict: until there are no warnings)")
	fl.DurationVar(&o.Timeout, "timeout", o.Timeout, "how long --wait may take")
	return cmd
}

// Validate refuses what does not go together.
func (o *Options) Validate() error {
	switch o.Output {
	case formatText, formatShort, formatJSON:
	default:
		return exit.Errorf(exit.Usage, "use -o text, -o short or -o json", "unknown output format %q", o.Output)
	}
	switch {
	case o.Pre && o.Name != "":
		return exit.Errorf(exit.Usage, "leave the name out", "--pre looks at the cluster, not at %s", o.Name)
	case o.AllNamespaces && o.Name != "":
		return exit.Errorf(exit.Usage, "use -n", "a name and --all-namespaces do not go together")
	}
	return nil
}

// Run checks, prints and gives the result as exit code.
func (o *Options) Run(ctx context.Context) error {
	ch, err := o.checker()
	if err != nil {
		return err
	}
	rows := o.rows(ctx, ch)
	if o.Wait {
		if rows, err = o.wait(ctx, ch, rows); err != nil {
			return err
		}
	}
	r := summarize(rows)
	r.ExitCode = int(o.code(r))
	if err := write(o.Streams, o.Output, r, o.Factory.Name()); err != nil {
		return err
	}
	switch exit.Code(r.ExitCode) {
	case exit.OK:
		return nil
	case exit.Warnings:
		return exit.Errorf(exit.Warnings, "", "%d warnings, and --strict", r.Warnings)
	default:
		return exit.Errorf(exit.Unexpected, "", "%d of %d checks failed", r.Failed, len(r.Rows))
	}
}

func (o *Options) checker() (*Checker, error) {
	config, err := o.Factory.RESTConfig()
	if err != nil {
		return nil, err
	}
	ns, _, err := o.Factory.Namespace()
	if err != nil {
		return nil, err
	}
	c, err := o.Factory.Client()
	if err != nil {
		return nil, err
	}
	render := manifests.Default()
	render.Namespace = o.OperatorNamespace
	return &Checker{Client: c, Server: AskServer(config, o.Factory.Clock()), Namespace: ns, Self: o.Factory.Name(), Render: render}, nil
}

func (o *Options) rows(ctx context.Context, ch *Checker) []Row {
	switch {
	case o.Pre:
		return ch.Pre(ctx)
	case o.AllNamespaces:
		return ch.Installed(ctx, "", "")
	}
	return ch.Installed(ctx, ch.Namespace, o.Name)
}

func (o *Options) code(r Report) exit.Code {
	switch {
	case r.Failed > 0:
		return exit.Unexpected
	case r.Warnings > 0 && o.Strict:
		return exit.Warnings
	}
	return exit.OK
}

// wait repeats the checks every two seconds. The last rows are printed in any case.
func (o *Options) wait(ctx context.Context, ch *Checker, rows []Row) ([]Row, error) {
	waiting, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	report := progress.New(o.Streams, o.Factory.Clock(), o.Output == formatJSON)
	defer report.Stop()
	ticker := o.Factory.Clock().NewTicker(2 * time.Second)
	defer ticker.Stop()
	for {
		r := summarize(rows)
		if o.code(r) == exit.OK {
			return rows, nil
		}
		report.Step("%d failed, %d warnings; first: %s", r.Failed, r.Warnings, first(rows))
		select {
		case <-waiting.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil, exit.Errorf(exit.Interrupted, "", "interrupted")
			}
			return rows, nil
		case <-ticker.C():
		}
		if next := o.rows(waiting, ch); waiting.Err() == nil {
			rows = next
		}
	}
}

func first(rows []Row) string {
	for _, want := range []Status{Fail, Warn} {
		for _, r := range rows {
			if r.Status == want {
				return r.Name + ": " + r.Message
			}
		}
	}
	return ""
}
