package status

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/version"
)

// ListDocument is the machine-readable list.
type ListDocument struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Items      []ListRow `json:"items"`
	Errors     []string  `json:"errors"`
}

// ListRow is one group or instance.
type ListRow struct {
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
	Type        string `json:"type"` // AG or instance
	Phase       string `json:"phase"`
	Level       Level  `json:"level"`
	Primary     string `json:"primary"`
	Ready       string `json:"ready"`
	SafeTargets int    `json:"safeTargets"`
	Reason      string `json:"reason"`
}

// list shows all groups and instances, worst first.
func (o *Options) list(ctx context.Context, c client.Client, ns string) error {
	opts := []client.ListOption{}
	where := "any namespace"
	if !o.AllNamespaces {
		opts = append(opts, client.InNamespace(ns))
		where = "namespace " + ns
	}
	doc := ListDocument{APIVersion: "cli.kubectl-mssql.io/v1", Kind: "StatusList", Items: []ListRow{}, Errors: []string{}}
	var groups api.SQLServerAvailabilityGroupList
	if err := c.List(ctx, &groups, opts...); err != nil {
		if meta.IsNoMatchError(err) {
			return exit.Errorf(exit.NotFound, o.Factory.Name()+" install", "the operator is not installed in this cluster")
		}
		return fmt.Errorf("list availability groups in %s: %w", where, err)
	}
	for i := range groups.Items {
		g := &groups.Items[i]
		d := Build(Input{Group: g, Now: o.Factory.Clock().Now(), Plugin: version.Get().Version, Self: o.Factory.Name()})
		doc.Items = append(doc.Items, ListRow{g.Namespace, g.Name, "AG", d.Phase, d.Level, d.Primary,
			fmt.Sprintf("%d/%d", d.ReadyReplicas, len(d.Replicas)), d.SafeTargets, d.Reason})
	}
	var instances api.SQLServerInstanceList
	if err := c.List(ctx, &instances, opts...); err != nil {
		doc.Errors = append(doc.Errors, fmt.Sprintf("instances in %s: %v", where, err))
	}
	for i := range instances.Items {
		in := &instances.Items[i]
		row := ListRow{Namespace: in.Namespace, Name: in.Name, Type: "instance", Phase: string(in.Status.Phase), Level: LevelWarn, Ready: "0/1", Reason: in.Status.Reason}
		switch in.Status.Phase {
		case api.PhaseRunning:
			row.Level, row.Ready = LevelOK, "1/1"
		case api.PhaseFailed:
			row.Level = LevelBad
		case "":
			row.Phase = string(api.PhasePending)
		}
		doc.Items = append(doc.Items, row)
	}
	rank := map[Level]int{LevelBad: 0, LevelWarn: 1, LevelOK: 2}
	slices.SortStableFunc(doc.Items, func(a, b ListRow) int {
		if d := rank[a.Level] - rank[b.Level]; d != 0 {
			return d
		}
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	switch o.Output {
	case "json":
		enc := json.NewEncoder(o.Streams.Out)
		enc.SetIndent("", "  ")
		return enc.Encode(doc)
	case "yaml":
		text, err := yaml.Marshal(doc)
		if err != nil {
			return fmt.Errorf("write the list: %w", err)
		}
		_, err = o.Streams.Out.Write(text)
		return err
	}
	if len(doc.Items) == 0 {
		fmt.Fprintf(o.Streams.ErrOut, "No availability group or instance in %s.\n", where)
		return nil
	}
	t := &text{s: o.Streams, o: TextOptions{Color: o.Streams.ColorOut()}}
	rows := make([][]string, 0, len(doc.Items))
	for _, r := range doc.Items {
		mark, _ := levelStyle(r.Level)
		rows = append(rows, []string{mark, r.Namespace + "/" + r.Name, r.Type, r.Phase, dash(r.Primary), r.Ready, r.Reason})
	}
	t.table([]string{" ", "NAME", "TYPE", "PHASE", "PRIMARY", "READY", "REASON"}, rows,
		func(string) bool { return true },
		func(col, cell string, row int) string {
			if col == " " || col == "PHASE" {
				_, st := levelStyle(doc.Items[row].Level)
				return t.paint(st, cell)
			}
			return cell
		})
	for _, e := range doc.Errors {
		fmt.Fprintf(o.Streams.ErrOut, "Not seen  %s\n", e)
	}
	_, err := o.Streams.Out.Write([]byte(o.Streams.Plain(t.b.String())))
	return err
}
