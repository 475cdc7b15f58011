package e2e

import (
	"context"
	"testing"
	"time"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/tests/cluster"
)

// controlFaults are faults of the control plane: the API server and the controllers.
func controlFaults() []faultCase {
	cases := []faultCase{
		{name: "the primary's node cannot reach the API server for a minute", topology: three, local: true, told: []string{"PrimaryCutOffFromAPI"}, fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			node := s.node[s.primary]
			s.partition(t, node, cluster.Cut{From: cluster.PeerAPI})
			s.noFailedWrite(t, time.Minute)
			s.newcomer(t) // the node is NotReady by now, and so is the primary's pod
			s.mend(t, node)
			return s.untouched(t)
		}},
		{name: "the API server cannot be reached by anybody for half a minute", topology: three, local: true, short: true, fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			for _, node := range s.node {
				s.partition(t, node, cluster.Cut{From: cluster.PeerAPI})
			}
			s.noFailedWrite(t, 30*time.Second)
			for _, node := range s.node {
				s.mend(t, node)
			}
			return s.untouched(t)
		}},
		{name: "the API server is down for two minutes", topology: three, local: true, told: []string{"the API server does not answer"}, fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			s.stopAPI(t)
			s.noFailedWrite(t, 2*time.Minute)
			s.startAPI(t)
			untouched := s.untouched(t)
			return func(g *api.SQLServerAvailabilityGroup) bool { return untouched(g) && s.controllersGoOn(t) }
		}},
		{name: "the primary crashes while the API server is down", topology: three, told: []string{"the API server does not answer", "{primary}"}, fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			pid := s.serverProcess(t, s.primary)
			s.stopAPI(t)
			pass(t, 30*time.Second)
			s.killProcess(t, pid)
			pass(t, 30*time.Second)
			s.startAPI(t)
			return func(*api.SQLServerAvailabilityGroup) bool { return s.granted(t) }
		}},
	}
	// The controller ends in each phase of both kinds of failover.
	for _, c := range []struct {
		name  string
		when  moment
		begin func(*testing.T, *scene)
		told  []string
	}{
		{"a planned move, when the old primary is taken offline", inPhase(ag.PhaseDemoting), func(t *testing.T, s *scene) { s.requestMove(t, s.secondaries[0]) }, []string{"switching over"}},
		{"a planned move, when the target is promoted", inPhase(ag.PhasePromoting), func(t *testing.T, s *scene) { s.requestMove(t, s.secondaries[0]) }, []string{"switching over", "phase promoting"}},
		{"an automatic failover, when the primary is fenced", inPhase(ag.PhaseFencing), func(t *testing.T, s *scene) { s.silence(t, s.node[s.primary]) }, silenced()},
		{"an automatic failover, when the target is promoted", inPhase(ag.PhasePromoting), func(t *testing.T, s *scene) { s.signal(t, s.primary, "KILL") }, []string{"failing over", "phase promoting"}},
		{"a planned move, when the target is PRIMARY and not published", arrived(), func(t *testing.T, s *scene) { s.requestMove(t, s.secondaries[0]) }, []string{"degraded"}},
		{"an automatic failover, when the target is PRIMARY and not published", arrived(), func(t *testing.T, s *scene) { s.signal(t, s.primary, "KILL") }, []string{"degraded"}},
	} {
		cases = append(cases, faultCase{name: "the controller is killed in " + c.name, topology: three, told: c.told, fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
			seen := s.catch(t, c.when, s.controllerKiller(t))
			c.begin(t, s)
			seen()
			s.waitGranted(t, s.epoch)
			s.waitPublished(t)
			s.mendAll(t)
			return func(*api.SQLServerAvailabilityGroup) bool { return s.authority(t).Operation == nil }
		}})
	}
	// By the time the next controller has made sure of the suspicion the write lease is over.
	return append(cases, faultCase{name: "the controller is killed while it suspects the primary", topology: three, told: suspected(), fault: func(t *testing.T, s *scene) func(*api.SQLServerAvailabilityGroup) bool {
		s.silence(t, s.node[s.primary])
		pass(t, 10*time.Second)
		s.killController(t)
		s.waitMoved(t)
		s.mendAll(t)
		return s.moved
	}})
}

// untouched: the same primary by the same grant.
func (s *scene) untouched(t *testing.T) func(*api.SQLServerAvailabilityGroup) bool {
	return func(g *api.SQLServerAvailabilityGroup) bool { return s.stayed(g) && s.authority(t).Epoch == s.epoch }
}

// api is the key of scene.undo for the API server.
const apiDown = "the API server"

func (s *scene) stopAPI(t *testing.T) {
	t.Helper()
	f := s.e.cluster.Faults()
	s.breakNode(t, apiDown, func(_ cluster.Faults, ctx context.Context, _ string) error { return f.StopAPI(ctx) },
		func(_ cluster.Faults, ctx context.Context, _ string) error { return f.StartAPI(ctx) })
}

func (s *scene) startAPI(t *testing.T) {
	t.Helper()
	s.mend(t, apiDown)
}
