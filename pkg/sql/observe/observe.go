package observe

import (
	"context"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/tsql"
)

// Cluster shows what the API server knows. A replica without a pod has a zero Pod
// with the UID of its data volume's claim, if there is one.
type Cluster interface {
	Pods(ctx context.Context, key ag.Key, replicas []string) ([]ag.Pod, []ag.Node, error)
}

// Servers opens a session with the server of one pod.
type Servers interface {
	Connect(ctx context.Context, key ag.Key, replica string, pod ag.Pod) (mssql.Conn, error)
}

// Managers asks a replica's instance manager.
type Managers interface {
	Status(ctx context.Context, key ag.Key, replica string, pod ag.Pod) (ag.Manager, error)
}

// Observer takes snapshots.
type Observer struct {
	Cluster  Cluster
	Servers  Servers
	Managers Managers
	Clock    clock.PassiveClock
	// Timeout for one replica; 0 is a little less than the renew interval, so that a
	// pass with a silent replica does not outlast a renewal.
	Timeout time.Duration
	// Patience with those that have not answered lately; nil gives everybody Timeout.
	Patience *Patience
}

// margin by which the deadline for one replica is shorter than the renew interval.
const margin = 100 * time.Millisecond

// minTimeout is enough for dial, TLS, login and one batch on a healthy network.
const minTimeout = time.Second

// Observe asks everybody. holder is the replica that the Lease names: when several
// replicas say PRIMARY, its view of the others counts.
func (o Observer) Observe(ctx context.Context, key ag.Key, p ag.Policy, holder string) (ag.Snapshot, error) {
	names := make([]string, len(p.Replicas))
	for i, r := range p.Replicas {
		names[i] = r.Name
	}
	pods, nodes, err := o.Cluster.Pods(ctx, key, names)
	if err != nil {
		return ag.Snapshot{}, err
	}
	snapshot := ag.Snapshot{Nodes: nodes, Replicas: make([]ag.Replica, len(p.Replicas))}
	views := make([]remoteView, len(p.Replicas))
	batch := tsql.Observe(p.Group)
	var wait sync.WaitGroup
	for i, r := range p.Replicas {
		snapshot.Replicas[i] = ag.Replica{
			Name: r.Name, Ordinal: r.Ordinal, Mode: r.Mode, Auto: r.Auto, Fenced: r.Fenced, Readable: r.Readable,
			Pod: pods[i], Local: ag.Local{Reach: ag.ReachNoPod}, Manager: ag.Manager{Reach: ag.ReachNoPod},
		}
		if pods[i].IP == "" {
			continue
		}
		replica, asked := &snapshot.Replicas[i], snapshot.Replicas[i]
		who, full := key.Namespace+"/"+r.Name+"/"+pods[i].UID, o.timeout(p)
		wait.Go(func() {
			o.patiently(ctx, "server "+who, full, func(ctx context.Context) ag.Reach {
				replica.Local, views[i] = o.server(ctx, key, batch, asked)
				return replica.Local.Reach
			}, func(ctx context.Context) ag.Reach {
				local, _ := o.server(ctx, key, batch, asked)
				return local.Reach
			})
		})
		wait.Go(func() {
			o.patiently(ctx, "manager "+who, full, func(ctx context.Context) ag.Reach {
				replica.Manager = o.manager(ctx, key, asked)
				return replica.Manager.Reach
			}, func(ctx context.Context) ag.Reach { return o.manager(ctx, key, asked).Reach })
		})
	}
	wait.Wait()
	addRemote(&snapshot, views, holder)
	snapshot.ObservedAt = o.Clock.Now().UTC()
	return snapshot, ctx.Err()
}

func (o Observer) timeout(p ag.Policy) time.Duration {
	if o.Timeout > 0 {
		return o.Timeout
	}
	return max(p.Timing.Renew-margin, minTimeout)
}

// patiently asks within the time that this one gets; later is how it is asked once more
// when it did not answer.
func (o Observer) patiently(ctx context.Context, who string, full time.Duration, now, later func(context.Context) ag.Reach) {
	limited, cancel := context.WithTimeout(ctx, o.Patience.limit(who, full))
	defer cancel()
	answered := now(limited) != ag.ReachTimeout
	o.Patience.note(ctx, who, answered, full, func(ctx context.Context) bool { return later(ctx) != ag.ReachTimeout })
}

func (o Observer) manager(ctx context.Context, key ag.Key, r ag.Replica) ag.Manager {
	if o.Managers == nil {
		return ag.Manager{}
	}
	m, err := o.Managers.Status(ctx, key, r.Name, r.Pod)
	if err != nil && (m.Reach == ag.ReachOK || m.Reach == ag.ReachUnknown) {
		m = ag.Manager{Reach: ag.ReachError, Error: err.Error()}
	}
	return m
}

// server asks one server. A connection that had died since the last pass is
// replaced once: a read may be repeated.
func (o Observer) server(ctx context.Context, key ag.Key, batch string, r ag.Replica) (ag.Local, remoteView) {
	var err error
	for range 2 {
		var results []mssql.Result
		results, err = o.ask(ctx, key, batch, r)
		if err == nil {
			return parse(results, r.Name)
		}
		if mssql.AsError(err).Kind != ag.ErrTimeout || ctx.Err() != nil {
			break
		}
	}
	if ctx.Err() != nil && mssql.AsError(err).Kind == ag.ErrUnknown {
		err = &ag.Error{Kind: ag.ErrTimeout, Message: err.Error()}
	}
	return ag.Local{Reach: mssql.Reach(err), Err: mssql.AsError(err)}, remoteView{}
}

func (o Observer) ask(ctx context.Context, key ag.Key, batch string, r ag.Replica) ([]mssql.Result, error) {
	conn, err := o.Servers.Connect(ctx, key, r.Name, r.Pod)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	results, err := conn.Query(ctx, batch)
	if err == nil && len(results) != tsql.ObserveSets {
		err = &ag.Error{Kind: ag.ErrUnknown, Message: "the server answered the observation with the wrong number of result sets"}
	}
	return results, err
}

// addRemote gives each replica what the primary says about it: the primary that the
// Lease names, else the only one. Two that the Lease does not name are no view.
func addRemote(s *ag.Snapshot, views []remoteView, holder string) {
	primary, primaries := -1, 0
	for i, r := range s.Replicas {
		if r.Local.Reach != ag.ReachOK || r.Local.Role != ag.RolePrimary {
			continue
		}
		primaries++
		if primary < 0 || r.Name == holder {
			primary = i
		}
	}
	if primary < 0 || (primaries > 1 && s.Replicas[primary].Name != holder) {
		return
	}
	for i := range s.Replicas {
		if i == primary {
			continue
		}
		if remote, ok := views[primary].about(s.Replicas[i].Name); ok {
			s.Replicas[i].Remote = &remote
		}
	}
}

// equalServer compares server names as the agent does: case does not matter (FG 7.4).
func equalServer(a, b string) bool { return strings.EqualFold(a, b) }
