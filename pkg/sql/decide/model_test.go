package decide

import (
	"fmt"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/lease"
)

// The model is a small world around the decision: servers with a log, a configuration
// and a write lease, managers that run the rules of package lease, pods, a Lease object,
// and links that can be cut. One beat is one second of virtual time.

const (
	beat           = time.Second
	sessionTimeout = 10 * time.Second
	recoveryTime   = 2 * time.Second
	groupID        = "7F000000-0000-0000-0000-000000000001"
	crUID          = "cr-uid-1"
)

var epochStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// config is one copy of the availability group's configuration (FG 5.1).
type config struct {
	seq    int64
	k      int32
	synced []string // replicas marked synchronised, the primary included
}

func (c config) has(name string) bool { return contains(c.synced, name) }

func (c config) clone() config {
	c.synced = append([]string(nil), c.synced...)
	return c
}

// server is one SQL Server with its container, its pod and its manager.
type server struct {
	name    string
	ordinal int
	mode    ag.Mode
	auto    bool
	fenced  bool

	// pod and container
	podUID      string
	pods        int
	containers  int
	containerID string
	started     time.Duration
	terminated  string
	reason      string
	terminating bool
	gone        bool
	node        string
	boot        int
	label       ag.Role
	primary     string // whom it follows as a secondary
	pvc         string
	downUntil   time.Duration

	// process
	up          bool
	frozen      bool
	role        ag.Role
	becoming    time.Duration // PRIMARY at that time, 0 when not under way
	cfg         config
	log         []int
	dbState     ag.DatabaseState
	leaseEnd    time.Duration
	endpoint    ag.EndpointState
	latched     bool // 41104
	suspend     bool
	deaf        bool                     // as PRIMARY it does not believe in its promotion any more: nobody may follow
	leftBehind  bool                     // its copy was left behind by DROP, and does not belong to the group
	broken      bool                     // its copy cannot go on from where it is
	lastSeen    map[string]time.Duration // as primary: when each follower was last connected
	pending     time.Duration            // configuration commit waiting since, 0 when none
	proposed    *config                  // that configuration
	waiting     []int                    // values hardened here and not acknowledged yet
	order       int                      // rank of its newest promotion
	selfPrimary bool                     // under NONE: it comes back PRIMARY
	forced      bool                     // the promotion under way is FORCE
	lostOne     bool                     // RESOLVING because its primary was lost, by itself

	// manager
	mgr     lease.State
	disk    lease.Persisted
	keeper  lease.Keeper
	renewAt time.Duration
	epochs  int
}

type world struct {
	now     time.Duration
	servers []*server
	lease   ag.Authority
	version int
	noLease bool // the group has no write lease
	cuts    map[string]bool
	policy  ag.Policy
	request *ag.Request

	memory   ag.Memory
	watch    ag.Watch
	observer string
	ctlUp    bool
	standby  bool // the controller only reads the Lease
	ctlSince time.Duration
	sawOnce  bool

	acked      map[int]bool
	lost       map[int]bool // acknowledged values that a person gave up
	next       int
	promotions int
	writes     bool
	refuseAll  bool // every FAILOVER answers 41142
	// promoteAlone: a promotion is no configuration commit to a majority (safety fact 2 false).
	promoteAlone bool
	// oldQuorum: ALTER … TO_COMMIT = 0 needs the quorum of the value that it replaces (FG 11 no. 34).
	oldQuorum bool
	// flat: a promotion raises the sequence number by one, like any other commit (safety fact 9 false).
	flat bool
	// joinResolving: after JOIN the role is RESOLVING (FG 11 no. 33).
	joinResolving bool
	// resolvesAlone: a secondary that loses its primary becomes RESOLVING by itself, and follows
	// again by itself when one shows up (FG 11 no. 9).
	resolvesAlone bool
	// beforeOffline happens between a swap and the OFFLINE behind it.
	beforeOffline func(*server)
	promoteErr    *ag.Error
	slow          time.Duration
	apiOff        bool
	labelsOff     bool
	violations    []string
	knobs         knobs
	sparse        int // the costly invariants are checked every so many beats
	lastActed     string
	kept          ag.Authority // a copy of the Lease, to be restored
}

