package e2e

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// timeline says where the seconds of an outage go: every change of the group's record,
// of its labels and of who acts, as the API server shows them.
type timeline struct {
	mu    sync.Mutex
	begin time.Time
	lines []line
	stop  context.CancelFunc
	done  sync.WaitGroup
}

type line struct {
	after time.Duration
	what  string
}

func (tl *timeline) note(format string, args ...any) { tl.noteAt(time.Now(), format, args...) }

// noteAt is for what was asked at a moment and known later.
func (tl *timeline) noteAt(at time.Time, format string, args ...any) {
	tl.mu.Lock()
	defer tl.mu.Unlock()
	tl.lines = append(tl.lines, line{at.Sub(tl.begin), fmt.Sprintf(format, args...)})
}

// watchTimeline samples at 10 Hz until the test ends, and logs it then.
func (s *scene) watchTimeline(t *testing.T) *timeline {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	service, where := s.e.group(t, s.group).ListenerName(), s.e.podNode(t, s.client.name)
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
			for _, what := range []string{"record", "labels", "endpoints", "acting"} {
				if v := now[what]; v != "" && v != last[what] {
					if last[what] != "" {
						tl.note("%s: %s", what, v)
					}
					last[what] = v
				}
			}
		}
	})
	tl.done.Go(func() { s.watchRules(ctx, tl, where, service) })
	return tl
}

// watchRules reads the node's rules twice a second, on its own: a node in trouble answers late.
func (s *scene) watchRules(ctx context.Context, tl *timeline, node, service string) {
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	last := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		addresses, ok := proxyRules(ctx, node, service)
		if !ok {
			continue
		}
		if v := s.named(addresses); v != last {
			if last != "" {
				tl.note("rules of %s: %s", node, v)
			}
			last = v
		}
	}
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
			s.address(p.Status.PodIP, p.Name)
			if r := p.Labels[api.LabelRole]; r != "" {
				labels = append(labels, p.Name+" "+r)
			}
		}
		out["labels"] = "[" + strings.Join(labels, ", ") + "]"
	}
	var slices discoveryv1.EndpointSliceList
	if err := s.e.client.List(ctx, &slices, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: s.group + "-rw"}); err == nil {
		out["endpoints"] = "[" + strings.Join(readyEndpoints(slices.Items), ", ") + "]"
	}
	if p := s.e.actingController(t); p != nil {
		out["acting"] = p.Name
	}
	return out
}

// address remembers whose an address is; named puts the names in their place.
func (s *scene) address(ip, pod string) {
	if ip == "" {
		return
	}
	s.naming.Lock()
	defer s.naming.Unlock()
	if s.addresses == nil {
		s.addresses = map[string]string{}
	}
	s.addresses[ip] = pod
}

func (s *scene) named(addresses []string) string {
	s.naming.Lock()
	defer s.naming.Unlock()
	out := make([]string, len(addresses))
	for i, a := range addresses {
		if out[i] = s.addresses[a]; out[i] == "" {
			out[i] = a
		}
	}
	return "[" + strings.Join(out, ", ") + "]"
}

func (tl *timeline) log(t *testing.T) {
	t.Helper()
	tl.stop()
	tl.done.Wait()
	slices.SortStableFunc(tl.lines, func(a, b line) int { return cmp.Compare(a.after, b.after) })
	var text strings.Builder
	for _, l := range tl.lines {
		fmt.Fprintf(&text, "%7.1fs %s\n", l.after.Seconds(), l.what)
	}
	t.Logf("timeline:\n%s", text.String())
}
