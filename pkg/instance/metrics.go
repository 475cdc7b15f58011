//go:build linux

package instance

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// metrics of one manager. Names start with mssql_; docs/reference/instance-manager.md lists them.
type metrics struct {
	registry           *prometheus.Registry
	leaseCalls         *prometheus.CounterVec
	writeLeaseRenewals *prometheus.CounterVec
	failsafeRounds     *prometheus.CounterVec
	failsafeAnswers    *prometheus.CounterVec
}

func newMetrics() *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &metrics{
		registry:           prometheus.NewRegistry(),
		leaseCalls:         counter("mssql_lease_calls_total", "Calls of the API server for the Lease, by verb and result.", "verb", "result"),
		writeLeaseRenewals: counter("mssql_write_lease_renewals_total", "Renewals of SQL Server's write lease, by result.", "result"),
		failsafeRounds:     counter("mssql_failsafe_rounds_total", "Rounds in which the other managers were asked for proof, by result.", "result"),
		failsafeAnswers:    counter("mssql_failsafe_answers_total", "Answers given to another manager, by result.", "result"),
	}
	m.registry.MustRegister(m.leaseCalls, m.writeLeaseRenewals, m.failsafeRounds, m.failsafeAnswers,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// gauge is one value that is read off the view when somebody asks.
type gauge struct {
	desc *prometheus.Desc
	// value is false when it is not known now: then the metric is absent, not zero.
	value func(viewCopy, *manager) (float64, bool)
}

// viewCollector shows the view; nothing is computed before it is asked for.
type viewCollector struct {
	m      *manager
	gauges []gauge
	phase  *prometheus.Desc
	role   *prometheus.Desc
	diag   *prometheus.Desc
	copies copyMetrics
}

func newViewCollector(m *manager) *viewCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	known := func(f func(viewCopy, *manager) float64) func(viewCopy, *manager) (float64, bool) {
		return func(v viewCopy, m *manager) (float64, bool) { return f(v, m), true }
	}
	local := func(f func(localState) float64) func(viewCopy, *manager) (float64, bool) {
		return func(v viewCopy, _ *manager) (float64, bool) { return f(v.local), v.localKnown }
	}
	group := func(f func(localState) float64) func(viewCopy, *manager) (float64, bool) {
		return func(v viewCopy, _ *manager) (float64, bool) {
			return f(v.local), v.localKnown && v.local.role != ag.RoleNone
		}
	}
	return &viewCollector{
		m:      m,
		copies: newCopyMetrics(),
		phase:  desc("mssql_instance_phase", "1 for the phase that the server is in.", "phase"),
		role:   desc("mssql_replica_role", "1 for the role that the server says it has.", "role"),
		diag:   desc("mssql_diagnostics_state", "State of a component by sp_server_diagnostics: 0 unknown, 1 clean, 2 warning, 3 error.", "component"),
		gauges: []gauge{
			{desc("mssql_up", "1 when the newest login and query worked."), known(func(v viewCopy, m *manager) float64 {
				return boolean(v.accepted && m.clock.now().Mono-v.acceptedAt <= readyAge)
			})},
			{desc("mssql_server_starts_total", "Starts of sqlservr in this container."), known(func(_ viewCopy, m *manager) float64 {
				return float64(m.starts.Load())
			})},
			{desc("mssql_databases", "Databases of the group on this server."), local(func(s localState) float64 { return float64(s.databases) })},
			{desc("mssql_databases_unusable", "Databases of the group on this server that are SUSPECT, RECOVERY_PENDING, OFFLINE or EMERGENCY."),
				local(func(s localState) float64 { return float64(len(s.sick)) })},
			{desc("mssql_required_synchronized_secondaries", "REQUIRED_SYNCHRONIZED_SECONDARIES_TO_COMMIT in force."), group(func(s localState) float64 { return float64(s.k) })},
			{desc("mssql_synchronized_secondaries", "Synchronous secondaries whose every database is SYNCHRONIZED, as this primary sees it."), func(v viewCopy, m *manager) (float64, bool) {
				n := 0
				for _, name := range v.local.synchronized {
					if !equalName(name, m.id.Pod) {
						n++
					}
				}
				return float64(n), v.localKnown && v.local.role == ag.RolePrimary
			}},
			{desc("mssql_sequence_number", "Sequence number of the group's configuration on this server."), group(func(s localState) float64 { return float64(s.sequence) })},
			{desc("mssql_configuration_commit_pending_seconds", "Age of a configuration commit that waits for its quorum; 0 without one."), group(func(s localState) float64 { return s.pending.Seconds() })},
			{desc("mssql_write_lease_remaining_seconds", "Remaining validity of the write lease."), func(v viewCopy, _ *manager) (float64, bool) {
				return v.local.lease.Seconds(), v.localKnown && v.local.leaseKnown
			}},
			{desc("mssql_write_lease_missing", "1 when the group was made without a write lease, so that only proof of death fences a primary."),
				known(func(v viewCopy, _ *manager) float64 { return boolean(v.noWriteLease) })},
			{desc("mssql_lease_holder", "1 while this run holds the Lease."), known(func(_ viewCopy, m *manager) float64 {
				return boolean(m.authority.get().GrantedEpoch > 0)
			})},
			{desc("mssql_lease_epoch", "Highest epoch that was seen."), known(func(_ viewCopy, m *manager) float64 {
				return float64(m.authority.get().Persisted.Epoch)
			})},
			{desc("mssql_lease_proof_age_seconds", "Age of the newest proof of authority of a holder."), func(_ viewCopy, m *manager) (float64, bool) {
				p := m.authority.get().Proof
				return (m.clock.now().Mono - p.Sent).Seconds(), p.Valid
			}},
			{desc("mssql_api_server_silence_seconds", "Time since the API server last answered."), func(v viewCopy, m *manager) (float64, bool) {
				return (m.clock.now().Mono - v.apiOK).Seconds(), v.apiKnown
			}},
			{desc("mssql_diagnostics_failures", "Bad answers of sp_server_diagnostics in a row."), func(v viewCopy, _ *manager) (float64, bool) {
				return float64(v.diagnostics.Failures), v.diagnosticsKnown
			}},
		},
	}
}

