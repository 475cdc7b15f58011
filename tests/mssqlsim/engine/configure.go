package engine

import (
	"slices"
	"time"
)

// proposal is a version of the configuration that the primary has persisted and that waits for its
// quorum (FG 5.1, 5.4).
type proposal struct {
	config    *Configuration
	promotion bool
	forced    bool
	waits     []*wait
}

// propose makes, persists and sends a new version of the configuration. w, if given, completes when
// it is committed.
func (g *group) propose(change func(*Configuration), w *wait) *proposal {
	cfg := g.st.Config.clone()
	change(cfg)
	return g.proposeConfig(cfg, g.nextSequence(false, 0), w)
}

func (g *group) proposeConfig(cfg *Configuration, sequence int64, w *wait) *proposal {
	cfg.Sequence, cfg.Primary = sequence, g.st.Replica
	p := &proposal{config: cfg}
	if w != nil {
		p.waits = append(p.waits, w)
	}
	g.put(func(st *GroupState) { st.Config = cfg })
	g.in.crashPoint("propose")
	g.proposals = append(g.proposals, p)
	if g.commitStart.IsZero() {
		g.commitStart = g.in.wall()
	}
	g.rewire()
	for _, x := range g.peers {
		if x.attached && x.link != nil {
			g.in.send(x.link, Configure{Config: cfg, Committed: g.committed.Sequence})
		}
	}
	return p
}

// voters are the joined replicas that vote: synchronous and configuration-only ones (FG 0.4).
func (c *Configuration) voters() (all, sync int, witness bool) {
	for i := range c.Replicas {
		r := &c.Replicas[i]
		if !r.Voter {
			continue
		}
		switch r.Availability {
		case SynchronousCommit:
			all++
			sync++
		case ConfigurationOnly:
			all++
			witness = true
		}
	}
	return all, sync, witness
}

// quorum tells whether version p is persisted by enough voters of configuration c (FG 5.4, 11 no. 34).
func (g *group) quorum(c *Configuration, p *proposal, required int) bool {
	n, sync, witness := c.voters()
	votes := 0
	for i := range c.Replicas {
		r := &c.Replicas[i]
		if !r.Voter {
			continue
		}
		if r.ID == g.st.Replica {
			votes++
			if r.Availability != SynchronousCommit { // an asynchronous primary counts itself
				n++
			}
			continue
		}
		if r.Availability == AsynchronousCommit {
			continue
		}
		if x := g.peer(r.ID); x != nil && x.acked >= p.config.Sequence {
			votes++
		}
	}
	need := n/2 + 1
	rd := &g.in.cfg.Readings
	if required == 0 && !witness && (sync == 2 && n == 2 && !rd.TwoReplicasNeedMajority || sync == 3 && n == 3 && rd.ThreeReplicasCommitAlone) {
		need = 1
	}
	return votes >= need
}

// decided tells whether a proposal is committed: a majority of the voters of the last committed
// version and of its own.
func (g *group) decided(p *proposal) bool {
	if p.forced || p.promotion && (g.in.cfg.Readings.PromotionWithoutQuorum || g.in.cfg.Readings.PersistedCountsAsCommitted) {
		return true
	}
	required := p.config.Required
	if g.in.cfg.Readings.ConfigurationJudgedByOldQuorum {
		required = max(required, g.committed.Required)
	}
	return g.quorum(p.config, p, required) && g.quorum(g.committed, p, required) && g.told(p)
}

// told tells whether every copy that the version newly shows as synchronised knows it: whoever reads
// SYNCHRONIZED on the primary may fail over to it at once.
func (g *group) told(p *proposal) bool {
	for i := range p.config.Replicas {
		r := &p.config.Replicas[i]
		x := g.peer(r.ID)
		if x == nil || x.acked >= p.config.Sequence {
			continue
		}
		old := g.committed.replica(r.ID)
		for _, db := range r.SyncDBs {
			if old == nil || !old.synchronised(db) {
				return false
			}
		}
	}
	return true
}

// judge commits what has its quorum, the newest first: a later version includes the earlier ones.
func (g *group) judge() {
	if g.role != RolePrimary || g.superseded {
		return
	}
	for i := len(g.proposals) - 1; i >= 0; i-- {
		if !g.decided(g.proposals[i]) {
			continue
		}
		done := g.proposals[:i+1]
		g.proposals = slices.Clone(g.proposals[i+1:])
		p := done[i]
		g.committed = p.config
		g.commitStart = time.Time{}
		if len(g.proposals) > 0 {
			g.commitStart = g.in.wall()
		}
		g.put(func(st *GroupState) { st.Committed = p.config.Sequence })
		if g.promoting != 0 && p.config.Sequence >= g.promoting {
			g.promoting = 0
		}
		for _, d := range done {
			for _, w := range d.waits {
				g.in.complete(w, nil)
			}
		}
		for _, x := range g.peers {
			if x.attached && x.link != nil {
				g.in.send(x.link, Committed{Group: g.id(), Sequence: p.config.Sequence})
			}
		}
		g.configured()
		return
	}
}

