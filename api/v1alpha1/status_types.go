package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Phase in one word. The reason beside it is one sentence.
type Phase string

const (
	PhasePending       Phase = "Pending"       // waiting for what the user or the cluster must provide
	PhaseStarting      Phase = "Starting"      // servers are starting for the first time
	PhaseBootstrapping Phase = "Bootstrapping" // the group is being made
	PhaseRunning       Phase = "Running"       // an instance is up
	PhaseHealthy       Phase = "Healthy"       // writable, every replica in step
	PhaseDegraded      Phase = "Degraded"      // writable, something is missing
	PhaseSwitchingOver Phase = "SwitchingOver" // a planned move is under way
	PhaseFailingOver   Phase = "FailingOver"   // not writable, an automatic move is under way
	PhaseBlocked       Phase = "Blocked"       // not writable, and we may not act; the reason says what is missing
	PhaseFailed        Phase = "Failed"        // cannot be brought up without a change by the user
	PhasePaused        Phase = "Paused"
)

// ReplicaStatus is one replica as last seen. Values that were not seen are empty, never old.
type ReplicaStatus struct {
	// Name of the replica, its pod and its server.
	Name string `json:"name"`
	// Role that the replica itself reports: PRIMARY, SECONDARY, RESOLVING or empty when it was not reached.
	Role string `json:"role,omitempty"`
	// AvailabilityMode from the spec.
	AvailabilityMode AvailabilityMode `json:"availabilityMode,omitempty"`
	// SynchronizationState, the worst over its databases: SYNCHRONIZED, SYNCHRONIZING, NOT SYNCHRONIZING, …
	SynchronizationState string `json:"synchronizationState,omitempty"`
	// Connected to the primary, as the primary sees it.
	Connected bool `json:"connected,omitempty"`
	// Reachable tells whether the controller could ask the server itself.
	Reachable bool `json:"reachable,omitempty"`
	// State is the word for people: online, synchronized, synchronizing, disconnected, promoting, lost, starting, fenced, …
	State string `json:"state,omitempty"`
	// SequenceNumber of the configuration that the replica holds.
	SequenceNumber int64 `json:"sequenceNumber,omitempty"`
	// FailoverReady: it would be promoted now without loss.
	FailoverReady bool `json:"failoverReady,omitempty"`
	// FailoverRefusal names the rule that refuses it, with a sentence, when it is not ready: "R12: asynchronous".
	FailoverRefusal string `json:"failoverRefusal,omitempty"`
	// ForceRefusal says why it could not be promoted even by accepting data loss: "R12: database crm is INITIALIZING".
	ForceRefusal string `json:"forceRefusal,omitempty"`
	// Ready as the kubelet says.
	Ready bool `json:"ready,omitempty"`
	// Node on which the pod runs.
	Node string `json:"node,omitempty"`
	// Fenced by a person.
	Fenced bool `json:"fenced,omitempty"`
	// Fence tells who fenced it, when and why.
	Fence *FenceStatus `json:"fence,omitempty"`
	// Outdated: its pod was made from older settings, or before the restart that was
	// ordered, and is replaced when its turn comes.
	Outdated bool `json:"outdated,omitempty"`
	// Volume is its data volume.
	Volume *VolumeStatus `json:"volume,omitempty"`
	// Databases that are not in step, or all of them when there are few (at most 20).
	// +listType=map
	// +listMapKey=name
	Databases []ReplicaDatabaseStatus `json:"databases,omitempty"`
	// Message explains what is wrong.
	Message string `json:"message,omitempty"`
}

// FenceStatus is the order to keep a replica out, as it stands in the annotation.
type FenceStatus struct {
	By     string       `json:"by,omitempty"`
	Reason string       `json:"reason,omitempty"`
	Since  *metav1.Time `json:"since,omitempty"`
}

// VolumeStatus is the data volume of one replica. It is growing while Requested is above Capacity.
type VolumeStatus struct {
	// Requested by the claim, and Capacity that the server's file system has, as quantities: "20Gi".
	Requested string `json:"requested,omitempty"`
	Capacity  string `json:"capacity,omitempty"`
	// Message tells why it does not grow, or for what it waits.
	Message string `json:"message,omitempty"`
}

// ReplicaDatabaseStatus is one database on one replica.
type ReplicaDatabaseStatus struct {
	Name                 string `json:"name"`
	State                string `json:"state,omitempty"`
	SynchronizationState string `json:"synchronizationState,omitempty"`
	Suspended            bool   `json:"suspended,omitempty"`
	Message              string `json:"message,omitempty"`
}

// CommitRuleStatus is a copy, for people, of the rule in the Lease.
type CommitRuleStatus struct {
	// K is REQUIRED_SYNCHRONIZED_SECONDARIES_TO_COMMIT as recorded.
	K int32 `json:"k"`
	// Set of synchronous replicas that the record speaks of.
	Set []string `json:"set,omitempty"`
	// Number of the record; it only rises.
	Number int64 `json:"number,omitempty"`
}

