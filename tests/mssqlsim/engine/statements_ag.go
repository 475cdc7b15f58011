package engine

import "time"

// ClusterType as sys.availability_groups.cluster_type.
type ClusterType uint8

// Cluster types (FG 0.3 rule 12).
const (
	ClusterWSFC ClusterType = iota
	ClusterNone
	ClusterExternal
)

// AvailabilityMode as sys.availability_replicas.availability_mode.
type AvailabilityMode uint8

// Availability modes (FG 3.3).
const (
	AsynchronousCommit AvailabilityMode = 0
	SynchronousCommit  AvailabilityMode = 1
	ConfigurationOnly  AvailabilityMode = 4
)

// FailoverMode as sys.availability_replicas.failover_mode.
type FailoverMode uint8

// Failover modes (FG 3.3, 11 no. 11).
const (
	FailoverAutomatic FailoverMode = iota
	FailoverManual
	FailoverExternal
)

// GroupOptions are the WITH and SET options of an availability group (FG 1.1). A nil field was
// not given.
type GroupOptions struct {
	ClusterType         *ClusterType
	DBFailover          *bool
	DTCPerDB            *bool
	RequiredSecondaries *int
	WriteLeaseSeconds   *int64
	BackupPreference    *uint8 // 0 PRIMARY, 1 SECONDARY_ONLY, 2 SECONDARY, 3 NONE
	FailureLevel        *int
	HealthCheckTimeout  *int64 // ms
	Basic               bool
	Contained           bool
	ReuseSystem         bool
	Distributed         bool
}

// ReplicaSpec is one REPLICA ON clause or the option list of ADD and MODIFY REPLICA (FG 1.2). A
// nil field was not given.
type ReplicaSpec struct {
	Server               string
	EndpointURL          *string
	Availability         *AvailabilityMode
	Failover             *FailoverMode
	SeedingAutomatic     *bool
	BackupPriority       *int
	SessionTimeout       *int   // seconds
	SecondaryConnections *uint8 // 0 NO, 1 READ_ONLY, 2 ALL
	PrimaryConnections   *uint8 // 2 ALL, 3 READ_WRITE
	ReadOnlyRoutingURL   *string
	ReadWriteRoutingURL  *string
	ReadOnlyRoutingList  [][]string // outer in priority order, inner load-balanced; non-nil empty: NONE
}

// ListenerSpec is a LISTENER clause; under EXTERNAL it is metadata only (FG 1.3).
type ListenerSpec struct {
	DNSName   string
	Addresses []string // "ip" or "ip/mask"
	Port      int
}

// CreateGroup is CREATE AVAILABILITY GROUP.
type CreateGroup struct {
	Name      string
	Options   GroupOptions
	Databases []string
	Replicas  []ReplicaSpec
	Listener  *ListenerSpec
}

// CreateAvailabilityGroup creates a group with the local instance as its primary (FG 1.1).
func (in *Instance) CreateAvailabilityGroup(now time.Time, s SessionID, c CreateGroup) (WaitID, error) {
	return 0, unfinished("CREATE AVAILABILITY GROUP")
}

// DropAvailabilityGroup removes the local metadata of a group (FG 1.7).
func (in *Instance) DropAvailabilityGroup(now time.Time, s SessionID, name string) (WaitID, error) {
	return 0, unfinished("DROP AVAILABILITY GROUP")
}

// JoinAvailabilityGroup is JOIN; clusterType nil means that the option was not given (FG 1.5).
func (in *Instance) JoinAvailabilityGroup(now time.Time, s SessionID, name string, clusterType *ClusterType) (WaitID, error) {
	return 0, unfinished("JOIN")
}

// SetGroupOptions is ALTER AVAILABILITY GROUP … SET of anything but ROLE and WRITE_LEASE_VALIDITY.
func (in *Instance) SetGroupOptions(now time.Time, s SessionID, name string, o GroupOptions) (WaitID, error) {
	return 0, unfinished("ALTER AVAILABILITY GROUP SET")
}

// RenewWriteLease is SET (WRITE_LEASE_VALIDITY = seconds): 47116–47119 (FG 5.5).
func (in *Instance) RenewWriteLease(now time.Time, s SessionID, name string, seconds int64) error {
	return unfinished("SET (WRITE_LEASE_VALIDITY)")
}

// SetRoleSecondary is SET (ROLE = SECONDARY): returns before the role has changed; 41104 (FG 4.7).
func (in *Instance) SetRoleSecondary(now time.Time, s SessionID, name string) (WaitID, error) {
	return 0, unfinished("SET (ROLE)")
}

// Failover is FAILOVER; force is FORCE_FAILOVER_ALLOW_DATA_LOSS (FG 1.3, 1.4).
func (in *Instance) Failover(now time.Time, s SessionID, name string, force bool) (WaitID, error) {
	return 0, unfinished("FAILOVER")
}

// Offline is OFFLINE: the local replica goes to RESOLVING.
func (in *Instance) Offline(now time.Time, s SessionID, name string) (WaitID, error) {
	return 0, unfinished("OFFLINE")
}

// GrantCreateAnyDatabase is GRANT or DENY CREATE ANY DATABASE (FG 1.6).
func (in *Instance) GrantCreateAnyDatabase(now time.Time, s SessionID, name string, grant bool) error {
	return unfinished("GRANT CREATE ANY DATABASE")
}

// AddDatabase is ADD DATABASE (FG 4.10).
func (in *Instance) AddDatabase(now time.Time, s SessionID, name string, databases []string) (WaitID, error) {
	return 0, unfinished("ADD DATABASE")
}

// RemoveDatabase is REMOVE DATABASE.
func (in *Instance) RemoveDatabase(now time.Time, s SessionID, name string, databases []string) (WaitID, error) {
	return 0, unfinished("REMOVE DATABASE")
}

// AddReplica is ADD REPLICA.
func (in *Instance) AddReplica(now time.Time, s SessionID, name string, r []ReplicaSpec) (WaitID, error) {
	return 0, unfinished("ADD REPLICA")
}

// ModifyReplica is MODIFY REPLICA with the options that r gives.
func (in *Instance) ModifyReplica(now time.Time, s SessionID, name string, r ReplicaSpec) (WaitID, error) {
	return 0, unfinished("MODIFY REPLICA")
}

// RemoveReplica is REMOVE REPLICA.
func (in *Instance) RemoveReplica(now time.Time, s SessionID, name string, servers []string) (WaitID, error) {
	return 0, unfinished("REMOVE REPLICA")
}

// ListenerVerb is what ALTER AVAILABILITY GROUP does with a listener.
type ListenerVerb uint8

// Listener verbs.
const (
	ListenerAdd ListenerVerb = iota
	ListenerModify
	ListenerRestart
	ListenerRemove
)

// AlterListener is ADD, MODIFY, RESTART and REMOVE LISTENER.
func (in *Instance) AlterListener(now time.Time, s SessionID, name string, verb ListenerVerb, l ListenerSpec) (WaitID, error) {
	return 0, unfinished("LISTENER")
}

// HADRAction is what ALTER DATABASE … SET HADR does.
type HADRAction uint8

// Actions of ALTER DATABASE … SET HADR.
const (
	HADRSuspend HADRAction = iota
	HADRResume
	HADROff
	HADRJoin // SET HADR AVAILABILITY GROUP = group
)

// SetDatabaseHADR is ALTER DATABASE … SET HADR (FG 4.8).
func (in *Instance) SetDatabaseHADR(now time.Time, s SessionID, database string, a HADRAction, group string) (WaitID, error) {
	return 0, unfinished("SET HADR")
}
