package ag

import "time"

// Key names an availability group.
type Key struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Policy is the spec as the decision needs it.
type Policy struct {
	// Group is the T-SQL name, UID the custom resource's.
	Group         string          `json:"group"`
	UID           string          `json:"uid"`
	External      bool            `json:"external"`
	Replicas      []ReplicaPolicy `json:"replicas"`
	AutoFailover  bool            `json:"autoFailover"`
	Threshold     time.Duration   `json:"threshold"` // failoverThresholdSeconds
	FailsafeHold  time.Duration   `json:"failsafeHold"`
	MinBetween    time.Duration   `json:"minBetween"`
	Stability     time.Duration   `json:"stability"`
	AllowDataLoss bool            `json:"allowDataLoss,omitempty"`
	ForceAfter    time.Duration   `json:"forceAfter,omitempty"`
	// MaxLag bounds what AllowDataLoss may lose; 0 is no bound.
	MaxLag        time.Duration `json:"maxLag,omitempty"`
	Preferred     string        `json:"preferred,omitempty"`
	SwitchoverMax time.Duration `json:"switchoverMax"` // maxSwitchoverDelay
	Timing        Timing        `json:"timing"`
	// Durability: Required never lowers k; K is the explicit value, or −1.
	Required   bool          `json:"required,omitempty"`
	K          int32         `json:"k"`
	RelaxAfter time.Duration `json:"relaxAfter"`
	Paused     bool          `json:"paused,omitempty"`
	// Handover: a primary whose pod is told to stop hands over first, for at most HandoverMax.
	Handover    bool          `json:"handover,omitempty"`
	HandoverMax time.Duration `json:"handoverMax,omitempty"`
	// AllowReseed permits the rung that discards a copy proven replaceable.
	AllowReseed bool `json:"allowReseed,omitempty"`
	// Initialized: the group was made once; never bootstrap again.
	Initialized bool     `json:"initialized,omitempty"`
	Databases   []string `json:"databases,omitempty"`
}

// ReplicaPolicy is one replica of the spec.
type ReplicaPolicy struct {
	Name     string `json:"name"`
	Ordinal  int    `json:"ordinal"`
	Mode     Mode   `json:"mode"`
	Auto     bool   `json:"auto"`
	Readable bool   `json:"readable,omitempty"`
	Fenced   bool   `json:"fenced,omitempty"`
	// FencedWhy says who fenced it and why, for the history: "by ann: disk".
	FencedWhy string `json:"fencedWhy,omitempty"`
	// URL of its mirroring endpoint, TCP://host:port.
	URL string `json:"url,omitempty"`
}

// Timing of the write lease (safety.md §2): renew interval, call time-out, A, q, L, m.
type Timing struct {
	Renew time.Duration `json:"renew"`
	Call  time.Duration `json:"call"`
	A     time.Duration `json:"a"`
	Q     time.Duration `json:"q"`
	L     time.Duration `json:"l"`
	M     time.Duration `json:"m"`
}

// D is the full wait after which a silent holder can no longer write.
func (t Timing) D() time.Duration { return t.A + t.Q + t.L + t.M }

// Request is a user's order.
type Request struct {
	ID              string `json:"id"`
	Kind            string `json:"kind"`
	Target          string `json:"target,omitempty"`
	ExpectedPrimary string `json:"expectedPrimary,omitempty"`
	// ExpectedSequence of the primary's configuration; 0 skips the check.
	ExpectedSequence int64     `json:"expectedSequence,omitempty"`
	AllowDataLoss    bool      `json:"allowDataLoss,omitempty"`
	MaxLossSeconds   int       `json:"maxLossSeconds,omitempty"`
	By               string    `json:"by,omitempty"`
	Reason           string    `json:"reason,omitempty"`
	At               time.Time `json:"at,omitempty"`
}

