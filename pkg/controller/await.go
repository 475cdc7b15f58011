package controller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// ErrLeadershipLost says that this process led and does not any more: another one may.
// It is no fault of the process, which is to begin anew.
var ErrLeadershipLost = errors.New("the leader's lock could not be renewed in time")

const (
	// askAPIEvery is the pause between two questions to an API server that does not answer.
	askAPIEvery = time.Second
	askAPILimit = 3 * time.Second
)

// awaitAPI returns when the API server answers. Meanwhile it says that this process is
// alive: a controller that ended whenever the API server was away would find itself in
// the kubelet's back-off, minutes long, when the API server is back and a failover due.
func awaitAPI(ctx context.Context, cfg *rest.Config, address string, log logr.Logger) error {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = askAPILimit
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return fmt.Errorf("reach the API server: %w", err)
	}
	if _, err = client.ServerVersion(); err == nil {
		return nil
	}
	log.Info("waiting for the API server", "error", err.Error())
	stop, err := sayAlive(ctx, address)
	if err != nil {
		return err
	}
	defer stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(askAPIEvery): //nolint:forbidigo // before there is anything whose clock could be injected
		}
		if _, err := client.ServerVersion(); err == nil {
			return nil
		}
	}
}

// sayAlive answers the kubelet's questions until stop: alive, and not ready.
func sayAlive(ctx context.Context, address string) (stop func(), err error) {
	if address == "" || address == "0" {
		return func() {}, nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for probes: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the API server does not answer", http.StatusServiceUnavailable)
	})
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: askAPILimit}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l) // ends with Close
	}()
	return func() {
		_ = srv.Close()
		<-done
	}, nil
}

// again replaces this process by a new run of the same program, in the same container:
// nothing of the old run goes on, and nothing counts as a crash. It returns only when it fails.
func again() error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("begin anew: %w", err)
	}
	if err := syscall.Exec(program, os.Args, os.Environ()); err != nil {
		return fmt.Errorf("begin anew: %w", err)
	}
	return nil
}
