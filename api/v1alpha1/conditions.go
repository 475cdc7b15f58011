package v1alpha1

// Condition types. Every one has a way back to False.
const (
	// ConditionAvailable: clients can write.
	ConditionAvailable = "Available"
	// ConditionHealthy: every replica is in step and the group could lose its primary.
	ConditionHealthy = "Healthy"
	// ConditionConfigured: the Secrets, names and images that the spec names are there and usable.
	ConditionConfigured = "Configured"
	// ConditionBootstrapFailed: the circuit breaker of the bootstrap is open.
	ConditionBootstrapFailed = "BootstrapFailed"
	// ConditionFailoverReady: at least one replica would be promoted now without loss.
	ConditionFailoverReady = "FailoverReady"
	// ConditionFailoverBlocked: nobody can write and nobody may be promoted.
	ConditionFailoverBlocked = "FailoverBlocked"
	// ConditionRecoveryBlocked: a replica does not come back by itself.
	ConditionRecoveryBlocked = "RecoveryBlocked"
	// ConditionPrimaryCutOff: the primary lives, but only its peers can see it.
	ConditionPrimaryCutOff = "PrimaryCutOffFromAPI"
	// ConditionConfigurationCommitPending: a configuration commit waits for its quorum.
	ConditionConfigurationCommitPending = "ConfigurationCommitPending"
	// ConditionStorageResizing: volumes are growing.
	ConditionStorageResizing = "StorageResizing"
	// ConditionRollingChange: pods are being replaced, one at a time and the primary last.
	ConditionRollingChange = "RollingChange"
	// ConditionDatabasesReady: every declared database is in the group on every replica.
	ConditionDatabasesReady = "DatabasesReady"
)

// Reasons of conditions and events. Each has a page under docs/runbooks.
const (
	ReasonAllGood                 = "AllGood"
	ReasonAsExpected              = "AsExpected"
	ReasonNoPrimary               = "NoPrimary"
	ReasonReplicasMissing         = "ReplicasMissing"
	ReasonReplicasBehind          = "ReplicasBehind"
	ReasonInitializing            = "Initializing"
	ReasonSecretMissing           = "SecretMissing"
	ReasonSecretKeyMissing        = "SecretKeyMissing"
	ReasonWeakPassword            = "WeakPassword"
	ReasonImagePullFailed         = "ImagePullFailed"
	ReasonUnschedulable           = "Unschedulable"
	ReasonServerDoesNotStart      = "ServerDoesNotStart"
	ReasonServerNameMismatch      = "ServerNameMismatch"
	ReasonLoginFailed             = "LoginFailed"
	ReasonBootstrapAttemptsUsedUp = "BootstrapAttemptsUsedUp"
	ReasonNotInitialized          = "NotInitialized"
	ReasonNotBlocked              = "NotBlocked"
	ReasonNoSafeCandidate         = "NoSafeCandidate"
	ReasonNotEnoughAnswers        = "NotEnoughAnswers"
	ReasonOldPrimaryNotFenced     = "OldPrimaryNotFenced"
	ReasonAllCandidatesRefused    = "AllCandidatesUnsynchronized"
	ReasonAutomaticFailoverOff    = "AutomaticFailoverOff"
	ReasonWriteLeaseUnusable      = "WriteLeaseUnusable"
	ReasonAttemptsUsedUp          = "AttemptsUsedUp"
	ReasonSeedingFailed           = "SeedingFailed"
	ReasonDatabasesMissing        = "DatabasesMissing"
	ReasonInvalidSpec             = "InvalidSpec"
	ReasonInvalidAnnotation       = "InvalidAnnotation"
	ReasonContainerConfigError    = "ContainerConfigError"
	ReasonVolumePending           = "VolumePending"
	ReasonNameTaken               = "NameTaken"
	ReasonEndNotProven            = "PreviousPodEndNotProven"
	ReasonCertificateFailed       = "CertificateFailed"
	ReasonPaused                  = "Paused"
	ReasonStarting                = "Starting"
	ReasonResizeInProgress        = "ResizeInProgress"
	ReasonResizeComplete          = "ResizeComplete"
	ReasonExpansionUnsupported    = "ExpansionUnsupported"
	ReasonRolloutInProgress       = "RolloutInProgress"
	ReasonRolloutWaits            = "RolloutWaits"
	ReasonRolloutComplete         = "RolloutComplete"
	ReasonReplicaFenced           = "ReplicaFenced"
	ReasonControllerError         = "ControllerError"
)

// Reasons of events about role changes.
const (
	EventRequested      = "FailoverRequested"
	EventRefused        = "RequestRefused"
	EventSuspected      = "PrimarySuspected"
	EventDemoted        = "PrimaryDemoted"
	EventGranted        = "LeaseGranted"
	EventPromoted       = "ReplicaPromoted"
	EventPublished      = "PrimaryPublished"
	EventAborted        = "SwitchoverAborted"
	EventRecoveryStep   = "RecoveryStep"
	EventRecovered      = "ReplicaRecovered"
	EventBootstrapped   = "AvailabilityGroupCreated"
	EventReplicaJoined  = "ReplicaJoined"
	EventDatabaseAdded  = "DatabaseAdded"
	EventCommitRule     = "CommitRuleChanged"
	EventBlocked        = "FailoverBlocked"
	EventBlockedCleared = "FailoverUnblocked"

	EventPodCreated        = "PodCreated"
	EventPodReplaced       = "PodReplaced"
	EventCertificateIssued = "CertificateIssued"
	EventVolumeExpanding   = "VolumeExpanding"
	EventPhaseChanged      = "PhaseChanged"
	EventReplicaFenced     = "ReplicaFenced"
	EventReplicaUnfenced   = "ReplicaUnfenced"
	EventRestartRequested  = "RestartRequested"
	EventRestarted         = "Restarted"
)
