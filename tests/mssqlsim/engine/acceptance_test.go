package engine_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// The rows of FG 12 that a simulated server must reproduce; the number is in each name.

func TestRow01FreshGroupWithoutDatabaseIsNotHealthy(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b, d := c.add("a"), c.add("b"), c.add("c")
	c.group(external(), a, b, d)
	for _, n := range []*node{a, b, d} {
		r := a.state(n)
		if r.SynchronizationDesc.V != "NOT_HEALTHY" || r.ConnectedState.V != 1 || r.RecoveryHealth.OK {
			t.Errorf("%s: %s, connected %d, recovery %v", n.name, r.SynchronizationDesc.V, r.ConnectedState.V, r.RecoveryHealth)
		}
	}
}

func TestRow02FailoverWithoutTheKeyIsRefused(t *testing.T) {
	t.Parallel()
	_, _, b, _ := trio(t, external())
	err := b.sa().call(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.Failover(now, id, "ag", false)
	})
	wantNumber(t, "FAILOVER", err, 47104)
	err = b.sa().call(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.Failover(now, id, "ag", true)
	})
	wantNumber(t, "FORCE", err, 47104)
	if b.role("ag") != 2 {
		t.Fatal("the role changed")
	}
}

func TestRow03AResetClearsTheKey(t *testing.T) {
	t.Parallel()
	_, _, b, _ := trio(t, external())
	s := b.sa()
	s.exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
		return errors.Join(in.SetSessionContext(now, id, "external_cluster", "yes", false, false), in.ResetSession(now, id))
	})
	err := s.call(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.Failover(now, id, "ag", false)
	})
	wantNumber(t, "FAILOVER after reset", err, 47104)
}

func TestRow04FailoverOnThePrimary(t *testing.T) {
	t.Parallel()
	_, a, _, _ := trio(t, external())
	wantNumber(t, "FAILOVER", a.failover(false), 41122)
	wantNumber(t, "FORCE", a.failover(true), 41122)
}

func TestRow05ASecondaryThatWasDroppedFromTheSyncSetIsRefused(t *testing.T) {
	t.Parallel()
	c, a, b, _ := trio(t, external())
	b.sa().exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
		_, err := in.SetDatabaseHADR(now, id, "db", engine.HADRSuspend, "")
		return err
	})
	c.until("a drops b", 5*time.Second, func() bool { return a.sync(b) == "NOT SYNCHRONIZING" })
	c.run(time.Second)
	a.kill()
	c.run(12 * time.Second)
	wantNumber(t, "FAILOVER", b.failover(false), 41142)
}

func TestRow06ASynchronisedSecondaryOfADeadPrimaryCanFailOver(t *testing.T) {
	t.Parallel()
	c, a, b, _ := trio(t, external())
	a.kill()
	c.run(12 * time.Second)
	if got := b.sync(b); got != "NOT SYNCHRONIZING" {
		t.Fatalf("b says %s", got)
	}
	if err := b.failover(false); err != nil {
		t.Fatal(err)
	}
	b.waitPrimary()
}

func TestRow10ARestartedPrimaryIsResolving(t *testing.T) {
	t.Parallel()
	_, a, _, _ := trio(t, external())
	a.kill()
	a.start()
	if a.role("ag") != 0 {
		t.Fatalf("role %d", a.role("ag"))
	}
	_, err := a.sa().rows("db")
	wantNumber(t, "read", err, 983)
	a.do(a.run, func(in *engine.Instance) {
		s, _ := in.Login(a.c.now, engine.LoginRequest{User: "sa", Password: "Passw0rd!"})
		for _, r := range in.Databases(a.c.now, s) {
			if r.Name == "db" && r.StateDesc != "RECOVERY_PENDING" {
				t.Errorf("db is %s", r.StateDesc)
			}
		}
		rows, _ := in.GroupStates(a.c.now, s)
		if rows[0].PrimaryReplica.V != "a" {
			t.Errorf("a restarted primary shows %q as primary, want itself (stale)", rows[0].PrimaryReplica.V)
		}
	})
	if err := a.offline(); err != nil {
		t.Fatal(err)
	}
	a.do(a.run, func(in *engine.Instance) {
		s, _ := in.Login(a.c.now, engine.LoginRequest{User: "sa", Password: "Passw0rd!"})
		if rows, _ := in.GroupStates(a.c.now, s); rows[0].PrimaryReplica.V != "" {
			t.Errorf("after OFFLINE the stale primary is still shown: %q", rows[0].PrimaryReplica.V)
		}
	})
}

