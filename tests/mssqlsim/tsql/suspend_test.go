package tsql_test

import "testing"

func TestAResumeThatIsLostWithTheLinkIsToldAgain(t *testing.T) {
	t.Parallel()
	c := newVCluster()
	newGroup(t, c, "a", "b", "c")
	c.nodes["b"].sql(t, "ALTER DATABASE shop SET HADR SUSPEND; WAITFOR DELAY '00:00:01'; ALTER DATABASE shop SET HADR RESUME; ALTER ENDPOINT e STATE = STOPPED; "+
		"WAITFOR DELAY '00:00:03'; ALTER ENDPOINT e STATE = STARTED; WAITFOR DELAY '00:00:20'")
	r := c.nodes["a"].sql(t, "SELECT r.replica_server_name, s.synchronization_state_desc, s.is_suspended FROM sys.dm_hadr_database_replica_states s JOIN sys.availability_replicas r ON r.replica_id = s.replica_id WHERE r.replica_server_name = 'b'")
	if row := r.Sets[0].Rows[0]; row[1].Text() != "SYNCHRONIZED" || row[2].Bool() {
		t.Errorf("the primary shows the copy as %s, suspended %v", row[1].Text(), row[2])
	}
}
