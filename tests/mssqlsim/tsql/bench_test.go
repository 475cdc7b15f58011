package tsql_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/tsql"
)

// newGroup makes a group ag1 of the named servers with one database "shop", in virtual time.
func newGroup(t testing.TB, c *vcluster, names ...string) {
	t.Helper()
	for _, n := range names {
		c.add(n, nil).sql(t, "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'Key-Passw0rd'; CREATE CERTIFICATE own WITH SUBJECT = 'own'; BACKUP CERTIFICATE own TO FILE = '/"+n+
			"'; CREATE ENDPOINT e STATE = STARTED AS TCP (LISTENER_PORT = 5022) FOR DATABASE_MIRRORING (ROLE = ALL, AUTHENTICATION = CERTIFICATE own)")
	}
	for _, n := range names {
		for _, p := range names {
			if p != n {
				c.nodes[n].sql(t, "CREATE LOGIN l_"+p+" WITH PASSWORD = 'Peer-Passw0rd'; CREATE USER l_"+p+"; CREATE CERTIFICATE c_"+p+" AUTHORIZATION l_"+p+" FROM FILE = '/"+p+"'; GRANT CONNECT ON ENDPOINT::e TO l_"+p)
			}
		}
	}
	spec := func(n string) string {
		return "'" + n + "' WITH (ENDPOINT_URL = 'TCP://" + n + ":5022', AVAILABILITY_MODE = SYNCHRONOUS_COMMIT, FAILOVER_MODE = EXTERNAL, SEEDING_MODE = AUTOMATIC, SECONDARY_ROLE (ALLOW_CONNECTIONS = ALL))"
	}
	first := c.nodes[names[0]]
	specs := make([]string, len(names))
	for i, n := range names {
		specs[i] = spec(n)
	}
	first.sql(t, "CREATE AVAILABILITY GROUP ag1 WITH (CLUSTER_TYPE = EXTERNAL, WRITE_LEASE_VALIDITY = 3600) FOR REPLICA ON "+strings.Join(specs, ", "))
	for _, n := range names[1:] {
		c.nodes[n].sql(t, "ALTER AVAILABILITY GROUP ag1 JOIN WITH (CLUSTER_TYPE = EXTERNAL); ALTER AVAILABILITY GROUP ag1 GRANT CREATE ANY DATABASE")
	}
	first.sql(t, "CREATE DATABASE shop; ALTER DATABASE shop SET RECOVERY FULL; BACKUP DATABASE shop TO DISK = 'NUL'; ALTER AVAILABILITY GROUP ag1 ADD DATABASE shop")
	first.sql(t, "WAITFOR DELAY '00:00:20'")
}

// golden gives a statement of the product's golden file, "" if it is not there.
func golden(title string) string {
	b, err := os.ReadFile("../../../pkg/sql/tsql/testdata/statements.golden")
	if err != nil {
		return ""
	}
	_, text, ok := strings.Cut(string(b), "=== "+title+"\n")
	if !ok {
		return ""
	}
	text, _, _ = strings.Cut(text, "\n=== ")
	return text
}

func BenchmarkGroup(b *testing.B) {
	c := newVCluster()
	newGroup(b, c, "a", "b", "c")
	c.nodes["a"].sql(b, "USE shop; CREATE TABLE t (id int PRIMARY KEY, v int); INSERT t VALUES (1, 0)")
	for _, q := range []struct{ name, text string }{
		{"manager state", golden("manager state")},
		{"observe", golden("observe")},
		{"commit", "UPDATE shop.dbo.t SET v = v + 1 WHERE id = 1"},
		{"lease", "ALTER AVAILABILITY GROUP ag1 SET (WRITE_LEASE_VALIDITY = 7200)"},
	} {
		if q.text == "" {
			continue
		}
		b.Run(q.name, func(b *testing.B) {
			n := c.nodes["a"]
			s, err := n.login(engine.LoginRequest{User: "sa", Password: "Passw0rd!"})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			b.ReportAllocs()
			for b.Loop() {
				q, err := n.exec(s, tsql.Request{SQL: q.text}, time.Minute)
				if err != nil || q.res.Err() != nil {
					b.Fatal(err, q.res.Err())
				}
			}
		})
	}
}
