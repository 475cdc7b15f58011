package agops

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/tsql"
)

// Pass is what an action rests on.
type Pass struct {
	Key       ag.Key
	Policy    ag.Policy
	Snapshot  ag.Snapshot
	Authority ag.Authority
	// Swapped is when the swap of this pass was sent, by the executor's own clock;
	// zero when there was none.
	Swapped time.Time
}

// Deadlines of one action. FAILOVER, OFFLINE and SET ROLE return when they are
// accepted (FG 1.3); JOIN waits for the configuration.
const (
	statementTimeout = 15 * time.Second
	joinTimeout      = 30 * time.Second
	// promiseTimeout: the others that were asked are recorded only when all have answered or failed.
	promiseTimeout = 5 * time.Second
	sealTimeout    = 3 * time.Second
	labelTimeout   = 5 * time.Second
	// endpointPause between STOPPED and STARTED (FG 2.1).
	endpointPause = 3 * time.Second
)

// SQLExecutor carries out actions on servers, managers and pods.
type SQLExecutor struct {
	Servers  Servers
	Managers Managers
	Kube     Kube
	Clock    clock.Clock
}

// Execute implements Executor. Swap is the engine's own and not known here.
func (x SQLExecutor) Execute(ctx context.Context, pass Pass, action ag.Action) *ag.Error {
	switch a := action.(type) {
	case ag.Promote:
		return x.promote(ctx, pass, a)
	case ag.TakeOffline:
		return x.guarded(ctx, pass, a.Replica, a.Guard, statementTimeout, anyRole(), func(g tsql.Guard) string { return tsql.Offline(g) })
	case ag.Promise:
		return x.each(ctx, a.Replicas, func(ctx context.Context, replica string) *ag.Error {
			return x.guarded(ctx, pass, replica, ag.Guard{NotAfter: a.Guard.NotAfter}, promiseTimeout, notPrimary(), func(g tsql.Guard) string { return tsql.Offline(g) })
		})
	case ag.Reseat:
		return x.guarded(ctx, pass, a.Replica, a.Guard, statementTimeout, notPrimary(), tsql.SetRoleSecondary)
	case ag.Rejoin:
		return x.guarded(ctx, pass, a.Replica, a.Guard, joinTimeout, notPrimary(), func(g tsql.Guard) string {
			return tsql.Rejoin(g, pass.Policy.External, modeOf(pass.Snapshot, a.Replica))
		})
	case ag.Reseed:
		return x.guarded(ctx, pass, a.Replica, a.Guard, joinTimeout, notPrimary(), func(g tsql.Guard) string {
			return tsql.Reseed(g, pass.Policy.External, a.Databases)
		})
	case ag.RestartEndpoints:
		return x.restartEndpoints(ctx, pass, a)
	case ag.StopEndpoints:
		return x.each(ctx, a.Replicas, func(ctx context.Context, replica string) *ag.Error {
			return x.endpoint(ctx, pass, replica, tsql.StopEndpoint)
		})
	case ag.StartEndpoints:
		return x.each(ctx, a.Replicas, func(ctx context.Context, replica string) *ag.Error {
			return x.endpoint(ctx, pass, replica, tsql.StartEndpoint)
		})
	case ag.ResumeDatabase:
		return x.with(ctx, pass, a.Replica, ag.Guard{}, statementTimeout, func(ctx context.Context, c mssql.Conn) error {
			return c.Exec(ctx, tsql.ResumeDatabase(a.Database))
		})
	case ag.SetCommitRule:
		return x.with(ctx, pass, a.Primary, ag.Guard{}, statementTimeout, func(ctx context.Context, c mssql.Conn) error {
			return mssql.ExecGuarded(ctx, c, tsql.SetCommitRule(tsql.Guard{Group: pass.Policy.Group, Roles: []ag.Role{ag.RolePrimary}}, a.K))
		})
	case ag.SetRoleLabel:
		return x.label(ctx, pass, a)
	case ag.Seal:
		return x.seal(ctx, pass, a)
	case ag.Swap:
	}
	return &ag.Error{Kind: ag.ErrUnknown, Message: fmt.Sprintf("no procedure for %q", action)}
}

// modeOf is the availability mode of a replica in the snapshot.
func modeOf(s ag.Snapshot, replica string) ag.Mode {
	if r := s.Find(replica); r != nil {
		return r.Mode
	}
	return ag.ModeUnknown
}

// anyRole: the server has a replica of the group.
func anyRole() []ag.Role { return append(notPrimary(), ag.RolePrimary) }

// notPrimary: a PRIMARY is never re-seated, rejoined or put under a promise.
func notPrimary() []ag.Role { return []ag.Role{ag.RoleSecondary, ag.RoleResolving} }

