package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/tests/cluster"
)

// changeCase is one change by a person while a client writes.
type changeCase struct {
	name string
	// quiet: not one write may fail, and nobody may lose the primary's role.
	quiet bool
	// moves: the primary changes exactly once.
	moves bool
	// long: the outage is not bounded by one switchover.
	long   bool
	change func(t *testing.T, c *changeScene)
}

// changeScene is the healthy group before a change.
type changeScene struct {
	*scene
	pods map[string]string // UID of each replica's pod
}

// Changes by a person: fence, larger volumes, other memory, restart, and a move without an
// operator; some of them with the operator killed in the middle. A client writes all the
// time: nothing acknowledged is lost, and its outage is at most one switchover.
func TestChanges(t *testing.T) {
	e := shared
	if os.Getenv("KUBECTL_MSSQL_CHANGES") != "1" {
		t.Skip("skipped: make e2e-changes runs them, about fifteen minutes")
	}
	e.ensureGroup(t, three)
	var table []string
	t.Cleanup(func() { t.Logf("client-seen outage, seconds:\n%s", strings.Join(table, "\n")) })
	for _, c := range changeCases() {
		t.Run(c.name, func(t *testing.T) {
			begin, outcome := time.Now(), "FAILED"
			defer func() {
				table = append(table, fmt.Sprintf("%-75s %s (%s)", c.name, outcome, time.Since(begin).Round(time.Second)))
			}()
			outcome = e.runChange(t, c)
		})
	}
}

