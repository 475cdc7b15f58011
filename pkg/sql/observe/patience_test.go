package observe_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/observe"
)

// slow is a fixture whose replica ag1-0 takes that long to answer; zero is never.
type slow struct {
	*fixture
	delay time.Duration
	asked int
}

func (s *slow) Connect(ctx context.Context, key ag.Key, replica string, pod ag.Pod) (mssql.Conn, error) {
	if replica != "ag1-0" {
		return s.fixture.Connect(ctx, key, replica, pod)
	}
	s.mu.Lock()
	s.asked++
	delay := s.delay
	s.mu.Unlock()
	if delay == 0 {
		return blocked{}, nil
	}
	select {
	case <-time.After(delay):
		return nil, &ag.Error{Kind: ag.ErrUnreachable, Message: "refused"}
	case <-ctx.Done():
		return nil, &ag.Error{Kind: ag.ErrTimeout, Message: "no answer in time"}
	}
}

func (s *slow) answersAfter(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay = d
}

func TestASilentReplicaHoldsUpOnePassOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{fixture: &fixture{}}
		o := observe.Observer{Cluster: s, Servers: s, Managers: s, Clock: clock.RealClock{}, Patience: observe.NewPatience(clock.RealClock{})}
		p := ag.Policy{Group: "ag1", Timing: ag.Timing{Renew: 2 * time.Second}}
		for i, name := range []string{"ag1-0", "ag1-1"} {
			p.Replicas = append(p.Replicas, ag.ReplicaPolicy{Name: name, Ordinal: i, Mode: ag.ModeSynchronous})
			s.pods = append(s.pods, ag.Pod{Exists: true, UID: "p" + name, IP: "10.0.0.1"})
		}
		pass := func() (time.Duration, ag.Reach) {
			began := time.Now()
			snapshot, err := o.Observe(t.Context(), ag.Key{Namespace: "ns", Name: "ag1"}, p, "ag1-0")
			if err != nil {
				t.Fatal(err)
			}
			return time.Since(began), snapshot.Replicas[0].Local.Reach
		}
		if took, reach := pass(); took < 1900*time.Millisecond || reach != ag.ReachTimeout {
			t.Errorf("the first pass took %s and says %s: everybody gets the full time once", took, reach)
		}
		for range 3 {
			if took, reach := pass(); took > 500*time.Millisecond || reach != ag.ReachTimeout {
				t.Errorf("a later pass took %s and says %s", took, reach)
			}
		}
		// It answers again, but slowly: it is heard in the background, and then gets its time.
		s.answersAfter(time.Second)
		time.Sleep(3 * time.Second) // virtual: the question that is under way ends
		pass()
		time.Sleep(2 * time.Second)
		if took, reach := pass(); reach == ag.ReachTimeout || took < time.Second {
			t.Errorf("a slow replica is not heard again: the pass took %s and says %s", took, reach)
		}
		s.mu.Lock()
		asked := s.asked
		s.mu.Unlock()
		if asked > 12 {
			t.Errorf("asked %d times: more than one question at a time is under way", asked)
		}
		time.Sleep(5 * time.Second)
	})
}
