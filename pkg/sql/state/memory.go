package state

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// Memory reads the memory from the status. Instants have whole seconds there.
func Memory(s *v1alpha1.SQLServerAvailabilityGroupStatus) ag.Memory {
	m := ag.Memory{Initialized: s.InitializationComplete}
	for _, c := range s.History {
		m.History = append(m.History, ag.RoleChange{
			Kind: c.Kind, From: c.From, To: c.To, Cause: c.Cause, RequestID: c.RequestID, Epoch: c.Epoch,
			StartedAt: utc(c.StartedAt), CompletedAt: utc(c.CompletedAt), Result: c.Result, Timeline: steps(c.Timeline),
		})
	}
	if r := s.LastRequest; r != nil {
		m.LastResult = &ag.Result{ID: r.ID, Kind: r.Kind, Target: r.Target, Result: r.Result, Reason: r.Reason,
			Message: r.Message, CompletedAt: fromPtr(r.CompletedAt)}
	}
	if s.Memory == nil {
		return m
	}
	x := s.Memory
	if f := x.PrimaryFailure; f != nil {
		m.PrimaryFailure = &ag.Failure{Since: utc(f.Since), LastStrikeAt: utc(f.LastStrikeAt), Strikes: f.Strikes, Evidence: f.Evidence, Renewals: f.Renewals}
	}
	for _, r := range x.Recoveries {
		m.Recoveries = append(m.Recoveries, ag.Recovery{Replica: r.Replica, Symptom: ag.Symptom(r.Symptom), Since: utc(r.Since),
			LastAttemptAt: fromPtr(r.LastAttemptAt), Rung: ag.Rung(r.Rung), Attempts: r.Attempts, LastMsg: r.LastMsg})
	}
	m.HeadlessSince, m.BlockedSince, m.LastRoleChangeAt = fromPtr(x.HeadlessSince), fromPtr(x.BlockedSince), fromPtr(x.LastRoleChangeAt)
	for _, b := range x.Blocks {
		m.Blocks = append(m.Blocks, ag.Block{Reason: b.Reason, Rule: ag.Rule(b.Rule), Replica: b.Replica, Message: b.Message})
	}
	m.HandledRequest, m.Swaps = x.HandledRequest, x.Swaps
	if p := x.Promotion; p != nil {
		m.Promotion = &ag.Promotion{Replica: p.Replica, Epoch: p.Epoch, At: utc(p.At), Accepted: p.Accepted, Kind: ag.ErrorKind(p.Kind), Msg: p.Msg, Message: p.Message}
	}
	for _, r := range x.Refusals {
		m.Refusals = append(m.Refusals, ag.Refusal{Replica: r.Replica, Epoch: r.Epoch, Sequence: r.Sequence, At: utc(r.At)})
	}
	for _, u := range x.Setup {
		m.Setup = append(m.Setup, ag.SetupStep{Step: u.Step, Attempts: u.Attempts, LastAttemptAt: utc(u.LastAttemptAt), LastError: u.LastError})
	}
	return m
}

// SetMemory writes the memory into the status; every field that it does not hold stays.
func SetMemory(s *v1alpha1.SQLServerAvailabilityGroupStatus, m ag.Memory) {
	s.InitializationComplete = m.Initialized
	s.BootstrapAttempts = 0
	s.History = nil
	for _, c := range m.History {
		s.History = append(s.History, v1alpha1.RoleChange{
			Kind: c.Kind, From: c.From, To: c.To, Cause: c.Cause, RequestID: c.RequestID, Epoch: c.Epoch,
			StartedAt: metav1.NewTime(c.StartedAt), CompletedAt: metav1.NewTime(c.CompletedAt), Result: c.Result, Timeline: timeline(c.Timeline),
		})
	}
	s.LastRequest = nil
	if r := m.LastResult; r != nil {
		s.LastRequest = &v1alpha1.LastRequestStatus{ID: r.ID, Kind: r.Kind, Target: r.Target, Result: r.Result, Reason: r.Reason,
			Message: r.Message, CompletedAt: toPtr(r.CompletedAt)}
	}
	x := &v1alpha1.MemoryStatus{
		HeadlessSince: toPtr(m.HeadlessSince), BlockedSince: toPtr(m.BlockedSince),
		LastRoleChangeAt: toPtr(m.LastRoleChangeAt), HandledRequest: m.HandledRequest, Swaps: m.Swaps,
	}
	if f := m.PrimaryFailure; f != nil {
		x.PrimaryFailure = &v1alpha1.FailureStatus{Since: metav1.NewTime(f.Since), LastStrikeAt: metav1.NewTime(f.LastStrikeAt), Strikes: f.Strikes, Evidence: f.Evidence, Renewals: f.Renewals}
	}
	for _, r := range m.Recoveries {
		x.Recoveries = append(x.Recoveries, v1alpha1.RecoveryStatus{Replica: r.Replica, Symptom: string(r.Symptom), Since: metav1.NewTime(r.Since),
			LastAttemptAt: toPtr(r.LastAttemptAt), Rung: string(r.Rung), Attempts: r.Attempts, LastMsg: r.LastMsg})
	}
	for _, b := range m.Blocks {
		x.Blocks = append(x.Blocks, v1alpha1.BlockStatus{Reason: b.Reason, Rule: string(b.Rule), Replica: b.Replica, Message: b.Message})
	}
	if p := m.Promotion; p != nil {
		x.Promotion = &v1alpha1.PromotionStatus{Replica: p.Replica, Epoch: p.Epoch, At: metav1.NewTime(p.At), Accepted: p.Accepted, Kind: string(p.Kind), Msg: p.Msg, Message: p.Message}
	}
	for _, r := range m.Refusals {
		x.Refusals = append(x.Refusals, v1alpha1.RefusalStatus{Replica: r.Replica, Epoch: r.Epoch, Sequence: r.Sequence, At: metav1.NewTime(r.At)})
	}
	for _, u := range m.Setup {
		x.Setup = append(x.Setup, v1alpha1.SetupStatus{Step: u.Step, Attempts: u.Attempts, LastAttemptAt: metav1.NewTime(u.LastAttemptAt), LastError: u.LastError})
		if !m.Initialized {
			s.BootstrapAttempts = max(s.BootstrapAttempts, u.Attempts)
		}
	}
	s.Memory = x
}

func steps(in []v1alpha1.TimelineEntry) []ag.Step {
	var out []ag.Step
	for _, e := range in {
		out = append(out, ag.Step{At: utc(e.At), What: e.What})
	}
	return out
}

func timeline(in []ag.Step) []v1alpha1.TimelineEntry {
	var out []v1alpha1.TimelineEntry
	for _, e := range in {
		out = append(out, v1alpha1.TimelineEntry{At: metav1.NewTime(e.At), What: e.What})
	}
	return out
}

func utc(t metav1.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}

func fromPtr(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return utc(*t)
}

func toPtr(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	x := metav1.NewTime(t)
	return &x
}
