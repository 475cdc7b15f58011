package server_test

import (
	"context"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-sql/sqlexp"

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
				defer func() { _ = db.Close() }()
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

func TestFaults_ACrashAtAnyPointOfAWriteKeepsWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"before", "torn", "after"} {
		t.Run("the process ends at the point "+point, func(t *testing.T) {
			t.Parallel()
			ctx := deadline(t)
			c := server.StartCluster(t, 1, server.ClusterOptions{})
			n := c.Nodes[0]
			db := n.Open(t, nil)
			exec(t, ctx, db, "CREATE DATABASE d")
			exec(t, ctx, db, "CREATE TABLE d.dbo.t (id int NOT NULL PRIMARY KEY)")
			exec(t, ctx, db, "EXEC mssqlsim.fault @kind = N'crashat', @point = N'"+point+"', @after = N'5'")
			acknowledged := 0
			for {
				if _, err := db.ExecContext(ctx, fmt.Sprintf("INSERT INTO d.dbo.t VALUES (%d)", acknowledged)); err != nil {
					break
				}
				acknowledged++
			}
			if acknowledged == 0 || acknowledged > 5 {
				t.Errorf("%d rows were acknowledged before the crash", acknowledged)
			}
			if e := <-n.Server().Done(); e.Code != 137 {
				t.Errorf("exit = %+v", e)
			}
			n.Kill()
			if err := n.Start(); err != nil {
				t.Fatal(err)
			}
			got := count(t, ctx, n.Open(t, nil), "SELECT COUNT(*) FROM d.dbo.t")
			want := acknowledged
			if point == "after" { // durable, but nobody was told
				want++
			}
			if got != want {
				t.Errorf("%d rows after the restart, want %d", got, want)
			}
		})
	}
}

func TestFaults_AFrozenServerTakesConnectionsAndSaysNothing(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := server.StartCluster(t, 1, server.ClusterOptions{})
	n := c.Nodes[0]
	db := n.Open(t, nil)
	frozen := make(chan error, 1)
	began := time.Now()
	go func() { // its own answer is held back too
		_, err := db.ExecContext(ctx, "EXEC mssqlsim.fault @kind = N'freeze', @for = N'3s'")
		frozen <- err
	}()
	if err := server.Poll(ctx, "the server accepts and says nothing", func(context.Context) (bool, error) {
		raw, err := net.Dial("tcp", n.Server().Addr())
		if err != nil {
			return false, fmt.Errorf("the frozen server refuses connections: %w", err)
		}
		defer func() { _ = raw.Close() }()
		if _, err := raw.Write([]byte{0x12, 1, 0, 14, 0, 0, 1, 0, 0xFF, 0, 0, 0, 0, 0}); err != nil {
			return false, err
		}
		if err := raw.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			return false, err
		}
		_, err = raw.Read(make([]byte, 1))
		return errors.Is(err, os.ErrDeadlineExceeded), nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := <-frozen; err != nil || time.Since(began) < 3*time.Second {
		t.Errorf("the statement that froze the server came back after %v: %v", time.Since(began), err)
	}
	if err := server.Poll(ctx, "the server is back", func(ctx context.Context) (bool, error) {
		err := n.Open(t, nil).PingContext(ctx)
		return err == nil, err
	}); err != nil {
		t.Fatal(err)
	}
}

func TestCluster_AnAttentionEndsABlockedCommit(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := server.StartCluster(t, 3, server.ClusterOptions{})
	r := c.MakeGroup(t, server.Group{Databases: []string{"d"}})
	exec(t, ctx, r[0].DB, "CREATE TABLE d.dbo.t (id int NOT NULL PRIMARY KEY)")
	exec(t, ctx, r[0].DB, "ALTER AVAILABILITY GROUP ag1 SET (REQUIRED_SYNCHRONIZED_SECONDARIES_TO_COMMIT = 2)")
	c.Nodes[2].Kill()
	conn, err := r[0].DB.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	// Cancelled by hand: the driver drops a connection whose context had a deadline.
	cancelled, cancel := context.WithCancel(ctx)
	defer time.AfterFunc(2*time.Second, cancel).Stop()
	began := time.Now()
	if _, err := conn.ExecContext(cancelled, "INSERT INTO d.dbo.t VALUES (1)"); !errors.Is(err, context.Canceled) {
		t.Fatalf("INSERT without its quorum: %v", err)
	}
	if waited := time.Since(began); waited > 6*time.Second {
		t.Errorf("the attention took %v", waited)
	}
	var one int
	if err := conn.QueryRowContext(ctx, "SELECT 1").Scan(&one); err != nil {
		t.Errorf("the connection is of no use after the attention: %v", err)
	}
}

func TestCluster_AMessageWithNowaitIsSentWhileItsBatchRuns(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	n := server.StartCluster(t, 1, server.ClusterOptions{}).Nodes[0]
	for name, raise := range map[string]string{
		"an information":          "RAISERROR (N'it runs', 0, 1) WITH NOWAIT",
		"an error":                "RAISERROR (N'it runs', 16, 1) WITH NOWAIT",
		"with what was before it": "PRINT N'first'; RAISERROR (N'it runs', 0, 1) WITH NOWAIT",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			var messages sqlexp.ReturnMessage
			rows, err := n.Open(t, nil).QueryContext(ctx, raise+"; WAITFOR DELAY '01:00:00'", &messages)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _, _ = rows.Close(), rows.Err() }()
			// It ends with the deadline of the test when the message is kept back.
			for {
				m := fmt.Sprint(messages.Message(ctx))
				if ctx.Err() != nil {
					t.Fatal("the message does not come while the batch runs")
				}
				if strings.Contains(m, "it runs") {
					return
				}
			}
		})
	}
}

