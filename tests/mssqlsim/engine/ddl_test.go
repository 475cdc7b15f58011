package engine_test

import (
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

func TestCreateAvailabilityGroupRefuses(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a := c.add("a")
	old := c.add("old", func(c *engine.Config) { c.Major = 14 })
	off := c.add("off", func(c *engine.Config) { c.HADR = false })
	b, w, d, e := &node{name: "b"}, &node{name: "w"}, &node{name: "d"}, &node{name: "e"}
	sync := engine.SynchronousCommit
	good := func(n *node) engine.ReplicaSpec { return spec(n, sync) }
	with := func(n *node, f func(*engine.ReplicaSpec)) engine.ReplicaSpec {
		r := spec(n, sync)
		f(&r)
		return r
	}
	opt := func(f func(*engine.GroupOptions)) engine.GroupOptions {
		o := external()
		f(&o)
		return o
	}
	witness := spec(w, engine.ConfigurationOnly)
	cases := []struct {
		name string
		on   *node
		o    engine.GroupOptions
		r    []engine.ReplicaSpec
		want int32
	}{
		{"a list without the local server", a, external(), []engine.ReplicaSpec{good(b)}, 35237},
		{"a replica twice", a, external(), []engine.ReplicaSpec{good(a), good(a)}, 35234},
		{"an endpoint twice", a, external(), []engine.ReplicaSpec{good(a), with(b, func(r *engine.ReplicaSpec) { r.EndpointURL = ptr(urlOf("a")) })}, 35235},
		{"no endpoint", a, external(), []engine.ReplicaSpec{with(a, func(r *engine.ReplicaSpec) { r.EndpointURL = nil })}, 35236},
		{"a bad endpoint", a, external(), []engine.ReplicaSpec{with(a, func(r *engine.ReplicaSpec) { r.EndpointURL = ptr("http://a:1") })}, 35232},
		{"no availability mode", a, external(), []engine.ReplicaSpec{with(a, func(r *engine.ReplicaSpec) { r.Availability = nil })}, 41198},
		{"no failover mode", a, external(), []engine.ReplicaSpec{with(a, func(r *engine.ReplicaSpec) { r.Failover = nil })}, 41197},
		{"a failover mode of another cluster type", a, external(), []engine.ReplicaSpec{with(a, func(r *engine.ReplicaSpec) { r.Failover = ptr(engine.FailoverManual) })}, 47102},
		{"EXTERNAL failover under NONE", a, engine.GroupOptions{ClusterType: ptr(engine.ClusterNone)}, []engine.ReplicaSpec{good(a)}, 47101},
		{"WSFC on Linux", a, engine.GroupOptions{}, []engine.ReplicaSpec{good(a)}, 41199},
		{"two configuration-only replicas", a, external(), []engine.ReplicaSpec{good(a), witness, spec(d, engine.ConfigurationOnly)}, 47107},
		{"a witness with three synchronous replicas", a, external(), []engine.ReplicaSpec{good(a), good(b), good(d), witness}, 47108},
		{"an option on a witness", a, external(), []engine.ReplicaSpec{good(a), {Server: "w", EndpointURL: ptr(urlOf("w")), Availability: ptr(engine.ConfigurationOnly), SeedingAutomatic: ptr(true)}}, 47112},
		{"a commit quorum above the secondaries", a, opt(func(o *engine.GroupOptions) { o.RequiredSecondaries = ptr(1) }), []engine.ReplicaSpec{good(a)}, 35248},
		{"a session time-out below 5 s", a, external(), []engine.ReplicaSpec{with(a, func(r *engine.ReplicaSpec) { r.SessionTimeout = ptr(4) })}, 35214},
		{"a backup priority above 100", a, external(), []engine.ReplicaSpec{with(a, func(r *engine.ReplicaSpec) { r.BackupPriority = ptr(101) })}, 35209},
		{"a routing list to nowhere", a, external(), []engine.ReplicaSpec{with(a, func(r *engine.ReplicaSpec) { r.ReadOnlyRoutingList = [][]string{{"zz"}} })}, 19403},
		{"six synchronous replicas", a, external(), []engine.ReplicaSpec{good(a), good(b), good(w), good(d), good(e), good(&node{name: "f"})}, 35212},
		{"a lease of 0 seconds", a, opt(func(o *engine.GroupOptions) { o.WriteLeaseSeconds = ptr(int64(0)) }), []engine.ReplicaSpec{good(a)}, 47118},
		{"a lease on 2017", old, opt(func(o *engine.GroupOptions) { o.WriteLeaseSeconds = ptr(int64(60)) }), []engine.ReplicaSpec{good(old)}, 102},
		{"HADR switched off", off, external(), []engine.ReplicaSpec{good(off)}, 35221},
	}
	for _, tc := range cases {
		err := tc.on.sa().call(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
			return in.CreateAvailabilityGroup(now, id, engine.CreateGroup{Name: "ag", Options: tc.o, Replicas: tc.r})
		})
		if number(err) != tc.want {
			t.Errorf("%s: %v, want Msg %d", tc.name, err, tc.want)
		}
	}
	s := a.sa()
	s.createDatabase("x")
	s.exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
		return in.UseDatabase(now, id, "x")
	})
	wantNumber(t, "outside master", s.call(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.CreateAvailabilityGroup(now, id, engine.CreateGroup{Name: "ag", Options: external(), Replicas: []engine.ReplicaSpec{good(a)}})
	}), 35208)
}

