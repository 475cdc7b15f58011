package engine

import (
	"slices"
	"strings"
	"time"
)

// alterable finds a group that the session may alter: 35208, 35221, 15151.
func (in *Instance) alterable(id SessionID, name string) (*group, error) {
	s := in.session(id)
	if err := in.groupStatement(s); err != nil {
		return nil, err
	}
	g := in.groupByName(name)
	if g == nil || !in.mayAlterGroup(s, g.id()) {
		return nil, msg(15151, 16, 1, "Cannot alter the availability group '%s', because it does not exist or you do not have permission.", name)
	}
	return g, nil
}

// groupStatement are the rules of every availability group statement (FG 1.3).
func (in *Instance) groupStatement(s *session) error {
	switch {
	case s.db != MasterID:
		return msg(35208, 16, 1, "Availability-group DDL operations are permitted only when you are using the master database. Run the USE MASTER statement, and retry your availability-group DDL command.")
	case s.txn != nil:
		return msg(574, 16, 0, "ALTER AVAILABILITY GROUP statement cannot be used inside a user transaction.")
	case !in.cfg.HADR:
		return msg(35221, 16, 1, "Could not process the operation. Always On Availability Groups replica manager is disabled on this instance of SQL Server. Enable Always On Availability Groups, by using the SQL Server Configuration Manager. Then, restart the SQL Server service, and retry the currently operation. For information about how to enable and disable Always On Availability Groups, see SQL Server Books Online.")
	}
	return nil
}

// Failover is FAILOVER; force is FORCE_FAILOVER_ALLOW_DATA_LOSS (FG 1.3, 1.4). It returns when the
// change is accepted: 47104, 41122, 41142, 47109, 41113.
func (in *Instance) Failover(now time.Time, id SessionID, name string, force bool) (WaitID, error) {
	in.begin(now)
	g, err := in.alterable(id, name)
	if err != nil {
		return 0, err
	}
	cfg := g.st.Config
	if cfg.ClusterType == ClusterExternal {
		if v, ok := in.SessionContext(id, "external_cluster"); !ok || !strings.EqualFold(v, "yes") {
			return 0, msg(47104, 16, 1, "This operation cannot be performed on the availability group '%s' because it has EXTERNAL cluster type. Use the cluster management tools to perform the operation.", name)
		}
	}
	if cfg.ClusterType == ClusterNone && !force {
		return 0, msg(47122, 16, 1, "Cannot failover an availability replica for availability group '%s' since it has CLUSTER_TYPE = NONE. Only force failover is supported in this version of SQL Server.", name)
	}
	local := g.local()
	switch {
	case g.role == RolePrimary:
		return 0, msg(41122, 16, 1, "Cannot failover availability group '%s' to this instance of SQL Server.  The local availability replica is already the primary replica of the availability group.  To failover this availability group to another instance of SQL Server, run the failover command on that instance of SQL Server.  If local instance of SQL Server is intended to host the primary replica of the availability group, then no action is required.", name)
	case local.Availability == ConfigurationOnly:
		return 0, msg(47109, 16, 1, "Availability group '%s' cannot failover to this replica. Configuration-only replicas cannot become primary. An attempt to fail over to a configuration-only replica was made.", name)
	case g.failingOver:
		return 0, msg(41113, 16, 1, "Cannot failover availability group '%s' to this instance of SQL Server because a failover command is already pending on the local replica of this availability group.  Wait for the pending failover command to complete before issuing another failover command.", name)
	case !force && !g.failoverReady():
		return 0, msg(41142, 16, 34, "The availability replica for availability group '%s' on this instance of SQL Server cannot become the primary replica. One or more databases are not synchronized or have not joined the availability group. If the availability replica uses the asynchronous-commit mode, consider performing a forced manual failover (with possible data loss). Otherwise, once all local secondary databases are joined and synchronized, you can perform a planned manual failover to this secondary replica (without data loss). For more information, see SQL Server Books Online.", name)
	}
	for _, m := range g.members {
		if m.db != nil && (m.db.suspect || m.db.pending) && !force {
			return 0, Errors{msg(35253, 16, 1, "Database \"%s\" is not in the correct state to become the primary database. The log must be restored from the previous primary replica to bring the database out of the reinitializing state.", m.name),
				msg(41160, 16, 0, "Failed to designate the local availability replica of availability group '%s' as the primary replica.  The operation encountered SQL Server error 35253 and has been terminated.  Check the preceding error and the SQL Server error log for more details about the error and corrective actions.", name)}
		}
	}
	g.beginFailover(force)
	return 0, nil
}

