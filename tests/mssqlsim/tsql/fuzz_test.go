package tsql_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/tsql"
)

// FuzzExecutor runs any text as sa: it must end, without a panic, and leave a session that answers.
func FuzzExecutor(f *testing.F) {
	for _, s := range []string{
		"SELECT * FROM sys.databases a CROSS JOIN sys.databases b ORDER BY a.name DESC, 2 OFFSET 1 ROWS",
		"CREATE TABLE t (a int IDENTITY PRIMARY KEY, b varchar(5) DEFAULT 'x'); INSERT t (b) VALUES ('y'); UPDATE t SET b = NULL WHERE a = 1; SELECT COUNT(*) FROM t GROUP BY b HAVING MAX(a) > 0",
		"DECLARE @i int = 0; WHILE @i < 10 BEGIN SET @i += 1; IF @i = 5 BREAK END",
		"BEGIN TRY EXEC('SELECT 1/0') END TRY BEGIN CATCH SELECT ERROR_MESSAGE() END CATCH",
		"WITH c AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM c WHERE n < 9) SELECT SUM(n) OVER (ORDER BY n) FROM c",
		"CREATE PROCEDURE p @a int OUTPUT AS EXEC p @a OUTPUT", "BEGIN TRAN; SAVE TRAN x; ROLLBACK TRAN x; COMMIT",
		"SELECT DATEADD(year, 99999, GETDATE()), CONVERT(varchar(3), 0x01, 1), CAST('1e400' AS float)",
		"WAITFOR DELAY '23:59:59'; KILL 51; SHUTDOWN",
		"ALTER TABLE t ADD c int; CREATE INDEX i ON t (c); DROP TABLE t",
	} {
		f.Add(s)
	}
	scripts, err := filepath.Glob("testdata/scripts/*.txt")
	if err != nil || len(scripts) == 0 {
		f.Fatalf("no scripts: %v", err)
	}
	for _, p := range scripts {
		b, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range strings.Split(string(b), "\n\n") {
			if body, _, ok := strings.Cut(part, "\n----"); ok {
				if _, text, ok := strings.Cut(body, "\n"); ok {
					f.Add(text)
				}
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		c := newVCluster()
		n := c.add("a", nil)
		s, err := n.login(engine.LoginRequest{User: "sa", Password: "Passw0rd!"})
		if err != nil {
			t.Fatal(err)
		}
		s.Limit = 300
		q, err := n.exec(s, tsql.Request{SQL: text}, 100*24*time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if q.err != nil {
			if errors.Is(q.err, tsql.ErrBroken) || errors.Is(q.err, tsql.ErrStatementLimit) {
				return
			}
			t.Fatal(q.err)
		}
		for _, m := range q.res.Messages {
			if m.Text == "" {
				t.Errorf("message %d without text", m.Number)
			}
		}
		for _, set := range q.res.Sets {
			for _, row := range set.Rows {
				if len(row) != len(set.Columns) {
					t.Fatalf("row of %d values in %d columns", len(row), len(set.Columns))
				}
				for i, v := range row {
					if ct := set.Columns[i].Type; !v.IsNull() && v.Type().ID != ct.ID && ct.ID != sqltypes.SQLVariant {
						t.Fatalf("column %q is %s but holds %s", set.Columns[i].Name, ct, v.Type())
					}
				}
			}
		}
		q, err = n.exec(s, tsql.Request{SQL: "IF @@TRANCOUNT > 0 ROLLBACK; SELECT 1 AS one"}, time.Hour)
		if err != nil || q.err != nil || len(q.res.Sets) != 1 || len(q.res.Sets[0].Rows) != 1 {
			t.Fatalf("the session does not answer any more: %v %v %+v", err, q.err, q.res)
		}
	})
}

// FuzzQuoting: a name that QUOTENAME quotes and a text that doubled quotes enclose come back whole.
func FuzzQuoting(f *testing.F) {
	for _, s := range []string{"a", "a]b", "x'y", "select", "a b", "日本", "]]", "''", "-- no comment", "/* */"} {
		f.Add(s)
	}
	c := newVCluster()
	n := c.add("a", nil)
	s, err := n.login(engine.LoginRequest{User: "sa", Password: "Passw0rd!"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" || sqltypes.TextLen(name) > 128 || strings.ToValidUTF8(name, "") != name || strings.ContainsRune(name, 0) {
			return
		}
		text := "SELECT N'" + strings.ReplaceAll(name, "'", "''") + "' AS [" + strings.ReplaceAll(name, "]", "]]") + "], QUOTENAME(N'" + strings.ReplaceAll(name, "'", "''") + "') AS q"
		q, err := n.exec(s, tsql.Request{SQL: text}, time.Minute)
		if err != nil || q.res.Err() != nil {
			t.Fatalf("%s: %v %v", text, err, q.res.Err())
		}
		set := q.res.Sets[0]
		if got := set.Columns[0].Name; got != name {
			t.Errorf("column is named %q, want %q", got, name)
		}
		if got := set.Rows[0][0].Text(); got != name {
			t.Errorf("literal is %q, want %q", got, name)
		}
		if got, want := set.Rows[0][1].Text(), "["+strings.ReplaceAll(name, "]", "]]")+"]"; got != want {
			t.Errorf("QUOTENAME is %q, want %q", got, want)
		}
	})
}

func BenchmarkBatches(b *testing.B) {
	c := newVCluster()
	n := c.add("a", nil)
	n.sql(b, "CREATE DATABASE d")
	n.sql(b, "USE d; CREATE TABLE t (id int PRIMARY KEY, v int); INSERT t VALUES (1, 0), (2, 0), (3, 0)")
	for _, q := range []struct{ name, text string }{
		{"select1", "SELECT 1"},
		{"views", "SELECT r.replica_server_name, s.role_desc FROM sys.dm_hadr_availability_replica_states s JOIN sys.availability_replicas r ON r.replica_id = s.replica_id WHERE s.is_local = 1"},
		{"databases", "SELECT name, state_desc, recovery_model_desc FROM sys.databases WHERE database_id > 4"},
		{"update", "UPDATE d.dbo.t SET v = v + 1 WHERE id = 2"},
		{"read", "SELECT v FROM d.dbo.t WHERE id = 2"},
		{"guard", "IF EXISTS (SELECT 1 FROM sys.availability_groups WHERE name = 'x') SELECT 1"},
	} {
		b.Run(q.name, func(b *testing.B) {
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
