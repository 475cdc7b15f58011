package engine

import (
	"math"
	"slices"
	"time"
)

// group is the local replica of an availability group.
type group struct {
	in         *Instance
	st         *GroupState
	metadataID int
	role       Role
	roleSince  time.Time
	members    []*member
	peers      []*peer // the other replicas, in configuration order
	known      string  // primary as this replica knows it, for dm_hadr_availability_group_states

	// primary
	proposals   []*proposal
	committed   *Configuration // newest committed version known here
	commitStart time.Time      // of the oldest proposal, zero when none is open
	promoting   int64          // sequence of the promotion's own commit until it is committed
	superseded  bool           // a newer primary exists: acknowledge nothing
	redial      *timer

	// lease
	leaseEnd     time.Time // by the lease's clock; zero: not running
	leaseTimer   *timer
	leaseExpired bool // the last loss of the role was an expired lease

	// failover and secondary
	failingOver bool
	forced      bool
	offlined    bool // OFFLINE was the last word: no stale primary is shown
	handover    *timer
	change      *timer // pending role change
	want        bool   // SET (ROLE = SECONDARY) or JOIN: follow a primary when one shows up
	wantUntil   *timer
	wanting     []*wait
	upstream    *peer // the primary that this replica follows or asked to
	attached    bool
	wired       []GUID // members at the last rewire
}

// peer is another replica of the group as seen from here.
type peer struct {
	group    *group
	id       GUID
	link     *link // live link to its server
	status   GroupStatus
	statusAt time.Time
	known    bool // status was ever received
	attached bool // follows this primary
	acked    int64
	copies   []*copyState // by member
	errNum   int
	errText  string
	errAt    time.Time
	missing  time.Time // last complaint about a lost connection
}

// copyState is a peer's copy of a database, kept by the primary.
type copyState struct {
	live       bool // data moves
	sent       LSN
	hardened   LSN
	redone     LSN
	undoTo     LSN
	suspended  bool
	reason     uint8
	broken     bool
	marking    bool // a proposal that marks it synchronised is open
	sentAt     time.Time
	hardenedAt time.Time
}

// member is one database of the group on this replica.
type member struct {
	group    *group
	id       GUID
	name     string
	db       *database // nil: no copy here
	live     bool      // secondary: data moves
	undoTo   LSN
	asked    bool // offered to the primary, answer pending
	broken   bool
	received time.Time
	seed     *seedJob   // secondary: running
	jobs     []*seedJob // primary: running or queued, by peer
	granted  bool       // the missing grant was already logged
	conflict bool       // the name conflict was already logged
	retry    *timer
	seedGen  int
	failed   bool // the last seeding ended with an unrecoverable error
	off      bool // SET HADR OFF: stays out until joined by hand
}

func (g *group) id() GUID { return g.st.Config.GroupID }

func (in *Instance) group(id GUID) *group {
	for _, g := range in.groups {
		if g.id() == id {
			return g
		}
	}
	return nil
}

func (in *Instance) groupByName(name string) *group {
	for _, g := range in.groups {
		if equalName(g.st.Config.Name, name) {
			return g
		}
	}
	return nil
}

func (g *group) local() *Replica { return g.st.Config.replica(g.st.Replica) }

func (p *peer) replica() *Replica {
	if r := p.group.st.Config.replica(p.id); r != nil {
		return r
	}
	return &Replica{ID: p.id}
}

func (c *Configuration) replica(id GUID) *Replica {
	for i := range c.Replicas {
		if c.Replicas[i].ID == id {
			return &c.Replicas[i]
		}
	}
	return nil
}

func (c *Configuration) replicaOn(server string) *Replica {
	for i := range c.Replicas {
		if equalName(c.Replicas[i].Server, server) {
			return &c.Replicas[i]
		}
	}
	return nil
}

// clone copies a configuration for a change.
func (c *Configuration) clone() *Configuration {
	n := *c
	n.Replicas = slices.Clone(c.Replicas)
	for i := range n.Replicas {
		n.Replicas[i].JoinedDBs = slices.Clone(n.Replicas[i].JoinedDBs)
		n.Replicas[i].SyncDBs = slices.Clone(n.Replicas[i].SyncDBs)
	}
	n.Databases = slices.Clone(c.Databases)
	n.Listeners = slices.Clone(c.Listeners)
	return &n
}

func (r *Replica) synchronised(db GUID) bool { return slices.Contains(r.SyncDBs, db) }

func (r *Replica) mark(db GUID, on bool) {
	r.SyncDBs = slices.DeleteFunc(r.SyncDBs, func(x GUID) bool { return x == db })
	if on {
		r.SyncDBs = append(r.SyncDBs, db)
	}
}

