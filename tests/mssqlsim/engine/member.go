package engine

import "time"

// suspend reasons (FG 3.6)
const (
	suspendUser    uint8 = 0
	suspendPartner uint8 = 1
	suspendRedo    uint8 = 2
)

var suspendReasons = [...]string{"SUSPEND_FROM_USER", "SUSPEND_FROM_PARTNER", "SUSPEND_FROM_REDO", "SUSPEND_FROM_CAPTURE", "SUSPEND_FROM_APPLY",
	"SUSPEND_FROM_RESTART", "SUSPEND_FROM_UNDO", "SUSPEND_FROM_REVALIDATION", "SUSPEND_FROM_XRF_UPDATE"}

// leave takes the local copy out of the group: it stays online on the primary and becomes RESTORING
// elsewhere (FG 1.7, 4.10).
func (m *member) leave() {
	g := m.group
	m.stopSeeding(1)
	d := m.db
	if d == nil {
		return
	}
	m.db, m.live = nil, false
	d.member = nil
	pending := d.commits
	d.commits = nil
	for _, c := range pending {
		g.in.settle(d, c)
	}
	primary := g.role == RolePrimary
	g.in.setState(d, func(st *DatabaseState) {
		st.Group, st.GroupDB, st.Joined, st.Suspended, st.Suspend = GUID{}, GUID{}, false, false, 0
		st.Restoring = st.Restoring || !primary
	})
	if primary {
		d.recovering = false
		return
	}
	g.in.kill(func(s *session) bool { return s.uses(d) }, killedError())
}

// detach forgets a copy that is being dropped.
func (m *member) detach() {
	m.stopSeeding(1)
	if m.db != nil {
		m.db.member = nil
	}
	m.db, m.live, m.broken = nil, false, false
}

// SetDatabaseHADR is ALTER DATABASE … SET HADR (FG 4.8).
func (in *Instance) SetDatabaseHADR(now time.Time, id SessionID, name string, a HADRAction, group string) (WaitID, error) {
	in.begin(now)
	s := in.session(id)
	if !in.cfg.HADR {
		return 0, in.groupStatement(&session{db: MasterID})
	}
	d := in.databaseByName(name)
	if d == nil || !in.mayAlter(s, d) && !in.can(s, "ALTER ANY DATABASE") {
		return 0, msg(5011, 14, 5, "User does not have permission to alter database '%s', the database does not exist, or the database is not in a state that allows access checks.", name)
	}
	if a == HADRJoin {
		return in.joinDatabase(d, name, group)
	}
	m := d.member
	if m == nil {
		return 0, msg(35242, 16, 16, "Cannot complete this ALTER DATABASE <database-name> SET HADR operation on database '%s'. The database is not joined to an availability group.  After the database has joined the availability group, retry the command.", name)
	}
	g := m.group
	switch a {
	case HADRSuspend:
		if !d.state.Suspended {
			m.suspend(suspendUser)
		}
	case HADRResume:
		m.resume()
	case HADROff:
		if g.role == RolePrimary {
			return 0, msg(35240, 16, 14, "Database '%s' cannot be joined to or unjoined from availability group '%s'. This operation is not supported on the primary replica of the availability group.", name, g.st.Config.Name)
		}
		if up := g.upstream; up != nil && up.link != nil {
			in.send(up.link, CopySuspended{Group: g.id(), DB: m.id, Reason: suspendUser})
		}
		m.leave()
		m.off = true
	}
	return 0, nil
}

// joinDatabase joins a local copy that is RESTORING; a copy that has joined already is 41145, which
// is informational.
func (in *Instance) joinDatabase(d *database, name, group string) (WaitID, error) {
	g := in.groupByName(group)
	if g == nil {
		return 0, msg(41131+2, 16, 1, "Availability group '%s' does not exist on this instance.", group)
	}
	if g.role == RolePrimary {
		return 0, msg(35240, 16, 14, "Database '%s' cannot be joined to or unjoined from availability group '%s'. This operation is not supported on the primary replica of the availability group.", name, group)
	}
	if d.member != nil && d.member.group == g {
		return 0, msg(41145, 10, 1, "Cannot join database '%s' to availability group '%s'.  The database has already joined the availability group.  This is an informational message.  No user action is required.", name, group)
	}
	var m *member
	for _, x := range g.members {
		if equalName(x.name, name) {
			m = x
		}
	}
	switch {
	case m == nil:
		return 0, msg(41148, 16, 1, "Cannot add or join database '%s' to availability group '%s'.  The database does not exist in the availability group configuration.", name, group)
	case !g.attached:
		return 0, msg(35250, 16, 7, "The connection to the primary replica is not active.  The command cannot be processed.")
	case !d.state.Restoring:
		return 0, msg(1464, 16, 1, "Database \"%s\" is not in a restoring state, which is required for a mirror database or secondary database. The remote database must be restored using WITH NORECOVERY.", name)
	}
	m.off = false
	m.take(d)
	return 0, nil
}

