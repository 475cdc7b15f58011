//go:build linux

package instance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/lease"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/tsql"
)

// bench is one manager without a process: its loops run in virtual time against a
// server, an API server and peers that follow the rules that matter here.
type bench struct {
	t     *testing.T
	m     *manager
	clock *benchClock
	sql   *benchServer
	api   *benchAPI
	peers *benchPeers
}

// inBench runs a scenario in virtual time: a group of replicas ag1-0 (this one) to
// ag1-2, all synchronous, k = 1, this run the holder and its server PRIMARY.
func inBench(t *testing.T, scenario func(t *testing.T, b *bench)) {
	t.Helper()
	inBenchWith(t, func(*bench) {}, scenario)
}

// inBenchWith changes the bench before the manager's loops run.
func inBenchWith(t *testing.T, prepare func(b *bench), scenario func(t *testing.T, b *bench)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, dir)
		prepare(b)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { b.m.leaseLoop(ctx) })
		wg.Go(func() { b.m.writeLeaseLoop(ctx) })
		wg.Go(func() { b.m.keeperLoop(ctx) })
		wg.Go(func() { b.m.healthLoop(ctx) })
		wg.Go(func() { b.m.copiesLoop(ctx) })
		defer wg.Wait()
		defer cancel()
		scenario(t, b)
	})
}

