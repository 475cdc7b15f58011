package foreign_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/server"
)

// troubleshooting are the queries that operators of availability groups are told to run,
// with what a healthy group of three answers on its primary.
func troubleshooting() []struct {
	name, sql string
	want      [][]any
	number    int // of the error, if the query names columns that do not exist
} {
	return []struct {
		name, sql string
		want      [][]any
		number    int
	}{
		{
			"cluster type", "SELECT name, cluster_type_desc FROM sys.availability_groups",
			[][]any{{"ag1", "EXTERNAL"}}, 0,
		},
		{
			"replica health", `SELECT r.replica_server_name, rs.role_desc,
          rs.synchronization_health_desc,
          drs.synchronization_state_desc,
          drs.log_send_queue_size, drs.redo_queue_size
   FROM sys.dm_hadr_availability_replica_states rs
   JOIN sys.availability_replicas r ON rs.replica_id = r.replica_id
   LEFT JOIN sys.dm_hadr_database_replica_states drs
       ON rs.replica_id = drs.replica_id AND drs.is_local = 0
   ORDER BY rs.role_desc, r.replica_server_name`,
			[][]any{
				{"mssql-0", "PRIMARY", "HEALTHY", nil, nil, nil},
				{"mssql-1", "SECONDARY", "HEALTHY", "SYNCHRONIZED", "0", "0"},
				{"mssql-2", "SECONDARY", "HEALTHY", "SYNCHRONIZED", "0", "0"},
			}, 0,
		},
		{
			// These columns belong to another view (field guide §3.8); the product refuses them too.
			"seeding progress", `SELECT r.replica_server_name, das.current_state,
          das.transferred_size_bytes
   FROM sys.dm_hadr_automatic_seeding das
   JOIN sys.availability_replicas r ON das.remote_id = r.replica_id`,
			nil, 207,
		},
		{
			"one replica", "SELECT @@SERVERNAME, role_desc FROM sys.dm_hadr_availability_replica_states WHERE is_local = 1",
			[][]any{{"mssql-0", "PRIMARY"}}, 0,
		},
		{
			"failover candidates", `SELECT r.replica_server_name, r.availability_mode_desc,
          r.failover_mode_desc, rs.synchronization_health_desc
   FROM sys.availability_replicas r
   JOIN sys.dm_hadr_availability_replica_states rs ON r.replica_id = rs.replica_id
   WHERE r.availability_mode_desc = 'SYNCHRONOUS_COMMIT'
     AND r.failover_mode_desc     = 'AUTOMATIC'`,
			[][]any{}, 0, // under EXTERNAL the mode of every replica is EXTERNAL
		},
		{
			"candidates under EXTERNAL", `SELECT r.replica_server_name, r.availability_mode_desc,
          r.failover_mode_desc, rs.synchronization_health_desc
   FROM sys.availability_replicas r
   JOIN sys.dm_hadr_availability_replica_states rs ON r.replica_id = rs.replica_id
   WHERE r.availability_mode_desc = 'SYNCHRONOUS_COMMIT'
     AND r.failover_mode_desc     = 'EXTERNAL'
   ORDER BY r.replica_server_name`,
			[][]any{
				{"mssql-0", "SYNCHRONOUS_COMMIT", "EXTERNAL", "HEALTHY"},
				{"mssql-1", "SYNCHRONOUS_COMMIT", "EXTERNAL", "HEALTHY"},
				{"mssql-2", "SYNCHRONOUS_COMMIT", "EXTERNAL", "HEALTHY"},
			}, 0,
		},
		{
			"resolving replicas", `SELECT r.replica_server_name, rs.role_desc, rs.operational_state_desc
   FROM sys.dm_hadr_availability_replica_states rs
   JOIN sys.availability_replicas r ON rs.replica_id = r.replica_id
   WHERE rs.role_desc = 'RESOLVING'`,
			[][]any{}, 0,
		},
	}
}

func TestTroubleshooting_EveryQueryWithEveryClient(t *testing.T) {
	t.Parallel()
	c := server.StartCluster(t, 3, server.ClusterOptions{})
	c.MakeGroup(t, server.Group{Databases: []string{"sales"}})
	to := targetOf(t, "127.0.0.1:"+strconv.Itoa(c.Nodes[0].Port), "sa", server.SAPassword)

	t.Run("tedious", func(t *testing.T) {
		t.Parallel()
		var steps []step
		for _, q := range troubleshooting() {
			steps = append(steps, step{How: "batch", SQL: q.sql}, step{SQL: q.sql})
		}
		answers := node(t, to, steps...)
		for i, q := range troubleshooting() {
			for _, a := range answers[2*i : 2*i+2] {
				if q.number != 0 {
					if len(a.Errors) == 0 || a.Errors[len(a.Errors)-1].Number != q.number {
						t.Errorf("%s: errors %+v, want %d", q.name, a.Errors, q.number)
					}
					continue
				}
				if len(a.Errors) > 0 {
					t.Errorf("%s: %+v", q.name, a.Errors)
				}
				if diff := cmp.Diff(q.want, a.Rows); diff != "" {
					t.Errorf("%s (-want +got):\n%s", q.name, diff)
				}
			}
		}
	})
	t.Run("FreeTDS", func(t *testing.T) {
		t.Parallel()
		for _, q := range troubleshooting() {
			out := tsql(t, to, q.sql+"\nGO\n")
			if q.number != 0 {
				if want := fmt.Sprintf("Msg %d (severity 16", q.number); !strings.Contains(out, want) {
					t.Errorf("%s: %q is missing from\n%s", q.name, want, out)
				}
				continue
			}
			if strings.Contains(out, "Msg ") {
				t.Errorf("%s:\n%s", q.name, out)
			}
			for _, row := range q.want {
				if !strings.Contains(out, line(row, "\t")) {
					t.Errorf("%s: the row %v is missing from\n%s", q.name, row, out)
				}
			}
		}
	})
	t.Run("sqlcmd", func(t *testing.T) {
		t.Parallel()
		program := filepath.Join(t.TempDir(), "sqlcmd")
		if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../cmd/sqlcmd").CombinedOutput(); err != nil {
			t.Fatalf("build sqlcmd: %v\n%s", err, out)
		}
		for _, q := range troubleshooting() {
			command := exec.CommandContext(t.Context(), program, "-S", fmt.Sprintf("localhost,%d", to.Port), "-U", "sa", "-P", to.Password, "-C", "-b", "-h", "-1", "-W", "-s", "|", "-Q", q.sql)
			out, err := command.CombinedOutput()
			if q.number != 0 {
				if err == nil || !strings.Contains(string(out), fmt.Sprintf("Msg %d, Level 16", q.number)) {
					t.Errorf("%s: %v\n%s", q.name, err, out)
				}
				continue
			}
			var want strings.Builder
			for _, row := range q.want {
				want.WriteString(line(row, "|") + "\n")
			}
			fmt.Fprintf(&want, "\n(%d rows affected)\n", len(q.want))
			if diff := cmp.Diff(want.String(), string(out)); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", q.name, err, diff)
			}
		}
	})
}

func line(row []any, separator string) string {
	var cells []string
	for _, v := range row {
		if v == nil {
			v = "NULL"
		}
		cells = append(cells, fmt.Sprint(v))
	}
	return strings.Join(cells, separator)
}
