//go:build linux

package simulation

import (
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// A primary whose pod is deleted hands over before it stops: nothing is lost, and writes pause
// for a planned move, not for a failover.
func TestAPrimaryWhosePodIsDeletedHandsOver(t *testing.T) {
	t.Parallel()
	o := passwords(t)
	for _, topology := range topologies() {
		if topology.synchronousReplicas() < 2 {
			continue
		}
		t.Run(topology.name, func(t *testing.T) {
			t.Parallel()
			p := plan{
				seed: 7, topology: topology, timings: engine.DefaultTimings(), hold: 300, threshold: 30, gap: 12 * time.Second,
				heal: 300 * time.Second, end: 320 * time.Second, limit: 600 * time.Second,
				faults: []fault{{at: 87 * time.Second, what: "delete-pod", who: "primary"}},
			}
			if topology.k != nil && int(*topology.k) == topology.synchronousReplicas()-1 || topology.require && topology.synchronousReplicas() == 2 {
				p.gap = 0 // every secondary must answer, and one is away until its pod is back
			}
			r := simulate(t, p, o, testing.Verbose())
			if r.failed() {
				t.Errorf("%s", r.text())
			}
			t.Logf("longest pause %s", r.gap)
		})
	}
}

// Volumes that came to the wrong pods: each server calls itself by its old name, and none of the two
// is promoted under the other's, also where the primary that is left ends.
func TestServersOnSwappedVolumesAreNotPromoted(t *testing.T) {
	t.Parallel()
	o := passwords(t)
	for _, topology := range topologies() {
		n := len(topology.modes)
		if n < 2 {
			continue
		}
		for _, who := range []string{"primary", "secondary:1"} {
			t.Run(topology.name+", "+who, func(t *testing.T) {
				t.Parallel()
				p := plan{
					seed: 11, topology: topology, timings: engine.DefaultTimings(), hold: 300, threshold: 30,
					heal: 300 * time.Second, end: 320 * time.Second, limit: 600 * time.Second,
					faults: []fault{
						{at: 87 * time.Second, what: "swap-volumes", who: who, other: "secondary:0", length: 150 * time.Second},
						{at: 140 * time.Second, what: "kill", who: "primary"},
					},
				}
				r := simulate(t, p, o, testing.Verbose())
				if r.failed() {
					t.Errorf("%s", r.text())
				}
			})
		}
	}
}
