package observe_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql/mssqltest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/observe"
)

// fixture is what three servers answer.
type fixture struct {
	answers map[string][]mssqltest.Answer // by replica; used one after the other, the last one stays
	block   map[string]bool
	pods    []ag.Pod
	mu      sync.Mutex
}

func (f *fixture) Pods(context.Context, ag.Key, []string) ([]ag.Pod, []ag.Node, error) {
	return f.pods, []ag.Node{{Name: "n1", Ready: true}}, nil
}

func (f *fixture) Connect(_ context.Context, _ ag.Key, replica string, _ ag.Pod) (mssql.Conn, error) {
	if f.block[replica] {
		return blocked{}, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.answers[replica]
	if len(list) == 0 {
		return nil, &ag.Error{Kind: ag.ErrUnreachable, Message: "refused"}
	}
	if len(list) > 1 {
		f.answers[replica] = list[1:]
	}
	return mssqltest.New(mssqltest.Rule{Contains: "", Answer: list[0]}), nil
}

func (f *fixture) Status(_ context.Context, _ ag.Key, replica string, _ ag.Pod) (ag.Manager, error) {
	if replica == "ag1-2" {
		return ag.Manager{}, errors.New("refused")
	}
	return ag.Manager{Reach: ag.ReachOK, Nonce: "n-" + replica}, nil
}

// blocked is a server that accepts and says nothing.
type blocked struct{}

func (blocked) Query(ctx context.Context, _ string) ([]mssql.Result, error) {
	<-ctx.Done()
	return nil, &ag.Error{Kind: ag.ErrTimeout, Message: "no answer in time"}
}
func (blocked) Exec(context.Context, string) error { return nil }
func (blocked) Close() error                       { return nil }

var table = mssqltest.Table

// answer is a server's answer to tsql.Observe.
func answer(server, role string, hidden int64, more ...mssql.Result) []mssql.Result {
	group := table([]string{"group_id", "cluster_type_desc", "sequence_number", "required_to_commit", "replica_id", "role_desc", "operational_state_desc", "lease_ticks", "commit_pending_seconds", "primary_replica"})
	if role != "" {
		group.Rows = append(group.Rows, []any{"G", "EXTERNAL", int64(4294967300), int64(1), "R-" + server, role, "ONLINE", int64(14500), nil, "ag1-0"})
	}
	sets := []mssql.Result{
		table([]string{"server_name", "product_version", "hadr_enabled", "engine_edition", "hidden"}, []any{server, "16.0.4195.2", int64(1), int64(3), hidden}),
		group,
		table([]string{"replica_server_name"}),
		table([]string{"replica_server_name"}),
		table([]string{"name", "state_desc", "recovery_model_desc", "replica_id", "recovery_fork", "log_chain"},
			[]any{"app", "ONLINE", "FULL", "R", "FORK", int64(1)}, []any{"other", "ONLINE", "SIMPLE", nil, nil, int64(0)}),
		table([]string{"name", "state_desc", "port", "certificate", "expiry_date"}, []any{"mirroring", "STARTED", int64(5022), "c-" + server, time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC)}),
		table([]string{"replica_server_name"}),
	}
	for i, set := range more {
		sets[[]int{2, 3, 6}[i]] = set
	}
	return sets
}

