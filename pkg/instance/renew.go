//go:build linux

package instance

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/lease"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
)

// retryPause keeps an immediate retry from turning into a busy loop when an attempt
// fails at once.
const retryPause = 200 * time.Millisecond

// leaseLoop reads the Lease every renew interval, and renews it instead while this run
// is its holder (safety.md §2). It runs apart from writeLeaseLoop: a slow API server
// must not hold up the server's renewals, nor a slow server those of the Lease.
func (m *manager) leaseLoop(ctx context.Context) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m.leaseRounds(ctx)
}

func (m *manager) leaseRounds(ctx context.Context) {
	var newest *coordinationv1.Lease
	failures := 0
	for {
		began := m.clock.now().Mono
		var done bool
		newest, done = m.leaseTick(ctx, newest)
		if done {
			failures = 0
		} else {
			failures++
		}
		wait := m.timing().Renew - (m.clock.now().Mono - began)
		if !done && failures <= quickRetries {
			wait = retryPause
		}
		if !pause(ctx, max(wait, retryPause)) {
			return
		}
	}
}

// quickRetries bounds the rounds that follow a failed one at once: within A after the
// last proof every one of them counts, in a long outage they only make load.
const quickRetries = 10

// leaseTick is one round: renew if it may, else read. It returns the newest object, and
// whether the round brought what it was for.
func (m *manager) leaseTick(ctx context.Context, newest *coordinationv1.Lease) (_ *coordinationv1.Lease, done bool) {
	v := m.view.snapshot()
	verdict := m.authority.get().MayRenewLease(v.server())
	if verdict.OK && v.serving() && newest != nil {
		sent := m.clock.now()
		l, err := m.renewLease(ctx, newest, sent)
		switch {
		case err == nil:
			m.apiAnswered("renew")
			return l, m.enterRecord(l, sent.Mono, true) == lease.StandingHolder || m.askPeers(ctx)
		case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
			// The record has changed, which is news and no failure: read it now, and
			// renew in the next round, at once, if this run still may.
			newest, _ = m.readTick(ctx, newest)
			return newest, false
		}
		m.apiFailed("renew", err)
		return newest, m.askPeers(ctx)
	}
	return m.readTick(ctx, newest)
}

func (m *manager) readTick(ctx context.Context, newest *coordinationv1.Lease) (_ *coordinationv1.Lease, done bool) {
	sent := m.clock.now()
	l, err := m.readLease(ctx)
	if err != nil {
		m.apiFailed("read", err)
		return newest, m.askPeers(ctx)
	}
	m.apiAnswered("read")
	switch m.enterRecord(l, sent.Mono, false) {
	case lease.StandingNoProof:
		// R4: the Lease's loss is not the database's. The controller makes it anew.
		return l, m.askPeers(ctx) || m.authority.get().GrantedEpoch == 0
	case lease.StandingHolder:
		// A grant that was read is no proof yet, only a renewal is: it follows at once.
		v := m.view.snapshot()
		return l, !v.serving() || !m.authority.get().MayRenewLease(v.server()).OK
	case lease.StandingOther: // nothing to renew: the office is another's
	}
	return l, true
}

func (m *manager) apiAnswered(verb string) {
	m.metrics.leaseCalls.WithLabelValues(verb, "ok").Inc()
	m.logOnce("API server", nil)
	now := m.clock.now().Mono
	m.view.with(func(v *view) { v.apiOK, v.apiKnown = now, true })
}

func (m *manager) apiFailed(verb string, err error) {
	m.metrics.leaseCalls.WithLabelValues(verb, "error").Inc()
	m.logOnce("API server", err)
}

func (m *manager) readLease(ctx context.Context) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, m.timing().Call)
	defer cancel()
	return m.api.readLease(ctx)
}

func (m *manager) renewLease(ctx context.Context, newest *coordinationv1.Lease, sent lease.Instant) (*coordinationv1.Lease, error) {
	l := newest.DeepCopy()
	if err := state.Renew(l, m.run, sent.Wall); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, m.timing().Call)
	defer cancel()
	return m.api.updateLease(ctx, l)
}

