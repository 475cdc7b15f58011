package ag

import "time"

// Snapshot is everything that one pass saw. It is immutable, ordered (replicas by
// ordinal, databases by name) and free of secrets.
type Snapshot struct {
	// ObservedAt is the observer's clock when the snapshot was complete, whole seconds are enough.
	ObservedAt time.Time `json:"observedAt"`
	Replicas   []Replica `json:"replicas"`
	// Nodes that run, or ran, a replica or a recorded holder, by name.
	Nodes []Node `json:"nodes,omitempty"`
}

// Node is the API server's view of a node; it outlives the pods that ran there.
type Node struct {
	Name         string `json:"name"`
	Ready        bool   `json:"ready,omitempty"`
	BootID       string `json:"bootID,omitempty"`
	OutOfService bool   `json:"outOfService,omitempty"`
}

// Replica as three views that are never merged early: Pod (the kubelet says),
// Local (the replica says about itself), Remote (the primary says about it),
// and what its instance manager says.
type Replica struct {
	Name     string  `json:"name"`
	Ordinal  int     `json:"ordinal"`
	Mode     Mode    `json:"mode"`
	Auto     bool    `json:"auto"` // failoverMode Automatic
	Fenced   bool    `json:"fenced,omitempty"`
	Readable bool    `json:"readable,omitempty"`
	Pod      Pod     `json:"pod"`
	Manager  Manager `json:"manager"`
	Local    Local   `json:"local"`
	// Remote is nil when no primary was asked or it knows no such replica.
	Remote *Remote `json:"remote,omitempty"`
}

// Pod is the kubelet's and the API server's view.
type Pod struct {
	Exists       bool   `json:"exists"`
	UID          string `json:"uid,omitempty"`
	IP           string `json:"ip,omitempty"`
	Port         int32  `json:"port,omitempty"` // of the TDS listener; 0 is the default one
	Node         string `json:"node,omitempty"`
	NodeReady    bool   `json:"nodeReady,omitempty"`
	BootID       string `json:"bootID,omitempty"`       // of the node, status.nodeInfo.bootID
	OutOfService bool   `json:"outOfService,omitempty"` // the node carries the out-of-service taint
	Phase        string `json:"phase,omitempty"`
	Ready        bool   `json:"ready,omitempty"`
	// ReadySince is when the kubelet last saw it become ready, by its node's clock, in whole seconds; zero when not ready.
	ReadySince  time.Time `json:"readySince,omitempty"`
	Terminating bool      `json:"terminating,omitempty"`
	RoleLabel   Role      `json:"roleLabel,omitempty"` // PRIMARY, SECONDARY or empty, from the label
	PVCUID      string    `json:"pvcUID,omitempty"`
	// Container is the SQL Server container of this pod.
	Container Container `json:"container"`
}

// Container is one container run as the kubelet reports it.
type Container struct {
	ID        string    `json:"id,omitempty"`
	Running   bool      `json:"running,omitempty"`
	StartedAt time.Time `json:"startedAt,omitempty"`
	Restarts  int32     `json:"restarts,omitempty"`
	// LastTerminatedID and Reason of the previous run (status.lastState), or of this one when it ended (status.state).
	TerminatedID     string `json:"terminatedID,omitempty"`
	TerminatedReason string `json:"terminatedReason,omitempty"`
	ExitCode         int32  `json:"exitCode,omitempty"`
	WaitingReason    string `json:"waitingReason,omitempty"`
	WaitingMessage   string `json:"waitingMessage,omitempty"`
}

