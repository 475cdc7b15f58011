package engine_test

import (
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// acked tells whether an insert on n is acknowledged within d.
func (n *node) acked(k int, d time.Duration) bool {
	s := n.sa()
	w, err := s.insert("db", k)
	if err != nil {
		return false
	}
	if w == 0 {
		return true
	}
	n.c.run(d)
	e, done := n.done[w]
	return done && e == nil && !n.dead
}

// Each reading of an unconfirmed fact is observable: the working assumption gives want = false, the
// other reading true (or the reverse where said).
func TestEachReadingIsObservable(t *testing.T) {
	t.Parallel()
	three := func(t *testing.T, set func(*engine.Config)) (c *cluster, a, b, d *node) {
		return trio(t, external(), set)
	}
	two := func(t *testing.T, set func(*engine.Config)) (c *cluster, a, b *node) {
		c = newCluster(t)
		a, b = c.add("a", set), c.add("b", set)
		c.group(external(), a, b)
		c.addDatabase(a, b)
		return c, a, b
	}
	cases := []struct {
		name string
		set  func(*engine.Readings)
		// seen runs the situation and says whether the other reading's behaviour showed.
		seen func(t *testing.T, set func(*engine.Config)) bool
	}{
		{"a lost secondary is waited for until the configuration that drops it is committed", func(r *engine.Readings) { r.AckBeforeDropCommitted = true },
			func(t *testing.T, set func(*engine.Config)) bool {
				c, a, _, _ := three(t, set)
				c.isolate(a, true)
				return a.acked(1, time.Minute)
			}},
		{"a promotion acknowledges nothing before its own quorum", func(r *engine.Readings) { r.PromotionWithoutQuorum = true },
			func(t *testing.T, set func(*engine.Config)) bool {
				c, a, b, d := three(t, set)
				a.kill()
				d.kill()
				c.run(time.Second)
				if err := b.failover(false); err != nil {
					t.Fatal(err)
				}
				b.waitPrimary()
				return b.acked(1, time.Minute)
			}},
		{"a persisted configuration is not a committed one", func(r *engine.Readings) { r.PersistedCountsAsCommitted = true },
			func(t *testing.T, set func(*engine.Config)) bool {
				c, a, b, d := three(t, set)
				a.kill()
				d.kill()
				c.run(time.Second)
				if err := b.failover(false); err != nil {
					t.Fatal(err)
				}
				b.waitPrimary()
				return b.acked(1, time.Minute)
			}},
		{"a thawed primary does not answer after its lease", func(r *engine.Readings) { r.LeaseByTimer = true },
			func(t *testing.T, set func(*engine.Config)) bool {
				c, a, b, d := trio(t, leased(20), set)
				if err := a.renew(20); err != nil {
					t.Fatal(err)
				}
				s := a.sa()
				w, err := s.insert("db", 1)
				if err != nil || w == 0 {
					t.Fatalf("insert: %v %v", w, err)
				}
				a.freeze(true)
				c.run(time.Second) // the acknowledgements of b and c arrive meanwhile
				_, _ = b, d
				c.run(25 * time.Second)
				a.freeze(false)
				e, done := a.done[w]
				return done && e == nil
			}},
		{"the lease does not follow the wall clock", func(r *engine.Readings) { r.LeaseWallClock = true },
			func(t *testing.T, set func(*engine.Config)) bool {
				c, a, _, _ := trio(t, leased(20), set)
				if err := a.renew(20); err != nil {
					t.Fatal(err)
				}
				a.sa().exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
					return in.Fault(now, id, "clock", map[string]string{"offset": "-1m"})
				})
				c.run(30 * time.Second)
				return a.role("ag") == 1
			}},
		{"a renewal after the expiry does not bring the role back", func(r *engine.Readings) { r.RenewalRevivesPrimary = true },
			func(t *testing.T, set func(*engine.Config)) bool {
				c, a, _, _ := trio(t, leased(20), set)
				c.run(30 * time.Second)
				if a.role("ag") != 0 {
					t.Fatal("the lease did not end")
				}
				if err := a.renew(20); err != nil {
					t.Fatal(err)
				}
				c.run(5 * time.Second)
				return a.role("ag") == 1
			}},
		{"an unmet commit quorum makes commits wait", func(r *engine.Readings) { r.RSSTCUnmetIs988 = true },
			func(t *testing.T, set func(*engine.Config)) bool {
				c, a, b, d := three(t, set)
				if err := a.setRequired(1); err != nil {
					t.Fatal(err)
				}
				b.kill()
				d.kill()
				c.run(time.Second)
				_, err := a.sa().insert("db", 1)
				return number(err) == 988
			}},
		{"a raised commit quorum applies to waiting commits", func(r *engine.Readings) { r.RaiseSparesWaiting = true },
			func(t *testing.T, set func(*engine.Config)) bool {
				c, a, b, _ := three(t, set)
				b.freeze(true)
				s := a.sa()
				w, err := s.insert("db", 1)
				if err != nil || w == 0 {
					t.Fatalf("insert: %v %v", w, err)
				}
				if err := a.setRequired(2); err != nil {
					t.Fatal(err)
				}
				c.run(time.Minute)
				_, done := a.done[w]
				return done
			}},
		{"two replicas with commit quorum 0 commit their configuration alone", func(r *engine.Readings) { r.TwoReplicasNeedMajority = true },
			func(t *testing.T, set func(*engine.Config)) bool {
				c, a, b := two(t, set)
				b.kill()
				c.run(time.Second)
				return !a.acked(1, time.Minute)
			}},
		{"three replicas with commit quorum 0 need a majority", func(r *engine.Readings) { r.ThreeReplicasCommitAlone = true },
			func(t *testing.T, set func(*engine.Config)) bool {
				c, a, b, d := three(t, set)
				b.kill()
				d.kill()
				c.run(time.Second)
				return a.acked(1, time.Minute)
			}},
		{"lowering the commit quorum of two replicas is judged by the new value", func(r *engine.Readings) { r.ConfigurationJudgedByOldQuorum = true },
			func(t *testing.T, set func(*engine.Config)) bool {
				c, a, b := two(t, set)
				if err := a.setRequired(1); err != nil {
					t.Fatal(err)
				}
				b.kill()
				c.run(time.Second)
				s := a.sa()
				w, err := s.insert("db", 1)
				if err != nil || w == 0 {
					t.Fatalf("insert: %v %v", w, err)
				}
				aw, err := a.sa().start(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
					return in.SetGroupOptions(now, id, "ag", engine.GroupOptions{RequiredSecondaries: ptr(0)})
				})
				if err != nil {
					t.Fatal(err)
				}
				c.run(time.Minute)
				_, done := a.done[w]
				_, altered := a.done[aw]
				if done != (altered || aw == 0) {
					t.Fatalf("insert acknowledged %v, ALTER done %v", done, altered)
				}
				return !done
			}},
		{"a copy without its mark is refused", func(r *engine.Readings) { r.FailoverIgnoresSyncMark = true },
			func(t *testing.T, set func(*engine.Config)) bool {
				c, a, b, _ := three(t, set)
				b.sa().exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
					_, err := in.SetDatabaseHADR(now, id, "db", engine.HADRSuspend, "")
					return err
				})
				c.run(time.Second)
				a.kill()
				c.run(time.Second)
				return b.failover(false) == nil
			}},
		{"a promotion raises the high word of the sequence number", func(r *engine.Readings) { r.FlatSequence = true },
			func(t *testing.T, set func(*engine.Config)) bool {
				c, a, b, _ := three(t, set)
				before := a.sequence()
				a.kill()
				c.run(time.Second)
				if err := b.failover(false); err != nil {
					t.Fatal(err)
				}
				b.waitPrimary()
				return b.sequence()>>32 == before>>32
			}},
		{"a restarted primary is RESOLVING", func(r *engine.Readings) { r.RestartKeepsPrimary = true },
			func(t *testing.T, set func(*engine.Config)) bool {
				c, a, _, _ := three(t, set)
				a.kill()
				a.start()
				c.run(time.Second)
				return a.role("ag") == 1
			}},
		{"configuration messages travel in the order of the log", func(r *engine.Readings) { r.UnorderedConfiguration = true },
			func(t *testing.T, set func(*engine.Config)) bool {
				c, _, _, _ := three(t, set)
				return c.lanes
			}},
		{"OFFLINE on a secondary keeps its mark", func(r *engine.Readings) { r.OfflineClearsSyncMark = true },
			func(t *testing.T, set func(*engine.Config)) bool {
				c, a, b, _ := three(t, set)
				a.kill()
				c.run(time.Second)
				if err := b.offline(); err != nil {
					t.Fatal(err)
				}
				return number(b.failover(false)) == 41142
			}},
		{"a secondary stays SECONDARY when its primary dies", func(r *engine.Readings) { r.SecondaryResolvesOnPrimaryLoss = true },
			func(t *testing.T, set func(*engine.Config)) bool {
				c, a, b, _ := three(t, set)
				a.kill()
				c.run(12 * time.Second)
				return b.role("ag") == 0
			}},
		{"a secondary shows its own row only", func(r *engine.Readings) { r.AllReplicaRowsOnSecondary = true },
			func(t *testing.T, set func(*engine.Config)) bool {
				_, a, b, _ := three(t, set)
				return b.state(a).RoleDesc.OK
			}},
		{"a fresh lease runs from the start", func(r *engine.Readings) { r.LeaseUnlimitedUntilRenewed = true },
			func(t *testing.T, set func(*engine.Config)) bool {
				c, a, _, _ := trio(t, leased(30), set)
				c.run(time.Minute)
				return a.role("ag") == 1
			}},
		{"the role after JOIN is SECONDARY", func(r *engine.Readings) { r.JoinRole = engine.JoinResolving },
			func(t *testing.T, set func(*engine.Config)) bool {
				c := newCluster(t)
				a, b := c.add("a", set), c.add("b", set)
				c.endpoints(a, b)
				a.sa().must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
					return in.CreateAvailabilityGroup(now, id, engine.CreateGroup{Name: "ag", Options: external(),
						Replicas: []engine.ReplicaSpec{spec(a, engine.SynchronousCommit), spec(b, engine.SynchronousCommit)}})
				})
				b.join()
				c.run(5 * time.Second)
				return b.role("ag") == 0
			}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if tc.seen(t, func(*engine.Config) {}) {
				t.Error("the working assumption behaves like the other reading")
			}
			if !tc.seen(t, func(c *engine.Config) { tc.set(&c.Readings) }) {
				t.Error("the other reading does not show")
			}
		})
	}
}

