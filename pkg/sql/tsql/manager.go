package tsql

// ManagerState is what the instance manager reads of its own server every renew
// interval, on an open session, in four result sets; catalog and DMVs only, so that
// a busy server answers it:
//
//  1. the server's time, for expiries (R5)
//  2. the group and its local replica; no row when the server has none of it
//  3. the configuration's replicas, with what this server knows of each
//  4. copies of databases by replica: on a primary of all replicas, elsewhere local ones
//
// Views: FG 3.2–3.6. write_lease_remaining_ticks is taken as milliseconds (FG 11 no. 5).
func ManagerState(group string) string {
	g := Literal(group)
	return batch(
		"SET NOCOUNT ON",
		"SELECT SYSUTCDATETIME() AS "+ServerTimeColumn,
		`SELECT CONVERT(nvarchar(36), g.group_id) AS group_id,
  g.sequence_number,
  g.required_synchronized_secondaries_to_commit AS required_to_commit,
  rs.role_desc,
  rs.write_lease_remaining_ticks AS lease_ticks,
  DATEDIFF(second, rs.current_configuration_commit_start_time_utc, SYSUTCDATETIME()) AS commit_pending_seconds,
  gs.primary_replica
FROM sys.availability_groups AS g
LEFT JOIN sys.dm_hadr_availability_replica_states AS rs ON rs.group_id = g.group_id AND rs.is_local = 1
LEFT JOIN sys.dm_hadr_availability_group_states AS gs ON gs.group_id = g.group_id
WHERE g.name = `+g,
		`SELECT r.replica_server_name,
  r.availability_mode_desc,
  rs.is_local,
  rs.connected_state_desc
FROM sys.availability_groups AS g
JOIN sys.availability_replicas AS r ON r.group_id = g.group_id
LEFT JOIN sys.dm_hadr_availability_replica_states AS rs ON rs.replica_id = r.replica_id
WHERE g.name = `+g+`
ORDER BY r.replica_server_name`,
		`SELECT r.replica_server_name,
  c.database_name,
  s.is_local,
  s.synchronization_state_desc,
  s.database_state_desc
FROM sys.availability_groups AS g
JOIN sys.availability_replicas AS r ON r.group_id = g.group_id
JOIN sys.dm_hadr_database_replica_cluster_states AS c ON c.replica_id = r.replica_id
LEFT JOIN sys.dm_hadr_database_replica_states AS s ON s.replica_id = c.replica_id AND s.group_database_id = c.group_database_id
WHERE g.name = `+g+`
ORDER BY r.replica_server_name, c.database_name`,
	)
}

// ManagerStateSets is the number of result sets of [ManagerState].
const ManagerStateSets = 4

// ManagerCopies is what the instance manager reads for its metrics and for the status
// that people see, in four result sets:
//
//  1. copies of the group's databases by replica, with their queues in kilobytes (on a
//     primary of all replicas, elsewhere local ones; FG 3.6): the columns that [Observe]
//     reads for decisions; log_reuse is this server's, of its own copy
//  2. the mirroring endpoint with the certificate that it shows (FG 3.9)
//  3. seeding by replica and database, newest first, with its attempts (FG 3.8)
//  4. streams of seeding that run now, with sizes and rates in bytes (FG 3.8)
func ManagerCopies(group string) string {
	g := Literal(group)
	return batch(
		"SET NOCOUNT ON",
		`SELECT r.replica_server_name,
  c.database_name,
  s.synchronization_state_desc,
  s.database_state_desc,
  s.is_suspended,
  s.suspend_reason_desc,
  s.log_send_queue_size,
  s.redo_queue_size,
  s.secondary_lag_seconds,
  d.log_reuse_wait_desc AS log_reuse
FROM sys.availability_groups AS g
JOIN sys.availability_replicas AS r ON r.group_id = g.group_id
JOIN sys.dm_hadr_database_replica_cluster_states AS c ON c.replica_id = r.replica_id
LEFT JOIN sys.dm_hadr_database_replica_states AS s ON s.replica_id = c.replica_id AND s.group_database_id = c.group_database_id
LEFT JOIN sys.databases AS d ON d.group_database_id = c.group_database_id
WHERE g.name = `+g+`
ORDER BY r.replica_server_name, c.database_name`,
		`SELECT e.state_desc,
  c.expiry_date
FROM sys.database_mirroring_endpoints AS e
LEFT JOIN sys.certificates AS c ON c.certificate_id = e.certificate_id`,
		`SELECT TOP (200) r.replica_server_name,
  d.database_name,
  s.current_state,
  s.is_source,
  s.failure_state_desc,
  s.number_of_attempts,
  s.start_time,
  s.completion_time
FROM sys.dm_hadr_automatic_seeding AS s
JOIN sys.availability_groups AS g ON g.group_id = s.ag_id
LEFT JOIN sys.availability_replicas AS r ON r.replica_id = s.ag_remote_replica_id
LEFT JOIN sys.availability_databases_cluster AS d ON d.group_database_id = s.ag_db_id
WHERE g.name = `+g+`
ORDER BY s.start_time DESC`,
		`SELECT p.local_database_name,
  p.remote_machine_name,
  p.role_desc,
  p.transfer_rate_bytes_per_second,
  p.transferred_size_bytes,
  p.database_size_bytes,
  p.start_time_utc,
  p.estimate_time_complete_utc,
  p.failure_message
FROM sys.dm_hadr_physical_seeding_stats AS p
ORDER BY p.local_database_name`,
	)
}

// ManagerCopiesSets is the number of result sets of [ManagerCopies].
const ManagerCopiesSets = 4

// ServerNames reads the name that the server goes by, the one that is registered for
// its next start, and how many availability groups it has (FG 7.4).
func ServerNames() string {
	return `SELECT CONVERT(nvarchar(128), @@SERVERNAME) AS server_name,
  (SELECT s.name FROM sys.servers AS s WHERE s.server_id = 0) AS registered_name,
  (SELECT COUNT(*) FROM sys.availability_groups) AS group_count;`
}

// ProductVersion reads the server's version, as in "16.0.4195.2" (FG 3.10).
func ProductVersion() string {
	return "SELECT CONVERT(nvarchar(128), SERVERPROPERTY('ProductVersion')) AS product_version;"
}

// RenameServer registers a new name; the server goes by it after a restart (FG 7.4).
// A server whose name was never registered has no old one to drop.
func RenameServer(registered, name string) string {
	var drop string
	if registered != "" {
		drop = "EXEC sp_dropserver " + Literal(registered)
	}
	return batch(drop, "EXEC sp_addserver "+Literal(name)+", N'local'")
}