func newWorld(n int, opts ...func(*world)) *world {
	w := &world{cuts: map[string]bool{}, acked: map[int]bool{}, lost: map[int]bool{}, next: 1, writes: true,
		observer: "controller/1", ctlUp: true, slow: recoveryTime}
	w.policy = ag.Policy{
		Group: "AG1", UID: crUID, External: true, AutoFailover: true, Threshold: 30 * time.Second,
		FailsafeHold: 5 * time.Minute, MinBetween: 60 * time.Second, Stability: 5 * time.Minute,
		SwitchoverMax: 60 * time.Second, K: -1, RelaxAfter: 15 * time.Second, Initialized: true,
		Handover: true, HandoverMax: 30 * time.Second,
		Timing: ag.Timing{Renew: 2 * time.Second, Call: 1500 * time.Millisecond, A: 5 * time.Second,
			Q: 2 * time.Second, L: 15 * time.Second, M: 1500 * time.Millisecond},
	}
	for i := range n {
		w.servers = append(w.servers, w.newServer(i, ag.ModeSynchronous))
	}
	for _, o := range opts {
		o(w)
	}
	for _, s := range w.servers {
		w.policy.Replicas = append(w.policy.Replicas, ag.ReplicaPolicy{Name: s.name, Ordinal: s.ordinal, Mode: s.mode, Auto: s.auto})
	}
	w.bootstrap()
	return w
}

func withWitness(w *world) {
	w.servers = append(w.servers, w.newServer(len(w.servers), ag.ModeConfigurationOnly))
}

func withAsync(w *world) {
	w.servers = append(w.servers, w.newServer(len(w.servers), ag.ModeAsynchronous))
}

func (w *world) newServer(i int, mode ag.Mode) *server {
	s := &server{name: fmt.Sprintf("mssql-%d", i), ordinal: i, mode: mode, auto: mode == ag.ModeSynchronous,
		node: fmt.Sprintf("node-%d", i), pvc: fmt.Sprintf("pvc-%d", i), endpoint: ag.EndpointStarted,
		dbState: ag.DatabaseOnline, lastSeen: map[string]time.Duration{}}
	w.newPod(s)
	return s
}

func (w *world) newPod(s *server) {
	s.pods++
	s.podUID = fmt.Sprintf("%s-pod-%d", s.name, s.pods)
	s.gone, s.terminating = false, false
	s.terminated, s.reason = "", ""
	w.newContainer(s)
}

// newContainer starts a run: RESOLVING, a new manager that knows what is on its disk.
func (w *world) newContainer(s *server) {
	s.containers++
	s.containerID = fmt.Sprintf("%s-c%d", s.name, s.containers)
	s.started, s.up, s.frozen = w.now, true, false
	s.role, s.becoming, s.leaseEnd, s.pending, s.waiting = ag.RoleResolving, 0, 0, 0, nil
	s.suspend, s.lostOne = false, false
	s.proposed = nil
	if s.selfPrimary {
		s.role = ag.RolePrimary // CLUSTER_TYPE = NONE: it comes back by itself (FG 4.1)
	}
	s.keeper = lease.Keeper{}
	s.epochs++
	run := ag.Run{Replica: s.name, PodUID: s.podUID, Nonce: fmt.Sprintf("n%d", s.epochs)}
	s.mgr = lease.NewState(run, crUID, w.policy.Timing, w.instant(), s.disk)
}

func (w *world) instant() lease.Instant {
	return lease.Instant{Mono: w.now, Wall: epochStart.Add(w.now)}
}

