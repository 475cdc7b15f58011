package engine

import "time"

// Instance is one running SQL Server process.
type Instance struct {
	cfg      Config
	now      time.Time
	effects  []Effect
	timers   timerHeap
	timerSeq uint64
	exited   bool
}

// TakeEffects returns the effects since the last call, in order.
func (in *Instance) TakeEffects() []Effect {
	e := in.effects
	in.effects = nil
	return e
}

func (in *Instance) emit(e Effect) { in.effects = append(in.effects, e) }
