// Package uninstall is `kubectl mssql uninstall`: it takes the operator away and
// leaves what belongs to the user.
package uninstall

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/confirm"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
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
	fl.StringSliceVar(&o.WatchNamespaces, "watch-namespaces", nil, "the namespaces that install was given, to remove the Roles there")
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
	render := manifests.Default()
	render.Namespace, render.WatchNamespaces = o.Namespace, o.WatchNamespaces
	objects, err := manifests.Render(render)
	if err != nil {
		return err
	}
	var targets []*unstructured.Unstructured
	for i := len(objects) - 1; i >= 0; i-- { // the reverse of the order of installation
		switch objects[i].GetKind() {
		case "Namespace":
			continue
		case "CustomResourceDefinition":
			if !o.DeleteCRDs {
				continue
			}
		}
		targets = append(targets, objects[i])
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
	for _, u := range targets {
		report.Step("removing %s", manifests.Describe(u))
		result := "deleted"
		if err := c.Delete(ctx, u, client.PropagationPolicy("Foreground")); err != nil {
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("delete %s: %w", manifests.Describe(u), err)
			}
			result = "not found"
		}
		fmt.Fprintf(o.Streams.Out, "%s/%s %s\n", strings.ToLower(u.GetKind()), u.GetName(), result)
	}
	report.Done("the operator is gone; %s", kept(users))
	return nil
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