// bootstrap makes the group on the first server and seats the others.
func (w *world) bootstrap() {
	p := w.servers[0]
	var synced []string
	var sync int
	for _, s := range w.servers {
		if s.mode == ag.ModeSynchronous {
			synced = append(synced, s.name)
			sync++
		}
	}
	k := lease.TargetK(lease.RuleWant{K: w.policy.K}, sync)
	for _, s := range w.servers {
		s.cfg = config{seq: w.firstNumber(), k: k, synced: append([]string(nil), synced...)}
		s.role = ag.RoleSecondary
		s.mgr = lease.NewState(s.mgr.Self, crUID, w.policy.Timing, w.instant(), s.disk)
	}
	p.role, p.leaseEnd, p.order = ag.RolePrimary, w.policy.Timing.L, 1
	p.label = ag.RolePrimary
	w.promotions = 1
	w.lease = ag.Authority{Exists: true, AGUID: crUID, Holder: w.run(p), Epoch: 1, LastPrimary: p.name, GroupID: groupID, Renewals: "0"}
	w.lease.Rule = ag.CommitRule{Number: 1, K: k}
	for _, s := range w.servers {
		if s != p {
			s.label = ag.RoleSecondary
			p.lastSeen[s.name] = w.now
		}
		if s.mode == ag.ModeSynchronous {
			w.lease.Rule.Set = append(w.lease.Rule.Set, ag.Member{Replica: s.name, PVCUID: s.pvc})
		}
		if s.mode != ag.ModeAsynchronous {
			w.lease.Sequences = append(w.lease.Sequences, ag.ReplicaSequence{Replica: s.name, Sequence: s.cfg.seq})
		}
	}
	w.bump()
}

func (w *world) run(s *server) ag.Run {
	r := s.mgr.Self
	r.ContainerID, r.Node, r.BootID = s.containerID, s.node, fmt.Sprintf("boot-%d", s.boot)
	return r
}

func (w *world) firstNumber() int64 {
	if w.flat {
		return 1
	}
	return 1<<32 + 1
}

func (w *world) bump() {
	w.version++
	w.lease.Version = fmt.Sprintf("v%d", w.version)
}

func (w *world) find(name string) *server {
	for _, s := range w.servers {
		if s.name == name {
			return s
		}
	}
	return nil
}

// cut and linked: names are replicas, "api" and "controller".
func link(a, b string) string {
	if a > b {
		a, b = b, a
	}
	return a + "|" + b
}

func (w *world) linked(a, b string) bool { return !w.cuts[link(a, b)] }

func (w *world) alive(s *server) bool { return s.up && !s.gone }

// canAPI: this party reaches the API server.
func (w *world) canAPI(name string) bool { return !w.apiOff && w.linked(name, "api") }

// connected: the mirroring link between primary p and follower f works.
func (w *world) connected(p, f *server) bool {
	return w.alive(p) && w.alive(f) && !p.frozen && !f.frozen && w.linked(p.name, f.name) &&
		p.endpoint == ag.EndpointStarted && f.endpoint == ag.EndpointStarted
}

// follows: f takes log and configuration from p: it is a SECONDARY whose newest known
// configuration is not of a later primary.
func (w *world) follows(p, f *server) bool {
	if !w.connected(p, f) || p.deaf || f.role != ag.RoleSecondary || f.suspend || f.cfg.seq>>32 > p.cfg.seq>>32 || w.flat && f.cfg.seq > p.cfg.seq {
		return false
	}
	return f.primary == "" || f.primary == p.name
}

// attach: a secondary stays with the primary that it is connected to, and looks for
// the newest one when that is gone.
func (w *world) attach(f *server) {
	if w.resolvesAlone {
		w.resolveAlone(f)
	}
	if f.role != ag.RoleSecondary {
		f.primary = ""
		return
	}
	if p := w.find(f.primary); p != nil && p.role == ag.RolePrimary && w.follows(p, f) {
		return
	}
	f.primary = ""
	var newest *server
	for _, p := range w.servers {
		if p.role == ag.RolePrimary && w.follows(p, f) && (newest == nil || p.cfg.seq > newest.cfg.seq) {
			newest = p
		}
	}
	if newest != nil {
		f.primary = newest.name
	}
}

