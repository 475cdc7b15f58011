package e2e

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/tests/cluster"
)

// outage is one way to lose a primary, with the longest that a client may notice of it.
type outage struct {
	name     string
	topology topology
	limit    float64 // seconds, of the median
	lose     func(t *testing.T, s *scene)
}

// diagnosticsBudget is the default time after which a server that stands still is killed:
// twice the interval and the time-out of sp_server_diagnostics.
const diagnosticsBudget = 2 * (10 + 15)

func outages() []outage {
	return []outage{
		{"planned move", three, 3, func(t *testing.T, s *scene) { s.requestMove(t, s.secondaries[0]) }},
		{"pod of the primary deleted", three, 3, func(t *testing.T, s *scene) { s.e.deletePod(t, s.primary, nil) }},
		{"sqlservr killed (kill -9)", three, 5, func(t *testing.T, s *scene) { s.signal(t, s.primary, "KILL") }},
		{"sqlservr frozen (SIGSTOP)", three, diagnosticsBudget + 5, func(t *testing.T, s *scene) { s.signal(t, s.primary, "STOP") }},
		{"node silent", three, 28, func(t *testing.T, s *scene) { s.silence(t, s.node[s.primary]) }},
		{"node silent, and the acting controller on it", three, 28, func(t *testing.T, s *scene) { s.silence(t, s.node[s.primary]) }},
		{"node silent, profile Fast", fast, 20, func(t *testing.T, s *scene) { s.silence(t, s.node[s.primary]) }},
		{"node silent, profile Fast, and the acting controller on it", fast, 20, func(t *testing.T, s *scene) { s.silence(t, s.node[s.primary]) }},
	}
}

// withController tells whether the acting controller is to be on the primary's node.
func (o outage) withController() bool { return strings.Contains(o.name, "acting controller") }

// silence cuts a node off from everything.
func (s *scene) silence(t *testing.T, node string) {
	t.Helper()
	s.partition(t, node, cluster.Cut{From: cluster.PeerAll})
}

// TestOutages measures what a client notices of the loss of a primary, several times a
// kind, and prints the table of docs/concepts/failover.md. Role change and recovery take
// the lower figures of FG 4.6 in the simulated server: 1 to 2 s together.
func TestOutages(t *testing.T) {
	e := shared
	if os.Getenv("KUBECTL_MSSQL_OUTAGES") == "" {
		t.Skip("skipped: make bench-outage measures, about half an hour")
	}
	if !e.local() {
		t.Skip("this kind of cluster cannot be broken in every way: use CLUSTER=local")
	}
	runs, err := strconv.Atoi(os.Getenv("KUBECTL_MSSQL_OUTAGES"))
	if err != nil || runs < 1 {
		t.Fatalf("KUBECTL_MSSQL_OUTAGES is %q, want the number of runs a kind", os.Getenv("KUBECTL_MSSQL_OUTAGES"))
	}
	rows := []string{"| Loss of the primary | Target | Median | Least | Most | Runs |", "| --- | --- | --- | --- | --- | --- |"}
	t.Cleanup(func() { t.Logf("client-seen outage, seconds:\n%s", strings.Join(rows, "\n")) })
	present := ""
	for _, o := range outages() {
		t.Run(o.name, func(t *testing.T) {
			if present != "" && present != o.topology.group {
				e.dropGroup(t, three)
			}
			present = o.topology.group
			e.freshControllers(t)
			e.ensureGroup(t, o.topology)
			var seen []float64
			for i := range runs {
				t.Run(strconv.Itoa(i+1), func(t *testing.T) { seen = append(seen, e.measure(t, o)) })
			}
			if len(seen) == 0 {
				return
			}
			slices.Sort(seen)
			median := seen[len(seen)/2]
			rows = append(rows, fmt.Sprintf("| %s | ≤ %g s | %.1f s | %.1f s | %.1f s | %d |", o.name, o.limit, median, seen[0], seen[len(seen)-1], len(seen)))
			if median > o.limit {
				t.Errorf("the median outage is %.1f s, the target %g s: %.1f", median, o.limit, seen)
			}
		})
	}
}

// measure loses the primary once and gives the longest time without an acknowledged row.
func (e *env) measure(t *testing.T, o outage) float64 {
	t.Helper()
	if strings.HasPrefix(o.name, "node silent") {
		e.placePrimary(t, o.topology, o.withController())
	}
	s := e.scene(t, o.topology, false, false)
	o.lose(t, s)
	e.waitGroup(t, s.group, "a new grant and a writable primary", 3*time.Minute, func(g *api.SQLServerAvailabilityGroup) bool {
		a := s.authority(t)
		return a.Epoch > s.epoch && a.Operation == nil && g.Status.PrimaryReplica != "" && g.Status.PrimaryReplica == a.Holder.Replica
	})
	s.client.waitCount(t, 50, time.Minute)
	r := s.client.check(t)
	if r.LongestGap < 0.1 {
		t.Fatalf("the client noticed nothing: its longest pause was %.2f s", r.LongestGap)
	}
	s.mendAll(t)
	e.waitGroup(t, s.group, "healthy again", 3*time.Minute, healthy)
	return r.LongestGap
}

// placePrimary moves the primary so that it is, or is not, beside the acting controller.
func (e *env) placePrimary(t *testing.T, top topology, beside bool) {
	t.Helper()
	g := e.waitGroup(t, top.group, "healthy before the fault", 3*time.Minute, healthy)
	acting := e.actingNode(t)
	right := func(replica string) bool { return e.podNode(t, replica) == acting == beside }
	if right(g.Status.PrimaryReplica) {
		return
	}
	for _, r := range g.Status.ReplicaStatuses {
		if !right(r.Name) {
			continue
		}
		e.plugin(t, 2*time.Minute, "failover", top.group, "-n", namespace, "--to", r.Name, "--yes").must(t, 0)
		e.waitGroup(t, top.group, "healthy with "+r.Name+" as primary", 3*time.Minute, func(g *api.SQLServerAvailabilityGroup) bool {
			return healthy(g) && g.Status.PrimaryReplica == r.Name
		})
		return
	}
	t.Fatalf("no replica to be primary: the acting controller is on %s", acting)
}

func (e *env) podNode(t *testing.T, name string) string {
	t.Helper()
	p := &corev1.Pod{}
	if err := e.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, p); err != nil {
		t.Fatal(err)
	}
	return p.Spec.NodeName
}
