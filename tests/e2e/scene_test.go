package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
	"github.com/kubectl-mssql/kubectl-mssql/tests/cluster"
)

// topology is one availability group that is broken, with the flags that make it.
type topology struct {
	group string
	flags []string
	// secondaries are its replicas with data but the primary.
	secondaries int
}

var (
	three   = topology{"demo", []string{"--replicas", "3"}, 2}
	pair    = topology{"pair", []string{"--replicas", "2"}, 1}
	witness = topology{"voted", []string{"--replicas", "2", "--witness"}, 1}
	fast    = topology{"fast", []string{"--replicas", "3", "--profile", "Fast"}, 2}
)

// scene is the group before a fault, with its clients.
type scene struct {
	e           *env
	group       string
	primary     string
	epoch       int64 // of the primary's grant
	secondaries []string
	witness     string            // or empty
	node        map[string]string // of each replica
	restarts    map[string]int32  // of its container, before the fault
	client      *writer           // on another node than the primary's, unless asked for
	local       *writer           // on the primary's node, or nil
	undo        map[string]func(ctx context.Context) error
	// timeline says when what was seen, from the fault on.
	timeline *timeline
	// addresses of pods, known to the timeline alone.
	naming    sync.Mutex
	addresses map[string]string
}

// ensureGroup installs the operator and makes the group, where they are not there yet.
func (e *env) ensureGroup(t *testing.T, top topology) {
	t.Helper()
	e.createNamespace(t)
	e.plugin(t, 4*time.Minute, "install").must(t, 0)
	g := &api.SQLServerAvailabilityGroup{}
	err := e.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: top.group}, g)
	switch {
	case apierrors.IsNotFound(err):
		args := append([]string{"create", "ag", top.group, "-n", namespace, "--database", "orders", "--accept-eula",
			"--image", e.image, "--image-pull-policy", "IfNotPresent", "--storage", "1Gi", "--cpu", "10m", "--timeout", "5m"}, top.flags...)
		e.plugin(t, 6*time.Minute, args...).must(t, 0)
	case err != nil:
		t.Fatal(err)
	}
}

// dropGroup makes room: the machine has few processors.
func (e *env) dropGroup(t *testing.T, top topology) {
	t.Helper()
	g := &api.SQLServerAvailabilityGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: top.group}}
	if err := e.client.Delete(t.Context(), g); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// scene looks at the healthy group and starts the clients of the case.
func (e *env) scene(t *testing.T, top topology, local, beside bool) *scene {
	t.Helper()
	g := e.waitGroup(t, top.group, "healthy before the fault", 2*time.Minute, healthy)
	s := &scene{e: e, group: top.group, primary: g.Status.PrimaryReplica, node: map[string]string{}, restarts: map[string]int32{}, undo: map[string]func(context.Context) error{}}
	for i, r := range g.Status.ReplicaStatuses {
		var p corev1.Pod
		if err := e.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: r.Name}, &p); err != nil {
			t.Fatal(err)
		}
		s.node[r.Name] = p.Spec.NodeName
		if len(p.Status.ContainerStatuses) > 0 {
			s.restarts[r.Name] = p.Status.ContainerStatuses[0].RestartCount
		}
		switch {
		case g.Spec.Replicas[i].AvailabilityMode == api.ConfigurationOnly:
			s.witness = r.Name
		case r.Name != s.primary:
			s.secondaries = append(s.secondaries, r.Name)
		}
	}
	if len(s.secondaries) != top.secondaries {
		t.Fatalf("the group has %d secondaries, want %d", len(s.secondaries), top.secondaries)
	}
	s.epoch = s.authority(t).Epoch
	t.Logf("primary %s; nodes %v; the acting controller on %s", s.primary, s.node, e.actingNode(t))
	t.Cleanup(func() { s.mendAll(t) })

	// Rows of an earlier run on the same cluster are still there.
	id, place := strconv.FormatInt(time.Now().UnixMilli(), 36), s.node[s.secondaries[len(s.secondaries)-1]]
	if beside {
		place = s.node[s.primary]
	}
	s.client = e.startWriter(t, top.group, id, place)
	if local {
		s.local = e.startWriter(t, top.group, id+"-local", s.node[s.primary])
	}
	for _, w := range s.writers() {
		w.reset(t)
	}
	s.timeline = s.watchTimeline(t)
	return s
}

func (s *scene) writers() []*writer {
	if s.local != nil {
		return []*writer{s.client, s.local}
	}
	return []*writer{s.client}
}

