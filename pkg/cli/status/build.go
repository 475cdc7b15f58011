package status

import (
	"fmt"
	"maps"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/events"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/reasons"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// PodFacts are what the API server says of a replica's pod.
type PodFacts struct {
	Created time.Time
	Node    string
	Ready   bool
	// ReadySince is when Ready turned to what it is.
	ReadySince time.Time
	// Waiting in the words of the scheduler or kubelet; empty for a pod that runs.
	Waiting string
}

// LeaseFacts are the record of who may write.
type LeaseFacts struct {
	Authority ag.Authority
	// Problem is why the record is no proof for anyone.
	Problem string
	Renewed time.Time
	// Silent is for how long it was not renewed, by the API server's clock alone.
	Silent      time.Duration
	SilentKnown bool
}

// Input of Build: the resource and what was seen besides it.
type Input struct {
	Group *api.SQLServerAvailabilityGroup
	// Pods by replica; nil when they could not be listed.
	Pods map[string]PodFacts
	// Reports of the managers that answered.
	Reports map[string]managerapi.Report
	// Lease; nil when it could not be read or is not there.
	Lease *LeaseFacts
	// WritesLeadTo are the pods to which the write Service sends clients; LeadsKnown is
	// false where that could not be read.
	WritesLeadTo []string
	LeadsKnown   bool
	// Operator; nil when nothing is known of it.
	Operator *Operator
	Now      time.Time
	Plugin   string
	Self     string // how the user calls us
	NS       string // " -n prod" when the user has to say so
	// Budget with -v, Events with -vv.
	Budget *Budget
	Events []events.Event
	Errors []Unseen
	// Taints that keep pods away; nil while no pod waits because of one.
	Taints *Taints
}

// unattended: it is known that no operator runs.
func (in Input) unattended() bool { return in.Operator != nil && in.Operator.Ready == 0 }

// command is a call of ours with the namespace.
func (in Input) command(format string, args ...any) string {
	return in.Self + " " + fmt.Sprintf(format, args...) + in.NS
}

// Build derives the whole status from what was seen. It is pure.
func Build(in Input) Document {
	g := in.Group
	st := &g.Status
	d := newDocument()
	d.WritesKnown = true
	d.Namespace, d.Name, d.Group = g.Namespace, g.Name, g.TSQLName()
	d.Phase, d.Reason, d.Primary = string(st.Phase), st.Reason, st.PrimaryReplica
	d.WriteEndpoint = fmt.Sprintf("%s:%d", g.ListenerName(), port(g.Spec.Listener.Port))
	d.ReadEndpoint = fmt.Sprintf("%s:%d", g.ReadOnlyListenerName(), port(g.Spec.ReadOnlyListener.Port))
	d.ServerVersion, d.PluginVersion, d.Operator = st.Version, in.Plugin, in.Operator
	d.Paused, d.Budget, d.Events = pause(g.Annotations), in.Budget, append(d.Events, in.Events...)
	d.ObservedGeneration = st.ObservedGeneration
	d.Errors = append(d.Errors, in.Errors...)
	maps.Copy(d.Settings, g.Spec.MSSQLConf)
	if d.Phase == "" {
		d.Phase, d.Reason = string(api.PhasePending), "the operator has not looked at it yet"
	}
	d.Conditions = conditions(st.Conditions)
	for _, c := range st.Conditions {
		if c.Type != api.ConditionAvailable {
			continue
		}
		d.Writable = c.Status == metav1.ConditionTrue
		if !d.Writable && st.InitializationComplete {
			down := max(0, in.Now.Sub(c.LastTransitionTime.Time).Seconds())
			d.WritesDownSeconds = &down
		}
	}
	d.primary(in)
	d.lease(in)
	d.operation(in)
	d.live(in)
	d.doubt(in)
	d.replicas(in)
	for i := range d.Replicas {
		r := &d.Replicas[i]
		r.NotApplicable = r.Role == "PRIMARY" || r.Mode == "config" || r.idle
	}
	d.databases(in)
	d.seeding(in)
	d.automatic(in)
	d.progress(in)
	d.refusals(in)
	d.problems(in)
	d.led(in)
	d.advice(in)
	d.verdict(in)
	return d
}

// pause is what the annotations say.
func pause(annotations map[string]string) *Pause {
	n, paused := api.Paused(annotations)
	if !paused {
		return nil
	}
	p := &Pause{By: n.By, Reason: n.Reason}
	if n.Since != nil {
		p.Since = instant(n.Since.Time)
	}
	return p
}

// who paused it and for how long, as part of a sentence.
func (p *Pause) who(now time.Time) string {
	text := "paused"
	if p.By != "" {
		text += " by " + p.By
	}
	if p.Since != nil {
		text += " for " + age(now.Sub(*p.Since))
	}
	return text
}

func port(p int32) int32 {
	if p == 0 {
		return api.PortTDS
	}
	return p
}

func conditions(list []metav1.Condition) []Condition {
	out := []Condition{}
	for _, c := range list {
		since := instant(c.LastTransitionTime.Time)
		out = append(out, Condition{c.Type, string(c.Status), c.Reason, reasons.Code(c.Reason), c.Message, since})
	}
	return out
}

func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// primary finds since when and by what there is a primary, or who was the last one.
func (d *Document) primary(in Input) {
	d.LastPrimary = d.Primary
	for _, h := range in.Group.Status.History {
		if h.Result != "done" {
			continue
		}
		if d.LastPrimary == "" {
			d.LastPrimary = h.To
		}
		if h.To == d.Primary && d.Primary != "" {
			t := h.CompletedAt.Time
			if t.IsZero() {
				t = h.StartedAt.Time
			}
			d.PrimarySince, d.PrimaryBy = instant(t), Kind(h.Kind)
		}
		return
	}
}

// Kind of a role change in a person's words.
func Kind(kind string) string {
	words := map[string]string{
		"planned": "planned switchover", "switchover": "planned switchover", "automatic": "automatic failover",
		"failover": "automatic failover", "forced": "forced failover", "bootstrap": "first primary",
		"manual": "a failover by hand", "handover": "hand-over of a stopping pod",
	}
	if w := words[kind]; w != "" {
		return w
	}
	return kind
}

// lease is the record itself where it could be read, else the copy in the resource.
func (d *Document) lease(in Input) {
	l := &Lease{Set: []string{}, Unfenced: []string{}, Stale: []string{}}
	switch a := in.Group.Status.Authority; {
	case in.Lease != nil:
		x := in.Lease.Authority
		l.Holder, l.Epoch, l.K, l.Rule, l.Problem = x.Holder.Replica, x.Epoch, x.Rule.K, x.Rule.Number, in.Lease.Problem
		l.Set = append(l.Set, x.Rule.Names()...)
		for _, u := range x.Unfenced {
			l.Unfenced = append(l.Unfenced, u.Run.Replica)
		}
		l.Stale = append(l.Stale, x.Stale...)
		l.Renewed = instant(in.Lease.Renewed)
		if in.Lease.SilentKnown {
			l.Silent = inSeconds(in.Lease.Silent)
		}
		if d.Primary == "" && x.LastPrimary != "" {
			d.LastPrimary = x.LastPrimary
		}
	case a != nil || in.Group.Status.CommitRule != nil:
		if a != nil {
			l.Holder, l.Epoch = a.Holder, a.Epoch
			l.Unfenced, l.Stale = append(l.Unfenced, a.Unfenced...), append(l.Stale, a.Stale...)
		}
		if r := in.Group.Status.CommitRule; r != nil {
			l.K, l.Rule, l.Set = r.K, r.Number, append(l.Set, r.Set...)
		}
	default:
		return
	}
	d.Lease = l
	if in.Lease != nil && in.Lease.Authority.Exists || in.Group.Status.CommitRule != nil {
		k := l.K
		d.CommitsWaitFor = &k
	}
}

// live replaces what the resource says by what the servers say while no operator keeps
// the resource true.
func (d *Document) live(in Input) {
	if !in.unattended() {
		return
	}
	d.Phase, d.Reason = PhaseUnattended, "no operator is running, nothing is failed over"
	d.asServersSay(in)
	d.WritesKnown = in.Reports != nil // in a list nobody is asked
}

// automatic tells whether a failover would happen by itself.
func (d *Document) automatic(in Input) {
	g := in.Group
	switch {
	case g.Spec.ClusterType == api.ClusterTypeNone:
		d.AutomaticFailover = "off (clusterType NONE)"
	case !g.AutomaticFailoverEnabled():
		d.AutomaticFailover = "off"
	case d.Paused != nil:
		d.AutomaticFailover = "disarmed: " + d.Paused.who(in.Now)
	case in.unattended():
		d.AutomaticFailover = "out of order while no operator runs"
	case in.silentOperator() != nil:
		d.AutomaticFailover = "out of order while no operator looks"
	case d.Doubt != nil:
		d.AutomaticFailover = "not known until the operator has looked"
	case d.SafeTargets == 0:
		d.AutomaticFailover = "armed, but no replica could take over now"
	case d.SafeTargets == 1 && len(g.Spec.Replicas) > 2:
		for _, r := range d.Replicas {
			if r.IfPromoted == "no loss" {
				d.AutomaticFailover = "armed, but " + r.Name + " is the only candidate left"
			}
		}
	default:
		d.AutomaticFailover = "armed"
	}
}

func (d *Document) verdict(in Input) {
	fenced := []string{}
	for _, r := range d.Replicas {
		if r.Fenced {
			text := r.Name + " fenced"
			if r.FencedSince != nil {
				text += " for " + age(in.Now.Sub(*r.FencedSince))
			}
			fenced = append(fenced, text)
		}
	}
	if d.Phase == string(api.PhaseDegraded) {
		switch {
		case len(fenced) > 0:
			d.Reason = strings.Join(fenced, ", ")
		case len(d.Seeding) > 0 && d.Seeding[0].Total > d.Seeding[0].Done:
			s := d.Seeding[0]
			d.Reason = "seeding " + s.Replica
			if s.LeftSeconds != nil {
				d.Reason += " (~" + age(time.Duration(*s.LeftSeconds*float64(time.Second))) + ")"
			}
		}
	}
	if d.Phase == string(api.PhasePaused) && d.Paused != nil {
		d.Reason = d.Paused.who(in.Now) + ", nothing is failed over"
	}
	switch d.Phase {
	case string(api.PhaseHealthy), string(api.PhaseRunning):
		d.Level = LevelOK
	case string(api.PhaseBlocked), string(api.PhaseFailed):
		d.Level, d.ExitCode = LevelBad, 9
	default:
		d.Level, d.ExitCode = LevelWarn, 8
		if d.Writable || !d.WritesKnown && len(in.Reports) == 0 {
			return
		}
		d.ExitCode = 9
		if d.Phase == PhaseUnattended || d.Phase == PhaseUnknown {
			d.Level = LevelBad
		}
	}
}