// Manager is what the replica's instance manager answers over mTLS.
type Manager struct {
	Reach Reach  `json:"reach,omitempty"`
	Error string `json:"error,omitempty"`
	// Nonce names this run of the manager; with the pod UID it names a holder.
	Nonce      string        `json:"nonce,omitempty"`
	PodUID     string        `json:"podUID,omitempty"`
	StartedAgo time.Duration `json:"startedAgo,omitempty"`
	// StartedAt is its start by its own node's clock: compared only with the kubelet's startedAt of the same container.
	StartedAt time.Time `json:"startedAt,omitempty"`
	// HasVolumeLock: this run holds the exclusive lock on the data volume.
	HasVolumeLock bool `json:"hasVolumeLock,omitempty"`
	// HighestEpoch and HighestRule that it has ever seen, persisted (R4).
	HighestEpoch int64 `json:"highestEpoch,omitempty"`
	HighestRule  int64 `json:"highestRule,omitempty"`
	// HighestSwaps is the highest count of swaps that it has ever seen, persisted as well (R4).
	HighestSwaps int64 `json:"highestSwaps,omitempty"`
	// GrantedAgo is how long ago it first saw itself holder of the present epoch; zero when it does not hold.
	GrantedAgo time.Duration `json:"grantedAgo,omitempty"`
	// LastFailsafeAgo is how long ago it last answered a failsafe question of another holder; negative when never in this run.
	LastFailsafeAgo time.Duration `json:"lastFailsafeAgo,omitempty"`
	// SealedEpoch: it refuses failsafe answers to holders below this epoch.
	SealedEpoch int64 `json:"sealedEpoch,omitempty"`
	// Server as the supervisor sees the process: starting, running, stopping, stopped, fenced.
	Server string `json:"server,omitempty"`
	// Diagnostics of the newest sp_server_diagnostics, if any.
	Diagnostics *Diagnostics `json:"diagnostics,omitempty"`
}

// Diagnostics is one answer of sp_server_diagnostics (FG 6). State: 1 clean, 2 warning, 3 error.
type Diagnostics struct {
	Ago             time.Duration `json:"ago"`
	System          int           `json:"system"`
	Resource        int           `json:"resource"`
	QueryProcessing int           `json:"queryProcessing"`
	Failures        int           `json:"failures"` // in a row
	Error           string        `json:"error,omitempty"`
}

// Local is what the replica says about itself.
type Local struct {
	Reach Reach  `json:"reach"`
	Err   *Error `json:"err,omitempty"`
	// ServerName is @@SERVERNAME, Version the product version.
	ServerName string `json:"serverName,omitempty"`
	Version    string `json:"version,omitempty"`
	// Role: RoleNone when the server has no replica of the group.
	Role             Role   `json:"role,omitempty"`
	GroupID          string `json:"groupID,omitempty"`
	ReplicaID        string `json:"replicaID,omitempty"`
	OperationalState string `json:"operationalState,omitempty"`
	// PrimaryName is what dm_hadr_availability_group_states says: for people, never proof (FG 3.5).
	PrimaryName string `json:"primaryName,omitempty"`
	// Sequence is availability_groups.sequence_number; 0 when unknown.
	Sequence int64 `json:"sequence,omitempty"`
	// RequiredToCommit is REQUIRED_SYNCHRONIZED_SECONDARIES_TO_COMMIT in this copy of the configuration.
	RequiredToCommit int32 `json:"requiredToCommit"`
	// Configured lists the replicas of this copy of the configuration, by server name.
	Configured []ConfiguredReplica `json:"configured,omitempty"`
	// WriteLease: remaining validity; LeaseEnabled false when the group has no external lease (47116).
	LeaseEnabled   bool          `json:"leaseEnabled,omitempty"`
	LeaseRemaining time.Duration `json:"leaseRemaining,omitempty"`
	// CommitPendingFor is the age of a configuration commit in flight; 0 when none.
	CommitPendingFor time.Duration `json:"commitPendingFor,omitempty"`
	Endpoint         EndpointState `json:"endpoint,omitempty"`
	// EndpointName and EndpointCertificate are its name and the certificate that it offers.
	EndpointName        string     `json:"endpointName,omitempty"`
	EndpointCertificate string     `json:"endpointCertificate,omitempty"`
	EndpointCertExpiry  time.Time  `json:"endpointCertExpiry,omitempty"`
	Databases           []Database `json:"databases,omitempty"`
	// UserDatabases of the server, in the group or not.
	UserDatabases []UserDatabase `json:"userDatabases,omitempty"`
	// HADR tells whether Always On is enabled; Express whether the edition can only be a witness.
	HADR    bool `json:"hadr,omitempty"`
	Express bool `json:"express,omitempty"`
	// External: the group's cluster type is EXTERNAL.
	External bool `json:"external,omitempty"`
}

