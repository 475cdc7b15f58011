package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/tests/cluster"
)

// local tells whether nodes and containers are processes of this machine.
func (e *env) local() bool {
	_, ok := e.cluster.(*cluster.Local)
	return ok
}

// result of one call of the plugin.
type result struct {
	stdout, stderr string
	code           int
}

// plugin runs the real binary as a user would.
func (e *env) plugin(t *testing.T, timeout time.Duration, args ...string) result {
	t.Helper()
	return e.run(t, timeout, filepath.Join(e.bin, "kubectl-mssql"), args...)
}

func (e *env) run(t *testing.T, timeout time.Duration, name string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+e.cluster.Kubeconfig())
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s %s: %v", filepath.Base(name), strings.Join(args, " "), err)
	}
	r := result{out.String(), errOut.String(), cmd.ProcessState.ExitCode()}
	shown := r.stdout
	if lines := strings.SplitAfter(shown, "\n"); len(lines) > 60 {
		shown = strings.Join(lines[:8], "") + fmt.Sprintf("… %d lines …\n", len(lines)-16) + strings.Join(lines[len(lines)-8:], "")
	}
	t.Logf("$ %s %s  -> exit %d\n%s%s", filepath.Base(name), strings.Join(args, " "), r.code, shown, r.stderr)
	return r
}

// kubectl runs the user's kubectl, or the one that the local cluster has built.
func (e *env) kubectl(t *testing.T, args ...string) result {
	t.Helper()
	path, err := exec.LookPath("kubectl")
	if err != nil {
		built, _ := filepath.Glob(filepath.Join(cacheDir(), "kubernetes-*", "bin", "kubectl"))
		if len(built) == 0 {
			t.Fatal("no kubectl on PATH nor among the cluster's binaries")
		}
		path = built[0]
	}
	return e.run(t, time.Minute, path, args...)
}

func (r result) must(t *testing.T, code int) result {
	t.Helper()
	if r.code != code {
		t.Fatalf("exit code %d, want %d", r.code, code)
	}
	return r
}

// group reads the availability group.
func (e *env) group(t *testing.T, name string) *api.SQLServerAvailabilityGroup {
	t.Helper()
	g := &api.SQLServerAvailabilityGroup{}
	if err := e.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, g); err != nil {
		t.Fatalf("read %s: %v", name, err)
	}
	return g
}

// waitGroup polls until the condition holds, and shows the status when it does not.
func (e *env) waitGroup(t *testing.T, name, what string, timeout time.Duration, ok func(*api.SQLServerAvailabilityGroup) bool) *api.SQLServerAvailabilityGroup {
	t.Helper()
	g := &api.SQLServerAvailabilityGroup{}
	begin := time.Now()
	err := wait.PollUntilContextTimeout(t.Context(), 250*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		if err := e.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, g); err != nil {
			return false, nil //nolint:nilerr // the API server may be away: that is some tests' subject
		}
		return ok(g), nil
	})
	if err != nil {
		e.plugin(t, 20*time.Second, "status", name, "-n", namespace, "-v", "-o", "wide")
		e.plugin(t, 20*time.Second, "logs", name, "-n", namespace, "--since", "3m", "--tail", "60")
		t.Fatalf("%s: not %s after %s", name, what, timeout)
	}
	t.Logf("%s: %s after %s", name, what, time.Since(begin).Round(100*time.Millisecond))
	return g
}

func healthy(g *api.SQLServerAvailabilityGroup) bool {
	return g.Status.Phase == api.PhaseHealthy && g.Status.ObservedGeneration == g.Generation
}

// createNamespace makes the tests' namespace.
func (e *env) createNamespace(t *testing.T) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := e.client.Create(t.Context(), ns); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// Report is what the writer tells; see tests/e2e/writer.
type report struct {
	Acknowledged []struct{ First, Last int64 }
	Count        int64
	Unknown      []int64
	Gaps         []gap
	LongestGap   float64
	LastAck      time.Time
	LastError    string
}

// gap is a time without an acknowledgement, from the last one before it.
type gap struct {
	From    time.Time
	Seconds float64
	// Failed is when the first write after From failed.
	Failed time.Time
}

// writer is a client inside the cluster that writes all the time.
type writer struct {
	e    *env
	name string
	ag   string
	ip   string // once known
}

// startWriter runs a writing client; node pins it when not empty.
func (e *env) startWriter(t *testing.T, ag, client, node string) *writer {
	t.Helper()
	g := e.group(t, ag)
	secret, key := g.Spec.SAPasswordSecret(ag)
	w := &writer{e: e, name: "writer-" + client, ag: ag}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.name},
		Spec: corev1.PodSpec{
			NodeName: node, RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64),
			Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "writer", Image: writerImage, ImagePullPolicy: corev1.PullNever,
				Args:         []string{"-server", fmt.Sprintf("%s:%d", g.ListenerName(), api.PortTDS), "-client", client},
				VolumeMounts: []corev1.VolumeMount{{Name: "secret", MountPath: "/secret"}},
			}},
			Volumes: []corev1.Volume{{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
				SecretName: secret, Items: []corev1.KeyToPath{{Key: key, Path: "password"}}}}}},
		},
	}
	if err := e.client.Create(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = deletePod(ctx, e, pod) // the namespace goes with the cluster anyway
	})
	// After an outage of the API server a kubelet asks again with pauses of up to a minute, and
	// the Service may lead nowhere for longer.
	w.waitCount(t, 20, 4*time.Minute)
	return w
}

