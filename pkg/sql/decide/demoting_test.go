package decide

import (
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// A primary that is to be promoted again, after a move that was given up or onto itself,
// waits as every candidate does until all earlier holders are fenced (R9).
func TestThePromotionOfTheOldPrimaryWaitsForEarlierHolders(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]string{"a move that is given up": "mssql-1", "onto itself": "mssql-0"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(3)
			w.runQuietly(5 * time.Second)
			w.offline(w.servers[0])
			w.kill(w.servers[1], -1) // not a complete target
			w.cuts[link("mssql-2", "controller")] = true
			in, ok := w.input()
			if !ok {
				t.Fatal("the controller cannot read the Lease")
			}
			in.Authority.Operation = &ag.Operation{ID: "move", Kind: ag.OperationSwitchover, Phase: ag.PhaseDemoting, From: "mssql-0",
				Target: target, StartedAt: in.Now, Deadline: in.Now.Add(time.Minute)}
			promotes := func() bool {
				for _, a := range decide(in, knobs{}).Actions {
					if _, is := a.(ag.Promote); is {
						return true
					}
				}
				return false
			}
			if !promotes() {
				t.Fatal("it is not promoted again although nobody is unfenced")
			}
			in.Authority.Unfenced = []ag.Grant{{Epoch: 0, Run: ag.Run{Replica: "mssql-2", PodUID: w.servers[2].podUID, Nonce: w.servers[2].mgr.Self.Nonce}, Promoted: true}}
			if promotes() {
				t.Error("FAILOVER although an earlier holder is not fenced")
			}
		})
	}
}
