package engine

import (
	"slices"
)

// shipAll sends a new follower what its copies lack.
func (g *group) shipAll(p *peer) {
	for i := range g.members {
		g.members[i].shipTo(p, p.copies[i])
	}
}

// ship sends new log to all followers.
func (m *member) ship() {
	if m.group.role != RolePrimary || m.db == nil {
		return
	}
	i := m.index()
	for _, p := range m.group.peers {
		m.shipTo(p, p.copies[i])
	}
}

func (m *member) shipTo(p *peer, c *copyState) {
	if !p.attached || !c.live || m.db == nil || c.sent >= m.db.end {
		return
	}
	l := m.db.log
	records := l[l.after(c.sent):len(l):len(l)]
	m.group.in.send(p.link, LogData{Group: m.group.id(), DB: m.id, Prev: c.sent, Records: records})
	c.sent, c.sentAt = m.db.end, m.group.in.wall()
}

// logReceived hardens log on a secondary. Redo is due at once and done when somebody looks (see
// usable), which nobody can tell apart.
func (g *group) logReceived(p *peer, d LogData) {
	m := g.member(d.DB)
	if g.upstream != p || !g.attached || m == nil || m.db == nil || !m.live {
		return
	}
	if len(d.Records) == 0 {
		return
	}
	g.in.slowIO(func() {
		if g.upstream != p || !g.attached || !m.live || m.db == nil {
			return
		}
		if d.Prev != m.db.end {
			// A gap: the link is not in order any more. A new one starts with a new plan.
			g.in.closeLink(p.link, 10054, "the log that arrived does not follow the log that is there")
			return
		}
		g.in.harden(m.db, d.Records...)
		g.in.crashPoint("harden")
		m.received = g.in.wall()
		if m.undoTo != 0 && m.db.end >= m.undoTo {
			m.undoTo = 0
		}
		g.in.send(p.link, LogAck{Group: g.id(), DB: m.id, Hardened: m.db.end, Redone: m.db.end})
	})
}

// logAcked takes a follower's progress.
func (g *group) logAcked(p *peer, a LogAck) {
	m := g.member(a.DB)
	if g.role != RolePrimary || !p.attached || m == nil || m.db == nil {
		return
	}
	c := p.copyOf(m)
	if !c.live || a.Hardened > c.sent {
		return
	}
	if a.Hardened > c.hardened {
		c.hardened, c.hardenedAt = a.Hardened, g.in.wall()
	}
	c.redone = max(c.redone, a.Redone)
	if c.undoTo != 0 && c.hardened >= c.undoTo {
		c.undoTo = 0
	}
	m.catchUp()
	m.acknowledge()
	g.in.checkpointMember(m)
}

// catchUp marks copies that have everything that was ever acknowledged as synchronised: by a
// configuration commit, and from the moment of the proposal on commits wait for them.
func (m *member) catchUp() {
	g := m.group
	if g.role != RolePrimary || g.superseded || m.db == nil || m.db.content == nil || g.promoting != 0 || g.local().Availability != SynchronousCommit {
		return
	}
	i := m.index()
	var ready []GUID
	for _, p := range g.peers {
		c := p.copies[i]
		r := p.replica()
		if !p.attached || !c.live || c.marking || c.undoTo != 0 || r.Availability != SynchronousCommit || r.synchronised(m.id) {
			continue
		}
		if c.hardened >= m.db.applied && slices.Contains(r.JoinedDBs, m.id) {
			c.marking = true
			ready = append(ready, p.id)
		}
	}
	if len(ready) == 0 {
		return
	}
	g.propose(func(c *Configuration) {
		for _, id := range ready {
			c.replica(id).mark(m.id, true)
		}
	}, nil)
	g.judge()
}

// required is the commit quorum that applies now: a lower one counts when it is committed, a
// higher one at once.
func (m *member) required() int {
	k := m.group.committed.Required
	for _, p := range m.group.proposals {
		k = max(k, p.config.Required)
	}
	return k
}

