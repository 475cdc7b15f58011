package decide

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// snapshot is what the controller sees, in an order that a scenario may change.
func (w *world) snapshot() ag.Snapshot {
	snap := ag.Snapshot{ObservedAt: epochStart.Add(w.now)}
	var primary *server
	for _, s := range w.servers {
		if w.alive(s) && !s.frozen && s.role == ag.RolePrimary && w.linked("controller", s.name) && (primary == nil || s.name == w.lease.Holder.Replica) {
			primary = s // of several the one that the Lease names, as it is observed
		}
	}
	for _, s := range w.servers {
		snap.Replicas = append(snap.Replicas, w.replica(s, primary))
		snap.Nodes = append(snap.Nodes, ag.Node{Name: s.node, Ready: true, BootID: fmt.Sprintf("boot-%d", s.boot)})
	}
	return snap
}

func (w *world) replica(s, primary *server) ag.Replica {
	r := ag.Replica{Name: s.name, Ordinal: s.ordinal, Mode: s.mode, Auto: s.auto, Fenced: s.fenced}
	reach := w.alive(s) && w.linked("controller", s.name)
	r.Pod = ag.Pod{Exists: !s.gone, UID: s.podUID, Node: s.node, NodeReady: true, BootID: fmt.Sprintf("boot-%d", s.boot), Terminating: s.terminating,
		RoleLabel: s.label, PVCUID: s.pvc}
	if s.gone {
		r.Pod = ag.Pod{}
	}
	r.Pod.Container = ag.Container{ID: s.containerID, Running: s.up, StartedAt: epochStart.Add(s.started),
		TerminatedID: s.terminated, TerminatedReason: s.reason, Restarts: int32(s.containers - 1)}
	if !w.linked(s.name, "api") {
		// The kubelet is on the same node: what it last said is all there is.
		r.Pod.Container.Running, r.Pod.Container.TerminatedID = true, ""
	}
	switch {
	case reach:
		r.Manager = s.mgr.Manager(w.now)
		r.Manager.StartedAt = epochStart.Add(s.started)
		r.Manager.HasVolumeLock = true
	case s.gone:
		r.Manager.Reach = ag.ReachNoPod
	default:
		r.Manager.Reach = ag.ReachTimeout
	}
	switch {
	case reach && !s.frozen:
		r.Local = w.local(s)
	case s.gone:
		r.Local.Reach = ag.ReachNoPod
	case !s.up && w.linked("controller", s.name):
		r.Local.Reach = ag.ReachRefused
	default:
		r.Local.Reach = ag.ReachTimeout
	}
	if primary != nil && primary != s {
		there := w.follows(primary, s)
		rem := &ag.Remote{Connected: there, Role: s.role}
		if s.mode != ag.ModeConfigurationOnly {
			state := ag.SyncNotSynchronizing
			switch {
			case s.broken:
			case there && primary.cfg.has(s.name):
				state = ag.SyncSynchronized
			case there:
				state = ag.SyncSynchronizing
			}
			rem.Databases = []ag.Database{{Name: "orders", Sync: state, FailoverReady: primary.cfg.has(s.name)}}
		}
		r.Remote = rem
	}
	return r
}

func (w *world) local(s *server) ag.Local {
	l := ag.Local{Reach: ag.ReachOK, ServerName: strings.ToUpper(s.name), Role: s.role, GroupID: groupID, Sequence: s.cfg.seq,
		RequiredToCommit: s.cfg.k, Configured: w.configured(), LeaseEnabled: !w.noLease, Endpoint: s.endpoint}
	if s.role == ag.RolePrimary {
		if s.pending > 0 {
			l.CommitPendingFor = w.now - s.pending
		}
		l.LeaseRemaining = max(s.leaseEnd-w.now, 0)
	}
	if s.mode != ag.ModeConfigurationOnly {
		lsn := 0
		if len(s.log) > 0 {
			lsn = s.log[len(s.log)-1]
		}
		db := ag.Database{Name: "orders", State: ag.DatabaseOnline, HardenedLSN: fmt.Sprintf("%d", lsn+1000), RecoveryFork: "fork", Joined: true}
		if s.role == ag.RolePrimary {
			db.State = s.dbState
		}
		if s.suspend {
			db.Suspended, db.SuspendReason = true, suspendedByPartner
		}
		l.Databases = []ag.Database{db}
		l.UserDatabases = []ag.UserDatabase{{Name: db.Name, State: db.State, Grouped: !s.leftBehind}}
	}
	if s.mode == ag.ModeAsynchronous {
		l.Sequence = 0
	}
	return l
}

func clock(d time.Duration) string {
	n := int(d / time.Second)
	return fmt.Sprintf("%02d:%02d", n/60, n%60)
}

func sortedCuts(w *world) []string {
	var out []string
	for k, on := range w.cuts {
		if on {
			out = append(out, k)
		}
	}
	sort.Strings(out)
	return out
}
