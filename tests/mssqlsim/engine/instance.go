package engine

import "time"

// Instance is one running SQL Server process.
type Instance struct {
	cfg     Config
	effects []Effect
}

// TakeEffects returns the effects since the last call, in order.
func (in *Instance) TakeEffects() []Effect {
	e := in.effects
	in.effects = nil
	return e
}

// NextWake is when Tick is due next; the zero time means never.
func (in *Instance) NextWake() time.Time { return time.Time{} }

// Tick runs everything that is due at now.
func (in *Instance) Tick(now time.Time) {}
