package status

import (
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/events"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/output"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/renewal"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
)

// Level of a verdict: what colour and exit code say.
type Level string

const (
	LevelOK   Level = "ok"
	LevelWarn Level = "warning" // degraded or in progress, writes are fine or expected back
	LevelBad  Level = "error"   // writes are down or data is at risk
)

// PhaseUnattended is said by the plugin alone: no operator runs, so what the resource
// says may be old and nothing is failed over.
const PhaseUnattended = "Unattended"

// Document is the machine-readable status of an availability group. Every key is always
// present, lists are never null, a value that was not measured is null and has an entry
// in errors. Sizes are in bytes, durations in seconds, times RFC 3339. Within v1 there
// are only additions.
type Document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	Group      string `json:"group"`
	Level      Level  `json:"level"`
	Phase      string `json:"phase"`
	Reason     string `json:"reason"`
	// Doubt is why the phase of the resource is not believed; null while it is.
	Doubt *Doubt `json:"doubt"`
	// WritesKnown is false where nothing tells whether clients can write: the resource is not
	// believed, and its primary does not answer.
	WritesKnown bool `json:"writesKnown"`
	// Writable tells whether clients can write now; false where that is not known.
	Writable          bool         `json:"writable"`
	WritesDownSeconds *float64     `json:"writesDownSeconds"`
	ReadyReplicas     int          `json:"readyReplicas"`
	Replicas          []ReplicaRow `json:"replicas"`
	Primary           string       `json:"primary"`
	// LastPrimary is the newest confirmed one, also while there is none.
	LastPrimary  string     `json:"lastPrimary"`
	PrimarySince *time.Time `json:"primarySince"`
	PrimaryBy    string     `json:"primaryBy"`
	SafeTargets  int        `json:"safeTargets"`
	// Elected would be promoted if the primary were lost now, or is being promoted.
	Elected string `json:"elected"`
	// Waiting and Findings say what goes on; null and empty while nothing is amiss.
	Waiting           *Waiting  `json:"waiting"`
	Findings          []Finding `json:"findings"`
	AutomaticFailover string    `json:"automaticFailover"`
	CommitsWaitFor    *int32    `json:"commitsWaitFor"`
	Sequence          int64     `json:"sequence"`
	SequenceAgree     int       `json:"sequenceAgree"`
	WriteEndpoint     string    `json:"writeEndpoint"`
	// WritesLeadTo are the pods behind it, as Kubernetes has it now; null when not read.
	WritesLeadTo    []string    `json:"writesLeadTo"`
	ReadEndpoint    string      `json:"readEndpoint"`
	ServerVersion   string      `json:"serverVersion"`
	PluginVersion   string      `json:"pluginVersion"`
	Operator        *Operator   `json:"operator"`
	Operation       *Operation  `json:"operation"`
	Lease           *Lease      `json:"lease"`
	Seeding         []Seeding   `json:"seeding"`
	DatabasesTotal  int         `json:"databasesTotal"`
	DatabasesInStep int         `json:"databasesInStep"`
	Databases       []Database  `json:"databases"`
	BlockedReason   string      `json:"blockedReason"`
	BlockedSince    *time.Time  `json:"blockedSince"`
	Refusals        []Refusal   `json:"refusals"`
	Advice          []Advice    `json:"advice"`
	Problems        []Problem   `json:"problems"`
	Conditions      []Condition `json:"conditions"`
	Errors          []Unseen    `json:"errors"`
	ExitCode        int         `json:"exitCode"`
	// Settings are those of mssql.conf that the spec sets.
	Settings map[string]string `json:"settings"`
	// Paused by a person: the operator does nothing. Null while it looks after the resource.
	Paused *Pause `json:"paused"`
	// Budget of disruptions; null without -v, or when there is none.
	Budget *Budget `json:"budget"`
	// Events, oldest first; empty without -vv.
	Events []events.Event `json:"events"`

	ObservedGeneration int64 `json:"observedGeneration"`
}

// Pause is who told the operator to leave the resource alone.
type Pause struct {
	By     string     `json:"by"`
	Reason string     `json:"reason"`
	Since  *time.Time `json:"since"`
}

// Budget is how many pods may be evicted by a drain now.
type Budget struct {
	Name    string `json:"name"`
	Allowed int32  `json:"allowed"`
	Healthy int32  `json:"healthy"`
	Wanted  int32  `json:"wanted"`
}

