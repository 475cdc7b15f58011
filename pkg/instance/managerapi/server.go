package managerapi

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// Handler is the manager behind the protocol. Answers must be given from
// memory or the local disk: a caller waits about a second.
type Handler interface {
	Status(ctx context.Context) ag.Manager
	Seal(ctx context.Context, r SealRequest) (SealAnswer, error)
	Failsafe(ctx context.Context, r FailsafeRequest) (FailsafeAnswer, error)
	Seen(ctx context.Context, s Seen) error
}

// refusal is the body of every answer that is not 200.
type refusal struct {
	Error string `json:"error"`
}

// Server answers until its context ends.
type Server struct {
	Handler     Handler
	Credentials Credentials
	// Replicas are the names that may speak besides the controller.
	Replicas []string
	Log      *slog.Logger
}

// Serve accepts on l, which it closes, until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler:           s.mux(),
		ReadHeaderTimeout: 2 * time.Second,
		ReadTimeout:       5 * time.Second,
		WriteTimeout:      5 * time.Second,
		IdleTimeout:       30 * time.Second,
		MaxHeaderBytes:    1 << 14,
		ErrorLog:          slog.NewLogLogger(s.Log.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	err := srv.Serve(tls.NewListener(l, serverConfig(s.Credentials)))
	if errors.Is(err, http.ErrServerClosed) && ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("serve the manager's interface: %w", err)
}

func (s *Server) mux() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+PathStatus, func(w http.ResponseWriter, r *http.Request) {
		if s.speaker(w, r) == "" {
			return
		}
		answer(w, s.Handler.Status(r.Context()))
	})
	mux.HandleFunc("POST "+PathSeal, func(w http.ResponseWriter, r *http.Request) {
		who := s.speaker(w, r)
		if who == "" {
			return
		}
		if who != ControllerName {
			refuse(w, http.StatusForbidden, fmt.Errorf("only %s may seal, not %s", ControllerName, who))
			return
		}
		serve(w, r, s.Handler.Seal)
	})
	mux.HandleFunc("POST "+PathFailsafe, func(w http.ResponseWriter, r *http.Request) {
		who := s.speaker(w, r)
		if who == "" {
			return
		}
		serve(w, r, func(ctx context.Context, q FailsafeRequest) (FailsafeAnswer, error) {
			if who != q.Holder.Replica {
				return FailsafeAnswer{}, forbidden(fmt.Sprintf("%s may not ask for %s", who, q.Holder.Replica))
			}
			return s.Handler.Failsafe(ctx, q)
		})
	})
	mux.HandleFunc("POST "+PathSeen, func(w http.ResponseWriter, r *http.Request) {
		if s.speaker(w, r) == "" {
			return
		}
		serve(w, r, func(ctx context.Context, q Seen) (struct{}, error) {
			return struct{}{}, s.Handler.Seen(ctx, q)
		})
	})
	return mux
}

// speaker returns the name of who asks, or answers 403 and returns "".
func (s *Server) speaker(w http.ResponseWriter, r *http.Request) string {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		refuse(w, http.StatusForbidden, errors.New("a client certificate is needed"))
		return ""
	}
	name := r.TLS.PeerCertificates[0].Subject.CommonName
	if name == ControllerName {
		return name
	}
	for _, replica := range s.Replicas {
		if name == replica {
			return name
		}
	}
	refuse(w, http.StatusForbidden, fmt.Errorf("%q is neither the controller nor a replica", name))
	return ""
}

type forbidden string

func (f forbidden) Error() string { return string(f) }

// serve decodes one request, asks the handler and writes its answer.
func serve[Q interface{ Validate() error }, A any](w http.ResponseWriter, r *http.Request,
	handle func(context.Context, Q) (A, error),
) {
	var q Q
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	if err := dec.Decode(&q); err != nil {
		refuse(w, http.StatusBadRequest, fmt.Errorf("read the request: %w", err))
		return
	}
	if err := q.Validate(); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	a, err := handle(r.Context(), q)
	var no forbidden
	switch {
	case errors.As(err, &no):
		refuse(w, http.StatusForbidden, err)
	case err != nil:
		refuse(w, http.StatusInternalServerError, err)
	default:
		answer(w, a)
	}
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the connection is gone when this fails
}

func refuse(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(refusal{Error: err.Error()})
}

// readAll reads a bounded body.
func readAll(r io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxBody+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxBody {
		return nil, fmt.Errorf("the answer is longer than %d bytes", maxBody)
	}
	return b, nil
}
