//go:build linux

package instance

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// readyAge is how old the newest successful login may be for /ready: two of them may
// fail, one after the other, before a server leaves its Services.
const readyAge = 2*loginInterval + loginTimeout

// startupState answers /startup: has a login worked since sqlservr was started? A
// fenced replica has nothing to start.
func startupState(v viewCopy) error {
	if v.phase == phaseFenced || v.accepted {
		return nil
	}
	return errors.New(orElse(v.loginProblem, "no login has worked yet"))
}

// liveState answers /live: is there something that this manager does? A restart of the
// container must never be an answer to trouble with replication, storage or logins, so
// that only a server which is gone without anybody having stopped it counts.
func liveState(v viewCopy) error {
	if v.phase == phaseStopped && !v.alive {
		return errors.New("sqlservr is gone")
	}
	return nil
}

// readyState answers /ready: may clients be sent here? Role is no matter: a secondary is
// ready too, the Services choose by label.
func readyState(v viewCopy, now time.Duration) error {
	switch {
	case v.phase == phaseFenced:
		return errors.New("this replica is fenced")
	case v.phase != phaseRunning && v.phase != phaseHandover:
		return fmt.Errorf("the server is %s", v.phase)
	case !v.accepted:
		return errors.New(orElse(v.loginProblem, "no login has worked yet"))
	case now-v.acceptedAt > readyAge:
		return fmt.Errorf("no login has worked for %s: %s", (now - v.acceptedAt).Round(time.Second), v.loginProblem)
	case v.localKnown && v.local.role == ag.RolePrimary && len(v.local.sick) > 0:
		return fmt.Errorf("databases of this primary cannot be used: %s", strings.Join(v.local.sick, ", "))
	}
	return nil
}

func orElse(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// serveProbes answers kubelet, Prometheus and people in plain HTTP until ctx ends.
func (m *manager) serveProbes(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	probe := func(state func() error) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			if err := state(); err != nil {
				w.WriteHeader(http.StatusServiceUnavailable)
				_, _ = fmt.Fprintln(w, err)
				return
			}
			_, _ = fmt.Fprintln(w, "ok")
		}
	}
	mux.HandleFunc("GET /startup", probe(func() error { return startupState(m.view.snapshot()) }))
	mux.HandleFunc("GET /live", probe(func() error { return liveState(m.view.snapshot()) }))
	mux.HandleFunc("GET /ready", probe(func() error { return readyState(m.view.snapshot(), m.clock.now().Mono) }))
	mux.HandleFunc("GET "+managerapi.PathReport, m.serveReport)
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.metrics.registry, promhttp.HandlerOpts{}))
	srv := &http.Server{
		Handler: mux, ReadHeaderTimeout: 2 * time.Second, ReadTimeout: 5 * time.Second,
		WriteTimeout: 10 * time.Second, IdleTimeout: 60 * time.Second,
		ErrorLog: slog.NewLogLogger(m.log.Handler(), slog.LevelDebug),
	}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	err := srv.Serve(l)
	if errors.Is(err, http.ErrServerClosed) && ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("serve the probes: %w", err)
}