// AuthorityStatus is a copy, for people, of who may write.
type AuthorityStatus struct {
	// Holder of the Lease: the replica.
	Holder string `json:"holder,omitempty"`
	// Epoch is raised at each grant.
	Epoch int64 `json:"epoch,omitempty"`
	// Unfenced lists replicas that lost the Lease and are not yet proven unable to write.
	Unfenced []string `json:"unfenced,omitempty"`
	// Stale lists replicas that are no candidates until they have caught up under a later primary.
	Stale []string `json:"stale,omitempty"`
	// Operation in flight.
	Operation *OperationStatus `json:"operation,omitempty"`
}

// OperationStatus is an operation in flight, for people.
type OperationStatus struct {
	ID        string      `json:"id"`
	Kind      string      `json:"kind"`
	Phase     string      `json:"phase"`
	From      string      `json:"from,omitempty"`
	Target    string      `json:"target,omitempty"`
	StartedAt metav1.Time `json:"startedAt,omitempty"`
	Deadline  metav1.Time `json:"deadline,omitempty"`
	// Steps done so far, oldest first.
	Steps []TimelineEntry `json:"steps,omitempty"`
}

// TimelineEntry is one step of a role change.
type TimelineEntry struct {
	At   metav1.Time `json:"at"`
	What string      `json:"what"`
}

// RoleChange is one entry of the history.
type RoleChange struct {
	// Kind: bootstrap, planned, automatic, forced, manual.
	Kind string `json:"kind"`
	From string `json:"from,omitempty"`
	To   string `json:"to"`
	// Cause in one sentence.
	Cause       string      `json:"cause,omitempty"`
	RequestID   string      `json:"requestID,omitempty"`
	Epoch       int64       `json:"epoch,omitempty"`
	StartedAt   metav1.Time `json:"startedAt,omitempty"`
	CompletedAt metav1.Time `json:"completedAt,omitempty"`
	// Result: done, aborted.
	Result   string          `json:"result,omitempty"`
	Timeline []TimelineEntry `json:"timeline,omitempty"`
}

// LastRequestStatus answers the request annotation.
type LastRequestStatus struct {
	ID     string `json:"id"`
	Kind   string `json:"kind,omitempty"`
	Target string `json:"target,omitempty"`
	// Result: Running, Done, Refused, Failed, Cancelled.
	Result      string       `json:"result"`
	Reason      string       `json:"reason,omitempty"`
	Message     string       `json:"message,omitempty"`
	CompletedAt *metav1.Time `json:"completedAt,omitempty"`
}

// Results of a request.
const (
	RequestRunning = "Running"
	RequestDone    = "Done"
	RequestRefused = "Refused"
	RequestFailed  = "Failed"
	// RequestCancelled: its author took it back.
	RequestCancelled = "Cancelled"
)

// MemoryStatus are the facts that decisions need and that must survive a restart
// of the controller. Timers are stored as the instant at which they began.
type MemoryStatus struct {
	// PrimaryFailure is the suspicion against the primary.
	PrimaryFailure *FailureStatus `json:"primaryFailure,omitempty"`
	// Recoveries in progress, one a replica.
	// +listType=map
	// +listMapKey=replica
	Recoveries []RecoveryStatus `json:"recoveries,omitempty"`
	// HeadlessSince is when nobody was primary for the first time.
	HeadlessSince *metav1.Time `json:"headlessSince,omitempty"`
	// BlockedSince and Blocks say why nothing is done.
	BlockedSince *metav1.Time  `json:"blockedSince,omitempty"`
	Blocks       []BlockStatus `json:"blocks,omitempty"`
	// LastRoleChangeAt is the completion of the newest role change.
	LastRoleChangeAt *metav1.Time `json:"lastRoleChangeAt,omitempty"`
	// HandledRequest is the id of the newest request that was answered.
	HandledRequest string `json:"handledRequest,omitempty"`
	// Promotion is what the newest FAILOVER was answered.
	Promotion *PromotionStatus `json:"promotion,omitempty"`
	// Refusals are replicas that answered FAILOVER with Msg 41142.
	// +listType=map
	// +listMapKey=replica
	Refusals []RefusalStatus `json:"refusals,omitempty"`
	// Setup are the steps of bootstrap, membership and databases that were tried and are not done.
	// +listType=map
	// +listMapKey=step
	Setup []SetupStatus `json:"setup,omitempty"`
	// Swaps is the highest count of changes that was seen in the record of the Lease.
	Swaps int64 `json:"swaps,omitempty"`
}

