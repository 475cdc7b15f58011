//go:build linux

package instance

import (
	"context"
	"fmt"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/lease"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/tsql"
)

// healthLoop asks sp_server_diagnostics on a session of its own and counts bad answers
// in a row (FG 6). A PRIMARY that is beyond saving is killed (R7): a process that still
// runs but does nothing would hold on to the role for ever.
func (m *manager) healthLoop(ctx context.Context) {
	s := &localSession{m: m}
	defer s.close()
	start := int64(0)
	failures := 0
	for pause(ctx, m.cfg.Health.Interval.Duration) {
		v := m.view.snapshot()
		if !v.accepted || v.phase != phaseRunning && v.phase != phaseHandover {
			failures = 0
			s.close()
			continue
		}
		if n := m.starts.Load(); n != start {
			start, failures = n, 0
			s.close()
		}
		d := m.diagnose(ctx, s)
		if ctx.Err() != nil {
			return
		}
		if lease.DiagnosticsBad(d, lease.Threshold(m.cfg.Health.Threshold)) {
			failures++
		} else {
			failures = 0
		}
		m.enterDiagnostics(d, failures)
	}
}

// diagnose is one question. No answer in time is an answer too.
func (m *manager) diagnose(ctx context.Context, s *localSession) ag.Diagnostics {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Health.Timeout.Duration)
	defer cancel()
	d, err := func() (ag.Diagnostics, error) {
		c, err := s.open(ctx)
		if err != nil {
			return ag.Diagnostics{}, err
		}
		results, err := c.Query(ctx, tsql.Diagnostics())
		if err != nil {
			return ag.Diagnostics{}, err
		}
		return parseDiagnostics(results)
	}()
	if err != nil {
		s.close()
		d.Error = err.Error()
	}
	return d
}

// Positions in an answer of sp_server_diagnostics: the columns' names differ between
// clients' copies, their order does not (FG 6).
const (
	diagnosticsComponent = 2
	diagnosticsState     = 3
)

// parseDiagnostics reads the three components that thresholds speak of. A missing one is
// no failure of the server but an answer that cannot be read.
func parseDiagnostics(results []mssql.Result) (ag.Diagnostics, error) {
	var d ag.Diagnostics
	found := 0
	for _, r := range results {
		for _, row := range r.Rows {
			if len(row) <= diagnosticsState {
				return ag.Diagnostics{}, fmt.Errorf("sp_server_diagnostics answered %d columns", len(row))
			}
			name, state := text(row[diagnosticsComponent]), number(row[diagnosticsState])
			switch name {
			case "system":
				d.System, found = state, found+1
			case "resource":
				d.Resource, found = state, found+1
			case "query_processing":
				d.QueryProcessing, found = state, found+1
			}
		}
	}
	if found < 3 {
		return d, fmt.Errorf("sp_server_diagnostics answered %d of the 3 components that were looked for", found)
	}
	return d, nil
}

func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	return ""
}

func number(v any) int {
	switch v := v.(type) {
	case int64:
		return int(v)
	case int32:
		return int(v)
	case int:
		return v
	}
	return 0
}

// enterDiagnostics publishes an answer and carries out R7.
func (m *manager) enterDiagnostics(d ag.Diagnostics, failures int) {
	d.Failures = failures
	now := m.clock.now().Mono
	m.view.with(func(v *view) { v.diagnostics, v.diagnosticsAt, v.diagnosticsKnown = d, now, true })
	if failures > 0 {
		m.log.Warn("Diagnostics were bad", "failures", failures, "system", d.System, "resource", d.Resource,
			"queryProcessing", d.QueryProcessing, "err", d.Error)
	}
	v := m.view.snapshot()
	server := m.suspect(v)
	primary := server.Role == ag.RolePrimary || server.Role == ag.RoleUnknown && server.LastRole == ag.RolePrimary
	if !m.cfg.External || !primary {
		return
	}
	verdict := m.authority.get().Kill(lease.KillInput{
		Now: now, Server: server, Diagnostics: &d,
		BadDiagnostics: failures, MaxBadDiagnostics: int(m.cfg.Health.Failures),
	})
	if verdict.OK {
		m.kill(exitf(ExitHealthKill, "sqlservr was killed: %s", verdict.Why))
	}
}