// enterRecord takes in what a request sent at that time has brought.
func (m *manager) enterRecord(l *coordinationv1.Lease, sent time.Duration, renewed bool) lease.Standing {
	a, why := m.records.Decode(l, m.cfg.UID)
	return m.enterAuthority(a, why, sent, renewed)
}

func (m *manager) enterAuthority(a ag.Authority, why string, sent time.Duration, renewed bool) lease.Standing {
	var standing lease.Standing
	var before lease.State
	v := m.view.snapshot()
	after, err := m.authority.learn(func(s lease.State) lease.State {
		before = s
		if renewed {
			s = s.Renewed(a, sent)
		}
		s, standing = s.Learn(a, sent)
		if s.GrantedEpoch != before.GrantedEpoch && v.lastRole != ag.RolePrimary {
			// The write lease of an earlier term is of no account in this one: a candidate
			// that misses one answer while it is promoted must not be killed for it.
			s.WriteLease = lease.WriteLease{}
		}
		return s
	})
	m.logOnce("memory", err)
	switch {
	case standing == lease.StandingNoProof && why == "":
		why = fmt.Sprintf("its epoch %d, rule %d or change %d is older than what was seen (%d, %d, %d)",
			a.Epoch, a.Rule.Number, a.Swaps, after.Persisted.Epoch, after.Persisted.Rule, after.Persisted.Swaps)
		fallthrough
	case standing == lease.StandingNoProof:
		m.logOnce("Lease", fmt.Errorf("the Lease proves nothing: %s", why))
	default:
		m.logOnce("Lease", nil)
	}
	switch {
	case before.GrantedEpoch != after.GrantedEpoch && after.GrantedEpoch > 0:
		m.log.Info("Authority was granted to this run", "epoch", after.GrantedEpoch)
	case before.GrantedEpoch != after.GrantedEpoch:
		m.log.Info("Authority of this run has ended", "epoch", before.GrantedEpoch)
	}
	news := before.Persisted.Epoch != after.Persisted.Epoch || before.Persisted.Rule != after.Persisted.Rule || before.Persisted.Swaps != after.Persisted.Swaps
	if news && after.GrantedEpoch > 0 {
		m.tellPeers(after)
	}
	return standing
}

// writeLeaseLoop looks at the own server and renews SQL Server's write lease, on a
// session that stays open (safety.md §2). It also carries out R6 and R7.
func (m *manager) writeLeaseLoop(ctx context.Context) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m.writeLeaseRounds(ctx)
}

func (m *manager) writeLeaseRounds(ctx context.Context) {
	s := &localSession{m: m}
	defer s.close()
	for {
		began := m.clock.now().Mono
		err := m.writeLeaseTick(ctx, s)
		wait := m.timing().Renew - (m.clock.now().Mono - began)
		if err != nil {
			s.close()
			wait = retryPause
			if !m.view.snapshot().accepted {
				wait = loginWhileStarting // the server is not up yet: no hurry
			}
		}
		if !pause(ctx, max(wait, retryPause)) {
			return
		}
	}
}

// writeLeaseTick is one round. Its order matters: clocks, server, judgement, renewal.
func (m *manager) writeLeaseTick(ctx context.Context, s *localSession) error {
	m.compareClocks()
	if v := m.view.snapshot(); !v.serving() || (!v.accepted && v.lastRole == ag.RoleUnknown) {
		m.view.missed(v.loginProblem)
		return nil
	}
	local, err := s.read(ctx)
	m.compareClocks() // a jump since the last look would make what was read of the write lease untrue
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the loop was told to end: what its last read said is no news
	}
	if err != nil {
		m.view.missed(err.Error())
		m.logOnce("own server", err)
		m.judge(nil)
		return err
	}
	m.logOnce("own server", nil)
	m.view.saw(local)
	m.judge(&local)
	if !m.hasAuthority() {
		return nil
	}
	return m.renewWriteLease(ctx, s, local)
}

