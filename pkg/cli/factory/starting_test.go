package factory

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

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

func TestStartingClient_TellsAKindThatIsNotServedFromAResourceThatIsNotThere(t *testing.T) {
	t.Parallel()
	const missing = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,"message":"pods \"x\" not found","details":{"name":"x","kind":"pods"}}`
	for _, c := range []struct {
		name     string
		json     bool
		ready    int
		starting bool
	}{
		{"a 404 that speaks of no resource, while it starts", false, http.StatusInternalServerError, true},
		{"the same of one that is ready", false, http.StatusOK, false},
		{"a resource that is not there, while it starts", true, http.StatusInternalServerError, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/readyz":
					w.WriteHeader(c.ready)
				case c.json:
					w.Header().Set("Content-Type", "application/json")
					w.WriteHeader(http.StatusNotFound)
					_, _ = w.Write([]byte(missing))
				default:
					http.NotFound(w, r)
				}
			}))
			defer server.Close()
			config := &rest.Config{Host: server.URL}
			m, err := restMapper(config)
			if err != nil {
				t.Fatal(err)
			}
			plain, err := client.New(config, client.Options{Mapper: m})
			if err != nil {
				t.Fatal(err)
			}
			cl := startingClient{Client: plain, starting: func() bool { return starting(config, server.Client()) }}
			err = cl.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "x"}, &corev1.Pod{})
			if err == nil || strings.Contains(err.Error(), "is starting") != c.starting || apierrors.IsNotFound(err) == c.starting {
				t.Errorf("got %v", err)
			}
		})
	}
}
