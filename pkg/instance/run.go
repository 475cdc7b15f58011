//go:build linux

package instance

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/lease"
)

// How long another run's lock on the volume is waited for: the kernel of a node that
// has just killed a container needs a moment, a live owner keeps it.
const (
	lockPatience = 20 * time.Second
	lockEvery    = 200 * time.Millisecond
)

// Run is the instance manager. It returns when the server has ended; the error's
// exit code (CodeOf) is the container's.
func Run(ctx context.Context, o Options, streams genericiooptions.IOStreams) error {
	// The renewals share the container's CPU with sqlservr and must not wait for each other.
	if runtime.GOMAXPROCS(0) < 2 {
		runtime.GOMAXPROCS(2)
	}
	// A caller's context that ends on SIGTERM must not cut the hand-over short.
	ctx = context.WithoutCancel(ctx)
	log := slog.New(slog.NewJSONHandler(streams.ErrOut, &slog.HandlerOptions{ReplaceAttr: inUTC})).With("component", "instance-manager")
	cfg, err := Load(o.ConfigFile)
	if err != nil {
		return &ExitError{Code: ExitConfig, Err: err}
	}
	id, err := IdentityFromEnv(os.Getenv)
	if err != nil {
		return &ExitError{Code: ExitConfig, Err: err}
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	m, err := newManager(ctx, o, cfg, id, log.With("replica", id.Pod))
	if err != nil {
		return err
	}
	m.stdout, m.stderr = asFile(streams.Out, os.Stdout), asFile(streams.ErrOut, os.Stderr)
	return m.main(ctx, signals)
}

// inUTC keeps the log's times comparable when TZ is set for sqlservr.
func inUTC(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime {
		a.Value = slog.TimeValue(a.Value.Time().UTC())
	}
	return a
}

// asFile is the descriptor that sqlservr writes to: its output passes through untouched.
func asFile(w io.Writer, otherwise *os.File) *os.File {
	if f, ok := w.(*os.File); ok {
		return f
	}
	return otherwise
}

// newManager prepares the volume and takes its lock.
func newManager(ctx context.Context, o Options, cfg Config, id Identity, log *slog.Logger) (*manager, error) {
	if err := checkVolume(o); err != nil {
		return nil, err
	}
	lock, err := lockVolume(ctx, o, lockPatience, lockEvery)
	if err != nil {
		return nil, err
	}
	mem, err := openMemory(o.stateDir(), cfg.UID)
	if err != nil {
		return nil, &ExitError{Code: ExitVolume, Err: err}
	}
	if _, err := mem.update(func(p *persisted) { p.Runs++ }); err != nil {
		log.Warn("Run could not be counted", "err", err.Error()) // a full volume
	}
	nonce, err := newNonce()
	if err != nil {
		return nil, err
	}
	m := &manager{
		o: o, cfg: cfg, id: id, log: log, clock: machineClocks{}, dial: loopback(cfg.Port),
		run:    ag.Run{Replica: id.Pod, PodUID: id.UID, Nonce: nonce, Node: id.Node, BootID: bootID()},
		reaper: newReaper(), lock: lock, memory: mem, metrics: newMetrics(), environ: os.Environ(),
		kills: make(chan *ExitError, 1), restarts: make(chan struct{}, 1), fences: make(chan *fenceOrder, 1),
		copiesAsked: make(chan chan struct{}),
	}
	m.view.phase = phasePreparing
	m.authority = newAuthority(lease.NewState(m.run, cfg.UID, cfg.Timing.AG(), m.clock.now(), mem.get().Authority), mem)
	m.metrics.registry.MustRegister(newViewCollector(m))
	remembering := &rememberingDialer{}
	m.peers = &managerapi.Client{Credentials: o.credentials(), Dial: remembering.dial}
	if api, err := newControlPlane(o.Kubeconfig, cfg); err == nil {
		m.api = api
	} else if cfg.Lease != "" {
		return nil, &ExitError{Code: ExitConfig, Err: err}
	} else {
		log.Info("There is no API server to ask: fencing by annotation is off", "err", err.Error())
	}
	return m, nil
}

func newNonce() (string, error) {
	b := make([]byte, 8)
	if _, err := rand.Read(b); err != nil {
		return "", fmt.Errorf("name this run: %w", err)
	}
	return hex.EncodeToString(b), nil
}

// bootID is the node's, as its kubelet reports it in status.nodeInfo.bootID.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(trimLine(b))
}

func trimLine(b []byte) []byte {
	for len(b) > 0 && (b[len(b)-1] == '\n' || b[len(b)-1] == '\r') {
		b = b[:len(b)-1]
	}
	return b
}

// main serves and supervises until the server has ended.
func (m *manager) main(ctx context.Context, signals <-chan os.Signal) error {
	if err := becomeSubreaper(); err != nil {
		m.log.Warn("Orphans will not be collected", "err", err.Error())
	}
	var listener net.ListenConfig
	probes, err := listener.Listen(ctx, "tcp", m.o.ProbeAddress)
	if err != nil {
		return exitf(ExitConfig, "listen for probes: %w", err)
	}
	managers, err := listener.Listen(ctx, "tcp", m.o.ManagerAddress)
	if err != nil {
		return exitf(ExitConfig, "listen for controller and peers: %w", errors.Join(err, probes.Close()))
	}
	loops, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	m.log.Info("Manager was started", "nonce", m.run.Nonce, "podUID", m.run.PodUID, "run", m.memory.get().Runs,
		"probes", probes.Addr().String(), "managers", managers.Addr().String(),
		"highestEpoch", m.memory.get().Authority.Epoch)
	wg.Go(func() { m.collectChildren(loops) })
	wg.Go(func() {
		if err := m.serveProbes(loops, probes); err != nil {
			m.log.Error("Probes are not served any more", "err", err.Error())
		}
	})
	wg.Go(func() {
		s := &managerapi.Server{
			Handler: handler{m}, Credentials: m.o.credentials(), Replicas: m.cfg.ReplicaNames(), Log: m.log,
		}
		if err := s.Serve(loops, managers); err != nil {
			m.log.Error("Controller and peers are not served any more", "err", err.Error())
		}
	})
	wg.Go(func() { m.loginLoop(loops) })
	if m.cfg.Group != "" {
		wg.Go(func() { m.writeLeaseLoop(loops) })
		wg.Go(func() { m.healthLoop(loops) })
		wg.Go(func() { m.copiesLoop(loops) })
	}
	if m.hasAuthority() {
		wg.Go(func() { m.leaseLoop(loops) })
		wg.Go(func() { m.keeperLoop(loops) })
	}
	if m.api != nil {
		wg.Go(func() { m.fenceLoop(loops) })
	}
	err = m.supervise(ctx, signals)
	switch code := CodeOf(err); {
	case err == nil:
		m.log.Info("Manager ends", "exitCode", code)
	default:
		m.log.Error("Manager ends", "exitCode", code, "err", err.Error())
	}
	return err
}

// collectChildren reaps on every SIGCHLD, and once in a while in case one was lost.
func (m *manager) collectChildren(ctx context.Context) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	for {
		m.reaper.reap()
		t := time.NewTimer(time.Second)
		select {
		case <-ended:
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return
		}
		t.Stop()
	}
}