func TestRow11TheLatchNeedsOfflineAndBothEndpoints(t *testing.T) {
	t.Parallel()
	c, a, b, _ := trio(t, external(), func(c *engine.Config) { c.Readings.Latch41104 = 20 * time.Second })
	a.kill()
	c.run(12 * time.Second)
	if err := b.failover(false); err != nil {
		t.Fatal(err)
	}
	b.waitPrimary()
	a.start()
	c.run(3 * time.Second)
	wantNumber(t, "first SET", a.setSecondary(), 41104)
	c.run(60 * time.Second)
	wantNumber(t, "SET a minute later", a.setSecondary(), 41104)
	if err := a.offline(); err != nil {
		t.Fatal(err)
	}
	wantNumber(t, "SET after OFFLINE", a.setSecondary(), 41104)
	a.kill()
	a.start()
	c.run(3 * time.Second)
	wantNumber(t, "SET after a restart of the server", a.setSecondary(), 41104)
	restart := func(n *node) {
		n.endpointState(engine.EndpointStopped)
		c.run(3 * time.Second)
		n.endpointState(engine.EndpointStarted)
		c.run(3 * time.Second)
	}
	restart(a)
	wantNumber(t, "SET after the own endpoint", a.setSecondary(), 41104)
	restart(b)
	if err := a.setSecondary(); err != nil {
		t.Fatalf("SET after OFFLINE and both endpoints: %v", err)
	}
	c.until("a SECONDARY", 10*time.Second, func() bool { return a.role("ag") == 2 })
}

func TestRow12StickyOldPrimaryKeepsItsRoleAndAcknowledgesNothing(t *testing.T) {
	t.Parallel()
	c, a, b, _ := trio(t, external(), func(c *engine.Config) { c.Readings.Planned = engine.PlannedSticky })
	a.sa().mustInsert("db", 1)
	if err := b.failover(false); err != nil {
		t.Fatal(err)
	}
	b.waitPrimary()
	if a.role("ag") != 1 {
		t.Fatalf("a: role %d, want PRIMARY still", a.role("ag"))
	}
	s := a.sa()
	w, err := s.insert("db", 2)
	if err == nil && w == 0 {
		t.Fatal("the old primary acknowledged a commit")
	}
	wantNumber(t, "SET", a.setSecondary(), 41104)
	if err := a.offline(); err != nil {
		t.Fatal(err)
	}
	c.run(time.Second)
	if err := a.setSecondary(); err != nil {
		t.Fatal(err)
	}
	c.until("a SECONDARY", 10*time.Second, func() bool { return a.role("ag") == 2 && b.sync(a) == "SYNCHRONIZED" })
	if got, err := a.sa().rows("db"); err != nil || !slices.Equal(got, []int{1}) {
		t.Fatalf("a has %v %v: the divergent row must be gone", got, err)
	}
}

func leased(n int64) engine.GroupOptions {
	o := external()
	o.WriteLeaseSeconds = &n
	return o
}

func (n *node) renew(seconds int64) error {
	return n.sa().call(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return 0, in.RenewWriteLease(now, id, "ag", seconds)
	})
}

func TestRow13AnExpiredLeaseFencesThePrimary(t *testing.T) {
	t.Parallel()
	c, a, _, _ := trio(t, leased(60))
	s := a.sa()
	for range 10 {
		if err := a.renew(60); err != nil {
			t.Fatal(err)
		}
		c.run(10 * time.Second)
	}
	s.mustInsert("db", 1)
	c.run(49 * time.Second)
	if a.role("ag") != 1 {
		t.Fatal("the lease ended early")
	}
	c.run(2 * time.Second)
	if a.role("ag") != 0 {
		t.Fatalf("role %d after the lease", a.role("ag"))
	}
	_, err := s.insert("db", 2)
	if err == nil {
		t.Fatal("a write after the lease succeeded")
	}
	if !slices.ContainsFunc(a.lines, func(l string) bool { return strings.Contains(l, "lease expired") }) {
		t.Fatal("41091 is not in the log")
	}
	wantNumber(t, "read", func() error { _, err := a.sa().rows("db"); return err }(), 983)
	if err := a.failover(false); err != nil {
		t.Fatalf("the last primary is complete and must come back: %v", err)
	}
	if err := a.renew(60); err != nil {
		t.Fatal(err)
	}
	a.waitPrimary()
}

