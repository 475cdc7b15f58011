package ag

import "time"

// Authority is the record in the Lease <name>-primary: lock, epoch and memory of
// who may have written (safety.md §2). It changes by compare-and-swap only (R1).
type Authority struct {
	// Exists is false when there is no Lease, or one that is no proof (R4).
	Exists bool `json:"exists"`
	// Version is the object's resourceVersion: opaque, compared for equality.
	Version string `json:"version,omitempty"`
	// AGUID binds the record to one custom resource.
	AGUID string `json:"agUID,omitempty"`
	// Holder may renew the write lease; zero when nobody may.
	Holder Run `json:"holder"`
	// Epoch is raised at each grant (leaseTransitions).
	Epoch int64 `json:"epoch"`
	// Swaps counts the swaps of the record: each one raises it, renewals do not. A Lease with
	// fewer than were seen is a restored one (R4). 0 is unknown: the record was written by a
	// release that did not count.
	Swaps int64 `json:"swaps,omitempty"`
	// Renewals is the Lease's renewTime as text: compared for change, never with a clock.
	Renewals string `json:"renewals,omitempty"`
	// Operation in flight, or nil.
	Operation *Operation `json:"operation,omitempty"`
	// Rule is the commit rule as recorded (R13–R19).
	Rule CommitRule `json:"rule"`
	// Unfenced lists every grant that was taken away and whose end is not proven, one entry per grant (R9).
	Unfenced []Grant `json:"unfenced,omitempty"`
	// Stale replicas are neither answers nor candidates (R12).
	Stale []string `json:"stale,omitempty"`
	// GivenUp are promotions that were sent and given up: what of them may still be under way
	// is ended with OFFLINE, and a sequence number above the primary's is explained by them.
	GivenUp []GivenUp `json:"givenUp,omitempty"`
	// ByHand are replicas that a person has made PRIMARY beside a holder that did not notice:
	// what they acknowledged may be nowhere else, so that no election passes over them.
	ByHand []ByHand `json:"byHand,omitempty"`
	// LastPrimary is the last confirmed primary; MaybePrimary those in phase promoting since.
	LastPrimary  string   `json:"lastPrimary,omitempty"`
	MaybePrimary []string `json:"maybePrimary,omitempty"`
	// NoWriteLease: the primary said that the group has no working write lease (47116), so that no wait proves anything.
	NoWriteLease bool `json:"noWriteLease,omitempty"`
	// GroupID is the availability group's group_id, once known.
	GroupID string `json:"groupID,omitempty"`
	// Sequences are the highest sequence numbers ever recorded, by replica.
	Sequences []ReplicaSequence `json:"sequences,omitempty"`
}

// Run is one run of one container: a pod UID and the nonce of its instance manager.
type Run struct {
	Replica string `json:"replica,omitempty"`
	PodUID  string `json:"podUID,omitempty"`
	Nonce   string `json:"nonce,omitempty"`
	// ContainerID is set only when the pod's status is certain to speak of the manager's own container.
	ContainerID string `json:"containerID,omitempty"`
	Node        string `json:"node,omitempty"`
	BootID      string `json:"bootID,omitempty"`
}

// Zero tells whether nobody is named.
func (r Run) Zero() bool { return r.PodUID == "" && r.Nonce == "" }

// Same tells whether both name one run; container, node and boot are details.
func (r Run) Same(o Run) bool { return r.PodUID == o.PodUID && r.Nonce == o.Nonce && !r.Zero() }

// Identity is the Lease's holderIdentity.
func (r Run) Identity() string {
	if r.Zero() {
		return ""
	}
	return r.Replica + "/" + r.PodUID + "/" + r.Nonce
}

// Grant is one grant that was taken away.
type Grant struct {
	Epoch int64 `json:"epoch"`
	Run   Run   `json:"run"`
	// TakenAt is for people: when it was taken away, by the clock of whoever did it. No
	// wait is computed from it; an observer counts from what it has seen itself (Watch).
	TakenAt time.Time `json:"takenAt,omitempty"`
	// Renewals is the Lease's renewal text on which the taking swap was made, when a renewal
	// in between would have made that swap fail; empty otherwise. An observer that has seen
	// this very text for a while may count the wait from there.
	Renewals string `json:"renewals,omitempty"`
	// Promoted: a FAILOVER was, or may have been, sent to it in this grant.
	Promoted bool `json:"promoted,omitempty"`
	// Sequence is the number that it had before it was told to become PRIMARY; a promotion raises it (FG 5.1).
	// 0 where it may have been primary before that.
	Sequence int64 `json:"sequence,omitempty"`
	// Offline: OFFLINE succeeded on it after every FAILOVER of this grant had expired, so that none is under way.
	Offline bool `json:"offline,omitempty"`
	// Proven names the proof that this grant has ended, once somebody has had it: a fence
	// that was proven stays proven.
	Proven Proof `json:"proven,omitempty"`
}

// ByHand is a replica that was seen PRIMARY, without the Lease, in a later promotion than the
// holder's.
type ByHand struct {
	Replica string `json:"replica"`
	// Before is its sequence number before that promotion: where the last primary stopped at
	// the same number, it has acknowledged nothing that this replica lacks.
	Before int64 `json:"before,omitempty"`
	// Unordered: its number does not tell its promotion from a change of the last primary's
	// own configuration (field guide §11 no. 8).
	Unordered bool `json:"unordered,omitempty"`
}

