package lease

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// Question is what a holder asks the other managers when the API server is away.
type Question struct {
	AGUID   string `json:"agUID"`
	GroupID string `json:"groupID"`
	Epoch   int64  `json:"epoch"`
	Holder  ag.Run `json:"holder"`
}

// Answer of one manager.
type Answer struct {
	Replica string `json:"replica"`
	OK      bool   `json:"ok"`
	Why     string `json:"why,omitempty"`
}

// Follows is what the answering manager sees of its own server.
type Follows struct {
	Role    ag.Role
	GroupID string
	// Primary is the replica that its server is connected to as a secondary; empty when unknown.
	Primary string
}

// Ask is the question of this run, if it has reason and right to ask: it holds the
// epoch that it knows to be the newest.
func (s State) Ask(groupID string) (Question, bool) {
	if s.GrantedEpoch == 0 || s.GrantedEpoch != s.Persisted.Epoch {
		return Question{}, false
	}
	return Question{AGUID: s.AGUID, GroupID: groupID, Epoch: s.GrantedEpoch, Holder: s.Self}, true
}

// AnswerFailsafe is the answer to another manager. A yes counts as given now.
func (s State) AnswerFailsafe(q Question, own Follows, now time.Duration) (State, Answer) {
	no := func(format string, args ...any) (State, Answer) {
		return s, Answer{Replica: s.Self.Replica, Why: fmt.Sprintf(format, args...)}
	}
	switch {
	case q.AGUID != s.AGUID:
		return no("the question is about another resource (%s, not %s)", q.AGUID, s.AGUID)
	case own.GroupID != "" && q.GroupID != "" && !strings.EqualFold(own.GroupID, q.GroupID):
		return no("the question is about another group (%s, not %s)", q.GroupID, own.GroupID)
	case s.Omit.Has("R22"):
		// No seal and no epoch is looked at.
	case s.Persisted.Seal != nil && q.Epoch < s.Persisted.Seal.Epoch:
		return no("sealed below epoch %d, the question is of %d", s.Persisted.Seal.Epoch, q.Epoch)
	case q.Epoch < s.Persisted.Epoch:
		return no("epoch %d was seen already, the question is of %d", s.Persisted.Epoch, q.Epoch)
	case q.Epoch == s.Persisted.Epoch && !s.Persisted.Holder.Zero() && !s.Persisted.Holder.Same(q.Holder):
		return no("the Lease was last seen held by %s", s.Persisted.Holder.Replica)
	case q.Holder.Zero():
		return no("the question names no holder")
	case own.Role == ag.RolePrimary:
		return no("the server here is PRIMARY itself")
	case own.Primary != "" && !strings.EqualFold(own.Primary, q.Holder.Replica):
		return no("the server here follows %s", own.Primary)
	}
	s.Answered, s.AnsweredAt = true, now
	return s, Answer{Replica: s.Self.Replica, OK: true}
}

// Peers says whom a holder must ask and how many must say yes: with k of at least 1, k
// synchronous secondaries; with k = 0 all of them and the witness. Configured is what
// its own server lists now, k the smaller of the recorded and the server's own.
// A holder without such peers never demotes itself for want of an API server: Need is 0.
func Peers(self string, configured []ag.ConfiguredReplica, k int32) (ask []string, need int) {
	all := 0
	for _, c := range configured {
		if strings.EqualFold(c.Server, self) {
			continue
		}
		switch c.Mode {
		case ag.ModeSynchronous:
			ask = append(ask, c.Server)
			all++
		case ag.ModeConfigurationOnly:
			if k == 0 {
				ask = append(ask, c.Server)
				all++
			}
		case ag.ModeAsynchronous, ag.ModeUnknown:
		}
	}
	if k >= 1 {
		return ask, int(k)
	}
	return ask, all
}

// Counted is the number of yes answers from those asked, each counted once.
func Counted(ask []string, answers []Answer) int {
	n := 0
	for _, name := range ask {
		for _, a := range answers {
			if a.OK && strings.EqualFold(a.Replica, name) {
				n++
				break
			}
		}
	}
	return n
}

// FailsafeProven enters a round of answers to a question sent at that time. It is a
// proof when enough said yes and this run still holds the epoch that it asked for.
func (s State) FailsafeProven(q Question, sent time.Duration, ask []string, need int, answers []Answer) (State, bool) {
	if Counted(ask, answers) < need || q.Epoch != s.GrantedEpoch || q.Epoch != s.Persisted.Epoch || !q.Holder.Same(s.Self) {
		return s, false
	}
	if sent < s.JumpedAt {
		return s, false
	}
	if !s.Proof.Valid || sent > s.Proof.Sent {
		s.Proof = Proof{Valid: true, Sent: sent, Epoch: q.Epoch, Failsafe: true}
	}
	return s, true
}
