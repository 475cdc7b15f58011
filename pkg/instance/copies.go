//go:build linux

package instance

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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

// copiesSeen is one reading of the group's copies.
type copiesSeen struct {
	known      bool
	at         time.Duration
	copies     []databaseCopy
	certExpiry time.Time
	endpointUp bool
	endpoint   bool
}

// databaseCopy is one database on one replica, as this server sees it. Queues are in bytes.
type databaseCopy struct {
	replica, database  string
	synchronized       bool
	suspended          bool
	sendQueue          float64
	sendKnown          bool
	redoQueue          float64
	redoKnown          bool
	lag                float64
	lagKnown           bool
	synchronizationSet bool
}

// copiesLoop reads for metrics, on a session of its own.
func (m *manager) copiesLoop(ctx context.Context) {
	s := &localSession{m: m}
	defer s.close()
	for pause(ctx, copiesInterval) {
		v := m.view.snapshot()
		if !v.accepted || !v.serving() {
			s.close()
			continue
		}
		seen, err := m.readCopies(ctx, s)
		if ctx.Err() != nil {
			return
		}
		m.logOnce("metrics of databases", err)
		if err != nil {
			s.close()
			continue
		}
		m.view.with(func(v *view) { v.copies = seen })
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
		seen.copies = append(seen.copies, newDatabaseCopy(row))
	}
	for _, row := range results[1].All() {
		seen.endpoint, seen.endpointUp = true, row.Text("state_desc") == string(ag.EndpointStarted)
		seen.certExpiry = row.Time("expiry_date")
	}
	return seen, nil
}

func newDatabaseCopy(row mssql.Row) databaseCopy {
	const kilobyte = 1024
	d := databaseCopy{
		replica: lower(row.Text("replica_server_name")), database: row.Text("database_name"),
		synchronized:       ag.SyncState(row.Text("synchronization_state_desc")) == ag.SyncSynchronized,
		synchronizationSet: !row.Null("synchronization_state_desc"),
		suspended:          row.Bool("is_suspended"),
		sendKnown:          !row.Null("log_send_queue_size"),
		redoKnown:          !row.Null("redo_queue_size"),
		lagKnown:           !row.Null("secondary_lag_seconds"),
	}
	d.sendQueue = float64(row.Int("log_send_queue_size")) * kilobyte
	d.redoQueue = float64(row.Int("redo_queue_size")) * kilobyte
	d.lag = float64(row.Int("secondary_lag_seconds"))
	return d
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
	for _, d := range v.copies.copies {
		if d.synchronizationSet {
			emit(c.synchronized, boolean(d.synchronized), d.database, d.replica)
			emit(c.suspended, boolean(d.suspended), d.database, d.replica)
		}
		if d.sendKnown {
			emit(c.send, d.sendQueue, d.database, d.replica)
		}
		if d.redoKnown {
			emit(c.redo, d.redoQueue, d.database, d.replica)
		}
		if d.lagKnown {
			emit(c.lag, d.lag, d.database, d.replica)
		}
	}
	if v.copies.endpoint {
		emit(c.endpoint, boolean(v.copies.endpointUp))
		if !v.copies.certExpiry.IsZero() {
			emit(c.cert, float64(v.copies.certExpiry.Unix()))
		}
	}
}
