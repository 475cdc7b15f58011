package decide

import (
	"sort"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// view is the input in a fixed order with what is often asked of it.
type view struct {
	in    Input
	knobs knobs
	now   time.Time
	snap  ag.Snapshot
	auth  ag.Authority
	pol   ag.Policy
	tm    ag.Timing
	watch ag.Watch
}

// newView copies the input and orders it, so that the order in which replicas were
// observed changes nothing.
func newView(in Input, k knobs) *view {
	v := &view{in: in, knobs: k, now: in.Now, auth: in.Authority.Clone(), pol: in.Policy, tm: in.Policy.Timing}
	v.snap = in.Snapshot
	v.snap.Replicas = append([]ag.Replica(nil), in.Snapshot.Replicas...)
	sort.SliceStable(v.snap.Replicas, func(i, j int) bool {
		a, b := v.snap.Replicas[i], v.snap.Replicas[j]
		if a.Ordinal != b.Ordinal {
			return a.Ordinal < b.Ordinal
		}
		return a.Name < b.Name
	})
	for i := range v.snap.Replicas {
		v.snap.Replicas[i].Local.Databases = sortedDatabases(v.snap.Replicas[i].Local.Databases)
		if r := v.snap.Replicas[i].Remote; r != nil {
			c := *r
			c.Databases = sortedDatabases(r.Databases)
			v.snap.Replicas[i].Remote = &c
		}
	}
	v.pol.Replicas = append([]ag.ReplicaPolicy(nil), in.Policy.Replicas...)
	sort.SliceStable(v.pol.Replicas, func(i, j int) bool { return v.pol.Replicas[i].Ordinal < v.pol.Replicas[j].Ordinal })
	v.watch = v.look()
	return v
}

func sortedDatabases(in []ag.Database) []ag.Database {
	out := append([]ag.Database(nil), in...)
	sort.SliceStable(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}
