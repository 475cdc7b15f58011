package lease

import "time"

// Instant is one reading of both clocks of this machine, taken together.
type Instant struct {
	// Mono is the monotonic clock since the manager's start.
	Mono time.Duration
	// Wall is the wall clock.
	Wall time.Time
}

// The jumps of the wall clock against the monotonic one that void every proof (R6).
// SQL Server's write lease and SYSUTCDATETIME may run on the wall clock (FG 11, safety fact 4).
const (
	maxBackward = 500 * time.Millisecond
	maxForward  = time.Second
)

// Jumped tells whether the wall clock moved against the monotonic one between two
// readings: back by more than 0.5 s, or forward by more than 1 s.
func Jumped(last, now Instant) bool {
	d := now.Wall.Round(0).Sub(last.Wall.Round(0)) - (now.Mono - last.Mono)
	return d < -maxBackward || d > maxForward
}

// Tick compares the clocks with the previous tick. A jump voids all proofs until a new
// one; the answer tells the caller to read the remaining write lease and to ask Kill.
func (s State) Tick(now Instant) (next State, jumped bool) {
	if !s.Last.Wall.IsZero() && Jumped(s.Last, now) && !s.Omit.Has("R6") {
		s.Proof = Proof{}
		s.JumpedAt, s.JumpUnchecked = now.Mono, true
		jumped = true
	}
	s.Last = now
	return s, jumped
}