// runFault plays one case and gives the outage that the clients saw.
func (e *env) runFault(t *testing.T, c faultCase) string {
	t.Helper()
	if c.acting {
		e.placePrimary(t, c.topology, true)
	}
	s := e.scene(t, c.topology, c.local, c.beside)
	ep := e.watchEndpoints(t, e.group(t, s.group).ListenerName())
	o := s.watch(t)
	done := c.fault(t, s)
	e.waitGroup(t, s.group, "healthy by itself", 3*time.Minute, func(g *api.SQLServerAvailabilityGroup) bool {
		return healthy(g) && done(g)
	})
	var outages []string
	for _, w := range s.writers() {
		// The Service may lead nowhere for so long after an outage of the API server: Kubernetes'
		// controller of EndpointSlices tries again with pauses that double.
		w.waitCount(t, 20, 4*time.Minute)
		outages = append(outages, fmt.Sprintf("%.1f", w.check(t).LongestGap))
	}
	ep.finish(t)
	o.finish(t, c.told)
	return strings.Join(outages, ", on the primary's node ")
}

// moved: another replica is the primary.
func (s *scene) moved(g *api.SQLServerAvailabilityGroup) bool {
	return g.Status.PrimaryReplica != "" && g.Status.PrimaryReplica != s.primary
}

// granted: there was a failover, be it back onto the old primary: it has every commit, and
// may have restarted before another one was chosen.
func (s *scene) granted(t *testing.T) bool { return s.authority(t).Epoch > s.epoch }

func (s *scene) stayed(g *api.SQLServerAvailabilityGroup) bool {
	return g.Status.PrimaryReplica == s.primary
}

func (s *scene) waitMoved(t *testing.T) {
	t.Helper()
	s.e.waitGroup(t, s.group, "failed over", 2*time.Minute, s.moved)
}

// signal sends a signal to every process of sqlservr in the replica's container: on a
// local cluster it is a process of this machine, so that no exec stands in between.
func (s *scene) signal(t *testing.T, replica, name string) {
	t.Helper()
	number := map[string]syscall.Signal{"KILL": syscall.SIGKILL, "STOP": syscall.SIGSTOP}[name]
	hit := 0
	for _, pid := range processesOf(t, s.e.containerID(t, replica)) {
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err == nil && strings.TrimSpace(string(comm)) == "sqlservr" && syscall.Kill(pid, number) == nil {
			hit++
		}
	}
	if hit == 0 {
		t.Fatalf("no sqlservr in %s took the signal", replica)
	}
	s.timeline.note("SIG%s to sqlservr of %s", name, replica)
}

// breakNode does something to a node and remembers how to undo it.
func (s *scene) breakNode(t *testing.T, node string, do, undo func(cluster.Faults, context.Context, string) error) {
	t.Helper()
	f := s.e.cluster.Faults()
	s.timeline.note("%s is broken", node)
	s.undo[node] = func(ctx context.Context) error { return undo(f, ctx, node) }
	if err := do(f, t.Context(), node); err != nil {
		t.Fatal(err)
	}
}

func (s *scene) partition(t *testing.T, node string, cut cluster.Cut) {
	t.Helper()
	s.breakNode(t, node, func(f cluster.Faults, ctx context.Context, node string) error { return f.Partition(ctx, node, cut) }, cluster.Faults.Heal)
}

func (s *scene) mend(t *testing.T, node string) {
	t.Helper()
	undo := s.undo[node]
	if undo == nil {
		return
	}
	s.timeline.note("%s is mended", node)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := undo(ctx); err != nil {
		t.Fatal(err)
	}
	delete(s.undo, node)
}

func (s *scene) mendAll(t *testing.T) {
	for node, undo := range s.undo {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		if err := undo(ctx); err != nil {
			t.Errorf("mend %s: %v", node, err)
		}
		cancel()
	}
}

