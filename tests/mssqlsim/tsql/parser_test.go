package tsql

import (
	"testing"
)

func TestParserAcceptsTheSubset(t *testing.T) {
	t.Parallel()
	for _, src := range []string{
		"SELECT 1",
		"select 1;",
		"SELECT @@SERVERNAME, role_desc FROM sys.dm_hadr_availability_replica_states WHERE is_local = 1",
		"EXEC sp_set_session_context @key = N'external_cluster', @value = N'yes'\nALTER AVAILABILITY GROUP [AG1] FAILOVER",
		"IF EXISTS (SELECT * FROM sys.availability_groups WHERE name = 'ag') DROP AVAILABILITY GROUP [ag]",
		"IF NOT EXISTS (SELECT 1 FROM sys.availability_groups) BEGIN ALTER AVAILABILITY GROUP [a] JOIN WITH (CLUSTER_TYPE = EXTERNAL); ALTER AVAILABILITY GROUP [a] GRANT CREATE ANY DATABASE; END",
		"DECLARE @n int = 3, @t TABLE (a int PRIMARY KEY, b nvarchar(10) NULL DEFAULT 'x'); INSERT @t (a) VALUES (1), (2); SELECT * FROM @t AS t",
		"BEGIN TRY SELECT 1/0 END TRY BEGIN CATCH PRINT ERROR_MESSAGE(); THROW; END CATCH",
		"WITH c (x) AS (SELECT 1 UNION ALL SELECT 2) SELECT TOP (1) x FROM c ORDER BY x DESC",
		"SELECT a.*, (SELECT MAX(b) FROM u) m FROM t a LEFT JOIN (SELECT 1 AS q) d ON d.q = a.x WHERE a.x IN (1,2) AND a.y NOT LIKE '%a' ESCAPE '\\' OR NOT a.z IS NULL",
		"SELECT x FROM (VALUES (1),(2)) v(x) ORDER BY x OFFSET 1 ROWS FETCH NEXT 1 ROWS ONLY",
		"SELECT ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) FROM t WITH (NOLOCK)",
		"SELECT STRING_AGG(name, ',') WITHIN GROUP (ORDER BY name) FROM sys.databases",
		"SELECT DATEDIFF(SECOND, a, SYSUTCDATETIME()), CONVERT(varchar(30), a, 126) FROM t",
		`CREATE AVAILABILITY GROUP [ag1] WITH (DB_FAILOVER = ON, CLUSTER_TYPE = EXTERNAL, WRITE_LEASE_VALIDITY = 72)
		 FOR REPLICA ON N'a' WITH (ENDPOINT_URL = N'tcp://a:5022', AVAILABILITY_MODE = SYNCHRONOUS_COMMIT, FAILOVER_MODE = EXTERNAL,
		 SEEDING_MODE = AUTOMATIC, SECONDARY_ROLE (ALLOW_CONNECTIONS = READ_ONLY), PRIMARY_ROLE (READ_ONLY_ROUTING_LIST = (('a','b'),'c'))),
		 'w' WITH (ENDPOINT_URL = 'TCP://w:5022', AVAILABILITY_MODE = CONFIGURATION_ONLY)`,
		"ALTER AVAILABILITY GROUP ag SET (REQUIRED_SYNCHRONIZED_SECONDARIES_TO_COMMIT = 1)",
		"ALTER AVAILABILITY GROUP ag SET (ROLE = SECONDARY)",
		"ALTER AVAILABILITY GROUP ag MODIFY REPLICA ON 's' WITH (SEEDING_MODE = AUTOMATIC)",
		"ALTER AVAILABILITY GROUP ag ADD LISTENER N'l' (WITH IP ((N'10.0.0.1', N'255.0.0.0')), PORT = 1433)",
		"ALTER DATABASE [d] SET HADR AVAILABILITY GROUP = [ag]",
		"ALTER DATABASE d SET RECOVERY FULL WITH NO_WAIT",
		"CREATE ENDPOINT [e] STATE = STARTED AS TCP (LISTENER_PORT = 5022, LISTENER_IP = (0.0.0.0)) FOR DATA_MIRRORING (ROLE = ALL, AUTHENTICATION = CERTIFICATE c, ENCRYPTION = REQUIRED ALGORITHM AES)",
		"ALTER ENDPOINT e FOR DATABASE_MIRRORING (AUTHENTICATION = CERTIFICATE c2)",
		"ALTER ENDPOINT e STATE = STOPPED",
		"CREATE CERTIFICATE c AUTHORIZATION u FROM BINARY = 0x3082 WITH PRIVATE KEY (BINARY = 0x00, DECRYPTION BY PASSWORD = 'x')",
		"BACKUP CERTIFICATE c TO FILE = '/tmp/c.cer' WITH PRIVATE KEY (FILE = '/tmp/c.pvk', ENCRYPTION BY PASSWORD = 'x')",
		"GRANT ALTER, CONTROL, VIEW DEFINITION ON AVAILABILITY GROUP::[ag] TO [l]",
		"GRANT CONNECT ON ENDPOINT::e TO l WITH GRANT OPTION; REVOKE VIEW SERVER STATE FROM l CASCADE; DENY SELECT ON dbo.t TO public",
		"CREATE LOGIN [l] WITH PASSWORD = N'x', SID = 0x01, CHECK_POLICY = OFF; ALTER SERVER ROLE sysadmin ADD MEMBER l",
		"BACKUP DATABASE [d] TO DISK = 'NUL' WITH COPY_ONLY, COMPRESSION, STATS = 5; BACKUP LOG d TO URL = 's3://h/b/x'",
		"RESTORE DATABASE d FROM DISK = '/x' WITH REPLACE, MOVE 'a' TO 'b', NORECOVERY",
		"SHUTDOWN WITH NOWAIT", "KILL 51", "CHECKPOINT", "DBCC TRACEON (1234, -1)",
		"sp_who2", "sp_configure 'show advanced options', 1; RECONFIGURE WITH OVERRIDE",
		"EXEC @rc = sp_executesql N'SELECT @a', N'@a int', @a = 1", "EXEC ('SELECT ' + '1')",
		"CREATE PROCEDURE p @a int = 1, @b int OUTPUT AS BEGIN SET NOCOUNT ON; SELECT @a; RETURN 3 END",
		"SELECT CASE WHEN 1 = 1 THEN 'a' ELSE 'b' END AS x, IIF(1 > 2, 1, 2)",
		"SELECT * INTO #t FROM sys.databases; DROP TABLE IF EXISTS #t",
		"UPDATE t SET a += 1, @v = b OUTPUT inserted.a FROM t JOIN u ON t.x = u.x WHERE t.a = 3; DELETE FROM t WHERE a = 1",
		"WAITFOR DELAY '00:00:05'", "RAISERROR('x %d', 16, 1, 5) WITH NOWAIT",
		"SET NOCOUNT, XACT_ABORT ON; SET TRANSACTION ISOLATION LEVEL READ COMMITTED; SET LOCK_TIMEOUT -1",
		"SELECT 1 AS 'quoted', x = 2, \"a b\" = 3", "IF 1 = 1 SELECT 1; ELSE SELECT 2",
		"SELECT ((SELECT 1)) + (1)", "SELECT 1 WHERE (1 = 1 OR (2 = 2))", "((SELECT 1) UNION (SELECT 2))",
	} {
		if _, err := parseBatch(src); err != nil {
			t.Errorf("%s\n  line %d: %v", src, err.line, err)
		}
	}
}