func changeCases() []changeCase {
	return []changeCase{
		{name: "a secondary is fenced and comes back", quiet: true, change: func(t *testing.T, c *changeScene) {
			c.fence(t, c.secondaries[1])
			c.unfence(t, c.secondaries[1])
		}},
		{name: "a secondary is fenced and the operator is killed in the middle", quiet: true, change: func(t *testing.T, c *changeScene) {
			done := c.background("fence", "on", c.group, c.secondaries[1], "-n", namespace)
			c.e.waitGroup(t, c.group, "ordered", time.Minute, func(g *api.SQLServerAvailabilityGroup) bool {
				return g.Annotations[api.AnnotationFenced] != ""
			})
			c.killController(t)
			done(t).must(t, 0)
			c.unfence(t, c.secondaries[1])
		}},
		{name: "the primary is fenced: it moves first", moves: true, change: func(t *testing.T, c *changeScene) {
			r := c.e.plugin(t, time.Minute, "fence", "on", c.group, c.primary, "-n", namespace)
			r.must(t, 5)
			c.fence(t, c.primary, "--yes")
			c.unfence(t, c.primary)
		}},
		{name: "the primary is fenced and the operator is killed in the middle", moves: true, change: func(t *testing.T, c *changeScene) {
			done := c.background("fence", "on", c.group, c.primary, "-n", namespace, "--yes")
			c.waitOperation(t)
			c.killController(t)
			done(t).must(t, 0)
			c.unfence(t, c.primary)
		}},
		{name: "volumes grow under load", quiet: true, change: func(t *testing.T, c *changeScene) {
			size := c.largerSize(t)
			c.e.plugin(t, time.Minute, "resize", c.group, "-n", namespace, "--storage", size, "--dry-run=server").must(t, 0)
			c.e.plugin(t, 5*time.Minute, "resize", c.group, "-n", namespace, "--storage", size, "--yes", "--timeout", "4m").must(t, 0)
			c.grown(t, size)
			c.e.plugin(t, time.Minute, "resize", c.group, "-n", namespace, "--storage", size, "--yes").must(t, 0)
			c.e.plugin(t, time.Minute, "resize", c.group, "-n", namespace, "--storage", "1Gi", "--yes").must(t, 4)
		}},
		{name: "volumes grow and the operator is killed in the middle", quiet: true, change: func(t *testing.T, c *changeScene) {
			size := c.largerSize(t)
			done := c.background("resize", c.group, "-n", namespace, "--storage", size, "--yes", "--timeout", "4m")
			c.e.waitGroup(t, c.group, "growing", time.Minute, func(g *api.SQLServerAvailabilityGroup) bool {
				return g.Spec.Storage.DataVolumeSize.Cmp(resource.MustParse(size)) == 0
			})
			c.killController(t)
			done(t).must(t, 0)
			c.grown(t, size)
		}},
		{name: "other memory: a rolling change with one switchover", moves: true, change: func(t *testing.T, c *changeScene) {
			memory := c.otherMemory(t)
			c.e.plugin(t, time.Minute, "resize", c.group, "-n", namespace, "--memory", memory, "--dry-run").must(t, 0)
			c.e.plugin(t, 9*time.Minute, "resize", c.group, "-n", namespace, "--memory", memory, "--yes", "--timeout", "8m").must(t, 0)
			c.renewed(t, memory)
		}},
		{name: "other memory and the operator is killed in the middle", moves: true, change: func(t *testing.T, c *changeScene) {
			memory := c.otherMemory(t)
			done := c.background("resize", c.group, "-n", namespace, "--memory", memory, "--yes", "--timeout", "8m")
			c.oneIsNew(t)
			c.killController(t)
			done(t).must(t, 0)
			c.renewed(t, memory)
		}},
		{name: "a restart of all", moves: true, change: func(t *testing.T, c *changeScene) {
			c.e.plugin(t, 9*time.Minute, "restart", c.group, "-n", namespace, "--yes", "--timeout", "8m", "--reason", "a test").must(t, 0)
			c.renewed(t, "")
		}},
		{name: "a restart of all and the operator is killed in the middle", moves: true, change: func(t *testing.T, c *changeScene) {
			done := c.background("restart", c.group, "-n", namespace, "--yes", "--timeout", "8m")
			c.oneIsNew(t)
			c.killController(t)
			done(t).must(t, 0)
			c.renewed(t, "")
		}},
		{name: "a restart of one secondary", quiet: true, change: func(t *testing.T, c *changeScene) {
			c.e.plugin(t, 5*time.Minute, "restart", c.group, c.secondaries[0], "-n", namespace, "--timeout", "4m").must(t, 0)
			if c.e.podUID(t, c.secondaries[0]) == c.pods[c.secondaries[0]] {
				t.Error("its pod is the same")
			}
		}},
		{name: "a move without an operator", moves: true, change: func(t *testing.T, c *changeScene) {
			target := c.secondaries[0]
			c.e.plugin(t, time.Minute, "failover", c.group, "-n", namespace, "--to", target, "--direct", "--yes").must(t, 4)
			c.scaleOperator(t, 0)
			c.e.plugin(t, 4*time.Minute, "failover", c.group, "-n", namespace, "--to", target, "--direct", "--dry-run").must(t, 0)
			c.e.plugin(t, 4*time.Minute, "failover", c.group, "-n", namespace, "--to", target, "--direct", "--yes", "--timeout", "3m").must(t, 0)
			if a := c.authority(t); a.Holder.Replica != target || a.Operation != nil {
				t.Errorf("the Lease: %+v", a)
			}
			c.scaleOperator(t, 2)
		}},
		{name: "the primary's node dies while no operator runs", moves: true, long: true, change: func(t *testing.T, c *changeScene) {
			if c.e.cluster.Faults() == nil {
				t.Skip("this kind of cluster cannot break its nodes: use CLUSTER=local")
			}
			c.scaleOperator(t, 0)
			c.breakNode(t, c.node[c.primary], cluster.Faults.Kill, cluster.Faults.Start)
			// The full wait: a silent node proves nothing.
			c.e.plugin(t, 4*time.Minute, "failover", c.group, "-n", namespace, "--direct", "--yes", "--timeout", "3m").must(t, 0)
			c.client.waitCount(t, 20, time.Minute)
			c.mend(t, c.node[c.primary])
			c.scaleOperator(t, 2)
		}},
		{name: "a move without an operator, interrupted, is finished by the operator", change: func(t *testing.T, c *changeScene) {
			c.scaleOperator(t, 0)
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, filepath.Join(c.e.bin, "kubectl-mssql"), "failover", c.group, "-n", namespace, "--to", c.secondaries[0], "--direct", "--yes")
			cmd.Env = append(os.Environ(), "KUBECONFIG="+c.e.cluster.Kubeconfig())
			var errOut bytes.Buffer
			cmd.Stderr = &errOut
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			c.waitAuthority(t, "operation", 2*time.Minute, func(a ag.Authority) bool { return a.Operation != nil })
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // its exit code is looked at below
			t.Logf("exit %d\n%s", cmd.ProcessState.ExitCode(), errOut.String())
			if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(errOut.String(), "finishes it") {
				t.Errorf("exit code %d, want 130 and how to go on", code)
			}
			c.scaleOperator(t, 2)
			c.waitAuthority(t, "no operation", 3*time.Minute, func(a ag.Authority) bool { return a.Operation == nil })
		}},
	}
}

