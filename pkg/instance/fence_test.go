//go:build linux

package instance

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// fenceAPI serves one resource with one annotation, as an API server would.
type fenceAPI struct {
	mu     sync.Mutex
	fenced string
	down   bool
	asked  int
}

func (f *fenceAPI) set(fenced string, down bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fenced, f.down = fenced, down
}

func (f *fenceAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	w.Header().Set("Content-Type", "application/json")
	if f.down {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if r.Method != http.MethodGet || r.URL.Path != "/apis/kubectl-mssql.io/v1alpha1/namespaces/prod/sqlserverinstances/db" ||
		!strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
		"metadata": map[string]any{
			"name": "db", "namespace": "prod", "uid": "uid-db",
			"annotations": map[string]string{v1alpha1.AnnotationFenced: f.fenced},
		},
	})
}

// withAPI points the manager at the API server.
func withAPI(t *testing.T, dir string, o *Options, h http.Handler) {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	o.Kubeconfig = filepath.Join(dir, "kubeconfig")
	write(t, o.Kubeconfig, fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: %q}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: t}}]
`, srv.URL))
}

const fencedText = `[{"replica":"db-0","by":"dba","reason":"repair"},{"replica":"db-7"}]`

func TestFence_KeepsTheServerDownAndThePodUp(t *testing.T) {
	t.Parallel()
	dir, o := prepareRun(t, standalone(t))
	api := &fenceAPI{}
	withAPI(t, dir, &o, api)
	r := startRun(t, dir, o, "run", "db-0")
	server := r.started()
	api.set(fencedText, false)
	eventually(t, "the replica is fenced", func() bool { return r.logs.has("Replica stays fenced") })
	if syscall.Kill(server.PID, 0) == nil {
		t.Error("the server still runs")
	}
	for path, want := range map[string]int{"/live": 200, "/startup": 200, "/ready": 503} {
		if code, body := r.get(path); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	// The container restarts while the API server is away: the order still stands.
	r.signal(syscall.SIGTERM)
	if got := r.ended(); got != 0 {
		t.Errorf("exit code %d", got)
	}
	remove(t, filepath.Join(o.DataDir, "started.json"))
	api.set(fencedText, true)
	again := startRun(t, dir, o, "run", "db-0")
	eventually(t, "the replica stays fenced", func() bool { return again.logs.has("Replica stays fenced") })
	if _, ok := again.tryStarted(); ok {
		t.Error("the server was started")
	}
	// The order is taken back: the container ends, so that the next run starts the server.
	api.set("", false)
	if got := again.ended(); got != 0 {
		t.Errorf("exit code %d", got)
	}
	third := startRun(t, dir, o, "run", "db-0")
	third.started()
	third.signal(syscall.SIGTERM)
	if got := third.ended(); got != 0 {
		t.Errorf("exit code %d", got)
	}
}

func TestFence_AnUnreadableOrderChangesNothing(t *testing.T) {
	t.Parallel()
	dir, o := prepareRun(t, standalone(t))
	api := &fenceAPI{}
	withAPI(t, dir, &o, api)
	r := startRun(t, dir, o, "run", "db-0")
	server := r.started()
	api.set("not JSON", false)
	eventually(t, "the problem is told", func() bool { return r.logs.has("is not a list of fenced replicas") })
	if syscall.Kill(server.PID, 0) != nil {
		t.Error("the server was stopped")
	}
	r.signal(syscall.SIGTERM)
	if got := r.ended(); got != 0 {
		t.Errorf("exit code %d", got)
	}
}