// resolveAlone is what a secondary does whose primary was lost, and is back.
func (w *world) resolveAlone(f *server) {
	switch {
	case !w.alive(f) || f.frozen:
	case f.role == ag.RoleSecondary && f.primary != "":
		if p := w.find(f.primary); p.role != ag.RolePrimary || !w.follows(p, f) {
			f.role, f.lostOne = ag.RoleResolving, true
		}
	case f.role == ag.RoleResolving && f.lostOne:
		f.role, f.primary = ag.RoleSecondary, ""
		for _, p := range w.servers {
			if p.role == ag.RolePrimary && w.follows(p, f) {
				f.lostOne = false
				return
			}
		}
		f.role = ag.RoleResolving
	default:
		f.lostOne = false
	}
}

func (w *world) voters() int {
	n := 0
	for _, s := range w.servers {
		if s.mode != ag.ModeAsynchronous {
			n++
		}
	}
	return n
}

// commitConfig commits a configuration to a quorum, or leaves it pending (FG 5.4, 11 no. 34).
func (w *world) commitConfig(p *server, change func(*config), promotion bool) bool {
	next := p.cfg.clone()
	if p.proposed != nil && !promotion {
		next = p.proposed.clone() // what waits is part of what follows
	}
	next.seq = p.cfg.seq + 1
	change(&next)
	votes := []*server{}
	for _, f := range w.servers {
		if f == p || f.mode == ag.ModeAsynchronous {
			continue
		}
		takes := w.follows(p, f)
		if promotion {
			// A voter that follows nobody takes the promotion of a new primary.
			takes = w.connected(p, f) && f.role != ag.RolePrimary && f.cfg.seq < next.seq
		}
		if takes {
			votes = append(votes, f)
		}
	}
	need := w.voters()/2 + 1
	required := next.k
	if w.oldQuorum {
		required = max(required, p.cfg.k) // a change is judged by the value that it changes, too
	}
	if w.voters() == 2 && (required == 0 || promotion) || promotion && (p.forced || w.promoteAlone) {
		need = 1
	}
	if promotion && w.promoteAlone {
		votes = nil
	}
	if len(votes)+1 < need {
		if p.pending == 0 {
			p.pending = w.now
		}
		if !promotion {
			p.proposed = &next // persisted by the primary, not committed
		}
		return false
	}
	p.pending, p.proposed = 0, nil
	p.cfg = next
	for _, f := range votes {
		f.cfg = next.clone()
	}
	return true
}

// join is JOIN: the configuration comes from a PRIMARY that reaches the newcomer (FG 1.5).
func (w *world) join(s *server) bool {
	for _, p := range w.servers {
		if p != s && p.role == ag.RolePrimary && w.connected(p, s) {
			s.role, s.cfg, s.primary = ag.RoleSecondary, p.cfg.clone(), p.name
			if w.joinResolving {
				s.role = ag.RoleResolving
			}
			return true
		}
	}
	return false
}

// step is one beat of everything but the controller.
func (w *world) step() {
	w.now += beat
	for _, s := range w.servers {
		w.restart(s)
	}
	for _, s := range w.servers {
		w.managerBeat(s)
	}
	for _, s := range w.servers {
		w.serverBeat(s)
	}
	for _, s := range w.servers {
		w.attach(s)
	}
	for _, s := range w.servers {
		if w.alive(s) && !s.frozen && s.role == ag.RolePrimary {
			w.primaryBeat(s)
		}
	}
}

func (w *world) restart(s *server) {
	if s.up || s.downUntil < 0 || w.now < s.downUntil {
		return
	}
	if s.gone {
		s.gone = false
		w.newPod(s)
		return
	}
	w.newContainer(s)
}

func (w *world) kill(s *server, down time.Duration) {
	s.selfPrimary = !w.policy.External && s.role == ag.RolePrimary
	s.up, s.role, s.becoming = false, ag.RoleUnknown, 0
	s.terminated, s.reason = s.containerID, "Error"
	s.downUntil = w.now + down
	if down < 0 {
		s.downUntil = -1
	}
}

func (w *world) serverBeat(s *server) {
	if !w.alive(s) || s.frozen {
		return
	}
	if s.role == ag.RoleNone {
		w.join(s) // the setup's part of the way back
	}
	if s.becoming > 0 && w.now >= s.becoming {
		w.becomePrimary(s)
	}
	if s.role == ag.RolePrimary && !w.noLease && w.policy.External && w.now > s.leaseEnd {
		s.role = ag.RoleResolving
		s.waiting = nil
	}
}

