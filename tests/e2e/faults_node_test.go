package e2e

import (
	"testing"
	"time"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/tests/cluster"
)

// suspected is what people must be told while the primary's node is silent: the suspicion,
// the fence, whom it is for.
func suspected() []string {
	return []string{"{primary}: it does not answer", "the suspicion against {primary}", "making sure that {primary} cannot write",
		"s left", "under way: failover from {primary} to ", "r12: "}
}

// silenced is the same with the wait that the fence takes.
func silenced() []string { return append(suspected(), "the write lease of {primary} to end") }

// nodeFaults are faults of nodes and of the network between them.
func nodeFaults() []faultCase {
	return []faultCase{
		{name: "the primary's node loses its power and boots again", topology: three, told: silenced(), fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			node := s.node[s.primary]
			s.breakNode(t, node, cluster.Faults.Kill, cluster.Faults.Start)
			s.waitMoved(t)
			s.mend(t, node)
			return s.moved
		}},
		{name: "the node of the primary and of the acting controller loses its power", topology: three, acting: true, told: silenced(), fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			node := s.node[s.primary]
			s.breakNode(t, node, cluster.Faults.Kill, cluster.Faults.Start)
			s.waitMoved(t)
			s.mend(t, node)
			return s.moved
		}},
		{name: "the primary's node is cut off from everything", topology: three, local: true, short: true, told: silenced(), fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			node := s.node[s.primary]
			s.silence(t, node)
			s.waitMoved(t)
			s.client.waitCount(t, 20, 2*time.Minute)
			s.says(t, "degraded", 8)
			s.refuses(t, s.primary, "R1")
			s.mend(t, node)
			s.local.waitCount(t, 20, 3*time.Minute)
			s.oneAfterTheOther(t, true)
			return s.moved
		}},
		{name: "the primary's node hears, and is not heard", topology: three, local: true, told: silenced(), fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			return s.oneWay(t, cluster.Out)
		}},
		{name: "the primary's node is heard, and does not hear", topology: three, local: true, told: silenced(), fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			return s.oneWay(t, cluster.In)
		}},
		{name: "the primary's node is cut off from the other nodes only", topology: three, beside: true, told: []string{"does not answer"}, fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			node := s.node[s.primary]
			for _, r := range s.secondaries {
				s.partition(t, node, cluster.Cut{From: s.node[r]})
			}
			// Its manager goes on renewing: nobody else may be promoted. It commits nothing either,
			// as nobody answers it: what it has not acknowledged is not lost.
			s.watchFor(t, 45*time.Second, "a failover although the primary renews its Lease", func() bool { return s.authority(t).Epoch == s.epoch })
			s.mend(t, node)
			return func(g *api.SQLServerAvailabilityGroup) bool { return s.stayed(g) && s.authority(t).Rule.K == 1 }
		}},
		{name: "the network of the primary's node comes and goes for five minutes", topology: three, local: true, told: []string{"does not answer"}, fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			node := s.node[s.primary]
			for range 30 {
				s.silence(t, node)
				pass(t, 5*time.Second)
				s.mend(t, node)
				pass(t, 5*time.Second)
			}
			return func(*api.SQLServerAvailabilityGroup) bool { return s.authority(t).Operation == nil }
		}},
		{name: "the primary's node freezes and goes on after the failover", topology: three, local: true, told: silenced(), fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			node := s.node[s.primary]
			s.breakNode(t, node, cluster.Faults.Freeze, cluster.Faults.Thaw)
			s.waitMoved(t)
			s.client.waitCount(t, 20, 2*time.Minute)
			s.mend(t, node)
			s.local.waitCount(t, 20, 3*time.Minute)
			s.oneAfterTheOther(t, false)
			return s.moved
		}},
		{name: "both secondaries' nodes lose their power and boot again", topology: three, beside: true, told: []string{"degraded", "r13: it does not answer"}, fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			for _, r := range s.secondaries {
				s.breakNode(t, s.node[r], cluster.Faults.Kill, cluster.Faults.Start)
			}
			// The server itself does not go on alone: a change of its configuration needs most of
			// the group. The primary stays what it is, and has recorded what it asks for.
			s.waitRule(t, 0, 2*time.Minute)
			for _, r := range s.secondaries {
				s.refuses(t, r, "R1")
			}
			for _, r := range s.secondaries {
				s.mend(t, s.node[r])
			}
			return func(g *api.SQLServerAvailabilityGroup) bool { return s.stayed(g) && s.authority(t).Rule.K == 1 }
		}},
	}
}

// oneWay loses the packets of one direction of the primary's node until another replica
// is primary.
func (s *scene) oneWay(t *testing.T, d cluster.Direction) func(*api.SQLServerAvailabilityGroup) bool {
	t.Helper()
	node := s.node[s.primary]
	s.partition(t, node, cluster.Cut{From: cluster.PeerAll, Direction: d})
	s.waitMoved(t)
	s.client.waitCount(t, 20, 2*time.Minute)
	s.mend(t, node)
	s.local.waitCount(t, 20, 3*time.Minute)
	s.oneAfterTheOther(t, true)
	return s.moved
}