// Memory are the facts that must survive a restart; saved before any action.
type Memory struct {
	PrimaryFailure   *Failure     `json:"primaryFailure,omitempty"`
	Recoveries       []Recovery   `json:"recoveries,omitempty"`
	HeadlessSince    time.Time    `json:"headlessSince,omitempty"`
	BlockedSince     time.Time    `json:"blockedSince,omitempty"`
	Blocks           []Block      `json:"blocks,omitempty"`
	LastRoleChangeAt time.Time    `json:"lastRoleChangeAt,omitempty"`
	HandledRequest   string       `json:"handledRequest,omitempty"`
	LastResult       *Result      `json:"lastResult,omitempty"`
	History          []RoleChange `json:"history,omitempty"`
	// Promotion is what the newest FAILOVER was answered; Refusals are those answered 41142.
	Promotion *Promotion `json:"promotion,omitempty"`
	Refusals  []Refusal  `json:"refusals,omitempty"`
	// Initialized: the group was made; written once, by the bootstrap.
	Initialized bool `json:"initialized,omitempty"`
	// Setup are the steps of bootstrap, membership and databases that were tried and are not done.
	Setup []SetupStep `json:"setup,omitempty"`
	// Swaps is the highest count of swaps that was seen in the record (R4).
	Swaps int64 `json:"swaps,omitempty"`
}

// SetupStep counts the attempts at one step that makes or completes the group; each
// is counted before it is made. A step that is no longer wanted is forgotten.
type SetupStep struct {
	Step          string    `json:"step"` // "create group", "join ag1-2", "add database app", …
	Attempts      int32     `json:"attempts"`
	LastAttemptAt time.Time `json:"lastAttemptAt"`
	LastError     string    `json:"lastError,omitempty"`
}

// Promotion is the answer to the newest FAILOVER.
type Promotion struct {
	Replica string    `json:"replica"`
	Epoch   int64     `json:"epoch"`
	At      time.Time `json:"at"`
	// Accepted: the statement returned without an error; the role changes afterwards (FG 0.3 no. 7).
	Accepted bool      `json:"accepted,omitempty"`
	Kind     ErrorKind `json:"kind,omitempty"`
	Msg      int32     `json:"msg,omitempty"`
	Message  string    `json:"message,omitempty"`
}

// Refusal is a replica whose server answered FAILOVER with 41142: its own persisted
// configuration does not show it synchronised.
type Refusal struct {
	Replica  string    `json:"replica"`
	Epoch    int64     `json:"epoch"`
	Sequence int64     `json:"sequence"`
	At       time.Time `json:"at"`
}

// Failure is the suspicion against the primary.
type Failure struct {
	Since        time.Time `json:"since"`
	LastStrikeAt time.Time `json:"lastStrikeAt"`
	Strikes      int32     `json:"strikes"`
	Evidence     string    `json:"evidence,omitempty"`
	// Renewals is the Lease's renewal text at the newest strike: a change clears the suspicion.
	Renewals string `json:"renewals,omitempty"`
}

// Recovery is the ladder of one replica.
type Recovery struct {
	Replica       string    `json:"replica"`
	Symptom       Symptom   `json:"symptom"`
	Since         time.Time `json:"since"`
	LastAttemptAt time.Time `json:"lastAttemptAt,omitempty"`
	Rung          Rung      `json:"rung"`
	Attempts      int32     `json:"attempts"`
	LastMsg       int32     `json:"lastMsg,omitempty"`
}

// Block is one refusal: which rule, about which replica, in words.
type Block struct {
	Reason  string `json:"reason"`
	Rule    Rule   `json:"rule,omitempty"`
	Replica string `json:"replica,omitempty"`
	Message string `json:"message"`
}

// Result answers a request.
type Result struct {
	ID          string    `json:"id"`
	Kind        string    `json:"kind"`
	Target      string    `json:"target,omitempty"`
	Result      string    `json:"result"` // Running, Done, Refused, Failed
	Reason      string    `json:"reason,omitempty"`
	Message     string    `json:"message,omitempty"`
	CompletedAt time.Time `json:"completedAt,omitempty"`
}

// RoleChange is one entry of the history.
type RoleChange struct {
	Kind        string    `json:"kind"`
	From        string    `json:"from,omitempty"`
	To          string    `json:"to"`
	Cause       string    `json:"cause,omitempty"`
	RequestID   string    `json:"requestID,omitempty"`
	Epoch       int64     `json:"epoch,omitempty"`
	StartedAt   time.Time `json:"startedAt"`
	CompletedAt time.Time `json:"completedAt,omitempty"`
	Result      string    `json:"result"`
	Timeline    []Step    `json:"timeline,omitempty"`
}
