package lease

import (
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// Persisted is what a manager must remember beyond its own run, on the data volume.
type Persisted struct {
	// AGUID is the custom resource's UID under which the rest was seen.
	AGUID string `json:"agUID"`
	// Epoch and Rule are the highest ever seen (R4), Holder the one of that epoch.
	Epoch  int64  `json:"epoch"`
	Rule   int64  `json:"rule"`
	Holder ag.Run `json:"holder"`
	// Swaps is the highest count of swaps ever seen (R4).
	Swaps int64 `json:"swaps,omitempty"`
	// Seal in force, or nil (R22).
	Seal *Seal `json:"seal,omitempty"`
}

// Equal tells whether two managers must remember the same.
func (p Persisted) Equal(o Persisted) bool {
	seal, other := p.Seal, o.Seal
	if (seal == nil) != (other == nil) || seal != nil && *seal != *other {
		return false
	}
	p.Seal, o.Seal = nil, nil
	return p == o
}

// Proof of authority: when it was asked for, in which epoch, and how it was won.
type Proof struct {
	// Valid is false when there is none.
	Valid bool
	// Sent is when the request that won it was sent: a proof is as old as its question.
	Sent  time.Duration
	Epoch int64
	// Failsafe: won from the other managers, the API server being away.
	Failsafe bool
}

// State is all that a run of the manager knows about its authority.
type State struct {
	// Self is this run; AGUID the custom resource it was made for.
	Self   ag.Run
	AGUID  string
	Timing ag.Timing
	// Started is when this run began; StartedAt is the same by the node's wall clock, which
	// is compared with nothing but the kubelet's start of this container.
	Started   time.Duration
	StartedAt time.Time
	Persisted Persisted
	Proof     Proof
	// Record is the newest record that was read and is no older than Persisted; nil before the first.
	Record *ag.Authority
	// RecordSent is when the read or update that brought Record was sent.
	RecordSent time.Duration
	// Incredible: the newest read brought no record that proves anything (R4).
	Incredible bool
	// GrantedEpoch and GrantedAt: the epoch this run holds, and when it first saw so.
	GrantedEpoch int64
	GrantedAt    time.Duration
	// AnsweredAt is when it last answered a failsafe question with yes, if it ever did.
	Answered   bool
	AnsweredAt time.Duration
	// SealedAt is when the seal in force was taken in this run; zero when it was loaded.
	SealedAt time.Duration
	// Last tick; JumpedAt and JumpUnchecked: a clock jump whose remaining write lease was not looked at yet.
	Last          Instant
	JumpedAt      time.Duration
	JumpUnchecked bool
	// WriteLease as far as it can be known from outside.
	WriteLease WriteLease
	// Omit leaves rules out: empty but in proofs that a rule is needed.
	Omit ag.Omit
}

// NewState is the state at the start of a run: what was persisted, and no proof (R3).
// What was persisted under another custom resource's UID is forgotten.
func NewState(self ag.Run, agUID string, t ag.Timing, started Instant, p Persisted) State {
	if p.AGUID != agUID {
		p = Persisted{AGUID: agUID}
	}
	return State{Self: self, AGUID: agUID, Timing: t, Started: started.Mono, StartedAt: started.Wall.Round(0).UTC(), Persisted: p, Last: started}
}

// Standing is what a Lease's record says about this run.
type Standing string

const (
	// StandingNoProof: missing, older than what was seen before, or of another custom resource (R4).
	StandingNoProof Standing = "NoProof"
	// StandingOther: somebody else holds it, or nobody.
	StandingOther Standing = "Other"
	// StandingHolder: this very run holds it.
	StandingHolder Standing = "Holder"
)

// Learn takes in a record that was read, or written, by a request sent at that time.
func (s State) Learn(a ag.Authority, sent time.Duration) (State, Standing) {
	if !s.credible(a) {
		// Nothing is learned from it. The proof at hand stays as old as it is, and the
		// other managers may still be asked: the Lease's loss is not the database's.
		s.Incredible = true
		return s, StandingNoProof
	}
	if s.Record != nil && sent < s.RecordSent {
		return s, s.standing(*s.Record) // overtaken by a newer answer
	}
	s.Incredible = false
	rec := a.Clone()
	s.Record, s.RecordSent = &rec, sent
	s.Persisted.Epoch = a.Epoch
	s.Persisted.Rule = a.Rule.Number
	s.Persisted.Holder = a.Holder
	s.Persisted.Swaps = max(s.Persisted.Swaps, a.Swaps)
	s = s.dropLostSeal(a, sent)
	st := s.standing(a)
	if st != StandingHolder {
		s.Proof = Proof{}
		s.GrantedEpoch, s.GrantedAt = 0, 0
		return s, st
	}
	if s.GrantedEpoch != a.Epoch {
		// What was proven in another epoch is no proof in this one.
		s.GrantedEpoch, s.GrantedAt = a.Epoch, sent
		s.Proof = Proof{}
	}
	return s, st
}

// credible is R4: the record exists, is of our custom resource, and is not older than what was seen.
func (s State) credible(a ag.Authority) bool {
	if s.Omit.Has("R4") {
		return a.Exists
	}
	return a.Exists && a.AGUID == s.AGUID && a.Epoch >= s.Persisted.Epoch && a.Rule.Number >= s.Persisted.Rule && !s.restored(a)
}

// restored: fewer swaps have made this record than one that was seen, so that it is of an
// earlier moment. One without a count was written by a release that did not count.
func (s State) restored(a ag.Authority) bool {
	return a.Swaps > 0 && a.Swaps < s.Persisted.Swaps && !s.Omit.Has("R4 swaps")
}

func (s State) standing(a ag.Authority) Standing {
	if a.Holder.Same(s.Self) {
		return StandingHolder
	}
	return StandingOther
}

// Hear takes in what the primary's manager tells at each change (R4).
func (s State) Hear(t Tell) State {
	if t.AGUID != s.AGUID {
		return s
	}
	if t.Epoch > s.Persisted.Epoch {
		s.Persisted.Epoch, s.Persisted.Holder = t.Epoch, t.Holder
	}
	s.Persisted.Rule = max(s.Persisted.Rule, t.Rule)
	s.Persisted.Swaps = max(s.Persisted.Swaps, t.Swaps)
	return s
}

// Tell is what the primary's manager tells the others at each change of the record.
type Tell struct {
	AGUID  string `json:"agUID"`
	Epoch  int64  `json:"epoch"`
	Rule   int64  `json:"rule"`
	Swaps  int64  `json:"swaps,omitempty"`
	Holder ag.Run `json:"holder"`
}

// Tell is this state as the others should hear it.
func (s State) Tell() Tell {
	return Tell{AGUID: s.AGUID, Epoch: s.Persisted.Epoch, Rule: s.Persisted.Rule, Swaps: s.Persisted.Swaps, Holder: s.Persisted.Holder}
}

// Manager fills the parts of a status that come from this state.
func (s State) Manager(now time.Duration) ag.Manager {
	m := ag.Manager{
		Reach: ag.ReachOK, Nonce: s.Self.Nonce, PodUID: s.Self.PodUID, StartedAgo: now - s.Started, StartedAt: s.StartedAt,
		HighestEpoch: s.Persisted.Epoch, HighestRule: s.Persisted.Rule, HighestSwaps: s.Persisted.Swaps, LastFailsafeAgo: -1,
	}
	if s.GrantedEpoch > 0 {
		m.GrantedAgo = now - s.GrantedAt
	}
	if s.Answered {
		m.LastFailsafeAgo = now - s.AnsweredAt
	}
	if s.Persisted.Seal != nil {
		m.SealedEpoch = s.Persisted.Seal.Epoch
	}
	return m
}