// Describe implements prometheus.Collector.
func (c *viewCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, g := range c.gauges {
		ch <- g.desc
	}
	ch <- c.phase
	ch <- c.role
	ch <- c.diag
	c.copies.describe(ch)
}

// Collect implements prometheus.Collector.
func (c *viewCollector) Collect(ch chan<- prometheus.Metric) {
	v := c.m.view.snapshot()
	emit := func(d *prometheus.Desc, x float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, x, labels...)
	}
	for _, g := range c.gauges {
		if x, ok := g.value(v, c.m); ok {
			emit(g.desc, x)
		}
	}
	for _, p := range []phase{phasePreparing, phaseStarting, phaseRunning, phaseHandover, phaseStopping, phaseStopped, phaseFenced} {
		emit(c.phase, boolean(v.phase == p), string(p))
	}
	role := ag.RoleUnknown
	if v.localKnown {
		role = v.local.role
	}
	for _, r := range []ag.Role{ag.RoleUnknown, ag.RolePrimary, ag.RoleSecondary, ag.RoleResolving, ag.RoleNone} {
		name := lower(string(r))
		if r == ag.RoleUnknown {
			name = "unknown"
		}
		emit(c.role, boolean(role == r), name)
	}
	if v.diagnosticsKnown && v.diagnostics.Error == "" {
		emit(c.diag, float64(v.diagnostics.System), "system")
		emit(c.diag, float64(v.diagnostics.Resource), "resource")
		emit(c.diag, float64(v.diagnostics.QueryProcessing), "query_processing")
	}
	c.copies.collect(v, c.m.clock.now().Mono, emit)
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
