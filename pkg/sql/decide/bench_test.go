package decide

import (
	"fmt"
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// BenchmarkDecide is one decision on groups of three and of nine replicas, each with many
// databases: while all is well, while a dead primary's place is given away, and while a
// replica is brought back.
func BenchmarkDecide(b *testing.B) {
	for _, size := range []struct {
		replicas int
		make     func() *world
	}{
		{3, func() *world { return newWorld(3) }},
		{9, func() *world { return newWorld(5, withAsync, withAsync, withAsync, withAsync) }},
	} {
		for _, at := range []struct {
			name string
			play func(*world)
		}{
			{"all is well", func(w *world) { w.runQuietly(10 * time.Second) }},
			{"the primary is dead", func(w *world) {
				w.runQuietly(10 * time.Second)
				w.kill(w.servers[0], -1)
				w.step()
			}},
			{"a replica is down", func(w *world) {
				w.runQuietly(10 * time.Second)
				w.kill(w.servers[2], 15*time.Second)
				w.runQuietly(20 * time.Second)
			}},
		} {
			b.Run(fmt.Sprintf("%d replicas/%s", size.replicas, at.name), func(b *testing.B) {
				w := size.make()
				at.play(w)
				in, ok := w.input()
				if !ok {
					b.Fatal("the controller cannot read the Lease")
				}
				manyDatabases(&in.Snapshot, 50)
				b.ReportAllocs()
				for b.Loop() {
					Decide(in)
				}
			})
		}
	}
}

// manyDatabases gives every copy of the one database that many companions.
func manyDatabases(s *ag.Snapshot, n int) {
	more := func(list []ag.Database) []ag.Database {
		if len(list) == 0 {
			return list
		}
		var out []ag.Database
		for i := range n {
			d := list[0]
			d.Name = fmt.Sprintf("%s%02d", d.Name, i)
			out = append(out, d)
		}
		return out
	}
	for i := range s.Replicas {
		r := &s.Replicas[i]
		r.Local.Databases = more(r.Local.Databases)
		if r.Remote != nil {
			r.Remote.Databases = more(r.Remote.Databases)
		}
	}
}