func newBench(t *testing.T, dir string) *bench {
	t.Helper()
	g := sampleGroup()
	for i := range g.Spec.Replicas {
		g.Spec.Replicas[i].AvailabilityMode = "SynchronousCommit"
	}
	cfg := ConfigForGroup(g, 0)
	cfg.Health.Failures = 2
	mem, err := openMemory(dir, cfg.UID)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, clock: &benchClock{start: time.Now()}, peers: &benchPeers{answer: map[string]bool{}}}
	b.sql = &benchServer{
		role: ag.RolePrimary, leaseUntil: time.Now().Add(cfg.Timing.L.Duration), lease: true, k: 1,
		sync: map[string]bool{"ag1-1": true, "ag1-2": true}, group: cfg.Group,
	}
	run := ag.Run{Replica: "ag1-0", PodUID: "pod-0", Nonce: "nonce-0"}
	b.api = newBenchAPI(cfg, ag.Authority{
		AGUID: cfg.UID, Holder: run, Epoch: 5, LastPrimary: "ag1-0",
		Rule: ag.CommitRule{Number: 3, K: 1, Set: []ag.Member{{Replica: "ag1-0"}, {Replica: "ag1-1"}, {Replica: "ag1-2"}}},
	})
	b.m = &manager{
		o: Options{OperatorPasswordFile: dir + "/operator", SAPasswordFile: dir + "/sa"}, cfg: cfg,
		id: Identity{Pod: "ag1-0", UID: "pod-0"}, log: slog.New(slog.DiscardHandler),
		clock: b.clock, api: b.api, peers: b.peers, run: run, memory: mem, metrics: newMetrics(),
		kills: make(chan *ExitError, 1), restarts: make(chan struct{}, 1), fences: make(chan *fenceOrder, 1),
		copiesAsked: make(chan chan struct{}),
		dial: func(ctx context.Context, user, password string) (mssql.Conn, error) {
			if err := b.sql.wait(ctx); err != nil {
				return nil, err
			}
			return &benchConn{server: b.sql}, nil
		},
	}
	for _, path := range []string{b.m.o.OperatorPasswordFile, b.m.o.SAPasswordFile} {
		if err := os.WriteFile(path, []byte("Secret-1234"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b.m.authority = newAuthority(lease.NewState(run, cfg.UID, cfg.Timing.AG(), b.clock.now(), mem.get().Authority), mem)
	b.m.metrics.registry.MustRegister(newViewCollector(b.m))
	b.m.view.startsAnew()
	b.m.view.with(func(v *view) { v.phase, v.accepted = phaseRunning, true })
	return b
}

// run lets virtual time pass.
func (b *bench) run(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// killed is the reason of a kill, or nil.
func (b *bench) killed() *ExitError {
	select {
	case e := <-b.m.kills:
		return e
	default:
		return nil
	}
}

type benchClock struct {
	start time.Time
	mu    sync.Mutex
	jump  time.Duration
}

func (c *benchClock) now() lease.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return lease.Instant{Mono: time.Hour + time.Since(c.start), Wall: time.Now().Add(c.jump).Round(0)}
}

func (c *benchClock) jumpBy(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jump += d
}

// benchServer is a SQL Server as far as this package asks it.
type benchServer struct {
	mu         sync.Mutex
	group      string
	role       ag.Role
	lease      bool
	leaseUntil time.Time
	fresh      bool // the lease begins with the first renewal, and shows as none before
	// sticky: the role stays PRIMARY when the lease ends, which must not happen (R7).
	sticky bool
	k      int32
	sync   map[string]bool
	frozen bool
	bad    bool // sp_server_diagnostics reports an error
	// expiredLate: the clock of the server is ahead by this much.
	ahead    time.Duration
	pending  time.Duration
	renewals []time.Time
	done     []string // what was carried out, in order
}

// settle applies the passing of time.
func (s *benchServer) settle() {
	if s.lease && !s.fresh && s.role == ag.RolePrimary && !s.sticky && !time.Now().Before(s.leaseUntil) {
		s.role = ag.RoleResolving
		s.done = append(s.done, "lease expired")
	}
}

func (s *benchServer) with(f func(*benchServer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	f(s)
}

// wait hangs while the server is frozen.
func (s *benchServer) wait(ctx context.Context) error {
	for {
		s.mu.Lock()
		frozen := s.frozen
		s.mu.Unlock()
		if !frozen {
			return nil
		}
		if !pause(ctx, 10*time.Millisecond) {
			return &ag.Error{Kind: ag.ErrTimeout, Message: "no answer in time"}
		}
	}
}

type benchConn struct{ server *benchServer }

func (c *benchConn) Close() error { return nil }

func (c *benchConn) Exec(ctx context.Context, batch string) error {
	_, err := c.Query(ctx, batch)
	return err
}

var (
	untilText = regexp.MustCompile(`SYSUTCDATETIME\(\) >= '([^']+)'`)
	leaseText = regexp.MustCompile(`WRITE_LEASE_VALIDITY = (\d+)`)
	kText     = regexp.MustCompile(`REQUIRED_SYNCHRONIZED_SECONDARIES_TO_COMMIT = (\d+)\)`)
)

func (c *benchConn) Query(ctx context.Context, batch string) ([]mssql.Result, error) {
	if err := c.server.wait(ctx); err != nil {
		return nil, err
	}
	s := c.server
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	if m := untilText.FindStringSubmatch(batch); m != nil {
		until, err := time.Parse("2006-01-02T15:04:05.0000000", m[1])
		if err != nil {
			return nil, err
		}
		if !time.Now().UTC().Add(s.ahead).Before(until) {
			return []mssql.Result{{Columns: []string{tsql.RefusedColumn}, Rows: [][]any{{tsql.RefusedExpired}}}}, nil
		}
	}
	switch {
	case batch == tsql.ManagerState(s.group):
		return s.stateResults(), nil
	case leaseText.MatchString(batch):
		return nil, s.renew(leaseText.FindStringSubmatch(batch)[1])
	case kText.MatchString(batch):
		k, err := strconv.Atoi(kText.FindStringSubmatch(batch)[1])
		if err != nil {
			return nil, err
		}
		s.k = int32(k)
		s.done = append(s.done, fmt.Sprintf("alter k=%d", k))
		return nil, nil
	case strings.Contains(batch, "OFFLINE"):
		s.role = ag.RoleResolving
		s.done = append(s.done, "offline")
		return nil, nil
	case batch == tsql.ManagerCopies(s.group):
		return []mssql.Result{
			{
				Columns: []string{"replica_server_name", "database_name", "synchronization_state_desc", "is_suspended", "log_send_queue_size", "redo_queue_size", "secondary_lag_seconds", "database_state_desc", "suspend_reason_desc", "log_reuse"},
				Rows: [][]any{
					{"AG1-0", "db", "SYNCHRONIZED", false, nil, nil, nil, "ONLINE", nil, "AVAILABILITY_REPLICA"},
					{"AG1-1", "db", "SYNCHRONIZING", true, int64(3), int64(2), int64(7), nil, "SUSPEND_FROM_USER", "AVAILABILITY_REPLICA"},
					{"AG1-2", "db", nil, nil, nil, nil, nil, nil, nil, nil},
				},
			},
			{Columns: []string{"state_desc", "expiry_date"}, Rows: [][]any{{"STARTED", time.Unix(1900000000, 0).UTC()}}},
			{
				Columns: []string{"replica_server_name", "database_name", "current_state", "is_source", "failure_state_desc", "number_of_attempts", "start_time", "completion_time"},
				Rows: [][]any{
					{"AG1-2", "db", "SEEDING", true, nil, int64(2), time.Unix(1800000100, 0).UTC(), nil},
					{"AG1-2", "db", "FAILED", true, "Seeding Check Message Timeout", int64(1), time.Unix(1800000000, 0).UTC(), time.Unix(1800000050, 0).UTC()},
				},
			},
			{
				Columns: []string{"local_database_name", "remote_machine_name", "role_desc", "transfer_rate_bytes_per_second", "transferred_size_bytes", "database_size_bytes", "estimate_time_complete_utc", "failure_message"},
				Rows:    [][]any{{"db", "ag1-2.ag1.default.svc", "Source", int64(100), int64(610), int64(1000), nil, nil}},
			},
		}, nil
	case batch == tsql.Diagnostics():
		return []mssql.Result{diagnosticsResult(s.bad)}, nil
	}
	return nil, fmt.Errorf("the bench does not know this batch: %s", batch)
}

func (s *benchServer) renew(seconds string) error {
	if !s.lease {
		return &ag.Error{Kind: ag.ErrMsg, Number: ag.MsgLeaseNotEnabled, All: []int32{ag.MsgLeaseNotEnabled}, Message: "no lease"}
	}
	n, err := strconv.Atoi(seconds)
	if err != nil {
		return err
	}
	s.leaseUntil, s.fresh = time.Now().Add(time.Duration(n)*time.Second), false
	s.renewals = append(s.renewals, time.Now())
	return nil
}

func (s *benchServer) stateResults() []mssql.Result {
	ticks := int64(math.MaxInt64)
	if s.lease && !s.fresh {
		ticks = max(0, time.Until(s.leaseUntil).Milliseconds())
	}
	group := mssql.Result{
		Columns: []string{"group_id", "sequence_number", "required_to_commit", "role_desc", "lease_ticks", "commit_pending_seconds", "primary_replica"},
	}
	replicas := mssql.Result{Columns: []string{"replica_server_name", "availability_mode_desc", "is_local", "connected_state_desc"}}
	copies := mssql.Result{Columns: []string{"replica_server_name", "database_name", "is_local", "synchronization_state_desc", "database_state_desc"}}
	if s.role != ag.RoleNone {
		group.Rows = [][]any{{"GROUP-1", int64(7), int64(s.k), string(s.role), ticks, int64(s.pending / time.Second), "AG1-0"}}
		for _, name := range []string{"ag1-0", "ag1-1", "ag1-2"} {
			state, connected := "NOT SYNCHRONIZING", "DISCONNECTED"
			if name == "ag1-0" || s.sync[name] {
				state, connected = "SYNCHRONIZED", "CONNECTED"
			}
			replicas.Rows = append(replicas.Rows, []any{strings.ToUpper(name), "SYNCHRONOUS_COMMIT", name == "ag1-0", connected})
			copies.Rows = append(copies.Rows, []any{strings.ToUpper(name), "db", name == "ag1-0", state, "ONLINE"})
		}
	}
	return []mssql.Result{
		{Columns: []string{tsql.ServerTimeColumn}, Rows: [][]any{{time.Now().UTC().Add(s.ahead)}}}, group, replicas, copies,
	}
}

func diagnosticsResult(bad bool) mssql.Result {
	state := int64(1)
	if bad {
		state = 3
	}
	r := mssql.Result{Columns: []string{"create_time", "component_type", "component_name", "state", "state_desc", "data"}}
	for _, name := range []string{"system", "resource", "query_processing", "io_subsystem", "events"} {
		r.Rows = append(r.Rows, []any{time.Now(), "instance", name, state, "clean", "<x/>"})
	}
	return r
}

// benchAPI is an API server with one Lease.
type benchAPI struct {
	cfg Config

	mu      sync.Mutex
	version int
	lease   *coordinationv1.Lease
	down    bool
	// delay of each answer; an update is carried out at its start (late answers).
	delay    time.Duration
	renewals []time.Time
	reads    int
	swaps    []ag.CommitRule
	fenced   string
	before   func() // called at the start of a swap, for races
}

var errDown = errors.New("connection refused")

func newBenchAPI(cfg Config, a ag.Authority) *benchAPI {
	api := &benchAPI{cfg: cfg, version: 100}
	api.put(a)
	return api
}

// put is the controller's swap.
func (a *benchAPI) put(next ag.Authority) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := &coordinationv1.Lease{}
	if a.lease != nil {
		l = a.lease.DeepCopy()
	}
	l.Name, l.Namespace = a.cfg.Lease, a.cfg.Namespace
	if err := state.Encode(l, next, a.cfg.Timing.L.Duration); err != nil {
		panic(err)
	}
	a.version++
	l.ResourceVersion = strconv.Itoa(a.version)
	a.lease = l
}

// change edits the record as the controller would.
func (a *benchAPI) change(f func(*ag.Authority)) {
	now := a.record()
	f(&now)
	a.put(now)
}

func (a *benchAPI) record() ag.Authority {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, _ := state.Decode(a.lease, a.cfg.UID)
	return r
}

func (a *benchAPI) with(f func(*benchAPI)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(a)
}

// answer waits as long as an answer takes.
func (a *benchAPI) answer(ctx context.Context) error {
	a.mu.Lock()
	down, delay := a.down, a.delay
	a.mu.Unlock()
	if down {
		return errDown
	}
	if !pause(ctx, delay) {
		return ctx.Err()
	}
	return nil
}

func (a *benchAPI) readLease(ctx context.Context) (*coordinationv1.Lease, error) {
	if err := a.answer(ctx); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reads++
	if a.lease == nil {
		return nil, nil
	}
	return a.lease.DeepCopy(), nil
}

func (a *benchAPI) updateLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	a.mu.Lock()
	if a.down {
		a.mu.Unlock()
		return nil, errDown
	}
	if a.lease == nil || a.lease.ResourceVersion != l.ResourceVersion {
		a.mu.Unlock()
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, l.Name, errors.New("changed"))
	}
	a.version++
	out := l.DeepCopy()
	out.ResourceVersion = strconv.Itoa(a.version)
	a.lease = out
	a.renewals = append(a.renewals, time.Now())
	a.mu.Unlock()
	if err := a.answer(ctx); err != nil {
		return nil, err // carried out, and the answer is lost
	}
	return out.DeepCopy(), nil
}

