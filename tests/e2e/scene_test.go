package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
	"github.com/kubectl-mssql/kubectl-mssql/tests/cluster"
)

// group is the availability group that is broken.
const group = "demo"

// scene is the group before a fault, with its clients.
type scene struct {
	e           *env
	primary     string
	epoch       int64 // of the primary's grant
	secondaries []string
	node        map[string]string // of each replica
	client      *writer           // on another node than the primary's, unless asked for
	local       *writer           // on the primary's node, or nil
	undo        map[string]func(ctx context.Context) error
}

// ensureGroup installs the operator and makes the group, where they are not there yet.
func (e *env) ensureGroup(t *testing.T) {
	t.Helper()
	e.createNamespace(t)
	e.plugin(t, 4*time.Minute, "install").must(t, 0)
	g := &api.SQLServerAvailabilityGroup{}
	err := e.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: group}, g)
	if apierrors.IsNotFound(err) {
		e.plugin(t, 6*time.Minute, "create", "ag", group, "-n", namespace, "--replicas", "3", "--database", "orders", "--accept-eula",
			"--image", e.image, "--image-pull-policy", "IfNotPresent", "--storage", "1Gi", "--cpu", "10m", "--timeout", "5m").must(t, 0)
		g = e.group(t, group)
	} else if err != nil {
		t.Fatal(err)
	}
	// Below the wait D, so that a silent primary is suspected before it is fenced.
	before := g.DeepCopy()
	g.Spec.AutomaticFailover.FailoverThresholdSeconds = 10
	if err := e.client.Patch(t.Context(), g, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

// runFault plays one case and gives the outage that the clients saw.
func (e *env) runFault(t *testing.T, c faultCase) string {
	t.Helper()
	g := e.waitGroup(t, group, "healthy before the fault", 90*time.Second, healthy)
	s := &scene{e: e, primary: g.Status.PrimaryReplica, node: map[string]string{}, undo: map[string]func(context.Context) error{}}
	for _, r := range g.Status.ReplicaStatuses {
		var p corev1.Pod
		if err := e.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: r.Name}, &p); err != nil {
			t.Fatal(err)
		}
		s.node[r.Name] = p.Spec.NodeName
		if r.Name != s.primary {
			s.secondaries = append(s.secondaries, r.Name)
		}
	}
	if len(s.secondaries) != 2 {
		t.Fatalf("the group has %d secondaries, want 2", len(s.secondaries))
	}
	s.epoch = s.authority(t).Epoch
	t.Logf("primary %s; nodes %v", s.primary, s.node)
	t.Cleanup(func() { s.mendAll(t) })

	// Rows of an earlier run on the same cluster are still there.
	id, place := strconv.FormatInt(time.Now().Unix(), 36), s.node[s.secondaries[1]]
	if c.beside {
		place = s.node[s.primary]
	}
	s.client = e.startWriter(t, group, id, place)
	writers := []*writer{s.client}
	if c.local {
		s.local = e.startWriter(t, group, id+"-local", s.node[s.primary])
		writers = append(writers, s.local)
	}
	for _, w := range writers {
		w.reset(t)
	}
	ep := e.watchEndpoints(t, g.ListenerName())
	done := c.fault(t, s)
	e.waitGroup(t, group, "healthy by itself", 3*time.Minute, func(g *api.SQLServerAvailabilityGroup) bool {
		return healthy(g) && done(g)
	})
	var outages []string
	for _, w := range writers {
		w.waitCount(t, 20, time.Minute)
		outages = append(outages, fmt.Sprintf("%.1f", w.check(t).LongestGap))
	}
	ep.finish(t)
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
	s.e.waitGroup(t, group, "failed over", 2*time.Minute, s.moved)
}

// signal sends a signal to every process of sqlservr in the replica's container.
func (s *scene) signal(t *testing.T, replica, name string) {
	t.Helper()
	script := `n=0; for p in /proc/[0-9]*; do read -r c < $p/comm && [ "$c" = sqlservr ] && kill -` + name + ` "${p#/proc/}" && n=$((n+1)); done 2>/dev/null; [ $n -gt 0 ]`
	// The container may end before the shell in it could say so.
	if r := s.e.kubectl(t, "-n", namespace, "exec", replica, "-c", "mssql", "--", "/bin/sh", "-c", script); r.code != 0 && r.code != 137 {
		t.Fatalf("no sqlservr in %s took the signal", replica)
	}
}

// breakNode does something to a node and remembers how to undo it.
func (s *scene) breakNode(t *testing.T, node string, do, undo func(cluster.Faults, context.Context, string) error) {
	t.Helper()
	f := s.e.cluster.Faults()
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

// noFailedWrite watches for a while that every client's every write succeeds.
func (s *scene) noFailedWrite(t *testing.T, d time.Duration) {
	t.Helper()
	writers := []*writer{s.client, s.local}
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

// oneAfterTheOther compares the client beside the old primary with the other: the old
// primary had acknowledged its last row before the new one acknowledged its first.
func (s *scene) oneAfterTheOther(t *testing.T) {
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
	last := edges[0].From
	first := edges[1].From.Add(time.Duration(edges[1].Seconds * float64(time.Second)))
	if !last.Before(first) {
		t.Errorf("the old primary acknowledged its last row at %s, after the new one's first at %s", last, first)
	}
	t.Logf("%.1f s between the old primary's last row and the new one's first", first.Sub(last).Seconds())
}

// authority reads the record in the group's Lease; empty while it cannot be read.
func (s *scene) authority(t *testing.T) ag.Authority {
	t.Helper()
	l := &coordinationv1.Lease{}
	if err := s.e.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: api.LeaseName(group)}, l); err != nil {
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
	s.e.plugin(t, 30*time.Second, "failover", group, "-n", namespace, "--to", target, "--yes", "--wait=false").must(t, 0)
}

// killController ends the acting controller at once: SIGKILL, which it cannot answer by
// giving up its lock. Containers of a local cluster are processes of this machine.
func (s *scene) killController(t *testing.T) {
	t.Helper()
	o := manifests.Default()
	l := &coordinationv1.Lease{}
	if err := s.e.client.Get(t.Context(), client.ObjectKey{Namespace: o.Namespace, Name: "kubectl-mssql-controller"}, l); err != nil {
		t.Fatal(err)
	}
	if l.Spec.HolderIdentity == nil {
		t.Fatal("no controller acts")
	}
	pod, _, _ := strings.Cut(*l.Spec.HolderIdentity, "_")
	p := &corev1.Pod{}
	if err := s.e.client.Get(t.Context(), client.ObjectKey{Namespace: o.Namespace, Name: pod}, p); err != nil {
		t.Fatal(err)
	}
	_, id, _ := strings.Cut(p.Status.ContainerStatuses[0].ContainerID, "://")
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range groups {
		b, err := os.ReadFile(file)
		if err != nil || id == "" || !strings.Contains(string(b), id) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		t.Logf("killed the controller %s, process %d", pod, pid)
		return
	}
	t.Fatalf("no process of the container %s of %s", id, pod)
}