// failoverReady is the 41142 check: the persisted configuration shows every database of the group
// synchronised here, and the copies exist.
func (g *group) failoverReady() bool {
	r := g.local()
	if r.Availability != SynchronousCommit || !r.Joined {
		return false
	}
	for _, m := range g.members {
		if m.db == nil || m.db.content == nil || m.db.state.Restoring || m.seed != nil || m.broken {
			return false
		}
		if m.undoTo != 0 && m.db.end < m.undoTo {
			return false
		}
		if !r.synchronised(m.id) && !g.in.cfg.Readings.FailoverIgnoresSyncMark {
			return false
		}
	}
	return true
}

// beginFailover accepts a failover: the role goes to RESOLVING at once and to PRIMARY later.
func (g *group) beginFailover(force bool) {
	in := g.in
	from := g.stateName()
	up, attached := g.upstream, g.attached
	g.stopRole()
	for _, m := range g.members {
		m.stopSeeding(5)
	}
	g.failingOver, g.forced = true, force
	g.cutOff()
	g.setRole(RoleResolving, from, "RESOLVING_PENDING_FAILOVER")
	if !force && attached && up.link != nil {
		// Both ends are alive: the primary lets go first, and its log arrives before its answer.
		in.send(up.link, Handover{Group: g.id()})
		g.handover = in.after(3*time.Second, func() {
			g.handover = nil
			g.promoteSoon()
		})
		return
	}
	g.promoteSoon()
	g.broadcast()
}

// promoteSoon ends the failover after the promotion's own time.
func (g *group) promoteSoon() {
	in := g.in
	if up := g.upstream; up != nil && up.link != nil {
		in.send(up.link, Detach{Group: g.id()})
	}
	g.primaryGone()
	g.change = in.after(in.rnd.between(in.cfg.Timings.PromotionMin, in.cfg.Timings.PromotionMax), func() {
		g.change = nil
		g.become(g.forced, false)
	})
}

// letGo answers the failover of a connected secondary (FG 4.5).
func (g *group) letGo(p *peer) {
	if g.role != RolePrimary || !p.attached {
		return
	}
	for _, m := range g.members {
		m.shipTo(p, p.copyOf(m))
	}
	g.in.send(p.link, HandoverReady{Group: g.id()})
	if g.in.cfg.Readings.Planned == PlannedSticky {
		g.supersede()
		return
	}
	g.resolve("PRIMARY_NORMAL")
	g.want = true
}

// Offline is OFFLINE: the local replica goes to RESOLVING (FG 1.3, 11 nos. 7 and 16).
func (in *Instance) Offline(now time.Time, id SessionID, name string) (WaitID, error) {
	in.begin(now)
	g, err := in.alterable(id, name)
	if err != nil {
		return 0, err
	}
	was := g.role
	for _, m := range g.members {
		if m.db != nil {
			m.db.offlined = true
		}
	}
	g.resolve(g.stateName())
	g.leaseEnd, g.leaseExpired, g.offlined = time.Time{}, false, true
	if was == RoleSecondary && in.cfg.Readings.OfflineClearsSyncMark {
		cfg := g.st.Config.clone()
		cfg.replica(g.st.Replica).SyncDBs = nil
		g.put(func(st *GroupState) { st.Config = cfg })
	}
	if l := g.st.Latch; l != nil && !l.Offlined {
		n := *l
		n.Offlined = true
		g.put(func(st *GroupState) { st.Latch = &n })
	}
	return 0, nil
}

