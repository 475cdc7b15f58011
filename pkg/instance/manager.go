//go:build linux

package instance

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/lease"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
)

// manager is one run of one container.
type manager struct {
	o     Options
	cfg   Config
	id    Identity
	log   *slog.Logger
	clock clocks
	dial  dialFunc
	// api is the API server; nil when the resource has nothing to ask it.
	api   controlPlane
	peers peerClient

	run       ag.Run
	reaper    *reaper
	lock      *os.File
	memory    *memory
	authority *authority
	view      view
	metrics   *metrics

	// environment and stdio of sqlservr.
	environ        []string
	stdout, stderr *os.File

	// kills carries R6 and R7 to the supervisor; the first one counts.
	kills    chan *ExitError
	restarts chan struct{}
	// fences carries the newest order; nil stands for none.
	fences chan *fenceOrder
	// copiesAsked asks copiesLoop for a reading now; it closes the channel when it is made.
	copiesAsked chan chan struct{}

	// omit leaves rules out: empty but in the simulation's proofs.
	omit ag.Omit

	// starts counts starts of sqlservr in this run; nameChecked is for the present one.
	starts      atomic.Int64
	nameChecked atomic.Bool

	// Of leaseRounds alone.
	records state.Decoder

	// Of loginLoop alone.
	saPassword string
	renamedIn  int64

	onceMu sync.Mutex
	once   map[string]string
}

// peerClient asks other managers.
type peerClient interface {
	Failsafe(ctx context.Context, p managerapi.Peer, r managerapi.FailsafeRequest) (managerapi.FailsafeAnswer, error)
	Tell(ctx context.Context, p managerapi.Peer, s managerapi.Seen) error
}

// pause waits; it returns false when ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// logOnce logs a problem when it is new, and its end.
func (m *manager) logOnce(key string, err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	m.onceMu.Lock()
	if m.once == nil {
		m.once = map[string]string{}
	}
	same := m.once[key] == text
	m.once[key] = text
	m.onceMu.Unlock()
	switch {
	case same:
	case text == "":
		m.log.Info("Problem was over", "problem", key)
	default:
		m.log.Warn("Problem was met", "problem", key, "err", text)
	}
}

// kill asks the supervisor to kill sqlservr at once.
func (m *manager) kill(e *ExitError) {
	select {
	case m.kills <- e:
	default: // one is on its way already
	}
}

func (m *manager) askRestart() {
	select {
	case m.restarts <- struct{}{}:
	default:
	}
}

// timing of the write lease.
func (m *manager) timing() ag.Timing { return m.cfg.Timing.AG() }

// hasAuthority tells whether there is a Lease at all for this server.
func (m *manager) hasAuthority() bool { return m.cfg.Lease != "" && m.api != nil }

// supervise runs sqlservr until the manager shall end; what it returns decides the
// container's exit code.
func (m *manager) supervise(ctx context.Context, signals <-chan os.Signal) error {
	order := m.firstFence(ctx)
	for {
		if order != nil {
			m.stayFenced(ctx, signals, order)
			return nil
		}
		next, err := m.serve(ctx, signals)
		if !errors.Is(err, errServeAgain) {
			return err
		}
		order = next
	}
}

// errServeAgain: sqlservr was stopped on purpose, and the manager stays.
var errServeAgain = errors.New("serve again")

