package measure_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/measure"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
)

func page(t *testing.T, pod string) string {
	t.Helper()
	b, err := json.Marshal(managerapi.Report{Replica: pod, Server: "running"})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestReport_ComesByTheWayThatTheUserMayUse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		prepare func(t *testing.T, a *clitest.API)
		want    string // part of the error; empty for a report
		is      error
	}{
		{"the proxy answers", func(t *testing.T, a *clitest.API) {
			a.Page("demo-0", 8080, "/status", page(t, "demo-0"))
		}, "", nil},
		{"without pods/proxy the port-forward does", func(t *testing.T, a *clitest.API) {
			a.Forbid("get", "pods/proxy")
			forward(t, a)
		}, "", nil},
		{"where the proxy cannot reach the pod the port-forward does", forward, "", nil},
		{"without either permission both are named", func(_ *testing.T, a *clitest.API) {
			a.Forbid("get", "pods/proxy")
			a.Forbid("create", "pods/portforward")
		}, "get pods/proxy", measure.ErrForbidden},
		{"an older manager is told from one that is gone", func(_ *testing.T, a *clitest.API) {
			a.Page("demo-0", 8080, "/metrics", "")
		}, "older than this plugin", measure.ErrOld},
		{"another pod's answer is refused", func(t *testing.T, a *clitest.API) {
			a.Page("demo-0", 8080, "/status", page(t, "demo-1"))
		}, `the manager of "demo-1"`, nil},
		{"no way leads there", func(*testing.T, *clitest.API) {}, "no route to host", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := clitest.Start(t)
			tt.prepare(t, a)
			asker, err := measure.New(a.Config())
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), measure.Timeout)
			defer cancel()
			r, err := asker.Report(ctx, "default", "demo-0")
			switch {
			case tt.want == "" && (err != nil || r.Server != "running"):
				t.Fatalf("got %+v, %v", r, err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Fatalf("got %v, want %q", err, tt.want)
			case tt.is != nil && !errors.Is(err, tt.is):
				t.Errorf("%v is not %v", err, tt.is)
			}
		})
	}
}

// forward serves the manager's page behind a port-forward.
func forward(t *testing.T, a *clitest.API) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(page(t, "demo-0"))) }))
	t.Cleanup(s.Close)
	a.Forward("demo-0", s.Listener.Addr().String())
}
