package ag

// Reasons of blocks, as conditions and events spell them. Each has a page under docs/runbooks.
const (
	ReasonNoSafeCandidate      = "NoSafeCandidate"
	ReasonNotEnoughAnswers     = "NotEnoughAnswers"
	ReasonOldPrimaryNotFenced  = "OldPrimaryNotFenced"
	ReasonAllCandidatesRefused = "AllCandidatesUnsynchronized"
	ReasonAutomaticFailoverOff = "AutomaticFailoverOff"
	ReasonWriteLeaseUnusable   = "WriteLeaseUnusable"
	ReasonAttemptsUsedUp       = "AttemptsUsedUp"
	ReasonPrimaryCutOff        = "PrimaryCutOffFromAPI"
	ReasonManagersNotSealed    = "ManagersNotSealed"
	ReasonPromotionPending     = "PromotionPending"
	ReasonPromiseMissing       = "PromiseMissing"
	ReasonTwoPrimaries         = "TwoPrimaries"
	ReasonPrimaryNotFollowed   = "PrimaryNotFollowed"
	ReasonForcedByHand         = "ForcedByHand"
	ReasonAuthorityLost        = "AuthorityLost"
	ReasonCopySuspended        = "CopySuspended"
	ReasonPaused               = "Paused"
	ReasonNotInitialized       = "NotInitialized"
	ReasonStaleView            = "StaleView"
	ReasonUnknownReplica       = "UnknownReplica"
	ReasonAlreadyPrimary       = "AlreadyPrimary"
	ReasonDataLossNotBounded   = "DataLossNotBounded"
	ReasonOperationInFlight    = "OperationInFlight"
	ReasonCommitPending        = "ConfigurationCommitPending"
	ReasonCommitsWait          = "CommitsWaitForSecondaries"
)

// Types and reasons of events about role changes.
const (
	EventNormal  = "Normal"
	EventWarning = "Warning"

	EventRequested    = "FailoverRequested"
	EventRefused      = "RequestRefused"
	EventSuspected    = "PrimarySuspected"
	EventDemoted      = "PrimaryDemoted"
	EventGranted      = "LeaseGranted"
	EventPromoted     = "ReplicaPromoted"
	EventPublished    = "PrimaryPublished"
	EventAborted      = "SwitchoverAborted"
	EventRecoveryStep = "RecoveryStep"
	EventRecovered    = "ReplicaRecovered"
	EventBlocked      = "FailoverBlocked"
	EventUnblocked    = "FailoverUnblocked"
)
