//go:build linux

package simulation

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// world is virtual time and everything that happens in it. Its events run one after the other in
// the goroutine of run, with mu held. Only functions that say so take mu themselves.
type world struct {
	mu     sync.Mutex
	seed   uint64
	start  time.Time
	events eventHeap
	taken  map[time.Duration]bool // instants of pending events: none is used twice
	poke   chan struct{}
	quit   chan struct{}
	due    time.Duration // what run sleeps for; negative while it works
	over   bool
	wg     sync.WaitGroup

	procs    int
	counters map[counter]uint64
	hosts    []*host
	cuts     map[path]int

	tracing bool
	traceMu sync.Mutex
	lines   []string
	digest  uint64
}

type event struct {
	at  time.Duration
	run func()
}

// eventHeap has the earliest event first; no two have the same instant.
type eventHeap []event

func (h *eventHeap) push(e event) {
	l := append(*h, e)
	i := len(l) - 1
	for i > 0 {
		up := (i - 1) / 2
		if l[up].at < e.at {
			break
		}
		l[i] = l[up]
		i = up
	}
	l[i] = e
	*h = l
}

func (h *eventHeap) pop() event {
	l := *h
	first, last := l[0], l[len(l)-1]
	l[len(l)-1] = event{}
	l = l[:len(l)-1]
	*h = l
	for i := 0; len(l) > 0; {
		down := 2*i + 1
		if down+1 < len(l) && l[down+1].at < l[down].at {
			down++
		}
		if down >= len(l) || last.at < l[down].at {
			l[i] = last
			break
		}
		l[i] = l[down]
		i = down
	}
	return first
}

func newWorld(seed uint64, tracing bool) *world {
	return &world{
		seed: seed, start: time.Now(), taken: map[time.Duration]bool{}, poke: make(chan struct{}, 1), quit: make(chan struct{}),
		counters: map[counter]uint64{}, cuts: map[path]int{}, tracing: tracing, digest: 14695981039346656037,
	}
}

// now is the time since the start.
func (w *world) now() time.Duration { return time.Since(w.start) }

// after runs f with mu held, d from now or a few nanoseconds later; mu is held.
func (w *world) after(d time.Duration, f func()) { w.at(w.now()+max(d, 0), f) }

func (w *world) at(t time.Duration, f func()) {
	for w.taken[t] {
		t++
	}
	w.taken[t] = true
	w.events.push(event{t, f})
	if w.due >= 0 && t < w.due {
		w.due = t
		select {
		case w.poke <- struct{}{}:
		default:
		}
	}
}

// run carries out events until stop.
func (w *world) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		w.mu.Lock()
		if w.over {
			w.mu.Unlock()
			return
		}
		w.due = -1
		now := w.now()
		for len(w.events) > 0 && w.events[0].at <= now {
			e := w.events.pop()
			delete(w.taken, e.at)
			e.run()
		}
		w.due = now + time.Hour
		if len(w.events) > 0 {
			w.due = w.events[0].at
		}
		timer.Reset(w.due - now)
		w.mu.Unlock()
		select {
		case <-timer.C:
		case <-w.poke:
		case <-w.quit:
			return
		}
	}
}

// stop ends the world; mu is not held. Processes must be dead by then.
func (w *world) stop() {
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	close(w.quit)
	w.wg.Wait()
}

