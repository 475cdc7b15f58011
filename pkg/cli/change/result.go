package change

import (
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/output"
)

// Results in documents, beside those of a request (Done, Refused, Failed, Running).
const (
	ResultDone         = "Done"
	ResultAlreadySo    = "AlreadySo"
	ResultRefused      = "Refused"
	ResultFailed       = "Failed"
	ResultRunning      = "Running"
	ResultDryRun       = "DryRun"
	ResultNotConfirmed = "NotConfirmed"
	ResultConflict     = "Conflict"
)

// Result is the document of one run. Every key is always present.
type Result struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Verb       string `json:"verb"`
	Name       string `json:"name"`
	Namespace  string `json:"namespace"`
	RequestID  string `json:"requestID"`
	// Target is the replica that the verb speaks of; From and To are the primaries before and after a move.
	Target   string `json:"target"`
	From     string `json:"from"`
	To       string `json:"to"`
	Result   string `json:"result"`
	Reason   string `json:"reason"`
	Message  string `json:"message"`
	ExitCode int    `json:"exitCode"`
	// WritesDown is how long a move took, in seconds; 0 when there was none.
	WritesDown float64 `json:"writesDownSeconds"`
	// Plan as it was shown, and Order in which replicas are restarted.
	Plan  []Line   `json:"plan"`
	Order []string `json:"order"`
	// Steps seen, oldest first.
	Steps []Step `json:"steps"`
	// Replicas, for a dry run of a move; UnderWay what goes on meanwhile, null when nothing does.
	Replicas []Candidate `json:"replicas"`
	UnderWay *UnderWay   `json:"underWay"`
	// Outdated is why what the operator said of the replicas may not be so any more, for a dry
	// run; empty while there is no sign of it.
	Outdated string `json:"outdated"`
	// Request that was, or would be, sent; null where none is.
	Request any `json:"request"`
}

// Step is one thing seen while waiting.
type Step struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
}

// Candidate is what the operator's rules say of one replica.
type Candidate struct {
	Name    string `json:"name"`
	Role    string `json:"role"`
	Ready   bool   `json:"ready"`
	Refusal string `json:"refusal"`
}

// UnderWay is what the operator is doing, or waits for.
type UnderWay struct {
	// Kind, Phase, From and Target of the role change; empty while none has begun.
	Kind   string `json:"kind"`
	Phase  string `json:"phase"`
	From   string `json:"from"`
	Target string `json:"target"`
	// WaitsFor what, and until when by the operator's clock; null when that has no fixed end.
	WaitsFor string     `json:"waitsFor"`
	Until    *time.Time `json:"until"`
	// Findings explain it.
	Findings []string `json:"findings"`
}

func (r *Result) fill(c *Call) {
	r.APIVersion, r.Kind, r.Verb, r.Name, r.Namespace = output.APIVersion, "OperationResult", c.Verb, c.Name, c.Namespace
	if r.Plan == nil {
		r.Plan = []Line{}
	}
	if r.Order == nil {
		r.Order = []string{}
	}
	if r.Steps == nil {
		r.Steps = []Step{}
	}
	if r.Replicas == nil {
		r.Replicas = []Candidate{}
	}
}

func resultOf(code exit.Code) string {
	switch code {
	case exit.NotConfirmed:
		return ResultNotConfirmed
	case exit.Refused:
		return ResultRefused
	case exit.Conflict:
		return ResultConflict
	case exit.Timeout, exit.Interrupted:
		return ResultRunning
	case exit.OK:
		return ResultDone
	default:
		return ResultFailed
	}
}