// configured follows a commit of the configuration on the primary.
func (g *group) configured() {
	for _, p := range g.peers {
		for i, c := range p.copies {
			if c.marking && g.committed.replica(p.id) != nil && g.committed.replica(p.id).synchronised(g.members[i].id) {
				c.marking = false
			}
		}
	}
	g.notSynchronised()
	for _, m := range g.members {
		m.catchUp()
		m.acknowledge()
	}
}

// notSynchronised drops the marks of copies that no longer follow (FG 5.1).
func (g *group) notSynchronised() {
	if g.role != RolePrimary || g.superseded {
		return
	}
	type lost struct{ replica, db GUID }
	var l []lost
	for _, p := range g.peers {
		r := g.st.Config.replica(p.id)
		for i, m := range g.members {
			c := p.copies[i]
			if r.synchronised(m.id) && (!p.attached || !c.live) {
				l = append(l, lost{p.id, m.id})
				c.marking = false
			}
		}
	}
	if len(l) == 0 {
		return
	}
	g.propose(func(c *Configuration) {
		for _, x := range l {
			c.replica(x.replica).mark(x.db, false)
		}
	}, nil)
	g.judge()
}

// adopt persists a version that came from the primary.
func (g *group) adopt(c *Configuration, committed int64) {
	g.put(func(st *GroupState) {
		st.Config = c
		st.Committed = max(min(committed, c.Sequence), 0)
	})
	g.rewire()
}

// receive handles the group's messages.
func (g *group) receive(l *link, m Message) {
	var p *peer
	for _, x := range g.peers {
		if x.link == l {
			p = x
		}
	}
	if p == nil {
		return
	}
	switch m := m.(type) {
	case Attach:
		g.attach(p, m)
	case Attached:
		g.accepted(p, m)
	case AttachRefused:
		if g.upstream == p && !g.attached {
			g.upstream = nil
		}
	case Configure:
		g.configure(p, m)
	case Configured:
		if g.role == RolePrimary && p.attached && m.Sequence > p.acked {
			p.acked = m.Sequence
			g.judge()
		}
	case Committed:
		if g.upstream == p && g.attached && m.Sequence > g.st.Committed {
			g.put(func(st *GroupState) { st.Committed = m.Sequence })
		}
	case LogData:
		g.logReceived(p, m)
	case LogAck:
		g.logAcked(p, m)
	case CopyReady:
		g.copyReady(p, m)
	case CopyPlan:
		if g.upstream == p && g.attached {
			g.planned(m.Plan)
		}
	case CopySuspended:
		g.copySuspended(p, m)
	case SuspendCopy:
		g.suspendTold(p, m)
	case Detach:
		if p.attached {
			g.followerLost(p)
		}
		if g.upstream == p {
			g.primaryLost()
		}
	case Handover:
		g.letGo(p)
	case HandoverReady:
		if g.failingOver && g.handover != nil {
			g.in.stop(g.handover)
			g.handover = nil
			g.promoteSoon()
		}
	case SeedRequest:
		g.seedRequested(p, m)
	case SeedProgress:
		g.seedProgress(p, m)
	case SeedImage:
		g.seedImage(p, m)
	case SeedFailed:
		g.seedFailed(p, m)
	}
}

// configure persists a version from the primary and votes for it.
func (g *group) configure(p *peer, m Configure) {
	if g.upstream != p || !g.attached {
		return
	}
	if m.Config.Sequence < g.st.Config.Sequence && !g.in.cfg.Readings.FlatSequence {
		return
	}
	if m.Config.replica(g.st.Replica) == nil {
		g.in.log(41096, "Server", "Always On: The local replica of availability group '%s' is being removed. The instance of SQL Server failed to validate the integrity of the availability group configuration or the replica was removed from it.", g.st.Config.Name)
		g.remove()
		return
	}
	g.adopt(m.Config, m.Committed)
	g.in.crashPoint("configure")
	g.in.send(p.link, Configured{Group: g.id(), Sequence: m.Config.Sequence})
	g.seekCopies()
}