// runChange plays one case and gives the outage that the client saw.
func (e *env) runChange(t *testing.T, c changeCase) string {
	t.Helper()
	s := &changeScene{scene: e.scene(t, three, false, false), pods: map[string]string{}}
	for name := range s.node {
		s.pods[name] = e.podUID(t, name)
	}
	t.Cleanup(func() { s.scaleOperator(t, 2) })
	ep := e.watchEndpoints(t, e.group(t, s.group).ListenerName())
	s.client.reset(t)
	before := s.client.waitCount(t, 1, 20*time.Second)
	c.change(t, s)
	e.waitGroup(t, s.group, "healthy after the change", 3*time.Minute, healthy)
	s.client.waitCount(t, 20, time.Minute)
	after := s.client.check(t)
	ep.finish(t)
	moved := s.authority(t).Epoch - s.epoch
	switch {
	case c.quiet && (moved != 0 || len(after.Unknown) != len(before.Unknown) || after.LastError != before.LastError):
		t.Errorf("%d role changes, %d rows without an answer, last error %q", moved, len(after.Unknown)-len(before.Unknown), after.LastError)
	case c.moves && moved != 1:
		t.Errorf("the primary moved %d times, want once", moved)
	}
	if after.LongestGap > 30 && !c.long {
		t.Errorf("the outage of %.1f s is more than one switchover", after.LongestGap)
	}
	return fmt.Sprintf("%.1f", after.LongestGap)
}

func (c *changeScene) fence(t *testing.T, replicaName string, flags ...string) {
	t.Helper()
	c.e.plugin(t, 3*time.Minute, append([]string{"fence", "on", c.group, replicaName, "-n", namespace, "--reason", "a test"}, flags...)...).must(t, 0)
	g := c.e.group(t, c.group)
	r := replica(g, replicaName)
	if !r.Fenced || r.Fence == nil || r.Fence.Reason != "a test" || r.Ready || r.FailoverReady || !strings.Contains(r.FailoverRefusal, "R12: it is fenced") {
		t.Errorf("the status of the fenced replica: %+v", r)
	}
	if g.Status.PrimaryReplica == replicaName {
		t.Error("a fenced replica is primary")
	}
	if list := c.e.plugin(t, time.Minute, "fence", "list", "-n", namespace); !strings.Contains(list.stdout, replicaName) {
		t.Error("it is not listed")
	}
	c.e.plugin(t, time.Minute, "fence", "on", c.group, replicaName, "-n", namespace).must(t, 0)
}

func (c *changeScene) unfence(t *testing.T, replicaName string) {
	t.Helper()
	c.e.plugin(t, 4*time.Minute, "fence", "off", c.group, replicaName, "-n", namespace, "--timeout", "3m").must(t, 0)
}