func TestAlterAvailabilityGroupRefuses(t *testing.T) {
	t.Parallel()
	c, a, b, _ := trio(t, external())
	lone := c.add("lone")
	type stmt = func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error)
	none := func(err error) (engine.WaitID, error) { return 0, err }
	cases := []struct {
		name string
		on   *node
		run  stmt
		want int32
	}{
		{"a secondary sets the commit quorum", b, func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
			return in.SetGroupOptions(now, id, "ag", engine.GroupOptions{RequiredSecondaries: ptr(1)})
		}, 41140},
		{"a secondary adds a database", b, func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
			return in.AddDatabase(now, id, "ag", []string{"db"})
		}, 41140},
		{"an unknown group", a, func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
			return in.Offline(now, id, "nope")
		}, 15151},
		{"an existing replica is added", a, func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
			return in.AddReplica(now, id, "ag", []engine.ReplicaSpec{spec(b, engine.SynchronousCommit)})
		}, 35282},
		{"an unknown replica is modified", a, func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
			return in.ModifyReplica(now, id, "ag", engine.ReplicaSpec{Server: "zz", BackupPriority: ptr(1)})
		}, 35210},
		{"an unknown replica is removed", a, func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
			return in.RemoveReplica(now, id, "ag", []string{"zz"})
		}, 35283},
		{"the local replica is removed", a, func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
			return in.RemoveReplica(now, id, "ag", []string{"a"})
		}, 35284},
		{"an unknown database is removed", a, func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
			return in.RemoveDatabase(now, id, "ag", []string{"zz"})
		}, 35281},
		{"a commit quorum of three", a, func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
			return in.SetGroupOptions(now, id, "ag", engine.GroupOptions{RequiredSecondaries: ptr(3)})
		}, 35248},
		{"SIMPLE recovery of a member", a, func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
			_, err := in.AlterDatabase(now, id, "db", engine.DatabaseOptions{Recovery: ptr(engine.RecoverySimple)})
			return none(err)
		}, 5069},
		{"a full backup on a secondary", b, func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
			return in.Backup(now, id, engine.BackupSpec{Database: "db", Device: "NUL"})
		}, 3013},
		{"SET HADR OFF on the primary", a, func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
			return in.SetDatabaseHADR(now, id, "db", engine.HADROff, "")
		}, 35240},
		{"JOIN without a primary in reach", lone, func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
			return in.JoinAvailabilityGroup(now, id, "ag", ptr(engine.ClusterExternal))
		}, 41158},
		{"DROP of an unknown group", lone, func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
			return in.DropAvailabilityGroup(now, id, "ag")
		}, 15151},
	}
	for _, tc := range cases {
		if err := tc.on.sa().call(tc.run); number(err) != tc.want {
			t.Errorf("%s: %v, want Msg %d", tc.name, err, tc.want)
		}
	}
}

