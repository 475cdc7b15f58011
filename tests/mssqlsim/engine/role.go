package engine

import (
	"slices"
	"time"
)

// databaseState is sys.databases.state of a copy in a group.
func (m *member) databaseState() uint8 {
	g := m.group
	switch {
	case m.db.state.Restoring || m.seed != nil:
		return dbRestoring
	case g.role == RoleResolving:
		if g.in.cfg.Readings.ResolvingDatabasesRestoring || m.db.offlined {
			return dbRestoring
		}
		return dbRecoveryPending
	case m.db.recovering:
		return dbRecovering
	}
	return dbOnline
}

// usable is the access rule of a database in a group (FG 1.11).
func (m *member) usable(s *session, write bool) error {
	g := m.group
	name := m.name
	r := g.local()
	switch g.role {
	case RoleResolving:
		return msg(983, 14, 1, "Unable to access availability database '%s' because the database replica is not in the PRIMARY or SECONDARY role. Connections to an availability database is permitted only when the database replica is in the PRIMARY or SECONDARY role. Try the operation again later.", name)
	case RoleSecondary:
		if r.SecondaryConnections == 0 || m.db.content == nil || m.db.state.Restoring {
			return msg(976, 14, 1, "The target database, '%s', is participating in an availability group and is currently not accessible for queries. Either data movement is suspended or the availability replica is not enabled for read access. To allow read-only access to this and other databases in the availability group, enable read access to one or more secondary availability replicas in the group.  For more information, see the ALTER AVAILABILITY GROUP statement in SQL Server Books Online.", name)
		}
		if r.SecondaryConnections == 1 && !s.req.ReadOnlyIntent {
			return msg(978, 14, 1, "The target database ('%s') is in an availability group and is currently accessible for connections when the application intent is set to read only. For more information about application intent, see SQL Server Books Online.", name)
		}
		m.db.redo(m.db.end)
		if write {
			return readOnly(m.db, 2)
		}
	case RolePrimary:
		if r.PrimaryConnections == 3 && s.req.ReadOnlyIntent {
			return msg(979, 14, 1, "The target database ('%s') is in an availability group and currently does not allow read only connections. For more information about application intent, see SQL Server Books Online.", name)
		}
	}
	return nil
}

// cutOff ends all work in the group's databases: the role is lost or about to change.
func (g *group) cutOff() {
	in := g.in
	for _, m := range g.members {
		if m.db == nil {
			continue
		}
		d := m.db
		in.kill(func(s *session) bool { return s.uses(d) }, killedError())
		pending := d.commits
		d.commits = nil
		for _, c := range pending {
			// In the log, but nobody was told: the outcome is unknown to the client.
			if w := c.wait; w != nil {
				if s := w.session; s != nil && !w.done {
					in.kill(func(x *session) bool { return x == s }, killedError())
				}
				in.complete(w, killedError())
			}
			in.release(c)
		}
	}
}

// resolve takes the local replica to RESOLVING.
func (g *group) resolve(from string) {
	g.stopRole()
	if g.role == RolePrimary {
		for _, p := range g.peers {
			if p.attached {
				p.attached = false
				for _, c := range p.copies {
					c.live, c.marking = false, false
				}
				for _, m := range g.members {
					m.dropJobs(p)
				}
			}
		}
		for _, p := range g.proposals {
			for _, w := range p.waits {
				g.in.complete(w, msg(41190, 16, 1, "Availability group '%s' failed to process the command.  The local availability replica is not in a state that could process the command.", g.st.Config.Name))
			}
		}
		g.proposals, g.commitStart, g.promoting = nil, time.Time{}, 0
	}
	up := g.upstream
	g.primaryGone()
	if up != nil && up.link != nil {
		g.in.send(up.link, Detach{Group: g.id()})
	}
	g.cutOff()
	g.superseded = false
	g.setRole(RoleResolving, from, "RESOLVING_NORMAL")
	g.known = ""
	g.broadcast()
}

// stopRole cancels pending role changes.
func (g *group) stopRole() {
	in := g.in
	in.stop(g.change)
	in.stop(g.handover)
	in.stop(g.leaseTimer)
	g.change, g.handover, g.leaseTimer = nil, nil, nil
	g.failingOver = false
	g.stopWanting(true)
	in.stop(g.redial)
	g.redial = nil
}

func (g *group) stopWanting(failed bool) {
	g.want = false
	g.in.stop(g.wantUntil)
	g.wantUntil = nil
	l := g.wanting
	g.wanting = nil
	for _, w := range l {
		if failed {
			g.in.complete(w, g.err41104())
		} else {
			g.in.complete(w, nil)
		}
	}
}