func (in *Instance) newGroup(st *GroupState) *group {
	g := &group{in: in, st: st, metadataID: len(in.groups) + 65536, committed: st.Config, roleSince: in.now}
	g.rewire()
	return g
}

// rewire brings peers and members in line with the configuration.
func (g *group) rewire() {
	cfg := g.st.Config
	var peers []*peer
	for i := range cfg.Replicas {
		r := &cfg.Replicas[i]
		if r.ID == g.st.Replica {
			continue
		}
		p := g.peer(r.ID)
		if p == nil {
			p = &peer{group: g, id: r.ID, link: g.in.linkTo(r.Server)}
		}
		peers = append(peers, p)
	}
	g.peers = peers
	var members []*member
	for _, d := range cfg.Databases {
		m := g.member(d.ID)
		if m == nil {
			m = &member{group: g, id: d.ID, name: d.Name}
			for _, db := range g.in.dbs {
				if db.state.GroupDB == d.ID && db.state.Joined {
					m.db, db.member = db, m
				}
			}
		}
		members = append(members, m)
	}
	for _, m := range g.members {
		if !slices.Contains(members, m) {
			m.leave()
		}
	}
	g.members = members
	for _, p := range g.peers {
		old := p.copies
		p.copies = make([]*copyState, len(members))
		for i, m := range members {
			p.copies[i] = &copyState{}
			for k, x := range old {
				if k < len(g.wired) && g.wired[k] == m.id {
					p.copies[i] = x
				}
			}
		}
	}
	g.wired = nil
	for _, m := range members {
		g.wired = append(g.wired, m.id)
	}
}

func (g *group) peer(id GUID) *peer {
	for _, p := range g.peers {
		if p.id == id {
			return p
		}
	}
	return nil
}

func (g *group) peerOn(server string) *peer {
	for _, p := range g.peers {
		if equalName(p.replica().Server, server) {
			return p
		}
	}
	return nil
}

func (g *group) member(id GUID) *member {
	for _, m := range g.members {
		if m.id == id {
			return m
		}
	}
	return nil
}

// index is the position of a member, which is also that of its copies.
func (m *member) index() int { return slices.Index(m.group.members, m) }

func (p *peer) copyOf(m *member) *copyState { return p.copies[m.index()] }

// put replaces the durable state.
func (g *group) put(change func(*GroupState)) {
	n := *g.st
	change(&n)
	g.st = &n
	g.in.persist(PutGroup{State: g.st})
}

// setRole changes the local role and tells the world.
func (g *group) setRole(r Role, from, to string) {
	old := g.role
	g.role, g.roleSince = r, g.in.now
	g.offlined = false
	g.in.log(19406, "Server", "The state of the local availability replica in availability group '%s' has changed from '%s' to '%s'.  The state changed because the local replica changed its role. For more information, see the SQL Server error log, cluster manager logs, or the AlwaysOn_health session.", g.st.Config.Name, from, to)
	if old != r {
		for _, m := range g.members {
			if m.db != nil {
				g.in.log(1480, "Server", "The availability group database \"%s\" is changing roles from \"%s\" to \"%s\" because the mirroring session or availability group failed over due to role synchronization. This is an informational message only. No user action is required.", m.name, old, r)
			}
		}
	}
	if g.st.LastRole != r && r != RoleResolving {
		g.put(func(st *GroupState) { st.LastRole = r })
	}
}

// start runs when the process has come up: RESOLVING for EXTERNAL whatever the role was (FG 4.1).
func (g *group) start() {
	g.setRole(RoleResolving, "NOT_AVAILABLE", "RESOLVING_NORMAL")
	keeps := g.st.Config.ClusterType == ClusterNone || g.in.cfg.Readings.RestartKeepsPrimary
	switch {
	case keeps && g.st.LastRole == RolePrimary:
		g.become(false, true)
	case g.st.Config.ClusterType == ClusterNone && g.st.LastRole == RoleSecondary:
		g.secondary()
	}
}

func (g *group) status() GroupStatus {
	s := GroupStatus{Group: g.id(), Name: g.st.Config.Name, Replica: g.st.Replica, Role: g.role, Sequence: g.st.Config.Sequence}
	if g.role == RolePrimary {
		s.PrimaryFor = g.in.now.Sub(g.roleSince)
		s.Ready = true
		for _, m := range g.members {
			if m.db == nil || g.in.status(m.db) != dbOnline {
				s.Ready = false
			}
		}
	}
	return s
}

