package e2e

import (
	"testing"
	"time"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// processFaults are faults of sqlservr and of pods.
func processFaults() []faultCase {
	return []faultCase{
		{name: "sqlservr of the primary is killed", topology: three, short: true, told: []string{"degraded"}, fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			s.signal(t, s.primary, "KILL")
			return func(*api.SQLServerAvailabilityGroup) bool { return s.granted(t) }
		}},
		{name: "sqlservr of the primary is stopped in the middle", topology: three, told: []string{"failing over", "{primary}: it does not answer"}, fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			s.signal(t, s.primary, "STOP")
			return func(*api.SQLServerAvailabilityGroup) bool { return s.granted(t) }
		}},
		{name: "the old primary's container restarts once more after the failover", topology: three, told: []string{"degraded"}, fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			s.signal(t, s.primary, "KILL")
			s.waitGranted(t, s.epoch)
			s.e.waitGroup(t, s.group, "healthy", 2*time.Minute, healthy)
			// Whoever was elected, the first one of the others has been told to follow: it never
			// comes back as PRIMARY by itself.
			holder, epoch := s.authority(t).Holder.Replica, s.authority(t).Epoch
			other := s.primary
			if holder == s.primary {
				other = s.secondaries[0]
			}
			s.signal(t, other, "KILL")
			s.waitRestarted(t, other)
			return func(g *api.SQLServerAvailabilityGroup) bool {
				return g.Status.PrimaryReplica == holder && s.authority(t).Epoch == epoch && replica(g, other).Role == "SECONDARY"
			}
		}},
		{name: "the new primary is killed while the old one still recovers", topology: three, told: []string{"failing over"}, fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			s.signal(t, s.primary, "KILL")
			s.waitGranted(t, s.epoch)
			second := s.waitPublished(t)
			s.signal(t, second, "KILL")
			s.waitGranted(t, s.authority(t).Epoch)
			return func(*api.SQLServerAvailabilityGroup) bool { return s.authority(t).Operation == nil }
		}},
		{name: "the primary's pod is deleted by force", topology: three, told: []string{"degraded"}, fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			uid := s.e.deletePod(t, s.primary, new(int64))
			return func(*api.SQLServerAvailabilityGroup) bool {
				return s.granted(t) && s.e.podUID(t, s.primary) != uid
			}
		}},
		{name: "all pods are deleted at once", topology: three, told: []string{"degraded"}, fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
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
	}
}
