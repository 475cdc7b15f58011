//go:build linux

package instance

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/lease"
)

// askPeers tries to win a proof of authority from the other managers while the API
// server is away (safety.md §6). It returns whether it did.
func (m *manager) askPeers(ctx context.Context) bool {
	v := m.view.snapshot()
	s := m.authority.get()
	if !v.serving() || !v.localKnown {
		return false
	}
	operation := s.Record != nil && s.Record.Operation != nil
	if v.local.role != ag.RolePrimary && !operation {
		return false // R3
	}
	q, ok := s.Ask(v.local.groupID)
	if !ok {
		return false
	}
	k := v.local.k
	if s.Record != nil {
		k = min(k, s.Record.Rule.K)
	}
	ask, need := lease.Peers(m.id.Pod, v.local.configured, k)
	sent := m.clock.now().Mono
	answers := m.askAll(ctx, q, ask)
	proven := false
	m.change(func(s lease.State) lease.State {
		s, proven = s.FailsafeProven(q, sent, ask, need, answers)
		return s
	})
	result, problem := "ok", error(nil)
	if !proven {
		result = "error"
		problem = fmt.Errorf("%d of %d needed managers said yes%s", lease.Counted(ask, answers), need, refusals(answers))
	}
	m.metrics.failsafeRounds.WithLabelValues(result).Inc()
	m.logOnce("failsafe", problem)
	return proven
}

func refusals(answers []lease.Answer) string {
	text := ""
	for _, a := range answers {
		if !a.OK {
			text += fmt.Sprintf("; %s: %s", a.Replica, a.Why)
		}
	}
	return text
}

func (m *manager) askAll(ctx context.Context, q lease.Question, ask []string) []lease.Answer {
	ctx, cancel := context.WithTimeout(ctx, m.timing().Call)
	defer cancel()
	answers := make([]lease.Answer, len(ask))
	var wg sync.WaitGroup
	for i, name := range ask {
		wg.Go(func() {
			peer := m.peer(name)
			a, err := m.peers.Failsafe(ctx, peer, managerapi.FailsafeRequest{
				AGUID: q.AGUID, GroupID: q.GroupID, Epoch: q.Epoch, Holder: q.Holder,
			})
			answers[i] = lease.Answer{Replica: name, OK: err == nil && a.Granted, Why: a.Reason}
			if err != nil {
				answers[i].Why = err.Error()
			}
		})
	}
	wg.Wait()
	return answers
}

// peer is a replica by the name that its server goes by.
func (m *manager) peer(server string) managerapi.Peer {
	for _, r := range m.cfg.Replicas {
		if equalName(r.Name, server) {
			server = r.Name
		}
	}
	return managerapi.Peer{Name: server, Address: m.cfg.ManagerAddress(server)}
}

// tellTimeout bounds one round of telling.
const tellTimeout = 5 * time.Second

// tellPeers passes the highest epoch, rule number and count of swaps on (R4). Nobody waits for it: it
// makes others refuse older holders sooner, and what they miss they read in the Lease.
func (m *manager) tellPeers(s lease.State) {
	t := s.Tell()
	for _, r := range m.cfg.Replicas {
		if r.Name == m.id.Pod {
			continue
		}
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), tellTimeout)
			defer cancel()
			err := m.peers.Tell(ctx, m.peer(r.Name), managerapi.Seen{AGUID: t.AGUID, Epoch: t.Epoch, Rule: t.Rule, Swaps: t.Swaps, Holder: t.Holder})
			if err != nil {
				m.log.Debug("Manager could not be told", "replica", r.Name, "err", err.Error())
			}
		}()
	}
}

// handler answers controller and peers, from memory and the local disk.
type handler struct{ m *manager }

// Status implements managerapi.Handler.
func (h handler) Status(context.Context) ag.Manager { return h.m.status() }

func (m *manager) status() ag.Manager {
	now := m.clock.now().Mono
	v := m.view.snapshot()
	s := m.authority.get().Manager(now)
	s.HasVolumeLock = m.lock != nil
	s.Server = string(v.phase)
	if v.diagnosticsKnown {
		d := v.diagnostics
		d.Ago = now - v.diagnosticsAt
		s.Diagnostics = &d
	}
	return s
}

// Seal implements managerapi.Handler: a yes is on the disk (R22).
func (h handler) Seal(_ context.Context, r managerapi.SealRequest) (managerapi.SealAnswer, error) {
	var answer lease.SealAnswer
	_, err := h.m.authority.strictly(func(s lease.State) lease.State {
		s, answer = s.TakeSeal(lease.Seal{AGUID: r.AGUID, Epoch: r.Epoch, Version: r.Version}, h.m.clock.now().Mono)
		return s
	})
	if err != nil {
		return managerapi.SealAnswer{}, err
	}
	h.m.log.Info("Seal was asked for", "epoch", r.Epoch, "sealed", answer.OK, "why", answer.Why)
	return managerapi.SealAnswer{Sealed: answer.OK, Reason: answer.Why, Manager: h.m.status()}, nil
}

// Failsafe implements managerapi.Handler.
func (h handler) Failsafe(_ context.Context, r managerapi.FailsafeRequest) (managerapi.FailsafeAnswer, error) {
	v := h.m.view.snapshot()
	var own lease.Follows
	if v.localKnown {
		own = lease.Follows{Role: v.local.role, GroupID: v.local.groupID}
		if v.local.role == ag.RoleSecondary { // of a resolving replica the view may be stale (FG 3.5)
			own.Primary = v.local.primary
		}
	}
	q := lease.Question{AGUID: r.AGUID, GroupID: r.GroupID, Epoch: r.Epoch, Holder: r.Holder}
	var answer lease.Answer
	_, err := h.m.authority.strictly(func(s lease.State) lease.State {
		s, answer = s.AnswerFailsafe(q, own, h.m.clock.now().Mono)
		return s
	})
	if err != nil {
		return managerapi.FailsafeAnswer{}, err
	}
	result := "granted"
	if !answer.OK {
		result = "refused"
	}
	h.m.metrics.failsafeAnswers.WithLabelValues(result).Inc()
	return managerapi.FailsafeAnswer{Granted: answer.OK, Reason: answer.Why, Nonce: h.m.run.Nonce}, nil
}

// Seen implements managerapi.Handler (R4).
func (h handler) Seen(_ context.Context, r managerapi.Seen) error {
	_, err := h.m.authority.learn(func(s lease.State) lease.State {
		return s.Hear(lease.Tell{AGUID: r.AGUID, Epoch: r.Epoch, Rule: r.Rule, Swaps: r.Swaps, Holder: r.Holder})
	})
	return err
}

// rememberingDialer connects by name, and by the address that the name last had when
// it cannot be resolved: an outage of the cluster's DNS is not one of the peers (I5).
type rememberingDialer struct {
	dialer net.Dialer
	mu     sync.Mutex
	last   map[string]string
}

func (d *rememberingDialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	resolve, cancel := context.WithTimeout(ctx, resolveTimeout)
	ips, err := d.dialer.Resolver.LookupHost(resolve, host)
	cancel()
	d.mu.Lock()
	if d.last == nil {
		d.last = map[string]string{}
	}
	if err == nil && len(ips) > 0 {
		d.last[host] = ips[0]
	}
	ip := d.last[host]
	d.mu.Unlock()
	if ip == "" {
		return nil, err
	}
	return d.dialer.DialContext(ctx, network, net.JoinHostPort(ip, port))
}

// resolveTimeout leaves most of a call's time for the call.
const resolveTimeout = 500 * time.Millisecond