func (g *group) err41104() *Error {
	return msg(41104, 16, 5, "Failover of the availability group '%s' to the local replica failed because the availability group resource did not come online due to a previous error. To identify that error, check the SQL Server error log and cluster manager logs.", g.st.Config.Name)
}

// state names of message 19406
func (g *group) stateName() string {
	switch g.role {
	case RolePrimary:
		return "PRIMARY_NORMAL"
	case RoleSecondary:
		return "SECONDARY_NORMAL"
	}
	if g.failingOver {
		return "RESOLVING_PENDING_FAILOVER"
	}
	return "RESOLVING_NORMAL"
}

// secondarySoon becomes SECONDARY a moment after the primary accepted this replica.
func (g *group) secondarySoon() {
	if g.change != nil {
		return
	}
	g.stopWanting(false)
	g.change = g.in.after(g.in.cfg.Timings.RoleChange, func() {
		g.change = nil
		if g.role == RoleResolving {
			g.secondary()
		}
	})
}

func (g *group) secondary() {
	g.setRole(RoleSecondary, g.stateName(), "SECONDARY_NORMAL")
	for _, m := range g.members {
		if m.db != nil {
			m.db.offlined, m.db.recovering = false, false
		}
	}
	if g.st.Latch != nil {
		g.put(func(st *GroupState) { st.Latch = nil })
	}
	g.broadcast()
	for _, p := range g.peers {
		g.consider(p)
	}
	g.seekCopies()
}

// become makes the local replica PRIMARY. The promotion is a configuration commit
// of its own, in which only the local copies are synchronised.
func (g *group) become(forced, restarted bool) {
	in := g.in
	in.crashPoint("promote")
	from := g.stateName()
	if g.failingOver {
		g.setRole(RoleResolving, from, "RESOLVING_NORMAL")
		from = "RESOLVING_NORMAL"
	}
	g.failingOver = false
	in.log(19406, "Server", "The state of the local availability replica in availability group '%s' has changed from '%s' to '%s'.  The state changed because the local replica changed its role. For more information, see the SQL Server error log, cluster manager logs, or the AlwaysOn_health session.", g.st.Config.Name, from, "PRIMARY_PENDING")
	fork := in.rnd.guid()
	for _, m := range g.members {
		d := m.db
		if d == nil || d.content == nil {
			continue
		}
		d.redo(d.end)
		r := in.appendRecord(d, []Change{{Op: OpFork, Fork: &Fork{ID: fork, Start: d.next, Before: d.end, Forced: forced}}})
		d.redo(r.LSN)
		d.offlined = false
		d.recovering = true
		if d.state.Restoring || d.state.Suspended {
			in.setState(d, func(st *DatabaseState) { st.Restoring, st.Suspended, st.Suspend = false, false, 0 })
		}
		m.broken, m.undoTo = false, 0
	}
	g.committed = g.st.Config
	g.proposals, g.commitStart = nil, time.Time{}
	g.superseded, g.leaseExpired = false, false
	g.setRole(RolePrimary, "PRIMARY_PENDING", "PRIMARY_NORMAL")
	g.known = in.srv.ServerName
	if g.st.Latch != nil {
		g.put(func(st *GroupState) { st.Latch = nil })
	}
	cfg := g.st.Config.clone()
	for i := range cfg.Replicas {
		r := &cfg.Replicas[i]
		if r.ID == g.st.Replica {
			r.SyncDBs = nil
			for _, m := range g.members {
				r.mark(m.id, true)
				if !slices.Contains(r.JoinedDBs, m.id) {
					r.JoinedDBs = append(r.JoinedDBs, m.id)
				}
			}
			r.Joined, r.Voter = true, true
			continue
		}
		r.SyncDBs = nil
		if forced {
			r.Voter = false
		}
	}
	p := g.proposeConfig(cfg, g.nextSequence(true, 0), nil)
	p.promotion, p.forced = true, forced || restarted && g.st.Config.ClusterType == ClusterNone
	g.promoting = cfg.Sequence
	in.crashPoint("promoted")
	g.startLease()
	g.change = in.after(in.cfg.Timings.Recovery, func() {
		g.change = nil
		for _, m := range g.members {
			if m.db != nil {
				m.db.recovering = false
				in.log(3408, "Server", "Recovery is complete. This is an informational message only. No user action is required.")
			}
		}
		g.broadcast()
	})
	g.judge()
	if g.role != RolePrimary {
		return
	}
	g.broadcast()
	g.connect()
}