// background runs the plugin; the function that it returns waits for its end.
func (c *changeScene) background(args ...string) func(t *testing.T) result {
	type ended struct {
		r   result
		err error
	}
	ch := make(chan ended, 1)
	cmd := exec.Command(filepath.Join(c.e.bin, "kubectl-mssql"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.e.cluster.Kubeconfig())
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Start()
	go func() {
		if err == nil {
			_ = cmd.Wait() // the exit code says it
		}
		ch <- ended{result{out.String(), errOut.String(), cmd.ProcessState.ExitCode()}, err}
	}()
	return func(t *testing.T) result {
		t.Helper()
		select {
		case e := <-ch:
			if e.err != nil {
				t.Fatal(e.err)
			}
			t.Logf("$ kubectl-mssql %s  -> exit %d\n%s%s", strings.Join(args, " "), e.r.code, e.r.stdout, e.r.stderr)
			return e.r
		case <-time.After(10 * time.Minute):
			_ = cmd.Process.Kill()
			t.Fatal("the plugin does not end")
		}
		return result{}
	}
}

// oneIsNew waits until the first pod of a rolling change has been replaced.
func (c *changeScene) oneIsNew(t *testing.T) {
	t.Helper()
	c.e.waitGroup(t, c.group, "one pod is new", 4*time.Minute, func(*api.SQLServerAvailabilityGroup) bool {
		uid := c.e.podUID(t, c.secondaries[1])
		return uid != "" && uid != c.pods[c.secondaries[1]]
	})
}

// largerSize is one GiB more than the volumes have.
func (c *changeScene) largerSize(t *testing.T) string {
	t.Helper()
	q := c.e.group(t, c.group).Spec.Storage.DataVolumeSize.DeepCopy()
	q.Add(resource.MustParse("1Gi"))
	return q.String()
}

// otherMemory is another limit than the servers have.
func (c *changeScene) otherMemory(t *testing.T) string {
	t.Helper()
	have := c.e.group(t, c.group).Spec.Resources.Limits[corev1.ResourceMemory]
	if have.Cmp(resource.MustParse("2304Mi")) == 0 {
		return "2560Mi"
	}
	return "2304Mi"
}

// grown: every claim has the size, and no pod was replaced for it.
func (c *changeScene) grown(t *testing.T, size string) {
	t.Helper()
	want := resource.MustParse(size)
	for name, uid := range c.pods {
		var claim corev1.PersistentVolumeClaim
		if err := c.e.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "data-" + name}, &claim); err != nil {
			t.Fatal(err)
		}
		if have := claim.Status.Capacity[corev1.ResourceStorage]; have.Cmp(want) < 0 {
			t.Errorf("the claim of %s has %s", name, have.String())
		}
		if c.e.podUID(t, name) != uid {
			t.Errorf("the pod of %s was replaced", name)
		}
	}
}

// renewed: every pod is another one, with that memory, and SQL Server's own limit follows.
func (c *changeScene) renewed(t *testing.T, memory string) {
	t.Helper()
	g := c.e.group(t, c.group)
	if cond := meta.FindStatusCondition(g.Status.Conditions, api.ConditionRollingChange); cond == nil || cond.Status != metav1.ConditionFalse {
		t.Errorf("the rolling change is not over: %+v", cond)
	}
	for name, uid := range c.pods {
		var p corev1.Pod
		if err := c.e.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &p); err != nil {
			t.Fatal(err)
		}
		if string(p.UID) == uid {
			t.Errorf("the pod of %s is the same", name)
		}
		if memory == "" {
			continue
		}
		if have := p.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory]; have.Cmp(resource.MustParse(memory)) != 0 {
			t.Errorf("%s has %s of memory", name, have.String())
		}
		conf := c.e.kubectl(t, "-n", namespace, "exec", name, "-c", "mssql", "--", "/bin/sh", "-c", "cat /var/opt/mssql/mssql.conf")
		if want := fmt.Sprintf("memorylimitmb = %d", g.Spec.MemoryLimitMB()); !strings.Contains(conf.stdout, want) {
			t.Errorf("mssql.conf of %s has no %q", name, want)
		}
	}
}

// scaleOperator sets the number of controllers and waits until it is so.
func (c *changeScene) scaleOperator(t *testing.T, n int32) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var list appsv1.DeploymentList
	if err := c.e.client.List(ctx, &list, client.MatchingLabels{manifests.LabelPart: manifests.LabelPartValue}); err != nil || len(list.Items) == 0 {
		t.Errorf("find the operator: %d, %v", len(list.Items), err)
		return
	}
	d := &list.Items[0]
	if d.Spec.Replicas == nil || *d.Spec.Replicas != n {
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"replicas": n}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.e.client.Patch(ctx, d, client.RawPatch("application/merge-patch+json", patch)); err != nil {
			t.Errorf("scale the operator: %v", err)
			return
		}
	}
	err := wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		if err := c.e.client.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
			return false, nil //nolint:nilerr // asked again
		}
		return d.Status.Replicas == n && d.Status.ReadyReplicas == n, nil
	})
	if err != nil {
		t.Errorf("the operator has %d of %d controllers ready", d.Status.ReadyReplicas, n)
	}
}
