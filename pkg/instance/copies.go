//go:build linux

package instance

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/tsql"
)

// Cadence of the readings for metrics, how long one may take, and for how long its
// numbers are shown: old ones would look like a lag that stands still.
const (
	copiesInterval = 15 * time.Second
	copiesTimeout  = 5 * time.Second
	copiesAge      = 3 * copiesInterval
)

// copiesFresh is how old a reading may be for somebody who asks for the status; an older
// one is made anew, and waited for at most reportWait. So nobody can make the server read
// more often than that.
const (
	copiesFresh = 2 * time.Second
	reportWait  = 2 * time.Second
)

// copiesSeen is one reading of the group's copies.
type copiesSeen struct {
	known      bool
	at         time.Duration
	copies     []managerapi.Copy
	seeding    []managerapi.Seeding
	certExpiry time.Time
	endpointUp bool
	endpoint   bool
}

// copiesLoop reads for metrics and for who asks, on a session of its own.
func (m *manager) copiesLoop(ctx context.Context) {
	s := &localSession{m: m}
	defer s.close()
	ticker := time.NewTicker(copiesInterval)
	defer ticker.Stop()
	for {
		var asked chan struct{}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case asked = <-m.copiesAsked:
		}
		m.refreshCopies(ctx, s)
		if asked != nil {
			close(asked)
		}
	}
}

// refreshCopies makes one reading, unless the newest one is fresh.
func (m *manager) refreshCopies(ctx context.Context, s *localSession) {
	v := m.view.snapshot()
	if !v.accepted || !v.serving() {
		s.close()
		return
	}
	if v.copies.known && m.clock.now().Mono-v.copies.at < copiesFresh {
		return
	}
	seen, err := m.readCopies(ctx, s)
	if ctx.Err() != nil {
		return
	}
	m.logOnce("metrics of databases", err)
	if err != nil {
		s.close()
		m.view.with(func(v *view) { v.copiesProblem = err.Error() })
		return
	}
	m.view.with(func(v *view) { v.copies, v.copiesProblem = seen, "" })
}