// --- lease ---

// leaseClock is the clock of the write lease.
func (g *group) leaseClock() time.Time {
	if g.in.cfg.Readings.LeaseWallClock {
		return g.in.wall()
	}
	return g.in.now
}

func (g *group) leaseOn() bool { return g.st.Config.WriteLease > 0 }

func (g *group) leaseValid() bool {
	return !g.leaseOn() || g.leaseEnd.IsZero() || g.leaseClock().Before(g.leaseEnd)
}

// startLease begins the lease of a new primary: a candidate's own renewal counts, otherwise it
// starts at n seconds (FG 11 no. 6).
func (g *group) startLease() {
	if !g.leaseOn() {
		return
	}
	if g.leaseEnd.IsZero() && !g.in.cfg.Readings.LeaseUnlimitedUntilRenewed {
		g.leaseEnd = g.leaseClock().Add(time.Duration(g.st.Config.WriteLease) * time.Second)
	}
	g.armLease()
}

func (g *group) armLease() {
	in := g.in
	in.stop(g.leaseTimer)
	g.leaseTimer = nil
	if g.role != RolePrimary || !g.leaseOn() || g.leaseEnd.IsZero() {
		return
	}
	if in.cfg.Readings.LeaseByTimer {
		every := in.cfg.Readings.LeasePoll
		if every == 0 {
			every = time.Second
		}
		var poll func()
		due := in.now.Add(every)
		poll = func() {
			// A process that was frozen goes on where it stood: the next poll is a whole interval away.
			if in.now.Sub(due) < every && !g.leaseValid() {
				g.leaseTimer = nil
				g.leaseRanOut()
				return
			}
			due = in.now.Add(every)
			g.leaseTimer = in.at(due, poll)
		}
		g.leaseTimer = in.at(due, poll)
		return
	}
	g.leaseTimer = in.after(g.leaseEnd.Sub(g.leaseClock()), func() {
		g.leaseTimer = nil
		if g.leaseValid() {
			g.armLease()
			return
		}
		g.leaseRanOut()
	})
}

// leaseRanOut fences the primary (FG 5.5).
func (g *group) leaseRanOut() {
	if g.role != RolePrimary {
		return
	}
	g.in.log(41091, "Server", "Always On: The local replica of availability group '%s' is going offline because either the lease expired or lease renewal failed. This is an informational message only. No user action is required.", g.st.Config.Name)
	g.resolve("PRIMARY_NORMAL")
	g.leaseExpired = true
	g.leaseEnd = time.Time{}
}

// RenewWriteLease is SET (WRITE_LEASE_VALIDITY = seconds): 47116–47119, 47121 (FG 5.5).
func (in *Instance) RenewWriteLease(now time.Time, id SessionID, name string, seconds int64) error {
	in.begin(now)
	g, err := in.alterable(id, name)
	if err != nil {
		return err
	}
	switch {
	case !g.leaseOn():
		return msg(47116, 16, 1, "The external lease cannot be updated on availability group '%s'. To enable external write lease updates, recreate the availability group with WRITE_LEASE_VALIDITY.", name)
	case g.local().Availability == ConfigurationOnly:
		return msg(47121, 16, 1, "The local replica of availability group '%s' is in an invalid mode for this command.", name)
	case seconds <= 0 || seconds > 1<<31-1:
		return msg(47118, 16, 1, "The write lease validity %d of availability group '%s' is invalid.", seconds, name)
	}
	end := g.leaseClock().Add(time.Duration(seconds) * time.Second)
	if g.leaseEnd.After(g.leaseClock()) && end.Before(g.leaseEnd) {
		return msg(47119, 16, 1, "The current write lease of availability group '%s' expires later than the new one would.", name)
	}
	if g.role == RolePrimary && !g.leaseValid() {
		g.leaseRanOut()
	}
	if g.role == RoleResolving && g.leaseExpired && in.cfg.Readings.RenewalRevivesPrimary && !g.failingOver {
		g.leaseEnd = end
		g.become(false, false)
		return nil
	}
	g.leaseEnd = end
	g.armLease()
	return nil
}

func (g *group) leaseRemaining() int64 {
	if !g.leaseOn() || g.leaseEnd.IsZero() && g.role == RolePrimary {
		return noLease
	}
	return max(0, g.leaseEnd.Sub(g.leaseClock()).Milliseconds())
}
