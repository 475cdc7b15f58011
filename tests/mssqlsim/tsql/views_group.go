package tsql

import (
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// groupViews are the views of availability groups, with the columns of FG 3.2 to 3.8 in order.
func groupViews() []viewMaker {
	type (
		group   = engine.AvailabilityGroupRow
		replica = engine.AvailabilityReplicaRow
		state   = engine.ReplicaStateRow
		gstate  = engine.GroupStateRow
		dstate  = engine.DatabaseReplicaStateRow
		dcl     = engine.DatabaseClusterStateRow
		rcl     = engine.ReplicaClusterStateRow
		gdb     = engine.GroupDatabaseRow
		lis     = engine.ListenerRow
		auto    = engine.AutomaticSeedingRow
		phys    = engine.PhysicalSeedingRow
	)
	return []viewMaker{
		ofCatalog(view("sys", "availability_groups", func(ex *exec, _ engine.DatabaseID) ([]group, error) {
			return ex.in.AvailabilityGroups(ex.hst, ex.s.id), nil
		},
			guid("group_id", func(r *group) engine.GUID { return r.GroupID }),
			sysname("name", func(r *group) string { return r.Name }),
			nv("resource_id", 40, func(r *group) string { return r.ResourceID }),
			nv("resource_group_id", 40, func(r *group) string { return r.ResourceGroupID }),
			integer("failure_condition_level", func(r *group) int { return r.FailureConditionLevel }),
			integer("health_check_timeout", func(r *group) int { return r.HealthCheckTimeout }),
			tiny("automated_backup_preference", func(r *group) uint8 { return r.BackupPreference }),
			desc("automated_backup_preference_desc", func(r *group) string { return r.BackupPreferenceDesc }),
			small("version", func(r *group) int { return r.Version }),
			bit("basic_features", func(r *group) bool { return r.BasicFeatures }),
			bit("dtc_support", func(r *group) bool { return r.DTC }),
			bit("db_failover", func(r *group) bool { return r.DBFailover }),
			bit("is_distributed", func(r *group) bool { return r.IsDistributed }),
			tiny("cluster_type", func(r *group) uint8 { return r.ClusterType }).from(14),
			desc("cluster_type_desc", func(r *group) string { return r.ClusterTypeDesc }).from(14),
			integer("required_synchronized_secondaries_to_commit", func(r *group) int { return r.RequiredSecondariesToCommit }).from(14),
			bigint("sequence_number", func(r *group) int64 { return r.SequenceNumber }).from(14),
			bit("is_contained", func(r *group) bool { return r.IsContained }).from(16),
		)),
		ofCatalog(view("sys", "availability_replicas", func(ex *exec, _ engine.DatabaseID) ([]replica, error) {
			return ex.in.AvailabilityReplicas(ex.hst, ex.s.id), nil
		},
			guid("replica_id", func(r *replica) engine.GUID { return r.ReplicaID }),
			guid("group_id", func(r *replica) engine.GUID { return r.GroupID }),
			optInt("replica_metadata_id", func(r *replica) engine.Opt[int] { return r.ReplicaMetadataID }),
			nv("replica_server_name", 256, func(r *replica) string { return r.ReplicaServerName }),
			bin("owner_sid", 85, func(r *replica) []byte { return r.OwnerSID }),
			nv("endpoint_url", 256, func(r *replica) string { return r.EndpointURL }),
			tiny("availability_mode", func(r *replica) uint8 { return r.AvailabilityMode }),
			desc("availability_mode_desc", func(r *replica) string { return r.AvailabilityModeDesc }),
			tiny("failover_mode", func(r *replica) uint8 { return r.FailoverMode }),
			desc("failover_mode_desc", func(r *replica) string { return r.FailoverModeDesc }),
			integer("session_timeout", func(r *replica) int { return r.SessionTimeout }),
			tiny("primary_role_allow_connections", func(r *replica) uint8 { return r.PrimaryConnections }),
			desc("primary_role_allow_connections_desc", func(r *replica) string { return r.PrimaryConnectionsDesc }),
			tiny("secondary_role_allow_connections", func(r *replica) uint8 { return r.SecondaryConnections }),
			desc("secondary_role_allow_connections_desc", func(r *replica) string { return r.SecondaryConnectionsDesc }),
			optTime("create_date", func(r *replica) engine.Opt[time.Time] { return r.CreateDate }),
			optTime("modify_date", func(r *replica) engine.Opt[time.Time] { return r.ModifyDate }),
			integer("backup_priority", func(r *replica) int { return r.BackupPriority }),
			optNV("read_only_routing_url", 256, func(r *replica) engine.Opt[string] { return r.ReadOnlyRoutingURL }),
			tiny("seeding_mode", func(r *replica) uint8 { return r.SeedingMode }),
			desc("seeding_mode_desc", func(r *replica) string { return r.SeedingModeDesc }),
			optNV("read_write_routing_url", 256, func(r *replica) engine.Opt[string] { return r.ReadWriteRoutingURL }).from(15),
		)),
		view("sys", "dm_hadr_availability_replica_states", func(ex *exec, _ engine.DatabaseID) ([]state, error) {
			return ex.in.ReplicaStates(ex.hst, ex.s.id)
		},
			guid("replica_id", func(r *state) engine.GUID { return r.ReplicaID }),
			guid("group_id", func(r *state) engine.GUID { return r.GroupID }),
			bit("is_local", func(r *state) bool { return r.IsLocal }),
			optTiny("role", func(r *state) engine.Opt[uint8] { return r.Role }),
			optNV("role_desc", 60, func(r *state) engine.Opt[string] { return r.RoleDesc }),
			optTiny("operational_state", func(r *state) engine.Opt[uint8] { return r.OperationalState }),
			optNV("operational_state_desc", 60, func(r *state) engine.Opt[string] { return r.OperationalStateDesc }),
			optTiny("connected_state", func(r *state) engine.Opt[uint8] { return r.ConnectedState }),
			optNV("connected_state_desc", 60, func(r *state) engine.Opt[string] { return r.ConnectedStateDesc }),
			optTiny("recovery_health", func(r *state) engine.Opt[uint8] { return r.RecoveryHealth }),
			optNV("recovery_health_desc", 60, func(r *state) engine.Opt[string] { return r.RecoveryHealthDesc }),
			optTiny("synchronization_health", func(r *state) engine.Opt[uint8] { return r.SynchronizationHealth }),
			optNV("synchronization_health_desc", 60, func(r *state) engine.Opt[string] { return r.SynchronizationDesc }),
			optInt("last_connect_error_number", func(r *state) engine.Opt[int] { return r.LastConnectErrorNumber }),
			optNV("last_connect_error_description", 1024, func(r *state) engine.Opt[string] { return r.LastConnectErrorText }),
			optTime("last_connect_error_timestamp", func(r *state) engine.Opt[time.Time] { return r.LastConnectErrorTime }),
			optBig("write_lease_remaining_ticks", func(r *state) engine.Opt[int64] { return r.WriteLeaseRemainingTicks }).from(14),
			optTime("current_configuration_commit_start_time_utc", func(r *state) engine.Opt[time.Time] { return r.ConfigurationCommitStart }).from(15),
			fixed[state]("is_internal", sqltypes.NewBit(false)).from(17),
		),
		view("sys", "dm_hadr_availability_group_states", func(ex *exec, _ engine.DatabaseID) ([]gstate, error) {
			return ex.in.GroupStates(ex.hst, ex.s.id)
		},
			guid("group_id", func(r *gstate) engine.GUID { return r.GroupID }),
			optNV("primary_replica", 128, func(r *gstate) engine.Opt[string] { return r.PrimaryReplica }),
			optTiny("primary_recovery_health", func(r *gstate) engine.Opt[uint8] { return r.PrimaryRecoveryHealth }),
			optNV("primary_recovery_health_desc", 60, func(r *gstate) engine.Opt[string] { return r.PrimaryRecoveryHealthDesc }),
			optTiny("secondary_recovery_health", func(r *gstate) engine.Opt[uint8] { return r.SecondaryRecoveryHealth }),
			optNV("secondary_recovery_health_desc", 60, func(r *gstate) engine.Opt[string] { return r.SecondaryRecoveryHealthDesc }),
			optTiny("synchronization_health", func(r *gstate) engine.Opt[uint8] { return r.SynchronizationHealth }),
			optNV("synchronization_health_desc", 60, func(r *gstate) engine.Opt[string] { return r.SynchronizationHealthDesc }),
		),
		view("sys", "dm_hadr_database_replica_states", func(ex *exec, _ engine.DatabaseID) ([]dstate, error) {
			return ex.in.DatabaseReplicaStates(ex.hst, ex.s.id)
		},
			integer("database_id", func(r *dstate) int { return int(r.DatabaseID) }),
			guid("group_id", func(r *dstate) engine.GUID { return r.GroupID }),
			guid("replica_id", func(r *dstate) engine.GUID { return r.ReplicaID }),
			guid("group_database_id", func(r *dstate) engine.GUID { return r.GroupDatabaseID }),
			bit("is_local", func(r *dstate) bool { return r.IsLocal }),
			optBit("is_primary_replica", func(r *dstate) engine.Opt[bool] { return r.IsPrimaryReplica }),
			tiny("synchronization_state", func(r *dstate) uint8 { return r.SynchronizationState }),
			desc("synchronization_state_desc", func(r *dstate) string { return r.SynchronizationStateDesc }),
			optBit("is_commit_participant", func(r *dstate) engine.Opt[bool] { return r.IsCommitParticipant }),
			tiny("synchronization_health", func(r *dstate) uint8 { return r.SynchronizationHealth }),
			desc("synchronization_health_desc", func(r *dstate) string { return r.SynchronizationHealthDesc }),
			optTiny("database_state", func(r *dstate) engine.Opt[uint8] { return r.DatabaseState }),
			optNV("database_state_desc", 60, func(r *dstate) engine.Opt[string] { return r.DatabaseStateDesc }),
			bit("is_suspended", func(r *dstate) bool { return r.IsSuspended }),
			optTiny("suspend_reason", func(r *dstate) engine.Opt[uint8] { return r.SuspendReason }),
			optNV("suspend_reason_desc", 60, func(r *dstate) engine.Opt[string] { return r.SuspendReasonDesc }),
			optLSN("recovery_lsn", func(r *dstate) engine.Opt[engine.LSN] { return r.RecoveryLSN }),
			optLSN("truncation_lsn", func(r *dstate) engine.Opt[engine.LSN] { return r.TruncationLSN }),
			optLSN("last_sent_lsn", func(r *dstate) engine.Opt[engine.LSN] { return r.LastSentLSN }),
			optTime("last_sent_time", func(r *dstate) engine.Opt[time.Time] { return r.LastSentTime }),
			optLSN("last_received_lsn", func(r *dstate) engine.Opt[engine.LSN] { return r.LastReceivedLSN }),
			optTime("last_received_time", func(r *dstate) engine.Opt[time.Time] { return r.LastReceivedTime }),
			optLSN("last_hardened_lsn", func(r *dstate) engine.Opt[engine.LSN] { return r.LastHardenedLSN }),
			optTime("last_hardened_time", func(r *dstate) engine.Opt[time.Time] { return r.LastHardenedTime }),
			optLSN("last_redone_lsn", func(r *dstate) engine.Opt[engine.LSN] { return r.LastRedoneLSN }),
			optTime("last_redone_time", func(r *dstate) engine.Opt[time.Time] { return r.LastRedoneTime }),
			optBig("log_send_queue_size", func(r *dstate) engine.Opt[int64] { return r.LogSendQueueSize }),
			optBig("log_send_rate", func(r *dstate) engine.Opt[int64] { return r.LogSendRate }),
			optBig("redo_queue_size", func(r *dstate) engine.Opt[int64] { return r.RedoQueueSize }),
			optBig("redo_rate", func(r *dstate) engine.Opt[int64] { return r.RedoRate }),
			optBig("filestream_send_rate", func(r *dstate) engine.Opt[int64] { return r.FilestreamSendRate }),
			optLSN("end_of_log_lsn", func(r *dstate) engine.Opt[engine.LSN] { return r.EndOfLogLSN }),
			optLSN("last_commit_lsn", func(r *dstate) engine.Opt[engine.LSN] { return r.LastCommitLSN }),
			optTime("last_commit_time", func(r *dstate) engine.Opt[time.Time] { return r.LastCommitTime }),
			optBig("low_water_mark_for_ghosts", func(r *dstate) engine.Opt[int64] { return r.LowWaterMarkForGhosts }),
			optBig("secondary_lag_seconds", func(r *dstate) engine.Opt[int64] { return r.SecondaryLagSeconds }),
			optLSN("quorum_commit_lsn", func(r *dstate) engine.Opt[engine.LSN] { return r.QuorumCommitLSN }).from(15),
			optTime("quorum_commit_time", func(r *dstate) engine.Opt[time.Time] { return r.QuorumCommitTime }).from(15),
			fixed[dstate]("is_internal", sqltypes.NewBit(false)).from(17),
		),
		view("sys", "dm_hadr_database_replica_cluster_states", func(ex *exec, _ engine.DatabaseID) ([]dcl, error) {
			return ex.in.DatabaseClusterStates(ex.hst, ex.s.id)
		},
			guid("replica_id", func(r *dcl) engine.GUID { return r.ReplicaID }),
			guid("group_database_id", func(r *dcl) engine.GUID { return r.GroupDatabaseID }),
			sysname("database_name", func(r *dcl) string { return r.DatabaseName }),
			bit("is_failover_ready", func(r *dcl) bool { return r.IsFailoverReady }),
			bit("is_pending_secondary_suspend", func(r *dcl) bool { return r.IsPendingSecondarySuspend }),
			bit("is_database_joined", func(r *dcl) bool { return r.IsDatabaseJoined }),
			optLSN("recovery_lsn", func(r *dcl) engine.Opt[engine.LSN] { return r.RecoveryLSN }),
			optLSN("truncation_lsn", func(r *dcl) engine.Opt[engine.LSN] { return r.TruncationLSN }),
		),
		view("sys", "dm_hadr_availability_replica_cluster_states", func(ex *exec, _ engine.DatabaseID) ([]rcl, error) {
			return ex.in.ReplicaClusterStates(ex.hst, ex.s.id)
		},
			guid("replica_id", func(r *rcl) engine.GUID { return r.ReplicaID }),
			nv("replica_server_name", 256, func(r *rcl) string { return r.ReplicaServerName }),
			guid("group_id", func(r *rcl) engine.GUID { return r.GroupID }),
			tiny("join_state", func(r *rcl) uint8 { return r.JoinState }),
			desc("join_state_desc", func(r *rcl) string { return r.JoinStateDesc }),
		),
		view("sys", "dm_hadr_cluster", func(*exec, engine.DatabaseID) ([]gdb, error) { return nil, nil },
			nv("cluster_name", 128, func(*gdb) string { return "" }),
			tiny("quorum_type", func(*gdb) uint8 { return 0 }),
			desc("quorum_type_desc", func(*gdb) string { return "" }),
			tiny("quorum_state", func(*gdb) uint8 { return 0 }),
			desc("quorum_state_desc", func(*gdb) string { return "" }),
		),
		ofCatalog(view("sys", "availability_databases_cluster", func(ex *exec, _ engine.DatabaseID) ([]gdb, error) {
			return ex.in.GroupDatabases(ex.hst, ex.s.id), nil
		},
			guid("group_id", func(r *gdb) engine.GUID { return r.GroupID }),
			guid("group_database_id", func(r *gdb) engine.GUID { return r.GroupDatabaseID }),
			sysname("database_name", func(r *gdb) string { return r.DatabaseName }),
			nullCol[gdb]("truncation_lsn", sqltypes.TLSN),
		)),
		view("sys", "availability_group_listeners", func(ex *exec, _ engine.DatabaseID) ([]lis, error) {
			return ex.in.GroupListeners(ex.hst, ex.s.id), nil
		},
			guid("group_id", func(r *lis) engine.GUID { return r.GroupID }),
			nv("listener_id", 36, func(r *lis) string { return r.ListenerID }),
			nv("dns_name", 63, func(r *lis) string { return r.DNSName }),
			integer("port", func(r *lis) int { return r.Port }),
			bit("is_conformant", func(r *lis) bool { return r.IsConformant }),
			nullCol[lis]("ip_configuration_string_from_cluster", sqltypes.TNVarChar(4000)),
			fixed[lis]("is_distributed_network_name", sqltypes.NewBit(false)).from(15),
		),
		view("sys", "dm_hadr_automatic_seeding", func(ex *exec, _ engine.DatabaseID) ([]auto, error) {
			return ex.in.AutomaticSeeding(ex.hst, ex.s.id)
		},
			datetime("start_time", func(r *auto) time.Time { return r.StartTime }),
			optTime("completion_time", func(r *auto) engine.Opt[time.Time] { return r.CompletionTime }),
			guid("ag_id", func(r *auto) engine.GUID { return r.GroupID }),
			guid("ag_db_id", func(r *auto) engine.GUID { return r.GroupDatabaseID }),
			guid("ag_remote_replica_id", func(r *auto) engine.GUID { return r.RemoteReplicaID }),
			guid("operation_id", func(r *auto) engine.GUID { return r.OperationID }),
			bit("is_source", func(r *auto) bool { return r.IsSource }),
			nv("current_state", 60, func(r *auto) string { return r.CurrentState }),
			bit("performed_seeding", func(r *auto) bool { return r.PerformedSeeding }),
			optInt("failure_state", func(r *auto) engine.Opt[int] { return r.FailureState }),
			optNV("failure_state_desc", 60, func(r *auto) engine.Opt[string] { return r.FailureStateDesc }),
			optInt("error_code", func(r *auto) engine.Opt[int] { return r.ErrorCode }),
			integer("number_of_attempts", func(r *auto) int { return r.NumberOfAttempts }),
		),
		view("sys", "dm_hadr_physical_seeding_stats", func(ex *exec, _ engine.DatabaseID) ([]phys, error) {
			return ex.in.PhysicalSeeding(ex.hst, ex.s.id)
		},
			guid("local_physical_seeding_id", func(r *phys) engine.GUID { return r.LocalID }),
			guid("remote_physical_seeding_id", func(r *phys) engine.GUID { return r.RemoteID }),
			integer("local_database_id", func(r *phys) int { return int(r.LocalDatabaseID) }),
			nv("local_database_name", 128, func(r *phys) string { return r.LocalDatabaseName }),
			nv("remote_machine_name", 128, func(r *phys) string { return r.RemoteMachineName }),
			nv("role_desc", 60, func(r *phys) string { return r.RoleDesc }),
			nv("internal_state_desc", 60, func(r *phys) string { return r.InternalStateDesc }),
			bigint("transfer_rate_bytes_per_second", func(r *phys) int64 { return r.BytesPerSecond }),
			bigint("transferred_size_bytes", func(r *phys) int64 { return r.TransferredBytes }),
			bigint("database_size_bytes", func(r *phys) int64 { return r.DatabaseBytes }),
			datetime("start_time_utc", func(r *phys) time.Time { return r.StartTime }),
			optTime("end_time_utc", func(r *phys) engine.Opt[time.Time] { return r.EndTime }),
			optTime("estimate_time_complete_utc", func(r *phys) engine.Opt[time.Time] { return r.EstimatedTime }),
			fixed[phys]("total_disk_io_wait_time_ms", sqltypes.NewBigInt(0)),
			fixed[phys]("total_network_wait_time_ms", sqltypes.NewBigInt(0)),
			optInt("failure_code", func(r *phys) engine.Opt[int] { return r.FailureCode }),
			optNV("failure_message", 2048, func(r *phys) engine.Opt[string] { return r.FailureMessage }),
			optTime("failure_time_utc", func(r *phys) engine.Opt[time.Time] { return r.FailureTime }),
			bit("is_compression_enabled", func(r *phys) bool { return r.IsCompressionEnabled }),
		),
	}
}
