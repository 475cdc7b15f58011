package lease

import (
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

const uid = "cr-1"

var wall = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func timing() ag.Timing {
	return ag.Timing{Renew: 2 * time.Second, Call: 1500 * time.Millisecond, A: 5 * time.Second,
		Q: 2 * time.Second, L: 15 * time.Second, M: 1500 * time.Millisecond}
}

func at(d time.Duration) Instant { return Instant{Mono: d, Wall: wall.Add(d)} }

func self() ag.Run { return ag.Run{Replica: "mssql-0", PodUID: "pod-0", Nonce: "n1"} }

func other() ag.Run { return ag.Run{Replica: "mssql-1", PodUID: "pod-1", Nonce: "n9"} }

// lease3 is a Lease held by this run in epoch 3 under rule 7.
func lease3() ag.Authority {
	return ag.Authority{Exists: true, AGUID: uid, Version: "v10", Holder: self(), Epoch: 3, Swaps: 20,
		Rule: ag.CommitRule{Number: 7, K: 1, Set: []ag.Member{{Replica: "mssql-0"}, {Replica: "mssql-1"}, {Replica: "mssql-2"}}}}
}

// holder is a run that has renewed the Lease at second 10.
func holder() State {
	s := NewState(self(), uid, timing(), at(0), Persisted{})
	return s.Renewed(lease3(), 10*time.Second)
}

func primary() Server {
	return Server{Running: true, Role: ag.RolePrimary, LastRole: ag.RolePrimary}
}

func three() []ag.ConfiguredReplica {
	return []ag.ConfiguredReplica{
		{Server: "MSSQL-0", Mode: ag.ModeSynchronous}, {Server: "MSSQL-1", Mode: ag.ModeSynchronous}, {Server: "MSSQL-2", Mode: ag.ModeSynchronous},
	}
}
