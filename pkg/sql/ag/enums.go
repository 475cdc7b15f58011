package ag

// Role of a replica as it reports it itself. The zero value is unknown.
type Role string

const (
	RoleUnknown   Role = ""
	RolePrimary   Role = "PRIMARY"
	RoleSecondary Role = "SECONDARY"
	RoleResolving Role = "RESOLVING"
	// RoleNone: the server answered, and has no replica of this group.
	RoleNone Role = "NONE"
)

// Mode is the availability mode.
type Mode string

const (
	ModeUnknown           Mode = ""
	ModeSynchronous       Mode = "SYNCHRONOUS_COMMIT"
	ModeAsynchronous      Mode = "ASYNCHRONOUS_COMMIT"
	ModeConfigurationOnly Mode = "CONFIGURATION_ONLY"
)

// SyncState of a database copy (FG 3.6, 4.8).
type SyncState string

const (
	SyncUnknown          SyncState = ""
	SyncNotSynchronizing SyncState = "NOT SYNCHRONIZING"
	SyncSynchronizing    SyncState = "SYNCHRONIZING"
	SyncSynchronized     SyncState = "SYNCHRONIZED"
	SyncReverting        SyncState = "REVERTING"
	SyncInitializing     SyncState = "INITIALIZING"
)

// DatabaseState of sys.databases and the DMVs (FG 3.9).
type DatabaseState string

const (
	DatabaseUnknown         DatabaseState = ""
	DatabaseOnline          DatabaseState = "ONLINE"
	DatabaseRestoring       DatabaseState = "RESTORING"
	DatabaseRecovering      DatabaseState = "RECOVERING"
	DatabaseRecoveryPending DatabaseState = "RECOVERY_PENDING"
	DatabaseSuspect         DatabaseState = "SUSPECT"
	DatabaseEmergency       DatabaseState = "EMERGENCY"
	DatabaseOffline         DatabaseState = "OFFLINE"
)

// Reach says how an attempt to ask a replica ended. Unknown is never dead and never healthy.
type Reach string

const (
	ReachUnknown     Reach = ""
	ReachOK          Reach = "OK"
	ReachTimeout     Reach = "Timeout"
	ReachRefused     Reach = "Refused"
	ReachLoginFailed Reach = "LoginFailed"
	ReachForbidden   Reach = "Forbidden" // logged in, but may not see the group (FG 0.3 no. 13)
	ReachNoPod       Reach = "NoPod"
	ReachError       Reach = "Error"
)

// EndpointState of the database mirroring endpoint (FG 3.9).
type EndpointState string

const (
	EndpointUnknown  EndpointState = ""
	EndpointMissing  EndpointState = "MISSING"
	EndpointStarted  EndpointState = "STARTED"
	EndpointStopped  EndpointState = "STOPPED"
	EndpointDisabled EndpointState = "DISABLED"
)

// OperationKind in the Lease.
type OperationKind string

const (
	OperationBootstrap  OperationKind = "bootstrap"
	OperationSwitchover OperationKind = "switchover"
	OperationFailover   OperationKind = "failover"
	OperationForced     OperationKind = "forced"
	OperationHandover   OperationKind = "handover" // SIGTERM of the primary, by its own manager
)

// OperationPhase in the Lease. An operation moves forward only.
type OperationPhase string

const (
	// PhaseDemoting: the old primary is being taken offline; it still holds the Lease.
	PhaseDemoting OperationPhase = "demoting"
	// PhaseFencing: the Lease was granted to the nominee; earlier holders are not all proven unable to write.
	PhaseFencing OperationPhase = "fencing"
	// PhasePromoting: FAILOVER may be sent, or was: the target is possibly primary.
	PhasePromoting OperationPhase = "promoting"
	// PhasePublishing: PRIMARY and ONLINE were seen; labels and the others follow.
	PhasePublishing OperationPhase = "publishing"
	// PhaseAborting: the target is being fenced, then the election decides.
	PhaseAborting OperationPhase = "aborting"
	// PhaseCreating: the first replica is creating the group.
	PhaseCreating OperationPhase = "creating"
)

// Symptom of a replica that is not where it should be.
type Symptom string

const (
	SymptomNone             Symptom = ""
	SymptomResolving        Symptom = "Resolving"
	SymptomNotSynchronizing Symptom = "NotSynchronizing"
	SymptomSuspended        Symptom = "Suspended"
	SymptomStalePrimary     Symptom = "StalePrimary"
	SymptomNotJoined        Symptom = "NotJoined"
	SymptomUnreachable      Symptom = "Unreachable"
	SymptomSeeding          Symptom = "Seeding" // on its way; nothing to do but wait
	// SymptomAhead: its configuration is of a later promotion than the primary's, so that it
	// does not follow it: a promotion that was given up took effect after all.
	SymptomAhead Symptom = "Ahead"
)

// Rung of the recovery ladder (safety.md §7), in order.
type Rung string

const (
	RungWait        Rung = "Wait"
	RungReseat      Rung = "Reseat"
	RungOffline     Rung = "Offline"
	RungEndpointOne Rung = "EndpointOne"
	RungBoth        Rung = "Both"
	RungRejoin      Rung = "Rejoin"
	// RungResume is RESUME of suspended copies, beside the ladder.
	RungResume  Rung = "Resume"
	RungReseed  Rung = "Reseed"
	RungBlocked Rung = "Blocked"
)

// Rule is the number of a rule of safety.md, for refusals: "R12".
type Rule string
