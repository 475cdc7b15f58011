package agops_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/agops"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	simserver "github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/server"
)

// A promotion that was given up takes effect after all, and takes the third replica's vote
// with it: both are ahead of the rightful primary.
func TestOnServersReplicasAheadOfThePrimaryComeBack(t *testing.T) {
	t.Parallel()
	b := startBenchWith(t, engine.Readings{Planned: engine.PlannedSticky}, 3, "app")
	e := b.engine()
	b.until("the group", e, 90*time.Second, inStep("ag1-0"))
	b.raise(0, 1)
	before := b.sequence(e, 1)

	b.cluster.Cut(0, 1)
	b.cluster.Cut(1, 0)
	b.cluster.Cut(0, 2)
	b.cluster.Cut(2, 0)
	b.asSA(1, "ALTER AVAILABILITY GROUP [ag1] SET (WRITE_LEASE_VALIDITY = 15)",
		"EXEC sp_set_session_context @key = N'external_cluster', @value = N'yes' ALTER AVAILABILITY GROUP [ag1] FAILOVER")
	b.await("ag1-1 to be PRIMARY", func() bool { return b.role(1) == "PRIMARY" })
	b.mu.Lock()
	b.version++
	b.auth.GivenUp = []ag.GivenUp{{Epoch: b.auth.Epoch, Run: ag.Run{Replica: "ag1-1", PodUID: "pod-ag1-1", Nonce: b.nonce(1)}, Before: before}}
	b.mu.Unlock()
	b.asSA(1, "ALTER AVAILABILITY GROUP [ag1] OFFLINE")
	b.await("ag1-1 to be offline", func() bool { return b.role(1) == "RESOLVING" })
	b.cluster.Heal(0, 1)
	b.cluster.Heal(1, 0)
	b.cluster.Heal(0, 2)
	b.cluster.Heal(2, 0)

	b.until("both to be back", e, 240*time.Second, inStep("ag1-0"))
	b.asSA(0, "CREATE TABLE app.dbo.t (x int)", "INSERT app.dbo.t VALUES (1)")
	if !strings.Contains(strings.Join(b.log, "\n"), "rejoin ") {
		t.Error("nobody was rejoined")
	}
}

// FG 11 no. 34, the other reading: ALTER … TO_COMMIT = 0 waits for the quorum that is gone.
func TestOnServersAPrimaryWhoseConfigurationCannotBeCommittedIsPromotedOntoItself(t *testing.T) {
	t.Parallel()
	b := startBenchWith(t, engine.Readings{ConfigurationJudgedByOldQuorum: true}, 2, "app")
	e := b.engine()
	b.until("the group", e, 90*time.Second, inStep("ag1-0"))
	b.raise(0, 1)
	b.kill(1)
	b.mu.Lock()
	b.version++
	b.auth.Rule.K, b.auth.Rule.Number = 0, b.auth.Rule.Number+1 // what the manager records before it alters
	b.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	var hanging sync.WaitGroup
	defer hanging.Wait()
	defer cancel()
	hanging.Go(func() { // until the primary is taken offline
		c, err := b.dial(ctx, 0, operatorLogin, operatorPassword)
		if err != nil {
			return
		}
		defer func() { _ = c.Close() }()
		_ = c.Exec(ctx, "ALTER AVAILABILITY GROUP [ag1] SET (REQUIRED_SYNCHRONIZED_SECONDARIES_TO_COMMIT = 0)")
	})
	b.until("the primary to be promoted again", e, 180*time.Second, func(r agops.Report) bool {
		h := r.Memory.History
		return len(h) > 0 && h[0].From == "ag1-0" && h[0].To == "ag1-0" && h[0].Kind == "planned" && r.Authority.Operation == nil
	})
	b.asSA(0, "CREATE TABLE app.dbo.t (x int)", "INSERT app.dbo.t VALUES (1)")
	b.start(1)
	b.until("the secondary's return", e, 120*time.Second, inStep("ag1-0"))
}

// sequence is what a replica says of its configuration.
func (b *bench) sequence(e *agops.Engine, i int) int64 {
	b.t.Helper()
	r, err := e.Step(context.Background(), key)
	if err != nil {
		b.t.Fatal(err)
	}
	return r.Snapshot.Replicas[i].Local.Sequence
}

// role is what a server says of itself.
func (b *bench) role(i int) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := b.dial(ctx, i, "sa", simserver.SAPassword)
	if err != nil {
		return ""
	}
	defer func() { _ = c.Close() }()
	rows, err := c.Query(ctx, "SELECT role_desc FROM sys.dm_hadr_availability_replica_states WHERE is_local = 1")
	if err != nil || len(rows) == 0 || len(rows[0].Rows) == 0 {
		return ""
	}
	return rows[0].Row(0).Text("role_desc")
}

func (b *bench) await(what string, ok func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); ; {
		if ok() {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("waited for %s", what)
		}
		<-time.After(200 * time.Millisecond)
	}
}

// A copy is dropped and seeded anew; the others are as they were.
func TestOnServersACopyIsSeededAnew(t *testing.T) {
	t.Parallel()
	b := startBench(t, 3, "app")
	e := b.engine()
	b.until("the group", e, 90*time.Second, inStep("ag1-0"))
	b.asSA(0, "CREATE TABLE app.dbo.t (x int)", "INSERT app.dbo.t VALUES (7)")
	before := b.created(2)
	r, err := e.Step(context.Background(), key)
	if err != nil {
		t.Fatal(err)
	}
	x := agops.SQLExecutor{Servers: b, Managers: b, Kube: b, Clock: clock.RealClock{}}
	pass := agops.Pass{Key: key, Policy: b.policy, Snapshot: r.Snapshot, Authority: r.Authority}
	if e := x.Execute(context.Background(), pass, ag.Reseed{Replica: "ag1-2", Databases: []string{"app"}}); e != nil {
		t.Fatal(e)
	}
	b.until("the copy", e, 120*time.Second, inStep("ag1-0"))
	if after := b.created(2); after == before {
		t.Errorf("the copy on ag1-2 is still the one created at %s", before)
	}
	if e := x.Execute(context.Background(), pass, ag.Reseed{Replica: "ag1-0", Databases: []string{"app"}}); e == nil || e.Kind != ag.ErrGuard {
		t.Errorf("on the primary: %v, want the guard's refusal", e)
	}
}

// created is when the server made its copy of the database.
func (b *bench) created(i int) string {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := b.dial(ctx, i, "sa", simserver.SAPassword)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	rows, err := c.Query(ctx, "SELECT create_date FROM sys.databases WHERE name = N'app'")
	if err != nil || len(rows) == 0 || len(rows[0].Rows) == 0 {
		b.t.Fatalf("no database app on %s: %v", b.cluster.Nodes[i].Name, err)
	}
	return rows[0].Row(0).Time("create_date").String()
}
