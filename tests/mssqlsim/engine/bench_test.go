package engine_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// BenchmarkTenMinutesOfThreeReplicas runs ten simulated minutes of a group of three, set up in
// advance, with a client that inserts a row every 100 ms.
func BenchmarkTenMinutesOfThreeReplicas(b *testing.B) {
	var spent time.Duration
	for b.Loop() {
		b.StopTimer()
		c := newCluster(b)
		x, y, z := c.add("a"), c.add("b"), c.add("c")
		c.group(external(), x, y, z)
		c.addDatabase(x, y, z)
		s := x.sa()
		var d engine.DatabaseID
		var table engine.ObjectID
		x.do(x.run, func(in *engine.Instance) {
			d, _ = in.LookupDatabase("db")
			t, _ := in.LookupTable(c.now, s.id, d, "dbo", "t")
			table = t.ID
		})
		b.StartTimer()
		before := cpuTime()
		acked := 0
		var open engine.WaitID
		for k := range 6000 {
			x.do(x.run, func(in *engine.Instance) {
				in.Begin(c.now, s.id)
				if _, err := in.LockTable(c.now, s.id, d, table, engine.LockExclusive); err != nil {
					b.Fatal(err)
				}
				if _, err := in.Insert(c.now, s.id, d, table, engine.Row{sqltypes.NewInt(int32(k)), sqltypes.NewInt(1)}); err != nil {
					b.Fatal(err)
				}
				var err error
				if open, err = in.Commit(c.now, s.id); err != nil {
					b.Fatal(err)
				}
			})
			c.run(100 * time.Millisecond)
			if err, ok := x.done[open]; ok && err == nil {
				acked++
				delete(x.done, open)
			}
		}
		if acked != 6000 {
			b.Fatalf("%d of 6000 commits acknowledged", acked)
		}
		spent += cpuTime() - before
	}
	b.ReportMetric(float64(spent.Microseconds())/float64(b.N)/1000, "cpu-ms/op")
}

// cpuTime is the processor time of the process: what counts on a shared machine.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestNothingTicksAtRest counts the events of an idle group.
func TestNothingTicksAtRest(t *testing.T) {
	t.Parallel()
	c, _, _, _ := trio(t, external())
	c.run(time.Minute)
	before := c.seq
	c.run(10 * time.Minute)
	// two links, a keepalive each way every 3.3 s (an event to send, one to deliver) and one check of silence per end
	if n := c.seq - before; n > 3000 {
		t.Fatalf("%d events in ten idle minutes", n)
	}
}