func TestRow14ALeaseCannotBeShortened(t *testing.T) {
	t.Parallel()
	_, a, b, _ := trio(t, leased(60))
	if err := a.renew(60); err != nil {
		t.Fatal(err)
	}
	wantNumber(t, "shorter", a.renew(10), 47119)
	wantNumber(t, "zero", a.renew(0), 47118)
	if err := b.renew(30); err != nil {
		t.Fatalf("a candidate's renewal: %v", err)
	}
}

func TestRow15AGroupWithoutTheLeaseFeature(t *testing.T) {
	t.Parallel()
	_, a, _, _ := trio(t, external())
	wantNumber(t, "renewal", a.renew(60), 47116)
	if got := a.state(a).WriteLeaseRemainingTicks.V; got != 1<<63-1 {
		t.Fatalf("write_lease_remaining_ticks %d", got)
	}
}

func TestRow17RemoveReplicaBlocksWithoutItsQuorum(t *testing.T) {
	t.Parallel()
	c, a, b, d := trio(t, external())
	b.kill()
	d.kill()
	c.run(time.Second)
	s := a.sa()
	w, err := s.start(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.RemoveReplica(now, id, "ag", []string{"c"})
	})
	if err != nil || w == 0 {
		t.Fatalf("REMOVE REPLICA: %v %v, want a wait", w, err)
	}
	c.run(30 * time.Second)
	if _, done := a.done[w]; done {
		t.Fatal("REMOVE REPLICA ended without a quorum")
	}
	if r := a.state(a); !r.ConfigurationCommitStart.OK {
		t.Fatal("current_configuration_commit_start_time_utc is NULL")
	}
	b.start()
	if err := b.setSecondary(); err != nil {
		t.Fatal(err)
	}
	if err := s.wait(w, 20*time.Second); err != nil {
		t.Fatal(err)
	}
	c.run(time.Second)
	if r := a.state(a); r.ConfigurationCommitStart.OK {
		t.Fatal("the commit start stays")
	}
}

func TestRow18CommitsWaitForTheCommitQuorum(t *testing.T) {
	t.Parallel()
	c, a, b, d := trio(t, external())
	if err := a.setRequired(1); err != nil {
		t.Fatal(err)
	}
	b.kill()
	d.kill()
	c.run(time.Second)
	s := a.sa()
	w, err := s.insert("db", 1)
	if err != nil || w == 0 {
		t.Fatalf("insert: %v %v, want a wait", w, err)
	}
	c.run(30 * time.Second)
	if _, done := a.done[w]; done {
		t.Fatal("acknowledged without a secondary")
	}
	a.do(a.run, func(in *engine.Instance) {
		in.BeginRequest(c.now, s.id, "INSERT", "")
		rows, _ := in.Requests(c.now, s.id)
		if len(rows) != 1 || rows[0].WaitType.V != "HADR_SYNC_COMMIT" {
			t.Errorf("requests: %+v", rows)
		}
	})
	if got, err := a.sa().rows("db"); err != nil || len(got) != 0 {
		t.Fatalf("readers see an unacknowledged row: %v %v", got, err)
	}
	b.start()
	if err := b.setSecondary(); err != nil {
		t.Fatal(err)
	}
	if err := s.wait(w, 30*time.Second); err != nil {
		t.Fatal(err)
	}
}

func TestRow19AFrozenSecondaryStallsCommitsForTheSessionTimeOut(t *testing.T) {
	t.Parallel()
	c, a, b, _ := trio(t, external())
	b.freeze(true)
	s := a.sa()
	start := c.now
	w, err := s.insert("db", 1)
	if err != nil || w == 0 {
		t.Fatalf("insert: %v %v", w, err)
	}
	if err := s.wait(w, 20*time.Second); err != nil {
		t.Fatal(err)
	}
	if d := c.now.Sub(start); d < 6*time.Second || d > 11*time.Second {
		t.Fatalf("the commit waited %v, want up to 10 s", d)
	}
	if a.state(b).ConnectedState.V != 0 {
		t.Fatal("b still counts as connected")
	}
	b.freeze(false)
	c.until("b back", 30*time.Second, func() bool { return a.sync(b) == "SYNCHRONIZED" })
}

