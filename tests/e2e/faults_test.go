package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// faultCase breaks something and mends it again. It returns what must then become true
// by itself, besides Healthy.
type faultCase struct {
	name     string
	topology topology
	// local wants a client on the primary's node as well; beside puts the only client there.
	local, beside bool
	// acting wants the acting controller on the primary's node.
	acting bool
	// short cases are part of every run of the end-to-end tests.
	short bool
	// told are words that status or a dry run must have said by the time it is healthy again.
	told  []string
	fault func(t *testing.T, s *scene) (done func(g *api.SQLServerAvailabilityGroup) bool)
}

// Faults of processes, pods, nodes, networks and the control plane, one after the other.
// Each ends healthy by itself, without one acknowledged row lost and without a second
// primary in the Service that clients write to.
func TestFaults(t *testing.T) {
	e := shared
	if !e.local() {
		t.Skip("this kind of cluster cannot be broken in every way: use CLUSTER=local")
	}
	all := os.Getenv("KUBECTL_MSSQL_FAULTS") == "1"
	if !all {
		t.Log("the short ones only: make e2e-faults runs them all")
	}
	var table []string
	t.Cleanup(func() { t.Logf("client-seen outage, seconds:\n%s", strings.Join(table, "\n")) })
	present := three
	for _, c := range slices.Concat(processFaults(), nodeFaults(), controlFaults(), pairFaults(), witnessFaults()) {
		if !all && !c.short {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			begin := time.Now()
			if present.group != c.topology.group {
				e.dropGroup(t, present)
				present = c.topology
			}
			e.freshControllers(t)
			e.ensureGroup(t, c.topology)
			outcome := "FAILED"
			defer func() {
				table = append(table, fmt.Sprintf("%-90s %s (%s)", c.name, outcome, time.Since(begin).Round(time.Second)))
			}()
			outcome = e.runFault(t, c)
		})
	}
}
