package lease

import (
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

func TestPlanStop(t *testing.T) {
	t.Parallel()
	base := StopInput{Server: primary(), Holder: true, Targets: 2, Handover: true, HandoverMax: 30 * time.Second, StopMax: 60 * time.Second}
	tests := map[string]struct {
		change func(*StopInput)
		want   StopStep
	}{
		"a primary waits for the hand-over":               {func(*StopInput) {}, StopWait},
		"until it is no longer PRIMARY":                   {func(i *StopInput) { i.Server.Role = ag.RoleResolving }, StopServer},
		"at most HandoverMax":                             {func(i *StopInput) { i.SinceSignal = 30 * time.Second }, StopServer},
		"not when there is nobody to hand over to":        {func(i *StopInput) { i.Targets = 0 }, StopServer},
		"not when it is switched off":                     {func(i *StopInput) { i.Handover = false }, StopServer},
		"not when the Lease is another's":                 {func(i *StopInput) { i.Holder = false }, StopServer},
		"not long without an API server":                  {func(i *StopInput) { i.APIAway = 6 * time.Second }, StopServer},
		"a short silence of the API server is no reason":  {func(i *StopInput) { i.APIAway = 2 * time.Second }, StopWait},
		"a server that does not answer may still be one":  {func(i *StopInput) { i.Server.Role = ag.RoleUnknown }, StopWait},
		"a clean stop that takes too long ends in a kill": {func(i *StopInput) { i.Stopping = 61 * time.Second }, StopKill},
		"a clean stop goes on":                            {func(i *StopInput) { i.Stopping = 5 * time.Second }, StopServer},
		"a server that is gone ends the manager":          {func(i *StopInput) { i.Server.Running = false }, StopExit},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := base
			tt.change(&in)
			if got, why := PlanStop(in); got != tt.want {
				t.Errorf("%s (%s), want %s", got, why, tt.want)
			}
		})
	}
}
