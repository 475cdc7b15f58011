package ag

import "time"

// Decision is what to do now, and what must be remembered. Actions run in order;
// the first error stops the pass.
type Decision struct {
	Memory Memory
	// Watch goes into the next Input of the same process; it is never persisted.
	Watch    Watch
	Actions  []Action
	Wait     *Wait
	Blocks   []Block
	Findings []Finding
	Events   []Event
	// Readiness says for every replica whether it would be promoted now, from the same code (safety.md §3).
	Readiness []Readiness
	// Elected is the replica that would be promoted now; empty when none.
	Elected string
}

// Wait is the next instant at which something may change by itself.
type Wait struct {
	Until time.Time `json:"until"`
	For   string    `json:"for"`
	// Left is set where the exact end matters: from the beginning of this pass. A pass that
	// begins at that moment sees that it is over, one that begins earlier does not.
	Left time.Duration `json:"-"`
}

// Finding is something seen that explains the decision.
type Finding struct {
	Replica string  `json:"replica,omitempty"`
	Symptom Symptom `json:"symptom,omitempty"`
	Message string  `json:"message"`
}

// Event is to be told to people after the write that makes it true.
type Event struct {
	Type    string `json:"type"` // Normal, Warning
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Readiness of one replica.
type Readiness struct {
	Replica string `json:"replica"`
	Ready   bool   `json:"ready"`
	// Rule that refuses it, and why, when not ready.
	Rule    Rule   `json:"rule,omitempty"`
	Message string `json:"message,omitempty"`
	// ForceRule and ForceMessage say why it could not even be forced; empty when it could.
	ForceRule    Rule   `json:"forceRule,omitempty"`
	ForceMessage string `json:"forceMessage,omitempty"`
}

// Outcome of one action.
type Outcome struct {
	Action    Action
	Err       *Error
	StartedAt time.Time
	Took      time.Duration
}