func TestCluster_ReadIntentIsRoutedToASecondary(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := server.StartCluster(t, 2, server.ClusterOptions{})
	r := c.MakeGroup(t, server.Group{Databases: []string{"d"}})
	exec(t, ctx, r[0].DB, fmt.Sprintf("ALTER AVAILABILITY GROUP ag1 MODIFY REPLICA ON N'mssql-1' WITH (SECONDARY_ROLE (READ_ONLY_ROUTING_URL = N'TCP://127.0.0.1:%d'))", c.Nodes[1].Port))
	exec(t, ctx, r[0].DB, "ALTER AVAILABILITY GROUP ag1 MODIFY REPLICA ON N'mssql-0' WITH (PRIMARY_ROLE (READ_ONLY_ROUTING_LIST = (N'mssql-1')))")
	for intent, want := range map[string]string{"ReadOnly": "mssql-1", "ReadWrite": "mssql-0"} {
		var got string
		db := c.Nodes[0].Open(t, url.Values{"database": {"d"}, "ApplicationIntent": {intent}})
		if err := db.QueryRowContext(ctx, "SELECT @@SERVERNAME").Scan(&got); err != nil || got != want {
			t.Errorf("a login with intent %s landed on %q, %v; want %s", intent, got, err, want)
		}
	}
}

// TestCluster_ASharedCertificate is the pattern of Microsoft's pages: one certificate
// with its private key, exported and imported as bytes.
func TestCluster_ASharedCertificate(t *testing.T) {
	t.Parallel()
	ctx := deadline(t)
	c := server.StartCluster(t, 2, server.ClusterOptions{})
	r := c.Replicas(t)
	var public, private []byte
	for i := range r {
		exec(t, ctx, r[i].DB, "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'Mast3r;Key'")
		exec(t, ctx, r[i].DB, "CREATE LOGIN dbm_login WITH PASSWORD = 'P33r;Login'")
		exec(t, ctx, r[i].DB, "CREATE USER dbm_user FOR LOGIN dbm_login")
	}
	exec(t, ctx, r[0].DB, "CREATE CERTIFICATE dbm_certificate AUTHORIZATION dbm_user WITH SUBJECT = 'dbm'")
	if err := r[0].DB.QueryRowContext(ctx, "SELECT CERTENCODED(CERT_ID('dbm_certificate')), CERTPRIVATEKEY(CERT_ID('dbm_certificate'), 'Pvk;Passw0rd')").Scan(&public, &private); err != nil {
		t.Fatal(err)
	}
	if _, err := x509.ParseCertificate(public); err != nil {
		t.Errorf("CERTENCODED is no X.509 certificate: %v", err)
	}
	exec(t, ctx, r[1].DB, fmt.Sprintf("CREATE CERTIFICATE dbm_certificate AUTHORIZATION dbm_user FROM BINARY = 0x%x WITH PRIVATE KEY (BINARY = 0x%x, DECRYPTION BY PASSWORD = 'Pvk;Passw0rd')", public, private))
	for i := range r {
		exec(t, ctx, r[i].DB, fmt.Sprintf("CREATE ENDPOINT hadr_endpoint STATE = STARTED AS TCP (LISTENER_PORT = %d) FOR DATABASE_MIRRORING (ROLE = ALL, AUTHENTICATION = CERTIFICATE dbm_certificate, ENCRYPTION = REQUIRED ALGORITHM AES)", r[i].EndpointPort))
	}
	exec(t, ctx, r[0].DB, "GRANT CONNECT ON ENDPOINT::hadr_endpoint TO dbm_login")
	replica := func(i int) string {
		return fmt.Sprintf("N'%s' WITH (ENDPOINT_URL = N'%s', AVAILABILITY_MODE = SYNCHRONOUS_COMMIT, FAILOVER_MODE = EXTERNAL, SEEDING_MODE = AUTOMATIC)", r[i].Name, r[i].EndpointURL)
	}
	exec(t, ctx, r[0].DB, "CREATE AVAILABILITY GROUP ag1 WITH (CLUSTER_TYPE = EXTERNAL) FOR REPLICA ON "+replica(0)+", "+replica(1))

	// Without CONNECT on the second endpoint the first is not let in.
	short, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if _, err := r[1].DB.ExecContext(short, "ALTER AVAILABILITY GROUP ag1 JOIN WITH (CLUSTER_TYPE = EXTERNAL)"); err == nil {
		t.Fatal("JOIN went through although the primary may not connect")
	}
	exec(t, ctx, r[1].DB, "GRANT CONNECT ON ENDPOINT::hadr_endpoint TO dbm_login")
	if err := server.Poll(ctx, "JOIN goes through", func(ctx context.Context) (bool, error) {
		_, err := r[1].DB.ExecContext(ctx, "ALTER AVAILABILITY GROUP ag1 JOIN WITH (CLUSTER_TYPE = EXTERNAL)")
		return err == nil || server.Number(err) == 41106, err
	}); err != nil {
		t.Fatal(err)
	}
	if err := server.AwaitRole(ctx, r[1].DB, "SECONDARY"); err != nil {
		t.Fatal(err)
	}
}
