package agops_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/agops"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/observe"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/tsql"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	simserver "github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/server"
)

const operatorLogin, operatorPassword = "kubectl_mssql", "Op3rator;Passw0rd{}"

// bench runs the real engine, observer and T-SQL against simulated servers over TDS.
// Lease, status, pods and instance managers are in memory; the managers do no more
// than renew the write lease of the holder.
type bench struct {
	t       *testing.T
	cluster *simserver.Cluster
	policy  ag.Policy

	mu      sync.Mutex
	memory  ag.Memory
	auth    ag.Authority
	version int
	request *ag.Request
	runs    []int // of the managers, one higher with each start
	ended   []string
	volumes []int // one higher with each new volume
	labels  []ag.Role
	log     []string
}

func startBench(t *testing.T, n int, databases ...string) *bench {
	t.Helper()
	return startBenchWith(t, engine.Readings{}, n, databases...)
}

// startBenchWith starts servers that take these readings of facts that nobody has confirmed.
func startBenchWith(t *testing.T, readings engine.Readings, n int, databases ...string) *bench {
	t.Helper()
	if testing.Short() {
		t.Skip("starts servers")
	}
	c := simserver.StartCluster(t, n, simserver.ClusterOptions{Name: "ag1", Change: func(_ int, c *simserver.Config) { c.Engine.Readings = readings }})
	b := &bench{t: t, cluster: c, runs: make([]int, n), ended: make([]string, n), volumes: make([]int, n), labels: make([]ag.Role, n)}
	b.policy = ag.Policy{
		Group: "ag1", UID: "uid-1", External: true, AutoFailover: true, K: -1, Databases: databases,
		Threshold: 10 * time.Second, SwitchoverMax: time.Minute, RelaxAfter: 15 * time.Second,
		Timing: ag.Timing{Renew: 2 * time.Second, Call: 1500 * time.Millisecond, A: 5500 * time.Millisecond, Q: 2 * time.Second, L: 15 * time.Second, M: 1500 * time.Millisecond},
	}
	for i, node := range c.Nodes {
		b.policy.Replicas = append(b.policy.Replicas, ag.ReplicaPolicy{Name: node.Name, Ordinal: i, Mode: ag.ModeSynchronous, Auto: true, Readable: true, URL: node.EndpointURL()})
		b.asSA(i, tsql.OperatorLogin(operatorLogin, operatorPassword, "M4ster;Key{}")...)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var managers sync.WaitGroup
	for i := range c.Nodes {
		managers.Go(func() { b.manage(ctx, i) })
	}
	t.Cleanup(func() { cancel(); managers.Wait() })
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("\n" + strings.Join(b.log, "\n"))
		}
	})
	return b
}

func (b *bench) dial(ctx context.Context, i int, user, password string) (mssql.Conn, error) {
	return (&mssql.Dialer{AppName: "test"}).Dial(ctx, "127.0.0.1:"+strconv.Itoa(b.cluster.Nodes[i].Port), mssql.Login{
		User: user, Password: func(context.Context) (string, error) { return password, nil },
	})
}

func (b *bench) asSA(i int, batches ...string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := b.dial(ctx, i, "sa", simserver.SAPassword)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for _, batch := range batches {
		if err := c.Exec(ctx, batch); err != nil {
			b.t.Fatalf("%v in\n%s", err, batch)
		}
	}
}

