// Package install is `kubectl mssql install`: it brings the operator into a cluster.
package install

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/check"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/installation"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/progress"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// Options of install.
type Options struct {
	Render         manifests.Options
	DryRun         string
	Output         string
	Wait           bool
	Timeout        time.Duration
	ForceConflicts bool
	Preflight      bool
	Record         string
	Quiet          bool

	Factory factory.Factory
	Streams *iostreams.IOStreams
}

// New is the command.
func New(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	o := &Options{Render: manifests.Default(), Factory: f, Streams: s}
	var flags installation.Flags
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install the operator, or bring an installation up to date",
		Long: `Install the operator: namespace, custom resource definitions, roles and Deployment.

What check --pre looks at is looked at first, and what would fail stops the installation before anything
is changed. A second run changes nothing and says so. Availability groups and their data are never touched.
The options are kept in the cluster, and upgrade repeats them.`,
		Example: fmt.Sprintf(`  # into the namespace mssql-system
  %[1]s install

  # look at everything first, without a cluster
  %[1]s install --dry-run=client -o yaml

  # only for two namespaces, with Roles instead of a ClusterRole
  %[1]s install --watch-namespaces sales,crm

  # from a mirror, on nodes of their own
  %[1]s install --registry registry.example.com/mirror --image-pull-secret mirror \
      --node-selector pool=infra --tolerations dedicated=infra:NoSchedule`, f.Name()),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if ns := cmd.Flag("namespace"); ns != nil && ns.Changed {
				o.Render.Namespace = ns.Value.String()
			}
			if err := o.Validate(); err != nil {
				return err
			}
			if err := flags.Apply(&o.Render); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	fl := cmd.Flags()
	flags.Add(fl)
	fl.StringVar(&o.DryRun, "dry-run", "", "client: print what would be applied; server: ask the API server; both change nothing")
	fl.StringVarP(&o.Output, "output", "o", "", "with --dry-run=client: yaml")
	fl.BoolVar(&o.Wait, "wait", true, "wait until the controllers are up")
	fl.DurationVar(&o.Timeout, "timeout", 5*time.Minute, "how long to wait")
	fl.BoolVar(&o.ForceConflicts, "force-conflicts", false, "take over fields that another tool owns")
	fl.BoolVar(&o.Preflight, "preflight", true, "look first at what check --pre looks at")
	fl.StringVar(&o.Record, "record", "", "write the applied manifests to this file")
	fl.BoolVarP(&o.Quiet, "quiet", "q", false, "no progress")
	return cmd
}

// Validate refuses what cannot work, before anything is sent.
func (o *Options) Validate() error {
	switch o.DryRun {
	case "", "client", "server":
	default:
		return exit.Errorf(exit.Usage, "use --dry-run=client or --dry-run=server", "unknown dry run %q", o.DryRun)
	}
	switch {
	case o.Output != "" && o.Output != "yaml":
		return exit.Errorf(exit.Usage, "use -o yaml", "unknown output format %q", o.Output)
	case o.Output != "" && o.DryRun != "client":
		return exit.Errorf(exit.Usage, "add --dry-run=client", "-o yaml prints manifests and goes with --dry-run=client")
	case o.Record != "" && o.DryRun != "":
		return exit.Errorf(exit.Usage, "leave one of them out", "--record tells what was applied, and a dry run applies nothing")
	}
	return nil
}

