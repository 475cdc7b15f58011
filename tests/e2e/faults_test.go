package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/tests/cluster"
)

// faultCase breaks something and mends it again. It returns what must then become true
// by itself, besides Healthy.
type faultCase struct {
	name     string
	topology topology
	// local wants a client on the primary's node as well; beside puts the only client there.
	local, beside bool
	fault         func(t *testing.T, s *scene) (done func(g *api.SQLServerAvailabilityGroup) bool)
}

// Faults of processes, pods, nodes and networks, one after the other on one group. Each
// ends healthy by itself, without one acknowledged row lost and without a second
// primary in the Service that clients write to.
func TestFaults(t *testing.T) {
	e := shared
	if os.Getenv("KUBECTL_MSSQL_FAULTS") != "1" {
		t.Skip("skipped: make e2e-faults runs the faults, about ten minutes")
	}
	if e.cluster.Faults() == nil {
		t.Skip("this kind of cluster cannot break its nodes: use CLUSTER=local")
	}
	var table []string
	t.Cleanup(func() { t.Logf("client-seen outage, seconds:\n%s", strings.Join(table, "\n")) })
	for _, c := range faultCases() {
		t.Run(c.name, func(t *testing.T) {
			begin := time.Now()
			e.ensureGroup(t, c.topology)
			outcome := "FAILED"
			defer func() {
				table = append(table, fmt.Sprintf("%-75s %s (%s)", c.name, outcome, time.Since(begin).Round(time.Second)))
			}()
			outcome = e.runFault(t, c)
		})
	}
}

func faultCases() []faultCase {
	return []faultCase{
		{topology: three, name: "sqlservr of the primary is killed", fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			s.signal(t, s.primary, "KILL")
			return func(*api.SQLServerAvailabilityGroup) bool { return s.granted(t) }
		}},
		{topology: three, name: "sqlservr of the primary is stopped in the middle", fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			s.signal(t, s.primary, "STOP")
			return func(*api.SQLServerAvailabilityGroup) bool { return s.granted(t) }
		}},
		{topology: three, name: "the primary's pod is deleted by force", fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			uid := s.e.deletePod(t, s.primary, new(int64))
			return func(*api.SQLServerAvailabilityGroup) bool {
				return s.granted(t) && s.e.podUID(t, s.primary) != uid
			}
		}},
		{topology: three, name: "the primary's node loses its power and boots again", fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			node := s.node[s.primary]
			s.breakNode(t, node, cluster.Faults.Kill, cluster.Faults.Start)
			s.waitMoved(t)
			s.mend(t, node)
			return s.moved
		}},
		{topology: three, name: "the primary's node is cut off from everything", local: true, fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			node := s.node[s.primary]
			s.partition(t, node, cluster.Cut{From: cluster.PeerAll})
			s.waitMoved(t)
			s.client.waitCount(t, 20, 2*time.Minute)
			s.mend(t, node)
			s.local.waitCount(t, 20, 3*time.Minute)
			s.oneAfterTheOther(t)
			return s.moved
		}},
		{topology: three, name: "the primary's node freezes and goes on after the failover", local: true, fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			node := s.node[s.primary]
			s.breakNode(t, node, cluster.Faults.Freeze, cluster.Faults.Thaw)
			s.waitMoved(t)
			s.client.waitCount(t, 20, 2*time.Minute)
			s.mend(t, node)
			s.local.waitCount(t, 20, 3*time.Minute)
			s.oneAfterTheOther(t)
			return s.moved
		}},
		{topology: three, name: "the primary's node cannot reach the API server for a minute", local: true, fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			node := s.node[s.primary]
			s.partition(t, node, cluster.Cut{From: cluster.PeerAPI})
			s.noFailedWrite(t, time.Minute)
			s.mend(t, node)
			return func(g *api.SQLServerAvailabilityGroup) bool { return s.stayed(g) && s.authority(t).Epoch == s.epoch }
		}},
		{topology: three, name: "the API server cannot be reached by anybody for half a minute", local: true, fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			for _, node := range s.node {
				s.partition(t, node, cluster.Cut{From: cluster.PeerAPI})
			}
			s.noFailedWrite(t, 30*time.Second)
			for _, node := range s.node {
				s.mend(t, node)
			}
			return func(g *api.SQLServerAvailabilityGroup) bool { return s.stayed(g) && s.authority(t).Epoch == s.epoch }
		}},
		{topology: three, name: "the controller is killed in the middle of a planned move", fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			target := s.secondaries[0]
			s.requestMove(t, target)
			s.waitOperation(t)
			s.killController(t)
			return func(g *api.SQLServerAvailabilityGroup) bool {
				return g.Status.PrimaryReplica == target && s.authority(t).Operation == nil
			}
		}},
		{topology: three, name: "all pods are deleted at once", fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			old := map[string]string{}
			for replica := range s.node {
				old[replica] = s.e.deletePod(t, replica, nil)
			}
			return func(*api.SQLServerAvailabilityGroup) bool {
				for replica, uid := range old {
					if now := s.e.podUID(t, replica); now == "" || now == uid {
						return false
					}
				}
				return true
			}
		}},
		{topology: three, name: "both secondaries' nodes lose their power and boot again", beside: true, fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			for _, r := range s.secondaries {
				s.breakNode(t, s.node[r], cluster.Faults.Kill, cluster.Faults.Start)
			}
			// The server itself does not go on alone: a change of its configuration needs most of
			// the group. The primary stays what it is, and has recorded what it asks for.
			s.waitRule(t, 0, 2*time.Minute)
			for _, r := range s.secondaries {
				s.mend(t, s.node[r])
			}
			return func(g *api.SQLServerAvailabilityGroup) bool { return s.stayed(g) && s.authority(t).Rule.K == 1 }
		}},
	}
}
