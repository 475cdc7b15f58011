package status

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/reasons"
)

func (d *Document) add(reason, fallback, message string, fix ...string) {
	name := reason
	if reasons.Code(reason) == "" {
		name = fallback
	}
	d.Problems = append(d.Problems, Problem{reasons.CodeOr(reason, fallback), name, message, append([]string{}, fix...)})
}

// problems lists what a person should know, with the next command.
func (d *Document) problems(in Input) {
	g := in.Group
	if in.unattended() {
		d.add("OperatorSilent", "", fmt.Sprintf("the operator in namespace %s has no ready pod: nobody watches the group, and the resource may be old", in.Operator.Namespace),
			"kubectl get pods -n "+in.Operator.Namespace, in.Self+" explain OperatorSilent")
	}
	d.outdated(in)
	for _, c := range g.Status.Conditions {
		if d.byServers(in) {
			break
		}
		bad := c.Status == metav1.ConditionTrue
		not := c.Status == metav1.ConditionFalse
		switch c.Type {
		case api.ConditionConfigured:
			if not {
				text, fix := in.Taints.say(c.Message, nil)
				d.add(c.Reason, "NotConfigured", text, fix...)
			}
		case api.ConditionBootstrapFailed:
			if bad {
				d.add(c.Reason, "BootstrapAttemptsUsedUp", c.Message)
			}
		case api.ConditionFailoverBlocked:
			if bad {
				d.add(c.Reason, "NoSafeCandidate", c.Message, in.command("failover %s --dry-run", g.Name))
			}
		case api.ConditionPrimaryCutOff:
			if bad {
				d.add(c.Reason, "PrimaryCutOffFromAPI", c.Message)
			}
		case api.ConditionConfigurationCommitPending:
			if bad {
				d.add(c.Reason, "ConfigurationCommitPending", c.Message)
			}
		case api.ConditionRecoveryBlocked:
			if bad {
				d.add(c.Reason, "AttemptsUsedUp", c.Message)
			}
		case api.ConditionDatabasesReady:
			if not && g.Status.InitializationComplete {
				d.add(c.Reason, "DatabasesMissing", c.Message)
			}
		case api.ConditionStorageResizing:
			if c.Reason == api.ReasonExpansionUnsupported {
				d.add(c.Reason, "", c.Message)
			}
		case api.ConditionRollingChange:
			if bad && c.Reason == api.ReasonRolloutWaits {
				d.add(c.Reason, "", c.Message)
			}
		case api.ConditionFailoverReady:
			if not && d.Paused == nil && d.Writable && len(g.Spec.Replicas) > 1 && g.Status.InitializationComplete && c.Reason != api.ReasonAutomaticFailoverOff {
				d.add("NotFailoverReady", "", "losing the primary now would block writes: "+c.Message, in.command("failover %s --dry-run", g.Name))
			}
		}
	}
	if d.Paused != nil {
		d.add(api.ReasonPaused, "", d.Paused.told(), in.command("maintenance off %s", g.Name))
	}
	d.replicaProblems(in)
	d.logHeld(in)
}

// told is the sentence of the problem.
func (p *Pause) told() string {
	text := "the operator was told to leave it alone"
	if p.By != "" {
		text = p.By + " told the operator to leave it alone"
	}
	if p.Reason != "" {
		text += fmt.Sprintf(": %q", p.Reason)
	}
	return text + "; no failover, no repair, and a pod that ends is not made again"
}

func (d *Document) replicaProblems(in Input) {
	name := in.Group.Name
	if p := primaryReport(in.Reports); p != nil && len(p.Unusable) > 0 {
		d.add("DatabaseUnusable", "", "on "+p.Replica+": "+strings.Join(p.Unusable, ", "), in.command("logs %s %s --errorlog", name, p.Replica))
	}
	for _, s := range d.Seeding {
		for _, x := range s.Databases {
			if x.Failure == "" {
				continue
			}
			text := fmt.Sprintf("%s on %s: attempt %d failed, '%s'", x.Database, s.Replica, max(1, x.Attempts), x.Failure)
			if x.State == "retry" || x.State == "copying" {
				text = fmt.Sprintf("%s on %s: attempt %d failed, '%s'; it is tried again", x.Database, s.Replica, max(1, x.Attempts-1), x.Failure)
			}
			d.add("SeedingFailed", "", text)
		}
	}
	for _, r := range d.Replicas {
		switch {
		case r.Fenced:
			text := r.Name + " is fenced"
			if r.FencedBy != "" {
				text += " by " + r.FencedBy
			}
			if r.FenceReason != "" {
				text += fmt.Sprintf(": %q", r.FenceReason)
			}
			d.add("ReplicaFenced", "", text, in.command("fence off %s %s", name, r.Name))
		case r.Message != "":
			d.together(in, r.Message, in.command("logs %s %s", name, r.Name))
		case r.Waiting != "" && !r.Ready && api.Phase(d.Phase) != api.PhaseBlocked:
			d.together(in, r.Waiting, in.command("events %s", name))
		}
	}
}