// newcomer is a client that comes in the middle of the fault, on a node that has none: it
// must find the primary, too.
func (s *scene) newcomer(t *testing.T) {
	t.Helper()
	for replica, node := range s.node {
		if replica == s.primary || node == s.node[s.primary] {
			continue
		}
		w := s.e.startWriter(t, s.group, strings.TrimPrefix(s.client.name, "writer-")+"-late", node)
		r, err := w.report(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s on %s: %d rows from its first connection on", w.name, node, r.Count)
		return
	}
	t.Fatal("all replicas are on the primary's node")
}

// noFailedWrite watches for a while that every client's every write succeeds.
func (s *scene) noFailedWrite(t *testing.T, d time.Duration) {
	t.Helper()
	writers := s.writers()
	before := make([]report, len(writers))
	for i, w := range writers {
		before[i] = w.waitCount(t, 1, 20*time.Second)
	}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	asked := 0
	err := wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		for i, w := range writers {
			r, err := w.report(ctx)
			if err != nil {
				continue // the report is read again below
			}
			asked++
			if len(r.Unknown) > len(before[i].Unknown) || r.LastError != before[i].LastError {
				return false, fmt.Errorf("%s: a write failed: %s", w.name, r.LastError)
			}
		}
		return false, nil
	})
	if ctx.Err() == nil {
		t.Fatal(err)
	}
	if asked == 0 {
		t.Fatal("no writer could be asked")
	}
	for i, w := range writers {
		after := w.waitCount(t, 1, 20*time.Second)
		if after.LastError != before[i].LastError {
			t.Fatalf("%s: a write failed: %s", w.name, after.LastError)
		}
		t.Logf("%s: %d rows in %s, none failed", w.name, after.Count-before[i].Count, d)
	}
}

// oneAfterTheOther compares the client beside the old primary with the other. The old
// primary had acknowledged its last row, and its client had been told that the next one
// failed, before the new primary acknowledged its first. That each acknowledged row of
// both is in the surviving history is compared at the end of every case. A client that
// stands still with its node is not awake, and is told when it goes on.
func (s *scene) oneAfterTheOther(t *testing.T, awake bool) {
	t.Helper()
	var edges [2]gap
	for i, w := range []*writer{s.local, s.client} {
		r, err := w.report(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Gaps) == 0 || len(r.Unknown) == 0 {
			t.Fatalf("%s noticed nothing of the failover", w.name)
		}
		edges[i] = slices.MaxFunc(r.Gaps, func(a, b gap) int { return int(a.Seconds*1000) - int(b.Seconds*1000) })
	}
	last, failed := edges[0].From, edges[0].Failed
	first := edges[1].From.Add(time.Duration(edges[1].Seconds * float64(time.Second)))
	if !last.Before(first) {
		t.Errorf("the old primary acknowledged its last row at %s, after the new one's first at %s", last, first)
	}
	if awake && (failed.IsZero() || !failed.Before(first)) {
		t.Errorf("the client beside the old primary was told of a failed write at %s, not before the new primary's first row at %s", failed, first)
	}
	t.Logf("%.1f s between the old primary's last row and the new one's first; the first failed write beside the old one %.1f s after its last row",
		first.Sub(last).Seconds(), failed.Sub(last).Seconds())
}

// authority reads the record in the group's Lease; empty while it cannot be read.
func (s *scene) authority(t *testing.T) ag.Authority {
	t.Helper()
	l := &coordinationv1.Lease{}
	if err := s.e.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: api.LeaseName(s.group)}, l); err != nil {
		return ag.Authority{}
	}
	a, _ := state.Decode(l, "")
	return a
}

func (s *scene) waitAuthority(t *testing.T, what string, timeout time.Duration, ok func(ag.Authority) bool) {
	t.Helper()
	begin := time.Now()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, timeout, true, func(context.Context) (bool, error) {
		a := s.authority(t)
		return a.Exists && ok(a), nil
	})
	if err != nil {
		t.Fatalf("the Lease's record: no %s after %s: %+v", what, timeout, s.authority(t))
	}
	t.Logf("the Lease's record: %s after %s", what, time.Since(begin).Round(100*time.Millisecond))
}

// waitRule waits until each commit waits for k secondaries.
func (s *scene) waitRule(t *testing.T, k int32, timeout time.Duration) {
	t.Helper()
	s.waitAuthority(t, fmt.Sprintf("k = %d", k), timeout, func(a ag.Authority) bool { return a.Rule.K == k })
}

func (s *scene) waitOperation(t *testing.T) {
	t.Helper()
	s.waitAuthority(t, "operation", 30*time.Second, func(a ag.Authority) bool { return a.Operation != nil })
}

// requestMove asks for a planned move and does not wait for it.
func (s *scene) requestMove(t *testing.T, target string) {
	t.Helper()
	s.e.plugin(t, 30*time.Second, "failover", s.group, "-n", namespace, "--to", target, "--yes", "--wait=false").must(t, 0)
}