// connect dials the replicas that have no link, as a primary or one that looks for it.
func (g *group) connect() {
	if g.role != RolePrimary && !g.want {
		return
	}
	open := false
	for _, p := range g.peers {
		if p.link != nil {
			continue
		}
		open = true
		r := p.replica()
		g.in.dial(r.Server, r.EndpointURL)
	}
	if open && g.redial == nil && g.role == RolePrimary {
		g.redial = g.in.after(g.in.cfg.Timings.Redial, func() {
			g.redial = nil
			g.connect()
		})
	}
}

func (p *peer) connectError(number int, text string) {
	p.errNum, p.errText, p.errAt = number, text, p.group.in.wall()
	if p.group.role == RolePrimary && (p.missing.IsZero() || p.group.in.now.Sub(p.missing) > time.Minute) {
		p.missing = p.group.in.now
		p.group.in.log(35201, "Server", "A connection timeout has occurred while attempting to establish a connection to availability replica '%s' with id [%s]. Either a networking or firewall issue exists, or the endpoint address provided for the replica is not the database mirroring endpoint of the host server instance.", p.replica().Server, p.id)
	}
}

// linked takes a new link to a server that may be one of the replicas.
func (g *group) linked(l *link) {
	p := g.peerOn(l.server)
	if p == nil {
		return
	}
	p.link = l
	if st, ok := l.status(g.id()); ok {
		g.peerStatus(l, st)
	}
}

// linkLost ends what used a link.
func (g *group) linkLost(l *link, number int, text string) {
	for _, p := range g.peers {
		if p.link != l {
			continue
		}
		p.link = nil
		p.errNum, p.errText, p.errAt = number, text, g.in.wall()
		if p.attached {
			g.followerLost(p)
		}
		if g.upstream == p {
			g.primaryLost()
		}
	}
	g.connect()
}

// peerStatus takes what a peer says about its role.
func (g *group) peerStatus(l *link, st GroupStatus) {
	p := g.peer(st.Replica)
	if p == nil || p.link != l {
		return
	}
	if st.Gone {
		p.known = false
		if p.attached {
			g.followerLost(p)
		}
		return
	}
	p.status, p.statusAt, p.known = st, g.in.now, true
	if p.attached && st.Role == RoleResolving {
		g.followerLost(p)
	}
	if g.upstream == p && st.Role != RolePrimary {
		g.primaryLost()
	}
	if st.Role == RolePrimary {
		if g.role == RolePrimary && st.Sequence > g.st.Config.Sequence {
			g.supersede()
		}
		g.consider(p)
	}
}

// supersede notes that another replica is primary with a newer configuration: no vote and no
// acknowledgement will come any more. Under EXTERNAL the role stays (FG 0.3 rule 1).
func (g *group) supersede() {
	if !g.superseded {
		g.superseded = true
		g.in.log(0, "Server", "Availability group '%s': another replica has become primary with a newer configuration.", g.st.Config.Name)
	}
}

// sequence numbers: high word promotions, low word commits (FG 11 no. 8).
func (g *group) nextSequence(promotion bool, atLeast int64) int64 {
	s := max(g.st.Config.Sequence, atLeast)
	if promotion && !g.in.cfg.Readings.FlatSequence {
		return (s>>32 + 1) << 32
	}
	return s + 1
}

func (g *group) remove() {
	in := g.in
	g.stopTimers()
	for _, m := range g.members {
		m.leave()
	}
	in.groups = slices.DeleteFunc(in.groups, func(x *group) bool { return x == g })
	in.persist(RemoveGroup{ID: g.id()})
	gone := GroupStatus{Group: g.id(), Name: g.st.Config.Name, Replica: g.st.Replica, Gone: true}
	for _, l := range in.links {
		if l.ready() {
			in.send(l, gone)
		}
	}
	key := g.id().String()
	if slices.ContainsFunc(in.srv.Permissions, func(p *Permission) bool { return p.Class == ClassGroup && p.Object == key }) {
		in.changeServer(func(st *ServerState) {
			st.Permissions = slices.DeleteFunc(st.Permissions, func(p *Permission) bool { return p.Class == ClassGroup && p.Object == key })
		})
	}
}

func (g *group) stopTimers() {
	for _, t := range []*timer{g.redial, g.leaseTimer, g.handover, g.change, g.wantUntil} {
		g.in.stop(t)
	}
	g.redial = nil
	for _, m := range g.members {
		m.stopSeeding(1)
		g.in.stop(m.retry)
		m.retry = nil
	}
}

const noLease = math.MaxInt64
