package tsql

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// sqlHandle is the handle of a request's text: the session and the start of the request.
func sqlHandle(r *engine.RequestRow) []byte {
	b := make([]byte, 0, 20)
	b = append(b, 2, 0, 0, 0)
	b = binary.BigEndian.AppendUint64(b, uint64(r.SessionID))
	return binary.BigEndian.AppendUint64(b, uint64(r.StartTime.UnixNano()))
}

// serverViews are the views of the instance and its databases (FG 3.9, 3.10).
func serverViews() []viewMaker {
	type (
		db   = engine.DatabaseRow
		rec  = engine.RecoveryStatusRow
		file = engine.FileRow
		sess = engine.SessionRow
		req  = engine.RequestRow
		info = engine.SysInfoRow
		host = engine.HostInfoRow
		lst  = engine.ListenerStateRow
	)
	nobit := func(n string) col[db] { return fixed[db](n, sqltypes.NewBit(false)) }
	yes := func(n string) col[db] { return fixed[db](n, sqltypes.NewBit(true)) }
	fileCols := func(all bool) []col[file] {
		l := []col[file]{}
		if all {
			l = append(l, integer("database_id", func(r *file) int { return int(r.DatabaseID) }))
		}
		return append(l,
			integer("file_id", func(r *file) int { return r.FileID }),
			nullCol[file]("file_guid", sqltypes.TGUID),
			tiny("type", func(r *file) uint8 { return r.Type }),
			desc("type_desc", func(r *file) string { return r.TypeDesc }),
			integer("data_space_id", func(r *file) int { return 1 - int(r.Type) }),
			sysname("name", func(r *file) string { return r.Name }),
			nv("physical_name", 260, func(r *file) string { return r.PhysicalName }),
			tiny("state", func(r *file) uint8 { return r.State }),
			desc("state_desc", func(r *file) string { return r.StateDesc }),
			integer("size", func(r *file) int { return int(r.Pages) }),
			fixed[file]("max_size", sqltypes.NewInt(-1)),
			fixed[file]("growth", sqltypes.NewInt(8192)),
			fixed[file]("is_media_read_only", sqltypes.NewBit(false)),
			fixed[file]("is_read_only", sqltypes.NewBit(false)),
			fixed[file]("is_sparse", sqltypes.NewBit(false)),
			fixed[file]("is_percent_growth", sqltypes.NewBit(false)),
			fixed[file]("is_name_reserved", sqltypes.NewBit(false)),
		)
	}
	type server struct{ name string }
	type option struct {
		id                   int
		name                 string
		value, min, max, use int64
		dynamic, advanced    bool
		description          string
	}
	type diag struct{}
	return []viewMaker{
		view("sys", "databases", func(ex *exec, _ engine.DatabaseID) ([]db, error) { return ex.in.Databases(ex.hst, ex.s.id), nil },
			sysname("name", func(r *db) string { return r.Name }),
			integer("database_id", func(r *db) int { return int(r.DatabaseID) }),
			nullCol[db]("source_database_id", sqltypes.TInt),
			bin("owner_sid", 85, func(r *db) []byte { return r.OwnerSID }),
			datetime("create_date", func(r *db) time.Time { return r.CreateDate }),
			tiny("compatibility_level", func(r *db) uint8 { return uint8(r.CompatibilityLevel) }),
			nv("collation_name", 128, func(r *db) string { return r.Collation }),
			tiny("user_access", func(r *db) uint8 { return r.UserAccess }),
			desc("user_access_desc", func(r *db) string { return r.UserAccessDesc }),
			bit("is_read_only", func(r *db) bool { return r.IsReadOnly }),
			bit("is_auto_close_on", func(r *db) bool { return r.IsAutoClose }),
			nobit("is_auto_shrink_on"),
			tiny("state", func(r *db) uint8 { return r.State }),
			desc("state_desc", func(r *db) string { return r.StateDesc }),
			bit("is_in_standby", func(r *db) bool { return r.IsInStandby }),
			nobit("is_cleanly_shutdown"), nobit("is_supplemental_logging_enabled"),
			tiny("snapshot_isolation_state", func(r *db) uint8 {
				if r.SnapshotIsolation {
					return 1
				}
				return 0
			}),
			desc("snapshot_isolation_state_desc", func(r *db) string {
				if r.SnapshotIsolation {
					return "ON"
				}
				return "OFF"
			}),
			nobit("is_read_committed_snapshot_on"),
			tiny("recovery_model", func(r *db) uint8 { return r.RecoveryModel }),
			desc("recovery_model_desc", func(r *db) string { return r.RecoveryModelDesc }),
			fixed[db]("page_verify_option", sqltypes.NewTinyInt(2)),
			fixed[db]("page_verify_option_desc", sqltypes.NewText(sqltypes.TNVarChar(60), "CHECKSUM")),
			yes("is_auto_create_stats_on"), nobit("is_auto_create_stats_incremental_on"), yes("is_auto_update_stats_on"),
			nobit("is_auto_update_stats_async_on"), nobit("is_ansi_null_default_on"), nobit("is_ansi_nulls_on"), nobit("is_ansi_padding_on"),
			nobit("is_ansi_warnings_on"), nobit("is_arithabort_on"), nobit("is_concat_null_yields_null_on"), nobit("is_numeric_roundabort_on"),
			nobit("is_quoted_identifier_on"), nobit("is_recursive_triggers_on"), nobit("is_cursor_close_on_commit_on"), nobit("is_local_cursor_default"),
			nobit("is_fulltext_enabled"), nobit("is_trustworthy_on"), nobit("is_db_chaining_on"), nobit("is_parameterization_forced"),
			nobit("is_master_key_encrypted_by_server"), nobit("is_query_store_on"), nobit("is_published"), nobit("is_subscribed"),
			nobit("is_merge_published"), nobit("is_distributor"), nobit("is_sync_with_backup"),
			nullCol[db]("service_broker_guid", sqltypes.TGUID), nobit("is_broker_enabled"),
			tiny("log_reuse_wait", func(r *db) uint8 { return r.LogReuseWait }),
			desc("log_reuse_wait_desc", func(r *db) string { return r.LogReuseWaitDesc }),
			nobit("is_date_correlation_on"), nobit("is_cdc_enabled"),
			bit("is_encrypted", func(r *db) bool { return r.IsEncrypted }),
			nobit("is_honor_broker_priority_on"),
			optGUID("replica_id", func(r *db) engine.Opt[engine.GUID] { return r.ReplicaID }),
			optGUID("group_database_id", func(r *db) engine.Opt[engine.GUID] { return r.GroupDatabaseID }),
			nullCol[db]("resource_pool_id", sqltypes.TInt), nullCol[db]("default_language_lcid", sqltypes.TSmallInt),
			nullCol[db]("default_language_name", sqltypes.TNVarChar(128)), nullCol[db]("default_fulltext_language_lcid", sqltypes.TInt),
			nullCol[db]("default_fulltext_language_name", sqltypes.TNVarChar(128)), nullCol[db]("is_nested_triggers_on", sqltypes.TBit),
			nullCol[db]("is_transform_noise_words_on", sqltypes.TBit), nullCol[db]("two_digit_year_cutoff", sqltypes.TSmallInt),
			fixed[db]("containment", sqltypes.NewTinyInt(0)), fixed[db]("containment_desc", sqltypes.NewText(sqltypes.TNVarChar(60), "NONE")),
			fixed[db]("target_recovery_time_in_seconds", sqltypes.NewInt(60)), fixed[db]("delayed_durability", sqltypes.NewInt(0)),
			fixed[db]("delayed_durability_desc", sqltypes.NewText(sqltypes.TNVarChar(60), "DISABLED")),
			nobit("is_memory_optimized_elevate_to_snapshot_on"), nobit("is_federation_member"), nobit("is_remote_data_archive_enabled"), nobit("is_mixed_page_allocation_on"),
		),
		view("sys", "database_recovery_status", func(ex *exec, _ engine.DatabaseID) ([]rec, error) { return ex.in.RecoveryStatus(ex.hst, ex.s.id), nil },
			integer("database_id", func(r *rec) int { return int(r.DatabaseID) }),
			guid("database_guid", func(r *rec) engine.GUID { return r.DatabaseGUID }),
			guid("family_guid", func(r *rec) engine.GUID { return r.FamilyGUID }),
			optLSN("last_log_backup_lsn", func(r *rec) engine.Opt[engine.LSN] { return r.LastLogBackupLSN }),
			guid("recovery_fork_guid", func(r *rec) engine.GUID { return r.RecoveryForkGUID }),
			guid("first_recovery_fork_guid", func(r *rec) engine.GUID { return r.FirstForkGUID }),
			nullCol[rec]("fork_point_lsn", sqltypes.TLSN),
		),
		view("sys", "master_files", func(ex *exec, _ engine.DatabaseID) ([]file, error) { return ex.in.Files(ex.hst, ex.s.id), nil }, fileCols(true)...),
		view("sys", "database_files", func(ex *exec, id engine.DatabaseID) ([]file, error) {
			return slices.DeleteFunc(slices.Clone(ex.in.Files(ex.hst, ex.s.id)), func(f file) bool { return f.DatabaseID != id }), nil
		}, fileCols(false)...),
		view("sys", "dm_exec_sessions", func(ex *exec, _ engine.DatabaseID) ([]sess, error) { return ex.in.Sessions(ex.hst, ex.s.id) },
			small("session_id", func(r *sess) int { return int(r.ID) }),
			datetime("login_time", func(r *sess) time.Time { return r.LoginTime }),
			nv("host_name", 128, func(r *sess) string { return r.HostName }),
			nv("program_name", 128, func(r *sess) string { return r.ProgramName }),
			nullCol[sess]("host_process_id", sqltypes.TInt), nullCol[sess]("client_version", sqltypes.TInt),
			nv("client_interface_name", 32, func(r *sess) string { return r.ClientInterface }),
			bin("security_id", 85, func(r *sess) []byte { return r.SID }),
			nv("login_name", 128, func(r *sess) string { return r.Login }),
			nullCol[sess]("nt_domain", sqltypes.TNVarChar(128)), nullCol[sess]("nt_user_name", sqltypes.TNVarChar(128)),
			nv("status", 30, func(r *sess) string { return r.Status }),
			nullCol[sess]("context_info", sqltypes.TVarBinary(128)), fixed[sess]("cpu_time", sqltypes.NewInt(0)), fixed[sess]("memory_usage", sqltypes.NewInt(0)),
			fixed[sess]("total_scheduled_time", sqltypes.NewInt(0)), fixed[sess]("total_elapsed_time", sqltypes.NewInt(0)), fixed[sess]("endpoint_id", sqltypes.NewInt(4)),
			datetime("last_request_start_time", func(r *sess) time.Time { return r.LastRequestStart }),
			optTime("last_request_end_time", func(r *sess) engine.Opt[time.Time] { return r.LastRequestEnd }),
			fixed[sess]("reads", sqltypes.NewBigInt(0)), fixed[sess]("writes", sqltypes.NewBigInt(0)), fixed[sess]("logical_reads", sqltypes.NewBigInt(0)),
			bit("is_user_process", func(r *sess) bool { return r.IsUserProcess }),
			nv("original_login_name", 128, func(r *sess) string { return r.OriginalLogin }),
			small("database_id", func(r *sess) int { return int(r.DatabaseID) }),
			integer("open_transaction_count", func(r *sess) int { return r.OpenTransactions }),
		),
		view("sys", "dm_exec_connections", func(ex *exec, _ engine.DatabaseID) ([]sess, error) {
			l, err := ex.in.Sessions(ex.hst, ex.s.id)
			return slices.DeleteFunc(slices.Clone(l), func(s sess) bool { return !s.IsUserProcess }), err
		},
			integer("session_id", func(r *sess) int { return int(r.ID) }), integer("most_recent_session_id", func(r *sess) int { return int(r.ID) }),
			datetime("connect_time", func(r *sess) time.Time { return r.LoginTime }),
			fixed[sess]("net_transport", sqltypes.NewText(sqltypes.TNVarChar(40), "TCP")), fixed[sess]("protocol_type", sqltypes.NewText(sqltypes.TNVarChar(40), "TSQL")),
			fixed[sess]("protocol_version", sqltypes.NewInt(1946157060)), fixed[sess]("endpoint_id", sqltypes.NewInt(4)),
			nv("encrypt_option", 40, func(r *sess) string {
				if r.Encrypted {
					return "TRUE"
				}
				return "FALSE"
			}),
			fixed[sess]("auth_scheme", sqltypes.NewText(sqltypes.TNVarChar(40), "SQL")),
			nv("client_net_address", 48, func(r *sess) string { return r.ClientAddress }), integer("client_tcp_port", func(r *sess) int { return r.ClientPort }),
			nullCol[sess]("local_net_address", sqltypes.TNVarChar(48)), nullCol[sess]("local_tcp_port", sqltypes.TInt),
		),
		view("sys", "dm_exec_requests", func(ex *exec, _ engine.DatabaseID) ([]req, error) { return ex.in.Requests(ex.hst, ex.s.id) },
			small("session_id", func(r *req) int { return int(r.SessionID) }), fixed[req]("request_id", sqltypes.NewInt(0)),
			datetime("start_time", func(r *req) time.Time { return r.StartTime }), nv("status", 30, func(r *req) string { return r.Status }),
			nv("command", 32, func(r *req) string { return r.Command }), bin("sql_handle", 64, sqlHandle),
			fixed[req]("statement_start_offset", sqltypes.NewInt(0)), fixed[req]("statement_end_offset", sqltypes.NewInt(-1)), nullCol[req]("plan_handle", sqltypes.TVarBinary(64)),
			small("database_id", func(r *req) int { return int(r.DatabaseID) }), fixed[req]("user_id", sqltypes.NewInt(1)), nullCol[req]("connection_id", sqltypes.TGUID),
			small("blocking_session_id", func(r *req) int { return int(r.BlockingSession) }),
			optNV("wait_type", 60, func(r *req) engine.Opt[string] { return r.WaitType }),
			integer("wait_time", func(r *req) int { return int(r.WaitTime.Milliseconds()) }),
			optNV("last_wait_type", 60, func(r *req) engine.Opt[string] { return r.WaitType }),
			fixed[req]("wait_resource", sqltypes.NewText(sqltypes.TNVarChar(256), "")), fixed[req]("open_transaction_count", sqltypes.NewInt(0)),
			col[req]{name: "percent_complete", typ: sqltypes.TReal, get: func(r *req) value {
				v, _ := sqltypes.Cast(sqltypes.NewFloat(r.PercentComplete), sqltypes.TReal, 0)
				return v
			}},
			bigint("estimated_completion_time", func(r *req) int64 { return r.EstimatedCompletion.Milliseconds() }),
			fixed[req]("cpu_time", sqltypes.NewInt(0)), fixed[req]("total_elapsed_time", sqltypes.NewInt(0)),
		),
		view("sys", "dm_os_sys_info", func(ex *exec, _ engine.DatabaseID) ([]info, error) {
			r, err := ex.in.SysInfo(ex.hst, ex.s.id)
			return []info{r}, err
		},
			bigint("ms_ticks", func(r *info) int64 { return r.MillisecondTicks }), integer("cpu_count", func(r *info) int { return r.CPUCount }),
			fixed[info]("hyperthread_ratio", sqltypes.NewInt(1)), bigint("physical_memory_kb", func(r *info) int64 { return r.MemoryKB }),
			bigint("virtual_memory_kb", func(r *info) int64 { return r.MemoryKB }), bigint("committed_kb", func(r *info) int64 { return r.CommittedKB }),
			bigint("committed_target_kb", func(r *info) int64 { return r.CommittedTargetKB }), integer("max_workers_count", func(r *info) int { return r.MaxWorkers }),
			integer("scheduler_count", func(r *info) int { return r.SchedulerCount }), datetime("sqlserver_start_time", func(r *info) time.Time { return r.StartTime }),
			fixed[info]("virtual_machine_type", sqltypes.NewInt(0)), fixed[info]("virtual_machine_type_desc", sqltypes.NewText(sqltypes.TNVarChar(60), "NONE")),
			integer("container_type", func(r *info) int { return r.ContainerType }).from(15), desc("container_type_desc", func(r *info) string { return r.ContainerTypeDesc }).from(15),
		),
		view("sys", "dm_os_host_info", func(ex *exec, _ engine.DatabaseID) ([]host, error) {
			r, err := ex.in.HostInfo(ex.hst, ex.s.id)
			return []host{r}, err
		},
			nv("host_platform", 256, func(r *host) string { return r.Platform }), nv("host_distribution", 256, func(r *host) string { return r.Distribution }),
			nv("host_release", 256, func(r *host) string { return r.Release }), col[host]{name: "host_service_pack_level", typ: sqltypes.TNVarChar(256), get: func(r *host) value {
				return sqltypes.NewText(sqltypes.TNVarChar(256), r.ServicePack)
			}},
			optInt("host_sku", func(r *host) engine.Opt[int] { return r.SKU }), integer("os_language_version", func(r *host) int { return r.LanguageVersion }),
			nv("host_architecture", 256, func(r *host) string { return r.Architecture }).from(16),
		),
		view("sys", "dm_tcp_listener_states", func(ex *exec, _ engine.DatabaseID) ([]lst, error) { return ex.in.TCPListeners(ex.hst, ex.s.id) },
			integer("listener_id", func(r *lst) int { return r.ListenerID }), nv("ip_address", 48, func(r *lst) string { return r.IPAddress }),
			bit("is_ipv4", func(r *lst) bool { return r.IsIPv4 }), integer("port", func(r *lst) int { return r.Port }),
			small("type", func(r *lst) int { return int(r.Type) }), nv("type_desc", 20, func(r *lst) string { return r.TypeDesc }),
			small("state", func(r *lst) int { return int(r.State) }), nv("state_desc", 16, func(r *lst) string { return r.StateDesc }),
			datetime("start_time", func(r *lst) time.Time { return r.StartTime }),
		),
		view("sys", "servers", func(ex *exec, _ engine.DatabaseID) ([]server, error) {
			if n := ex.in.RegisteredName(); n != "" {
				return []server{{n}}, nil
			}
			return nil, nil
		},
			fixed[server]("server_id", sqltypes.NewInt(0)), sysname("name", func(r *server) string { return r.name }),
			fixed[server]("product", sqltypes.NewSysName("SQL Server")), fixed[server]("provider", sqltypes.NewSysName("MSOLEDBSQL")),
			nv("data_source", 4000, func(r *server) string { return r.name }), nullCol[server]("location", sqltypes.TNVarChar(4000)),
			nullCol[server]("provider_string", sqltypes.TNVarChar(4000)), nullCol[server]("catalog", sqltypes.TSysName),
			fixed[server]("connect_timeout", sqltypes.NewInt(0)), fixed[server]("query_timeout", sqltypes.NewInt(0)), fixed[server]("is_linked", sqltypes.NewBit(false)),
			fixed[server]("is_remote_login_enabled", sqltypes.NewBit(true)), fixed[server]("is_rpc_out_enabled", sqltypes.NewBit(true)), fixed[server]("is_data_access_enabled", sqltypes.NewBit(false)),
		),
		view("sys", "configurations", func(ex *exec, _ engine.DatabaseID) ([]option, error) {
			var l []option
			for _, o := range ex.configuration() {
				l = append(l, option{o.id, o.name, o.value, o.min, o.max, o.running, o.dynamic, o.advanced, o.name})
			}
			return l, nil
		},
			integer("configuration_id", func(r *option) int { return r.id }), nv("name", 35, func(r *option) string { return r.name }),
			variantInt("value", func(r *option) int64 { return r.value }), variantInt("minimum", func(r *option) int64 { return r.min }),
			variantInt("maximum", func(r *option) int64 { return r.max }), variantInt("value_in_use", func(r *option) int64 { return r.use }),
			nv("description", 255, func(r *option) string { return r.description }), bit("is_dynamic", func(r *option) bool { return r.dynamic }),
			bit("is_advanced", func(r *option) bool { return r.advanced }),
		),
		view("sys", "dm_os_server_diagnostics_log_configurations", func(*exec, engine.DatabaseID) ([]diag, error) { return []diag{{}}, nil },
			fixed[diag]("is_enabled", sqltypes.NewBit(true)), fixed[diag]("path", sqltypes.NewText(sqltypes.TNVarChar(260), "/var/opt/mssql/log/")),
			fixed[diag]("max_size", sqltypes.NewInt(100)), fixed[diag]("max_files", sqltypes.NewInt(10)),
		),
	}
}

func variantInt[T any](name string, f func(r *T) int64) col[T] {
	return col[T]{name: name, typ: sqltypes.TVariant, null: true, get: func(r *T) value { return sqltypes.NewInt(int32(f(r))).AsVariant() }}
}
