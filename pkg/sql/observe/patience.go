package observe

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Patience shortens the wait for whoever has not answered the last time: a pass over a
// group with a silent node would otherwise last as long as its longest deadline, and
// every step of a failover with it. One that was given up on is asked once more in the
// background with the full time, so that a slow one is heard again.
//
// One Patience serves many groups. A nil one gives everybody the full time.
type Patience struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	away map[string]*absence
}

// absence of one server or manager.
type absence struct {
	since  time.Time
	asking bool
}

// impatient is enough for a session that is open or a handshake on a healthy network.
const impatient = 250 * time.Millisecond

// forgetAfter bounds what is kept of pods that are gone.
const forgetAfter = 10 * time.Minute

// NewPatience knows of nobody yet.
func NewPatience(c clock.PassiveClock) *Patience {
	return &Patience{clock: c, away: map[string]*absence{}}
}

// limit is how long to wait for this one, given the full time.
func (p *Patience) limit(name string, full time.Duration) time.Duration {
	if p == nil {
		return full
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.away[name] == nil {
		return full
	}
	return min(full, impatient)
}

// note takes down whether it answered in time, whatever the answer. ask is asking it
// again with the full time, and tells the same.
func (p *Patience) note(ctx context.Context, name string, answered bool, full time.Duration, ask func(context.Context) bool) {
	if p == nil || (!answered && ctx.Err() != nil) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if answered {
		delete(p.away, name)
		return
	}
	now := p.clock.Now()
	for other, a := range p.away {
		if now.Sub(a.since) > forgetAfter && !a.asking {
			delete(p.away, other)
		}
	}
	a := p.away[name]
	if a == nil {
		// It has just had the full time.
		p.away[name] = &absence{since: now}
		return
	}
	if a.asking {
		return
	}
	a.asking = true
	ctx = context.WithoutCancel(ctx)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, full)
		defer cancel()
		heard := ask(ctx)
		p.mu.Lock()
		defer p.mu.Unlock()
		a.asking = false
		if heard && p.away[name] == a {
			delete(p.away, name)
		}
	}()
}