// SetRoleSecondary is SET (ROLE = SECONDARY): it looks for the primary and returns when one has
// accepted this replica, before the role has changed; 41104 when none does (FG 4.7).
func (in *Instance) SetRoleSecondary(now time.Time, id SessionID, name string) (WaitID, error) {
	in.begin(now)
	g, err := in.alterable(id, name)
	if err != nil {
		return 0, err
	}
	switch g.role {
	case RoleSecondary:
		g.reseat()
		return 0, nil
	case RolePrimary:
		if g.st.Config.ClusterType == ClusterNone && in.cfg.Major >= 16 {
			g.resolve("PRIMARY_NORMAL")
			g.secondary()
			return 0, nil
		}
		return 0, g.err41104()
	}
	if g.failingOver {
		return 0, msg(41138, 17, 1, "Cannot accept the operation on availability group '%s' because it is currently processing another operation. Retry the operation later.", name)
	}
	if g.st.Latch != nil && !g.latchFree() {
		return 0, g.err41104()
	}
	if g.change != nil {
		return 0, nil
	}
	if g.st.Config.ClusterType == ClusterNone {
		g.secondary()
		return 0, nil
	}
	var w *wait
	w = in.newWait(in.session(id), "HADR_AG_MUTEX", func() {
		g.wanting = slices.DeleteFunc(g.wanting, func(x *wait) bool { return x == w })
	})
	g.wanting = append(g.wanting, w)
	g.want = true
	g.connect()
	for _, p := range g.peers {
		g.consider(p)
	}
	if w.done {
		return 0, in.withdraw(w)
	}
	if g.want && g.wantUntil == nil {
		g.wantUntil = in.after(in.cfg.Timings.AttachWait, func() {
			g.wantUntil = nil
			if g.attached {
				return
			}
			if g.upstream != nil {
				g.primaryGone()
			}
			g.stopWanting(true)
		})
	}
	return w.id, nil
}

// reseat re-attaches a SECONDARY. It cancels a running seeding (FG 4.7).
func (g *group) reseat() {
	for _, m := range g.members {
		m.stopSeeding(15)
	}
	if p := g.upstream; p != nil && p.link != nil {
		g.in.send(p.link, Detach{Group: g.id()})
		g.primaryGone()
		g.consider(p)
		return
	}
	for _, p := range g.peers {
		g.consider(p)
	}
}

// latched tells whether following p fails and latches: a former primary came back while the new
// one was young (FG 4.7).
func (g *group) latched(p *peer) bool {
	in := g.in
	window := in.cfg.Readings.Latch41104
	if window == 0 || g.st.LastRole != RolePrimary || g.st.Latch != nil {
		return false
	}
	if p.status.PrimaryFor+in.now.Sub(p.statusAt) >= window {
		return false
	}
	g.latch(p)
	return true
}

func (g *group) latch(p *peer) {
	in := g.in
	l := &Latch{Since: in.now, Primary: p.replica().Server}
	if in.srv.Endpoint != nil {
		l.Own = in.srv.Endpoint.Restarts
	}
	if p.link != nil {
		l.Peer = p.link.restarts
	}
	g.put(func(st *GroupState) { st.Latch = l })
	in.log(35207, "Server", "Connection attempt on availability group id '%s' from replica id '%s' to replica id '%s' failed because of error 41104, severity 16, state 5.", g.id(), g.st.Replica, p.id)
	g.stopWanting(true)
}

// latchFree clears the latch when its conditions are met: OFFLINE, and both endpoints restarted,
// its own and the primary's. Where another server is primary by now, it is the connection to that
// one that counts, which has not failed.
func (g *group) latchFree() bool {
	in := g.in
	l := g.st.Latch
	free := in.cfg.Readings.LatchForgets > 0 && in.now.Sub(l.Since) >= in.cfg.Readings.LatchForgets
	if p := g.peerOn(l.Primary); p != nil && p.link != nil && in.srv.Endpoint != nil {
		free = free || l.Offlined && in.srv.Endpoint.Restarts > l.Own && p.link.restarts > l.Peer
	}
	for _, p := range g.peers {
		if p.link != nil && p.known && p.status.Role == RolePrimary && p.replica().Server != l.Primary && in.srv.Endpoint != nil {
			free = free || l.Offlined && in.srv.Endpoint.Restarts > l.Own
		}
	}
	if free {
		g.put(func(st *GroupState) { st.Latch = nil; st.LastRole = RoleResolving })
	}
	return free
}
