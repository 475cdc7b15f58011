package decide

import (
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// reached: the replica answered about the group, and said its role.
func reached(r *ag.Replica) bool {
	return r != nil && r.Local.Reach == ag.ReachOK && r.Local.Role != ag.RoleUnknown
}

func isPrimary(r *ag.Replica) bool { return reached(r) && r.Local.Role == ag.RolePrimary }

// notPrimary: it answered, and said another role. Not being reached is not that.
func notPrimary(r *ag.Replica) bool { return reached(r) && r.Local.Role != ag.RolePrimary }

// online: every database copy of the group on this replica is ONLINE.
func online(r *ag.Replica) bool { return badDatabase(r) == "" && recovering(r) == "" }

// badDatabase names the first copy in a state that does not end by itself (FG 3.9), or nothing.
func badDatabase(r *ag.Replica) string {
	for _, d := range r.Local.Databases {
		switch d.State {
		case ag.DatabaseSuspect, ag.DatabaseRecoveryPending, ag.DatabaseEmergency, ag.DatabaseOffline:
			return d.Name
		case ag.DatabaseUnknown, ag.DatabaseOnline, ag.DatabaseRestoring, ag.DatabaseRecovering:
		}
	}
	return ""
}

// recovering names the first copy that is still on its way to ONLINE, or nothing.
func recovering(r *ag.Replica) string {
	for _, d := range r.Local.Databases {
		if d.State == ag.DatabaseRecovering || d.State == ag.DatabaseRestoring {
			return d.Name
		}
	}
	return ""
}

// why a replica does not answer, for people.
func reachText(r *ag.Replica) string {
	switch {
	case r == nil || !r.Pod.Exists && r.Local.Reach != ag.ReachOK:
		return "there is no pod"
	case r.Local.Reach == ag.ReachOK && r.Local.Role == ag.RoleUnknown:
		return "it answers but does not say its role"
	case r.Local.Reach == ag.ReachUnknown:
		return "it was not asked"
	case r.Local.Reach == ag.ReachOK:
		return "only another run of it answers"
	}
	return "it does not answer (" + string(r.Local.Reach) + ")"
}

// runOf is the run that a grant to this replica would name; zero when its manager did not answer.
func runOf(r *ag.Replica) ag.Run {
	if r.Manager.Reach != ag.ReachOK || r.Manager.Nonce == "" || r.Pod.UID == "" ||
		r.Manager.PodUID != "" && r.Manager.PodUID != r.Pod.UID {
		return ag.Run{}
	}
	run := ag.Run{Replica: r.Name, PodUID: r.Pod.UID, Nonce: r.Manager.Nonce, Node: r.Pod.Node, BootID: r.Pod.BootID}
	if containerOfManager(r) {
		run.ContainerID = r.Pod.Container.ID
	}
	return run
}

// startGap is how long after its container a manager begins at the latest, on a busy node.
const startGap = 3 * second

// containerOfManager tells whether the pod's status speaks of the container in which this
// run of the manager lives: it may be one restart old, and the end of an earlier container
// must never count as the end of this run. All times are of the same node's clock; the
// kubelet gives whole seconds. A container that began in an earlier second than the manager
// may be an earlier one: better no name than a wrong one. But where the kubelet saw it
// become ready in a later second than that in which the manager began, it was up while this
// run was, and a pod has one container of a name at a time.
func containerOfManager(r *ag.Replica) bool {
	c := r.Pod.Container
	if c.ID == "" || !c.Running || c.StartedAt.IsZero() || r.Manager.StartedAt.IsZero() {
		return false
	}
	began := r.Manager.StartedAt.Truncate(second)
	d := began.Sub(c.StartedAt)
	if d < -second {
		return false
	}
	return d <= 0 || d <= startGap && r.Pod.Ready && r.Pod.ReadySince.After(began)
}

// sameRun tells whether the replica, as seen now, may be the run: nothing known about it contradicts.
func sameRun(r *ag.Replica, run ag.Run) bool {
	if r == nil || run.Zero() || r.Name != run.Replica {
		return false
	}
	if r.Pod.UID != "" && r.Pod.UID != run.PodUID {
		return false
	}
	return r.Manager.Reach != ag.ReachOK || r.Manager.Nonce == "" || r.Manager.Nonce == run.Nonce
}

// certainlyRun tells whether it is that run: its manager says so.
func certainlyRun(r *ag.Replica, run ag.Run) bool {
	return sameRun(r, run) && r.Manager.Reach == ag.ReachOK && r.Manager.Nonce != "" && r.Pod.UID != ""
}

// holder is the replica that the Lease names, or nil.
func (v *view) holder() *ag.Replica {
	if v.auth.Holder.Zero() {
		return nil
	}
	return v.snap.Find(v.auth.Holder.Replica)
}

// standing of the Lease's holder, as far as it can be told.
type standing int

const (
	holderNone       standing = iota // nobody holds the Lease
	holderWriting                    // that run is PRIMARY
	holderNotPrimary                 // its server answers, and is not PRIMARY, or it is another run
	holderDead                       // proof of death (R8)
	holderSilent                     // cannot tell
)

func (v *view) standing() standing {
	h := v.holder()
	switch {
	case v.auth.Holder.Zero():
		return holderNone
	case h != nil && sameRun(h, v.auth.Holder) && isPrimary(h):
		return holderWriting
	case v.dead(v.auth.Holder) != "":
		return holderDead
	case h != nil && sameRun(h, v.auth.Holder) && notPrimary(h):
		return holderNotPrimary
	case h != nil && notPrimary(h) && h.Pod.UID == v.auth.Holder.PodUID:
		// Another run of the same pod without the lock on the volume: it answers for the
		// server all the same, and that is not PRIMARY.
		return holderNotPrimary
	}
	return holderSilent
}

// primary is the replica that is PRIMARY and holds the Lease, or nil.
func (v *view) primary() *ag.Replica {
	if v.standing() == holderWriting {
		return v.holder()
	}
	return nil
}

// strays are the replicas that say PRIMARY and do not hold the Lease.
func (v *view) strays() []*ag.Replica {
	var out []*ag.Replica
	for i := range v.snap.Replicas {
		r := &v.snap.Replicas[i]
		if isPrimary(r) && !sameRun(r, v.auth.Holder) {
			out = append(out, r)
		}
	}
	return out
}

// policyOf is the spec of one replica, or nil.
func (v *view) policyOf(name string) *ag.ReplicaPolicy {
	for i := range v.pol.Replicas {
		if v.pol.Replicas[i].Name == name {
			return &v.pol.Replicas[i]
		}
	}
	return nil
}

func (v *view) witness() *ag.Replica {
	for i := range v.snap.Replicas {
		if v.snap.Replicas[i].Mode == ag.ModeConfigurationOnly {
			return &v.snap.Replicas[i]
		}
	}
	return nil
}

func contains(list []string, name string) bool {
	for _, x := range list {
		if x == name {
			return true
		}
	}
	return false
}

func with(list []string, name string) []string {
	if name == "" || contains(list, name) {
		return list
	}
	return append(append([]string(nil), list...), name)
}

func less(list []string, name string) []string {
	var out []string
	for _, x := range list {
		if x != name {
			out = append(out, x)
		}
	}
	return out
}

func sameServer(a, b string) bool { return strings.EqualFold(a, b) }