// becomePrimary is the end of FAILOVER: the promotion is itself a configuration commit.
func (w *world) becomePrimary(s *server) {
	ok := w.commitConfig(s, func(c *config) {
		c.seq = (s.cfg.seq>>32 + 1) << 32
		if w.flat {
			c.seq = s.cfg.seq + 1
		}
		if s.proposed != nil {
			c.k = s.proposed.k
		}
		c.synced = []string{s.name}
	}, true)
	if !ok {
		s.becoming = w.now + beat
		return
	}
	s.becoming = 0
	if w.policy.External && !w.noLease && w.now > s.leaseEnd {
		return // its write lease ended while it waited: it acknowledges nothing as PRIMARY (FG 5.5)
	}
	s.role = ag.RolePrimary
	w.promotions++
	s.order = w.promotions
	s.lastSeen = map[string]time.Duration{}
	have := map[int]bool{}
	for _, x := range s.log {
		have[x] = true
	}
	for x := range w.acked {
		if !have[x] && !w.lost[x] {
			w.violation("I2: %s became PRIMARY without the acknowledged commit %d", s.name, x)
			break
		}
	}
}

func (w *world) violation(format string, args ...any) {
	w.violations = append(w.violations, clock(w.now)+" "+fmt.Sprintf(format, args...))
}

// primaryBeat ships log and configuration, drops who is lost, takes back who has caught
// up, writes one value and acknowledges what may be acknowledged.
func (w *world) primaryBeat(p *server) {
	var following []string
	for _, f := range w.servers {
		if f == p || f.mode == ag.ModeConfigurationOnly {
			continue
		}
		if !w.follows(p, f) || f.broken {
			continue
		}
		p.lastSeen[f.name] = w.now
		following = append(following, f.name)
		if f.mode == ag.ModeSynchronous {
			f.log = append([]int(nil), p.log...)
			f.cfg = p.cfg.clone()
		}
	}
	if p.proposed != nil {
		w.commitConfig(p, func(*config) {}, false)
	}
	for _, f := range w.servers {
		if f == p || f.mode != ag.ModeSynchronous {
			continue
		}
		in, there := p.cfg.has(f.name), contains(following, f.name)
		lost := w.now-p.lastSeen[f.name] >= sessionTimeout || !w.alive(f)
		switch {
		case in && !there && lost:
			w.commitConfig(p, func(c *config) { c.synced = less(c.synced, f.name) }, false)
		case !in && there:
			if w.commitConfig(p, func(c *config) { c.synced = with(c.synced, f.name) }, false) {
				f.cfg = p.cfg.clone()
			}
		}
	}
	if w.writes && len(p.waiting) == 0 && p.dbState == ag.DatabaseOnline {
		p.log = append(p.log, w.next)
		p.waiting = append(p.waiting, w.next)
		w.next++
		for _, name := range following {
			if f := w.find(name); f.mode == ag.ModeSynchronous {
				f.log = append([]int(nil), p.log...)
			}
		}
	}
	w.acknowledge(p, following)
}

func (w *world) acknowledge(p *server, following []string) {
	if len(p.waiting) == 0 {
		return
	}
	others := 0
	for _, name := range p.cfg.synced {
		if name == p.name {
			continue
		}
		if !contains(following, name) {
			return // a member of the set does not harden
		}
		others++
	}
	if int32(others) < p.cfg.k {
		return
	}
	for _, x := range p.waiting {
		for _, q := range w.servers {
			if q.order > p.order && !containsInt(q.log, x) && q.order > 0 && !q.suspend {
				w.violation("I1: %s acknowledged %d, which the newer primary %s lacks", p.name, x, q.name)
			}
		}
		w.acked[x] = true
	}
	p.waiting = nil
}

func containsInt(list []int, x int) bool {
	for _, y := range list {
		if y == x {
			return true
		}
	}
	return false
}