// mix is one step of splitmix64 over several numbers.
func mix(values ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, v := range values {
		h ^= v
		h += 0x9e3779b97f4a7c15
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}

// counter is who asks whom about what: draws are counted by it, so that the order in which
// goroutines of one instant run does not matter.
type counter struct {
	from, to int
	what     kind
}

// draw is the next number of this counter; mu is held.
func (w *world) draw(c counter) uint64 {
	n := w.counters[c]
	w.counters[c] = n + 1
	return mix(w.seed, uint64(c.from), uint64(c.to), uint64(c.what), n)
}

func within(h uint64, lo, hi time.Duration) time.Duration {
	return lo + time.Duration(h%uint64(hi-lo))
}

// say adds a line to the trace; detail lines are kept only when somebody reads them.
func (w *world) say(who, format string, args ...any) {
	if !w.tracing {
		return
	}
	text := fmt.Sprintf(format, args...)
	if i := strings.IndexByte(text, '\n'); i >= 0 {
		text = text[:i]
	}
	w.traceMu.Lock()
	defer w.traceMu.Unlock()
	w.lines = append(w.lines, fmt.Sprintf("%9.4f %-10s %s", w.now().Seconds(), who, text))
}

// fact is a line that also goes into the digest by which two runs of a seed are compared; mu is held.
func (w *world) fact(who, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%d %d %s %s", w.digest, w.now(), who, text)
	w.digest = h.Sum64()
	w.say(who, "%s", text)
}

// host is a machine, or a place in the network.
type host struct {
	id   int
	name string
	off  bool
	// stood is how long its clocks stood still, all pauses together; wall is how far its wall clock
	// is beside that. Both in nanoseconds, read without mu.
	stood, wall atomic.Int64
}

func (w *world) newHost(name string) *host {
	h := &host{id: len(w.hosts), name: name}
	w.hosts = append(w.hosts, h)
	return h
}

// local is the host's own clock.
func (h *host) local() time.Time { return time.Now().Add(-time.Duration(h.stood.Load())) }

// proc is one process. A dead one never does anything again.
type proc struct {
	w       *world
	name    string
	station int // stays the same over restarts; for draws
	host    *host
	frozen  bool
	dead    bool
	ctx     context.Context
	cancel  context.CancelFunc
	waiting []chan struct{}
	backlog []func()
}

func (w *world) newProc(name string, station int, h *host) *proc {
	p := &proc{w: w, name: name, station: station, host: h}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// gate holds the caller while the process is frozen; false means that it is dead. It takes mu.
func (p *proc) gate() bool {
	for {
		p.w.mu.Lock()
		if p.dead || !p.frozen {
			dead := p.dead
			p.w.mu.Unlock()
			return !dead
		}
		thaw := make(chan struct{})
		p.waiting = append(p.waiting, thaw)
		p.w.mu.Unlock()
		<-thaw
	}
}

// arrive runs f when the process is there to see it; mu is held. f looks at dead itself.
func (p *proc) arrive(f func()) {
	if p.frozen && !p.dead {
		p.backlog = append(p.backlog, f)
		return
	}
	f()
}

// freeze stops the process as SIGSTOP does; mu is held.
func (p *proc) freeze() { p.frozen = !p.dead }

// thaw lets it go on: what has arrived comes first, one thing at a time; mu is held.
func (p *proc) thaw() {
	if !p.frozen {
		return
	}
	p.frozen = false
	backlog, waiting := p.backlog, p.waiting
	p.backlog, p.waiting = nil, nil
	d := time.Duration(0)
	for _, f := range backlog {
		d += time.Microsecond
		p.w.after(d, func() { p.arrive(f) })
	}
	for _, c := range waiting {
		d += time.Microsecond
		p.w.after(d, func() { close(c) })
	}
}

// kill ends the process; mu is held.
func (p *proc) kill() {
	if p.dead {
		return
	}
	p.dead, p.frozen = true, false
	p.cancel()
	for _, c := range p.waiting {
		close(c)
	}
	backlog := p.backlog
	p.waiting, p.backlog = nil, nil
	for _, f := range backlog {
		f() // finds the process dead
	}
}

// spawn starts a goroutine of the process, at an instant of its own; mu is held.
func (p *proc) spawn(f func(ctx context.Context)) {
	p.w.wg.Add(1)
	started := make(chan struct{})
	p.w.after(time.Microsecond, func() { close(started) })
	go func() {
		defer p.w.wg.Done()
		select {
		case <-started:
		case <-p.ctx.Done():
			return
		}
		f(p.ctx)
	}()
}

// sleep waits by the world's time; false when the process has died.
func (p *proc) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return p.gate()
	case <-p.ctx.Done():
		return false
	}
}
