package engine

import "time"

// The view accessors. Each returns the rows that the session's login may see now, in a stable
// order (FG 3.1 for what is seen where).

// AvailabilityGroups is sys.availability_groups.
func (in *Instance) AvailabilityGroups(now time.Time, s SessionID) []AvailabilityGroupRow { return nil }

// AvailabilityReplicas is sys.availability_replicas.
func (in *Instance) AvailabilityReplicas(now time.Time, s SessionID) []AvailabilityReplicaRow {
	return nil
}

// ReplicaStates is sys.dm_hadr_availability_replica_states.
func (in *Instance) ReplicaStates(now time.Time, s SessionID) ([]ReplicaStateRow, error) {
	return nil, nil
}

// GroupStates is sys.dm_hadr_availability_group_states.
func (in *Instance) GroupStates(now time.Time, s SessionID) ([]GroupStateRow, error) { return nil, nil }

// DatabaseReplicaStates is sys.dm_hadr_database_replica_states.
func (in *Instance) DatabaseReplicaStates(now time.Time, s SessionID) ([]DatabaseReplicaStateRow, error) {
	return nil, nil
}

// DatabaseClusterStates is sys.dm_hadr_database_replica_cluster_states.
func (in *Instance) DatabaseClusterStates(now time.Time, s SessionID) ([]DatabaseClusterStateRow, error) {
	return nil, nil
}

// ReplicaClusterStates is sys.dm_hadr_availability_replica_cluster_states.
func (in *Instance) ReplicaClusterStates(now time.Time, s SessionID) ([]ReplicaClusterStateRow, error) {
	return nil, nil
}

// GroupDatabases is sys.availability_databases_cluster.
func (in *Instance) GroupDatabases(now time.Time, s SessionID) []GroupDatabaseRow { return nil }

// GroupListeners is sys.availability_group_listeners.
func (in *Instance) GroupListeners(now time.Time, s SessionID) []ListenerRow { return nil }

// AutomaticSeeding is sys.dm_hadr_automatic_seeding.
func (in *Instance) AutomaticSeeding(now time.Time, s SessionID) ([]AutomaticSeedingRow, error) {
	return nil, nil
}

// PhysicalSeeding is sys.dm_hadr_physical_seeding_stats.
func (in *Instance) PhysicalSeeding(now time.Time, s SessionID) ([]PhysicalSeedingRow, error) {
	return nil, nil
}

// IsPrimaryReplica is sys.fn_hadr_is_primary_replica; not OK outside a group.
func (in *Instance) IsPrimaryReplica(database string) Opt[bool] { return Opt[bool]{} }

// IsPreferredBackupReplica is sys.fn_hadr_backup_is_preferred_replica.
func (in *Instance) IsPreferredBackupReplica(database string) bool { return true }

// Databases is sys.databases.
func (in *Instance) Databases(now time.Time, s SessionID) []DatabaseRow { return nil }

// RecoveryStatus is sys.database_recovery_status.
func (in *Instance) RecoveryStatus(now time.Time, s SessionID) []RecoveryStatusRow { return nil }

// Files is sys.master_files.
func (in *Instance) Files(now time.Time, s SessionID) []FileRow { return nil }

// ServerPrincipals is sys.server_principals.
func (in *Instance) ServerPrincipals(now time.Time, s SessionID) []PrincipalRow { return nil }

// ServerPermissions is sys.server_permissions.
func (in *Instance) ServerPermissions(now time.Time, s SessionID) []PermissionRow { return nil }

// ServerRoleMembers is sys.server_role_members.
func (in *Instance) ServerRoleMembers(now time.Time, s SessionID) []RoleMemberRow { return nil }

// DatabasePrincipals is sys.database_principals of a database.
func (in *Instance) DatabasePrincipals(now time.Time, s SessionID, db DatabaseID) []PrincipalRow {
	return nil
}

// DatabasePermissions is sys.database_permissions of a database.
func (in *Instance) DatabasePermissions(now time.Time, s SessionID, db DatabaseID) []PermissionRow {
	return nil
}

