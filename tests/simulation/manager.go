//go:build linux

package simulation

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/lease"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
)

// manager is one run of the product's instance manager: its own rounds in this world's time.
type manager struct {
	*proc
	node    *node
	loops   *instance.Loops
	handler managerapi.Handler
}

// startManager starts the rounds; mu is held.
func (n *node) startManager() (*manager, error) {
	w := n.c.w
	m := &manager{proc: w.newProc(n.name+"/mgr", n.managerStation(), n.host), node: n}
	began := time.Now().Add(-time.Duration(n.host.stood.Load()))
	loops, err := instance.NewLoops(instance.Ports{
		Options: n.c.options, Config: n.c.config, Identity: n.identity(),
		Nonce: n.nonce(), Omit: n.c.omit, Before: n.runBefore(), BootID: n.bootID(),
		Clock: func() lease.Instant {
			now := n.host.local()
			return lease.Instant{Mono: now.Sub(began), Wall: now.Round(0).Add(time.Duration(n.host.wall.Load()))}
		},
		Dial: func(ctx context.Context, user, password string) (mssql.Conn, error) {
			c, err := n.connect(ctx, m.proc, user, password)
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		API: &kube{p: m.proc, a: n.c.api}, Peers: peers{m},
		Remembered: n.remembered(), Remember: n.remember,
		Log: slog.New(teller{w: w, who: m.name}),
	})
	if err != nil {
		return nil, err
	}
	m.loops, m.handler = loops, loops.Handler()
	n.manager = m
	for _, round := range loops.Rounds() {
		m.spawn(round)
	}
	m.spawn(func(ctx context.Context) {
		select {
		case why := <-loops.Kills():
			w.mu.Lock()
			defer w.mu.Unlock()
			m.arrive(func() {
				if !m.dead {
					n.kill(why.Error(), int32(why.Code)) //nolint:gosec // an exit code
				}
			})
		case <-ctx.Done():
		}
	})
	return m, nil
}

// nonce names the present run.
func (n *node) nonce() string { return fmt.Sprintf("%s-run-%d", n.name, n.containers) }

// runBefore is what ran on the same volume before, or nil.
func (n *node) runBefore() *instance.Loops {
	if n.manager == nil {
		return nil
	}
	return n.manager.loops
}

func (n *node) remembered() []byte {
	n.memoryMu.Lock()
	defer n.memoryMu.Unlock()
	return n.memory
}

// remember is called with locks of the product held: it must not take mu.
func (n *node) remember(b []byte) error {
	n.recall(b)
	return nil
}

// recall replaces what is remembered on the volume.
func (n *node) recall(b []byte) {
	n.memoryMu.Lock()
	defer n.memoryMu.Unlock()
	n.memory = b
}

// peers asks other managers.
type peers struct{ m *manager }

// askManager runs do at the manager of a replica. It takes mu.
func askManager[T any](ctx context.Context, from *proc, n *node, do func(managerapi.Handler) (T, error)) (T, error) {
	var none T
	if n == nil {
		return none, errRefused
	}
	v, err := from.call(ctx, n.host, n.managerStation(), kindManager, nil, func() *proc {
		if n.manager == nil {
			return nil
		}
		return n.manager.proc
	}, func(back reply) {
		v, err := do(n.manager.handler)
		back(v, err)
	})
	if err != nil {
		return none, err
	}
	t, _ := v.(T)
	return t, nil
}

// Failsafe asks for an answer of safety.md §6.
func (p peers) Failsafe(ctx context.Context, to managerapi.Peer, r managerapi.FailsafeRequest) (managerapi.FailsafeAnswer, error) {
	return askManager(ctx, p.m.proc, p.m.node.c.node(to.Name), func(h managerapi.Handler) (managerapi.FailsafeAnswer, error) {
		return h.Failsafe(ctx, r)
	})
}

// Tell passes on what was seen (R4).
func (p peers) Tell(ctx context.Context, to managerapi.Peer, s managerapi.Seen) error {
	_, err := askManager(ctx, p.m.proc, p.m.node.c.node(to.Name), func(h managerapi.Handler) (struct{}, error) {
		return struct{}{}, h.Seen(ctx, s)
	})
	return err
}

// teller puts the product's log into the trace.
type teller struct {
	w     *world
	who   string
	attrs []slog.Attr
}

// Enabled implements slog.Handler.
func (t teller) Enabled(_ context.Context, l slog.Level) bool {
	return t.w.tracing && l >= slog.LevelInfo
}

// Handle implements slog.Handler.
func (t teller) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	})
	t.w.say(t.who, "%s", b.String())
	return nil
}

// WithAttrs implements slog.Handler.
func (t teller) WithAttrs(a []slog.Attr) slog.Handler {
	t.attrs = append(t.attrs[:len(t.attrs):len(t.attrs)], a...)
	return t
}

// WithGroup implements slog.Handler.
func (t teller) WithGroup(string) slog.Handler { return t }