// compareClocks is R6's look at both clocks.
func (m *manager) compareClocks() {
	now, jumped := m.clock.now(), false
	m.change(func(st lease.State) lease.State {
		st, jumped = st.Tick(now)
		return st
	})
	if jumped {
		m.log.Warn("Clock jumped: every proof of authority is void")
	}
}

// change is for changes that are never persisted.
func (m *manager) change(f func(lease.State) lease.State) {
	_, err := m.authority.learn(f)
	m.logOnce("memory", err)
}

// suspect is the server as a kill must see it: one that does not answer while this run
// holds the Lease may have become PRIMARY after its last word. Nobody else may take
// over as long as its manager renews, so it counts as one.
func (m *manager) suspect(v viewCopy) lease.Server {
	server := v.server()
	if server.Role == ag.RoleUnknown && m.authority.get().GrantedEpoch > 0 {
		server.LastRole = ag.RolePrimary
	}
	return server
}

// judge carries out R6 and R7 on what the server just said, or on its silence.
func (m *manager) judge(local *localState) {
	if !m.cfg.External {
		return
	}
	v := m.view.snapshot()
	now := m.clock.now().Mono
	in := lease.KillInput{Now: now, Server: m.suspect(v)}
	if local != nil && local.leaseKnown {
		in.Remaining, in.RemainingKnown = local.lease, true
	}
	if in.RemainingKnown && in.Remaining > 0 && local.role == ag.RolePrimary {
		// What the server reports comes before what is remembered: the batch that promoted
		// it has renewed the write lease, which this manager has not seen otherwise.
		m.change(func(s lease.State) lease.State {
			if s.JumpUnchecked {
				return s
			}
			return s.WriteLeaseSeen(in.Remaining, local.received)
		})
	}
	verdict := m.authority.get().Kill(in)
	if verdict.OK {
		m.kill(exitf(ExitLeaseKill, "sqlservr was killed: %s", verdict.Why))
		return
	}
	if !in.RemainingKnown {
		if local != nil && (local.leaseOff || local.role != ag.RolePrimary) {
			// No write lease is in force that a clock jump could have made longer.
			m.change(func(s lease.State) lease.State { s.JumpUnchecked = false; return s })
		}
		return
	}
	m.change(func(s lease.State) lease.State {
		if s.JumpUnchecked {
			return s.JumpChecked(in.Remaining, local.received)
		}
		return s
	})
}

// renewWriteLease sends one renewal, if authority is proven at the moment of sending.
func (m *manager) renewWriteLease(ctx context.Context, s *localSession, local localState) error {
	v := m.view.snapshot()
	if !v.serving() || local.role == ag.RoleNone {
		return nil
	}
	var verdict lease.Verdict
	var now time.Duration
	m.change(func(st lease.State) lease.State {
		now = m.clock.now().Mono
		verdict = st.MayRenewWriteLease(v.server(), now)
		if verdict.OK {
			return st.WriteLeaseSent(now) // entered before it is sent: it may take effect whatever the answer
		}
		return st
	})
	if !verdict.OK {
		if m.authority.get().GrantedEpoch > 0 && !v.noWriteLease && !verdict.Expected {
			m.logOnce("write lease", fmt.Errorf("the write lease is not renewed: %s", verdict.Why))
		}
		return nil
	}
	err := s.renew(ctx, local, now)
	var e *ag.Error
	switch {
	case err == nil:
	case errors.As(err, &e) && e.Has(ag.MsgLeaseShorter):
		err = nil // a longer one is in force (FG 5.5)
	case errors.As(err, &e) && e.Has(ag.MsgLeaseNotEnabled):
		m.view.with(func(v *view) { v.noWriteLease = true })
		m.logOnce("write lease", errors.New("the group was made without a write lease (Msg 47116): only proof of death fences this primary"))
		return nil
	}
	result := "ok"
	if err != nil {
		result = "error"
	}
	m.metrics.writeLeaseRenewals.WithLabelValues(result).Inc()
	m.logOnce("write lease", err)
	if errors.As(err, &e) && (e.Kind == ag.ErrMsg || e.Kind == ag.ErrExpired) {
		// The session is fine; the next round retries after the usual pause.
		return nil
	}
	return err
}
