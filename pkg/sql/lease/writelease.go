package lease

import "time"

// WriteLease is SQL Server's own write lease as far as it can be known from outside.
type WriteLease struct {
	// Known is false until the first renewal or reading.
	Known bool
	// MayLastUntil is the latest moment at which it can still be valid.
	MayLastUntil time.Duration
}

// WriteLeaseSent enters a renewal that is about to be sent: it may take effect until its
// expiry of q has passed, and the lease then lasts L.
func (s State) WriteLeaseSent(now time.Duration) State {
	return s.writeLeaseUntil(now + s.Timing.Q + s.Timing.L)
}

// WriteLeaseSeen enters the remaining validity that the server itself reported in an
// answer that arrived now; the controller's promotion batch renews it too.
func (s State) WriteLeaseSeen(remaining, now time.Duration) State {
	return s.writeLeaseUntil(now + remaining)
}

func (s State) writeLeaseUntil(t time.Duration) State {
	if !s.WriteLease.Known || t > s.WriteLease.MayLastUntil {
		s.WriteLease = WriteLease{Known: true, MayLastUntil: t}
	}
	return s
}

// WriteLeaseOver tells whether the write lease must have ended by now, drift included.
func (s State) WriteLeaseOver(now time.Duration) bool {
	return s.WriteLease.Known && now > s.WriteLease.MayLastUntil+s.Timing.M
}
