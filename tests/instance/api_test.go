//go:build linux

package instance_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
)

// apiServer is one Lease and one resource behind HTTP, with resourceVersions and
// conflicts, and a switch that makes it answer nothing.
type apiServer struct {
	srv *httptest.Server

	mu       sync.Mutex
	version  int
	lease    *coordinationv1.Lease
	down     bool
	renewals int
}

func newAPIServer(t *testing.T, a ag.Authority) *apiServer {
	t.Helper()
	s := &apiServer{version: 1}
	s.put(t, a)
	s.srv = httptest.NewServer(s)
	t.Cleanup(s.srv.Close)
	return s
}

// put is the operator's swap.
func (s *apiServer) put(t *testing.T, a ag.Authority) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	l := &coordinationv1.Lease{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}}
	if s.lease != nil {
		l = s.lease.DeepCopy()
	}
	l.Namespace, l.Name = namespace, group+"-primary"
	if err := state.Encode(l, a, 15*time.Second); err != nil {
		t.Fatal(err)
	}
	s.version++
	l.ResourceVersion = strconv.Itoa(s.version)
	s.lease = l
}

func (s *apiServer) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func (s *apiServer) renewed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.renewals
}

func (s *apiServer) record() ag.Authority {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, _ := state.Decode(s.lease, agUID)
	return a
}

// ServeHTTP implements http.Handler.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case s.down:
		s.status(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
	case strings.HasSuffix(r.URL.Path, "/leases/"+group+"-primary"):
		s.serveLease(w, r)
	case strings.HasSuffix(r.URL.Path, "/sqlserveravailabilitygroups/"+group) && r.Method == http.MethodGet:
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
			"metadata": map[string]any{"name": group, "namespace": namespace, "uid": agUID},
		})
	default: // what the pod's Role does not allow
		s.status(w, http.StatusForbidden, metav1.StatusReasonForbidden)
	}
}

func (s *apiServer) serveLease(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPut {
		var l coordinationv1.Lease
		b, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(b, &l) != nil {
			s.status(w, http.StatusBadRequest, metav1.StatusReasonBadRequest)
			return
		}
		if l.ResourceVersion != s.lease.ResourceVersion {
			s.status(w, http.StatusConflict, metav1.StatusReasonConflict)
			return
		}
		s.version++
		s.renewals++
		l.ResourceVersion = strconv.Itoa(s.version)
		s.lease = &l
	}
	_ = json.NewEncoder(w).Encode(s.lease)
}

func (s *apiServer) status(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: reason, Code: int32(code),
	})
}
