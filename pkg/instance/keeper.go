//go:build linux

package instance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/lease"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/tsql"
)

// alterTimeout bounds ALTER … SET (REQUIRED_SYNCHRONIZED_SECONDARIES_TO_COMMIT): it
// blocks without a configuration quorum (FG 5.3). A statement whose answer did not come
// may still be executed; the next round reads what is in force.
const alterTimeout = 15 * time.Second

// keeperLoop keeps the commit rule while this run holds the Lease and its server is
// PRIMARY (safety.md §4), so that it works without the controller.
func (m *manager) keeperLoop(ctx context.Context) {
	s := &localSession{m: m}
	defer s.close()
	var keeper lease.Keeper
	for pause(ctx, m.timing().Renew) {
		if !m.mayKeep() {
			keeper = lease.Keeper{}
			s.close()
			m.view.with(func(v *view) { v.commitPending = false })
			continue
		}
		next, err := m.keeperTick(ctx, s, keeper)
		keeper = next
		m.logOnce("commit rule", err)
		if err != nil {
			s.close()
		}
	}
}

// mayKeep: the Lease names this run, and the server said PRIMARY.
func (m *manager) mayKeep() bool {
	v := m.view.snapshot()
	st := m.authority.get()
	return v.serving() && v.localKnown && v.local.role == ag.RolePrimary &&
		st.Record != nil && !st.Incredible && st.Record.Holder.Same(st.Self)
}

// keeperTick is one round: read, plan, carry out. The first step that fails ends it.
func (m *manager) keeperTick(ctx context.Context, s *localSession, keeper lease.Keeper) (lease.Keeper, error) {
	local, err := s.read(ctx)
	if err != nil {
		return keeper, fmt.Errorf("read the own server: %w", err)
	}
	if local.role != ag.RolePrimary {
		return keeper, nil
	}
	if err := m.judgePending(ctx, s, local); err != nil {
		return keeper, err
	}
	record := m.authority.get().Record
	if record == nil || record.Operation != nil {
		return keeper, nil // roles are on the move: the rule is the operation's
	}
	v := m.view.snapshot()
	seen := lease.RuleSeen{
		Record: record.Rule, ServerK: local.k, Self: m.id.Pod, Configured: local.configured,
		Synchronized: local.synchronized, PromotedAt: v.primaryAt, PromotedKnown: v.primaryKnown,
	}
	want := lease.RuleWant{Required: m.cfg.Commit.Required, K: m.cfg.Commit.K, RelaxAfter: m.cfg.Commit.RelaxAfter.Duration, Omit: m.omit}
	keeper, steps := keeper.Plan(want, seen, m.clock.now().Mono)
	for _, step := range steps {
		if err := m.keeperStep(ctx, s, *record, step); err != nil {
			return keeper, fmt.Errorf("%s: %w", step.Kind, err)
		}
		m.log.Info("Commit rule was changed", "step", step.String())
	}
	return keeper, nil
}

func (m *manager) keeperStep(ctx context.Context, s *localSession, before ag.Authority, step lease.RuleStep) error {
	switch step.Kind {
	case lease.StepRecord:
		return m.recordRule(ctx, before, step.Rule)
	case lease.StepAlter:
		c, err := s.open(ctx)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, alterTimeout)
		defer cancel()
		guard := tsql.Guard{Group: m.cfg.Group, Roles: []ag.Role{ag.RolePrimary}}
		return mssql.ExecGuarded(ctx, c, tsql.SetCommitRule(guard, step.K))
	}
	return fmt.Errorf("unknown step %q", step.Kind)
}

// recordRule is R18: it counts only when this very swap is answered with success.
func (m *manager) recordRule(ctx context.Context, before ag.Authority, rule ag.CommitRule) error {
	ctx, cancel := context.WithTimeout(ctx, 2*m.timing().Call)
	defer cancel()
	next := before.Clone()
	next.Rule = rule
	next.Swaps = max(next.Swaps, m.authority.get().Persisted.Swaps)
	sent := m.clock.now().Mono
	a, err := m.api.swap(ctx, before, next)
	if err != nil && m.omit.Has("R18") {
		return nil
	}
	if err != nil {
		return err
	}
	if m.enterAuthority(a, "", sent, false) != lease.StandingHolder {
		return errors.New("the record was written, but this run does not hold the Lease any more")
	}
	return nil
}

// judgePending looks at a configuration commit that waits for its quorum (FG 5.4): for
// more than 60 s it is a condition while authority is proven; without proof the server
// is the primary of a minority, and goes offline.
func (m *manager) judgePending(ctx context.Context, s *localSession, local localState) error {
	pending := m.authority.get().PendingCommit(local.pending, m.clock.now().Mono)
	m.view.with(func(v *view) { v.commitPending = pending != lease.PendingNothing })
	switch pending {
	case lease.PendingNothing:
		m.logOnce("configuration commit", nil)
		return nil
	case lease.PendingCondition:
		m.logOnce("configuration commit", errors.New("a change of the group's configuration has waited for its quorum for more than a minute"))
		return nil
	case lease.PendingTakeOffline:
	}
	c, err := s.open(ctx)
	if err != nil {
		return err
	}
	t := m.timing()
	ctx, cancel := context.WithTimeout(ctx, t.Q)
	defer cancel()
	m.log.Warn("Group is taken offline: its configuration commit waits and nothing proves authority", "pending", local.pending.String())
	guard := tsql.Guard{Group: m.cfg.Group, Roles: []ag.Role{ag.RolePrimary}, Until: local.expiry(m.clock.now().Mono, t.Q)}
	return mssql.ExecGuarded(ctx, c, tsql.Offline(guard))
}