// promote sends FAILOVER, only within q after this pass' own swap to phase promoting
// for that very replica and epoch (R5); what is left of q is the statement's expiry.
func (x SQLExecutor) promote(ctx context.Context, pass Pass, a ag.Promote) *ag.Error {
	op := pass.Authority.Operation
	switch {
	case pass.Swapped.IsZero() || op == nil || op.Phase != ag.PhasePromoting || op.Target != a.Replica,
		pass.Authority.Holder.Replica != a.Replica, pass.Authority.Epoch != a.Epoch:
		return &ag.Error{Kind: ag.ErrGuard, Message: fmt.Sprintf("promote %s: no swap to phase promoting for it in this pass: nothing was sent", a.Replica)}
	}
	roles := notPrimary()
	if a.Guard.Role != ag.RoleUnknown {
		roles = []ag.Role{a.Guard.Role}
	}
	q, lease := pass.Policy.Timing.Q, a.Lease
	if !pass.Policy.External {
		lease = 0 // the group has none (FG 1.1)
	}
	return x.with(ctx, pass, a.Replica, a.Guard, statementTimeout, func(ctx context.Context, c mssql.Conn) error {
		server, err := serverTime(ctx, c)
		if err != nil {
			return err
		}
		left := q - x.Clock.Since(pass.Swapped)
		if left <= 0 {
			return &ag.Error{Kind: ag.ErrExpired, Message: fmt.Sprintf("promote %s: more than %s since the swap: nothing was sent", a.Replica, q)}
		}
		guard := tsql.Guard{Group: pass.Policy.Group, Until: server.Add(left), Roles: roles, Sequence: a.Guard.Sequence}
		err = mssql.ExecGuarded(ctx, c, tsql.Failover(guard, lease, a.Force))
		if e := mssql.AsError(err); e != nil && e.Kind == ag.ErrMsg && tsql.LeaseTolerated(e.All) {
			return nil
		}
		return err
	})
}

// guarded sends one batch with the action's guard and an expiry of q in the server's own time.
func (x SQLExecutor) guarded(ctx context.Context, pass Pass, replica string, g ag.Guard, timeout time.Duration, roles []ag.Role, batch func(tsql.Guard) string) *ag.Error {
	if g.Role != ag.RoleUnknown {
		roles = []ag.Role{g.Role}
	}
	return x.with(ctx, pass, replica, g, timeout, func(ctx context.Context, c mssql.Conn) error {
		server, err := serverTime(ctx, c)
		if err != nil {
			return err
		}
		// The guard's deadline is tested after the server's time was read: both count from before now.
		if !g.NotAfter.IsZero() && x.Clock.Now().After(g.NotAfter) {
			return expired(replica)
		}
		return mssql.ExecGuarded(ctx, c, batch(tsql.Guard{
			Group: pass.Policy.Group, Until: server.Add(pass.Policy.Timing.Q), Roles: roles, Sequence: g.Sequence,
		}))
	})
}

// serverTime reads the server's clock. When that fails, the batch was never sent.
func serverTime(ctx context.Context, c mssql.Conn) (time.Time, error) {
	t, err := mssql.ServerTime(ctx, c)
	return t, neverSent(err)
}

// neverSent marks a failure before the first statement: a time-out there leaves nothing in doubt.
func neverSent(err error) error {
	if err == nil {
		return nil
	}
	e := *mssql.AsError(err)
	if e.Kind == ag.ErrTimeout {
		e.Kind = ag.ErrUnreachable
	}
	return &e
}

func expired(replica string) *ag.Error {
	return &ag.Error{Kind: ag.ErrExpired, Message: fmt.Sprintf("%s: the decision is too old: nothing was sent", replica)}
}

// with opens a session with the very pod that was observed.
func (x SQLExecutor) with(ctx context.Context, pass Pass, replica string, g ag.Guard, timeout time.Duration, do func(context.Context, mssql.Conn) error) *ag.Error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r := pass.Snapshot.Find(replica)
	switch {
	case r == nil || r.Pod.IP == "":
		return &ag.Error{Kind: ag.ErrUnreachable, Message: replica + " has no pod with an address: nothing was sent"}
	case g.PodUID != "" && g.PodUID != r.Pod.UID:
		return &ag.Error{Kind: ag.ErrGuard, Message: replica + " runs in another pod by now: nothing was sent"}
	case !g.NotAfter.IsZero() && x.Clock.Now().After(g.NotAfter):
		return expired(replica)
	}
	c, err := x.Servers.Connect(ctx, pass.Key, replica, r.Pod)
	if err != nil {
		return mssql.AsError(neverSent(err))
	}
	defer func() { _ = c.Close() }()
	return mssql.AsError(do(ctx, c))
}

