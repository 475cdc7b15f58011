package complete

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/measure"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
)

// filter tells which replicas a verb may take.
type filter func(r api.ReplicaStatus) bool

// legal is the filter of a verb: a move goes to a secondary with data, a fence is lifted
// from a fenced one; everything else takes any.
func legal(cmd *cobra.Command) filter {
	parent := ""
	if cmd.HasParent() {
		parent = cmd.Parent().Name()
	}
	switch {
	case cmd.Name() == "failover" || cmd.Name() == "switchover":
		return func(r api.ReplicaStatus) bool {
			return r.Role != "PRIMARY" && r.AvailabilityMode != api.ConfigurationOnly && !r.Fenced
		}
	case parent == "fence" && cmd.Name() == "off":
		return func(r api.ReplicaStatus) bool { return r.Fenced }
	case parent == "fence" && cmd.Name() == "on":
		return func(r api.ReplicaStatus) bool { return !r.Fenced }
	case cmd.Name() == "reinit":
		return func(r api.ReplicaStatus) bool { return r.Role != "PRIMARY" }
	}
	return func(api.ReplicaStatus) bool { return true }
}

// replicas of a group with what is known of each; the pod of an instance.
func replicas(ctx context.Context, f factory.Factory, name string, may filter) ([]cobra.Completion, error) {
	if name == "" {
		return nil, errors.New("type the name first")
	}
	g, err := group(ctx, f, name)
	if apierrors.IsNotFound(err) {
		c, ns, cerr := connect(f)
		if cerr != nil {
			return nil, cerr
		}
		var i api.SQLServerInstance
		if c.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, &i) == nil {
			return []cobra.Completion{name + "-0"}, nil
		}
	}
	if err != nil {
		return nil, err
	}
	seen := map[string]api.ReplicaStatus{}
	for _, r := range g.Status.ReplicaStatuses {
		seen[r.Name] = r
	}
	report := ask(ctx, f, g)
	var out []cobra.Completion
	for i, spec := range g.Spec.Replicas {
		r := seen[g.ReplicaName(i)]
		r.Name, r.AvailabilityMode = g.ReplicaName(i), spec.AvailabilityMode
		if may(r) {
			out = append(out, cobra.CompletionWithDesc(r.Name, describe(r, report)))
		}
	}
	return out, nil
}

func group(ctx context.Context, f factory.Factory, name string) (*api.SQLServerAvailabilityGroup, error) {
	c, ns, err := connect(f)
	if err != nil {
		return nil, err
	}
	var g api.SQLServerAvailabilityGroup
	if err := c.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, &g); err != nil {
		return nil, err
	}
	return &g, nil
}

// ask the primary's manager for the lag; without an answer the description is shorter.
func ask(ctx context.Context, f factory.Factory, g *api.SQLServerAvailabilityGroup) *managerapi.Report {
	primary := g.Status.PrimaryReplica
	config, err := f.RESTConfig()
	if err != nil || primary == "" {
		return nil
	}
	asker, err := measure.New(config)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout/2)
	defer cancel()
	r, err := asker.Report(ctx, g.Namespace, primary)
	if err != nil {
		return nil
	}
	return &r
}

func describe(r api.ReplicaStatus, report *managerapi.Report) string {
	text := r.State
	if text == "" {
		text = "not seen yet"
	}
	switch {
	case r.Role == "PRIMARY":
		return "primary, " + text
	case r.AvailabilityMode == api.ConfigurationOnly:
		return "witness"
	case r.AvailabilityMode == api.AsynchronousCommit:
		text = "async, " + text
	}
	if report != nil {
		if lag, known := report.Lag(r.Name); known {
			text += fmt.Sprintf(", lag %s", time.Duration(lag)*time.Second)
		}
	}
	if r.FailoverRefusal != "" && !r.FailoverReady {
		rule, _, _ := strings.Cut(r.FailoverRefusal, ":")
		text += ", refused by " + rule
	}
	return text
}

// databases of a group, declared or found.
func databases(ctx context.Context, f factory.Factory, name string) ([]cobra.Completion, error) {
	if name == "" {
		return nil, errors.New("type the name first")
	}
	g, err := group(ctx, f, name)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{"master": true}
	for _, d := range g.Spec.Databases {
		found[d.Name] = true
	}
	for _, r := range g.Status.ReplicaStatuses {
		for _, d := range r.Databases {
			found[d.Name] = true
		}
	}
	if report := ask(ctx, f, g); report != nil {
		for _, c := range report.Copies {
			found[c.Database] = true
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}