// serve is one run of sqlservr. With errServeAgain it returns the order to stay fenced, if any.
func (m *manager) serve(ctx context.Context, signals <-chan os.Signal) (*fenceOrder, error) {
	c, err := m.startServer()
	if err != nil {
		return nil, err
	}
	for {
		select {
		case <-c.ended:
			c.sweep()
			m.view.with(func(v *view) { v.phase, v.alive = phaseStopped, false })
			m.log.Error("Server ended by itself", "how", c.describe())
			if code := c.exitCode(); code != 0 {
				return nil, exitf(code, "sqlservr %s", c.describe())
			}
			return nil, nil
		case sig := <-signals:
			if !isStop(sig) {
				m.passOn(c, sig)
				continue
			}
			m.log.Info("Stop was asked for", "signal", sig.String())
			return nil, m.stop(ctx, c, signals, true)
		case <-ctx.Done():
			return nil, m.stop(context.WithoutCancel(ctx), c, signals, false)
		case order := <-m.fences:
			if order == nil {
				continue
			}
			m.log.Info("Server is fenced", "by", order.By, "reason", order.Reason)
			if err := m.stop(ctx, c, signals, true); err != nil {
				return nil, err
			}
			return order, errServeAgain
		case <-m.restarts:
			if err := m.stop(ctx, c, signals, false); err != nil {
				return nil, err
			}
			return nil, errServeAgain
		case e := <-m.kills:
			return nil, m.killServer(c, e)
		}
	}
}

func isStop(sig os.Signal) bool {
	return sig == syscall.SIGTERM || sig == syscall.SIGINT || sig == syscall.SIGQUIT
}

func (m *manager) passOn(c *child, sig os.Signal) {
	if s, ok := sig.(syscall.Signal); ok {
		if err := c.signal(s); err != nil {
			m.log.Warn("Signal could not be passed on", "signal", sig.String(), "err", err.Error())
		}
	}
}

// startServer prepares what can change between two starts and starts sqlservr.
func (m *manager) startServer() (*child, error) {
	first, err := isFirstStart(m.o, m.cfg)
	if err != nil {
		return nil, exitf(ExitVolume, "look for %s: %w", masterPath(m.o, m.cfg), explainAccess(masterPath(m.o, m.cfg), err))
	}
	password := ""
	if first {
		if password, err = readPassword(m.o.SAPasswordFile); err != nil {
			return nil, &ExitError{Code: ExitConfig, Err: err}
		}
		if err := checkPolicy(password); err != nil {
			return nil, &ExitError{Code: ExitConfig, Err: err}
		}
	}
	paths, err := installTLS(m.o)
	if err != nil {
		return nil, err
	}
	if err := installConf(m.o, m.cfg, paths); err != nil {
		return nil, err
	}
	// What an earlier process was about to be killed or restarted for is not this one's.
	drain(m.kills)
	drain(m.restarts)
	m.starts.Add(1)
	m.nameChecked.Store(false)
	m.view.startsAnew()
	stdin, err := os.Open(os.DevNull)
	if err != nil {
		return nil, &ExitError{Code: ExitStart, Err: err}
	}
	defer func() { _ = stdin.Close() }()
	c, err := m.reaper.start([]string{m.o.Program}, serverEnvironment(m.environ, m.cfg, password), m.o.DataDir,
		[]*os.File{stdin, m.stdout, m.stderr, m.lock})
	if err != nil {
		m.view.with(func(v *view) { v.phase, v.alive = phaseStopped, false })
		return nil, &ExitError{Code: ExitStart, Err: err}
	}
	m.log.Info("Server was started", "pid", c.pid, "firstStart", first, "tls", paths.Cert != "")
	return c, nil
}

func drain[T any](ch chan T) {
	for {
		select {
		case <-ch:
		default:
			return
		}
	}
}

// stopTick is how often the plan of a stop is looked at.
const stopTick = 200 * time.Millisecond

