package engine_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// TestKillAtEveryPersistLosesNothingAcknowledged ends the primary before and after each Persist of a
// run with DDL and inserts, restarts it on its disk and looks for every acknowledged row.
func TestKillAtEveryPersistLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	for at := 0; ; at++ {
		c := newCluster(t)
		a := c.add("a")
		count := 0
		crashed := false
		c.onPersist = func(n *node, before bool) bool {
			count++
			crashed = crashed || count-1 == at
			return count-1 == at
		}
		var acked []int
		made := false
		func() {
			s := a.sa()
			alive := func() bool { return !a.dead }
			a.do(a.run, func(in *engine.Instance) {
				_, _ = in.CreateDatabase(c.now, s.id, engine.CreateDatabaseSpec{Name: "db"})
			})
			if !alive() {
				return
			}
			a.do(a.run, func(in *engine.Instance) {
				d, _ := in.LookupDatabase("db")
				in.Begin(c.now, s.id)
				_, _ = in.CreateTable(c.now, s.id, d, table())
				_, _ = in.Commit(c.now, s.id)
			})
			if !alive() {
				return
			}
			made = true
			for k := range 5 {
				w, err := s.insert("db", k)
				if err != nil || w != 0 {
					t.Fatalf("insert: %v %v", w, err)
				}
				if !alive() {
					return
				}
				acked = append(acked, k)
			}
		}()
		c.onPersist = nil
		if !crashed {
			if at < 8 {
				t.Fatalf("only %d boundaries seen", at)
			}
			return
		}
		a.start()
		got, err := a.sa().rows("db")
		if made && err != nil {
			t.Fatalf("boundary %d: %v", at, err)
		}
		for _, k := range acked {
			if !slices.Contains(got, k) {
				t.Fatalf("boundary %d: acknowledged row %d is gone: %v", at, k, got)
			}
		}
	}
}

func TestGroupSurvivesAKillOfThePrimaryAtEveryPersist(t *testing.T) {
	t.Parallel()
	for at := 0; at < 60; at++ {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			t.Parallel()
			c, a, b, _ := trio(t, external())
			if err := a.setRequired(1); err != nil {
				t.Fatal(err)
			}
			count := 0
			c.onPersist = func(n *node, before bool) bool {
				if n == a {
					count++
				}
				return n == a && count-1 == at
			}
			var acked []int
			s := a.sa()
			for k := 0; !a.dead && k < 40; k++ {
				w, err := s.insert("db", k)
				if err == nil && w != 0 {
					if a.dead {
						break
					}
					err = s.wait(w, time.Minute)
				}
				if err == nil && !a.dead {
					acked = append(acked, k)
				}
			}
			c.onPersist = nil
			if !a.dead {
				t.Fatal("the boundary was not reached")
			}
			c.run(12 * time.Second)
			if err := b.failover(false); err != nil {
				t.Fatal(err)
			}
			b.waitPrimary()
			got, err := b.sa().rows("db")
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range acked {
				if !slices.Contains(got, k) {
					t.Fatalf("acknowledged row %d is not on the new primary", k)
				}
			}
			a.start()
			c.run(3 * time.Second)
			if err := a.setSecondary(); err != nil {
				t.Fatal(err)
			}
			c.until("a synchronised", 30*time.Second, func() bool { return a.role("ag") == 2 && b.sync(a) == "SYNCHRONIZED" })
			mine, err := a.sa().rows("db")
			if err != nil || !slices.Equal(mine, got) {
				t.Fatalf("a has %v, b has %v (%v)", mine, got, err)
			}
		})
	}
}

func TestTheSameSeedGivesTheSameTrace(t *testing.T) {
	t.Parallel()
	trace := func() []string {
		c := newCluster(t)
		c.traced = true
		a, b, d := c.add("a"), c.add("b"), c.add("c")
		c.group(external(), a, b, d)
		c.addDatabase(a, b, d)
		for i := range 10 {
			a.sa().mustInsert("db", i)
		}
		if err := b.failover(false); err != nil {
			t.Fatal(err)
		}
		b.waitPrimary()
		c.run(10 * time.Second)
		return c.trace
	}
	if diff := cmp.Diff(trace(), trace()); diff != "" {
		t.Fatalf("two runs differ:\n%s", diff)
	}
}

// TestADiskReadFromItsWriteAheadFileIsTheSame writes every record of a run through the codec.
func TestADiskReadFromItsWriteAheadFileIsTheSame(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	var wal bytes.Buffer
	a, b, d := c.add("a"), c.add("b"), c.add("c")
	base, err := a.disk.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	a.record = &wal
	c.group(external(), a, b, d)
	c.addDatabase(a, b, d)
	for i := range 10 {
		a.sa().mustInsert("db", i)
	}
	got, err := engine.RestoreDisk(base)
	if err != nil {
		t.Fatal(err)
	}
	whole := bytes.Clone(wal.Bytes())
	if n, err := got.ReadRecords(bytes.NewReader(whole)); err != nil || n != int64(len(whole)) {
		t.Fatalf("read %d of %d: %v", n, len(whole), err)
	}
	x, err := got.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	y, err := a.disk.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(x, y) {
		t.Fatal("the replayed disk differs")
	}
	torn, _ := engine.RestoreDisk(base)
	n, err := torn.ReadRecords(bytes.NewReader(whole[:len(whole)-3]))
	if !errors.Is(err, engine.ErrTorn) || n >= int64(len(whole)-3) {
		t.Fatalf("a torn file: %d, %v", n, err)
	}
	a.kill()
	a.disk = got
	a.start()
	if a.role("ag") != 0 {
		t.Fatal("a reopened from its write-ahead file is not RESOLVING")
	}
}

func FuzzMessage(f *testing.F) {
	for _, m := range []engine.Message{engine.Ping{}, engine.Hello{Server: "a"}, engine.LogData{Records: []*engine.LogRecord{{LSN: 1}}},
		engine.Configure{Config: &engine.Configuration{Name: "ag"}}} {
		b, err := engine.EncodeMessage(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := engine.DecodeMessage(b)
		if err != nil {
			return
		}
		again, err := engine.EncodeMessage(m)
		if err != nil {
			t.Fatalf("decoded but not encoded: %v", err)
		}
		if _, err := engine.DecodeMessage(again); err != nil {
			t.Fatalf("encoded but not decoded: %v", err)
		}
	})
}
