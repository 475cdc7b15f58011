package e2e

import (
	"testing"
	"time"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/tests/cluster"
)

// pairFaults are those of two replicas without a witness.
func pairFaults() []faultCase {
	return []faultCase{
		{name: "two replicas: the secondary is killed while it is written, then the primary", topology: pair, beside: true, told: []string{"degraded"}, fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			s.signal(t, s.secondaries[0], "KILL")
			s.waitRestarted(t, s.secondaries[0])
			s.client.waitCount(t, 50, 3*time.Minute)
			s.e.waitGroup(t, s.group, "healthy after the loss of its secondary", 3*time.Minute, healthy)
			s.epoch = s.authority(t).Epoch
			s.signal(t, s.primary, "KILL")
			s.waitGranted(t, s.epoch)
			return func(*api.SQLServerAvailabilityGroup) bool { return s.granted(t) }
		}},
		{name: "two replicas: the primary's node loses its power", topology: pair, told: []string{"the suspicion against {primary}"}, fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			node := s.node[s.primary]
			s.breakNode(t, node, cluster.Faults.Kill, cluster.Faults.Start)
			s.waitMovedOrBlocked(t)
			s.mend(t, node)
			return func(*api.SQLServerAvailabilityGroup) bool { return s.authority(t).Operation == nil }
		}},
	}
}

// witnessFaults are those of two replicas and a witness.
func witnessFaults() []faultCase {
	return []faultCase{
		{name: "two replicas and a witness: the witness is lost", topology: witness, told: []string{"degraded"}, fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			s.signal(t, s.witness, "KILL")
			s.waitRestarted(t, s.witness)
			return s.untouched(t)
		}},
		{name: "two replicas and a witness: the secondary is lost", topology: witness, beside: true, told: []string{"degraded", "r13: it does not answer"}, fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			node := s.node[s.secondaries[0]]
			s.breakNode(t, node, cluster.Faults.Kill, cluster.Faults.Start)
			s.client.waitCount(t, 50, 2*time.Minute)
			s.mend(t, node)
			return s.stayed
		}},
		{name: "two replicas and a witness: the primary is lost", topology: witness, told: []string{"the suspicion against {primary}", "the write lease of {primary} to end"}, fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			node := s.node[s.primary]
			s.breakNode(t, node, cluster.Faults.Kill, cluster.Faults.Start)
			s.waitMoved(t)
			s.client.waitCount(t, 50, 2*time.Minute)
			s.mend(t, node)
			return s.moved
		}},
	}
}
