// Package uninstall is `kubectl mssql uninstall`: it takes the operator away and
// leaves what belongs to the user.
package uninstall

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/confirm"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/installation"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/progress"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// Options of uninstall.
type Options struct {
	Namespace       string
	WatchNamespaces []string
	DryRun          bool
	Yes             bool
	DeleteCRDs      bool
	Confirm         string
	Quiet           bool

	Factory factory.Factory
	Streams *iostreams.IOStreams
}

// New is the command.
func New(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	o := &Options{Namespace: manifests.DefaultNamespace, Factory: f, Streams: s}
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Remove the operator; keep resource definitions, groups, data and running servers",
		Long: `Remove the operator: its Deployment, roles and account.

Custom resource definitions, availability groups, instances, Secrets, volumes and the namespace stay,
and the servers keep running, without automatic failover.`,
		Example: fmt.Sprintf(`  # show what would go and what would stay
  %[1]s uninstall --dry-run

  # without a question
  %[1]s uninstall --yes`, f.Name()),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if ns := cmd.Flag("namespace"); ns != nil && ns.Changed {
				o.Namespace = ns.Value.String()
			}
			return o.Run(cmd.Context())
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&o.DryRun, "dry-run", false, "show what would be removed; change nothing")
	fl.BoolVarP(&o.Yes, "yes", "y", false, "do not ask")
	fl.StringSliceVar(&o.WatchNamespaces, "watch-namespaces", nil, "the namespaces with Roles of the operator; those of the last install when left out")
	fl.BoolVar(&o.DeleteCRDs, "delete-crds", false, "remove the custom resource definitions too; refused while a group or an instance exists")
	fl.StringVar(&o.Confirm, "confirm", "", "with --delete-crds: the operator's namespace, instead of typing it")
	fl.BoolVarP(&o.Quiet, "quiet", "q", false, "no progress")
	return cmd
}

// Run asks, removes and lists what stays.
func (o *Options) Run(ctx context.Context) error {
	c, err := o.Factory.Client()
	if err != nil {
		return err
	}
	users, err := existing(ctx, c)
	if err != nil {
		return err
	}
	if o.DeleteCRDs && len(users) > 0 {
		return exit.Errorf(exit.Refused, "delete them first, or leave --delete-crds out",
			"the resource definitions are in use by %s", strings.Join(users, ", "))
	}
	targets, err := o.targets(ctx, c)
	if err != nil {
		return err
	}
	o.plan(targets, users)
	if o.DryRun {
		return nil
	}
	if err := o.confirm(); err != nil {
		return err
	}
	report := progress.New(o.Streams, o.Factory.Clock(), o.Quiet)
	defer report.Stop()
	report.Step("removing the operator")
	if err := installation.Remove(ctx, c, targets, func(u *unstructured.Unstructured, result string) {
		fmt.Fprint(o.Streams.Out, installation.Line(u, result))
	}); err != nil {
		return installation.Explain(err)
	}
	report.Done("the operator is gone; %s", kept(users))
	return nil
}