// take makes a local database the group's copy and offers it to the primary.
func (m *member) take(d *database) {
	g := m.group
	g.in.setState(d, func(st *DatabaseState) {
		st.Group, st.GroupDB, st.Joined, st.Suspended = g.id(), m.id, true, false
	})
	m.db, d.member = d, m
	m.asked = true
	if g.upstream != nil && g.attached {
		g.in.send(g.upstream.link, CopyReady{Group: g.id(), Copy: m.offer()})
	}
}

// suspend stops data movement of the copy; on the primary of all copies.
func (m *member) suspend(reason uint8) {
	g := m.group
	in := g.in
	in.setState(m.db, func(st *DatabaseState) { st.Suspended, st.Suspend = true, reason })
	in.log(35264, "Server", "Always On Availability Groups data movement for database '%s' has been suspended for the following reason: \"%s\" (Source ID %d; Source string: '%s'). To resume data movement on the database, you will need to resume the database manually.", m.name, suspendText(reason), reason, suspendReasons[reason])
	if g.role != RolePrimary {
		m.live = false
		if up := g.upstream; up != nil && up.link != nil && g.attached {
			in.send(up.link, CopySuspended{Group: g.id(), DB: m.id, Reason: reason})
		}
		return
	}
	i := m.index()
	for _, p := range g.peers {
		c := p.copies[i]
		if p.attached {
			in.send(p.link, SuspendCopy{Group: g.id(), DB: m.id, Reason: suspendPartner})
			c.live, c.marking, c.suspended, c.reason = false, false, true, suspendPartner
		}
	}
	g.notSynchronised()
}

func suspendText(reason uint8) string {
	switch reason {
	case suspendUser:
		return "user"
	case suspendPartner:
		return "failover partner"
	}
	return "system"
}

// resume starts it again.
func (m *member) resume() {
	g := m.group
	in := g.in
	was := m.db.state.Suspended
	if was {
		in.setState(m.db, func(st *DatabaseState) { st.Suspended, st.Suspend = false, 0 })
		in.log(35265, "Server", "Always On Availability Groups data movement for database '%s' has been resumed. This is an informational message only. No user action is required.", m.name)
	}
	if g.role == RolePrimary {
		i := m.index()
		for _, p := range g.peers {
			if p.attached && p.copies[i].suspended {
				in.send(p.link, SuspendCopy{Group: g.id(), DB: m.id, Resume: true})
			}
		}
		return
	}
	if was && g.upstream != nil && g.attached {
		m.asked = true
		in.send(g.upstream.link, CopyReady{Group: g.id(), Copy: m.offer()})
	}
}

// copySuspended notes on the primary that a copy was suspended there.
func (g *group) copySuspended(p *peer, s CopySuspended) {
	m := g.member(s.DB)
	if m == nil || !p.attached || g.role != RolePrimary {
		return
	}
	c := p.copyOf(m)
	c.live, c.marking, c.suspended, c.reason = false, false, true, s.Reason
	g.notSynchronised()
	m.acknowledge()
}

// suspendTold follows the primary's SUSPEND or RESUME.
func (g *group) suspendTold(p *peer, s SuspendCopy) {
	m := g.member(s.DB)
	if m == nil || m.db == nil || g.upstream != p || !g.attached {
		return
	}
	switch {
	case s.Resume:
		m.resume()
	case !m.db.state.Suspended:
		m.suspend(s.Reason)
	}
}

// copyReady plans a copy that was seeded, joined or resumed.
func (g *group) copyReady(p *peer, r CopyReady) {
	m := g.member(r.Copy.DB)
	if m == nil || g.role != RolePrimary || !p.attached {
		return
	}
	c := p.copyOf(m)
	c.suspended = r.Copy.Suspended
	pl := g.plan(p, m, r.Copy)
	g.in.send(p.link, CopyPlan{Group: g.id(), Plan: pl})
	g.enrol(p)
	m.shipTo(p, p.copyOf(m))
}