func TestRow20AStoppedEndpointDisconnects(t *testing.T) {
	t.Parallel()
	c, a, b, _ := trio(t, external())
	b.endpointState(engine.EndpointStopped)
	c.until("b disconnected", 12*time.Second, func() bool { return a.state(b).ConnectedState.V == 0 })
	if b.role("ag") != 2 {
		t.Fatal("b lost its role")
	}
	logged := func(n *node, part string) bool {
		return slices.ContainsFunc(n.lines, func(l string) bool { return strings.Contains(l, part) })
	}
	if !logged(b, "database mirroring endpoint was either disabled or stopped") || !logged(a, "lost") {
		t.Fatal("35204 or 35206 is missing in the logs")
	}
	b.endpointState(engine.EndpointStarted)
	c.until("b connected", 12*time.Second, func() bool { return a.sync(b) == "SYNCHRONIZED" })
}

func TestRow21AddDatabaseChecksRecoveryModelAndBackup(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a := c.add("a")
	c.group(external(), a)
	s := a.sa()
	s.createDatabase("x")
	add := func() error {
		return s.call(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
			return in.AddDatabase(now, id, "ag", []string{"x"})
		})
	}
	model := func(m engine.RecoveryModel) {
		s.must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
			return in.AlterDatabase(now, id, "x", engine.DatabaseOptions{Recovery: &m})
		})
	}
	wantNumber(t, "without full backup", add(), 1475)
	model(engine.RecoverySimple)
	wantNumber(t, "SIMPLE", add(), 1465)
	s.backup("x")
	model(engine.RecoveryFull)
	wantNumber(t, "backup from before FULL", add(), 1475)
	s.backup("x")
	if err := add(); err != nil {
		t.Fatal(err)
	}
	wantNumber(t, "again", add(), 35244)
	wantNumber(t, "unknown", s.call(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.AddDatabase(now, id, "ag", []string{"nope"})
	}), 35238)
	wantNumber(t, "DROP DATABASE", s.call(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.DropDatabase(now, id, "x")
	}), 3752)
}

func TestRow22SeedingNeedsTheGrant(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b := c.add("a"), c.add("b")
	c.endpoints(a, b)
	a.sa().must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.CreateAvailabilityGroup(now, id, engine.CreateGroup{Name: "ag", Options: external(),
			Replicas: []engine.ReplicaSpec{spec(a, engine.SynchronousCommit), spec(b, engine.SynchronousCommit)}})
	})
	b.join()
	c.until("b SECONDARY", 10*time.Second, func() bool { return b.role("ag") == 2 })
	s := a.sa()
	s.createDatabase("db")
	s.backup("db")
	s.createTable("db")
	s.must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.AddDatabase(now, id, "ag", []string{"db"})
	})
	c.run(20 * time.Second)
	if !slices.ContainsFunc(b.lines, func(l string) bool { return strings.Contains(l, "has not been granted permission to create databases") }) {
		t.Fatal("19506 is not in b's log")
	}
	if n := len(b.seeding()); n != 0 {
		t.Fatalf("%d seeding rows without the grant", n)
	}
	if a.state(b).SynchronizationDesc.V != "NOT_HEALTHY" {
		t.Fatal("a database that has not joined leaves the replica NOT_HEALTHY")
	}
	b.grant()
	c.until("b synchronised", 20*time.Second, func() bool { return a.sync(b) == "SYNCHRONIZED" })
	rows := b.seeding()
	if len(rows) != 1 || rows[0].CurrentState != "COMPLETED" || !rows[0].PerformedSeeding || rows[0].IsSource {
		t.Fatalf("history on b: %+v", rows)
	}
	if rows := a.seeding(); len(rows) != 1 || !rows[0].IsSource || rows[0].CurrentState != "COMPLETED" {
		t.Fatalf("history on a: %+v", rows)
	}
}

func (n *node) seeding() (l []engine.AutomaticSeedingRow) {
	s := n.sa()
	n.do(n.run, func(in *engine.Instance) { l, _ = in.AutomaticSeeding(n.c.now, s.id) })
	return l
}

func TestRow23SetSecondaryCancelsASeeding(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	slow := func(c *engine.Config) { c.Timings.SeedStep = 2 * time.Second }
	a, b := c.add("a", slow), c.add("b", slow)
	c.group(external(), a, b)
	s := a.sa()
	s.createDatabase("db")
	s.backup("db")
	s.must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.AddDatabase(now, id, "ag", []string{"db"})
	})
	c.run(5 * time.Second)
	var physical []engine.PhysicalSeedingRow
	sb := b.sa()
	b.do(b.run, func(in *engine.Instance) { physical, _ = in.PhysicalSeeding(c.now, sb.id) })
	if len(physical) != 1 || physical[0].RoleDesc != "Destination" || physical[0].TransferredBytes == 0 {
		t.Fatalf("physical seeding: %+v", physical)
	}
	if err := b.setSecondary(); err != nil {
		t.Fatal(err)
	}
	c.run(time.Second)
	rows := b.seeding()
	if len(rows) == 0 || rows[0].CurrentState != "FAILED" || !rows[0].FailureState.OK {
		t.Fatalf("history: %+v", rows)
	}
	c.until("the retry", 90*time.Second, func() bool { return a.sync(b) == "SYNCHRONIZED" })
	if n := len(b.seeding()); n < 2 {
		t.Fatalf("%d rows in the history, want the failed one and the retry", n)
	}
}

