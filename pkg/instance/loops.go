//go:build linux

package instance

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/lease"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
)

// Ports are what the loops of one run stand on: clocks, own server, API server, other
// managers and disk. [Run] gives them the machine; the simulation gives them a machine
// in virtual time, so that there the very same loops run.
type Ports struct {
	Options  Options
	Config   Config
	Identity Identity
	// Nonce names the run; BootID is the node's.
	Nonce, BootID string
	Clock         func() lease.Instant
	// Dial opens a session with the server of this container.
	Dial func(ctx context.Context, user, password string) (mssql.Conn, error)
	API  client.Client
	// Peers asks other managers.
	Peers interface {
		Failsafe(ctx context.Context, p managerapi.Peer, r managerapi.FailsafeRequest) (managerapi.FailsafeAnswer, error)
		Tell(ctx context.Context, p managerapi.Peer, s managerapi.Seen) error
	}
	// Remembered is what earlier runs on this volume have given to Remember; empty when there were none.
	Remembered []byte
	// Remember makes the text durable before it returns.
	Remember func(b []byte) error
	Log      *slog.Logger
	// Omit leaves rules out: empty but in proofs that a rule is needed.
	Omit ag.Omit
	// Before is the run before this one on the same volume, whose authority it takes over
	// where R3 is left out; nil otherwise.
	Before *Loops
}

// Loops are the rounds of one run of the manager without its process: nobody starts or
// ends sqlservr here. The server is seen as started and not yet accepting logins.
type Loops struct{ m *manager }

type clockFunc func() lease.Instant

func (f clockFunc) now() lease.Instant { return f() }

// NewLoops makes a run. It fails when what is remembered cannot be read.
func NewLoops(p Ports) (*Loops, error) {
	mem := &memory{path: memoryName, write: func(_ string, b []byte) error { return p.Remember(b) }}
	if len(p.Remembered) > 0 {
		if err := json.Unmarshal(p.Remembered, &mem.now); err != nil {
			return nil, fmt.Errorf("read what earlier runs remembered: %w", err)
		}
	}
	mem.belongTo(p.Config.UID)
	m := &manager{
		o: p.Options, cfg: p.Config, id: p.Identity, log: p.Log, clock: clockFunc(p.Clock), dial: p.Dial, peers: p.Peers,
		run:    ag.Run{Replica: p.Identity.Pod, PodUID: p.Identity.UID, Nonce: p.Nonce, Node: p.Identity.Node, BootID: p.BootID},
		memory: mem, metrics: newMetrics(), api: &kubeControlPlane{client: p.API, cfg: p.Config},
		kills: make(chan *ExitError, 1), restarts: make(chan struct{}, 1), fences: make(chan *fenceOrder, 1),
	}
	if _, err := mem.update(func(p *persisted) { p.Runs++ }); err != nil {
		return nil, err
	}
	first := lease.NewState(m.run, p.Config.UID, p.Config.Timing.AG(), m.clock.now(), mem.get().Authority)
	m.omit, first.Omit = p.Omit, p.Omit
	if p.Before != nil && p.Omit.Has("R3") {
		old := p.Before.m.authority.get()
		first.Proof, first.GrantedEpoch = old.Proof, old.GrantedEpoch
	}
	m.authority = newAuthority(first, mem)
	m.view.startsAnew()
	m.starts.Add(1)
	return &Loops{m: m}, nil
}

// ServerAccepts enters that the server accepts logins.
func (l *Loops) ServerAccepts() { l.m.enterLogin(context.Background(), nil) }

// ServerEnded enters that the server's process is gone.
func (l *Loops) ServerEnded() {
	l.m.view.with(func(v *view) { v.phase, v.alive = phaseStopped, false })
}

// Stop begins the stop that SIGTERM asks for. What it gives is called again and again, and
// says what to do next: wait for the hand-over, or stop the server.
func (l *Loops) Stop() func() (lease.StopStep, string) {
	began := l.m.clock.now().Mono
	var stopping time.Duration
	return func() (lease.StopStep, string) {
		step, why := lease.PlanStop(l.m.stopInput(began, stopping, true))
		switch step {
		case lease.StopWait:
			l.m.view.with(func(v *view) { v.phase = phaseHandover })
		case lease.StopServer:
			if stopping == 0 {
				stopping = max(l.m.clock.now().Mono, began+1)
				l.m.view.with(func(v *view) { v.phase = phaseStopping })
			}
		case lease.StopKill, lease.StopExit:
		}
		return step, why
	}
}

// Rounds are the endless tasks of the run, each for a goroutine of its own.
func (l *Loops) Rounds() []func(context.Context) {
	return []func(context.Context){l.m.writeLeaseRounds, l.m.leaseRounds, l.m.keeperLoop, l.m.healthLoop}
}

// Handler answers controller and peers. It says that this run holds the volume's lock,
// which is whoever runs the rounds to see to.
func (l *Loops) Handler() managerapi.Handler { return lockedHandler{handler{l.m}} }

type lockedHandler struct{ handler }

// Status implements managerapi.Handler.
func (h lockedHandler) Status(ctx context.Context) ag.Manager {
	s := h.handler.Status(ctx)
	s.HasVolumeLock = true
	return s
}

// Kills carries the orders of R6 and R7: sqlservr is to be killed, and the run to end.
func (l *Loops) Kills() <-chan *ExitError { return l.m.kills }
