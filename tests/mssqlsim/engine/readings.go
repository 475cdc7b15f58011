package engine

import "time"

// JoinRole is the role right after JOIN under EXTERNAL (FG 1.5 item 3).
type JoinRole uint8

// PlannedMode is what an old primary does when another replica executes FAILOVER (FG 4.5).
type PlannedMode uint8

// The readings of FG 1.5 and 4.5; the first of each is the working assumption.
const (
	JoinSecondary JoinRole = iota
	JoinResolving
)

// The modes of a planned FAILOVER with both ends alive.
const (
	PlannedInPlace PlannedMode = iota
	PlannedSticky
)

// Readings selects between readings of facts that nobody confirmed. The zero value holds the
// working assumptions of FG 11; each field set to true selects the other reading.
type Readings struct {
	// Planned: FG 4.5, 11 no. 1.
	Planned PlannedMode
	// JoinRole: FG 1.5, 11 no. 33.
	JoinRole JoinRole
	// SecondaryResolvesOnPrimaryLoss: a secondary of a dead primary turns RESOLVING (FG 11 no. 9).
	SecondaryResolvesOnPrimaryLoss bool
	// AllReplicaRowsOnSecondary: dm_hadr_availability_replica_states shows every replica on a
	// secondary (FG 11 no. 10).
	AllReplicaRowsOnSecondary bool
	// RSSTCUnmetIs988: commits fail with 988 instead of waiting (FG 11 no. 13).
	RSSTCUnmetIs988 bool
	// LeaseUnlimitedUntilRenewed: a fresh primary's write lease runs only from the first renewal
	// (FG 11 no. 6).
	LeaseUnlimitedUntilRenewed bool
	// ResolvingDatabasesRestoring: databases of a RESOLVING replica read RESTORING also after a
	// restart (FG 11 no. 20).
	ResolvingDatabasesRestoring bool
	// Latch41104: SET (ROLE = SECONDARY) on a former primary fails and latches while the new
	// primary is younger than this; 0 switches the latch off (FG 4.7, 11 no. 21).
	Latch41104 time.Duration
	// LatchForgets clears the latch by itself after this time; 0 means never (FG 4.7).
	LatchForgets time.Duration

	// AckBeforeDropCommitted: a lost secondary is no longer waited for from the moment of loss,
	// before the configuration commit that drops it (safety fact 1 false).
	AckBeforeDropCommitted bool
	// PersistedCountsAsCommitted: a new primary treats the configuration that it has persisted as
	// committed and acknowledges under it at once (safety fact 1 false, second half).
	PersistedCountsAsCommitted bool
	// PromotionWithoutQuorum: the promotion's own configuration commit needs no majority (fact 2 false).
	PromotionWithoutQuorum bool
	// LeaseByTimer: the lease is checked by a timer of LeasePoll, not at each acknowledgement (fact 3 false).
	LeaseByTimer bool
	// LeasePoll is the interval of that timer; 0 means 1 s.
	LeasePoll time.Duration
	// LeaseWallClock: the lease runs on the wall clock, which ClockOffset moves (fact 4).
	LeaseWallClock bool
	// RenewalRevivesPrimary: a renewal after the expiry makes a replica PRIMARY again (fact 5 false).
	RenewalRevivesPrimary bool
	// RaiseSparesWaiting: raising the commit quorum does not apply to transactions that wait
	// already (fact 6 false).
	RaiseSparesWaiting bool
	// TwoReplicasNeedMajority: two synchronous replicas with commit quorum 0 do not commit their
	// configuration alone (fact 7 false, FG 11 no. 34).
	TwoReplicasNeedMajority bool
	// ThreeReplicasCommitAlone: three with commit quorum 0 do (fact 7).
	ThreeReplicasCommitAlone bool
	// ConfigurationJudgedByOldQuorum: ALTER … TO_COMMIT = 0 with two replicas needs the majority of
	// the old value's rule (fact 7).
	ConfigurationJudgedByOldQuorum bool
	// FailoverIgnoresSyncMark: FAILOVER succeeds on a copy that the persisted configuration does
	// not show as synchronised (fact 8 false).
	FailoverIgnoresSyncMark bool
	// FlatSequence: a promotion raises sequence_number by one like any other commit (fact 9 false).
	FlatSequence bool
	// RestartKeepsPrimary: a former primary comes back PRIMARY (fact 10 false).
	RestartKeepsPrimary bool
	// UnorderedConfiguration: configuration messages travel beside the log of the same link (fact 11 false).
	UnorderedConfiguration bool
	// OfflineClearsSyncMark: OFFLINE on a secondary loses its synchronised mark (fact 12 false).
	OfflineClearsSyncMark bool
}