// SetupStatus counts the attempts at one step of the setup.
type SetupStatus struct {
	Step          string      `json:"step"`
	Attempts      int32       `json:"attempts"`
	LastAttemptAt metav1.Time `json:"lastAttemptAt"`
	LastError     string      `json:"lastError,omitempty"`
}

// PromotionStatus is the answer to the newest FAILOVER.
type PromotionStatus struct {
	Replica  string      `json:"replica"`
	Epoch    int64       `json:"epoch,omitempty"`
	At       metav1.Time `json:"at"`
	Accepted bool        `json:"accepted,omitempty"`
	Kind     string      `json:"kind,omitempty"`
	Msg      int32       `json:"msg,omitempty"`
	Message  string      `json:"message,omitempty"`
}

// RefusalStatus is a replica whose own configuration does not show it synchronised.
type RefusalStatus struct {
	Replica  string      `json:"replica"`
	Epoch    int64       `json:"epoch,omitempty"`
	Sequence int64       `json:"sequence,omitempty"`
	At       metav1.Time `json:"at"`
}

// FailureStatus counts bad observations of the primary.
type FailureStatus struct {
	Since        metav1.Time `json:"since"`
	LastStrikeAt metav1.Time `json:"lastStrikeAt"`
	Strikes      int32       `json:"strikes"`
	Evidence     string      `json:"evidence,omitempty"`
	// Renewals is the Lease's renewal text at the newest strike.
	Renewals string `json:"renewals,omitempty"`
}

// RecoveryStatus is the ladder of one replica (safety.md §7).
type RecoveryStatus struct {
	Replica       string       `json:"replica"`
	Symptom       string       `json:"symptom"`
	Since         metav1.Time  `json:"since"`
	LastAttemptAt *metav1.Time `json:"lastAttemptAt,omitempty"`
	Rung          string       `json:"rung"`
	Attempts      int32        `json:"attempts"`
	LastMsg       int32        `json:"lastMsg,omitempty"`
}

// BlockStatus is one refusal.
type BlockStatus struct {
	Reason string `json:"reason"`
	// Rule of the safety rules that refuses: "R13".
	Rule    string `json:"rule,omitempty"`
	Replica string `json:"replica,omitempty"`
	Message string `json:"message"`
}

// WaitStatus is what the operator waits for before its next step.
type WaitStatus struct {
	For string `json:"for"`
	// Until is when it goes on at the latest by its own clock; empty when that has no fixed time.
	Until *metav1.Time `json:"until,omitempty"`
}

// FindingStatus is something seen that explains what is done, or left undone.
type FindingStatus struct {
	Replica string `json:"replica,omitempty"`
	Message string `json:"message"`
}

// SQLServerAvailabilityGroupStatus is what the controller sees. At rest it is never written.
type SQLServerAvailabilityGroupStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	Phase              Phase `json:"phase,omitempty"`
	// Reason is the one sentence behind the phase.
	Reason string `json:"reason,omitempty"`
	// PrimaryReplica is the replica that is PRIMARY and holds the Lease; empty when there is none.
	PrimaryReplica string `json:"primaryReplica,omitempty"`
	// TargetPrimary is the replica that a move under way goes to.
	TargetPrimary string `json:"targetPrimary,omitempty"`
	// InitializationComplete: the group was made, and is never bootstrapped again.
	InitializationComplete bool  `json:"initializationComplete,omitempty"`
	BootstrapAttempts      int32 `json:"bootstrapAttempts,omitempty"`
	// AGID is the availability group's group_id.
	AGID string `json:"agID,omitempty"`
	// ReadyReplicas as "3/3" and SafeTargets as "2", for printer columns.
	ReadyReplicas string `json:"readyReplicas,omitempty"`
	SafeTargets   string `json:"safeTargets,omitempty"`
	// Elected is the replica that would be promoted if the primary were lost now, or that is
	// to be promoted; empty when nobody would be.
	Elected string `json:"elected,omitempty"`
	// Waiting and Findings say what goes on while the group is not healthy.
	Waiting *WaitStatus `json:"waiting,omitempty"`
	// +kubebuilder:validation:MaxItems=16
	Findings []FindingStatus `json:"findings,omitempty"`
	// Version of SQL Server on the primary.
	Version string `json:"version,omitempty"`
	// +listType=map
	// +listMapKey=name
	ReplicaStatuses []ReplicaStatus   `json:"replicaStatuses,omitempty"`
	CommitRule      *CommitRuleStatus `json:"commitRule,omitempty"`
	Authority       *AuthorityStatus  `json:"authority,omitempty"`
	Memory          *MemoryStatus     `json:"memory,omitempty"`
	// History of the last ten role changes, newest first.
	// +kubebuilder:validation:MaxItems=10
	History     []RoleChange       `json:"history,omitempty"`
	LastRequest *LastRequestStatus `json:"lastRequest,omitempty"`
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