// DatabaseRoleMembers is sys.database_role_members of a database.
func (in *Instance) DatabaseRoleMembers(now time.Time, s SessionID, db DatabaseID) []RoleMemberRow {
	return nil
}

// Endpoints is sys.endpoints, the TSQL ones included.
func (in *Instance) Endpoints(now time.Time, s SessionID) []EndpointRow { return nil }

// Certificates is sys.certificates.
func (in *Instance) Certificates(now time.Time, s SessionID) []CertificateRow { return nil }

// SymmetricKeys is sys.symmetric_keys.
func (in *Instance) SymmetricKeys(now time.Time, s SessionID) []SymmetricKeyRow { return nil }

// Sessions is sys.dm_exec_sessions and sys.dm_exec_connections.
func (in *Instance) Sessions(now time.Time, s SessionID) ([]SessionRow, error) { return nil, nil }

// Requests is sys.dm_exec_requests.
func (in *Instance) Requests(now time.Time, s SessionID) ([]RequestRow, error) { return nil, nil }

// ReadErrorLog is sp_readerrorlog: log 0 is the current one; both filters must match, "" matches all.
func (in *Instance) ReadErrorLog(now time.Time, s SessionID, log int, filter1, filter2 string) ([]ErrorLogRow, error) {
	return nil, nil
}

// SysInfo is sys.dm_os_sys_info.
func (in *Instance) SysInfo(now time.Time, s SessionID) (SysInfoRow, error) { return SysInfoRow{}, nil }

// HostInfo is sys.dm_os_host_info.
func (in *Instance) HostInfo(now time.Time, s SessionID) (HostInfoRow, error) {
	return HostInfoRow{}, nil
}

// TCPListeners is sys.dm_tcp_listener_states.
func (in *Instance) TCPListeners(now time.Time, s SessionID) ([]ListenerStateRow, error) {
	return nil, nil
}

// BackupSets is msdb.dbo.backupset with backupmediafamily.
func (in *Instance) BackupSets(now time.Time, s SessionID) []BackupSetRow { return nil }

// Diagnostics is one result of sp_server_diagnostics. The wait of about 5 s before it is the
// executor's (Host.Sleep).
func (in *Instance) Diagnostics(now time.Time, s SessionID) ([]DiagnosticsRow, error) {
	return nil, nil
}

// Property is a value of SERVERPROPERTY: string or int; nil for an unknown name.
func (in *Instance) Property(name string) any { return nil }

// ServerName is @@SERVERNAME.
func (in *Instance) ServerName() string { return in.cfg.ServerName }

// WallClock is the server's own idea of the time (SYSUTCDATETIME), which a fault may move away
// from the host's.
func (in *Instance) WallClock(now time.Time) time.Time { return now.UTC() }

// Fault is EXEC mssqlsim.fault @kind = kind with named arguments; it needs sysadmin.
func (in *Instance) Fault(now time.Time, s SessionID, kind string, args map[string]string) error {
	return unfinished("fault")
}

// LinkUp tells that a link exists: dialled by this instance (its Dial effect) or accepted by its
// listener. peer is the certificate that the other end proved to own, in DER.
func (in *Instance) LinkUp(now time.Time, l LinkID, peer []byte) {}

// LinkFailed answers a Dial that did not succeed. number is the operating system's error number.
func (in *Instance) LinkFailed(now time.Time, l LinkID, number int, text string) {}

// LinkDown tells that a link ended (reset by the other side or the network).
func (in *Instance) LinkDown(now time.Time, l LinkID, text string) {}

// Receive delivers a message from the other end of a link.
func (in *Instance) Receive(now time.Time, l LinkID, m Message) {}

// EndpointIdentity is the certificate and key that the mirroring endpoint offers; ok is false while
// there is no started endpoint with a usable certificate.
func (in *Instance) EndpointIdentity() (KeyPair, bool) { return KeyPair{}, false }
