package tsql_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/tsql"
)

func (n *vnode) sa(t testing.TB) *tsql.Session {
	t.Helper()
	s, err := n.login(engine.LoginRequest{User: "sa", Password: "Passw0rd!"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAnAttentionEndsABlockedCommitAndLeavesTheConnectionUsable(t *testing.T) {
	t.Parallel()
	c := newVCluster()
	newGroup(t, c, "a", "b", "c")
	a := c.nodes["a"]
	a.sql(t, "USE shop; CREATE TABLE t (id int PRIMARY KEY); USE master; ALTER AVAILABILITY GROUP ag1 SET (REQUIRED_SYNCHRONIZED_SECONDARIES_TO_COMMIT = 1)")
	c.cut["b"], c.cut["c"] = true, true
	c.pass(c.now.Add(30*time.Second), func() bool { return false })
	s := a.sa(t)
	q := a.begin(s, tsql.Request{SQL: "INSERT shop.dbo.t VALUES (1)"})
	c.pass(c.now.Add(time.Minute), func() bool { return q.task.ended })
	if q.task.ended {
		t.Fatalf("the commit did not wait: %v %+v", q.err, q.res.Messages)
	}
	waits := a.sql(t, "SELECT COUNT(*) FROM sys.dm_exec_requests WHERE wait_type = 'HADR_SYNC_COMMIT'")
	if got := waits.Sets[0].Rows[0][0].Int64(); got != 1 {
		t.Errorf("%d requests wait in HADR_SYNC_COMMIT, want 1", got)
	}
	q.task.cancel()
	q.task.step()
	if !q.task.ended || !errors.Is(q.err, context.Canceled) {
		t.Fatalf("after the attention: ended %v, %v", q.task.ended, q.err)
	}
	r, err := a.exec(s, tsql.Request{SQL: "SELECT @@TRANCOUNT, @@SPID"}, time.Minute)
	if err != nil || r.err != nil || r.res.Sets[0].Rows[0][0].Int64() != 0 {
		t.Fatalf("the connection is not usable: %v %v %+v", err, r.err, r.res)
	}
}

func TestAnAttentionEndsWaitforAndALongQuery(t *testing.T) {
	t.Parallel()
	c := newVCluster()
	n := c.add("a", nil)
	s := n.sa(t)
	q := n.begin(s, tsql.Request{SQL: "WAITFOR DELAY '01:00:00'; SELECT 1"})
	q.task.cancel()
	q.task.step()
	if !q.task.ended || !errors.Is(q.err, context.Canceled) || len(q.res.Sets) != 0 {
		t.Errorf("WAITFOR: ended %v, %v, %d results", q.task.ended, q.err, len(q.res.Sets))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var res tsql.Results
	if err := s.Execute(ctx, "SELECT COUNT(*) FROM sys.all_columns a, sys.all_columns b, sys.all_columns c, sys.all_columns d", nil, &res); !errors.Is(err, context.Canceled) {
		t.Errorf("long query: %v", err)
	}
}

func TestXactAbortRollsBackOnAttention(t *testing.T) {
	t.Parallel()
	c := newVCluster()
	n := c.add("a", nil)
	n.sql(t, "CREATE DATABASE d")
	n.sql(t, "USE d; CREATE TABLE t (id int)")
	for _, on := range []bool{true, false} {
		s := n.sa(t)
		set := "SET XACT_ABORT OFF; "
		if on {
			set = "SET XACT_ABORT ON; "
		}
		q := n.begin(s, tsql.Request{SQL: set + "USE d; BEGIN TRAN; INSERT t VALUES (1); WAITFOR DELAY '00:10:00'"})
		q.task.cancel()
		q.task.step()
		open := s.State().Transaction != 0
		if open == on {
			t.Errorf("XACT_ABORT %v: transaction open %v", on, open)
		}
		s.Close()
	}
}

func TestADeadlockKillsOneOfTwo(t *testing.T) {
	t.Parallel()
	c := newVCluster()
	n := c.add("a", nil)
	n.sql(t, "CREATE DATABASE d")
	n.sql(t, "USE d; CREATE TABLE x (id int); CREATE TABLE y (id int)")
	s1, s2 := n.sa(t), n.sa(t)
	run := func(s *tsql.Session, text string) *request {
		q, err := n.exec(s, tsql.Request{SQL: text}, time.Minute)
		if err != nil || q.err != nil {
			t.Fatal(err, q.err)
		}
		return q
	}
	run(s1, "USE d; BEGIN TRAN; INSERT x VALUES (1)")
	run(s2, "USE d; BEGIN TRAN; INSERT y VALUES (1)")
	blocked := n.begin(s1, tsql.Request{SQL: "INSERT y VALUES (2); COMMIT"})
	victim := run(s2, "INSERT x VALUES (2); SELECT 'not reached'")
	err := victim.res.Err()
	if m := (tsql.Message{}); !errors.As(err, &m) || m.Number != 1205 || len(victim.res.Sets) != 0 {
		t.Fatalf("second transaction: %v", err)
	}
	if got := s2.State().Transaction; got != 0 {
		t.Errorf("the victim still has transaction %d", got)
	}
	c.pass(c.now.Add(time.Second), func() bool { return blocked.task.ended })
	if !blocked.task.ended || blocked.res.Err() != nil {
		t.Fatalf("the survivor: ended %v, %v", blocked.task.ended, blocked.res.Err())
	}
	r := run(s1, "SELECT (SELECT COUNT(*) FROM x), (SELECT COUNT(*) FROM y)")
	if a, b := r.res.Sets[0].Rows[0][0].Int64(), r.res.Sets[0].Rows[0][1].Int64(); a != 1 || b != 1 {
		t.Errorf("x has %d rows and y %d, want 1 and 1", a, b)
	}
}

func TestLockTimeoutIs1222(t *testing.T) {
	t.Parallel()
	c := newVCluster()
	n := c.add("a", nil)
	n.sql(t, "CREATE DATABASE d")
	n.sql(t, "USE d; CREATE TABLE x (id int)")
	s1, s2 := n.sa(t), n.sa(t)
	if q, err := n.exec(s1, tsql.Request{SQL: "BEGIN TRAN; INSERT d.dbo.x VALUES (1)"}, time.Minute); err != nil || q.res.Err() != nil {
		t.Fatal(err, q.res.Err())
	}
	q, err := n.exec(s2, tsql.Request{SQL: "SET LOCK_TIMEOUT 0; INSERT d.dbo.x VALUES (2); SELECT COUNT(*) FROM d.dbo.x"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if m := (tsql.Message{}); !errors.As(q.res.Err(), &m) || m.Number != 1222 {
		t.Errorf("got %v, want 1222", q.res.Err())
	}
	if len(q.res.Sets) != 1 || q.res.Sets[0].Rows[0][0].Int64() != 0 {
		t.Errorf("readers see committed rows only: %+v", q.res.Sets)
	}
	before := c.now
	q, err = n.exec(s2, tsql.Request{SQL: "SET LOCK_TIMEOUT 2000; INSERT d.dbo.x VALUES (2)"}, time.Minute)
	if m := (tsql.Message{}); err != nil || !errors.As(q.res.Err(), &m) || m.Number != 1222 || c.now.Sub(before) != 2*time.Second {
		t.Errorf("after %v: %v %v, want 1222 after 2s", c.now.Sub(before), err, q.res.Err())
	}
	if q, err = n.exec(s1, tsql.Request{SQL: "COMMIT"}, time.Minute); err != nil || q.res.Err() != nil {
		t.Fatal(err, q.res.Err())
	}
	if q, err = n.exec(s2, tsql.Request{SQL: "INSERT d.dbo.x VALUES (2)"}, time.Minute); err != nil || q.res.Err() != nil {
		t.Errorf("the lock is free, but: %v %v", err, q.res.Err())
	}
}

func TestResetClearsWhatALoginDoesNotHave(t *testing.T) {
	t.Parallel()
	c := newVCluster()
	n := c.add("a", nil)
	s := n.sa(t)
	run := func(text string) *tsql.Results {
		t.Helper()
		q, err := n.exec(s, tsql.Request{SQL: text}, time.Minute)
		if err != nil || q.err != nil || q.res.Err() != nil {
			t.Fatal(err, q.err, q.res.Err())
		}
		return &q.res
	}
	run("USE tempdb; CREATE TABLE #x (a int); SET XACT_ABORT ON; BEGIN TRAN; EXEC sp_set_session_context N'external_cluster', N'yes'")
	if err := s.Reset(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	r := run("SELECT DB_NAME(), @@TRANCOUNT, OBJECT_ID('tempdb..#x'), SESSION_CONTEXT(N'external_cluster'), @@OPTIONS & 16384")
	row := r.Sets[0].Rows[0]
	if got := row[0].Text() + "/" + row[1].Format() + "/" + row[2].Format() + "/" + row[3].Format() + "/" + row[4].Format(); got != "master/0/NULL/NULL/0" {
		t.Errorf("after the reset: %s", got)
	}
}

func TestAProcedureCallReturnsOutputsAndStatus(t *testing.T) {
	t.Parallel()
	c := newVCluster()
	n := c.add("a", nil)
	n.sql(t, "CREATE DATABASE d")
	n.sql(t, "USE d; EXEC('CREATE PROCEDURE p @a int, @b nvarchar(10) OUTPUT AS SET @b = CONCAT(N''got '', @a); SELECT @a AS a; RETURN 7')")
	s := n.sa(t)
	q, err := n.exec(s, tsql.Request{Proc: "d.dbo.p", Params: []tsql.Param{
		{Name: "@a", Value: sqltypes.NewInt(5)}, {Name: "@b", Value: sqltypes.Null(sqltypes.TNVarChar(10)), Output: true},
	}}, time.Minute)
	if err != nil || q.err != nil || q.res.Err() != nil {
		t.Fatal(err, q.err, q.res.Err())
	}
	if q.res.Status != 7 || q.res.Outputs["@b"].Text() != "got 5" || q.res.Sets[0].Rows[0][0].Int64() != 5 {
		t.Errorf("status %d, outputs %v, sets %v", q.res.Status, q.res.Outputs, q.res.Sets)
	}
	last := q.res.Dones[len(q.res.Dones)-1]
	if !last.Proc || q.res.Dones[0].Proc || !q.res.Dones[0].InProc {
		t.Errorf("dones %+v", q.res.Dones)
	}
	q, err = n.exec(s, tsql.Request{SQL: "SET @o = @i * 2", Declaration: "@i int, @o int OUTPUT", Params: []tsql.Param{
		{Name: "@i", Value: sqltypes.NewInt(4)}, {Name: "@o", Value: sqltypes.Null(sqltypes.TInt), Output: true},
	}}, time.Minute)
	if err != nil || q.res.Err() != nil || q.res.Outputs["@o"].Int64() != 8 {
		t.Errorf("sp_executesql: %v %v %v", err, q.res.Err(), q.res.Outputs)
	}
	q, err = n.exec(s, tsql.Request{Proc: "nosuch"}, time.Minute)
	if m := (tsql.Message{}); err != nil || !errors.As(q.res.Err(), &m) || m.Number != 2812 {
		t.Errorf("unknown procedure: %v %v", err, q.res.Err())
	}
}

func TestAFailoverEndsTheConnectionsInsideTheDatabase(t *testing.T) {
	t.Parallel()
	c := newVCluster()
	newGroup(t, c, "a", "b", "c")
	a, b := c.nodes["a"], c.nodes["b"]
	inside, outside := a.sa(t), a.sa(t)
	if q, err := a.exec(inside, tsql.Request{SQL: "USE shop"}, time.Minute); err != nil || q.res.Err() != nil {
		t.Fatal(err, q.res.Err())
	}
	b.sql(t, "EXEC sp_set_session_context @key = N'external_cluster', @value = N'yes' ALTER AVAILABILITY GROUP ag1 FAILOVER; WAITFOR DELAY '00:00:10'")
	if q, err := a.exec(inside, tsql.Request{SQL: "SELECT 1"}, time.Minute); err == nil && !errors.Is(q.err, tsql.ErrBroken) {
		t.Errorf("the connection inside the database lives: %v", q.err)
	}
	if q, err := a.exec(outside, tsql.Request{SQL: "SELECT role_desc FROM sys.dm_hadr_availability_replica_states WHERE is_local = 1"}, time.Minute); err != nil || q.err != nil || q.res.Sets[0].Rows[0][0].Text() != "SECONDARY" {
		t.Errorf("the connection in master: %v %v %+v", err, q.err, q.res)
	}
}
