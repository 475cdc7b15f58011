//go:build linux

package simulation

import (
	"context"
	"errors"
	"time"
)

// kind is a kind of traffic between two hosts; a cut may be of one kind or of all.
type kind uint8

const (
	kindAPI kind = iota
	kindSQL
	kindManager
	kindEndpoint
	kindOther
	kinds
)

var kindNames = [...]string{"api", "sql", "manager", "endpoint", "other"}

// path is one direction of one kind of traffic.
type path struct {
	from, to int
	what     kind
}

// errRefused: nobody listens, or the process died before it answered.
var errRefused = errors.New("connection refused")

// errReset: the connection broke; the request may have been executed.
var errReset = errors.New("connection reset by peer")

var errGone = errors.New("the caller's process is dead")

// reaches tells whether a packet gets through now; mu is held.
func (w *world) reaches(from, to *host, k kind) bool {
	return !from.off && !to.off && (from == to || w.cuts[path{from.id, to.id, k}] == 0)
}

// cut adds (or takes away) a cut of one direction; mu is held.
func (w *world) cut(from, to *host, n int, what ...kind) {
	if len(what) == 0 {
		what = []kind{kindAPI, kindSQL, kindManager, kindEndpoint}
	}
	for _, k := range what {
		w.cuts[path{from.id, to.id, k}] += n
	}
}

// travel is how long a packet takes; mu is held.
func (w *world) travel(from, to int, k kind) time.Duration {
	h := w.draw(counter{from, to, k})
	switch k {
	case kindAPI:
		return within(h, 2*time.Millisecond, 9*time.Millisecond)
	case kindSQL, kindManager, kindOther:
		return within(h, 250*time.Microsecond, 1500*time.Microsecond)
	default:
		return within(h, 200*time.Microsecond, 900*time.Microsecond)
	}
}

// reply gives an answer to the caller of call; it is called once, with mu held.
type reply func(value any, err error)

// delay is added to the way there and to the way back; a lost answer is one that never comes.
type delay struct {
	there, back time.Duration
	lost        bool
}

// call asks the process that target names at the moment of arrival. do runs there with mu held,
// whether the caller still waits or not. It takes mu.
func (p *proc) call(ctx context.Context, to *host, station int, k kind, extra func() delay, target func() *proc, do func(reply)) (any, error) {
	w := p.w
	if !p.gate() {
		return nil, errGone
	}
	type answer struct {
		value any
		err   error
	}
	answers := make(chan answer, 1)
	w.mu.Lock()
	var more delay
	if extra != nil {
		more = extra()
	}
	back := func(value any, err error) {
		if more.lost {
			value, err = nil, errReset // executed, and nobody tells
		}
		if !w.reaches(to, p.host, k) {
			return
		}
		w.after(w.travel(station, p.station, k)+more.back, func() {
			if w.reaches(to, p.host, k) {
				select {
				case answers <- answer{value, err}:
				default:
				}
			}
		})
	}
	if w.reaches(p.host, to, k) {
		w.after(w.travel(p.station, station, k)+more.there, func() {
			if !w.reaches(p.host, to, k) {
				return
			}
			q := target()
			if q == nil || q.dead {
				back(nil, errRefused)
				return
			}
			q.arrive(func() {
				if q.dead {
					back(nil, errRefused)
					return
				}
				do(back)
			})
		})
	}
	w.mu.Unlock()
	select {
	case a := <-answers:
		if !p.gate() {
			return nil, errGone
		}
		return a.value, a.err
	case <-ctx.Done():
		if !p.gate() {
			return nil, errGone
		}
		return nil, ctx.Err()
	case <-p.ctx.Done():
		return nil, errGone
	}
}