// askForCopies has the loop read, and waits for it a little; the view then holds what
// there is, with its age.
func (m *manager) askForCopies(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, reportWait)
	defer cancel()
	done := make(chan struct{})
	select {
	case m.copiesAsked <- done:
	case <-ctx.Done():
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

func (m *manager) readCopies(ctx context.Context, s *localSession) (copiesSeen, error) {
	ctx, cancel := context.WithTimeout(ctx, copiesTimeout)
	defer cancel()
	c, err := s.open(ctx)
	if err != nil {
		return copiesSeen{}, err
	}
	results, err := c.Query(ctx, tsql.ManagerCopies(m.cfg.Group))
	if err != nil {
		return copiesSeen{}, err
	}
	if len(results) != tsql.ManagerCopiesSets {
		return copiesSeen{}, fmt.Errorf("the server answered %d result sets where %d were asked for", len(results), tsql.ManagerCopiesSets)
	}
	seen := copiesSeen{known: true, at: m.clock.now().Mono}
	for _, row := range results[0].All() {
		seen.copies = append(seen.copies, newCopy(row))
	}
	for _, row := range results[1].All() {
		seen.endpoint, seen.endpointUp = true, row.Text("state_desc") == string(ag.EndpointStarted)
		seen.certExpiry = row.Time("expiry_date")
	}
	seen.seeding = newSeedings(results[2], results[3])
	return seen, nil
}

func newCopy(row mssql.Row) managerapi.Copy {
	const kilobyte = 1024
	return managerapi.Copy{
		Replica: lower(row.Text("replica_server_name")), Database: row.Text("database_name"),
		State: row.Text("database_state_desc"), Sync: ag.SyncState(row.Text("synchronization_state_desc")),
		Suspended: row.Bool("is_suspended"), SuspendReason: row.Text("suspend_reason_desc"),
		SendQueue:  integer(row, "log_send_queue_size", kilobyte),
		RedoQueue:  integer(row, "redo_queue_size", kilobyte),
		LagSeconds: integer(row, "secondary_lag_seconds", 1),
		LogReuse:   row.Text("log_reuse"),
	}
}

func integer(row mssql.Row, column string, unit int64) *int64 {
	if row.Null(column) {
		return nil
	}
	v := row.Int(column) * unit
	return &v
}

func instant(row mssql.Row, column string) *time.Time {
	t := row.Time(column)
	if row.Null(column) || t.IsZero() {
		return nil
	}
	return &t
}

// newSeedings keeps the newest seeding of each database and replica, which come newest
// first, and adds the numbers of the stream that runs for it. The stream's row names a
// machine, not a replica: its name is the replica's own or begins with it (FG 3.8, 7.4).
func newSeedings(history, streams mssql.Result) []managerapi.Seeding {
	var out []managerapi.Seeding
	known := map[string]bool{}
	for _, row := range history.All() {
		s := managerapi.Seeding{
			Replica: lower(row.Text("replica_server_name")), Database: row.Text("database_name"), Source: row.Bool("is_source"),
			State: row.Text("current_state"), Failure: row.Text("failure_state_desc"), Attempts: row.Int("number_of_attempts"),
			StartedAt: instant(row, "start_time"), CompletedAt: instant(row, "completion_time"),
		}
		key := s.Replica + "/" + s.Database
		if s.Replica == "" || s.Database == "" || known[key] {
			continue
		}
		known[key] = true
		out = append(out, s)
	}
	for i := range out {
		s := &out[i]
		if s.CompletedAt != nil {
			continue
		}
		for _, row := range streams.All() {
			machine, _, _ := strings.Cut(lower(row.Text("remote_machine_name")), ".")
			if row.Text("local_database_name") != s.Database || machine != s.Replica {
				continue
			}
			s.TransferredBytes = integer(row, "transferred_size_bytes", 1)
			s.SizeBytes = integer(row, "database_size_bytes", 1)
			s.BytesPerSecond = integer(row, "transfer_rate_bytes_per_second", 1)
			s.EstimatedAt = instant(row, "estimate_time_complete_utc")
			if text := row.Text("failure_message"); text != "" {
				s.Failure = text
			}
		}
	}
	return out
}

// copyMetrics shows the newest reading.
type copyMetrics struct {
	synchronized, suspended, send, redo, lag, cert, endpoint *prometheus.Desc
}

func newCopyMetrics() copyMetrics {
	of := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"database", "target"}, nil)
	}
	return copyMetrics{
		synchronized: of("mssql_database_synchronized", "1 when this server sees the copy of the database on the target replica as SYNCHRONIZED."),
		suspended:    of("mssql_database_suspended", "1 when data movement to the copy on the target replica is suspended."),
		send:         of("mssql_database_send_queue_bytes", "Log that was not sent to the target replica yet."),
		redo:         of("mssql_database_redo_queue_bytes", "Log on the target replica that was not redone yet."),
		lag:          of("mssql_database_lag_seconds", "How far the copy on the target replica is behind the primary."),
		cert: prometheus.NewDesc("mssql_endpoint_certificate_expiry_timestamp_seconds",
			"When the certificate of the mirroring endpoint expires, as a Unix time.", nil, nil),
		endpoint: prometheus.NewDesc("mssql_endpoint_started", "1 when the mirroring endpoint is started.", nil, nil),
	}
}

func (c copyMetrics) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.synchronized, c.suspended, c.send, c.redo, c.lag, c.cert, c.endpoint} {
		ch <- d
	}
}

func (c copyMetrics) collect(v viewCopy, now time.Duration, emit func(*prometheus.Desc, float64, ...string)) {
	if !v.copies.known || now-v.copies.at > copiesAge {
		return
	}
	number := func(d *prometheus.Desc, value *int64, database, target string) {
		if value != nil {
			emit(d, float64(*value), database, target)
		}
	}
	for _, d := range v.copies.copies {
		if d.Sync != ag.SyncUnknown {
			emit(c.synchronized, boolean(d.Sync == ag.SyncSynchronized), d.Database, d.Replica)
			emit(c.suspended, boolean(d.Suspended), d.Database, d.Replica)
		}
		number(c.send, d.SendQueue, d.Database, d.Replica)
		number(c.redo, d.RedoQueue, d.Database, d.Replica)
		number(c.lag, d.LagSeconds, d.Database, d.Replica)
	}
	if v.copies.endpoint {
		emit(c.endpoint, boolean(v.copies.endpointUp))
		if !v.copies.certExpiry.IsZero() {
			emit(c.cert, float64(v.copies.certExpiry.Unix()))
		}
	}
}