// GivenUp is a promotion that was sent and given up before it was seen to end. It is
// forgotten when its replica has caught up under a later primary, and no replica has a
// number above that primary's.
type GivenUp struct {
	Epoch int64 `json:"epoch"`
	Run   Run   `json:"run"`
	// Before is its replica's sequence number before the promotion, Sequence the one it had
	// when nothing was under way any more; 0 while that is not known.
	Before   int64 `json:"before,omitempty"`
	Sequence int64 `json:"sequence,omitempty"`
	// Ended: no FAILOVER of it is under way any more; its run has ended, or OFFLINE succeeded
	// on it after every FAILOVER of this grant had expired.
	Ended bool `json:"ended,omitempty"`
}

// Proof that a grant has ended (R8, R9).
type Proof string

const (
	ProofNone Proof = ""
	// ProofDeath: that run is dead (R8).
	ProofDeath Proof = "death"
	// ProofDemoted: confirmed not PRIMARY after every statement that could have made it so had expired.
	ProofDemoted Proof = "demoted"
	// ProofTime: the full wait D has passed since it can last have had proof of authority.
	ProofTime Proof = "time"
	// ProofRefused: its server answered FAILOVER with 41142, so that it never was PRIMARY.
	ProofRefused Proof = "refused"
)

// Operation in flight; recorded before its first effect. After its deadline anybody finishes or cancels it (R2).
type Operation struct {
	ID     string         `json:"id"`
	Kind   OperationKind  `json:"kind"`
	Phase  OperationPhase `json:"phase"`
	From   string         `json:"from,omitempty"`
	Target string         `json:"target,omitempty"`
	// First is the target with which it began; Target is the one that it has now.
	First     string    `json:"first,omitempty"`
	Owner     string    `json:"owner,omitempty"`
	RequestID string    `json:"requestID,omitempty"`
	Cause     string    `json:"cause,omitempty"`
	StartedAt time.Time `json:"startedAt"`
	Deadline  time.Time `json:"deadline"`
	Steps     []Step    `json:"steps,omitempty"`
	// Aborted: the move did not reach its target; what is promoted now is the way back.
	Aborted string `json:"aborted,omitempty"`
	// Before is the target's sequence number before its promotion, in the phases from promoting
	// on: while that stands it was not promoted. 0 where it may have been primary before, unconfirmed, or
	// is forced: then its number tells nothing of what it holds.
	Before int64 `json:"before,omitempty"`
	// Promises that were given in this fencing (R11).
	Promises Promises `json:"promises,omitzero"`
}

// Step is one line of an operation's timeline.
type Step struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
}

// CommitRule is the recorded rule: every acknowledged commit is on the primary and on at least K others of Set.
type CommitRule struct {
	Number int64    `json:"number"`
	K      int32    `json:"k"`
	Set    []Member `json:"set,omitempty"`
}

// Member of the recorded set, with the UID of its data PVC.
type Member struct {
	Replica string `json:"replica"`
	PVCUID  string `json:"pvcUID,omitempty"`
}

// ReplicaSequence is the highest sequence number recorded for one replica.
type ReplicaSequence struct {
	Replica  string `json:"replica"`
	Sequence int64  `json:"sequence"`
}

// Names lists the recorded set.
func (c CommitRule) Names() []string {
	names := make([]string, len(c.Set))
	for i, m := range c.Set {
		names[i] = m.Replica
	}
	return names
}

// Has tells whether the replica is in the recorded set.
func (c CommitRule) Has(replica string) bool {
	for _, m := range c.Set {
		if m.Replica == replica {
			return true
		}
	}
	return false
}

// AnswersNeeded is R13: how many synchronous replicas must answer before a
// promotion, for Ns synchronous replicas in the set: Ns − min(k, floor(Ns/2)),
// and one for k = Ns − 1. At least 1.
func (c CommitRule) AnswersNeeded() int {
	ns, k := len(c.Set), int(c.K)
	if k < 0 {
		k = 0
	}
	if ns > 1 && k >= ns-1 {
		return 1
	}
	n := ns - min(k, ns/2)
	return max(n, 1)
}

// Clone is a deep copy.
func (a Authority) Clone() Authority {
	c := a
	if a.Operation != nil {
		op := *a.Operation
		op.Steps = append([]Step(nil), a.Operation.Steps...)
		op.Promises.Replicas = append([]string(nil), a.Operation.Promises.Replicas...)
		c.Operation = &op
	}
	c.Rule.Set = append([]Member(nil), a.Rule.Set...)
	c.Unfenced = append([]Grant(nil), a.Unfenced...)
	c.Stale = append([]string(nil), a.Stale...)
	c.GivenUp = append([]GivenUp(nil), a.GivenUp...)
	c.ByHand = append([]ByHand(nil), a.ByHand...)
	c.MaybePrimary = append([]string(nil), a.MaybePrimary...)
	c.Sequences = append([]ReplicaSequence(nil), a.Sequences...)
	return c
}