// each runs do for all replicas at once and returns the first error in their order, with
// the names of all that failed.
func (x SQLExecutor) each(ctx context.Context, replicas []string, do func(context.Context, string) *ag.Error) *ag.Error {
	failed := make([]*ag.Error, len(replicas))
	var wait sync.WaitGroup
	for i, replica := range replicas {
		wait.Go(func() { failed[i] = do(ctx, replica) })
	}
	wait.Wait()
	var first *ag.Error
	for i, e := range failed {
		if e == nil {
			continue
		}
		if first == nil {
			e.Message = replicas[i] + ": " + e.Message
			first = e
		}
		first.Failed = append(first.Failed, replicas[i])
	}
	return first
}

func (x SQLExecutor) endpoint(ctx context.Context, pass Pass, replica string, batch func(string) string) *ag.Error {
	r := pass.Snapshot.Find(replica)
	if r == nil || r.Local.EndpointName == "" {
		return &ag.Error{Kind: ag.ErrGuard, Message: replica + ": no mirroring endpoint was seen: nothing was sent"}
	}
	return x.with(ctx, pass, replica, ag.Guard{}, statementTimeout, func(ctx context.Context, c mssql.Conn) error {
		return c.Exec(ctx, batch(r.Local.EndpointName))
	})
}

// restartEndpoints stops and starts one after the other. An endpoint that was
// stopped is started even when the pass has no time left.
func (x SQLExecutor) restartEndpoints(ctx context.Context, pass Pass, a ag.RestartEndpoints) *ag.Error {
	if !a.Guard.NotAfter.IsZero() && x.Clock.Now().After(a.Guard.NotAfter) {
		return expired(fmt.Sprint(a.Replicas))
	}
	if len(a.Replicas) > 0 && a.Guard.PodUID != "" {
		if r := pass.Snapshot.Find(a.Replicas[0]); r == nil || r.Pod.UID != a.Guard.PodUID {
			return &ag.Error{Kind: ag.ErrGuard, Message: a.Replicas[0] + " runs in another pod by now: nothing was sent"}
		}
	}
	for _, replica := range a.Replicas {
		if e := x.endpoint(ctx, pass, replica, tsql.StopEndpoint); e != nil {
			e.Message = replica + ": " + e.Message
			return e
		}
		select {
		case <-ctx.Done():
		case <-x.Clock.After(endpointPause):
		}
		if e := x.endpoint(context.WithoutCancel(ctx), pass, replica, tsql.StartEndpoint); e != nil {
			e.Message = replica + ": " + e.Message
			return e
		}
	}
	return nil
}

func (x SQLExecutor) label(ctx context.Context, pass Pass, a ag.SetRoleLabel) *ag.Error {
	ctx, cancel := context.WithTimeout(ctx, labelTimeout)
	defer cancel()
	r := pass.Snapshot.Find(a.Replica)
	if r == nil || !r.Pod.Exists {
		if a.Role == ag.RoleUnknown {
			return nil // no pod, no label
		}
		return &ag.Error{Kind: ag.ErrGuard, Message: a.Replica + " has no pod to label"}
	}
	readable := a.Role == ag.RoleSecondary && r.Readable
	if err := x.Kube.SetRole(ctx, pass.Key, a.Replica, r.Pod.UID, a.Role, readable); err != nil {
		return &ag.Error{Kind: ag.ErrAPI, Message: err.Error()}
	}
	return nil
}

func (x SQLExecutor) seal(ctx context.Context, pass Pass, a ag.Seal) *ag.Error {
	ctx, cancel := context.WithTimeout(ctx, sealTimeout)
	defer cancel()
	order := SealOrder{AGUID: pass.Policy.UID, Epoch: a.Epoch, Version: a.Version}
	failed := make([]error, len(a.Replicas))
	var wait sync.WaitGroup
	for i, replica := range a.Replicas {
		r := pass.Snapshot.Find(replica)
		if r == nil || r.Pod.IP == "" {
			failed[i] = fmt.Errorf("no pod with an address")
			continue
		}
		wait.Go(func() { failed[i] = x.Managers.Seal(ctx, pass.Key, replica, r.Pod, order) })
	}
	wait.Wait()
	sealed, why := 0, ""
	for i, err := range failed {
		if err == nil {
			sealed++
			continue
		}
		why += fmt.Sprintf("; %s: %v", a.Replicas[i], err)
	}
	if sealed < a.Need {
		return &ag.Error{Kind: ag.ErrUnreachable, Message: fmt.Sprintf("%d of %d needed managers persisted the seal%s", sealed, a.Need, why)}
	}
	return nil
}
