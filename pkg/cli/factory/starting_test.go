package factory

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

func TestRESTMapper_AStartingAPIServerIsNotOneWithoutTheOperator(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		ready    int
		starting bool
	}{
		{"it says that it is not ready", http.StatusInternalServerError, true},
		{"it is ready, and the kinds are not there", http.StatusOK, false},
		{"it does not let this user ask", http.StatusForbidden, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch r.URL.Path {
				case "/readyz":
					w.WriteHeader(c.ready)
				case "/api":
					_, _ = w.Write([]byte(`{"kind":"APIVersions","versions":["v1"]}`))
				case "/apis":
					_, _ = w.Write([]byte(`{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`))
				default:
					http.NotFound(w, r)
				}
			}))
			defer server.Close()
			m, err := restMapper(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			_, err = m.RESTMapping(schema.GroupKind{Group: api.Group, Kind: "SQLServerAvailabilityGroup"})
			if err == nil || meta.IsNoMatchError(err) == c.starting || strings.Contains(err.Error(), "is starting") != c.starting {
				t.Errorf("got %v", err)
			}
		})
	}
}
