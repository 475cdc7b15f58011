package engine

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

// ListenerVerb is what ALTER AVAILABILITY GROUP does with a listener.
type ListenerVerb uint8

// Listener verbs.
const (
	ListenerAdd ListenerVerb = iota
	ListenerModify
	ListenerRestart
	ListenerRemove
)

// HADRAction is what ALTER DATABASE … SET HADR does.
type HADRAction uint8

// Actions of ALTER DATABASE … SET HADR.
const (
	HADRSuspend HADRAction = iota
	HADRResume
	HADROff
	HADRJoin // SET HADR AVAILABILITY GROUP = group
)
