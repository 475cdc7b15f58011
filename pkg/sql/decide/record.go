package decide

import (
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// maxHistory is how many role changes are remembered.
const maxHistory = 10

// Record enters what the actions of one pass were answered into the memory. Outcomes
// are those of the actions that were tried, in order.
func Record(m ag.Memory, outcomes []ag.Outcome, now time.Time) ag.Memory {
	m = cloneMemory(m)
	for _, o := range outcomes {
		switch a := o.Action.(type) {
		case ag.Swap:
			if o.Err == nil {
				recordSwap(&m, a, now)
			}
		case ag.Promote:
			recordPromote(&m, a, o.Err, now)
		case ag.Reseat:
			recordAttempt(&m, a.Replica, o.Err)
		case ag.Rejoin:
			recordAttempt(&m, a.Replica, o.Err)
		case ag.Reseed:
			recordAttempt(&m, a.Replica, o.Err)
		case ag.TakeOffline:
			recordAttempt(&m, a.Replica, o.Err)
		case ag.RestartEndpoints:
			if len(a.Replicas) > 0 {
				recordAttempt(&m, a.Replicas[0], o.Err)
			}
		case ag.Promise, ag.StopEndpoints, ag.StartEndpoints, ag.ResumeDatabase, ag.SetCommitRule, ag.SetRoleLabel, ag.Seal:
			// Seen in the next snapshot.
		}
	}
	return m
}

func recordSwap(m *ag.Memory, a ag.Swap, now time.Time) {
	if a.Change != nil {
		c := *a.Change
		if c.CompletedAt.IsZero() {
			c.CompletedAt = now
		}
		m.History = append([]ag.RoleChange{c}, m.History...)
		if len(m.History) > maxHistory {
			m.History = m.History[:maxHistory]
		}
		m.LastRoleChangeAt = c.CompletedAt
		m.Promotion, m.Refusals = nil, nil
	}
	if a.Result != nil {
		r := *a.Result
		m.LastResult = &r
		if r.Result != ResultRunning {
			m.HandledRequest = r.ID
		}
	}
}

func recordPromote(m *ag.Memory, a ag.Promote, err *ag.Error, now time.Time) {
	p := &ag.Promotion{Replica: a.Replica, Epoch: a.Epoch, At: now, Accepted: err == nil}
	if err != nil {
		p.Kind, p.Msg, p.Message = err.Kind, err.Number, err.Message
		if err.Has(ag.MsgNotSynchronized) {
			p.Msg = ag.MsgNotSynchronized
			m.Refusals = append(withoutRefusal(m.Refusals, a.Replica),
				ag.Refusal{Replica: a.Replica, Epoch: a.Epoch, Sequence: a.Guard.Sequence, At: now})
		}
	}
	m.Promotion = p
}

// recordAttempt remembers the answer beside the attempt that Decide has counted before.
func recordAttempt(m *ag.Memory, replica string, err *ag.Error) {
	for i := range m.Recoveries {
		if m.Recoveries[i].Replica != replica {
			continue
		}
		m.Recoveries[i].LastMsg = 0
		if err != nil {
			m.Recoveries[i].LastMsg = err.Number
			if err.Has(ag.MsgResourcePreviousError) {
				m.Recoveries[i].LastMsg = ag.MsgResourcePreviousError
			}
		}
	}
}

func withoutRefusal(list []ag.Refusal, replica string) []ag.Refusal {
	var out []ag.Refusal
	for _, r := range list {
		if r.Replica != replica {
			out = append(out, r)
		}
	}
	return out
}

func cloneMemory(m ag.Memory) ag.Memory {
	if m.PrimaryFailure != nil {
		f := *m.PrimaryFailure
		m.PrimaryFailure = &f
	}
	if m.LastResult != nil {
		r := *m.LastResult
		m.LastResult = &r
	}
	if m.Promotion != nil {
		p := *m.Promotion
		m.Promotion = &p
	}
	m.Recoveries = append([]ag.Recovery(nil), m.Recoveries...)
	m.Blocks = append([]ag.Block(nil), m.Blocks...)
	m.History = append([]ag.RoleChange(nil), m.History...)
	m.Refusals = append([]ag.Refusal(nil), m.Refusals...)
	return m
}
