package server

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// errStopped ends what runs when the instance stops or is killed.
var errStopped = errors.New("the instance has stopped")

// host drives one engine.Instance in real time. It implements engine.Host.
//
// One goroutine, the applier, takes the effects of all callers in order, writes the
// records among them with one sync and then carries the effects out. Callers of Do wait
// until everything that they may have seen is durable.
type host struct {
	store   *store
	carry   func(engine.Effect) // carries out what is not the host's own; called by the applier
	failed  func(error)         // the disk failed: the process has to end
	rotate  int64               // bytes of log after which a snapshot is taken
	crash   crashPoint
	stopped chan struct{}
	applier sync.WaitGroup

	mu      sync.Mutex // guards the instance and the queue
	in      *engine.Instance
	disk    *engine.Disk // what is durable, for the next snapshot; the applier's alone
	queue   []engine.Effect
	taken   uint64 // effects ever queued
	wake    *time.Timer
	closed  bool
	waits   map[engine.WaitID]chan error
	ended   map[engine.WaitID]error // completed before anybody waited
	applied sync.Cond               // on mu: carried grew, or closed
	carried uint64                  // effects ever carried out
	more    chan struct{}           // tells the applier about a filled queue
}

const defaultRotate = 8 << 20

func newHost(s *store, disk *engine.Disk) *host {
	h := &host{
		store: s, disk: disk, rotate: defaultRotate, stopped: make(chan struct{}),
		waits: map[engine.WaitID]chan error{}, ended: map[engine.WaitID]error{}, more: make(chan struct{}, 1),
	}
	h.applied.L = &h.mu
	return h
}

// run opens the instance's life: it arms the timer and starts the applier.
func (h *host) run(in *engine.Instance) {
	h.mu.Lock()
	h.in = in
	h.wake = time.AfterFunc(time.Hour, h.tick)
	h.wake.Stop()
	h.collect()
	h.mu.Unlock()
	h.applier.Go(h.apply)
}

// Now is the host's time.
func (h *host) Now() time.Time { return time.Now() }

// Do runs f with the instance locked. It returns when everything up to f is durable and
// carried out, so that a caller never tells anybody what a kill could take back.
func (h *host) Do(f func(now time.Time, in *engine.Instance)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		// The instance is a memory now. Its answers reach nobody: sessions look at isStopped
		// before they tell a client anything.
		f(time.Now(), h.in)
		h.in.TakeEffects()
		return
	}
	f(time.Now(), h.in)
	h.collect()
	for target := h.taken; h.carried < target && !h.closed; {
		h.applied.Wait()
	}
}

// post is Do without the wait, for input from the network and from timers, which nobody
// acknowledges but by effects. It holds a peer back that is faster than the disk.
func (h *host) post(f func(now time.Time, in *engine.Instance)) {
	const backlog = 4096
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.taken-h.carried > backlog && !h.closed {
		h.applied.Wait()
	}
	if h.closed {
		return
	}
	f(time.Now(), h.in)
	h.collect()
}

// collect queues the instance's effects and arms the timer; h.mu is held.
func (h *host) collect() {
	effects := h.in.TakeEffects()
	if len(effects) > 0 {
		h.queue = append(h.queue, effects...)
		h.taken += uint64(len(effects))
		select {
		case h.more <- struct{}{}:
		default:
		}
	}
	if next := h.in.NextWake(); next.IsZero() {
		h.wake.Stop()
	} else {
		h.wake.Reset(max(time.Until(next), 0))
	}
}

func (h *host) tick() {
	h.post(func(now time.Time, in *engine.Instance) { in.Tick(now) })
}

// apply is the applier.
func (h *host) apply() {
	for {
		h.mu.Lock()
		batch := h.queue
		h.queue = nil
		closed := h.closed
		h.mu.Unlock()
		if closed {
			return
		}
		if len(batch) == 0 {
			select {
			case <-h.more:
			case <-h.stopped:
				return
			}
			continue
		}
		if err := h.persist(batch); err != nil {
			h.stop()
			h.failed(err)
			return
		}
		for _, e := range batch {
			switch e := e.(type) {
			case engine.Persist:
			case engine.Complete:
				h.complete(e)
			default:
				h.carry(e)
			}
		}
		h.mu.Lock()
		h.carried += uint64(len(batch))
		h.applied.Broadcast()
		h.mu.Unlock()
	}
}

// persist makes the records of a batch durable with one sync.
func (h *host) persist(batch []engine.Effect) error {
	var payloads [][]byte
	for _, e := range batch {
		p, ok := e.(engine.Persist)
		if !ok {
			continue
		}
		b, err := engine.EncodeRecords(p.Records)
		if err != nil {
			return fmt.Errorf("encode records: %w", err)
		}
		payloads = append(payloads, b)
	}
	if len(payloads) == 0 {
		return nil
	}
	crash := h.crash.due()
	switch crash {
	case "before":
		return errCrash
	case "torn":
		h.store.tear(payloads[0])
		return errCrash
	}
	if err := h.store.append(payloads...); err != nil {
		return err
	}
	if crash == "after" {
		return errCrash
	}
	for _, e := range batch {
		if p, ok := e.(engine.Persist); ok {
			h.disk.Apply(p.Records...)
		}
	}
	if h.store.size < h.rotate {
		return nil
	}
	b, err := h.disk.Snapshot()
	if err != nil {
		return fmt.Errorf("encode snapshot: %w", err)
	}
	return h.store.rotate(b)
}

func (h *host) complete(e engine.Complete) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c, ok := h.waits[e.Wait]; ok {
		delete(h.waits, e.Wait)
		c <- e.Err
		return
	}
	h.ended[e.Wait] = e.Err
}

// Wait parks until Complete{id}.
func (h *host) Wait(ctx context.Context, id engine.WaitID) error {
	if id == 0 {
		return nil
	}
	h.mu.Lock()
	if err, ok := h.ended[id]; ok {
		delete(h.ended, id)
		h.mu.Unlock()
		return err
	}
	if h.closed {
		h.mu.Unlock()
		return errStopped
	}
	c := make(chan error, 1)
	h.waits[id] = c
	h.mu.Unlock()
	select {
	case err := <-c:
		return err
	case <-h.stopped:
		return errStopped
	case <-ctx.Done():
	}
	h.mu.Lock()
	delete(h.waits, id)
	h.mu.Unlock()
	select {
	case err := <-c: // completed at the same moment: the outcome is known
		return err
	default:
	}
	h.Do(func(now time.Time, in *engine.Instance) { in.CancelWait(now, id) })
	h.mu.Lock()
	delete(h.ended, id)
	h.mu.Unlock()
	return ctx.Err()
}

// Sleep is WAITFOR DELAY.
func (h *host) Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-h.stopped:
		return errStopped
	case <-ctx.Done():
		return ctx.Err()
	}
}

// stop freezes the instance: nothing is written or sent any more. What is in the queue is
// dropped, as by a kill; a clean stop drains it first.
func (h *host) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.closed = true
	if h.wake != nil {
		h.wake.Stop()
	}
	close(h.stopped)
	h.applied.Broadcast()
}

// isStopped tells whether what Do did may not be on the disk.
func (h *host) isStopped() bool {
	select {
	case <-h.stopped:
		return true
	default:
		return false
	}
}

// finished waits for the applier, so that the store can be closed.
func (h *host) finished() { h.applier.Wait() }
