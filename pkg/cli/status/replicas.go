package status

import (
	"fmt"
	"slices"
	"strings"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

func (d *Document) replicas(in Input) {
	g := in.Group
	seen := map[string]api.ReplicaStatus{}
	for _, r := range g.Status.ReplicaStatuses {
		seen[r.Name] = r
	}
	p := primaryReport(in.Reports)
	for i, spec := range g.Spec.Replicas {
		name := g.ReplicaName(i)
		row := ReplicaRow{Name: name, Mode: modeWord(spec.AvailabilityMode), Role: "?", State: "?", IfPromoted: "?"}
		r, ok := seen[name]
		if ok {
			row.fromResource(in, d, r)
		}
		row.fromPod(in, d.byServers(in))
		row.fromReport(in, p, d.Primary == "")
		if ok && !d.byServers(in) {
			row.IfPromoted = d.promoted(row, r, spec)
		}
		if d.byServers(in) {
			row.unattended(in, p)
		}
		row.age(in)
		if row.Ready {
			d.ReadyReplicas++
		}
		if row.IfPromoted == "no loss" {
			d.SafeTargets++
		}
		d.Replicas = append(d.Replicas, row)
	}
	d.sequences(in)
}

// sequences counts who holds the highest configuration.
func (d *Document) sequences(in Input) {
	numbers := map[string]int64{}
	for _, r := range in.Group.Status.ReplicaStatuses {
		numbers[r.Name] = r.SequenceNumber
	}
	for name, r := range in.Reports {
		if r.Sequence > 0 {
			numbers[name] = r.Sequence
		}
	}
	for _, n := range numbers {
		d.Sequence = max(d.Sequence, n)
	}
	for _, n := range numbers {
		if d.Sequence > 0 && n == d.Sequence {
			d.SequenceAgree++
		}
	}
}

func modeWord(m api.AvailabilityMode) string {
	switch m {
	case api.AsynchronousCommit:
		return "async"
	case api.ConfigurationOnly:
		return "config"
	case api.SynchronousCommit:
	}
	return "sync"
}

// roleWord: PRIMARY in capitals, a lost primary in brackets, everything else as it says itself.
func roleWord(role, name, lastPrimary string) string {
	switch {
	case role == "PRIMARY":
		return "PRIMARY"
	case role == "SECONDARY":
		return "secondary"
	case role == "" && name == lastPrimary:
		return "(primary)"
	case role == "":
		return "?"
	}
	return role
}

func (row *ReplicaRow) fromResource(in Input, d *Document, r api.ReplicaStatus) {
	last := d.LastPrimary
	if d.Operation != nil && d.Operation.From != "" {
		last = d.Operation.From
	}
	row.Role, row.State = roleWord(r.Role, r.Name, last), r.State
	row.Ready, row.Node, row.Outdated = r.Ready, r.Node, r.Outdated
	row.Refusal, row.ForceRefusal, row.Message = r.FailoverRefusal, r.ForceRefusal, r.Message
	row.fence(in, r)
}

// fence is the order as it stands in the annotation, which needs no operator to be read.
func (row *ReplicaRow) fence(in Input, r api.ReplicaStatus) {
	row.Fenced = r.Fenced
	if f := r.Fence; f != nil {
		row.FencedBy, row.FenceReason = f.By, f.Reason
		if f.Since != nil {
			row.FencedSince = instant(f.Since.Time)
		}
	}
	list, err := api.ParseFenced(in.Group.Annotations[api.AnnotationFenced])
	if err != nil {
		return // the operator says so in a condition
	}
	for _, f := range list {
		if f.Replica != row.Name {
			continue
		}
		row.Fenced, row.FencedBy, row.FenceReason = true, f.By, f.Reason
		if f.Since != nil {
			row.FencedSince = instant(f.Since.Time)
		}
	}
}

func (row *ReplicaRow) fromPod(in Input, live bool) {
	pod, ok := in.Pods[row.Name]
	if !ok {
		return
	}
	row.Since, row.Waiting = instant(pod.Created), pod.Waiting
	if row.Node == "" {
		row.Node = pod.Node
	}
	if live {
		row.Ready = pod.Ready
	}
}

// fromReport takes the numbers of the primary's view, as decisions do, and the role that
// the server itself tells now. Without a primary only the own redo queue has a meaning.
func (row *ReplicaRow) fromReport(in Input, p *managerapi.Report, headless bool) {
	own, answered := in.Reports[row.Name]
	if answered && own.Role != ag.RoleUnknown && own.Role != ag.RoleNone {
		row.Role = roleWord(string(own.Role), row.Name, "")
	}
	if answered {
		row.Endpoint, row.CertificateExpiry = own.Endpoint, own.CertificateExpiry
	}
	row.idle = headless && p == nil && answered
	if row.Mode == "config" || row.Role == "PRIMARY" {
		return
	}
	view := p
	if p == nil {
		view = &own
	}
	if copies := view.CopiesOf(row.Name); len(copies) > 0 {
		row.MeasuredAgo = view.MeasuredAgoSeconds
		row.RedoQueue = sum(copies, func(c managerapi.Copy) *int64 { return c.RedoQueue })
		if p != nil {
			row.SendQueue = sum(copies, func(c managerapi.Copy) *int64 { return c.SendQueue })
			if lag, known := p.Lag(row.Name); known {
				row.Lag = &lag
			}
		}
	}
	if row.RedoQueue == nil && answered && p != nil {
		// The primary tells no redo queue of a replica that is not connected; the replica does.
		row.RedoQueue = sum(own.CopiesOf(row.Name), func(c managerapi.Copy) *int64 { return c.RedoQueue })
	}
}

// sum is unknown when one of its parts is.
func sum(copies []managerapi.Copy, of func(managerapi.Copy) *int64) *int64 {
	if len(copies) == 0 {
		return nil
	}
	var total int64
	for _, c := range copies {
		v := of(c)
		if v == nil {
			return nil
		}
		total += *v
	}
	return &total
}

// promoted is what the operator's own rules said of the replica, never a second judgement.
func (d *Document) promoted(row ReplicaRow, r api.ReplicaStatus, spec api.AGReplicaSpec) string {
	switch {
	case spec.AvailabilityMode == api.ConfigurationOnly || row.Role == "PRIMARY":
		return "-"
	case row.Role == "(primary)":
		switch {
		case d.Operation == nil:
			return "-"
		case d.Lease != nil && slices.Contains(d.Lease.Unfenced, row.Name):
			return "fencing"
		}
		return "fenced"
	case row.Fenced:
		return "never"
	case r.FailoverReady:
		return "no loss"
	case r.FailoverRefusal == "":
		return "?"
	case r.ForceRefusal != "":
		return "never"
	case row.Lag != nil && *row.Lag > 0:
		return fmt.Sprintf("loses ~%s", seconds(*row.Lag))
	}
	return "may lose"
}

// unattended is a row of what the servers say, because nobody keeps the resource true.
func (row *ReplicaRow) unattended(in Input, p *managerapi.Report) {
	row.IfPromoted, row.Refusal, row.ForceRefusal, row.Message = "?", "", "", ""
	own, answered := in.Reports[row.Name]
	switch {
	case row.Fenced:
		row.State = "fenced"
	case !answered && in.Reports != nil:
		row.State, row.Role = "unreachable", "?"
	case !answered:
		row.State, row.Role = "?", "?"
	case own.Problem != "":
		row.State, row.Message = own.Server, own.Problem
	case own.Role == ag.RolePrimary:
		row.State = "online"
	case own.Role == ag.RoleSecondary && p != nil:
		row.State = "disconnected"
		if worst := worstSync(p.CopiesOf(row.Name)); worst != "" {
			row.State = strings.ToLower(worst)
		}
	case own.Role == ag.RoleSecondary:
		row.State = "no primary"
	case own.Role == ag.RoleNone:
		row.State = "not joined"
	default:
		row.State = strings.ToLower(string(own.Role))
	}
	if row.Mode == "config" || row.Role == "PRIMARY" {
		row.IfPromoted = "-"
	}
}

func worstSync(copies []managerapi.Copy) string {
	order := []ag.SyncState{ag.SyncUnknown, ag.SyncNotSynchronizing, ag.SyncReverting, ag.SyncInitializing, ag.SyncSynchronizing, ag.SyncSynchronized}
	worst := -1
	for _, c := range copies {
		if i := slices.Index(order, c.Sync); worst < 0 || i < worst {
			worst = i
		}
	}
	if worst < 0 {
		return ""
	}
	return string(order[worst])
}

// age adds since when, where the state is news.
func (row *ReplicaRow) age(in Input) {
	switch {
	case row.Fenced:
		row.State = "FENCED"
		if row.FencedSince != nil {
			row.State += " " + age(in.Now.Sub(*row.FencedSince))
		}
	case row.State == "lost" || row.State == "unreachable":
		if pod, ok := in.Pods[row.Name]; ok && !pod.Ready && !pod.ReadySince.IsZero() {
			row.State += " " + age(in.Now.Sub(pod.ReadySince))
		}
	}
}
