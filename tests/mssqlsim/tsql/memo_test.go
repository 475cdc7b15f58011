package tsql_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/tsql"
)

// A session that has asked before gets the answer of one that asks for the first time, whatever
// has happened between its questions.
func TestASessionThatAsksAgainSeesEveryChange(t *testing.T) {
	t.Parallel()
	c := newVCluster()
	newGroup(t, c, "a", "b", "c")
	questions := []string{
		"SELECT name, state_desc, recovery_model_desc FROM sys.databases ORDER BY name",
		"SELECT COUNT(*) AS n FROM sys.availability_replicas AS r WHERE EXISTS (SELECT 1 FROM sys.dm_hadr_availability_replica_states AS s WHERE s.replica_id = r.replica_id AND s.connected_state = 1)",
		"SELECT name FROM sys.server_principals WHERE type = 'S' ORDER BY name",
		"SELECT p.name, x.permission_name FROM sys.server_permissions AS x JOIN sys.server_principals AS p ON p.principal_id = x.grantee_principal_id ORDER BY p.name, x.permission_name",
		"SELECT MAX(CASE WHEN role_desc = 'PRIMARY' THEN 1 ELSE 0 END) AS p FROM sys.dm_hadr_availability_replica_states",
		"SELECT @@SERVERNAME AS n, SERVERPROPERTY('ServerName') AS p",
		"SELECT name FROM shop.sys.tables UNION ALL SELECT name FROM sys.certificates",
		"SELECT COUNT(*) AS n FROM shop.dbo.t",
		"DECLARE @n int = (SELECT COUNT(*) FROM sys.server_principals); SELECT @n AS n, COUNT(*) AS d FROM sys.certificates",
		"SELECT DATABASEPROPERTYEX('other', 'Recovery') AS r, COUNT(*) AS n FROM sys.certificates",
	}
	for _, title := range []string{"observe", "manager state", "manager copies", "trust"} {
		if q := golden(title); q != "" {
			questions = append(questions, q)
		}
	}
	logIn := func(n *vnode, user, password string) *tsql.Session {
		s, err := n.login(engine.LoginRequest{User: user, Password: password})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for _, n := range c.order {
		n.sql(t, "CREATE LOGIN watcher WITH PASSWORD = 'Watch-Passw0rd'; GRANT VIEW SERVER STATE TO watcher; GRANT VIEW ANY DEFINITION TO watcher")
	}
	type asker struct {
		n              *vnode
		user, password string
		s              *tsql.Session
	}
	var askers []*asker
	for _, n := range c.order {
		askers = append(askers, &asker{n, "sa", "Passw0rd!", logIn(n, "sa", "Passw0rd!")}, &asker{n, "watcher", "Watch-Passw0rd", logIn(n, "watcher", "Watch-Passw0rd")})
	}
	ask := func(n *vnode, s *tsql.Session, text string) tsql.Results {
		q, err := n.exec(s, tsql.Request{SQL: text}, time.Minute)
		if err != nil || q.err != nil {
			t.Fatal(text, err, q.err)
		}
		q.res.Dones = nil // SET NOCOUNT ON stays with a session
		return q.res
	}
	changed := 0
	last := map[string]tsql.Results{}
	same := cmp.Comparer(func(a, b sqltypes.Value) bool { return a == b })
	compare := func(after string) {
		t.Helper()
		for _, k := range askers {
			for i, text := range questions {
				before := k.n.c.now
				got := ask(k.n, k.s, text)
				fresh := logIn(k.n, k.user, k.password)
				want := ask(k.n, fresh, text)
				if !k.n.c.now.Equal(before) {
					t.Fatalf("time went on during %q", text)
				}
				fresh.Close()
				if d := cmp.Diff(want, got, same); d != "" {
					t.Errorf("after %s, %s on %s asks question %d (-first -again):\n%s", after, k.user, k.n.name, i, d)
				}
				key := k.user + k.n.name + text
				if old, ok := last[key]; ok && !cmp.Equal(old, got, same) {
					changed++
				}
				last[key] = got
			}
		}
	}
	compare("the start")
	compare("nothing")
	a, b := c.nodes["a"], c.nodes["b"]
	for _, step := range []struct {
		n    *vnode
		text string
	}{
		{a, "USE shop; CREATE TABLE t (id int PRIMARY KEY, v int)"},
		{a, "INSERT shop.dbo.t VALUES (1, 0)"},
		{a, "CREATE DATABASE other"},
		{a, "ALTER DATABASE other SET RECOVERY FULL"},
		{a, "CREATE LOGIN somebody WITH PASSWORD = 'Some-Passw0rd'"},
		{a, "GRANT ALTER ANY ENDPOINT TO somebody"},
		{a, "ALTER AVAILABILITY GROUP ag1 SET (REQUIRED_SYNCHRONIZED_SECONDARIES_TO_COMMIT = 1)"},
		{b, "ALTER ENDPOINT e STATE = STOPPED"},
		{a, "WAITFOR DELAY '00:00:30'"},
		{a, "REVOKE VIEW SERVER STATE FROM watcher"},
		{a, "GRANT VIEW SERVER STATE TO watcher"},
		{a, "REVOKE VIEW ANY DEFINITION FROM watcher"},
		{b, "ALTER ENDPOINT e STATE = STARTED"},
		{a, "WAITFOR DELAY '00:00:30'"},
		{a, "DROP DATABASE other"},
		{a, "ALTER AVAILABILITY GROUP ag1 OFFLINE"},
		{b, "EXEC sp_set_session_context N'external_cluster', N'yes'; ALTER AVAILABILITY GROUP ag1 FAILOVER"},
		{a, "WAITFOR DELAY '00:00:10'"},
		{a, "ALTER AVAILABILITY GROUP ag1 SET (ROLE = SECONDARY)"},
		{a, "WAITFOR DELAY '00:00:30'"},
		{a, "DROP AVAILABILITY GROUP ag1"},
	} {
		step.n.sql(t, step.text)
		compare(step.text)
	}
	if changed < 20 {
		t.Errorf("only %d answers differed from the one before: the changes are not in the questions", changed)
	}
}
