//go:build linux

package instance

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// fenceOrder is one entry of the resource's annotation kubectl-mssql.io/fenced: keep
// this replica's server stopped, the pod and its volume stay.
type fenceOrder = v1alpha1.FencedReplica

// Cadence of reading the annotation, and how long the first reading may hold up a start.
const (
	fenceInterval = 5 * time.Second
	fenceTimeout  = 3 * time.Second
)

// readFence asks the API server whether this replica is to be fenced.
func (m *manager) readFence(ctx context.Context) (*fenceOrder, error) {
	ctx, cancel := context.WithTimeout(ctx, fenceTimeout)
	defer cancel()
	text, err := m.api.fencedAnnotation(ctx)
	if err != nil {
		return nil, err
	}
	orders, err := v1alpha1.ParseFenced(text)
	if err != nil {
		return nil, err
	}
	for i := range orders {
		if orders[i].Replica == m.id.Pod {
			return &orders[i], nil
		}
	}
	return nil, nil
}

// firstFence is the order in force at the start: the API server's word, or what was
// last heard when it does not answer.
func (m *manager) firstFence(ctx context.Context) *fenceOrder {
	known := m.memory.get().Fenced
	if m.api == nil {
		return nil
	}
	order, err := m.readFence(ctx)
	if err != nil {
		m.logOnce("fenced", fmt.Errorf("read whether this replica is fenced: %w", err))
		return known
	}
	m.rememberFence(order)
	return order
}

func (m *manager) rememberFence(order *fenceOrder) {
	if reflect.DeepEqual(m.memory.get().Fenced, order) {
		return
	}
	if _, err := m.memory.update(func(p *persisted) { p.Fenced = order }); err != nil {
		m.logOnce("remember the fence", err)
	}
}

// fenceLoop follows the annotation.
func (m *manager) fenceLoop(ctx context.Context) {
	for pause(ctx, fenceInterval) {
		order, err := m.readFence(ctx)
		if ctx.Err() != nil {
			return
		}
		m.logOnce("fenced", err)
		if err != nil {
			continue // no answer changes nothing
		}
		m.rememberFence(order)
		drain(m.fences)
		m.fences <- order
	}
}

// stayFenced holds the server down until the order is taken back or the container is
// told to stop. Then the container ends: the next one is a new run that has no
// authority (R3).
func (m *manager) stayFenced(ctx context.Context, signals <-chan os.Signal, order *fenceOrder) {
	m.view.with(func(v *view) {
		v.phase, v.alive = phaseFenced, false
		v.accepted, v.loginProblem = false, "this replica is fenced"
		v.localKnown, v.localProblem = false, "this replica is fenced"
	})
	m.log.Info("Replica stays fenced", "by", order.By, "reason", order.Reason)
	for {
		select {
		case <-ctx.Done():
			return
		case sig := <-signals:
			if isStop(sig) {
				return
			}
		case now := <-m.fences:
			if now == nil {
				m.log.Info("Replica is not fenced any more: the container restarts")
				return
			}
		}
	}
}