func (a *benchAPI) swap(ctx context.Context, before, next ag.Authority) (ag.Authority, error) {
	if a.before != nil {
		a.before()
	}
	if err := a.answer(ctx); err != nil {
		return ag.Authority{}, err
	}
	if !state.SameButRenewed(before, a.record()) {
		return ag.Authority{}, state.ErrSwapLost
	}
	a.put(next)
	a.with(func(a *benchAPI) { a.swaps = append(a.swaps, next.Rule) })
	return a.record(), nil
}

func (a *benchAPI) fencedAnnotation(ctx context.Context) (string, error) {
	if err := a.answer(ctx); err != nil {
		return "", err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.fenced, nil
}

// benchPeers answer failsafe questions.
type benchPeers struct {
	mu     sync.Mutex
	answer map[string]bool
	asked  int
	told   []managerapi.Seen
}

func (p *benchPeers) Failsafe(_ context.Context, peer managerapi.Peer, _ managerapi.FailsafeRequest) (managerapi.FailsafeAnswer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	return managerapi.FailsafeAnswer{Granted: p.answer[peer.Name], Reason: "as the test wants"}, nil
}

func (p *benchPeers) Tell(_ context.Context, _ managerapi.Peer, s managerapi.Seen) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = append(p.told, s)
	return nil
}

func (p *benchPeers) say(yes bool, names ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range names {
		p.answer[n] = yes
	}
}