// manage renews the write lease while this replica's run holds the record.
func (b *bench) manage(ctx context.Context, i int) {
	tick := time.NewTicker(b.policy.Timing.Renew)
	defer tick.Stop()
	for {
		b.renew(ctx, i)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (b *bench) renew(ctx context.Context, i int) {
	b.mu.Lock()
	holds := b.auth.Holder.Nonce == b.nonce(i) && b.ended[i] == ""
	if holds {
		b.auth.Renewals = time.Now().String()
	}
	b.mu.Unlock()
	if !holds {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, b.policy.Timing.Call)
	defer cancel()
	c, err := b.dial(ctx, i, operatorLogin, operatorPassword)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	now, err := mssql.ServerTime(ctx, c)
	if err == nil {
		_ = mssql.ExecGuarded(ctx, c, tsql.RenewWriteLease(tsql.Guard{Group: b.policy.Group, Until: now.Add(b.policy.Timing.Q), Roles: []ag.Role{ag.RolePrimary, ag.RoleSecondary, ag.RoleResolving}}, b.policy.Timing.L))
	}
}

func (b *bench) nonce(i int) string {
	return fmt.Sprintf("%s-run-%d", b.cluster.Nodes[i].Name, b.runs[i])
}
func (b *bench) container(i int) string {
	return fmt.Sprintf("containerd://%s-%d", b.cluster.Nodes[i].Name, b.runs[i])
}

// kill ends a server and its manager; the kubelet reports the container's end.
func (b *bench) kill(i int) {
	b.cluster.Nodes[i].Kill()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended[i] = b.container(i)
}

// start starts it again: a new container in the same pod.
func (b *bench) start(i int) {
	b.t.Helper()
	if err := b.cluster.Nodes[i].Start(); err != nil {
		b.t.Fatal(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.runs[i]++
	b.ended[i] = ""
}

// replaceVolume gives a dead server a blank volume, and starts it as for the first time.
func (b *bench) replaceVolume(i int) {
	b.t.Helper()
	if err := os.RemoveAll(b.cluster.Nodes[i].Dir); err != nil {
		b.t.Fatal(err)
	}
	b.mu.Lock()
	b.volumes[i]++
	b.mu.Unlock()
	b.start(i)
	b.asSA(i, tsql.OperatorLogin(operatorLogin, operatorPassword, "M4ster;Key{}")...)
}

func (b *bench) Load(context.Context, ag.Key) (agops.Loaded, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.policy
	p.Initialized = b.memory.Initialized
	return agops.Loaded{Policy: p, Memory: b.memory, Authority: b.auth.Clone(), Request: b.request}, nil
}

func (b *bench) Save(_ context.Context, _ ag.Key, _, after ag.Memory) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.memory = after
	return nil
}

func (b *bench) Swap(_ context.Context, _ ag.Key, before ag.Authority, swap ag.Swap) (ag.Authority, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if before.Version != b.auth.Version || (swap.RenewalsMatter && before.Renewals != b.auth.Renewals) {
		return ag.Authority{}, agops.ErrChanged
	}
	renewals := b.auth.Renewals
	if b.auth.Epoch != swap.Next.Epoch {
		renewals = ""
	}
	b.version++
	b.auth = swap.Next.Clone()
	b.auth.Exists, b.auth.AGUID, b.auth.Version, b.auth.Renewals = true, b.policy.UID, strconv.Itoa(b.version), renewals
	return b.auth.Clone(), nil
}

func (b *bench) Pods(_ context.Context, _ ag.Key, replicas []string) ([]ag.Pod, []ag.Node, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var pods []ag.Pod
	for i, name := range replicas {
		p := ag.Pod{Exists: true, UID: "pod-" + name, IP: "127.0.0.1", Node: "node", NodeReady: true, BootID: "boot", PVCUID: fmt.Sprintf("pvc-%s-%d", name, b.volumes[i]), RoleLabel: b.labels[i]}
		if b.ended[i] == "" {
			p.Container = ag.Container{ID: b.container(i), Running: true, StartedAt: start}
		} else {
			p.Container = ag.Container{ID: b.ended[i], TerminatedID: b.ended[i], TerminatedReason: "Error", ExitCode: 137}
		}
		pods = append(pods, p)
	}
	return pods, []ag.Node{{Name: "node", Ready: true, BootID: "boot"}}, nil
}

// start of every container and manager; only its being equal matters.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (b *bench) index(replica string) int {
	for i, n := range b.cluster.Nodes {
		if n.Name == replica {
			return i
		}
	}
	panic("no replica " + replica)
}

func (b *bench) Connect(ctx context.Context, _ ag.Key, replica string, _ ag.Pod) (mssql.Conn, error) {
	return b.dial(ctx, b.index(replica), operatorLogin, operatorPassword)
}

func (b *bench) Status(_ context.Context, _ ag.Key, replica string, pod ag.Pod) (ag.Manager, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := b.index(replica)
	if b.ended[i] != "" {
		return ag.Manager{Reach: ag.ReachRefused}, net.ErrClosed
	}
	return ag.Manager{Reach: ag.ReachOK, Nonce: b.nonce(i), PodUID: pod.UID, StartedAt: start, StartedAgo: time.Hour, HasVolumeLock: true,
		HighestEpoch: b.auth.Epoch, HighestRule: b.auth.Rule.Number, SealedEpoch: b.auth.Epoch, LastFailsafeAgo: -1}, nil
}

func (b *bench) Seal(context.Context, ag.Key, string, ag.Pod, agops.SealOrder) error { return nil }

func (b *bench) SetRole(_ context.Context, _ ag.Key, replica, _ string, role ag.Role, _ bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if role == ag.RolePrimary {
		for i, l := range b.labels {
			if l == ag.RolePrimary && b.cluster.Nodes[i].Name != replica {
				b.t.Errorf("%s and %s carry the primary's label", replica, b.cluster.Nodes[i].Name)
			}
		}
	}
	b.labels[b.index(replica)] = role
	return nil
}

func (b *bench) engine() *agops.Engine {
	rc := clock.RealClock{}
	return agops.NewEngine(agops.Options{
		Observer: observe.Observer{Cluster: b, Servers: b, Managers: b, Clock: rc},
		Store:    b, Clock: rc, Identity: "controller/test",
		Executor: agops.SQLExecutor{Servers: b, Managers: b, Kube: b, Clock: rc},
		Setup:    &agops.Setup{Servers: b, Clock: rc, Random: func(p []byte) error { _, err := rand.Read(p); return err }},
		Progress: func(d agops.Done) {
			b.log = append(b.log, fmt.Sprintf("%s %s: %v (%s)", time.Now().Format("05.000"), d.What, d.Err, d.Took.Round(time.Millisecond)))
		},
	})
}

// until steps until the condition holds.
func (b *bench) until(what string, e *agops.Engine, limit time.Duration, ok func(agops.Report) bool) agops.Report {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var r agops.Report
	for {
		next, err := e.Step(ctx, key)
		if err == nil {
			r = next
			if ok(r) {
				return r
			}
		}
		select {
		case <-ctx.Done():
			b.t.Fatalf("waited %s for %s; setup %+v, blocks %+v, findings %+v, authority %+v", limit, what, r.Setup, r.Decision.Blocks, r.Decision.Findings, r.Authority)
		case <-time.After(min(next.Next, 500*time.Millisecond)):
		}
	}
}

// inStep: the group is complete, all copies are SYNCHRONIZED, the labels tell the roles.
func inStep(primary string) func(agops.Report) bool {
	return func(r agops.Report) bool {
		p := r.Snapshot.Primaries()
		if !r.Setup.Done || len(p) != 1 || (primary != "" && p[0] != primary) || r.Authority.Operation != nil || len(r.Authority.Unfenced) > 0 {
			return false
		}
		for _, x := range r.Snapshot.Replicas {
			want := ag.RoleSecondary
			if x.Name == p[0] {
				want = ag.RolePrimary
			}
			if x.Mode == ag.ModeConfigurationOnly {
				continue
			}
			if x.Local.Role != want || x.Pod.RoleLabel != want {
				return false
			}
			if x.Remote != nil {
				for _, d := range x.Remote.Databases {
					if d.Sync != ag.SyncSynchronized {
						return false
					}
				}
			}
		}
		return true
	}
}

// raise does what the manager of the primary does (R15): ALTER, and record once it is in force.
func (b *bench) raise(primary int, k int32) {
	b.t.Helper()
	b.asSA(primary, tsql.SetCommitRule(tsql.Guard{Group: b.policy.Group, Roles: []ag.Role{ag.RolePrimary}}, k))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.version++
	b.auth.Rule.K, b.auth.Rule.Number, b.auth.Version = k, b.auth.Rule.Number+1, strconv.Itoa(b.version)
}

func TestOnServersAGroupIsMadeMovedAndSurvivesItsPrimary(t *testing.T) {
	t.Parallel()
	for name, readings := range map[string]engine.Readings{
		"as assumed": {},
		"the other way round": {
			Planned: engine.PlannedSticky, JoinRole: engine.JoinResolving, SecondaryResolvesOnPrimaryLoss: true,
			AllReplicaRowsOnSecondary: true, ResolvingDatabasesRestoring: true, LeaseUnlimitedUntilRenewed: true,
		},
		"a former primary latches Msg 41104": {Latch41104: 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			liveAndMove(t, startBenchWith(t, readings, 3, "app"))
		})
	}
}

func liveAndMove(t *testing.T, b *bench) {
	t.Helper()
	e := b.engine()
	b.until("the group", e, 90*time.Second, inStep("ag1-0"))

	b.raise(0, 1)
	b.request = &ag.Request{ID: "move", Kind: "failover", Target: "ag1-1"}
	b.until("the planned failover", e, 90*time.Second, inStep("ag1-1"))
	if r := b.memory.LastResult; r == nil || r.Result != "Done" {
		t.Errorf("request answered %+v", r)
	}

	b.kill(1)
	r := b.until("an automatic failover", e, 90*time.Second, func(r agops.Report) bool {
		p := r.Snapshot.Primaries()
		return len(p) == 1 && p[0] != "ag1-1" && r.Authority.Holder.Replica == p[0] && r.Authority.Operation == nil
	})
	b.start(1)
	b.until("the old primary's return", e, 120*time.Second, inStep(r.Snapshot.Primaries()[0]))
}

func TestOnServersAGroupOfClusterTypeNoneIsMadeAndMoved(t *testing.T) {
	t.Parallel()
	b := startBench(t, 2, "app")
	b.policy.External = false
	e := b.engine()
	b.until("the group", e, 90*time.Second, inStep("ag1-0"))
	b.request = &ag.Request{ID: "move", Kind: "failover", Target: "ag1-1"}
	b.until("the planned failover", e, 90*time.Second, inStep("ag1-1"))
	// It comes back as PRIMARY by itself (FG 4.1), in another run of its manager.
	b.kill(1)
	b.until("the loss to be seen", e, 60*time.Second, func(r agops.Report) bool { return len(r.Snapshot.Primaries()) == 0 })
	b.start(1)
	b.until("the primary's return", e, 120*time.Second, func(r agops.Report) bool {
		return inStep("ag1-1")(r) && r.Authority.Holder.Nonce == b.nonce(1)
	})
}

func TestOnServersASecondaryComesBackByItself(t *testing.T) {
	t.Parallel()
	b := startBench(t, 3, "app")
	e := b.engine()
	b.until("the group", e, 90*time.Second, inStep("ag1-0"))
	b.kill(2)
	b.until("the loss to be seen", e, 60*time.Second, func(r agops.Report) bool {
		x := r.Snapshot.Find("ag1-2")
		return x.Remote != nil && !x.Remote.Connected
	})
	b.start(2)
	b.until("its return", e, 120*time.Second, inStep("ag1-0"))
}

func TestOnServersAReplicaThatLostItsVolumeIsSeededAgain(t *testing.T) {
	t.Parallel()
	b := startBench(t, 3, "app")
	e := b.engine()
	b.until("the group", e, 90*time.Second, inStep("ag1-0"))
	b.raise(0, 1)
	b.kill(2)
	b.replaceVolume(2)
	b.until("its copy to be seeded anew", e, 120*time.Second, func(r agops.Report) bool {
		x := r.Snapshot.Find("ag1-2")
		return inStep("ag1-0")(r) && len(x.Local.Databases) == 1 && len(r.Authority.Stale) == 0
	})
	for _, m := range b.auth.Rule.Set {
		if m.Replica == "ag1-2" && m.PVCUID != "pvc-ag1-2-1" {
			t.Errorf("recorded with the volume %s", m.PVCUID)
		}
	}
}

func TestOnServersAGroupWithAWitnessSurvivesItsPrimary(t *testing.T) {
	t.Parallel()
	b := startBench(t, 3, "app")
	b.policy.Replicas[2].Mode, b.policy.Replicas[2].Auto, b.policy.Replicas[2].Readable = ag.ModeConfigurationOnly, false, false
	e := b.engine()
	b.until("the group", e, 90*time.Second, inStep("ag1-0"))
	b.kill(0)
	b.until("an automatic failover", e, 90*time.Second, func(r agops.Report) bool {
		p := r.Snapshot.Primaries()
		return len(p) == 1 && p[0] == "ag1-1" && r.Authority.Operation == nil
	})
	b.start(0)
	b.until("the old primary's return", e, 120*time.Second, inStep("ag1-1"))
}
