//go:build linux

package simulation

import (
	"fmt"
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// A person's FAILOVER beside a primary that does not notice it: what the new primary has
// acknowledged is kept, whoever is primary in the end, and the group can be written again.
func TestAFailoverByHandKeepsWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	o := passwords(t)
	for _, topology := range topologies() {
		if topology.synchronousReplicas() < 2 {
			continue
		}
		for seed := uint64(1); seed <= 8; seed++ {
			t.Run(fmt.Sprintf("%s, seed %d", topology.name, seed), func(t *testing.T) {
				t.Parallel()
				n := seed - 1
				p := plan{
					seed: seed, topology: topology, timings: engine.DefaultTimings(), hold: 300, threshold: 30,
					heal: 300 * time.Second, end: 320 * time.Second, limit: 600 * time.Second,
					faults: []fault{{at: 87 * time.Second, what: "hand-failover", who: "secondary:0"}},
				}
				if n%4 > 1 { // and then the new one dies
					p.faults = append(p.faults, fault{at: 87*time.Second + time.Duration(n%4+1)*2*time.Second, what: "kill", who: "primary"})
				}
				// Numbers that do not tell a promotion from any other change of the configuration.
				p.readings.FlatSequence = n/4 == 1
				if r := simulate(t, p, o, testing.Verbose()); r.failed() {
					t.Errorf("%s", r.text())
				}
			})
		}
	}
}