func TestJoinWithTheWrongClusterType(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b := c.add("a"), c.add("b")
	c.endpoints(a, b)
	a.sa().must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.CreateAvailabilityGroup(now, id, engine.CreateGroup{Name: "ag", Options: external(),
			Replicas: []engine.ReplicaSpec{spec(a, engine.SynchronousCommit), spec(b, engine.SynchronousCommit)}})
	})
	err := b.sa().call(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.JoinAvailabilityGroup(now, id, "ag", ptr(engine.ClusterNone))
	})
	if m := engine.Messages(err); len(m) != 2 || m[0].Number != 47100 || m[1].Number != 41158 {
		t.Fatalf("JOIN: %v, want 47100 wrapped by 41158", err)
	}
}

func TestDropAndRejoinNeedsNoSeeding(t *testing.T) {
	t.Parallel()
	c, a, b, _ := trio(t, external())
	s := a.sa()
	s.mustInsert("db", 1)
	if err := b.offline(); err != nil {
		t.Fatal(err)
	}
	b.sa().must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.DropAvailabilityGroup(now, id, "ag")
	})
	if b.role("ag") != -1 {
		t.Fatal("the group is still there")
	}
	s.mustInsert("db", 2)
	b.join()
	b.grant()
	c.until("b synchronised", 20*time.Second, func() bool { return a.sync(b) == "SYNCHRONIZED" })
	for _, r := range b.seeding()[1:] {
		if r.PerformedSeeding {
			t.Fatalf("the copy was seeded again: %+v", r)
		}
	}
	c.run(time.Second)
	if got, err := b.sa().rows("db"); err != nil || len(got) != 2 {
		t.Fatalf("b has %v %v", got, err)
	}
}

func TestRemoveReplicaLeavesItsCopyRestoring(t *testing.T) {
	t.Parallel()
	c, a, b, _ := trio(t, external())
	a.sa().must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.RemoveReplica(now, id, "ag", []string{"b"})
	})
	c.until("b without the group", 10*time.Second, func() bool { return b.role("ag") == -1 })
	s := b.sa()
	b.do(b.run, func(in *engine.Instance) {
		for _, r := range in.Databases(c.now, s.id) {
			if r.Name == "db" && r.StateDesc != "RESTORING" {
				t.Errorf("db is %s", r.StateDesc)
			}
		}
	})
	s.must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.DropDatabase(now, id, "db")
	})
	a.sa().mustInsert("db", 1)
}

func TestRemoveDatabaseKeepsThePrimarysCopy(t *testing.T) {
	t.Parallel()
	c, a, b, _ := trio(t, external())
	a.sa().must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.RemoveDatabase(now, id, "ag", []string{"db"})
	})
	c.run(time.Second)
	a.sa().mustInsert("db", 1)
	_, err := b.sa().rows("db")
	wantNumber(t, "read on b", err, 927)
}

func TestAnAsynchronousReplicaIsNeverWaitedFor(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b := c.add("a"), c.add("b")
	nodes := []*node{a, b}
	c.groupOf(external(), nodes, []engine.ReplicaSpec{spec(a, engine.SynchronousCommit), spec(b, engine.AsynchronousCommit)})
	c.addDatabase(a)
	c.until("b SYNCHRONIZING", 20*time.Second, func() bool { return a.sync(b) == "SYNCHRONIZING" })
	if r := a.state(b); r.SynchronizationDesc.V != "HEALTHY" {
		t.Fatalf("b is %s", r.SynchronizationDesc.V)
	}
	b.freeze(true)
	w, err := a.sa().insert("db", 1)
	if err != nil || w != 0 {
		t.Fatalf("a commit waited for an asynchronous replica: %v %v", w, err)
	}
	b.freeze(false)
	c.run(5 * time.Second)
	wantNumber(t, "FAILOVER on an asynchronous replica", b.failover(false), 41142)
	a.sa().must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.ModifyReplica(now, id, "ag", engine.ReplicaSpec{Server: "b", Availability: ptr(engine.SynchronousCommit)})
	})
	c.until("b SYNCHRONIZED", 10*time.Second, func() bool { return a.sync(b) == "SYNCHRONIZED" })
	if err := b.failover(false); err != nil {
		t.Fatal(err)
	}
	b.waitPrimary()
}