// backupAllowed are the rules of backups on a member of a group (FG 9.2).
func (m *member) backupAllowed(b BackupSpec) error {
	g := m.group
	switch g.role {
	case RolePrimary:
		if m.db.recovering {
			return msg(922, 14, 1, "Database '%s' is being recovered. Waiting until recovery is finished.", m.name)
		}
		return nil
	case RoleResolving:
		return m.usable(g.in.nobody, false)
	}
	if b.Kind == BackupFull && !b.CopyOnly || b.Kind == BackupDifferential || b.Kind == BackupLog && b.CopyOnly {
		return msg(3059, 16, 1, "This BACKUP or RESTORE command is not supported on a database mirror or secondary replica.")
	}
	if !g.attached || !m.live {
		return msg(3062, 16, 1, "Cannot backup from a HADRON secondary because it is not in Synchronizing or Synchronized state.")
	}
	return nil
}

// IsPrimaryReplica is sys.fn_hadr_is_primary_replica; not OK outside a group.
func (in *Instance) IsPrimaryReplica(database string) Opt[bool] {
	if d := in.databaseByName(database); d != nil && d.member != nil {
		return Some(d.member.group.role == RolePrimary)
	}
	return Opt[bool]{}
}

// IsPreferredBackupReplica is sys.fn_hadr_backup_is_preferred_replica.
func (in *Instance) IsPreferredBackupReplica(database string) bool {
	d := in.databaseByName(database)
	if d == nil || d.member == nil {
		return true
	}
	g := d.member.group
	primary := g.known
	isPrimary := func(r *Replica) bool { return equalName(r.Server, primary) }
	var best *Replica
	for i := range g.st.Config.Replicas {
		r := &g.st.Config.Replicas[i]
		if r.Availability == ConfigurationOnly || r.BackupPriority == 0 {
			continue
		}
		switch g.st.Config.BackupPreference {
		case 0:
			if !isPrimary(r) {
				continue
			}
		case 1:
			if isPrimary(r) {
				continue
			}
		case 2:
			if best != nil && isPrimary(best) && !isPrimary(r) {
				best = r
				continue
			}
			if best != nil && isPrimary(r) && !isPrimary(best) {
				continue
			}
		}
		if best == nil || r.BackupPriority > best.BackupPriority || r.BackupPriority == best.BackupPriority && foldName(r.Server) < foldName(best.Server) {
			best = r
		}
	}
	return best != nil && best.ID == g.st.Replica
}

// seekCopies looks after the databases of the group that have no joined copy here: it takes over one
// that is RESTORING and belongs to the same family, or asks for a seeding (FG 4.10).
func (g *group) seekCopies() {
	if g.role == RolePrimary || g.upstream == nil || !g.attached || g.local().Availability == ConfigurationOnly {
		return
	}
	for _, m := range g.members {
		if m.db == nil && m.seed == nil && !m.off {
			m.seek()
		}
	}
}

func (m *member) seek() {
	g := m.group
	in := g.in
	r := g.local()
	if !r.SeedingAutomatic {
		return
	}
	if r.SeedGeneration != m.seedGen {
		m.seedGen, m.failed = r.SeedGeneration, false
	}
	if m.failed || g.role == RoleResolving {
		return
	}
	if !g.st.CreateAny {
		if !m.granted {
			m.granted = true
			in.log(19506, "Server", "Automatic seeding of database '%s' in availability group '%s' failed because the availability group has not been granted permission to create databases. Use ALTER AVAILABILITY GROUP ... GRANT CREATE ANY DATABASE.", m.name, g.st.Config.Name)
		}
		return
	}
	if d := in.databaseByName(m.name); d != nil {
		if d.state.Restoring && d.member == nil {
			row := in.seedRow(m, g.upstream.id, false, in.rnd.guid())
			row.CurrentState, row.CompletionTime = "COMPLETED", Some(in.wall())
			m.take(d)
			return
		}
		if !m.conflict {
			m.conflict = true
			row := in.seedRow(m, g.upstream.id, false, in.rnd.guid())
			in.seedEnd(row, 223)
			in.log(19496, "Server", "Automatic seeding of availability database '%s' in availability group '%s' failed with an unrecoverable error. Correct the problem, then issue an ALTER AVAILABILITY GROUP command to set SEEDING_MODE = AUTOMATIC on the replica to restart seeding.", m.name, g.st.Config.Name)
		}
		return
	}
	m.conflict = false
	m.seed = &seedJob{member: m, op: in.rnd.guid(), peer: g.upstream}
	m.seed.row = in.seedRow(m, g.upstream.id, false, m.seed.op)
	in.send(g.upstream.link, SeedRequest{Group: g.id(), DB: m.id, Operation: m.seed.op})
}