// targets are what is to be removed, in the reverse order of installation: what is
// rendered with the options of the last install, and what earlier ones have left.
// Definitions are among them only when they were asked for and nobody else uses them.
func (o *Options) targets(ctx context.Context, c client.Client) ([]*unstructured.Unstructured, error) {
	present, err := installation.Get(ctx, c, o.Namespace)
	if err != nil {
		return nil, installation.Explain(err)
	}
	if present != nil && present.Owner != nil {
		return nil, exit.Errorf(exit.Refused, "remove it with that tool, which would bring it back",
			"the operator in namespace %s is managed by %s", o.Namespace, present.Owner)
	}
	render := manifests.Default()
	if present != nil && present.Settings != nil {
		render = present.Settings.Options
		render.Patches = nil // names and namespaces are what counts
	} else if present != nil {
		render.WatchNamespaces = present.WatchNamespaces()
	}
	render.Namespace = o.Namespace
	if len(o.WatchNamespaces) > 0 {
		render.WatchNamespaces = o.WatchNamespaces
	}
	objects, err := manifests.Render(render)
	if err != nil {
		return nil, err
	}
	if o.DeleteCRDs {
		others, err := installation.Find(ctx, c)
		if err != nil {
			return nil, installation.Explain(err)
		}
		for _, i := range others {
			if i.Namespace != o.Namespace {
				return nil, exit.Errorf(exit.Refused, "leave --delete-crds out", "the operator in namespace %s uses the resource definitions too", i.Namespace)
			}
		}
	}
	left, skipped, err := installation.Leftovers(ctx, c, o.Namespace, objects)
	if err != nil {
		return nil, err
	}
	for _, s := range skipped {
		fmt.Fprintf(o.Streams.ErrOut, "not seen, so leftovers of it stay: %s\n", s)
	}
	var out []*unstructured.Unstructured
	for i := len(objects) - 1; i >= 0; i-- {
		switch objects[i].GetKind() {
		case "Namespace":
		case "CustomResourceDefinition":
			if o.DeleteCRDs {
				out = append(out, objects[i])
			}
		default:
			out = append(out, objects[i])
		}
	}
	if o.DeleteCRDs { // the operator first, the definitions last
		slices.SortStableFunc(out, func(a, b *unstructured.Unstructured) int {
			return boolInt(a.GetKind() == "CustomResourceDefinition") - boolInt(b.GetKind() == "CustomResourceDefinition")
		})
	}
	return append(left, out...), nil
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func kept(users []string) string {
	if len(users) == 0 {
		return "no group or instance existed"
	}
	return fmt.Sprintf("%s keep running without automatic failover", strings.Join(users, ", "))
}

func (o *Options) plan(targets []*unstructured.Unstructured, users []string) {
	fmt.Fprintf(o.Streams.ErrOut, "Remove the operator from namespace %s\n  goes   ", o.Namespace)
	for i, u := range targets {
		if i > 0 {
			fmt.Fprint(o.Streams.ErrOut, "         ")
		}
		fmt.Fprintln(o.Streams.ErrOut, manifests.Describe(u))
	}
	stays := "custom resource definitions, Secrets, volumes, the namespace"
	if o.DeleteCRDs {
		stays = "Secrets, volumes, the namespace"
	}
	fmt.Fprintf(o.Streams.ErrOut, "  stays  %s\n", stays)
	if len(users) > 0 {
		fmt.Fprintf(o.Streams.ErrOut, "  runs   %s: without automatic failover until the operator is back\n", strings.Join(users, ", "))
	}
}

// confirm asks for y, or for the namespace's name when resource definitions go.
func (o *Options) confirm() error {
	if o.DeleteCRDs {
		return confirm.Typed(o.Streams, o.Yes, o.Confirm, o.Namespace,
			fmt.Sprintf("Type the namespace %s to remove the resource definitions too: ", o.Namespace),
			fmt.Sprintf("--delete-crds --yes --confirm=%s", o.Namespace))
	}
	return confirm.YesNo(o.Streams, o.Yes, "--yes")
}

// existing lists groups and instances as "sqlag/ns/name".
func existing(ctx context.Context, c client.Client) ([]string, error) {
	var names []string
	var ags api.SQLServerAvailabilityGroupList
	if err := c.List(ctx, &ags); err != nil && !manifests.NoSuchKind(err) {
		return nil, fmt.Errorf("list availability groups: %w", err)
	}
	for _, g := range ags.Items {
		names = append(names, "sqlag/"+g.Namespace+"/"+g.Name)
	}
	var instances api.SQLServerInstanceList
	if err := c.List(ctx, &instances); err != nil && !manifests.NoSuchKind(err) {
		return nil, fmt.Errorf("list instances: %w", err)
	}
	for _, i := range instances.Items {
		names = append(names, "sqli/"+i.Namespace+"/"+i.Name)
	}
	return names, nil
}