// together tells a trouble once for all replicas that have it, unless a problem of the
// whole group has told it already.
func (d *Document) together(in Input, text, fix string) {
	var names []string
	for _, r := range d.Replicas {
		if r.Message == text || r.Message == "" && r.Waiting == text && !r.Ready {
			names = append(names, r.Name)
		}
	}
	cause := strings.TrimSuffix(strings.TrimPrefix(text, pendingPod), ".")
	message, more := in.Taints.say(reasons.Names(names)+": "+text, []string{fix})
	for _, p := range d.Problems {
		if strings.Contains(p.Message, cause) && strings.Contains(p.Message, reasons.Names(names)) {
			return
		}
	}
	d.add("ReplicaInTrouble", "", message, more...)
}

// logHeld says which log grows because of which replica.
func (d *Document) logHeld(in Input) {
	p := primaryReport(in.Reports)
	if p == nil {
		return
	}
	held := []string{}
	for _, c := range p.CopiesOf(p.Replica) {
		if c.LogReuse == "AVAILABILITY_REPLICA" {
			held = append(held, c.Database)
		}
	}
	if len(held) == 0 {
		return
	}
	for _, r := range d.Replicas {
		why := ""
		switch {
		case r.Fenced:
			why = "is fenced"
		case strings.HasPrefix(r.State, "seeding"):
			why = "is being seeded"
		case r.Role == "PRIMARY" || r.Mode == "config":
			continue
		case slices.ContainsFunc(p.CopiesOf(r.Name), func(c managerapi.Copy) bool { return c.Suspended }):
			why = "has suspended copies"
		case r.State != "synchronized" && r.State != "synchronizing":
			why = "is " + r.State
		default:
			continue
		}
		text := fmt.Sprintf("the log of %s cannot be truncated while %s %s", strings.Join(held, ", "), r.Name, why)
		if r.SendQueue != nil && *r.SendQueue > 0 {
			text += ": " + size(*r.SendQueue) + " not sent"
		}
		d.add("LogHeld", "", text)
	}
}

// refusals are the operator's own words about every replica, while nobody can write.
func (d *Document) refusals(in Input) {
	phase := api.Phase(d.Phase)
	if phase != api.PhaseBlocked && phase != api.PhaseFailingOver {
		return
	}
	for _, c := range d.Conditions {
		if c.Type == api.ConditionFailoverBlocked && c.Status == "True" {
			d.BlockedReason, d.BlockedSince = c.Reason, c.Since
		}
	}
	named := map[string]bool{}
	if m := in.Group.Status.Memory; m != nil {
		for _, b := range m.Blocks {
			named[b.Replica] = true
			d.Refusals = append(d.Refusals, Refusal{b.Replica, b.Rule, b.Reason, b.Message})
		}
	}
	for _, r := range d.Replicas {
		if named[r.Name] || r.Mode == "config" || r.Role == "PRIMARY" {
			continue
		}
		rule, message := ruleOf(r.Refusal)
		if r.Refusal == "" && r.IfPromoted != "no loss" {
			continue
		}
		d.Refusals = append(d.Refusals, Refusal{r.Name, rule, reasons.Code(rule), message})
	}
}

// advice is what a person can do about a block, safest first.
func (d *Document) advice(in Input) {
	if api.Phase(d.Phase) != api.PhaseBlocked {
		return
	}
	add := func(text string, details []string, commands ...string) {
		if details == nil {
			details = []string{}
		}
		d.Advice = append(d.Advice, Advice{text, details, append([]string{}, commands...)})
	}
	var back, details, causes []string
	waiting := map[string][]string{}
	for _, r := range d.Replicas {
		if r.Ready && r.Role != "?" && r.Role != "(primary)" {
			continue
		}
		if r.Role == "(primary)" {
			back = append([]string{r.Name}, back...)
		} else {
			back = append(back, r.Name)
		}
		if r.Waiting != "" && !slices.Contains(causes, r.Waiting) {
			causes = append(causes, r.Waiting)
		}
		waiting[r.Waiting] = append(waiting[r.Waiting], r.Name)
	}
	for _, c := range causes {
		details = append(details, reasons.Names(waiting[c])+": "+c)
	}
	if len(back) > 0 {
		add("Bring "+strings.Join(back, " or ")+" back. Nothing is lost.", details)
	}
	best := d.leastLoss()
	if best == nil {
		return
	}
	loss := "an unknown amount of commits"
	if best.Lag != nil {
		loss = "up to " + seconds(*best.Lag) + " of commits"
	}
	add("Accept losing "+loss+".", nil, in.command("failover %s --to %s --allow-data-loss", in.Group.Name, best.Name))
}

// leastLoss is the replica that could be forced and would lose least by what is known:
// synchronous before asynchronous, as the operator chooses.
func (d *Document) leastLoss() *ReplicaRow {
	var best *ReplicaRow
	for i := range d.Replicas {
		r := &d.Replicas[i]
		if r.ForceRefusal != "" || r.Refusal == "" || r.Role == "(primary)" || r.Mode == "config" || r.Fenced {
			continue
		}
		if best == nil || best.Mode == "async" && r.Mode == "sync" {
			best = r
		}
	}
	return best
}
