package failover

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/change"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
)

// plan is what will happen, in the user's words.
func (o *Options) plan() *change.Plan {
	g := o.Group
	to, verb := o.To, "Switch over"
	if to == "" {
		to = "the best candidate"
	}
	if o.maxLoss != 0 {
		verb = "Force"
	}
	p := &change.Plan{Title: fmt.Sprintf("%s %s/%s: %s -> %s", verb, g.Namespace, g.Name, orDash(g.Status.PrimaryReplica), to), Level: change.Outage, Word: g.Name}
	for _, r := range candidates(g) {
		if r.Name == g.Status.PrimaryReplica || o.To != "" && r.Name != o.To {
			continue
		}
		if r.Ready {
			p.Add("checks", "%s holds every commit and may be promoted", r.Name)
		} else {
			p.Add("checks", "%s would be refused: %s", r.Name, r.Refusal)
		}
	}
	if o.Direct {
		p.Add("direct", "this command carries it out; stay until it is done")
	}
	if o.maxLoss == 0 {
		p.Add("effect", "writes stop %s; sessions on %s are closed", change.Expected(g), orDash(g.Status.PrimaryReplica))
		p.Add("loss", "none: refused if the target lacks anything at the moment of the move")
		p.Add("after", "%s stays as a secondary", orDash(g.Status.PrimaryReplica))
		return p
	}
	p.Raise(change.Loss)
	p.Add("effect", "sessions are closed; the old primary is fenced first, which takes up to the full wait when it is silent")
	p.Add("loss", "%s", o.lossText(g))
	p.Add("after", "the other replicas are suspended until they are resumed or seeded anew, and are no candidates until then")
	return p
}

// lossText says what may be lost. What cannot be known is said to be unknown.
func (o *Options) lossText(g *api.SQLServerAvailabilityGroup) string {
	if o.To == g.Status.PrimaryReplica && o.To != "" {
		return "none: it is the last primary itself, and holds every acknowledged commit"
	}
	known := "an unknown number of acknowledged commits"
	if o.maxLoss > 0 {
		known = fmt.Sprintf("up to %d s of acknowledged commits, refused when it may be more", o.maxLoss)
	}
	if g.Status.PrimaryReplica == "" {
		since := ""
		if c := meta.FindStatusCondition(g.Status.Conditions, api.ConditionAvailable); c != nil && c.Status != metav1.ConditionTrue {
			since = " since " + c.LastTransitionTime.UTC().Format(time.RFC3339)
		}
		return known + "; the primary cannot be asked" + since
	}
	var databases []string
	if t := change.StatusOf(g, o.To); t != nil {
		for _, d := range t.Databases {
			databases = append(databases, fmt.Sprintf("%s is %s", d.Name, d.SynchronizationState))
		}
	}
	if len(databases) > 0 {
		known += "; on " + o.To + " " + strings.Join(databases, ", ")
	}
	return known
}

// candidates are the operator's own verdicts, live in the status.
func candidates(g *api.SQLServerAvailabilityGroup) []change.Candidate {
	var rows []change.Candidate
	for _, r := range g.Status.ReplicaStatuses {
		row := change.Candidate{Name: r.Name, Role: r.Role, Ready: r.FailoverReady, Refusal: r.FailoverRefusal}
		if r.Name == g.Status.PrimaryReplica {
			row.Ready, row.Refusal = false, "it is the primary"
		} else if !row.Ready && row.Refusal == "" {
			row.Refusal = "not seen yet"
		}
		rows = append(rows, row)
	}
	return rows
}

// dryRun prints what the operator's own rules say about every replica. It ends as the
// real call would.
func (o *Options) dryRun(ctx context.Context, r *change.Result) error {
	g := o.Group
	r.Replicas, r.Result = candidates(g), change.ResultDryRun
	r.To, r.UnderWay = o.choice(r.Replicas), underWay(g)
	if !o.Direct { // else everything was looked at just now
		r.Outdated = o.outdated(ctx)
	}
	q, err := o.request(ctx)
	if err != nil {
		return err
	}
	r.Request, r.Plan = q, o.plan().Lines
	if o.Output.Text() {
		fmt.Fprintf(o.Streams.Out, "%s/%s: primary %s\n", g.Namespace, g.Name, orDash(g.Status.PrimaryReplica))
		if r.Outdated != "" {
			fmt.Fprintf(o.Streams.Out, "outdated: %s; what follows may not be so any more\n", r.Outdated)
		}
		for _, c := range r.Replicas {
			what := "could be promoted without loss"
			if !c.Ready {
				what = "refused  " + c.Refusal
			}
			fmt.Fprintf(o.Streams.Out, "  %-15s  %-10s  %s\n", c.Name, orDash(c.Role), what)
		}
		for _, l := range underWayLines(r.UnderWay, o.Factory.Clock().Now()) {
			fmt.Fprintf(o.Streams.Out, "%s\n", l)
		}
		if change.DryRun(o.DryRun) == change.DryRunClient {
			fmt.Fprintf(o.Streams.Out, "would send: %s\n", q.String())
		}
	}
	if o.To != "" && o.To == g.Status.PrimaryReplica {
		if o.Output.Text() {
			fmt.Fprintf(o.Streams.Out, "%s is primary already\n", o.To)
		}
		r.To = o.To
		return nil
	}
	if change.DryRun(o.DryRun) == change.DryRunServer {
		if err := o.Place(ctx, q); err != nil {
			return err
		}
	}
	if r.To == "" && o.maxLoss == 0 {
		return exit.Errorf(exit.Refused, "", "no replica could be promoted without loss now")
	}
	if o.Output.Text() {
		what := "would promote " + r.To
		if op := change.Operation(g); op != nil && o.To == "" {
			what = "the order would have to wait: " + r.To + " is being promoted"
		}
		if o.maxLoss != 0 {
			what = "would force " + o.To + ", and ask for the group's name first"
		}
		fmt.Fprintf(o.Streams.Out, "%s; nothing was changed\n", what)
	}
	return nil
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
