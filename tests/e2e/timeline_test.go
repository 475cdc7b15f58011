package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// timeline says where the seconds of an outage go: every change of the group's record,
// of its labels and of who acts, as the API server shows them.
type timeline struct {
	mu    sync.Mutex
	begin time.Time
	lines []string
	stop  context.CancelFunc
	done  sync.WaitGroup
}

func (tl *timeline) note(format string, args ...any) {
	tl.mu.Lock()
	defer tl.mu.Unlock()
	tl.lines = append(tl.lines, fmt.Sprintf("%7.1fs %s", time.Since(tl.begin).Seconds(), fmt.Sprintf(format, args...)))
}

// watchTimeline samples at 10 Hz until the test ends, and logs it then.
func (s *scene) watchTimeline(t *testing.T) *timeline {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	tl := &timeline{begin: time.Now(), stop: stop}
	t.Cleanup(func() { tl.log(t) })
	tl.done.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		last := map[string]string{}
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			now := s.sample(ctx, t)
			for _, what := range []string{"record", "labels", "acting"} {
				if v := now[what]; v != "" && v != last[what] {
					if last[what] != "" {
						tl.note("%s: %s", what, v)
					}
					last[what] = v
				}
			}
		}
	})
	return tl
}

// sample is what the API server shows now; what cannot be read is left out.
func (s *scene) sample(ctx context.Context, t *testing.T) map[string]string {
	out := map[string]string{}
	if a := s.authority(t); a.Exists {
		text := fmt.Sprintf("holder %s, epoch %d, k=%d, %d unfenced", a.Holder.Replica, a.Epoch, a.Rule.K, len(a.Unfenced))
		if a.Operation != nil {
			text += fmt.Sprintf(", %s %s", a.Operation.Kind, a.Operation.Phase)
		}
		out["record"] = text
	}
	var pods corev1.PodList
	if err := s.e.client.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{api.LabelInstance: s.group}); err == nil {
		var labels []string
		for _, p := range pods.Items {
			if r := p.Labels[api.LabelRole]; r != "" {
				labels = append(labels, p.Name+" "+r)
			}
		}
		out["labels"] = "[" + strings.Join(labels, ", ") + "]"
	}
	if p := s.e.actingController(t); p != nil {
		out["acting"] = p.Name
	}
	return out
}

func (tl *timeline) log(t *testing.T) {
	t.Helper()
	tl.stop()
	tl.done.Wait()
	t.Logf("timeline:\n%s", strings.Join(tl.lines, "\n"))
}
