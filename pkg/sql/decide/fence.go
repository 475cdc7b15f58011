package decide

import (
	"fmt"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// statusUnknown is a termination that the kubelet inferred and did not see.
const statusUnknown = "ContainerStatusUnknown"

// dead is R8: why this run is proven dead, or nothing. A Pod object that vanished and a
// node that is silent prove nothing.
func (v *view) dead(run ag.Run) string {
	if run.Zero() || v.knobs.without("R8") {
		return ""
	}
	if v.knobs.without("R8 proof") && !reached(v.snap.Find(run.Replica)) {
		return "it does not answer"
	}
	if r := v.snap.Find(run.Replica); r != nil && r.Pod.UID == run.PodUID && r.Pod.UID != "" {
		c := r.Pod.Container
		alive := r.Manager.Reach == ag.ReachOK && r.Manager.Nonce == run.Nonce
		switch {
		case alive:
			return "" // whatever a status says that may be older
		case run.ContainerID != "" && c.TerminatedID == run.ContainerID && c.TerminatedReason != statusUnknown:
			return "its container has ended (" + orText(c.TerminatedReason, fmt.Sprintf("exit code %d", c.ExitCode)) + ")"
		case r.Manager.Reach == ag.ReachOK && r.Manager.Nonce != "" && r.Manager.PodUID == run.PodUID && r.Manager.HasVolumeLock:
			return "a later run of its pod holds the lock on the data volume"
		case r.Pod.OutOfService && r.Pod.Node == run.Node:
			return "its node " + run.Node + " is marked out of service"
		case run.BootID != "" && r.Pod.Node == run.Node && r.Pod.BootID != "" && r.Pod.BootID != run.BootID:
			return "its node " + run.Node + " was rebooted"
		}
	}
	if v.laterPod(run) {
		return "a later pod on its data volume holds the lock there"
	}
	for _, n := range v.snap.Nodes {
		if n.Name != run.Node || n.Name == "" {
			continue
		}
		switch {
		case n.OutOfService:
			return "its node " + n.Name + " is marked out of service"
		case run.BootID != "" && n.BootID != "" && n.BootID != run.BootID:
			return "its node " + n.Name + " was rebooted"
		}
	}
	return ""
}

// laterPod: another pod of the replica runs on the very data volume, and its manager holds the
// lock there. It was made only when the end of the one before was proven, or on the same
// node, where the lock keeps two servers apart (docs/adr/0014-pods-and-volumes.md).
func (v *view) laterPod(run ag.Run) bool {
	r := v.snap.Find(run.Replica)
	if r == nil || r.Pod.UID == "" || r.Pod.UID == run.PodUID || r.Manager.Reach != ag.ReachOK || r.Manager.Nonce == "" || r.Manager.Nonce == run.Nonce {
		return false
	}
	pvc, recorded := v.recordedPVC(r.Name)
	return recorded && pvc != "" && pvc == r.Pod.PVCUID && r.Manager.PodUID == r.Pod.UID && r.Manager.HasVolumeLock
}

// fence is what is known about the end of one grant that was taken away (R9).
type fence struct {
	grant ag.Grant
	proof ag.Proof
	why   string
	// left of the full wait, when there is no proof yet and time can give one.
	left time.Duration
}

// fences looks at every unfenced grant.
func (v *view) fences() []fence {
	var out []fence
	for _, g := range v.auth.Unfenced {
		out = append(out, v.fence(g))
	}
	return out
}

func (v *view) fence(g ag.Grant) fence {
	f := fence{grant: g, proof: g.Proven, why: "proven before"}
	if why := v.dead(g.Run); why != "" {
		f.proof, f.why = ag.ProofDeath, why
		return f
	}
	if f.proof != ag.ProofNone {
		return f
	}
	if v.knobs.without("R9") {
		f.proof, f.why = ag.ProofTime, "not asked"
		return f
	}
	seen := v.sighting(g.Epoch)
	if why := v.demoted(g, seen); why != "" {
		f.proof, f.why = ag.ProofDemoted, why
		return f
	}
	if v.auth.NoWriteLease || !v.pol.External {
		f.why = "the group has no working write lease: only proof of death counts"
		return f
	}
	d := v.tm.D()
	if h := v.holder(); h != nil && certainlyRun(h, v.auth.Holder) && h.Manager.GrantedAgo >= d {
		f.proof, f.why = ag.ProofTime, "its successor has been granted the Lease for longer than the full wait"
		return f
	}
	f.left = d - v.since(v.waitFrom(seen))
	if f.left <= 0 {
		f.proof, f.why, f.left = ag.ProofTime, fmt.Sprintf("the full wait of %s is over", d), 0
		return f
	}
	f.why = fmt.Sprintf("the full wait of %s is not over", d)
	return f
}

func (v *view) sighting(epoch int64) ag.Sighting {
	for _, s := range v.watch.Unfenced {
		if s.Epoch == epoch {
			return s
		}
	}
	return ag.Sighting{Epoch: epoch, Seen: v.in.Clock.Ended, From: v.in.Clock.Ended}
}

// neverPrimary: FAILOVER was sent to it, OFFLINE has ended what there was of it, and its
// sequence number is what it was before: a promotion raises it (FG 5.1).
func (v *view) neverPrimary(g ag.Grant) bool {
	r := v.snap.Find(g.Run.Replica)
	return g.Promoted && g.Offline && g.Sequence > 0 && certainlyRun(r, g.Run) && notPrimary(r) && r.Local.Sequence == g.Sequence
}

// demoted: its server says another role, after every statement that could have made it
// PRIMARY has expired: a FAILOVER is sent at most q after its swap and expires q later, a
// renewal of the write lease expires q after it was sent.
func (v *view) demoted(g ag.Grant, seen ag.Sighting) string {
	wait := v.tm.Q
	if g.Promoted {
		wait = 2*v.tm.Q + v.tm.M
	}
	if v.since(seen.Seen) < wait {
		return ""
	}
	if g.Run.Zero() {
		// An unknown holder, of a Lease that was lost: every replica must say so.
		for _, p := range v.pol.Replicas {
			if r := v.snap.Find(p.Name); p.Mode == ag.ModeSynchronous && !notPrimary(r) {
				return ""
			}
		}
		return "every synchronous replica says that it is not PRIMARY"
	}
	r := v.snap.Find(g.Run.Replica)
	if !certainlyRun(r, g.Run) || !notPrimary(r) {
		return ""
	}
	if g.Promoted && !g.Offline {
		return "" // an accepted FAILOVER changes the role later
	}
	return "its server says " + string(r.Local.Role)
}

// waitFrom is the latest moment at which that holder can have had proof of authority, on
// this process' clock: its last renewal seen to change, and the last failsafe answer of
// any manager. A manager's own start counts as an answer. A sealed manager's answers
// were given before the grant was taken away.
func (v *view) waitFrom(seen ag.Sighting) time.Duration {
	from := seen.From
	for i := range v.snap.Replicas {
		m := v.snap.Replicas[i].Manager
		if m.Reach != ag.ReachOK {
			continue
		}
		ago := m.StartedAgo
		if m.LastFailsafeAgo >= 0 {
			ago = m.LastFailsafeAgo
		}
		answered := v.in.Clock.Ended - ago
		if sealed(m, v.auth.Epoch) {
			answered = min(answered, seen.Seen)
		}
		from = max(from, answered)
	}
	return from
}

// sealed: this manager refuses failsafe answers to holders below that epoch.
func sealed(m ag.Manager, epoch int64) bool {
	return m.Reach == ag.ReachOK && max(m.SealedEpoch, m.HighestEpoch) >= epoch
}

func orText(s, alternative string) string {
	if s == "" {
		return alternative
	}
	return s
}
