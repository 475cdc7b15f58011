package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/version"
)

// finish adds the history, the errors, and last the README that says what is where.
func (g *gatherer) finish(now time.Time) {
	if text := g.history(); text != "" {
		g.archive.Add("history.txt", "role changes, newest first", []byte(text))
	}
	errs := g.archive.Errors()
	if len(errs) > 0 {
		g.archive.Add("errors.txt", "what could not be gathered, and why", []byte(strings.Join(errs, "\n")+"\n"))
	}
	g.archive.Add("README.txt", "", []byte(g.readme(now, errs)))
}

func (g *gatherer) history() string {
	if g.facts.group == nil {
		return ""
	}
	var b strings.Builder
	for _, h := range g.facts.group.Status.History {
		took := ""
		if !h.CompletedAt.IsZero() {
			took = fmt.Sprintf(", %s", h.CompletedAt.Sub(h.StartedAt.Time))
		}
		fmt.Fprintf(&b, "%s %s %s -> %s: %s%s\n  cause: %s\n", h.StartedAt.UTC().Format(time.RFC3339), h.Kind, h.From, h.To, h.Result, took, h.Cause)
		for _, s := range h.Timeline {
			fmt.Fprintf(&b, "  %s %s\n", s.At.UTC().Format(time.RFC3339), s.What)
		}
	}
	return b.String()
}

func (g *gatherer) readme(now time.Time, errs []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Report of %s/%s, made at %s by kubectl-mssql %s\n\n", g.namespace, g.o.Name, now.Format(time.RFC3339), version.Get().Version)
	b.WriteString("Summary\n")
	g.summary(&b)
	for _, i := range g.facts.operators {
		ready, wanted := i.Replicas()
		fmt.Fprintf(&b, "  operator in %s: %s, %d of %d ready\n", i.Namespace, i.Image, ready, wanted)
	}
	if len(g.facts.operators) == 0 {
		b.WriteString("  operator: none was seen that watches this namespace\n")
	}
	for i := range g.facts.pods {
		p := &g.facts.pods[i]
		restarts := int32(0)
		for _, s := range p.Status.ContainerStatuses {
			restarts += s.RestartCount
		}
		fmt.Fprintf(&b, "  pod %s: %s on %s, %d restarts\n", p.Name, p.Status.Phase, p.Spec.NodeName, restarts)
	}
	g.mu.Lock()
	verdict := strings.TrimSpace(g.verdict)
	g.mu.Unlock()
	if verdict != "" {
		b.WriteString("\nWhat the rules say now (nothing was carried out)\n")
		for line := range strings.SplitSeq(verdict, "\n") {
			b.WriteString("  " + line + "\n")
		}
	}
	b.WriteString("\nWhat is where\n" + g.archive.Index())
	b.WriteString("  logs/POD/CONTAINER.log             the server and its instance manager; .previous.log is the run before\n")
	b.WriteString("  operator/NAMESPACE/logs/           the controllers\n")
	if g.o.ErrorLog {
		b.WriteString("  errorlog/REPLICA/                  SQL Server's own error logs\n")
	}
	fmt.Fprintf(&b, "\nWhat is not in it\n  %d things could not be gathered%s\n", len(errs), map[bool]string{true: "; errors.txt says which and why", false: ""}[len(errs) > 0])
	b.WriteString("  " + mark + " stands for contents of Secrets, passwords, tokens, private keys, values of environment\n" +
		"  variables, annotations of other tools, and everything that looks like one of these.\n" +
		"  Names of databases, hosts, people and addresses are in it. Times are UTC.\n")
	return b.String()
}

func (g *gatherer) summary(b *strings.Builder) {
	switch {
	case g.facts.group != nil:
		st := &g.facts.group.Status
		fmt.Fprintf(b, "  availability group, phase %s: %s\n  primary %s, ready %s, safe targets %s, SQL Server %s\n", st.Phase, st.Reason, orDash(st.PrimaryReplica), orDash(st.ReadyReplicas), orDash(st.SafeTargets), orDash(st.Version))
		for _, c := range st.Conditions {
			fmt.Fprintf(b, "  %s=%s since %s, %s: %s\n", c.Type, c.Status, c.LastTransitionTime.UTC().Format(time.RFC3339), c.Reason, c.Message)
		}
		for _, r := range st.ReplicaStatuses {
			fmt.Fprintf(b, "  replica %s: role %s, %s, promoted now: %v %s\n", r.Name, orDash(r.Role), orDash(r.State), r.FailoverReady, r.FailoverRefusal)
		}
	case g.facts.instance != nil:
		st := &g.facts.instance.Status
		fmt.Fprintf(b, "  instance, phase %s: %s\n  SQL Server %s at %s\n", st.Phase, st.Reason, orDash(st.Version), orDash(st.Endpoint))
		for _, c := range st.Conditions {
			fmt.Fprintf(b, "  %s=%s since %s, %s: %s\n", c.Type, c.Status, c.LastTransitionTime.UTC().Format(time.RFC3339), c.Reason, c.Message)
		}
	default:
		b.WriteString("  the resource could not be read; see errors.txt\n")
	}
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
