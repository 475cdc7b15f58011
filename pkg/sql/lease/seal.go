package lease

import (
	"fmt"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// Seal makes a manager refuse failsafe answers to holders below Epoch (R22).
type Seal struct {
	AGUID string `json:"agUID"`
	Epoch int64  `json:"epoch"`
	// Version of the Lease on which the swap is made that the seal belongs to.
	Version string `json:"version"`
}

// SealAnswer tells whether the seal is in force, and what the manager knows that speaks
// against the promotion.
type SealAnswer struct {
	OK  bool   `json:"ok"`
	Why string `json:"why,omitempty"`
	// SealedEpoch in force now.
	SealedEpoch int64 `json:"sealedEpoch,omitempty"`
}

// TakeSeal is asked by whoever is about to grant. A yes must not be given before the
// returned state's Persisted is on the volume.
func (s State) TakeSeal(q Seal, now time.Duration) (State, SealAnswer) {
	switch {
	case q.AGUID != s.AGUID:
		return s, SealAnswer{Why: fmt.Sprintf("the seal is of another resource (%s, not %s)", q.AGUID, s.AGUID)}
	case q.Epoch == s.Persisted.Epoch:
		// Its epoch has come already: holders of lower ones are refused anyway.
		return s, SealAnswer{OK: true, SealedEpoch: q.Epoch}
	case q.Epoch < s.Persisted.Epoch:
		return s, SealAnswer{Why: fmt.Sprintf("epoch %d was seen already, the seal is for %d", s.Persisted.Epoch, q.Epoch)}
	case s.Persisted.Seal != nil && s.Persisted.Seal.Epoch > q.Epoch:
		return s, SealAnswer{Why: fmt.Sprintf("a seal for epoch %d is in force", s.Persisted.Seal.Epoch), SealedEpoch: s.Persisted.Seal.Epoch}
	}
	seal := q
	s.Persisted.Seal, s.SealedAt = &seal, now
	return s, SealAnswer{OK: true, SealedEpoch: q.Epoch}
}

// dropLostSeal lets a seal fall whose swap can no longer succeed: a record read after it
// was taken has another version and a lower epoch. A seal whose epoch has come stays:
// it refuses what the record refuses.
func (s State) dropLostSeal(a ag.Authority, sent time.Duration) State {
	seal := s.Persisted.Seal
	if seal == nil || sent < s.SealedAt {
		return s
	}
	if a.Epoch < seal.Epoch && a.Version != seal.Version {
		s.Persisted.Seal = nil
	}
	return s
}
