package engine

import (
	"container/heap"
	"time"
)

// timer is a pending call. Timers of the same time run in the order in which they were set.
type timer struct {
	at   time.Time
	seq  uint64
	fire func()
	pos  int // in the heap, -1 when not pending
}

type timerHeap []*timer

func (h timerHeap) Len() int { return len(h) }
func (h timerHeap) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].seq < h[j].seq
}
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i, j
}
func (h *timerHeap) Push(x any) {
	t := x.(*timer)
	t.pos = len(*h)
	*h = append(*h, t)
}
func (h *timerHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	t.pos = -1
	return t
}

// after sets a timer; the returned value cancels it.
func (in *Instance) after(d time.Duration, fire func()) *timer { return in.at(in.now.Add(d), fire) }

func (in *Instance) at(t time.Time, fire func()) *timer {
	in.timerSeq++
	tm := &timer{at: t, seq: in.timerSeq, fire: fire}
	heap.Push(&in.timers, tm)
	return tm
}

// stop cancels t, which may be nil or done.
func (in *Instance) stop(t *timer) {
	if t != nil && t.pos >= 0 {
		heap.Remove(&in.timers, t.pos)
	}
}

// begin opens every input: it moves the clock and runs what is due, so that an instance that was
// frozen notices expired leases and silent peers before it looks at anything else.
func (in *Instance) begin(now time.Time) {
	if now.After(in.now) {
		in.now = now
	}
	for len(in.timers) > 0 && !in.timers[0].at.After(in.now) {
		t := heap.Pop(&in.timers).(*timer)
		t.fire()
	}
}

// NextWake is when Tick is due next; the zero time means never.
func (in *Instance) NextWake() time.Time {
	if len(in.timers) == 0 || in.exited {
		return time.Time{}
	}
	return in.timers[0].at
}

// Tick runs everything that is due at now.
func (in *Instance) Tick(now time.Time) { in.begin(now) }