// participant tells whether commits wait for the copy: its mark is in the committed configuration
// or in a proposal that might yet be committed.
func (m *member) participant(id GUID) bool {
	marked := func(c *Configuration) bool {
		r := c.replica(id)
		return r != nil && r.synchronised(m.id) && r.Availability == SynchronousCommit
	}
	if marked(m.group.committed) {
		return true
	}
	for _, p := range m.group.proposals {
		if marked(p.config) {
			return true
		}
	}
	return false
}

// acknowledged counts the secondaries that are SYNCHRONIZED and finds the log that every participant has.
func (m *member) acknowledged() (limit LSN, counted int) {
	g := m.group
	limit = m.db.end
	i := m.index()
	for _, p := range g.peers {
		c := p.copies[i]
		if m.participant(p.id) {
			if g.in.cfg.Readings.AckBeforeDropCommitted && (!p.attached || !c.live) {
				continue
			}
			limit = min(limit, c.hardened)
		}
		r := g.committed.replica(p.id)
		if p.attached && c.live && r != nil && r.synchronised(m.id) && r.Availability == SynchronousCommit {
			counted++
		}
	}
	return limit, counted
}

// acknowledge completes the commits that the group's rule allows. The lease is looked at here, at
// every single acknowledgement, and not only by its timer.
func (m *member) acknowledge() {
	g := m.group
	d := m.db
	if d == nil || len(d.commits) == 0 || g.role != RolePrimary || g.superseded || g.promoting != 0 {
		return
	}
	if !g.in.cfg.Readings.LeaseByTimer && !g.leaseValid() {
		g.leaseRanOut()
		return
	}
	limit, counted := d.end, 0
	required := m.required()
	if g.local().Availability == SynchronousCommit {
		limit, counted = m.acknowledged()
	} else {
		required = 0 // an asynchronous primary waits for nobody (FG 4.8)
	}
	n := 0
	for n < len(d.commits) && d.commits[n].record.LSN <= limit && !d.commits[n].ready.After(g.in.now) {
		k := required
		if g.in.cfg.Readings.RaiseSparesWaiting {
			k = min(k, d.commits[n].required)
		}
		if counted < k {
			break
		}
		n++
	}
	if n == 0 {
		return
	}
	done := d.commits[:n:n]
	d.commits = d.commits[n:]
	for _, c := range done {
		g.in.settle(d, c)
	}
	m.catchUp()
}

// refuseCommit is the reading in which an unmet commit quorum fails commits with 988.
func (in *Instance) refuseCommit(d *database) error {
	m := d.member
	if m == nil || !in.cfg.Readings.RSSTCUnmetIs988 || m.group.role != RolePrimary {
		return nil
	}
	if _, counted := m.acknowledged(); counted < m.required() {
		return msg(988, 14, 1, "Unable to access database '%s' because it lacks a quorum of nodes for high availability. Try the operation again later.", d.state.Name)
	}
	return nil
}

// checkpointMember frees log that every copy has and that no log backup came for.
func (in *Instance) checkpointMember(m *member) {
	if len(m.db.log) < keptRecords || m.db.state.Recovery != RecoveryFull || !m.truncatable() {
		return
	}
	in.truncateLog(m.db)
}

// truncatable tells whether no replica needs the log any more.
func (m *member) truncatable() bool {
	g := m.group
	if m.db == nil || len(m.db.commits) > 0 || g.role != RolePrimary || len(m.jobs) > 0 {
		return false
	}
	for _, p := range g.peers {
		c := p.copyOf(m)
		if p.replica().Availability != ConfigurationOnly && slices.Contains(p.replica().JoinedDBs, m.id) && (!c.live || c.hardened < m.db.end) {
			return false
		}
	}
	return true
}

// pinned tells whether a lagging replica keeps the log from being freed.
func (m *member) pinned() bool {
	return m.group.role == RolePrimary && m.db != nil && len(m.db.log) > 0 && !m.truncatable()
}

// slowIO runs a log write after the delay of the fault, at once without one.
func (in *Instance) slowIO(write func()) {
	if in.faults.slowIO == 0 {
		write()
		return
	}
	in.after(in.faults.slowIO, write)
}
