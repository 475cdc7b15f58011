//go:build linux

package instance

import (
	"strings"
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

func TestProbes_EachStateOfAServer(t *testing.T) {
	t.Parallel()
	const now = time.Hour
	running := viewCopy{phase: phaseRunning, alive: true, accepted: true, acceptedAt: now - time.Second, localKnown: true}
	with := func(change func(*viewCopy)) viewCopy {
		v := running
		change(&v)
		return v
	}
	tests := []struct {
		name                 string
		v                    viewCopy
		startup, live, ready string // part of the refusal; empty for yes
	}{
		{"a running server", running, "", "", ""},
		{"a server before its first start", viewCopy{phase: phasePreparing}, "no login", "", "preparing"},
		{"a starting server", viewCopy{phase: phaseStarting, alive: true, loginProblem: "still recovering"}, "still recovering", "", "starting"},
		{"a secondary", with(func(v *viewCopy) { v.local.role = ag.RoleSecondary }), "", "", ""},
		{"a resolving replica", with(func(v *viewCopy) { v.local.role = ag.RoleResolving }), "", "", ""},
		{"a primary with a suspect database", with(func(v *viewCopy) {
			v.local.role, v.local.sick = ag.RolePrimary, []string{"db: SUSPECT"}
		}), "", "", "db: SUSPECT"},
		{"a secondary with a suspect database", with(func(v *viewCopy) {
			v.local.role, v.local.sick = ag.RoleSecondary, []string{"db: SUSPECT"}
		}), "", "", ""},
		{"one missed login", with(func(v *viewCopy) { v.acceptedAt = now - loginInterval - loginTimeout; v.loginProblem = "time-out" }), "", "", ""},
		{"logins that do not work any more", with(func(v *viewCopy) { v.acceptedAt = now - time.Minute; v.loginProblem = "time-out" }), "", "", "no login has worked for 1m0s: time-out"},
		{"a primary that hands over", with(func(v *viewCopy) { v.phase = phaseHandover }), "", "", ""},
		{"a stopping server", with(func(v *viewCopy) { v.phase = phaseStopping }), "", "", "stopping"},
		{"a server that is gone", with(func(v *viewCopy) { v.phase, v.alive = phaseStopped, false }), "", "gone", "stopped"},
		{"a fenced replica", viewCopy{phase: phaseFenced, loginProblem: "this replica is fenced"}, "", "", "fenced"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for probe, got := range map[string]struct {
				err  error
				want string
			}{
				"/startup": {startupState(tt.v), tt.startup},
				"/live":    {liveState(tt.v), tt.live},
				"/ready":   {readyState(tt.v, now), tt.ready},
			} {
				switch {
				case got.want == "" && got.err != nil:
					t.Errorf("%s: got %v, want yes", probe, got.err)
				case got.want != "" && (got.err == nil || !strings.Contains(got.err.Error(), got.want)):
					t.Errorf("%s: got %v, want a refusal with %q", probe, got.err, got.want)
				}
			}
		})
	}
}

func TestMetrics_OfARunningPrimary(t *testing.T) {
	t.Parallel()
	inBench(t, func(t *testing.T, b *bench) {
		b.run(30 * time.Second)
		families, err := b.m.metrics.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				name := f.GetName()
				for _, l := range m.GetLabel() {
					name += " " + l.GetValue()
				}
				if m.GetGauge() != nil {
					got[name] = m.GetGauge().GetValue()
				}
			}
		}
		for name, want := range map[string]float64{
			"mssql_lease_holder": 1, "mssql_lease_epoch": 5, "mssql_replica_role primary": 1, "mssql_replica_role secondary": 0,
			"mssql_required_synchronized_secondaries": 1, "mssql_synchronized_secondaries": 2, "mssql_databases": 1,
			"mssql_databases_unusable": 0, "mssql_diagnostics_state system": 1, "mssql_instance_phase running": 1,
			"mssql_write_lease_missing": 0, "mssql_endpoint_started": 1, "mssql_endpoint_certificate_expiry_timestamp_seconds": 1900000000,
			"mssql_database_synchronized db ag1-0": 1, "mssql_database_synchronized db ag1-1": 0,
			"mssql_database_suspended db ag1-1": 1, "mssql_database_send_queue_bytes db ag1-1": 3072,
			"mssql_database_redo_queue_bytes db ag1-1": 2048, "mssql_database_lag_seconds db ag1-1": 7,
		} {
			if v, ok := got[name]; !ok || v != want {
				t.Errorf("%s is %v (there: %t), want %v", name, v, ok, want)
			}
		}
		for _, name := range []string{"mssql_database_synchronized db ag1-2", "mssql_database_lag_seconds db ag1-0"} {
			if v, ok := got[name]; ok {
				t.Errorf("%s is %v: what is not known must be absent", name, v)
			}
		}
		if r := got["mssql_write_lease_remaining_seconds"]; r < 10 || r > 15 {
			t.Errorf("remaining write lease %v s", r)
		}
		if age := got["mssql_lease_proof_age_seconds"]; age < 0 || age > 3 {
			t.Errorf("proof is %v s old", age)
		}
		// A server that does not answer any more: its last numbers are not shown for ever.
		b.sql.with(func(s *benchServer) { s.frozen = true })
		b.run(copiesAge + copiesInterval)
		families, err = b.m.metrics.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			if f.GetName() == "mssql_database_synchronized" {
				t.Error("an old reading is still shown")
			}
		}
	})
}