func TestTwoSynchronousReplicasAndAWitness(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b, w := c.add("a"), c.add("b"), c.add("w")
	nodes := []*node{a, b, w}
	c.groupOf(external(), nodes, []engine.ReplicaSpec{spec(a, engine.SynchronousCommit), spec(b, engine.SynchronousCommit), spec(w, engine.ConfigurationOnly)})
	c.addDatabase(a, b)
	if a.sequence() != w.sequence() {
		t.Fatalf("the witness is at %x, the primary at %x", w.sequence(), a.sequence())
	}
	wantNumber(t, "FAILOVER on the witness", w.failover(false), 47109)
	wantNumber(t, "GRANT on the witness", w.sa().call(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return 0, in.GrantCreateAnyDatabase(now, id, "ag", true)
	}), 47111)
	b.kill()
	if !a.acked(1, 12*time.Second) {
		t.Fatal("a with the witness must drop b and go on")
	}
	b.start()
	wantNumber(t, "FAILOVER on b, which was dropped only after it died", b.failover(false), 0)
	c.run(5 * time.Second)
	// b's persisted configuration still shows it synchronised, but no voter follows it: it acknowledges nothing.
	if b.acked(2, 10*time.Second) && a.acked(3, 10*time.Second) {
		t.Fatal("two primaries acknowledge")
	}
}

func TestConfigurationPersistedButUncommittedSurvivesARestart(t *testing.T) {
	t.Parallel()
	c, a, _, _ := trio(t, external())
	before := a.sequence()
	c.isolate(a, true)
	c.run(15 * time.Second)
	after := a.sequence()
	if after <= before || !a.state(a).ConfigurationCommitStart.OK {
		t.Fatalf("a proposed nothing: %x, %x", before, after)
	}
	a.kill()
	a.start()
	if a.sequence() != after {
		t.Fatalf("the persisted version is gone: %x, want %x", a.sequence(), after)
	}
}