// managerBeat runs the rules of package lease: renew, prove, ask, keep the commit rule, kill.
func (w *world) managerBeat(s *server) {
	if !w.alive(s) {
		return
	}
	var jumped bool
	s.mgr, jumped = s.mgr.Tick(w.instant())
	if jumped {
		w.violation("the model's clock jumped")
	}
	srv := w.serverView(s)
	if w.canAPI(s.name) {
		var st lease.Standing
		s.mgr, st = s.mgr.Learn(w.lease, w.now)
		if st == lease.StandingHolder && s.mgr.MayRenewLease(srv).OK && w.now >= s.renewAt {
			w.lease.Renewals = fmt.Sprintf("%d", int(w.now/time.Second))
			w.bump()
			s.mgr = s.mgr.Renewed(w.lease, w.now)
			s.renewAt = w.now + w.policy.Timing.Renew
		}
	} else {
		w.askPeers(s)
	}
	s.disk = s.mgr.Persisted
	if s.frozen {
		if v := s.mgr.Kill(lease.KillInput{Now: w.now, Server: srv}); v.OK {
			w.kill(s, 20*time.Second)
		}
		return
	}
	if s.mgr.MayRenewWriteLease(srv, w.now).OK && !w.noLease {
		s.mgr = s.mgr.WriteLeaseSent(w.now)
		s.leaseEnd = max(s.leaseEnd, w.now+w.policy.Timing.L)
	}
	if s.role == ag.RolePrimary && s.mgr.Record != nil && w.canAPI(s.name) {
		w.keep(s)
	}
}

func (w *world) serverView(s *server) lease.Server {
	v := lease.Server{Running: s.up, Role: s.role, LastRole: s.role, NoWriteLease: w.noLease}
	if s.frozen {
		v.Role = ag.RoleUnknown
	}
	return v
}

func (w *world) askPeers(s *server) {
	q, ok := s.mgr.Ask(groupID)
	if !ok || s.mgr.Record == nil {
		return
	}
	ask, need := lease.Peers(s.name, w.configured(), min(s.cfg.k, s.mgr.Record.Rule.K))
	var answers []lease.Answer
	for _, name := range ask {
		f := w.find(name)
		if f == nil || !w.alive(f) || !w.linked(s.name, name) {
			continue
		}
		var a lease.Answer
		f.mgr, a = f.mgr.AnswerFailsafe(q, lease.Follows{Role: f.role, GroupID: groupID}, w.now)
		f.disk = f.mgr.Persisted
		answers = append(answers, a)
	}
	s.mgr, _ = s.mgr.FailsafeProven(q, w.now, ask, need, answers)
}

func (w *world) configured() []ag.ConfiguredReplica {
	var out []ag.ConfiguredReplica
	for _, s := range w.servers {
		out = append(out, ag.ConfiguredReplica{Server: s.name, Mode: s.mode})
	}
	return out
}

// keep is one round of the keeper of the commit rule.
func (w *world) keep(s *server) {
	if !w.lease.Holder.Same(s.mgr.Self) || w.lease.Operation != nil {
		return
	}
	var synced []string
	for _, name := range s.cfg.synced {
		if f := w.find(name); f != s && w.follows(s, f) {
			synced = append(synced, name)
		}
	}
	want := lease.RuleWant{Required: w.policy.Required, K: w.policy.K, RelaxAfter: w.policy.RelaxAfter}
	seen := lease.RuleSeen{Record: w.lease.Rule, ServerK: s.cfg.k, Self: s.name, Configured: w.configured(), Synchronized: synced,
		PromotedAt: s.mgr.GrantedAt, PromotedKnown: w.lease.Epoch > 1}
	var steps []lease.RuleStep
	s.keeper, steps = s.keeper.Plan(want, seen, w.now)
	for _, st := range steps {
		switch st.Kind {
		case lease.StepRecord:
			w.lease.Rule = st.Rule
			w.lease.Swaps = max(w.lease.Swaps, s.mgr.Persisted.Swaps) + 1
			w.bump()
		case lease.StepAlter:
			if !w.commitConfig(s, func(c *config) { c.k = st.K }, false) {
				return
			}
		}
	}
}
