package fence

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/change"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/output"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/table"
)

// List is the document of `fence list`.
type List struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Items      []Item `json:"items"`
}

// Item is one fenced replica. Since is RFC 3339, empty when the order does not say it.
type Item struct {
	Namespace string `json:"namespace"`
	Group     string `json:"group"`
	Replica   string `json:"replica"`
	State     string `json:"state"`
	Since     string `json:"since"`
	By        string `json:"by"`
	Reason    string `json:"reason"`
}

type listOptions struct {
	name    string
	all     bool
	output  *output.Flags
	factory factory.Factory
	streams *iostreams.IOStreams
}

func newList(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	o := &listOptions{output: output.New(), factory: f, streams: s}
	cmd := &cobra.Command{
		Use:     "list [NAME]",
		Short:   "List the replicas that are fenced, by whom and why",
		Example: fmt.Sprintf("  %[1]s fence list\n\n  %[1]s fence list -A -o json", f.Name()),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exit.Errorf(exit.Usage, fmt.Sprintf("see %s --help", cmd.CommandPath()), "want at most one name, got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.name = args[0]
			}
			return o.run(cmd.Context())
		},
	}
	o.output.AddTo(cmd)
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "of all namespaces")
	return cmd
}

func (o *listOptions) run(ctx context.Context) error {
	if err := o.output.Validate(); err != nil {
		return err
	}
	objects, err := o.objects(ctx)
	if err != nil {
		return err
	}
	doc := List{APIVersion: output.APIVersion, Kind: "FenceList", Items: []Item{}}
	var names []string
	for _, x := range objects {
		fenced, err := api.ParseFenced(x.GetAnnotations()[api.AnnotationFenced])
		if err != nil {
			fmt.Fprintf(o.streams.ErrOut, "%s %s/%s: %v\n", o.streams.Mark(iostreams.MarkWarn), x.GetNamespace(), x.GetName(), err)
			continue
		}
		for _, f := range fenced {
			it := Item{Namespace: x.GetNamespace(), Group: x.GetName(), Replica: f.Replica, By: f.By, Reason: f.Reason, State: stateOf(x, f.Replica)}
			if f.Since != nil {
				it.Since = f.Since.UTC().Format(time.RFC3339)
			}
			doc.Items = append(doc.Items, it)
			names = append(names, "replica/"+f.Replica)
		}
	}
	if !o.output.Text() {
		return o.output.Write(o.streams.Out, doc, false, names...)
	}
	if len(doc.Items) == 0 {
		fmt.Fprintln(o.streams.ErrOut, "No replica is fenced.")
		return nil
	}
	rows := make([][]string, 0, len(doc.Items))
	for _, it := range doc.Items {
		rows = append(rows, []string{it.Namespace + "/" + it.Group, it.Replica, it.State, it.Since, it.By, it.Reason})
	}
	return table.Write(o.streams.Out, []string{"GROUP", "REPLICA", "STATE", "SINCE", "BY", "REASON"}, rows)
}

// stateOf a replica as the status tells it.
func stateOf(x client.Object, replica string) string {
	switch x := x.(type) {
	case *api.SQLServerAvailabilityGroup:
		if s := change.StatusOf(x, replica); s != nil {
			return s.State
		}
	case *api.SQLServerInstance:
		return strings.ToLower(string(x.Status.Phase))
	}
	return ""
}

// objects are the group or instance of the name, or all of them.
func (o *listOptions) objects(ctx context.Context) ([]client.Object, error) {
	ns, _, err := o.factory.Namespace()
	if err != nil {
		return nil, err
	}
	c, err := o.factory.Client()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if o.name != "" {
		return o.named(ctx, c, ns)
	}
	var opts []client.ListOption
	if !o.all {
		opts = append(opts, client.InNamespace(ns))
	}
	var groups api.SQLServerAvailabilityGroupList
	if err := c.List(ctx, &groups, opts...); err != nil {
		if meta.IsNoMatchError(err) {
			return nil, exit.Errorf(exit.NotFound, o.factory.Name()+" install", "the operator is not installed in this cluster")
		}
		return nil, fmt.Errorf("list availability groups: %w", err)
	}
	var out []client.Object
	for i := range groups.Items {
		out = append(out, &groups.Items[i])
	}
	var instances api.SQLServerInstanceList
	if err := c.List(ctx, &instances, opts...); err != nil {
		fmt.Fprintf(o.streams.ErrOut, "%s instances were not seen: %v\n", o.streams.Mark(iostreams.MarkWarn), err)
	}
	for i := range instances.Items {
		out = append(out, &instances.Items[i])
	}
	return out, nil
}

func (o *listOptions) named(ctx context.Context, c client.Client, ns string) ([]client.Object, error) {
	key := client.ObjectKey{Namespace: ns, Name: o.name}
	g := &api.SQLServerAvailabilityGroup{}
	err := c.Get(ctx, key, g)
	if err == nil {
		return []client.Object{g}, nil
	}
	if !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("read availability group %s: %w", o.name, err)
	}
	i := &api.SQLServerInstance{}
	if err := c.Get(ctx, key, i); err != nil {
		return nil, exit.Errorf(exit.NotFound, o.factory.Name()+" status lists what is there", "there is no availability group or instance %s in namespace %s", o.name, ns)
	}
	return []client.Object{i}, nil
}
