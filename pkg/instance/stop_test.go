//go:build linux

package instance

import (
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/lease"
)

func TestStop_WaitsAsLongAsTheHandOverNeedsTheServer(t *testing.T) {
	t.Parallel()
	other := ag.Run{Replica: "ag1-1", PodUID: "pod-1", Nonce: "n"}
	op := func(phase ag.OperationPhase, from, target string) *ag.Operation {
		return &ag.Operation{ID: "1", Kind: ag.OperationHandover, Phase: phase, From: from, Target: target}
	}
	tests := []struct {
		name   string
		role   ag.Role
		change func(a *ag.Authority, b *bench)
		want   lease.StopStep
	}{
		{"a primary waits for an operation to begin", ag.RolePrimary, func(*ag.Authority, *bench) {}, lease.StopWait},
		{"its numbers are compared after OFFLINE (R20)", ag.RoleResolving, func(a *ag.Authority, _ *bench) {
			a.Operation = op(ag.PhaseDemoting, "ag1-0", "ag1-1")
		}, lease.StopWait},
		{"the target is being promoted", ag.RoleResolving, func(a *ag.Authority, _ *bench) {
			a.Operation, a.Holder, a.Epoch = op(ag.PhasePromoting, "ag1-0", "ag1-1"), other, 6
		}, lease.StopWait},
		{"the move was given up and it is promoted again", ag.RoleResolving, func(a *ag.Authority, _ *bench) {
			a.Operation = op(ag.PhasePromoting, "ag1-0", "ag1-0")
		}, lease.StopWait},
		{"the target is PRIMARY", ag.RoleResolving, func(a *ag.Authority, _ *bench) {
			a.Operation, a.Holder, a.Epoch = op(ag.PhasePublishing, "ag1-0", "ag1-1"), other, 6
		}, lease.StopServer},
		{"the move is over", ag.RoleSecondary, func(a *ag.Authority, _ *bench) { a.Holder, a.Epoch = other, 6 }, lease.StopServer},
		{"a secondary does not wait for others' operations", ag.RoleSecondary, func(a *ag.Authority, _ *bench) {
			a.Operation, a.Holder, a.Epoch = op(ag.PhasePromoting, "ag1-1", "ag1-2"), other, 6
		}, lease.StopServer},
		{"hand-over is switched off", ag.RolePrimary, func(_ *ag.Authority, b *bench) { b.m.cfg.PreStop.Enabled = false }, lease.StopServer},
		{"the API server is away", ag.RolePrimary, func(_ *ag.Authority, b *bench) { b.api.down = true }, lease.StopServer},
		{"there is no other synchronous replica", ag.RolePrimary, func(_ *ag.Authority, b *bench) {
			b.m.cfg.Replicas = b.m.cfg.Replicas[:1]
		}, lease.StopServer},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inBench(t, func(t *testing.T, b *bench) {
				b.run(5 * time.Second)
				b.sql.with(func(s *benchServer) { s.role = tt.role })
				b.api.change(func(a *ag.Authority) { tt.change(a, b) })
				b.run(10 * time.Second)
				step, why := lease.PlanStop(b.m.stopInput(b.clock.now().Mono-time.Second, 0, true))
				if step != tt.want {
					t.Errorf("got %s (%s), want %s", step, why, tt.want)
				}
				if step, why := lease.PlanStop(b.m.stopInput(b.clock.now().Mono-time.Minute, 0, true)); step != lease.StopServer {
					t.Errorf("after a minute: %s (%s)", step, why)
				}
			})
		})
	}
}

// The operator records the operation and takes the server offline at once; the manager
// reads the one every two seconds and the other too, in whatever order.
func TestStop_ARoleThatIsNewerThanTheRecordWaitsForTheRecord(t *testing.T) {
	t.Parallel()
	for offset := time.Duration(0); offset < 2*time.Second; offset += 100 * time.Millisecond {
		inBench(t, func(t *testing.T, b *bench) {
			b.run(10*time.Second + offset)
			b.api.change(func(a *ag.Authority) {
				a.Operation = &ag.Operation{ID: "1", Kind: ag.OperationHandover, Phase: ag.PhaseDemoting, From: "ag1-0", Target: "ag1-1"}
			})
			b.sql.with(func(s *benchServer) { s.role = ag.RoleResolving })
			began := b.clock.now().Mono
			for range 60 {
				b.run(50 * time.Millisecond)
				if step, why := lease.PlanStop(b.m.stopInput(began, 0, true)); step != lease.StopWait {
					t.Fatalf("offset %s: %s (%s)", offset, step, why)
				}
			}
		})
	}
}
