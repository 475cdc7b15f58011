package engine

import "slices"

// consider decides whether to follow a peer that says it is PRIMARY.
func (g *group) consider(p *peer) {
	if p.link == nil || !p.known || p.status.Role != RolePrimary {
		return
	}
	switch {
	case g.role == RolePrimary || g.failingOver:
		return
	case g.role == RoleResolving && !g.want:
		return
	case g.upstream == p:
		return
	}
	newer := p.status.Sequence > g.st.Config.Sequence
	if g.upstream != nil && !newer {
		return
	}
	if len(g.wanting) > 0 && g.latched(p) {
		return
	}
	g.follow(p)
}

// follow asks a primary to be its secondary.
func (g *group) follow(p *peer) {
	if g.upstream != nil && g.upstream != p {
		if g.upstream.link != nil {
			g.in.send(g.upstream.link, Detach{Group: g.id()})
		}
		g.primaryGone()
	}
	g.upstream, g.attached = p, false
	a := Attach{Group: g.id(), Replica: g.st.Replica, Sequence: g.st.Config.Sequence, Explicit: g.want}
	for _, m := range g.members {
		if m.db != nil && m.db.content != nil {
			a.Copies = append(a.Copies, m.offer())
		}
	}
	g.in.send(p.link, a)
}

// offer describes the local copy.
func (m *member) offer() CopyState {
	return CopyState{DB: m.id, End: m.db.end, Forks: m.db.forks(), Suspended: m.db.state.Suspended, Reason: m.db.state.Suspend}
}

// attach accepts a follower, or not.
func (g *group) attach(p *peer, a Attach) {
	refuse := func() { g.in.send(p.link, AttachRefused{Group: g.id(), Sequence: g.st.Config.Sequence}) }
	if g.role != RolePrimary || g.superseded || p.id != a.Replica {
		refuse()
		return
	}
	if a.Sequence > g.st.Config.Sequence {
		// A replica that was told to follow may hold versions that it proposed itself as a primary whose
		// promotion nobody voted for: they go under. A higher promotion than ours is not ours to judge.
		orphan := a.Explicit && g.promoting == 0 && (a.Sequence>>32 == g.st.Config.Sequence>>32 || g.in.cfg.Readings.FlatSequence)
		if !orphan {
			g.supersede()
			refuse()
			return
		}
		g.proposeConfig(g.st.Config.clone(), g.nextSequence(false, a.Sequence), nil)
	} else if a.Sequence == g.st.Config.Sequence && g.in.cfg.Readings.FlatSequence {
		g.proposeConfig(g.st.Config.clone(), g.nextSequence(false, a.Sequence), nil)
	}
	first := !p.attached
	p.attached, p.acked = true, 0
	p.missing = g.in.now.Add(-1)
	plans := make([]Plan, 0, len(a.Copies))
	for _, c := range p.copies {
		*c = copyState{suspended: c.suspended && c.reason == suspendUser, reason: c.reason}
	}
	for _, c := range a.Copies {
		if m := g.member(c.DB); m != nil {
			// whether a copy is suspended is what it says itself: its RESUME may have been lost with the link
			p.copyOf(m).suspended = false
			if !c.Suspended && forcedBetween(m, c.Forks) {
				c.Suspended, c.Reason = true, suspendPartner
				pl := g.plan(p, m, c)
				pl.Suspend = true
				plans = append(plans, pl)
				continue
			}
			plans = append(plans, g.plan(p, m, c))
		}
	}
	if first {
		g.in.log(35202, "Server", "A connection for availability group '%s' from availability replica '%s' with id  [%s] to '%s' with id [%s] has been successfully established.  This is an informational message only. No user action is required.",
			g.st.Config.Name, g.in.srv.ServerName, g.st.Replica, p.replica().Server, p.id)
	}
	g.in.send(p.link, Attached{Group: g.id(), Config: g.st.Config, Committed: g.committed.Sequence, Plans: plans})
	g.notSynchronised()
	g.enrol(p)
	g.shipAll(p)
}

