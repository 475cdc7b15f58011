package engine

import "time"

// Opt is a nullable column.
type Opt[T any] struct {
	V  T
	OK bool // not NULL
}

// Some is a present value.
func Some[T any](v T) Opt[T] { return Opt[T]{V: v, OK: true} }

// AvailabilityGroupRow is a row of sys.availability_groups (FG 3.2).
type AvailabilityGroupRow struct {
	GroupID                        GUID
	Name                           string
	ResourceID, ResourceGroupID    string
	FailureConditionLevel          int
	HealthCheckTimeout             int // ms
	BackupPreference               uint8
	BackupPreferenceDesc           string
	Version                        int
	BasicFeatures, DTC, DBFailover bool
	IsDistributed                  bool
	ClusterType                    uint8 // 0 WSFC, 1 NONE, 2 EXTERNAL
	ClusterTypeDesc                string
	RequiredSecondariesToCommit    int
	SequenceNumber                 int64
	IsContained                    bool
}

// AvailabilityReplicaRow is a row of sys.availability_replicas (FG 3.3).
type AvailabilityReplicaRow struct {
	ReplicaID, GroupID       GUID
	ReplicaMetadataID        Opt[int]
	ReplicaServerName        string
	OwnerSID                 []byte // nil: NULL
	EndpointURL              string
	AvailabilityMode         uint8 // 0 async, 1 sync, 4 configuration only
	AvailabilityModeDesc     string
	FailoverMode             uint8 // 0 automatic, 1 manual, 2 external
	FailoverModeDesc         string
	SessionTimeout           int
	PrimaryConnections       uint8 // 2 ALL, 3 READ_WRITE
	PrimaryConnectionsDesc   string
	SecondaryConnections     uint8 // 0 NO, 1 READ_ONLY, 2 ALL
	SecondaryConnectionsDesc string
	CreateDate, ModifyDate   Opt[time.Time]
	BackupPriority           int
	ReadOnlyRoutingURL       Opt[string]
	SeedingMode              uint8 // 0 automatic, 1 manual
	SeedingModeDesc          string
	ReadWriteRoutingURL      Opt[string]
}

// ReplicaStateRow is a row of sys.dm_hadr_availability_replica_states (FG 3.4).
type ReplicaStateRow struct {
	ReplicaID, GroupID       GUID
	IsLocal                  bool
	Role                     Opt[uint8] // 0 RESOLVING, 1 PRIMARY, 2 SECONDARY
	RoleDesc                 Opt[string]
	OperationalState         Opt[uint8]
	OperationalStateDesc     Opt[string]
	ConnectedState           Opt[uint8]
	ConnectedStateDesc       Opt[string]
	RecoveryHealth           Opt[uint8]
	RecoveryHealthDesc       Opt[string]
	SynchronizationHealth    Opt[uint8]
	SynchronizationDesc      Opt[string]
	LastConnectErrorNumber   Opt[int]
	LastConnectErrorText     Opt[string]
	LastConnectErrorTime     Opt[time.Time]
	WriteLeaseRemainingTicks Opt[int64]     // ms; math.MaxInt64 without an external lease
	ConfigurationCommitStart Opt[time.Time] // UTC; NULL: no commit in flight
}

// GroupStateRow is a row of sys.dm_hadr_availability_group_states (FG 3.5).
type GroupStateRow struct {
	GroupID                     GUID
	PrimaryReplica              Opt[string]
	PrimaryRecoveryHealth       Opt[uint8]
	PrimaryRecoveryHealthDesc   Opt[string]
	SecondaryRecoveryHealth     Opt[uint8]
	SecondaryRecoveryHealthDesc Opt[string]
	SynchronizationHealth       Opt[uint8]
	SynchronizationHealthDesc   Opt[string]
}