func deletePod(ctx context.Context, e *env, pod *corev1.Pod) error {
	return e.client.Delete(ctx, pod, client.GracePeriodSeconds(0))
}

// call asks the writer: at its address where this machine reaches pods, so that an answer
// needs no API server, else through the API server's pod proxy.
func (w *writer) call(ctx context.Context, verb, path string) ([]byte, error) {
	if w.e.local() {
		return w.direct(ctx, verb, path)
	}
	cs, err := kubernetes.NewForConfig(w.e.config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return cs.CoreV1().RESTClient().Verb(verb).Namespace(namespace).Resource("pods").Name(w.name + ":8080").SubResource("proxy").Suffix(path).DoRaw(ctx)
}

func (w *writer) direct(ctx context.Context, verb, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if w.ip == "" {
		var p corev1.Pod
		if err := w.e.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: w.name}, &p); err != nil {
			return nil, err
		}
		if p.Status.PodIP == "" {
			return nil, errors.New(w.name + " has no address yet")
		}
		w.ip = p.Status.PodIP
	}
	req, err := http.NewRequestWithContext(ctx, verb, "http://"+net.JoinHostPort(w.ip, "8080")+"/"+path, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %s", w.name, res.Status)
	}
	return io.ReadAll(res.Body)
}

func (w *writer) report(ctx context.Context) (report, error) {
	var r report
	b, err := w.call(ctx, "GET", "report")
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(b, &r)
}

func (w *writer) reset(t *testing.T) {
	t.Helper()
	if _, err := w.call(t.Context(), "POST", "reset"); err != nil {
		t.Fatalf("reset the writer: %v", err)
	}
}

// waitCount waits until the writer has n more acknowledged rows than now.
func (w *writer) waitCount(t *testing.T, n int64, timeout time.Duration) report {
	t.Helper()
	var first, last report
	seen := false
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		r, err := w.report(ctx)
		if err != nil {
			return false, nil //nolint:nilerr // it is still starting, or its node is cut off
		}
		if !seen {
			first, seen = r, true
		}
		last = r
		return r.Count >= first.Count+n, nil
	})
	if err != nil {
		t.Fatalf("%s: no %d more rows after %s; last error: %s", w.name, n, timeout, last.LastError)
	}
	return last
}

// check compares every acknowledged row with what the primary holds now.
func (w *writer) check(t *testing.T) report {
	t.Helper()
	r, err := w.report(t.Context())
	if err != nil {
		t.Fatalf("read the writer's report: %v", err)
	}
	out := w.e.plugin(t, time.Minute, "sql", w.ag, "-n", namespace, "-d", "orders", "-o", "csv",
		"-Q", fmt.Sprintf("SELECT n FROM dbo.written WHERE client = N'%s' ORDER BY n", strings.TrimPrefix(w.name, "writer-")))
	if out.code != 0 {
		t.Fatalf("cannot read the rows back: %s", out.stderr)
	}
	there := map[int64]bool{}
	for i, l := range strings.Fields(out.stdout) {
		if i == 0 {
			continue
		}
		n, err := strconv.ParseInt(l, 10, 64)
		if err != nil {
			t.Fatalf("row %q: %v", l, err)
		}
		there[n] = true
	}
	missing := 0
	for _, a := range r.Acknowledged {
		for n := a.First; n <= a.Last; n++ {
			if !there[n] {
				if missing++; missing <= 5 {
					t.Errorf("LOST: row %d of %s was acknowledged and is not there", n, w.name)
				}
			}
		}
	}
	t.Logf("%s: %d rows acknowledged, %d missing, %d without an answer, longest gap %.1f s", w.name, r.Count, missing, len(r.Unknown), r.LongestGap)
	return r
}

// endpointWatch samples the listener's endpoints at 10 Hz.
type endpointWatch struct {
	stop context.CancelFunc
	done sync.WaitGroup
	mu   sync.Mutex
	bad  []string
	n    int
}

// watchEndpoints fails the test when the read-write Service ever had two ready endpoints.
func (e *env) watchEndpoints(t *testing.T, service string) *endpointWatch {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	w := &endpointWatch{stop: stop}
	w.done.Go(func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			var slices discoveryv1.EndpointSliceList
			if err := e.client.List(ctx, &slices, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service}); err != nil {
				continue
			}
			ready := readyEndpoints(slices.Items)
			w.mu.Lock()
			w.n++
			if len(ready) > 1 {
				w.bad = append(w.bad, strings.Join(ready, "+"))
			}
			w.mu.Unlock()
		}
	})
	return w
}

// readyEndpoints are the pods to which a Service sends clients.
func readyEndpoints(list []discoveryv1.EndpointSlice) []string {
	var ready []string
	for _, s := range list {
		for _, ep := range s.Endpoints {
			if (ep.Conditions.Ready == nil || *ep.Conditions.Ready) && ep.TargetRef != nil {
				ready = append(ready, ep.TargetRef.Name)
			}
		}
	}
	return ready
}

func (w *endpointWatch) finish(t *testing.T) {
	t.Helper()
	w.stop()
	w.done.Wait()
	if len(w.bad) > 0 {
		t.Errorf("the write Service had two primaries in %d of %d samples: %v", len(w.bad), w.n, w.bad[0])
	}
	t.Logf("endpoints sampled %d times, never two", w.n)
}
