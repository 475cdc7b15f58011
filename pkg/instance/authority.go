//go:build linux

package instance

import (
	"fmt"
	"sync"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/lease"
)

// authority keeps the one lease.State of this run: every change goes through it, and
// what must outlive the run is on the disk before the change is seen.
type authority struct {
	mu     sync.Mutex
	state  lease.State
	memory *memory
}

func newAuthority(s lease.State, m *memory) *authority {
	return &authority{state: s, memory: m}
}

// get is the present state.
func (a *authority) get() lease.State {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state
}

// strictly makes a change that is a promise to somebody: when it cannot be persisted,
// nothing is changed.
func (a *authority) strictly(change func(lease.State) lease.State) (lease.State, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := change(a.state)
	if err := a.persist(next); err != nil {
		return a.state, err
	}
	a.state = next
	return next, nil
}

// learn makes a change that is true whether the disk takes it or not: a full volume
// must not make a manager act on an older truth. The error is for the log; the next
// write that succeeds carries it.
func (a *authority) learn(change func(lease.State) lease.State) (lease.State, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next := change(a.state)
	err := a.persist(next)
	a.state = next
	return next, err
}

func (a *authority) persist(next lease.State) error {
	if next.Persisted.Equal(a.memory.get().Authority) {
		return nil
	}
	if _, err := a.memory.update(func(p *persisted) { p.Authority = next.Persisted }); err != nil {
		return fmt.Errorf("keep the highest epoch and seal: %w", err)
	}
	return nil
}
