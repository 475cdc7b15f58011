package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

func (n *node) fault(kind string, args map[string]string) {
	n.c.t.Helper()
	n.sa().exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
		return in.Fault(now, id, kind, args)
	})
}

func TestAStaleTransportNeedsBothEndpoints(t *testing.T) {
	t.Parallel()
	c, a, b, d := trio(t, external())
	b.fault("stale", map[string]string{"server": "a"})
	c.run(30 * time.Second)
	if a.state(b).ConnectedState.V != 0 || b.role("ag") != 2 {
		t.Fatalf("b: connected %d, role %d", a.state(b).ConnectedState.V, b.role("ag"))
	}
	if a.sync(d) != "SYNCHRONIZED" {
		t.Fatal("a bystander was hit")
	}
	restart := func(n *node) {
		n.endpointState(engine.EndpointStopped)
		c.run(3 * time.Second)
		n.endpointState(engine.EndpointStarted)
		c.run(10 * time.Second)
	}
	restart(b)
	if a.state(b).ConnectedState.V != 0 {
		t.Fatal("the secondary's endpoint alone cleared it")
	}
	restart(a)
	c.until("b back", 30*time.Second, func() bool { return a.sync(b) == "SYNCHRONIZED" })
}

func TestCrashPointsLeaveAGroupThatRecovers(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"commit", "harden", "propose", "configure", "promote", "promoted"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			c, a, b, d := trio(t, external())
			if err := a.setRequired(1); err != nil {
				t.Fatal(err)
			}
			a.sa().mustInsert("db", 1)
			victim, heir := b, d
			switch at {
			case "commit", "propose":
				victim, heir = a, b
			}
			victim.fault("crash", map[string]string{"at": at})
			switch at {
			case "commit", "harden":
				w, err := a.sa().insert("db", 2)
				if at == "commit" && !a.dead {
					t.Fatalf("a lives: %v %v", w, err)
				}
			case "propose", "configure":
				_, _ = a.sa().start(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
					return in.SetGroupOptions(now, id, "ag", engine.GroupOptions{FailureLevel: ptr(2)})
				})
			default:
				a.kill()
				c.run(time.Second)
				if err := b.failover(false); err != nil {
					t.Fatal(err)
				}
			}
			c.run(5 * time.Second)
			if !victim.dead {
				t.Fatalf("%s did not crash at %q", victim.name, at)
			}
			for _, n := range []*node{a, b, d} {
				if n.dead {
					n.start()
				}
			}
			p := a
			if a.role("ag") != 1 {
				p = heir
				if p.sequence() < b.sequence() {
					p = b
				}
				if err := p.failover(false); err != nil {
					t.Fatal(err)
				}
			}
			p.waitPrimary()
			for _, n := range []*node{a, b, d} {
				if n != p && n.role("ag") == 0 {
					if err := n.setSecondary(); err != nil {
						t.Fatalf("%s: %v", n.name, err)
					}
				}
			}
			for _, n := range []*node{a, b, d} {
				if n != p {
					c.until(n.name+" synchronised", 30*time.Second, func() bool { return n.role("ag") == 2 && p.sync(n) == "SYNCHRONIZED" })
				}
			}
			if got, err := p.sa().rows("db"); err != nil || !slices.Contains(got, 1) {
				t.Fatalf("rows %v %v", got, err)
			}
		})
	}
}

func TestAnOrphanPromotionGoesUnder(t *testing.T) {
	t.Parallel()
	c, a, b, d := trio(t, external())
	if err := a.setRequired(1); err != nil {
		t.Fatal(err)
	}
	a.kill()
	c.partition(b, d, true)
	c.run(12 * time.Second)
	if err := b.failover(false); err != nil {
		t.Fatal(err)
	}
	b.waitPrimary()
	for i := range 5 { // versions that nobody votes for
		_, _ = b.sa().start(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
			return in.SetGroupOptions(now, id, "ag", engine.GroupOptions{FailureLevel: ptr(1 + i%5)})
		})
	}
	orphan := b.sequence()
	b.kill()
	c.partition(b, d, false)
	a.start()
	if err := d.failover(false); err != nil {
		t.Fatal(err)
	}
	d.waitPrimary()
	if err := a.setSecondary(); err != nil {
		t.Fatal(err)
	}
	c.until("a synchronised", 30*time.Second, func() bool { return d.sync(a) == "SYNCHRONIZED" })
	if d.sequence() >= orphan {
		t.Fatalf("the orphan %x is not ahead of %x", orphan, d.sequence())
	}
	b.start()
	if err := b.setSecondary(); err != nil {
		t.Fatalf("b with the orphan configuration: %v", err)
	}
	c.until("b synchronised", 30*time.Second, func() bool { return b.role("ag") == 2 && d.sync(b) == "SYNCHRONIZED" })
	d.sa().mustInsert("db", 1)
	if d.sequence() <= orphan {
		t.Fatalf("sequence %x is not above the orphan's %x", d.sequence(), orphan)
	}
}