// forcedBetween tells whether the primary's log has a forced failover that the copy has not seen.
func forcedBetween(m *member, forks []Fork) bool {
	if m.db == nil || m.db.content == nil {
		return false
	}
	for i, f := range m.db.forks() {
		if i > 0 && f.Forced && !slices.ContainsFunc(forks, func(x Fork) bool { return x.ID == f.ID }) {
			return true
		}
	}
	return false
}

// enrol records that a replica has joined and which copies it has.
func (g *group) enrol(p *peer) {
	r := p.replica()
	var joined []GUID
	for i, m := range g.members {
		if p.copies[i].live && !slices.Contains(r.JoinedDBs, m.id) {
			joined = append(joined, m.id)
		}
	}
	if r.Joined && r.Voter && len(joined) == 0 {
		return
	}
	g.propose(func(c *Configuration) {
		n := c.replica(p.id)
		n.Joined, n.Voter = true, true
		n.JoinedDBs = append(n.JoinedDBs, joined...)
	}, nil)
	g.judge()
}

// plan finds out how a follower's copy catches up.
func (g *group) plan(p *peer, m *member, c CopyState) Plan {
	cs := p.copyOf(m)
	if m.db == nil {
		return Plan{DB: m.id, Broken: true}
	}
	userHere := m.db.state.Suspended && m.db.state.Suspend == suspendUser
	if c.Suspended || cs.suspended || userHere {
		cs.live, cs.suspended, cs.reason = false, true, c.Reason
		return Plan{DB: m.id, Common: c.End}
	}
	common, ok := commonPoint(m.db.forks(), m.db.end, c.Forks, c.End)
	if !ok || common < m.db.image.LSN {
		cs.live, cs.broken = false, true
		g.in.log(1412, "Server", "The remote copy of database \"%s\" on '%s' has not been rolled forward to a point in time that is encompassed in the local copy of the database log.", m.name, p.replica().Server)
		return Plan{DB: m.id, Broken: true}
	}
	*cs = copyState{live: true, sent: common, hardened: common, redone: common}
	pl := Plan{DB: m.id, Common: common}
	if c.End > common && m.db.end > common {
		// Undo puts back the primary's pages, which hold what its log holds by now: that log is the
		// one that must come (FG 4.8). The primary's log may never reach the old end of the copy.
		pl.UndoTo, cs.undoTo = m.db.end, m.db.end
	}
	g.in.log(35266, "Server", "Always On Availability Groups connection with secondary database established for primary database '%s' on the availability replica '%s' with Replica ID: {%s}. This is an informational message only. No user action is required.", m.name, p.replica().Server, p.id)
	return pl
}

// accepted starts following.
func (g *group) accepted(p *peer, a Attached) {
	if g.upstream != p || g.role == RolePrimary || g.failingOver {
		return
	}
	if a.Config.replica(g.st.Replica) == nil {
		g.configure(p, Configure{Config: a.Config})
		return
	}
	g.attached = true
	g.known = p.replica().Server
	g.adopt(a.Config, a.Committed)
	g.in.send(p.link, Configured{Group: g.id(), Sequence: a.Config.Sequence})
	g.in.log(35202, "Server", "A connection for availability group '%s' from availability replica '%s' with id  [%s] to '%s' with id [%s] has been successfully established.  This is an informational message only. No user action is required.",
		g.st.Config.Name, g.in.srv.ServerName, g.st.Replica, p.replica().Server, p.id)
	for _, m := range g.members {
		m.live, m.asked = false, m.db != nil
	}
	for _, pl := range a.Plans {
		g.planned(pl)
	}
	if g.role == RoleResolving {
		g.secondarySoon()
	}
	g.seekCopies()
}

