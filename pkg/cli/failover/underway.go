package failover

import (
	"fmt"
	"strings"
	"time"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/change"
)

// underWay is what the operator does or waits for, in its own words; nil while the group
// is at rest.
func underWay(g *api.SQLServerAvailabilityGroup) *change.UnderWay {
	op, w := change.Operation(g), g.Status.Waiting
	if op == nil && w == nil && len(g.Status.Findings) == 0 {
		return nil
	}
	out := &change.UnderWay{Findings: []string{}}
	if op != nil {
		out.Kind, out.Phase, out.From, out.Target = op.Kind, op.Phase, op.From, op.Target
	}
	if w != nil {
		out.WaitsFor = w.For
		if w.Until != nil {
			until := w.Until.UTC()
			out.Until = &until
		}
	}
	for _, f := range g.Status.Findings {
		text := f.Message
		if f.Replica != "" && !strings.Contains(text, f.Replica) {
			text = f.Replica + ": " + text
		}
		out.Findings = append(out.Findings, text)
	}
	return out
}

// underWayLines are the same for a person.
func underWayLines(u *change.UnderWay, now time.Time) []string {
	if u == nil {
		return nil
	}
	var lines []string
	if u.Phase != "" {
		lines = append(lines, fmt.Sprintf("under way: %s from %s to %s, phase %s", u.Kind, orDash(u.From), orDash(u.Target), u.Phase))
	}
	for _, f := range u.Findings {
		lines = append(lines, "seen: "+f)
	}
	if u.WaitsFor != "" {
		text := "waiting for " + u.WaitsFor
		if u.Until != nil {
			text += fmt.Sprintf(", %d s left", max(0, int(u.Until.Sub(now).Seconds())))
		}
		lines = append(lines, text)
	}
	return lines
}

// choice is who would be promoted: the one that was named, the target of the role change
// under way, or the operator's own choice.
func (o *Options) choice(rows []change.Candidate) string {
	g := o.Group
	if op := change.Operation(g); op != nil && o.To == "" {
		return op.Target
	}
	first := ""
	for _, c := range rows {
		switch {
		case !c.Ready || o.To != "" && o.To != c.Name:
		case c.Name == g.Status.Elected:
			return c.Name
		case first == "":
			first = c.Name
		}
	}
	return first
}