// primaryView is what ag1-0 knows of the others.
func primaryView() []mssql.Result {
	replicas := table([]string{"replica_server_name", "availability_mode_desc", "endpoint_url", "seeding_mode_desc", "secondary_allow", "is_local", "role_desc", "connected_state_desc", "synchronization_health_desc", "last_connect_error_number", "last_connect_error_description"},
		[]any{"AG1-0", "SYNCHRONOUS_COMMIT", "TCP://ag1-0:5022", "AUTOMATIC", "ALL", true, "PRIMARY", "CONNECTED", "HEALTHY", nil, nil},
		[]any{"ag1-1", "SYNCHRONOUS_COMMIT", "TCP://ag1-1:5022", "AUTOMATIC", "NO", false, "SECONDARY", "CONNECTED", "HEALTHY", nil, nil},
		[]any{"ag1-2", "ASYNCHRONOUS_COMMIT", "TCP://ag1-2:5022", "AUTOMATIC", "NO", false, nil, "DISCONNECTED", "NOT_HEALTHY", int64(11001), "host not found"})
	copies := table([]string{"replica_server_name", "database_name", "is_database_joined", "is_failover_ready", "is_local", "synchronization_state_desc", "database_state_desc", "is_suspended", "suspend_reason_desc", "hardened_lsn", "log_send_queue_size", "redo_queue_size", "secondary_lag_seconds"},
		[]any{"AG1-0", "app", true, true, true, "SYNCHRONIZED", "ONLINE", false, nil, "42000000012300001", nil, nil, nil},
		[]any{"ag1-1", "app", true, true, false, "SYNCHRONIZED", nil, false, nil, "42000000012300001", int64(3), int64(7), int64(1)},
		[]any{"ag1-2", "app", false, false, nil, nil, nil, nil, nil, nil, nil, nil, nil})
	seeding := table([]string{"replica_server_name", "database_name", "current_state", "failure_state_desc", "start_time", "completion_time"},
		[]any{"ag1-2", "app", "FAILED", "Seeding", time.Now(), time.Now()},
		[]any{"ag1-2", "app", "SEEDING", nil, time.Now(), nil}, // older than the failed one: not running any more
		[]any{"ag1-1", "app", "COMPLETED", nil, time.Now(), time.Now()})
	return []mssql.Result{replicas, copies, seeding}
}

func look(t *testing.T, f *fixture, holder string) ag.Snapshot {
	t.Helper()
	p := ag.Policy{Group: "ag1", Timing: ag.Timing{Renew: 2 * time.Second}}
	f.pods = nil
	for i, name := range []string{"ag1-0", "ag1-1", "ag1-2"} {
		p.Replicas = append(p.Replicas, ag.ReplicaPolicy{Name: name, Ordinal: i, Mode: ag.ModeSynchronous})
		f.pods = append(f.pods, ag.Pod{Exists: true, UID: "p" + name, IP: "10.0.0.1"})
	}
	o := observe.Observer{Cluster: f, Servers: f, Managers: f, Clock: clocktesting.NewFakeClock(time.Unix(1, 0)), Timeout: 300 * time.Millisecond}
	s, err := o.Observe(context.Background(), ag.Key{Namespace: "ns", Name: "ag1"}, p, holder)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ok(results []mssql.Result) []mssqltest.Answer { return []mssqltest.Answer{{Results: results}} }

func TestSnapshotKeepsTheViewsApart(t *testing.T) {
	t.Parallel()
	s := look(t, &fixture{answers: map[string][]mssqltest.Answer{
		"ag1-0": ok(answer("ag1-0", "PRIMARY", 0, primaryView()...)),
		"ag1-1": ok(answer("ag1-1", "SECONDARY", 0)),
	}}, "ag1-0")
	p := s.Replicas[0].Local
	want := ag.Local{
		Reach: ag.ReachOK, ServerName: "ag1-0", Version: "16.0.4195.2", HADR: true, Role: ag.RolePrimary, GroupID: "G", ReplicaID: "R-ag1-0",
		OperationalState: "ONLINE", PrimaryName: "ag1-0", Sequence: 4294967300, RequiredToCommit: 1, External: true,
		LeaseEnabled: true, LeaseRemaining: 14500 * time.Millisecond,
		Configured: []ag.ConfiguredReplica{
			{Server: "AG1-0", Mode: ag.ModeSynchronous, URL: "TCP://ag1-0:5022", Readable: true},
			{Server: "ag1-1", Mode: ag.ModeSynchronous, URL: "TCP://ag1-1:5022"},
			{Server: "ag1-2", Mode: ag.ModeAsynchronous, URL: "TCP://ag1-2:5022"},
		},
		Endpoint: ag.EndpointStarted, EndpointName: "mirroring", EndpointCertificate: "c-ag1-0", EndpointCertExpiry: time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC),
		Databases:     []ag.Database{{Name: "app", State: ag.DatabaseOnline, Sync: ag.SyncSynchronized, Joined: true, FailoverReady: true, HardenedLSN: "42000000012300001", RecoveryFork: "FORK"}},
		UserDatabases: []ag.UserDatabase{{Name: "app", State: ag.DatabaseOnline, Full: true, LogChain: true, Grouped: true}, {Name: "other", State: ag.DatabaseOnline}},
	}
	if d := cmp.Diff(want, p); d != "" {
		t.Errorf("the primary about itself (-want +got)\n%s", d)
	}
	if s.Replicas[0].Remote != nil {
		t.Error("the primary is seen by itself as another")
	}
	if d := cmp.Diff(&ag.Remote{Connected: true, Role: ag.RoleSecondary, Health: "HEALTHY",
		Databases: []ag.Database{{Name: "app", Sync: ag.SyncSynchronized, Joined: true, FailoverReady: true, HardenedLSN: "42000000012300001", SendQueueKB: 3, RedoQueueKB: 7, LagSeconds: 1}}}, s.Replicas[1].Remote); d != "" {
		t.Errorf("ag1-1 as the primary sees it (-want +got)\n%s", d)
	}
	if d := cmp.Diff(&ag.Remote{Health: "NOT_HEALTHY", LastConnectError: 11001, LastConnectText: "host not found", SeedingFailed: []string{"app"},
		Databases: []ag.Database{{Name: "app", LagUnknown: true}}}, s.Replicas[2].Remote); d != "" {
		t.Errorf("ag1-2 as the primary sees it (-want +got)\n%s", d)
	}
	if r := s.Replicas[2]; r.Local.Reach != ag.ReachRefused || r.Local.Role != ag.RoleUnknown || r.Manager.Reach != ag.ReachError {
		t.Errorf("a replica that does not answer: %+v, %+v", r.Local, r.Manager)
	}
	if s.Replicas[1].Manager.Nonce != "n-ag1-1" {
		t.Errorf("manager %+v", s.Replicas[1].Manager)
	}
}