// ConfiguredReplica is one row of sys.availability_replicas.
type ConfiguredReplica struct {
	Server   string `json:"server"`
	Mode     Mode   `json:"mode"`
	URL      string `json:"url,omitempty"`
	Readable bool   `json:"readable,omitempty"`
}

// UserDatabase is one row of sys.databases (FG 3.9).
type UserDatabase struct {
	Name  string        `json:"name"`
	State DatabaseState `json:"state,omitempty"`
	// Full: the recovery model is FULL.
	Full bool `json:"full,omitempty"`
	// LogChain: a full backup has begun a chain of log backups (last_log_backup_lsn is set).
	LogChain bool `json:"logChain,omitempty"`
	// Grouped: it belongs to an availability group on this server.
	Grouped bool `json:"grouped,omitempty"`
}

// Remote is what the present primary says about the replica.
type Remote struct {
	Connected        bool   `json:"connected"`
	Role             Role   `json:"role,omitempty"`
	Health           string `json:"health,omitempty"` // HEALTHY, PARTIALLY_HEALTHY, NOT_HEALTHY
	LastConnectError int32  `json:"lastConnectError,omitempty"`
	LastConnectText  string `json:"lastConnectText,omitempty"`
	Seeding          bool   `json:"seeding,omitempty"`
	// SeedingFailed names the databases whose newest seeding to this replica has failed for good.
	SeedingFailed []string   `json:"seedingFailed,omitempty"`
	Databases     []Database `json:"databases,omitempty"`
}

// Database is one copy.
type Database struct {
	Name          string        `json:"name"`
	State         DatabaseState `json:"state,omitempty"`
	Sync          SyncState     `json:"sync,omitempty"`
	Joined        bool          `json:"joined,omitempty"`
	FailoverReady bool          `json:"failoverReady,omitempty"`
	Suspended     bool          `json:"suspended,omitempty"`
	SuspendReason string        `json:"suspendReason,omitempty"`
	// HardenedLSN is numeric(25,0) as decimal text; compare with CompareLSN.
	HardenedLSN  string `json:"hardenedLSN,omitempty"`
	RecoveryFork string `json:"recoveryFork,omitempty"`
	SendQueueKB  int64  `json:"sendQueueKB,omitempty"`
	RedoQueueKB  int64  `json:"redoQueueKB,omitempty"`
	LagSeconds   int64  `json:"lagSeconds,omitempty"`
	// LagUnknown: the server did not say how far the copy is behind; LagSeconds is then no number.
	LagUnknown bool `json:"lagUnknown,omitempty"`
}

// WorstLag is how far a replica is behind by the primary's words about its copies: the
// worst of them, unknown when one of them is or when there is none. A bound on the loss
// is compared with it, and people are shown it.
func WorstLag(copies []Database) (seconds int64, known bool) {
	for _, d := range copies {
		if d.LagUnknown {
			return 0, false
		}
		seconds = max(seconds, d.LagSeconds)
	}
	return seconds, len(copies) > 0
}

// Primaries lists the replicas that say PRIMARY.
func (s Snapshot) Primaries() []string {
	var names []string
	for _, r := range s.Replicas {
		if r.Local.Role == RolePrimary {
			names = append(names, r.Name)
		}
	}
	return names
}

// HighestSwaps is the highest count of swaps that any manager has seen.
func (s Snapshot) HighestSwaps() int64 {
	var n int64
	for i := range s.Replicas {
		if m := s.Replicas[i].Manager; m.Reach == ReachOK {
			n = max(n, m.HighestSwaps)
		}
	}
	return n
}

// Find returns the replica of that name, or nil.
func (s *Snapshot) Find(name string) *Replica {
	for i := range s.Replicas {
		if s.Replicas[i].Name == name {
			return &s.Replicas[i]
		}
	}
	return nil
}

// CompareLSN orders two LSNs given as decimal text; an empty one is lowest.
func CompareLSN(a, b string) int {
	trim := func(s string) string {
		for len(s) > 0 && s[0] == '0' {
			s = s[1:]
		}
		return s
	}
	a, b = trim(a), trim(b)
	switch {
	case len(a) != len(b):
		if len(a) < len(b) {
			return -1
		}
		return 1
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
