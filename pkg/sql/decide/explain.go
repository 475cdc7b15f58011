package decide

import (
	"fmt"
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// Explain is a decision as text: one line each for findings, blocks, actions and the
// wait, in that order. It is stable: equal decisions have equal text.
func Explain(d ag.Decision) string {
	var b strings.Builder
	for _, f := range d.Findings {
		b.WriteString("found: " + subject(f.Replica) + f.Message + "\n")
	}
	for _, x := range d.Blocks {
		b.WriteString("blocked: ")
		if x.Rule != "" {
			fmt.Fprintf(&b, "%s: ", x.Rule)
		}
		b.WriteString(subject(x.Replica) + x.Message + " (" + x.Reason + ")\n")
	}
	for _, a := range d.Actions {
		b.WriteString("do: " + a.String() + "\n")
	}
	if d.Wait != nil {
		b.WriteString("wait: " + d.Wait.For + "\n")
	}
	return b.String()
}

// ExplainReadiness is one line a replica: would it be promoted now, and if not, by which rule.
func ExplainReadiness(d ag.Decision) string {
	var b strings.Builder
	for _, r := range d.Readiness {
		switch {
		case r.Ready:
			fmt.Fprintf(&b, "%s: ready\n", r.Replica)
		case r.Rule != "":
			fmt.Fprintf(&b, "%s: %s: %s\n", r.Replica, r.Rule, r.Message)
		default:
			fmt.Fprintf(&b, "%s: %s\n", r.Replica, r.Message)
		}
	}
	return b.String()
}

func subject(replica string) string {
	if replica == "" {
		return ""
	}
	return replica + ": "
}
