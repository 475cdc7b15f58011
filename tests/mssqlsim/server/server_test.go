package server_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/server"
)

func deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func exec(t *testing.T, ctx context.Context, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(ctx, statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func count(t *testing.T, ctx context.Context, db *sql.DB, query string) int {
	t.Helper()
	var n int
	if err := db.QueryRowContext(ctx, query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func TestServer_AKillLosesNoAcknowledgedRow(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := server.StartCluster(t, 1, server.ClusterOptions{Change: func(_ int, c *server.Config) { c.RotateBytes = 20_000 }})
	n := c.Nodes[0]
	db := n.Open(t, nil)
	exec(t, ctx, db, "CREATE DATABASE d")
	exec(t, ctx, db, "CREATE TABLE d.dbo.t (id int NOT NULL PRIMARY KEY, v nvarchar(50))")
	next := 0
	for round := range 5 {
		var acknowledged atomic.Int64
		var writers sync.WaitGroup
		stop := make(chan struct{})
		base := next
		for w := range 2 {
			writers.Go(func() {
				db, err := sql.Open("sqlserver", n.DSN(nil))
				if err != nil {
					t.Error(err)
					return
				}
				defer db.Close()
				for i := 0; ; i++ {
					if _, err := db.ExecContext(ctx, fmt.Sprintf("INSERT INTO d.dbo.t VALUES (%d, N'round %d')", base+2*i+w, round)); err != nil {
						return
					}
					if acknowledged.Add(1) == 40 {
						close(stop)
					}
				}
			})
		}
		select {
		case <-stop:
		case <-ctx.Done():
			t.Fatal("the writers came to no end")
		}
		n.Kill()
		writers.Wait()
		if err := n.Start(); err != nil {
			t.Fatal(err)
		}
		db := n.Open(t, nil)
		got := count(t, ctx, db, fmt.Sprintf("SELECT COUNT(*) FROM d.dbo.t WHERE v = N'round %d'", round))
		if int64(got) < acknowledged.Load() {
			t.Errorf("round %d: %d rows, %d were acknowledged", round, got, acknowledged.Load())
		}
		next = base + 100_000
	}
}

func TestServer_ACleanStopSaysSo(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	var log syncBuffer
	c := server.StartCluster(t, 1, server.ClusterOptions{Change: func(_ int, c *server.Config) { c.ErrorLog = &log }})
	n := c.Nodes[0]
	exec(t, ctx, n.Open(t, nil), "CREATE DATABASE d")
	s := n.Server()
	if err := n.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if e := <-s.Done(); e.Code != 0 {
		t.Errorf("exit = %+v", e)
	}
	for _, want := range []string{"Server      SQL Server is now ready for client connections.", "SQL Server is terminating because of a system shutdown."} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the error log lacks %q:\n%s", want, log.String())
		}
	}
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	if got := count(t, ctx, n.Open(t, nil), "SELECT COUNT(*) FROM sys.databases WHERE name = 'd'"); got != 1 {
		t.Errorf("%d databases after the restart", got)
	}
}

type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestCluster_FailsOverAndTheOldPrimaryRejoins(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := server.StartCluster(t, 3, server.ClusterOptions{})
	r := c.MakeGroup(t, server.Group{Databases: []string{"d"}})
	exec(t, ctx, r[0].DB, "CREATE TABLE d.dbo.t (id int NOT NULL PRIMARY KEY)")
	exec(t, ctx, r[0].DB, "INSERT INTO d.dbo.t VALUES (1), (2)")

	if _, err := r[1].DB.ExecContext(ctx, "ALTER AVAILABILITY GROUP ag1 FAILOVER"); server.Number(err) != 47104 {
		t.Errorf("FAILOVER without the key: %v, want 47104", err)
	}
	c.Nodes[0].Kill()
	if err := server.Failover(ctx, r[1].DB, "ag1"); err != nil {
		t.Fatal(err)
	}
	if err := server.AwaitRole(ctx, r[1].DB, "PRIMARY"); err != nil {
		t.Fatal(err)
	}
	if err := server.Poll(ctx, "the new primary takes writes", func(ctx context.Context) (bool, error) {
		_, err := r[1].DB.ExecContext(ctx, "INSERT INTO d.dbo.t VALUES (3)")
		return err == nil || server.Number(err) == 2627, err
	}); err != nil {
		t.Fatal(err)
	}
	if err := c.Nodes[0].Start(); err != nil {
		t.Fatal(err)
	}
	if err := server.AwaitRole(ctx, r[0].DB, "RESOLVING"); err != nil {
		t.Fatal(err)
	}
	if err := server.Poll(ctx, "the old primary attaches", func(ctx context.Context) (bool, error) {
		_, err := r[0].DB.ExecContext(ctx, "ALTER AVAILABILITY GROUP ag1 SET (ROLE = SECONDARY)")
		return err == nil, err
	}); err != nil {
		t.Fatal(err)
	}
	if err := server.AwaitSynchronized(ctx, r[1].DB, "ag1"); err != nil {
		t.Fatal(err)
	}
	readOnly := c.Nodes[0].Open(t, url.Values{"database": {"d"}, "ApplicationIntent": {"ReadOnly"}})
	if err := server.Poll(ctx, "the old primary can be read", func(ctx context.Context) (bool, error) {
		var n int
		err := readOnly.QueryRowContext(ctx, "SELECT COUNT(*) FROM dbo.t").Scan(&n)
		return n == 3, err
	}); err != nil {
		t.Fatal(err)
	}
}

func TestCluster_ACutSecondaryIsDroppedAndReturns(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := server.StartCluster(t, 3, server.ClusterOptions{})
	r := c.MakeGroup(t, server.Group{Databases: []string{"d"}})
	exec(t, ctx, r[0].DB, "CREATE TABLE d.dbo.t (id int NOT NULL PRIMARY KEY)")
	c.Cut(0, 2)
	began := time.Now()
	exec(t, ctx, r[0].DB, "INSERT INTO d.dbo.t VALUES (1)") // waits for the session time-out
	if waited := time.Since(began); waited < 5*time.Second || waited > 30*time.Second {
		t.Errorf("the commit waited %v, want about the session time-out of 10 s", waited)
	}
	c.Heal(0, 2)
	if err := server.AwaitSynchronized(ctx, r[0].DB, "ag1"); err != nil {
		t.Fatal(err)
	}
}