// DatabaseReplicaStateRow is a row of sys.dm_hadr_database_replica_states (FG 3.6).
type DatabaseReplicaStateRow struct {
	DatabaseID                                       DatabaseID
	GroupID, ReplicaID, GroupDatabaseID              GUID
	IsLocal                                          bool
	IsPrimaryReplica                                 Opt[bool]
	SynchronizationState                             uint8
	SynchronizationStateDesc                         string
	IsCommitParticipant                              Opt[bool]
	SynchronizationHealth                            uint8
	SynchronizationHealthDesc                        string
	DatabaseState                                    Opt[uint8]
	DatabaseStateDesc                                Opt[string]
	IsSuspended                                      bool
	SuspendReason                                    Opt[uint8]
	SuspendReasonDesc                                Opt[string]
	RecoveryLSN, TruncationLSN                       Opt[LSN]
	LastSentLSN, LastReceivedLSN, LastHardenedLSN    Opt[LSN]
	LastRedoneLSN, EndOfLogLSN, LastCommitLSN        Opt[LSN]
	LastSentTime, LastReceivedTime, LastHardenedTime Opt[time.Time]
	LastRedoneTime, LastCommitTime                   Opt[time.Time]
	LogSendQueueSize, LogSendRate                    Opt[int64] // KB, KB/s
	RedoQueueSize, RedoRate                          Opt[int64] // KB, KB/s
	FilestreamSendRate, LowWaterMarkForGhosts        Opt[int64]
	SecondaryLagSeconds                              Opt[int64]
	QuorumCommitLSN                                  Opt[LSN]
	QuorumCommitTime                                 Opt[time.Time]
}

// DatabaseClusterStateRow is a row of sys.dm_hadr_database_replica_cluster_states (FG 3.7).
type DatabaseClusterStateRow struct {
	ReplicaID, GroupDatabaseID GUID
	DatabaseName               string
	IsFailoverReady            bool
	IsPendingSecondarySuspend  bool
	IsDatabaseJoined           bool
	RecoveryLSN, TruncationLSN Opt[LSN]
}

// ReplicaClusterStateRow is a row of sys.dm_hadr_availability_replica_cluster_states (FG 3.7).
type ReplicaClusterStateRow struct {
	ReplicaID         GUID
	ReplicaServerName string
	GroupID           GUID
	JoinState         uint8 // 0 NOT_JOINED, 1 JOINED_STANDALONE_INSTANCE
	JoinStateDesc     string
}

// GroupDatabaseRow is a row of sys.availability_databases_cluster (FG 3.7).
type GroupDatabaseRow struct {
	GroupID, GroupDatabaseID GUID
	DatabaseName             string
}

// ListenerRow is a row of sys.availability_group_listeners.
type ListenerRow struct {
	GroupID      GUID
	ListenerID   string
	DNSName      string
	Port         int
	IsConformant bool
}

// AutomaticSeedingRow is a row of sys.dm_hadr_automatic_seeding (FG 3.8).
type AutomaticSeedingRow struct {
	StartTime                    time.Time
	CompletionTime               Opt[time.Time]
	GroupID, GroupDatabaseID     GUID
	RemoteReplicaID, OperationID GUID
	IsSource                     bool
	CurrentState                 string
	PerformedSeeding             bool
	FailureState                 Opt[int]
	FailureStateDesc             Opt[string]
	ErrorCode                    Opt[int]
	NumberOfAttempts             int
}

// PhysicalSeedingRow is a row of sys.dm_hadr_physical_seeding_stats (FG 3.8), only while running.
type PhysicalSeedingRow struct {
	LocalID, RemoteID      GUID
	LocalDatabaseID        DatabaseID
	LocalDatabaseName      string
	RemoteMachineName      string
	RoleDesc               string // Source, Destination
	InternalStateDesc      string
	BytesPerSecond         int64
	TransferredBytes       int64
	DatabaseBytes          int64
	StartTime              time.Time
	EndTime, EstimatedTime Opt[time.Time]
	FailureCode            Opt[int]
	FailureMessage         Opt[string]
	FailureTime            Opt[time.Time]
	IsCompressionEnabled   bool
}
