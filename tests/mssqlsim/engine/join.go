package engine

import (
	"slices"
	"time"
)

// join is a JOIN that waits for the configuration (FG 1.5).
type join struct {
	name        string
	clusterType *ClusterType
	wait        *wait
	grantor     PrincipalID
	timer       *timer
}

func joinFailed(name string, inner *Error) error {
	return Errors{inner, msg(41158, 16, 3, "Failed to join local availability replica to availability group '%s'.  The operation encountered SQL Server error %d and has been rolled back.  Check the SQL Server error log for more details.  When the cause of the error has been resolved, retry the ALTER AVAILABILITY GROUP JOIN command.", name, inner.Number)}
}

// JoinAvailabilityGroup is JOIN; clusterType nil means that the option was not given (FG 1.5).
func (in *Instance) JoinAvailabilityGroup(now time.Time, id SessionID, name string, clusterType *ClusterType) (WaitID, error) {
	in.begin(now)
	s := in.session(id)
	if err := in.groupStatement(s); err != nil {
		return 0, err
	}
	if !in.can(s, "CREATE AVAILABILITY GROUP") {
		return 0, msg(15151, 16, 1, "Cannot alter the availability group '%s', because it does not exist or you do not have permission.", name)
	}
	if in.groupByName(name) != nil {
		return 0, joinFailed(name, exists(name))
	}
	j := &join{name: name, clusterType: clusterType}
	j.wait = in.newWait(s, "HADR_AG_MUTEX", func() { in.dropJoin(j) })
	in.joins = append(in.joins, j)
	j.timer = in.after(in.cfg.Timings.JoinWait, func() {
		in.dropJoin(j)
		in.complete(j.wait, joinFailed(name, msg(47106, 16, 1, "Cannot join availability group '%s'. The operation timed out while fetching the configuration from the primary replica.", name)))
	})
	for _, l := range in.links {
		in.tryJoins(l)
	}
	return j.wait.id, nil
}

func exists(name string) *Error {
	return msg(41106, 16, 1, "Cannot create an availability replica for availability group '%s'.  An availability replica of the specified availability group already exists on this instance of SQL Server.  Verify that the specified availability group name is correct and unique, then retry the operation.  To remove or join the existing availability replica, run DROP AVAILABILITY GROUP or ALTER AVAILABILITY GROUP JOIN command.", name)
}

func (in *Instance) dropJoin(j *join) {
	in.stop(j.timer)
	in.joins = slices.DeleteFunc(in.joins, func(x *join) bool { return x == j })
}

// tryJoins asks a peer that is primary of a group which a JOIN waits for.
func (in *Instance) tryJoins(l *link) {
	if !l.ready() {
		return
	}
	for _, j := range slices.Clone(in.joins) {
		for _, st := range l.groups {
			if st.Role == RolePrimary && equalName(st.Name, j.name) {
				in.send(l, JoinRequest{Group: j.name, Server: in.srv.ServerName, ClusterType: j.clusterType})
			}
		}
	}
}

// joinRequested answers on the primary.
func (in *Instance) joinRequested(l *link, r JoinRequest) {
	if !l.ready() {
		return
	}
	g := in.groupByName(r.Group)
	reply := JoinReply{Group: r.Group}
	given := ClusterWSFC
	if r.ClusterType != nil {
		given = *r.ClusterType
	}
	switch {
	case g == nil || g.role != RolePrimary:
		return
	case g.st.Config.replicaOn(r.Server) == nil:
		return
	case given != g.st.Config.ClusterType:
		reply.Err = msg(47100, 16, 1, "The cluster type of availability group '%s' doesn't match its primary configuration. Verify that the specified availability group cluster type is correct, then retry the operation.", r.Group)
	default:
		reply.Config, reply.Committed = g.st.Config, g.committed.Sequence
	}
	in.send(l, reply)
}

// joinReplied takes the configuration over.
func (in *Instance) joinReplied(l *link, r JoinReply) {
	for _, j := range in.joins {
		if !equalName(j.name, r.Group) {
			continue
		}
		if r.Err != nil {
			in.dropJoin(j)
			in.complete(j.wait, joinFailed(j.name, r.Err))
			return
		}
		rep := r.Config.replicaOn(in.srv.ServerName)
		if rep == nil || in.group(r.Config.GroupID) != nil {
			return
		}
		in.dropJoin(j)
		st := &GroupState{Config: r.Config, Committed: r.Committed, Replica: rep.ID, Created: in.wall()}
		in.persist(PutGroup{State: st})
		g := in.newGroup(st)
		in.groups = append(in.groups, g)
		in.complete(j.wait, nil)
		g.setRole(RoleResolving, "NOT_AVAILABLE", "RESOLVING_NORMAL")
		for _, p := range g.peers {
			if p.link != nil {
				if ps, ok := p.link.status(g.id()); ok {
					p.status, p.statusAt, p.known = ps, in.now, true
				}
			}
		}
		g.broadcast()
		if in.cfg.Readings.JoinRole == JoinSecondary || st.Config.ClusterType == ClusterNone || rep.Availability == ConfigurationOnly {
			g.want = true
			for _, p := range g.peers {
				g.consider(p)
			}
		}
		return
	}
}
