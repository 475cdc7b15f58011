package managerapi

import (
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// PathReport is on the plain HTTP port of the probes: facts for people, like the metrics
// beside it. No decision rests on it and it holds no secret.
const PathReport = "/status"

// Report is what a manager tells people of its server. Values that are not known are
// null, never zero.
type Report struct {
	Replica string `json:"replica"`
	// Server as the supervisor sees the process; see ag.Manager.
	Server string `json:"server"`
	// Problem is why no login works, when none does.
	Problem string  `json:"problem"`
	Role    ag.Role `json:"role"`
	// Follows is the primary that the server itself names, for people.
	Follows          string `json:"follows"`
	Sequence         int64  `json:"sequence"`
	RequiredToCommit *int32 `json:"requiredToCommit"`
	// Holder: this run holds the Lease. Epoch is the highest that it has seen.
	Holder                bool     `json:"holder"`
	Epoch                 int64    `json:"epoch"`
	LeaseRemainingSeconds *float64 `json:"leaseRemainingSeconds"`
	APISilenceSeconds     *float64 `json:"apiSilenceSeconds"`
	CommitPendingSeconds  float64  `json:"commitPendingSeconds"`
	// Unusable databases, as "name: STATE".
	Unusable          []string   `json:"unusable"`
	Endpoint          string     `json:"endpoint"`
	CertificateExpiry *time.Time `json:"certificateExpiry"`
	// MeasuredAgoSeconds is the age of Copies and Seeding; null when they were never read,
	// with the reason in MeasureProblem.
	MeasuredAgoSeconds *float64  `json:"measuredAgoSeconds"`
	MeasureProblem     string    `json:"measureProblem"`
	Copies             []Copy    `json:"copies"`
	Seeding            []Seeding `json:"seeding"`
}

// Copy is one database on one replica as this server sees it: a primary sees all
// replicas, another server its own copies only. Queues are in bytes.
type Copy struct {
	Replica       string       `json:"replica"`
	Database      string       `json:"database"`
	State         string       `json:"state"`
	Sync          ag.SyncState `json:"sync"`
	Suspended     bool         `json:"suspended"`
	SuspendReason string       `json:"suspendReason"`
	SendQueue     *int64       `json:"sendQueueBytes"`
	RedoQueue     *int64       `json:"redoQueueBytes"`
	LagSeconds    *int64       `json:"lagSeconds"`
	// LogReuse is why this server cannot truncate the log of the database
	// (log_reuse_wait_desc, FG 3.9); AVAILABILITY_REPLICA when a copy holds it.
	LogReuse string `json:"logReuse"`
}

// Seeding is the newest seeding of one database to, or from, one replica.
type Seeding struct {
	Replica  string `json:"replica"`
	Database string `json:"database"`
	// Source: this server sends.
	Source bool `json:"source"`
	// State in SQL Server's words: CHECK_IF_SEEDING_NEEDED, SEEDING, CATCHUP, COMPLETED, FAILED.
	State       string     `json:"state"`
	Failure     string     `json:"failure"`
	Attempts    int64      `json:"attempts"`
	StartedAt   *time.Time `json:"startedAt"`
	CompletedAt *time.Time `json:"completedAt"`
	// Of a stream that runs now; null otherwise.
	TransferredBytes *int64     `json:"transferredBytes"`
	SizeBytes        *int64     `json:"sizeBytes"`
	BytesPerSecond   *int64     `json:"bytesPerSecond"`
	EstimatedAt      *time.Time `json:"estimatedAt"`
}

// Lag is how far the named replica is behind by this server's words, with the function
// that bounds the loss of a forced failover.
func (r Report) Lag(replica string) (seconds int64, known bool) {
	var copies []ag.Database
	for _, c := range r.CopiesOf(replica) {
		d := ag.Database{Name: c.Database, LagUnknown: c.LagSeconds == nil}
		if c.LagSeconds != nil {
			d.LagSeconds = *c.LagSeconds
		}
		copies = append(copies, d)
	}
	return ag.WorstLag(copies)
}

// CopiesOf are the copies on one replica.
func (r Report) CopiesOf(replica string) []Copy {
	var out []Copy
	for _, c := range r.Copies {
		if c.Replica == replica {
			out = append(out, c)
		}
	}
	return out
}