// ReplicaRow is one line of the table.
type ReplicaRow struct {
	Name string `json:"name"`
	Role string `json:"role"`
	Mode string `json:"mode"`
	// State in a word, with its age where it is news: synchronized, seeding 2/4, lost 31s, FENCED 3h.
	State string `json:"state"`
	// IfPromoted: "no loss", "loses ~42s", "may lose", "never", "fenced", "-" or "?".
	IfPromoted string `json:"ifPromoted"`
	SendQueue  *int64 `json:"sendQueueBytes"`
	RedoQueue  *int64 `json:"redoQueueBytes"`
	Lag        *int64 `json:"lagSeconds"`
	// NotApplicable tells why the three are null: there is nothing to measure, as of a primary
	// or a witness. Where it is false, null means that it was not measured.
	NotApplicable bool `json:"notApplicable"`
	// MeasuredAgo is the age of the three.
	MeasuredAgo *float64   `json:"measuredAgoSeconds"`
	Ready       bool       `json:"ready"`
	Since       *time.Time `json:"since"`
	Node        string     `json:"node"`
	Fenced      bool       `json:"fenced"`
	FencedBy    string     `json:"fencedBy"`
	FencedSince *time.Time `json:"fencedSince"`
	FenceReason string     `json:"fenceReason"`
	Outdated    bool       `json:"outdated"`
	// Waiting is what the pod waits for, in the words of the scheduler or kubelet.
	Waiting string `json:"waiting"`
	// Refusal is the rule that keeps it from being promoted, ForceRefusal the one that does
	// so even when loss is accepted.
	Refusal      string `json:"refusal"`
	ForceRefusal string `json:"forceRefusal"`
	Message      string `json:"message"`
	// CertificateExpiry of its mirroring endpoint.
	CertificateExpiry *time.Time `json:"certificateExpiry"`
	Endpoint          string     `json:"endpoint"`

	// idle: there is no primary that could send to it, so that no number is missing.
	idle bool
}

// Operator is the installation that looks after the resource.
type Operator struct {
	Namespace string `json:"namespace"`
	Version   string `json:"version"`
	Ready     int32  `json:"ready"`
	Replicas  int32  `json:"replicas"`
	// Silent is for how long the acting controller has not renewed its lock, by the API
	// server's clock; null when that may not be read.
	Silent *float64 `json:"silentSeconds"`

	lock renewal.Lock
}

// Operation under way.
type Operation struct {
	ID       string     `json:"id"`
	Kind     string     `json:"kind"`
	Phase    string     `json:"phase"`
	From     string     `json:"from"`
	Target   string     `json:"target"`
	Cause    string     `json:"cause"`
	Owner    string     `json:"owner"`
	Started  *time.Time `json:"started"`
	Deadline *time.Time `json:"deadline"`
	// Steps that are done.
	Steps []Step `json:"steps"`
	// Now is what is being done, Next what follows, in words.
	Now  string   `json:"now"`
	Next []string `json:"next"`
}

// Step of an operation.
type Step struct {
	After float64 `json:"afterSeconds"`
	What  string  `json:"what"`
}

// Waiting is what the operator waits for before its next step.
type Waiting struct {
	For string `json:"for"`
	// Until by the operator's clock, LeftSeconds by it and this machine's; null when the wait has no fixed end.
	Until       *time.Time `json:"until"`
	LeftSeconds *float64   `json:"leftSeconds"`
}