func TestRow24AnExpiredCertificateKeepsLinksAndRefusesNewOnes(t *testing.T) {
	t.Parallel()
	c, a, b, _ := trio(t, external())
	for _, n := range c.nodes {
		n.sa().exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
			return in.Fault(now, id, "clock", map[string]string{"offset": "9000h"}) // beyond the year of the default life
		})
	}
	c.run(30 * time.Second)
	if a.sync(b) != "SYNCHRONIZED" {
		t.Fatal("an existing link was cut by the expiry")
	}
	b.endpointState(engine.EndpointStopped)
	c.run(3 * time.Second)
	b.endpointState(engine.EndpointStarted)
	c.run(60 * time.Second)
	if a.state(b).ConnectedState.V != 0 {
		t.Fatal("a new link was accepted with an expired certificate")
	}
	if r := a.state(b); !r.LastConnectErrorNumber.OK {
		t.Fatal("no last_connect_error_number")
	}
}

func TestRow25SecondCreateAndJoin(t *testing.T) {
	t.Parallel()
	_, a, b, _ := trio(t, external())
	err := a.sa().call(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.CreateAvailabilityGroup(now, id, engine.CreateGroup{Name: "AG", Options: external(), Replicas: []engine.ReplicaSpec{spec(a, engine.SynchronousCommit)}})
	})
	wantNumber(t, "CREATE", err, 41106)
	err = b.sa().call(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.JoinAvailabilityGroup(now, id, "ag", ptr(engine.ClusterExternal))
	})
	if m := engine.Messages(err); len(m) != 2 || m[0].Number != 41106 || m[1].Number != 41158 {
		t.Fatalf("JOIN: %v, want 41106 wrapped by 41158", err)
	}
}

func TestRow26Diagnostics(t *testing.T) {
	t.Parallel()
	_, a, _, _ := trio(t, external())
	s := a.sa()
	s.exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
		return in.Fault(now, id, "diagnostics", map[string]string{"component": "resource", "state": "3"})
	})
	a.do(a.run, func(in *engine.Instance) {
		rows, err := in.Diagnostics(a.c.now, s.id)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range rows {
			names = append(names, r.ComponentName)
			if r.ComponentName == "resource" && r.State != 3 || r.ComponentName == "system" && r.State != 1 {
				t.Errorf("%s: state %d", r.ComponentName, r.State)
			}
		}
		if want := []string{"system", "resource", "query_processing", "io_subsystem", "events", "ag"}; !slices.Equal(names, want) {
			t.Fatalf("components %v", names)
		}
	})
}

func TestRow28ALoginWithoutRightsSeesNoGroup(t *testing.T) {
	t.Parallel()
	_, a, _, _ := trio(t, external())
	a.sa().exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
		return in.CreateLogin(now, id, engine.LoginSpec{Name: "mon", Password: ptr("Passw0rd!mon")})
	})
	var m engine.SessionID
	a.do(a.run, func(in *engine.Instance) {
		var err error
		if m, err = in.Login(a.c.now, engine.LoginRequest{User: "mon", Password: "Passw0rd!mon"}); err != nil {
			t.Fatal(err)
		}
		if rows := in.AvailabilityGroups(a.c.now, m); len(rows) != 0 {
			t.Errorf("a login without rights sees %v", rows)
		}
		if _, err := in.ReplicaStates(a.c.now, m); number(err) != 297 {
			t.Errorf("dynamic view: %v", err)
		}
		if _, err := in.Offline(a.c.now, m, "ag"); number(err) != 15151 {
			t.Errorf("OFFLINE: %v", err)
		}
	})
	a.sa().exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
		return errors.Join(
			in.GrantPermission(now, id, engine.GrantSpec{Permissions: []string{"ALTER", "CONTROL", "VIEW DEFINITION"}, Class: engine.ClassGroup, Object: "ag", To: []string{"mon"}}),
			in.GrantPermission(now, id, engine.GrantSpec{Permissions: []string{"VIEW SERVER STATE"}, To: []string{"mon"}}))
	})
	a.do(a.run, func(in *engine.Instance) {
		if rows := in.AvailabilityGroups(a.c.now, m); len(rows) != 1 {
			t.Errorf("after the grants: %v", rows)
		}
		if rows, err := in.ReplicaStates(a.c.now, m); err != nil || len(rows) != 3 {
			t.Errorf("dynamic view: %v %v", rows, err)
		}
		if _, err := in.Offline(a.c.now, m, "ag"); err != nil {
			t.Errorf("OFFLINE: %v", err)
		}
	})
}

