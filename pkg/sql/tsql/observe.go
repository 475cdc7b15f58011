package tsql

// Observe is one batch that reads all that one server knows about a group, in seven
// result sets in the order below. One round trip, catalog and DMVs only; columns of
// 2019 and later (FG 3). Conversions make every value text, integer or bit, so that
// no driver type depends on the server's version.
//
// The queries join where the visibility matrix of FG 3.1 says that rows exist:
// on a primary they speak of all replicas, elsewhere of the local one, plus the
// persisted configuration.
func Observe(group string) string {
	g := Literal(group)
	return batch(
		"SET NOCOUNT ON",
		// 1 server. hidden counts local replicas of groups that this login may not see
		// (FG 0.3 no. 13): the DMV needs VIEW SERVER STATE, the catalog VIEW ANY DEFINITION.
		`SELECT CONVERT(nvarchar(128), SERVERPROPERTY('ServerName')) AS server_name,
  CONVERT(nvarchar(128), SERVERPROPERTY('ProductVersion')) AS product_version,
  CONVERT(int, SERVERPROPERTY('IsHadrEnabled')) AS hadr_enabled,
  CONVERT(int, SERVERPROPERTY('EngineEdition')) AS engine_edition,
  (SELECT COUNT(*) FROM sys.dm_hadr_availability_replica_states AS rs
    LEFT JOIN sys.availability_groups AS g ON g.group_id = rs.group_id
    WHERE rs.is_local = 1 AND g.group_id IS NULL) AS hidden`,
		// 2 group and its local replica; no row when the server has none.
		`SELECT CONVERT(nvarchar(36), g.group_id) AS group_id,
  g.cluster_type_desc,
  g.sequence_number,
  g.required_synchronized_secondaries_to_commit AS required_to_commit,
  CONVERT(nvarchar(36), rs.replica_id) AS replica_id,
  rs.role_desc,
  rs.operational_state_desc,
  rs.write_lease_remaining_ticks AS lease_ticks,
  DATEDIFF(second, rs.current_configuration_commit_start_time_utc, SYSUTCDATETIME()) AS commit_pending_seconds,
  gs.primary_replica
FROM sys.availability_groups AS g
LEFT JOIN sys.dm_hadr_availability_replica_states AS rs ON rs.group_id = g.group_id AND rs.is_local = 1
LEFT JOIN sys.dm_hadr_availability_group_states AS gs ON gs.group_id = g.group_id
WHERE g.name = `+g,
		// 3 replicas of this copy of the configuration, with what this server knows of their state.
		`SELECT r.replica_server_name,
  r.availability_mode_desc,
  r.endpoint_url,
  r.seeding_mode_desc,
  r.secondary_role_allow_connections_desc AS secondary_allow,
  rs.is_local,
  rs.role_desc,
  rs.connected_state_desc,
  rs.synchronization_health_desc,
  rs.last_connect_error_number,
  rs.last_connect_error_description
FROM sys.availability_groups AS g
JOIN sys.availability_replicas AS r ON r.group_id = g.group_id
LEFT JOIN sys.dm_hadr_availability_replica_states AS rs ON rs.replica_id = r.replica_id
WHERE g.name = `+g+`
ORDER BY r.replica_server_name`,
		// 4 copies: replica × database of the configuration, with the state where it is known.
		`SELECT r.replica_server_name,
  c.database_name,
  c.is_database_joined,
  c.is_failover_ready,
  s.is_local,
  s.synchronization_state_desc,
  s.database_state_desc,
  s.is_suspended,
  s.suspend_reason_desc,
  CONVERT(nvarchar(40), s.last_hardened_lsn) AS hardened_lsn,
  s.log_send_queue_size,
  s.redo_queue_size,
  s.secondary_lag_seconds
FROM sys.availability_groups AS g
JOIN sys.availability_replicas AS r ON r.group_id = g.group_id
JOIN sys.dm_hadr_database_replica_cluster_states AS c ON c.replica_id = r.replica_id
LEFT JOIN sys.dm_hadr_database_replica_states AS s ON s.replica_id = c.replica_id AND s.group_database_id = c.group_database_id
WHERE g.name = `+g+`
ORDER BY r.replica_server_name, c.database_name`,
		// 5 user databases of this server.
		`SELECT d.name,
  d.state_desc,
  d.recovery_model_desc,
  CONVERT(nvarchar(36), d.replica_id) AS replica_id,
  CONVERT(nvarchar(36), f.recovery_fork_guid) AS recovery_fork,
  CASE WHEN f.last_log_backup_lsn IS NULL THEN 0 ELSE 1 END AS log_chain
FROM sys.databases AS d
LEFT JOIN sys.database_recovery_status AS f ON f.database_id = d.database_id
WHERE d.database_id > 4
ORDER BY d.name`,
		// 6 mirroring endpoint; no row when there is none.
		`SELECT e.name,
  e.state_desc,
  t.port,
  c.name AS certificate,
  c.expiry_date
FROM sys.database_mirroring_endpoints AS e
LEFT JOIN sys.tcp_endpoints AS t ON t.endpoint_id = e.endpoint_id
LEFT JOIN sys.certificates AS c ON c.certificate_id = e.certificate_id`,
		// 7 seeding that runs or has failed, newest first (FG 3.8); target rows too.
		`SELECT TOP (200) r.replica_server_name,
  d.database_name,
  s.current_state,
  s.failure_state_desc,
  s.start_time,
  s.completion_time
FROM sys.dm_hadr_automatic_seeding AS s
JOIN sys.availability_groups AS g ON g.group_id = s.ag_id
LEFT JOIN sys.availability_replicas AS r ON r.replica_id = s.ag_remote_replica_id
LEFT JOIN sys.availability_databases_cluster AS d ON d.group_database_id = s.ag_db_id
WHERE g.name = `+g+`
ORDER BY s.start_time DESC`,
	)
}

// ObserveSets is the number of result sets of [Observe].
const ObserveSets = 7

// Trust reads what a server has of the endpoint security of FG 2, in three result
// sets: master key; certificates; logins made from certificates.
func Trust() string {
	return batch(
		"SET NOCOUNT ON",
		`SELECT COUNT(*) AS master_keys FROM sys.symmetric_keys WHERE name = N'##MS_DatabaseMasterKey##'`,
		`SELECT name, thumbprint, start_date, expiry_date, pvt_key_encryption_type AS private_key
FROM sys.certificates
ORDER BY name`,
		`SELECT name FROM sys.server_principals WHERE type_desc = N'CERTIFICATE_MAPPED_LOGIN' ORDER BY name`,
	)
}

// TrustSets is the number of result sets of [Trust].
const TrustSets = 3

// Ping answers the token that it was sent, for probes (FG 7.7).
func Ping(token string) string { return "SELECT " + Literal(token) + " AS token;" }

// Diagnostics is the one-shot sp_server_diagnostics: about 5 s on a healthy server (FG 6).
func Diagnostics() string { return "EXEC sp_server_diagnostics;" }