func TestNoGroupIsNotTheSameAsNoRightToSeeIt(t *testing.T) {
	t.Parallel()
	s := look(t, &fixture{answers: map[string][]mssqltest.Answer{
		"ag1-0": ok(answer("ag1-0", "", 0)),
		"ag1-1": ok(answer("ag1-1", "", 1)),
	}}, "")
	if l := s.Replicas[0].Local; l.Reach != ag.ReachOK || l.Role != ag.RoleNone {
		t.Errorf("no group: %+v", l)
	}
	if l := s.Replicas[1].Local; l.Reach != ag.ReachForbidden || l.Role != ag.RoleUnknown {
		t.Errorf("a group that the login may not see: %+v", l)
	}
}

func TestSilentServerDoesNotHoldTheOthersUp(t *testing.T) {
	t.Parallel()
	started := time.Now()
	s := look(t, &fixture{block: map[string]bool{"ag1-1": true}, answers: map[string][]mssqltest.Answer{"ag1-0": ok(answer("ag1-0", "PRIMARY", 0))}}, "ag1-0")
	if s.Replicas[0].Local.Role != ag.RolePrimary || s.Replicas[1].Local.Reach != ag.ReachTimeout {
		t.Errorf("%+v", s.Replicas)
	}
	if took := time.Since(started); took > 3*time.Second {
		t.Errorf("took %s", took)
	}
}

func TestConnectionThatDiedIsReplacedOnce(t *testing.T) {
	t.Parallel()
	lost := mssqltest.Answer{Err: &ag.Error{Kind: ag.ErrTimeout, Message: "connection lost"}}
	s := look(t, &fixture{answers: map[string][]mssqltest.Answer{
		"ag1-0": {lost, {Results: answer("ag1-0", "PRIMARY", 0)}},
		"ag1-1": {lost, lost},
	}}, "ag1-0")
	if s.Replicas[0].Local.Role != ag.RolePrimary {
		t.Errorf("not asked again: %+v", s.Replicas[0].Local)
	}
	if s.Replicas[1].Local.Reach != ag.ReachTimeout {
		t.Errorf("%+v", s.Replicas[1].Local)
	}
}

func TestWithTwoPrimariesTheOneOfTheLeaseTellsOfTheOthers(t *testing.T) {
	t.Parallel()
	f := func() *fixture {
		return &fixture{answers: map[string][]mssqltest.Answer{
			"ag1-0": ok(answer("ag1-0", "PRIMARY", 0, primaryView()...)),
			"ag1-1": ok(answer("ag1-1", "PRIMARY", 0)),
		}}
	}
	if s := look(t, f(), "ag1-0"); s.Replicas[2].Remote == nil {
		t.Error("the Lease's primary was not heard")
	}
	if s := look(t, f(), ""); s.Replicas[2].Remote != nil {
		t.Error("one of two primaries was believed")
	}
}