// Run renders, applies and waits.
func (o *Options) Run(ctx context.Context) error {
	objects, err := manifests.Render(o.Render)
	if err != nil {
		return err
	}
	if o.DryRun == "client" {
		text, err := manifests.YAML(objects)
		if err != nil {
			return err
		}
		_, err = o.Streams.Out.Write(text)
		return err
	}
	c, err := o.Factory.Client()
	if err != nil {
		return err
	}
	report := progress.New(o.Streams, o.Factory.Clock(), o.Quiet)
	defer report.Stop()
	if err := o.before(ctx, c, report); err != nil {
		return err
	}
	changed, err := o.apply(ctx, c, objects)
	if err != nil {
		return installation.Explain(err)
	}
	if o.DryRun != "" {
		report.Done("dry run: nothing was changed")
		return nil
	}
	if err := installation.Record(o.Record, objects); err != nil {
		return err
	}
	if o.Wait {
		if err := installation.Wait(ctx, c, o.Factory.Clock(), o.Render.Namespace, o.Timeout, report); err != nil {
			return err
		}
	}
	switch {
	case changed == 0:
		report.Done("unchanged: the operator is installed in namespace %s", o.Render.Namespace)
		return nil
	case o.Wait:
		report.Done("the operator runs in namespace %s", o.Render.Namespace)
	default:
		report.Done("applied; the controllers start in namespace %s", o.Render.Namespace)
	}
	if !o.Quiet {
		name := o.Factory.Name()
		fmt.Fprintf(o.Streams.ErrOut, "\nNext\n  %s check\n  %s create ag demo --replicas 3 --accept-eula\n  %s status\n", name, name, name)
	}
	return nil
}

// apply sends the objects and prints one line for each.
func (o *Options) apply(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) (changed int, err error) {
	_, err = manifests.Apply(ctx, c, objects, manifests.ApplyOptions{
		ForceConflicts: o.ForceConflicts, DryRun: o.DryRun == "server",
		Report: func(a manifests.Applied) {
			if a.Result != manifests.Unchanged {
				changed++
			}
			fmt.Fprint(o.Streams.Out, installation.Line(a.Object, string(a.Result)))
		},
	})
	return changed, err
}

// before refuses to fight with another tool, and looks at what check --pre looks at.
func (o *Options) before(ctx context.Context, c client.Client, report *progress.Reporter) error {
	if err := installation.NeedMonitoring(c, o.Render); err != nil {
		return err
	}
	if !o.ForceConflicts {
		present, err := installation.Get(ctx, c, o.Render.Namespace)
		if err != nil {
			return installation.Explain(err)
		}
		if err := installation.RefuseForeign(present); err != nil {
			return err
		}
	}
	if !o.Preflight {
		return nil
	}
	config, err := o.Factory.RESTConfig()
	if err != nil {
		return err
	}
	ns, _, err := o.Factory.Namespace()
	if err != nil {
		return err
	}
	report.Step("looking at the cluster")
	ch := check.Checker{Client: c, Server: check.AskServer(config, o.Factory.Clock()), Namespace: ns, Self: o.Factory.Name(), Render: o.Render}
	return o.judge(ch.Pre(ctx), report)
}

// judge prints what the preflight found. A missing right or another operator stops the
// installation; what only SQL Server itself will need is told, and left to the user.
func (o *Options) judge(rows []check.Row, report *progress.Reporter) error {
	var stopped *check.Row
	code := exit.Refused
	for i := range rows {
		r := rows[i]
		switch {
		case r.Status == check.OK:
			continue
		case r.Status == check.Fail && stops(r.Code) && !(o.ForceConflicts && r.Code == check.CodeForeignOwner):
			report.Fail("%s: %s (%s)", r.Name, r.Message, r.Code)
			if stopped == nil {
				stopped = &rows[i]
			}
		default:
			report.Warn("%s: %s (%s)", r.Name, r.Message, r.Code)
		}
		if r.Hint != "" && !o.Quiet {
			fmt.Fprintf(o.Streams.ErrOut, "    hint: %s\n", r.Hint)
		}
	}
	if stopped == nil {
		return nil
	}
	switch stopped.Code {
	case check.CodePermission:
		code = exit.Forbidden
	case check.CodeUnreachable:
		code = exit.Unexpected
	}
	return exit.Errorf(code, "see "+o.Factory.Name()+" explain "+stopped.Code+"; --preflight=false leaves these checks out",
		"the cluster is not ready, and nothing was changed: %s: %s", stopped.Name, stopped.Message)
}

// stops tells whether a failed check makes the installation itself fail or do harm.
func stops(code string) bool {
	switch code {
	case check.CodeUnreachable, check.CodeOldKubernetes, check.CodePermission, check.CodeForeignOwner,
		check.CodeCRDConflict, check.CodeOtherOperator, check.CodeNamespaceGone:
		return true
	}
	return false
}
