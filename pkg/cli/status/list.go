package status

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/output"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/reasons"
)

// ListDocument is the machine-readable list, worst first.
type ListDocument struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Items      []ListRow `json:"items"`
	Errors     []Unseen  `json:"errors"`
	// ExitCode is the worst of the items'.
	ExitCode int `json:"exitCode"`
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
	Writable    bool   `json:"writable"`
	Reason      string `json:"reason"`
	ExitCode    int    `json:"exitCode"`
}

// list shows all groups and instances, worst first: from the resources alone, and from
// whether an operator looks after them.
func (o *Options) list(ctx context.Context, c *Collector) error {
	return o.show(ctx, func(ctx context.Context) (screen, error) {
		doc, err := c.List(ctx, o.AllNamespaces)
		if err != nil {
			return nil, err
		}
		return &listScreen{o: o, doc: doc, where: c.where(o.AllNamespaces)}, nil
	})
}

func (c *Collector) where(all bool) string {
	if all {
		return "any namespace"
	}
	return "namespace " + c.Namespace
}

// List reads all resources of the namespace, or of all.
func (c *Collector) List(ctx context.Context, all bool) (ListDocument, error) {
	ctx, cancel := context.WithTimeout(ctx, collectTimeout)
	defer cancel()
	opts := []client.ListOption{}
	if !all {
		opts = append(opts, client.InNamespace(c.Namespace))
	}
	doc := ListDocument{APIVersion: output.APIVersion, Kind: KindList, Items: []ListRow{}, Errors: []Unseen{}}
	var beside around
	var wg sync.WaitGroup
	wg.Go(func() { c.readOperator(ctx, &beside) })
	defer wg.Wait()
	var groups api.SQLServerAvailabilityGroupList
	gerr := c.Client.List(ctx, &groups, opts...)
	if meta.IsNoMatchError(gerr) {
		return doc, exit.Errorf(exit.NotFound, c.Factory.Name()+" install", "the operator is not installed in this cluster")
	}
	var instances api.SQLServerInstanceList
	ierr := c.Client.List(ctx, &instances, opts...)
	for _, x := range []struct {
		err    error
		source string
	}{{gerr, "availability groups"}, {ierr, "instances"}} {
		switch {
		case x.err == nil:
		case gerr != nil && ierr != nil:
			return doc, fmt.Errorf("list %s in %s: %w", x.source, c.where(all), x.err)
		case apierrors.IsForbidden(x.err):
			doc.Errors = append(doc.Errors, Unseen{reasons.Code("Forbidden"), fmt.Sprintf("%s: you may not list them in %s", x.source, c.where(all)), x.source})
		default:
			doc.Errors = append(doc.Errors, Unseen{reasons.Code("NotMeasured"), x.source + ": " + firstLine(x.err), x.source})
		}
	}
	wg.Wait()
	now := c.Factory.Clock().Now()
	for i := range groups.Items {
		d := Build(Input{Group: &groups.Items[i], Operator: beside.operator, Now: now, Self: c.Factory.Name()})
		doc.Items = append(doc.Items, ListRow{
			d.Namespace, d.Name, "AG", d.Phase, d.Level, d.Primary, fraction(d.ReadyReplicas, len(d.Replicas)), d.SafeTargets, d.Writable, d.Reason, d.ExitCode,
		})
	}
	for i := range instances.Items {
		d := BuildInstance(InstanceInput{Instance: &instances.Items[i], Operator: beside.operator, Now: now, Self: c.Factory.Name()})
		ready := "0/1"
		switch {
		case d.Level == LevelOK:
			ready = "1/1"
		case d.Phase == PhaseUnknown || d.Phase == PhaseUnattended:
			ready = "?/1"
		}
		doc.Items = append(doc.Items, ListRow{d.Namespace, d.Name, "instance", d.Phase, d.Level, "", ready, 0, d.Writable || d.Level == LevelOK, d.Reason, d.ExitCode})
	}
	rank := map[Level]int{LevelBad: 0, LevelWarn: 1, LevelOK: 2}
	slices.SortStableFunc(doc.Items, func(a, b ListRow) int {
		if d := rank[a.Level] - rank[b.Level]; d != 0 {
			return d
		}
		if d := b.ExitCode - a.ExitCode; d != 0 {
			return d
		}
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
	for _, r := range doc.Items {
		doc.ExitCode = max(doc.ExitCode, r.ExitCode)
	}
	return doc, nil
}

// listScreen is the table.
type listScreen struct {
	o     *Options
	doc   ListDocument
	where string
}

func (x *listScreen) text(w io.Writer) error {
	s := x.o.Streams
	for _, e := range x.doc.Errors {
		fmt.Fprintf(s.ErrOut, "Not seen  %s\n", e.Message)
	}
	if len(x.doc.Items) == 0 {
		fmt.Fprintf(s.ErrOut, "No availability group or instance in %s.\n", x.where)
		return nil
	}
	width := s.Width
	if x.o.Output.Format() == "wide" {
		width = 0
	}
	t := &text{s: s, o: TextOptions{Color: s.ColorOut(), Width: width}}
	table := Table{
		Header: []string{" ", "NAME", "TYPE", "PHASE", "PRIMARY", "READY", "SAFE", "REASON"},
		Whole:  []string{" ", "NAME", "TYPE", "PHASE", "READY", "SAFE"}, Width: width,
		Paint: func(col, cell string, row int) string {
			switch col {
			case " ", "PHASE":
				_, st := levelStyle(x.doc.Items[row].Level)
				return t.paint(st, cell)
			}
			return cell
		},
	}
	for _, r := range x.doc.Items {
		mark, _ := levelStyle(r.Level)
		safe := "-"
		if r.Type == "AG" {
			safe = fmt.Sprint(r.SafeTargets)
		}
		table.Rows = append(table.Rows, []string{s.Plain(mark), r.Namespace + "/" + r.Name, r.Type, r.Phase, dash(r.Primary), r.Ready, safe, dash(headline(r.Reason))})
	}
	_, err := io.WriteString(w, s.Plain(table.String()))
	return err
}

func (x *listScreen) document(w io.Writer, compact bool) error {
	var names []string
	for _, r := range x.doc.Items {
		kind := "sqlserveravailabilitygroup"
		if r.Type != "AG" {
			kind = "sqlserverinstance"
		}
		names = append(names, kind+".kubectl-mssql.io/"+r.Name)
	}
	return x.o.Output.Write(w, x.doc, compact, names...)
}

func (x *listScreen) fingerprint() string { return asJSON(x.doc) }

func (x *listScreen) verdict() (Level, exit.Code, string) {
	level := LevelOK
	if len(x.doc.Items) > 0 {
		level = x.doc.Items[0].Level
	}
	worst := "nothing is there"
	if len(x.doc.Items) > 0 {
		r := x.doc.Items[0]
		worst = fmt.Sprintf("%s/%s is %s", r.Namespace, r.Name, strings.ToLower(phaseWord(r.Phase)))
	}
	return level, exit.Code(x.doc.ExitCode), worst
}
