package status

import (
	"fmt"
	"time"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/renewal"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// PhaseUnknown is said by the plugin alone: what the resource says is old, or the servers
// say otherwise.
const PhaseUnknown = "Unknown"

// ReasonOutdated is the problem that goes with it.
const ReasonOutdated = "StatusOutdated"

// Doubt is why the resource is not believed.
type Doubt struct {
	// Message is one sentence.
	Message string `json:"message"`
	// LastPhase is what the resource says.
	LastPhase string `json:"lastPhase"`
	// SilentSeconds is for how long the operator, or the primary, was not heard of, by the
	// API server's clock; null when the doubt is what a server says itself.
	SilentSeconds *float64 `json:"silentSeconds"`
}

func (x Doubt) verdict() string { return x.Message + " (last: " + phaseWord(x.LastPhase) + ")" }

// byServers: the rows are what the servers say, as nobody keeps the resource true.
func (d *Document) byServers(in Input) bool { return in.unattended() || d.Doubt != nil }

// doubt compares the resource with what was seen besides it. The operator writes nothing
// while all is well, so that an old resource is no sign of anything; that nobody renews
// the operator's lock, or the primary's Lease, is.
func (d *Document) doubt(in Input) {
	st := in.Group.Status
	if in.unattended() || st.Phase == "" {
		return
	}
	x := in.silentOperator()
	if x == nil && d.Operation == nil && d.Writable && st.PrimaryReplica != "" {
		x = in.silentPrimary(st.PrimaryReplica)
	}
	if x == nil {
		return
	}
	x.LastPhase = d.Phase
	d.Doubt, d.Phase, d.Reason = x, PhaseUnknown, x.verdict()
	_, answered := in.Reports[st.PrimaryReplica]
	d.asServersSay(in)
	d.WritesKnown = d.Writable || answered
}

func (in Input) silentOperator() *Doubt {
	if in.Operator == nil {
		return nil
	}
	return silentFor(in.Operator.lock)
}

func silentFor(l renewal.Lock) *Doubt {
	if !l.Silent() {
		return nil
	}
	return &Doubt{Message: "the operator has not looked for " + age(l.Age), SilentSeconds: inSeconds(l.Age)}
}

func inSeconds(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}

// silentPrimary tells why the primary that the resource names is not believed to be one.
// A primary that says that it is one is believed: its Lease may go without renewals while
// it cannot reach the API server. One that renews is believed as well, unless no login
// works: its manager stops when its server is not PRIMARY (R3), and what the server said may
// be two seconds old, from before a promotion.
func (in Input) silentPrimary(primary string) *Doubt {
	proof := in.Group.Spec.AutomaticFailover.Timing.Effective().A
	r, answered := in.Reports[primary]
	silent, known := time.Duration(0), false
	if in.Lease != nil && in.Lease.Authority.Holder.Replica == primary {
		silent, known = in.Lease.Silent, in.Lease.SilentKnown
	}
	switch {
	case answered && r.Problem == "" && r.Role == ag.RolePrimary:
		return nil
	case answered && r.Problem != "":
		return &Doubt{Message: primary + ": " + r.Problem}
	case known && silent <= proof:
		return nil
	case answered && r.Role != ag.RoleUnknown:
		return &Doubt{Message: contradiction(primary, r, in.Reports)}
	case known && (answered || len(in.Reports) > 0 || silent > 2*proof):
		return &Doubt{Message: fmt.Sprintf("%s has not renewed its Lease for %s", primary, age(silent)), SilentSeconds: inSeconds(silent)}
	case !known && !answered && len(in.Reports) > 0:
		return &Doubt{Message: primary + " does not answer, and others do"}
	}
	return nil
}

// contradiction is what the servers say themselves.
func contradiction(primary string, r managerapi.Report, all map[string]managerapi.Report) string {
	text := primary + " says that it is " + string(r.Role) + " and not PRIMARY"
	if r.Role == ag.RoleNone {
		text = primary + " says that it is not in the group"
	}
	if p := primaryReport(all); p != nil && p.Replica != primary {
		text += ", " + p.Replica + " that it is"
	}
	return text
}

// asServersSay takes primary and writes from the answers.
func (d *Document) asServersSay(in Input) {
	p := primaryReport(in.Reports)
	d.Writable = p != nil && len(p.Unusable) == 0
	d.WritesDownSeconds = nil
	switch {
	case p == nil:
		d.Primary, d.PrimarySince, d.PrimaryBy = "", nil, ""
	case p.Replica != d.Primary:
		d.Primary, d.LastPrimary, d.PrimarySince, d.PrimaryBy = p.Replica, p.Replica, nil, ""
	}
}

// outdated is the problem.
func (d *Document) outdated(in Input) {
	x := d.Doubt
	if x == nil {
		return
	}
	fix := []string{in.command("status %s -w", in.Group.Name)}
	if s := in.silentOperator(); s != nil {
		fix = append(fix, "kubectl get pods -n "+in.Operator.Namespace)
	}
	d.add(ReasonOutdated, "", x.Message+"; what the operator said last ("+phaseWord(x.LastPhase)+") may not be so any more", fix...)
}

// doubt of a standalone instance: what its manager says, or that its pod is not ready.
func (d *InstanceDocument) doubt(in InstanceInput) {
	if in.Operator != nil && in.Operator.Ready == 0 || d.Phase == string(api.PhasePending) && in.Instance.Status.Phase == "" {
		return
	}
	pod := d.Name + "-0"
	r, answered := in.Reports[pod]
	var x *Doubt
	if in.Operator != nil {
		x = silentFor(in.Operator.lock)
	}
	if x == nil && api.Phase(d.Phase) == api.PhaseRunning {
		f, there := in.Pods[pod]
		switch {
		case answered && r.Problem != "":
			x = &Doubt{Message: r.Problem}
		case in.PodsRead && !there:
			x = &Doubt{Message: pod + " is not there"}
		case !answered && there && !f.Ready:
			x = &Doubt{Message: pod + " is not ready and does not answer"}
		}
	}
	if x == nil {
		return
	}
	x.LastPhase = d.Phase
	d.Doubt, d.Phase, d.Reason = x, PhaseUnknown, x.verdict()
	if in.Reports != nil { // in a list nobody is asked
		d.Writable = answered && r.Problem == "" && len(r.Unusable) == 0
	}
	d.add(ReasonOutdated, "", x.Message+"; what the operator said last ("+x.LastPhase+") may not be so any more", in.Self+" status "+d.Name+" -w"+in.NS)
}
