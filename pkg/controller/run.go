package controller

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/version"
)

const (
	// leaderLock is the name of the leader election's Lease.
	leaderLock = "kubectl-mssql-controller"
	// A controller that lost the API server steps down after 5 s; another one takes over
	// 7 to 8.2 s (retryPeriod has a jitter of a fifth) after its last renewal, or at once
	// when it ends in order. That is within A + L of every profile (14 s in Fast), so that
	// the loss of the acting controller's node delays no failover; and two that act at once
	// do no harm (safety.md R1), so that nothing asks for more.
	leaseDuration = 7 * time.Second
	renewDeadline = 5 * time.Second
	retryPeriod   = time.Second
	// shutdownTimeout lets passes in flight write down what they did.
	shutdownTimeout = 20 * time.Second
	// Requests to the API server: a pass over a group at rest makes two or three.
	clientQPS, clientBurst = 100, 200
	// eventsFrom names the controller in events.
	eventsFrom = "kubectl-mssql-controller"
)

// Run runs the operator until ctx ends.
func Run(ctx context.Context, cfg *rest.Config, o Options, errOut io.Writer) error {
	level, err := logLevel(o.LogLevel)
	if err != nil {
		return err
	}
	log := newLogger(errOut, level, o.LogFormat)
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	if err := awaitAPI(ctx, cfg, o.HealthAddress, log); err != nil {
		return ignoreCanceled(ctx, err)
	}
	mgr, err := NewManager(cfg, o)
	if err != nil {
		return err
	}
	if err := Setup(mgr, o, clock.RealClock{}); err != nil {
		return err
	}
	v := version.Get()
	log.Info("starting", "version", v.Version, "commit", v.Commit, "identity", o.Identity, "namespaces", o.namespaces())
	err = mgr.Start(ctx)
	if err == nil {
		return nil
	}
	select {
	case <-mgr.Elected():
		// The manager ends with an error that has no name; one that led has no other reason.
		if o.LeaderElect && ctx.Err() == nil {
			log.Info("beginning anew", "why", err.Error())
			return fmt.Errorf("%w: %w", ErrLeadershipLost, err)
		}
	default:
	}
	return fmt.Errorf("run the controller: %w", err)
}

// NewManager makes the manager: narrow caches, leader election that is given up on
// exit, health and metrics endpoints.
func NewManager(cfg *rest.Config, o Options) (ctrl.Manager, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	cfg = rest.CopyConfig(cfg)
	cfg.QPS, cfg.Burst = clientQPS, clientBurst
	cfg.UserAgent = "kubectl-mssql-controller/" + version.Get().Version
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: scheme,
		Cache:  cacheOptions(o.namespaces()),
		// Objects that are applied from an unstructured form are not to be cached in that form as well.
		Client:                        client.Options{Cache: &client.CacheOptions{Unstructured: false}},
		Metrics:                       metricsserver.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress:        o.HealthAddress,
		LeaderElection:                o.LeaderElect,
		LeaderElectionID:              leaderLock,
		LeaderElectionNamespace:       o.LeaderNamespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 ptr.To(leaseDuration),
		RenewDeadline:                 ptr.To(renewDeadline),
		RetryPeriod:                   ptr.To(retryPeriod),
		GracefulShutdownTimeout:       ptr.To(shutdownTimeout),
		// A controller that only waits for the leadership fills its caches meanwhile.
		Controller: config.Controller{SkipNameValidation: ptr.To(o.severalInProcess), EnableWarmup: ptr.To(true)},
	})
	if err != nil {
		return nil, fmt.Errorf("set up the controller: %w", err)
	}
	return mgr, nil
}

// Setup registers both reconcilers and the health checks.
func Setup(mgr ctrl.Manager, o Options, clk clock.Clock) error {
	m, err := NewMetrics(metrics.Registry)
	if err != nil {
		return fmt.Errorf("register the metrics: %w", err)
	}
	system := newSystem(mgr, o, clk)
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		system.Close()
		return nil
	})); err != nil {
		return err
	}
	if err := mgr.Add(newLeaseWatcher(mgr.GetCache(), system.Engine, clk, mgr.Elected())); err != nil {
		return err
	}
	return setup(mgr, o, clk, m, system.Engine, versions(system.Servers))
}

func setup(mgr ctrl.Manager, o Options, clk clock.PassiveClock, m *Metrics, engine Engine, versions versionFunc) error {
	s := newShared(mgr, o, clk)
	if err := mgr.Add(endsWatcher{cache: mgr.GetCache(), ends: s.Ends}); err != nil {
		return err
	}
	groups := &GroupReconciler{shared: s, Engine: engine, Metrics: m}
	if err := groups.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up the controller of availability groups: %w", err)
	}
	instances := &InstanceReconciler{shared: s, Version: versions}
	if err := instances.SetupWithManager(mgr); err != nil {
		return fmt.Errorf("set up the controller of instances: %w", err)
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	return mgr.AddReadyzCheck("ping", healthz.Ping)
}

func newShared(mgr ctrl.Manager, o Options, clk clock.PassiveClock) *shared {
	return &shared{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Scheme: mgr.GetScheme(),
		Recorder: mgr.GetEventRecorder(eventsFrom), Clock: clk, Ends: newPodEnds(),
		Settings: Settings{OperatorImage: o.OperatorImage, OperatorPullPolicy: corev1.PullPolicy(o.OperatorPullPolicy)},
	}
}

func logLevel(s string) (slog.Level, error) {
	switch s {
	case "error":
		return slog.LevelError, nil
	case "warn":
		return slog.LevelWarn, nil
	case "info", "":
		return slog.LevelInfo, nil
	case "debug":
		return slog.LevelDebug, nil
	}
	return 0, fmt.Errorf("--log-level is %q; it must be error, warn, info or debug", s)
}

// newLogger writes one line an entry.
func newLogger(w io.Writer, level slog.Level, format string) logr.Logger {
	o := &slog.HandlerOptions{Level: level}
	if format == "text" {
		return logr.FromSlogHandler(slog.NewTextHandler(w, o))
	}
	return logr.FromSlogHandler(slog.NewJSONHandler(w, o))
}