// stop ends sqlservr: wait for the hand-over if handover allows and the plan says so,
// SIGTERM, SIGKILL after the grace. A second SIGTERM cuts the hand-over short. It
// returns nil after a clean stop.
func (m *manager) stop(ctx context.Context, c *child, signals <-chan os.Signal, handover bool) error {
	began := m.clock.now().Mono
	var stopping time.Duration
	told := ""
	tick := time.NewTicker(stopTick)
	defer tick.Stop()
	for {
		in := m.stopInput(began, stopping, handover)
		step, why := lease.PlanStop(in)
		if why != told {
			m.log.Info("Stop went on", "step", string(step), "why", why)
			told = why
		}
		switch step {
		case lease.StopWait:
			m.view.with(func(v *view) { v.phase = phaseHandover })
		case lease.StopServer:
			if stopping == 0 {
				stopping = max(m.clock.now().Mono, began+1)
				m.view.with(func(v *view) { v.phase = phaseStopping }) // authority ends here
				if err := c.signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
					m.log.Error("SIGTERM could not be sent", "err", err.Error())
				}
			}
		case lease.StopKill:
			return m.killServer(c, exitf(ExitStopKill, "sqlservr was killed: it did not stop within %s", m.cfg.StopTimeout.Duration))
		case lease.StopExit:
		}
		select {
		case <-c.ended:
			c.sweep()
			m.view.with(func(v *view) { v.phase, v.alive = phaseStopped, false })
			m.log.Info("Server has stopped", "how", c.describe())
			if code := c.exitCode(); code != 0 && code != 128+int(syscall.SIGTERM) {
				return exitf(code, "sqlservr %s while it was told to stop", c.describe())
			}
			return nil
		case e := <-m.kills:
			return m.killServer(c, e)
		case sig := <-signals:
			if isStop(sig) {
				handover = false
			}
		case <-ctx.Done():
			handover = false
			ctx = context.WithoutCancel(ctx)
		case <-tick.C:
		}
	}
}

// stopInput is what the plan of a stop looks at; stopping is when SIGTERM was sent, 0 when it was not.
func (m *manager) stopInput(began, stopping time.Duration, handover bool) lease.StopInput {
	now := m.clock.now().Mono
	v := m.view.snapshot()
	in := lease.StopInput{
		Server:      v.server(),
		Handover:    handover && m.hasAuthority() && m.cfg.PreStop.Enabled,
		HandoverMax: m.cfg.PreStop.Timeout.Duration,
		SinceSignal: now - began,
		StopMax:     m.cfg.StopTimeout.Duration,
	}
	in.Server.Running = true // its end is seen by its own channel
	if stopping > 0 {
		in.Stopping = max(now-stopping, 1)
	}
	if m.hasAuthority() {
		s := m.authority.get()
		in.Holder = s.Record != nil && s.Record.Holder.Same(s.Self)
		in.APIAway = now - v.apiOK
		switch {
		case s.Record == nil:
		case m.needed(s.Record.Operation):
			// The hand-over still asks this server: it goes on as if it were primary.
			in.Holder, in.Server.Role = true, ag.RolePrimary
		case in.Holder && v.lostKnown && s.RecordSent <= v.lostAt:
			// It has just stopped being PRIMARY, and the record was read before that: the
			// operation that did it is perhaps in the next reading.
			in.Server.Role = ag.RolePrimary
		}
	}
	for _, r := range m.cfg.Replicas {
		if r.Mode == ag.ModeSynchronous && r.Name != m.id.Pod {
			in.Targets++
		}
	}
	return in
}

// needed tells whether an operation that moves the primary away from here still needs
// this server. After OFFLINE its numbers are compared with the target's (R20), and until
// the target is PRIMARY it is the complete copy that is promoted again when the target fails.
func (m *manager) needed(op *ag.Operation) bool {
	return op != nil && op.Phase != ag.PhasePublishing &&
		(equalName(op.From, m.id.Pod) || equalName(op.Target, m.id.Pod))
}

// killPatience is how long a killed process may take to go. One that hangs in the
// kernel (dead storage) outlives it; the end of this process ends the container anyway.
const killPatience = 10 * time.Second

// killServer ends sqlservr at once and passes the reason on.
func (m *manager) killServer(c *child, why *ExitError) error {
	m.log.Error("Server is killed", "why", why.Error())
	m.view.with(func(v *view) { v.phase = phaseStopping })
	c.kill()
	t := time.NewTimer(killPatience)
	defer t.Stop()
	select {
	case <-c.ended:
		m.view.with(func(v *view) { v.phase, v.alive = phaseStopped, false })
	case <-t.C:
		m.log.Error("Server is not gone yet", "pid", c.pid)
	}
	return why
}
