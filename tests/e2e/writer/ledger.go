package main

import (
	"sync"
	"time"
)

// Range of numbers from First to Last, both included.
type Range struct {
	First int64 `json:"first"`
	Last  int64 `json:"last"`
}

// Gap is a time in which nothing was acknowledged.
type Gap struct {
	From    time.Time `json:"from"`
	Seconds float64   `json:"seconds"`
	// Failed is when the first write after From failed; zero when none did.
	Failed time.Time `json:"failed"`
}

// Report is what a checker needs: which rows the server said yes to, and when it said nothing.
type Report struct {
	Client string `json:"client"`
	// Acknowledged rows: each must be in the surviving history.
	Acknowledged []Range `json:"acknowledged"`
	Count        int64   `json:"count"`
	// Unknown rows got no answer: they may or may not be there.
	Unknown []int64 `json:"unknown"`
	// Gaps between acknowledgements longer than a second, longest last.
	Gaps []Gap `json:"gaps"`
	// LongestGap in seconds, the running one included.
	LongestGap float64   `json:"longestGap"`
	LastAck    time.Time `json:"lastAck"`
	LastError  string    `json:"lastError"`
}

// ledger records what the server acknowledged. Time is a parameter.
type ledger struct {
	mu      sync.Mutex
	client  string
	acked   []Range
	count   int64
	unknown []int64
	gaps    []Gap
	lastAck time.Time
	failed  time.Time // the first failure since lastAck
	lastErr string
}

const longGap = time.Second

func (l *ledger) ack(n int64, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
	if !l.lastAck.IsZero() {
		if d := now.Sub(l.lastAck); d >= longGap {
			l.gaps = append(l.gaps, Gap{l.lastAck, d.Seconds(), l.failed})
		}
	}
	l.lastAck, l.failed = now, time.Time{}
	if k := len(l.acked); k > 0 && l.acked[k-1].Last == n-1 {
		l.acked[k-1].Last = n
		return
	}
	l.acked = append(l.acked, Range{n, n})
}

func (l *ledger) fail(n int64, sent bool, err error, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed.IsZero() {
		l.failed = now
	}
	if sent {
		l.unknown = append(l.unknown, n)
	}
	l.lastErr = err.Error()
}

func (l *ledger) report(now time.Time) Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := Report{Client: l.client, Acknowledged: append([]Range{}, l.acked...), Count: l.count,
		Unknown: append([]int64{}, l.unknown...), Gaps: append([]Gap{}, l.gaps...), LastAck: l.lastAck, LastError: l.lastErr}
	for _, g := range l.gaps {
		r.LongestGap = max(r.LongestGap, g.Seconds)
	}
	if !l.lastAck.IsZero() {
		r.LongestGap = max(r.LongestGap, now.Sub(l.lastAck).Seconds())
	}
	return r
}

// reset forgets the gaps: a checker starts a new measurement.
func (l *ledger) reset(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gaps = nil
	if !l.lastAck.IsZero() {
		l.lastAck = now
	}
}
