package engine

import (
	"context"
	"time"
)

// Host drives one Instance. In real time it is a mutex, timers and a write-ahead file; in virtual
// time a scheduler whose statements are coroutines, so that Wait and Sleep yield.
type Host interface {
	// Do runs f with the instance locked and carries out the effects before it returns: what f
	// committed without a wait is acknowledged by the return, so the Persist effects must be
	// durable by then. Iterators that f got from the instance end with f; rows may be kept.
	Do(f func(now time.Time, in *Instance))
	// Wait parks until Complete{id}; a zero id returns at once. When ctx ends first, Wait calls
	// [Instance.CancelWait] and returns the context's error.
	Wait(ctx context.Context, id WaitID) error
	// Sleep is WAITFOR DELAY.
	Sleep(ctx context.Context, d time.Duration) error
	// Now is the host's time, the one that Do passes.
	Now() time.Time
}