func TestASlowDiskDelaysCommits(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a := c.add("a")
	s := a.sa()
	s.createDatabase("db")
	s.createTable("db")
	a.fault("slowio", map[string]string{"delay": "300ms"})
	start := c.now
	s.mustInsert("db", 1)
	if d := c.now.Sub(start); d < 300*time.Millisecond || d > 400*time.Millisecond {
		t.Fatalf("the commit took %v", d)
	}
	a.fault("slowio", map[string]string{"delay": "0s"})
	a.fault("diskfull", nil)
	_, err := s.insert("db", 2)
	wantNumber(t, "full disk", err, 9002)
	a.fault("diskfull", map[string]string{"on": "0"})
	s.mustInsert("db", 2)
}

func TestSeedingFailuresEndInTheHistory(t *testing.T) {
	t.Parallel()
	for code, retried := range map[int]bool{6: true, 2: false} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			a, b := c.add("a"), c.add("b")
			c.group(external(), a, b)
			a.fault("seedfail", map[string]string{"code": fmt.Sprint(code)})
			s := a.sa()
			s.createDatabase("db")
			s.backup("db")
			s.must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
				return in.AddDatabase(now, id, "ag", []string{"db"})
			})
			c.until("a failed row", 10*time.Second, func() bool {
				rows := b.seeding()
				return len(rows) > 0 && rows[0].FailureState.V == 200+code && rows[0].CurrentState == "FAILED"
			})
			a.fault("seedfail", map[string]string{"code": "0"})
			c.run(30 * time.Second)
			if done := a.sync(b) == "SYNCHRONIZED"; done != retried {
				t.Fatalf("synchronised %v, want %v", done, retried)
			}
			if retried {
				return
			}
			a.sa().must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
				return in.ModifyReplica(now, id, "ag", engine.ReplicaSpec{Server: "b", SeedingAutomatic: ptr(true)})
			})
			c.until("the re-triggered seeding", 20*time.Second, func() bool { return a.sync(b) == "SYNCHRONIZED" })
		})
	}
}

func TestRestoreAndManualSeeding(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b := c.add("a"), c.add("b")
	c.endpoints(a, b)
	manual := spec(b, engine.SynchronousCommit)
	manual.SeedingAutomatic = ptr(false)
	a.sa().must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.CreateAvailabilityGroup(now, id, engine.CreateGroup{Name: "ag", Options: external(), Replicas: []engine.ReplicaSpec{spec(a, engine.SynchronousCommit), manual}})
	})
	b.join()
	c.until("b SECONDARY", 10*time.Second, func() bool { return b.role("ag") == 2 })
	s := a.sa()
	s.createDatabase("db")
	s.createTable("db")
	s.mustInsert("db", 1)
	content := func(kind engine.BackupKind) (f []byte) {
		s.exec(func(in *engine.Instance, now time.Time, id engine.SessionID) (err error) {
			f, err = in.BackupContent(now, id, engine.BackupSpec{Database: "db", Kind: kind, Device: "/backup/db"})
			return err
		})
		return f
	}
	full := content(engine.BackupFull)
	s.mustInsert("db", 2)
	logs := content(engine.BackupLog)
	s.mustInsert("db", 3)
	s.must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.AddDatabase(now, id, "ag", []string{"db"})
	})
	c.run(time.Second)
	sb := b.sa()
	restore := func(r engine.RestoreSpec) error {
		return sb.call(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
			r.Database = "db"
			return 0, in.Restore(now, id, r)
		})
	}
	wantNumber(t, "log without full", restore(engine.RestoreSpec{Kind: engine.BackupLog, Content: logs}), 3013)
	for _, r := range []engine.RestoreSpec{{Content: full, NoRecovery: true}, {Kind: engine.BackupLog, Content: logs, NoRecovery: true}} {
		if err := restore(r); err != nil {
			t.Fatal(err)
		}
	}
	sb.must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.SetDatabaseHADR(now, id, "db", engine.HADRJoin, "ag")
	})
	c.until("b synchronised", 20*time.Second, func() bool { return a.sync(b) == "SYNCHRONIZED" })
	if got, err := sb.rows("db"); err != nil || !slices.Equal(got, []int{1, 2, 3}) {
		t.Fatalf("b has %v %v", got, err)
	}
	if m := engine.Messages(restore(engine.RestoreSpec{Content: full, Replace: true})); len(m) != 2 || m[0].Number != 3104 {
		t.Fatalf("RESTORE over a member: %v", m)
	}
}