func TestSyntaxErrorsHaveTheProductsNumberAndNearText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		src, text string
		number    int32
		line      int
	}{
		{"SELECT FROM t", "Incorrect syntax near the keyword 'FROM'.", 156, 1},
		{"SELECT 1\nSELECT * FROM", "Incorrect syntax near 'FROM'.", 102, 2},
		{"SELECT 1 1", "Incorrect syntax near '1'.", 102, 1},
		{"SELECT 'abc", "Unclosed quotation mark after the character string 'abc'.", 105, 1},
		{"SELECT 1 /* x", "Missing end comment mark '*/'.", 113, 1},
		{"IF 1 SELECT 1", "An expression of non-boolean type specified in a context where a condition is expected, near 'SELECT'.", 4145, 1},
		{"MERGE t USING u ON 1 = 1", "Incorrect syntax near the keyword 'MERGE'.", 156, 1},
		{"SELECT 1; frobnicate now", "Incorrect syntax near 'frobnicate'.", 102, 1},
		{"CREATE AVAILABILITY GROUP a WITH (FOO = 1) FOR REPLICA ON 'a' WITH (ENDPOINT_URL = 'x')", "Incorrect syntax near 'FOO'.", 102, 1},
		{"ALTER AVAILABILITY GROUP a MODIFY REPLICA ON 's' WITH (SEEDING_MODE = AUTOMATIC, SESSION_TIMEOUT = 10)", "Incorrect syntax near ','.", 102, 1},
		{"SET FOO ON", "'FOO' is not a recognized SET option.", 195, 1},
		{"DECLARE @x money2", "Column, parameter, or variable #1: Cannot find data type money2.", 2715, 1},
		{"BEGIN END", "Incorrect syntax near the keyword 'END'.", 156, 1},
		{"SELECT [a", "Unclosed quotation mark after the character string 'a'.", 105, 1},
	} {
		_, err := parseBatch(c.src)
		if err == nil || err.m.Number != c.number || err.m.Message != c.text || err.line != c.line {
			t.Errorf("%s\n  got  %+v\n  want %d line %d: %s", c.src, err, c.number, c.line, c.text)
		}
	}
}

func FuzzParserNeverPanics(f *testing.F) {
	f.Add("SELECT a FROM [b] WHERE c = N'd' AND e IN (1, 0x2)")
	f.Add("CREATE AVAILABILITY GROUP [a] WITH (CLUSTER_TYPE = EXTERNAL) FOR REPLICA ON 'a' WITH (ENDPOINT_URL = 'x')")
	f.Add("BEGIN TRY THROW 50000, 'x', 1 END TRY BEGIN CATCH END CATCH")
	f.Fuzz(func(t *testing.T, src string) {
		b, err := parseBatch(src)
		if (b == nil) == (err == nil) {
			t.Fatalf("batch %v and error %v", b, err)
		}
	})
}

func TestTheBatchCacheIsBounded(t *testing.T) {
	t.Parallel()
	c := newBatchCache(3)
	first, _ := c.parse("SELECT 0")
	for i := range 10 {
		if again, _ := c.parse("SELECT 0"); again != first {
			t.Fatalf("a text in use fell out after %d others", i)
		}
		if _, err := c.parse("SELECT " + string(rune('a'+i)) + " +"); err == nil {
			t.Fatal("a syntax error is lost")
		}
	}
	if n := c.order.Len(); n != 3 || len(c.byKey) != 3 {
		t.Errorf("%d and %d entries, want 3", n, len(c.byKey))
	}
}
