package agops_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/agops"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql/mssqltest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/tsql"
)

// world is servers, managers, Lease and status in memory. It knows just enough of the
// statements of pkg/sql/tsql to keep the facts that the setup plans from; the real
// grammar and behaviour are the simulated server's business, not this one's.
type world struct {
	mu      sync.Mutex
	clock   *clocktesting.FakeClock
	policy  ag.Policy
	servers []*server
	memory  ag.Memory
	auth    ag.Authority
	request *ag.Request
	log     []string

	// effects counts statements, swaps and saves; fault is asked before each.
	effects int
	fault   func(n int, what string) faultKind
}

type faultKind int

const (
	noFault faultKind = iota
	// notExecuted: it never arrived.
	notExecuted
	// answerLost: it was executed, and the caller does not know.
	answerLost
)

type server struct {
	w            *world
	name         string
	down         bool
	endpoint     string
	certificate  string
	masterKey    bool
	certificates map[string]bool // name → private
	logins       map[string]bool
	granted      map[string]bool
	role         ag.Role // RoleNone: no group
	configured   []ag.ConfiguredReplica
	databases    map[string]*database
	run          int
	created      int
	label        ag.Role
}

type database struct {
	full, chain, grouped bool
}

func newWorld(replicas int, databases ...string) *world {
	w := &world{clock: clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
	w.policy = ag.Policy{
		Group: "ag1", UID: "uid-1", External: true, AutoFailover: true, K: -1,
		Threshold: 30 * time.Second, SwitchoverMax: time.Minute, RelaxAfter: 15 * time.Second, Databases: databases,
		Timing: ag.Timing{Renew: 2 * time.Second, Call: 1500 * time.Millisecond, A: 5500 * time.Millisecond, Q: 2 * time.Second, L: 15 * time.Second, M: 1500 * time.Millisecond},
	}
	for i := range replicas {
		name := fmt.Sprintf("ag1-%d", i)
		w.policy.Replicas = append(w.policy.Replicas, ag.ReplicaPolicy{Name: name, Ordinal: i, Mode: ag.ModeSynchronous, Auto: true, URL: "TCP://" + name + ".ag1.ns.svc:5022"})
		w.servers = append(w.servers, &server{w: w, name: name, role: ag.RoleNone, run: 1,
			certificates: map[string]bool{}, logins: map[string]bool{}, granted: map[string]bool{}, databases: map[string]*database{}})
	}
	return w
}

func (w *world) server(name string) *server {
	for _, s := range w.servers {
		if s.name == name {
			return s
		}
	}
	panic("no server " + name)
}

func (w *world) primary() *server {
	for _, s := range w.servers {
		if s.role == ag.RolePrimary {
			return s
		}
	}
	return nil
}

var errInjected = errors.New("injected fault")

// effect runs do unless the fault swallows it.
func (w *world) effect(what string, do func() error) error {
	n := w.effects
	w.effects++
	kind := noFault
	if w.fault != nil {
		kind = w.fault(n, what)
	}
	if kind == notExecuted {
		return errInjected
	}
	w.log = append(w.log, what)
	if err := do(); err != nil {
		return err
	}
	if kind == answerLost {
		return errInjected
	}
	return nil
}

// Store.

func (w *world) Load(context.Context, ag.Key) (agops.Loaded, error) {
	p := w.policy
	p.Initialized = w.memory.Initialized
	return agops.Loaded{Policy: p, Memory: w.memory, Authority: w.auth.Clone(), Request: w.request}, nil
}

func (w *world) Save(_ context.Context, _ ag.Key, _, after ag.Memory) error {
	return w.effect("save", func() error { w.memory = after; return nil })
}

func (w *world) Swap(_ context.Context, _ ag.Key, before ag.Authority, swap ag.Swap) (ag.Authority, error) {
	err := w.effect("swap: "+swap.Why, func() error {
		if before.Version != w.auth.Version {
			return agops.ErrChanged
		}
		w.auth = swap.Next.Clone()
		w.auth.Exists, w.auth.AGUID, w.auth.Version = true, w.policy.UID, fmt.Sprint(w.effects)
		w.auth.Renewals = "renewed"
		return nil
	})
	return w.auth.Clone(), err
}

// Observer.

func (w *world) Observe(_ context.Context, _ ag.Key, p ag.Policy, _ string) (ag.Snapshot, error) {
	s := ag.Snapshot{ObservedAt: w.clock.Now()}
	primary := w.primary()
	for i, srv := range w.servers {
		rp := p.Replicas[i]
		r := ag.Replica{Name: rp.Name, Ordinal: i, Mode: rp.Mode, Auto: rp.Auto, Readable: rp.Readable}
		r.Pod = ag.Pod{Exists: true, UID: "pod-" + rp.Name, IP: "10.0.0.1", Node: "n", NodeReady: true, PVCUID: "pvc-" + rp.Name, Ready: true, RoleLabel: srv.label,
			Container: ag.Container{Running: true, StartedAt: w.clock.Now().Add(-time.Hour)}}
		r.Manager = ag.Manager{Reach: ag.ReachOK, Nonce: fmt.Sprintf("%s-run-%d", rp.Name, srv.run), PodUID: r.Pod.UID, HasVolumeLock: true, LastFailsafeAgo: -1, StartedAgo: time.Hour, HighestEpoch: w.auth.Epoch, HighestRule: w.auth.Rule.Number}
		r.Local = srv.local()
		if primary != nil && srv != primary && primary.lists(srv.name) {
			remote := &ag.Remote{Connected: srv.role == ag.RoleSecondary, Role: srv.role}
			for _, db := range primary.group() {
				remote.Databases = append(remote.Databases, ag.Database{Name: db, Joined: srv.role == ag.RoleSecondary, Sync: ag.SyncSynchronized, FailoverReady: true})
			}
			r.Remote = remote
		}
		if srv.down {
			r.Local, r.Manager = ag.Local{Reach: ag.ReachTimeout, Err: &ag.Error{Kind: ag.ErrTimeout}}, ag.Manager{Reach: ag.ReachTimeout}
		}
		s.Replicas = append(s.Replicas, r)
	}
	return s, nil
}

func (s *server) lists(name string) bool {
	return slices.ContainsFunc(s.configured, func(c ag.ConfiguredReplica) bool { return c.Server == name })
}

func (s *server) group() []string {
	var names []string
	for name, d := range s.databases {
		if d.grouped {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (s *server) local() ag.Local {
	l := ag.Local{Reach: ag.ReachOK, ServerName: strings.ToUpper(s.name), HADR: true, Role: s.role, Endpoint: ag.EndpointMissing}
	if s.endpoint != "" {
		l.Endpoint, l.EndpointName, l.EndpointCertificate = ag.EndpointStarted, s.endpoint, s.certificate
	}
	if s.role == ag.RoleNone {
		return l
	}
	l.GroupID, l.ReplicaID, l.External, l.Sequence, l.LeaseEnabled = "group-1", "replica-"+s.name, s.w.policy.External, 10, s.w.policy.External
	l.LeaseRemaining = 14 * time.Second
	l.Configured = s.configured
	names := s.group()
	if p := s.w.primary(); p != nil && s.role == ag.RoleSecondary {
		l.Configured, names = p.configured, p.group()
	}
	for _, name := range names {
		l.Databases = append(l.Databases, ag.Database{Name: name, State: ag.DatabaseOnline, Sync: ag.SyncSynchronized, Joined: true, FailoverReady: true})
	}
	for name, d := range s.databases {
		l.UserDatabases = append(l.UserDatabases, ag.UserDatabase{Name: name, State: ag.DatabaseOnline, Full: d.full, LogChain: d.chain, Grouped: d.grouped})
	}
	return l
}

// Servers.

func (w *world) Connect(_ context.Context, _ ag.Key, replica string, _ ag.Pod) (mssql.Conn, error) {
	s := w.server(replica)
	if s.down {
		return nil, &ag.Error{Kind: ag.ErrUnreachable, Message: "refused"}
	}
	return conn{s}, nil
}

type conn struct{ s *server }

func (c conn) Close() error { return nil }

func (c conn) Exec(ctx context.Context, batch string) error {
	_, err := c.Query(ctx, batch)
	return err
}

func (c conn) Query(_ context.Context, batch string) ([]mssql.Result, error) {
	s := c.s
	s.w.mu.Lock() // several servers are told something at the same time
	defer s.w.mu.Unlock()
	switch {
	case batch == tsql.ServerTime():
		return []mssql.Result{mssqltest.Table([]string{tsql.ServerTimeColumn}, []any{s.w.clock.Now()})}, nil
	case batch == tsql.Trust():
		keys := int64(0)
		if s.masterKey {
			keys = 1
		}
		certs := mssqltest.Table([]string{"name", "thumbprint", "private_key"})
		for name, private := range s.certificates {
			kind := "NA"
			if private {
				kind = "MK"
			}
			certs.Rows = append(certs.Rows, []any{name, []byte(name), kind})
		}
		logins := mssqltest.Table([]string{"name"})
		for name := range s.logins {
			logins.Rows = append(logins.Rows, []any{name})
		}
		return []mssql.Result{mssqltest.Table([]string{"master_keys"}, []any{keys}), certs, logins}, nil
	case strings.Contains(batch, "CERTENCODED"):
		return []mssql.Result{mssqltest.Table([]string{tsql.ExportedColumn}, []any{[]byte("der of " + s.certificate)})}, nil
	}
	var refused []mssql.Result
	err := s.w.effect(s.name+": "+title(batch), func() error {
		var err error
		refused, err = s.execute(batch)
		return err
	})
	if errors.Is(err, errInjected) {
		err = &ag.Error{Kind: ag.ErrTimeout, Message: "injected"}
	}
	return refused, err
}

// title is the telling line of a batch.
func title(batch string) string {
	for _, verb := range []string{"CREATE AVAILABILITY", "ADD REPLICA", "JOIN WITH", "ADD DATABASE", "BACKUP", "CREATE DATABASE", "SET RECOVERY", "CREATE ENDPOINT", "WITH SUBJECT", "MASTER KEY", "FROM BINARY", "GRANT CONNECT", "FAILOVER", "OFFLINE", "ROLE = SECONDARY"} {
		if strings.Contains(batch, verb) {
			return verb
		}
	}
	return batch
}

var (
	onServer   = regexp.MustCompile(`REPLICA ON N'([^']+)'`)
	bracketed  = regexp.MustCompile(`(?:CERTIFICATE|LOGIN|DATABASE|ENDPOINT) \[([^]]+)\]`)
	authWith   = regexp.MustCompile(`AUTHENTICATION = CERTIFICATE \[([^]]+)\]`)
	grantedTo  = regexp.MustCompile(`GRANT CONNECT ON ENDPOINT::\[[^]]+\] TO \[([^]]+)\]`)
	fromBinary = regexp.MustCompile(`CREATE CERTIFICATE \[([^]]+)\] FROM BINARY`)
	fromCert   = regexp.MustCompile(`CREATE LOGIN \[([^]]+)\] FROM CERTIFICATE`)
	untilTime  = regexp.MustCompile(`SYSUTCDATETIME\(\) >= '([^']+)'`)
	refusedRow = func(why string) []mssql.Result {
		return []mssql.Result{mssqltest.Table([]string{tsql.RefusedColumn}, []any{why})}
	}
	notPrimary  = mssqltest.Msg(ag.MsgNotPrimary, "not primary")
	replicaMode = regexp.MustCompile(`AVAILABILITY_MODE = (\w+)`)
)

func (s *server) execute(batch string) ([]mssql.Result, error) {
	if m := untilTime.FindStringSubmatch(batch); m != nil {
		until, err := time.Parse("2006-01-02T15:04:05.9999999", m[1])
		if err != nil {
			return nil, err
		}
		if !s.w.clock.Now().Before(until) {
			return refusedRow(tsql.RefusedExpired), nil
		}
	}
	name := ""
	if m := bracketed.FindStringSubmatch(batch); m != nil {
		name = m[1]
	}
	switch title(batch) {
	case "MASTER KEY":
		s.masterKey = true
	case "WITH SUBJECT":
		s.certificates[name] = true
	case "CREATE ENDPOINT":
		if s.endpoint == "" {
			s.endpoint, s.certificate = name, authWith.FindStringSubmatch(batch)[1]
		}
	case "FROM BINARY", "GRANT CONNECT":
		for _, m := range fromBinary.FindAllStringSubmatch(batch, -1) {
			if _, ok := s.certificates[m[1]]; !ok {
				s.certificates[m[1]] = false
			}
		}
		for _, m := range fromCert.FindAllStringSubmatch(batch, -1) {
			s.logins[m[1]] = true
		}
		for _, m := range grantedTo.FindAllStringSubmatch(batch, -1) {
			if !s.logins[m[1]] {
				return nil, mssqltest.Msg(15151, "no such login")
			}
			s.granted[m[1]] = true
		}
	case "CREATE AVAILABILITY":
		if s.role != ag.RoleNone {
			return refusedRow(tsql.RefusedGuard), nil
		}
		s.role = ag.RolePrimary
		s.created++
		s.configured = []ag.ConfiguredReplica{{Server: onServer.FindStringSubmatch(batch)[1], Mode: ag.ModeSynchronous}}
	case "ADD REPLICA":
		if s.role != ag.RolePrimary {
			return nil, notPrimary
		}
		if to := onServer.FindStringSubmatch(batch)[1]; !s.lists(to) {
			s.configured = append(s.configured, ag.ConfiguredReplica{Server: to, Mode: ag.Mode(replicaMode.FindStringSubmatch(batch)[1])})
		}
	case "JOIN WITH":
		p := s.w.primary()
		switch {
		case s.role != ag.RoleNone:
			return refusedRow(tsql.RefusedGuard), nil
		case p == nil || !p.lists(s.name):
			return nil, mssqltest.Msg(47106, "timed out")
		case !p.granted[s.certificate] || !s.granted[p.certificate]:
			return nil, mssqltest.Msg(35250, "the connection to the primary is not active")
		}
		s.role = ag.RoleSecondary
	case "CREATE DATABASE":
		if s.databases[name] == nil {
			s.databases[name] = &database{}
		}
	case "SET RECOVERY":
		s.databases[name].full = true
	case "BACKUP":
		s.databases[name].chain = true
	case "ADD DATABASE":
		d := s.databases[name]
		switch {
		case s.role != ag.RolePrimary:
			return nil, notPrimary
		case d == nil:
			return nil, mssqltest.Msg(35238, "not found")
		case !d.full:
			return nil, mssqltest.Msg(1465, "not full")
		case !d.chain:
			return nil, mssqltest.Msg(1475, "no backup")
		}
		d.grouped = true
	case "ROLE = SECONDARY":
		s.role = ag.RoleSecondary
	case "OFFLINE":
		s.role = ag.RoleResolving
	case "FAILOVER":
		s.role = ag.RolePrimary
	default:
		return nil, fmt.Errorf("the world does not know %q", batch)
	}
	return nil, nil
}

// Managers and Kube.

func (w *world) Seal(context.Context, ag.Key, string, ag.Pod, agops.SealOrder) error { return nil }

func (w *world) SetRole(_ context.Context, _ ag.Key, replica, _ string, role ag.Role, _ bool) error {
	return w.effect(fmt.Sprintf("label %s %s", replica, role), func() error { w.server(replica).label = role; return nil })
}

// engine makes a new process.
func (w *world) engine() *agops.Engine {
	return agops.NewEngine(agops.Options{
		Observer: w, Store: w, Clock: w.clock, Identity: "controller/test",
		Executor: agops.SQLExecutor{Servers: w, Managers: w, Kube: w, Clock: w.clock},
		Setup:    &agops.Setup{Servers: w, Clock: w.clock, Random: func(b []byte) error { return nil }},
	})
}

var key = ag.Key{Namespace: "ns", Name: "ag1"}