// planned prepares the local copy for what the primary is going to send.
func (g *group) planned(pl Plan) {
	m := g.member(pl.DB)
	if m == nil || m.db == nil {
		return
	}
	m.asked = false
	if pl.Suspend && !m.db.state.Suspended {
		m.live = false
		g.in.setState(m.db, func(st *DatabaseState) { st.Suspended, st.Suspend = true, suspendPartner })
		g.in.log(35264, "Server", "Always On Availability Groups data movement for database '%s' has been suspended for the following reason: \"%s\" (Source ID %d; Source string: '%s'). To resume data movement on the database, you will need to resume the database manually.", m.name, suspendText(suspendPartner), suspendPartner, suspendReasons[suspendPartner])
		return
	}
	if pl.Broken {
		m.broken = true
		g.in.log(35279, "Server", "The attempt to join database '%s' to availability group '%s' was rejected by the primary database with error '1412'. For more information, see the SQL Server error log for the primary replica.", m.name, g.st.Config.Name)
		return
	}
	if m.db.state.Suspended {
		return
	}
	m.broken = false
	if pl.UndoTo != 0 {
		g.in.log(35278, "Server", "Availability database '%s', which is in the secondary role, is being restarted to resynchronize with the current primary database. This is an informational message only. No user action is required.", m.name)
	}
	if !g.in.revert(m.db, pl.Common) {
		m.broken = true
		return
	}
	m.live, m.undoTo, m.received = true, pl.UndoTo, g.in.wall()
	m.db.recovering = false
	if m.db.state.Restoring {
		g.in.setState(m.db, func(st *DatabaseState) { st.Restoring = false })
	}
	g.in.log(35267, "Server", "Always On Availability Groups connection with primary database established for secondary database '%s' on the availability replica '%s'. This is an informational message only. No user action is required.", m.name, g.known)
	g.in.send(g.upstream.link, LogAck{Group: g.id(), DB: m.id, Hardened: m.db.end, Redone: m.db.end})
}

// followerLost ends the service of a secondary on the primary.
func (g *group) followerLost(p *peer) {
	if !p.attached {
		return
	}
	p.attached, p.acked = false, 0
	for i, c := range p.copies {
		if c.live {
			g.in.log(35267, "Server", "Always On Availability Groups connection with secondary database terminated for primary database '%s' on the availability replica '%s' with Replica ID: {%s}. This is an informational message only. No user action is required.", g.members[i].name, p.replica().Server, p.id)
		}
		c.live, c.marking = false, false
	}
	g.in.log(35206, "Server", "The connection to availability replica '%s' with id [%s] was lost: %s", p.replica().Server, p.id, orText(p.errText, "the replica left the session"))
	for _, m := range g.members {
		m.dropJobs(p)
	}
	if g.role != RolePrimary {
		return
	}
	g.notSynchronised()
	for _, m := range g.members {
		m.acknowledge() // Readings.AckBeforeDropCommitted
	}
}

// primaryGone stops data movement of a secondary.
func (g *group) primaryGone() {
	for _, m := range g.members {
		if m.live {
			g.in.log(35267, "Server", "Always On Availability Groups connection with primary database terminated for secondary database '%s' on the availability replica '%s'. This is an informational message only. No user action is required.", m.name, g.known)
		}
		m.live, m.asked = false, false
		m.stopSeeding(6)
	}
	g.upstream, g.attached = nil, false
}

// primaryLost is the loss of the primary as a secondary sees it (FG 4.4).
func (g *group) primaryLost() {
	if g.upstream == nil {
		return
	}
	p := g.upstream
	was := g.attached
	g.primaryGone()
	if !was {
		return
	}
	g.in.log(35206, "Server", "The connection to the primary replica '%s' was lost: %s", p.replica().Server, orText(p.errText, "the primary left the session"))
	if g.failingOver {
		if g.handover != nil {
			g.in.stop(g.handover)
			g.handover = nil
			g.promoteSoon()
		}
		return
	}
	if g.role == RoleSecondary && g.in.cfg.Readings.SecondaryResolvesOnPrimaryLoss && g.st.Config.ClusterType == ClusterExternal {
		g.resolve("SECONDARY_NORMAL")
		g.want = true
		return
	}
	for _, x := range g.peers {
		g.consider(x)
	}
}