// Finding is something that the operator has seen and that explains what it does, or leaves undone.
type Finding struct {
	Replica string `json:"replica"`
	// Rule that it rests on, and its code; empty when it names none.
	Rule    string `json:"rule"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Lease is the record of who may write.
type Lease struct {
	Holder  string     `json:"holder"`
	Epoch   int64      `json:"epoch"`
	Renewed *time.Time `json:"renewed"`
	// Silent is for how long it was not renewed, by the API server's clock; null when not known.
	Silent   *float64 `json:"silentSeconds"`
	K        int32    `json:"k"`
	Rule     int64    `json:"rule"`
	Set      []string `json:"set"`
	Unfenced []string `json:"unfenced"`
	Stale    []string `json:"stale"`
	// Problem is why it is no proof for anyone.
	Problem string `json:"problem"`
}

// Seeding of one replica.
type Seeding struct {
	Replica string     `json:"replica"`
	From    string     `json:"from"`
	Started *time.Time `json:"started"`
	Done    int        `json:"done"`
	Total   int        `json:"total"`
	// LeftSeconds until the last stream that runs ends.
	LeftSeconds *float64        `json:"leftSeconds"`
	Databases   []SeedingStatus `json:"databases"`
}

// SeedingStatus of one database.
type SeedingStatus struct {
	Database string `json:"database"`
	// State: done, copying, catching up, waiting, retry, failed.
	State       string   `json:"state"`
	Transferred *int64   `json:"transferredBytes"`
	Size        *int64   `json:"sizeBytes"`
	Rate        *int64   `json:"bytesPerSecond"`
	LeftSeconds *float64 `json:"leftSeconds"`
	Attempts    int64    `json:"attempts"`
	Failure     string   `json:"failure"`
}

// Database is one copy on one replica.
type Database struct {
	Name      string `json:"name"`
	Replica   string `json:"replica"`
	State     string `json:"state"`
	Sync      string `json:"sync"`
	InStep    bool   `json:"inStep"`
	SendQueue *int64 `json:"sendQueueBytes"`
	RedoQueue *int64 `json:"redoQueueBytes"`
	Lag       *int64 `json:"lagSeconds"`
	Message   string `json:"message"`
}

// Refusal is why one replica is not promoted; an empty message means that it would be.
type Refusal struct {
	Replica string `json:"replica"`
	Rule    string `json:"rule"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Advice is one way out, safest first.
type Advice struct {
	Text     string   `json:"text"`
	Details  []string `json:"details"`
	Commands []string `json:"commands"`
}

// Problem with what to do about it.
type Problem struct {
	Code    string   `json:"code"`
	Reason  string   `json:"reason"`
	Message string   `json:"message"`
	Fix     []string `json:"fix"`
}

// Condition of the resource.
type Condition struct {
	Type    string     `json:"type"`
	Status  string     `json:"status"`
	Reason  string     `json:"reason"`
	Code    string     `json:"code"`
	Message string     `json:"message"`
	Since   *time.Time `json:"since"`
}

// Unseen is something that could not be looked at.
type Unseen struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Source that was asked: "pods", "lease", "manager/demo-1".
	Source string `json:"source"`
}

// InstanceDocument is the status of a standalone instance.
type InstanceDocument struct {
	APIVersion    string     `json:"apiVersion"`
	Kind          string     `json:"kind"`
	Namespace     string     `json:"namespace"`
	Name          string     `json:"name"`
	Level         Level      `json:"level"`
	Phase         string     `json:"phase"`
	Reason        string     `json:"reason"`
	Doubt         *Doubt     `json:"doubt"`
	Writable      bool       `json:"writable"`
	Ready         bool       `json:"ready"`
	State         string     `json:"state"`
	Endpoint      string     `json:"endpoint"`
	Node          string     `json:"node"`
	Since         *time.Time `json:"since"`
	Waiting       string     `json:"waiting"`
	Fenced        bool       `json:"fenced"`
	ServerVersion string     `json:"serverVersion"`
	PluginVersion string     `json:"pluginVersion"`
	Operator      *Operator  `json:"operator"`
	Paused        *Pause     `json:"paused"`

	Problems   []Problem   `json:"problems"`
	Conditions []Condition `json:"conditions"`
	Errors     []Unseen    `json:"errors"`
	ExitCode   int         `json:"exitCode"`
	// Events, oldest first; empty without -vv.
	Events []events.Event `json:"events"`

	ObservedGeneration int64 `json:"observedGeneration"`
}

// Kinds of the documents.
const (
	KindGroup    = "AvailabilityGroupStatus"
	KindInstance = "InstanceStatus"
	KindList     = "StatusList"
)

// newDocument has every list.
func newDocument() Document {
	return Document{
		APIVersion: output.APIVersion, Kind: KindGroup,
		Replicas: []ReplicaRow{}, Seeding: []Seeding{}, Databases: []Database{}, Refusals: []Refusal{}, Advice: []Advice{},
		Findings: []Finding{}, Problems: []Problem{}, Conditions: []Condition{}, Errors: []Unseen{},
		Settings: map[string]string{}, Events: []events.Event{},
	}
}

// primaryReport is the answer of the server that says PRIMARY; of two, the one that
// holds the Lease. Only it speaks of the others.
func primaryReport(answers map[string]managerapi.Report) *managerapi.Report {
	var found *managerapi.Report
	for _, r := range answers {
		if r.Role == "PRIMARY" && (found == nil || r.Holder) {
			found = &r
		}
	}
	return found
}