func TestRow29ForceSuspendsTheOthersUntilResume(t *testing.T) {
	t.Parallel()
	c, a, b, d := trio(t, external())
	s := a.sa()
	s.mustInsert("db", 1)
	c.isolate(a, true)
	c.run(15 * time.Second)
	w, err := s.insert("db", 2) // the divergent tail
	if err != nil || w == 0 {
		t.Fatalf("insert on the cut-off primary: %v %v", w, err)
	}
	if err := b.failover(true); err != nil {
		t.Fatal(err)
	}
	b.waitPrimary()
	c.until("c follows b", 20*time.Second, func() bool { return b.state(d).ConnectedState.V == 1 })
	b.sa().mustInsert("db", 3)
	suspended := func(n *node) (bool, uint8) {
		var r engine.DatabaseReplicaStateRow
		sn := n.sa()
		n.do(n.run, func(in *engine.Instance) {
			rows, _ := in.DatabaseReplicaStates(c.now, sn.id)
			for _, x := range rows {
				if x.IsLocal {
					r = x
				}
			}
		})
		return r.IsSuspended, r.SuspendReason.V
	}
	if on, why := suspended(d); !on || why != 1 {
		t.Fatalf("c: suspended %v, reason %d", on, why)
	}
	resume := func(n *node) {
		n.sa().must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
			return in.SetDatabaseHADR(now, id, "db", engine.HADRResume, "")
		})
	}
	resume(d)
	c.until("c synchronised", 20*time.Second, func() bool { return b.sync(d) == "SYNCHRONIZED" })
	a.kill()
	c.isolate(a, false)
	a.start()
	c.run(5 * time.Second)
	if err := a.setSecondary(); err != nil {
		t.Fatal(err)
	}
	c.until("a SECONDARY", 10*time.Second, func() bool { return a.role("ag") == 2 })
	if on, why := suspended(a); !on || why != 1 {
		t.Fatalf("a: suspended %v, reason %d", on, why)
	}
	if got, _ := a.sa().rows("db"); !slices.Equal(got, []int{1, 2}) {
		t.Fatalf("before RESUME a must keep its tail: %v", got)
	}
	resume(a)
	c.until("a synchronised", 20*time.Second, func() bool { return b.sync(a) == "SYNCHRONIZED" })
	if got, _ := a.sa().rows("db"); !slices.Equal(got, []int{1, 3}) {
		t.Fatalf("after RESUME a has %v", got)
	}
}

func TestRow30ACancelledAlterLeavesTheSessionUsable(t *testing.T) {
	t.Parallel()
	c, a, b, d := trio(t, external())
	b.kill()
	d.kill()
	c.run(time.Second)
	s := a.sa()
	w, err := s.start(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.SetGroupOptions(now, id, "ag", engine.GroupOptions{RequiredSecondaries: ptr(1)})
	})
	if err != nil || w == 0 {
		t.Fatalf("ALTER: %v %v, want a wait", w, err)
	}
	a.do(a.run, func(in *engine.Instance) { in.CancelWait(c.now, w) })
	c.run(time.Second)
	if _, done := a.done[w]; done {
		t.Fatal("a cancelled wait was completed")
	}
	if got, err := s.rows("db"); err != nil || len(got) != 0 {
		t.Fatalf("the session is not usable: %v %v", got, err)
	}
}

func TestRow31AJoinedDatabaseAnswersWithAnInformationalMessage(t *testing.T) {
	t.Parallel()
	_, _, b, _ := trio(t, external())
	err := b.sa().call(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.SetDatabaseHADR(now, id, "db", engine.HADRJoin, "ag")
	})
	if number(err) != 41145 || engine.Failed(err) {
		t.Fatalf("SET HADR AVAILABILITY GROUP: %v, want 41145 of class 10", err)
	}
}
