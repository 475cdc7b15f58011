package ag

import "time"

// Clock is the observer's monotonic clock around one pass, as time since the process
// started: Began before the first read of the pass, Ended after the last. What was
// first seen in a pass counts from Ended; how long it has been so is Began minus that.
// So no elapsed time is ever overstated, and no two machines' clocks are compared.
type Clock struct {
	Began time.Duration `json:"began"`
	Ended time.Duration `json:"ended"`
}

// Watch is what this process has seen with its own monotonic clock. It is kept in the
// process from pass to pass and never persisted: after a restart it is empty, and only
// time is lost.
type Watch struct {
	// Renewals is the Lease's renewal text of Epoch and Seen when it was first seen.
	Renewals string        `json:"renewals,omitempty"`
	Epoch    int64         `json:"epoch,omitempty"`
	Seen     time.Duration `json:"seen,omitempty"`
	// Reads of the Lease in a row that have found Renewals.
	Reads Reads `json:"reads,omitzero"`
	// Unfenced is when each entry of Authority.Unfenced was first seen, by epoch, and the start of its wait.
	Unfenced []Sighting `json:"unfenced,omitempty"`
	// Operation is "<id>/<phase>/<epoch>" of the operation in flight, OperationSeen when it was first seen.
	Operation      string        `json:"operation,omitempty"`
	OperationSeen  time.Duration `json:"operationSeen,omitempty"`
	OperationPhase time.Duration `json:"operationPhase,omitempty"`
	// Lags is how far each replica was behind when the primary last said so.
	Lags []LagSighting `json:"lags,omitempty"`
	// NotWriting is when the primary was first not seen as such since it last was; 0 while it
	// is. Died: what was seen then was the proof of its death.
	NotWriting time.Duration `json:"notWriting,omitempty"`
	Died       bool          `json:"died,omitempty"`
	// CommitsWait is when fewer secondaries were first seen SYNCHRONIZED than commits wait for; 0 while enough are.
	CommitsWait time.Duration `json:"commitsWait,omitempty"`
}

// LagSighting is how far a replica was behind by the primary's words, in seconds, and when
// they were read.
type LagSighting struct {
	Replica string        `json:"replica"`
	Seconds int64         `json:"seconds"`
	Seen    time.Duration `json:"seen"`
}

// Sighting is one unfenced grant as this process saw it.
type Sighting struct {
	Epoch int64 `json:"epoch"`
	// Seen is when the entry was first seen in the Lease.
	Seen time.Duration `json:"seen"`
	// From is the latest moment at which that holder can have had proof by a Lease renewal.
	From time.Duration `json:"from"`
}

// Reads are readings of the Lease that succeeded and found one and the same renewal
// text, without a long pause between two of them: in all that time the Lease could have
// been seen renewed, and was not. An outage of the API server, which keeps the holder
// from renewing as well, ends the row.
type Reads struct {
	// From is the first of the row, Last the newest.
	From time.Duration `json:"from,omitempty"`
	Last time.Duration `json:"last,omitempty"`
	// Counted are those that lie two renew intervals apart, the first included; CountedAt is
	// the newest of them.
	Counted   int32         `json:"counted,omitempty"`
	CountedAt time.Duration `json:"countedAt,omitempty"`
}
