package engine_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

func lone(t *testing.T) (*node, *session) {
	t.Helper()
	a := newCluster(t).add("a")
	s := a.sa()
	s.createDatabase("db")
	s.createTable("db")
	return a, s
}

func TestKeysAreUniqueAcrossCommittedAndOwnRows(t *testing.T) {
	t.Parallel()
	a, s := lone(t)
	s.mustInsert("db", 1)
	_, err := s.insert("db", 1)
	wantNumber(t, "committed duplicate", err, 2627)
	a.do(a.run, func(in *engine.Instance) {
		now := a.c.now
		d, _ := in.LookupDatabase("db")
		tb, _ := in.LookupTable(now, s.id, d, "dbo", "T")
		row := func(k int32) engine.Row { return engine.Row{sqltypes.NewInt(k), sqltypes.NewInt(0)} }
		in.Begin(now, s.id)
		r, err := in.Insert(now, s.id, d, tb.ID, row(2))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := in.Insert(now, s.id, d, tb.ID, row(2)); number(err) != 2627 {
			t.Errorf("own duplicate: %v", err)
		}
		if err := in.Update(now, s.id, d, tb.ID, r, row(1)); number(err) != 2627 {
			t.Errorf("update to a duplicate: %v", err)
		}
		id, found, err := in.Seek(now, s.id, d, tb.ID, 0, engine.Row{sqltypes.NewInt(1)})
		if err != nil || found == nil {
			t.Fatalf("seek: %v %v", found, err)
		}
		if err := in.Delete(now, s.id, d, tb.ID, id); err != nil {
			t.Fatal(err)
		}
		if err := in.Update(now, s.id, d, tb.ID, r, row(1)); err != nil {
			t.Errorf("the freed key is taken: %v", err)
		}
		if _, err := in.Commit(now, s.id); err != nil {
			t.Fatal(err)
		}
	})
	if got, _ := s.rows("db"); !slices.Equal(got, []int{1}) {
		t.Fatalf("rows %v", got)
	}
}

func TestSavepointsAndRollback(t *testing.T) {
	t.Parallel()
	a, s := lone(t)
	a.do(a.run, func(in *engine.Instance) {
		now := a.c.now
		d, _ := in.LookupDatabase("db")
		tb, _ := in.LookupTable(now, s.id, d, "dbo", "t")
		add := func(k int32) {
			if _, err := in.Insert(now, s.id, d, tb.ID, engine.Row{sqltypes.NewInt(k), sqltypes.NewInt(0)}); err != nil {
				t.Fatal(err)
			}
		}
		in.Begin(now, s.id)
		add(1)
		in.Savepoint(s.id, "sp")
		add(2)
		if !in.RollbackTo(s.id, "SP") || in.RollbackTo(s.id, "other") {
			t.Error("savepoint names")
		}
		add(3)
		if _, err := in.Commit(now, s.id); err != nil {
			t.Fatal(err)
		}
		in.Begin(now, s.id)
		add(4)
		in.Rollback(now, s.id)
	})
	if got, _ := s.rows("db"); !slices.Equal(got, []int{1, 3}) {
		t.Fatalf("rows %v", got)
	}
}

func TestWritersQueueAndACycleHasAVictim(t *testing.T) {
	t.Parallel()
	a, s := lone(t)
	o := a.sa()
	lock := func(x *session, table engine.ObjectID) (w engine.WaitID, err error) {
		a.do(a.run, func(in *engine.Instance) {
			d, _ := in.LookupDatabase("db")
			w, err = in.LockTable(a.c.now, x.id, d, table, engine.LockExclusive)
		})
		return w, err
	}
	a.do(a.run, func(in *engine.Instance) {
		in.Begin(a.c.now, s.id)
		in.Begin(a.c.now, o.id)
	})
	for _, l := range []struct {
		x *session
		t engine.ObjectID
	}{{s, 1}, {o, 2}} {
		if w, err := lock(l.x, l.t); w != 0 || err != nil {
			t.Fatalf("free lock: %v %v", w, err)
		}
	}
	w, err := lock(s, 2)
	if w == 0 || err != nil {
		t.Fatalf("taken lock: %v %v", w, err)
	}
	_, err = lock(o, 1)
	wantNumber(t, "cycle", err, 1205)
	if e, done := a.done[w]; !done || e != nil {
		t.Fatal("the victim's lock did not pass on")
	}
}

func TestIdentityContinuesOnTheNewPrimary(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b := c.add("a"), c.add("b")
	c.group(external(), a, b)
	s := a.sa()
	s.createDatabase("db")
	s.backup("db")
	insert := func(n *node) (v int64) {
		x := n.sa()
		x.must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
			d, _ := in.LookupDatabase("db")
			in.Begin(now, id)
			tb, err := in.LookupTable(now, id, d, "dbo", "i")
			if err != nil {
				return 0, err
			}
			if tb == nil {
				oid, err := in.CreateTable(now, id, d, engine.Table{Schema: "dbo", Name: "i", Columns: []engine.Column{{Name: "id", Type: sqltypes.TInt, Identity: true, Seed: 10, Step: 5}}})
				if err != nil {
					return 0, err
				}
				tb = &engine.Table{ID: oid}
			}
			v = in.NextIdentity(id, d, tb.ID)
			if _, err := in.Insert(now, id, d, tb.ID, engine.Row{sqltypes.NewInt(int32(v))}); err != nil {
				return 0, err
			}
			return in.Commit(now, id)
		})
		return v
	}
	if v := insert(a); v != 10 {
		t.Fatalf("first value %d", v)
	}
	s.must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.AddDatabase(now, id, "ag", []string{"db"})
	})
	c.until("b synchronised", 20*time.Second, func() bool { return a.sync(b) == "SYNCHRONIZED" })
	if v := insert(a); v != 15 {
		t.Fatalf("second value %d", v)
	}
	if err := b.failover(false); err != nil {
		t.Fatal(err)
	}
	b.waitPrimary()
	if v := insert(b); v != 20 {
		t.Fatalf("value on the new primary %d, want 20", v)
	}
}

func TestLogins(t *testing.T) {
	t.Parallel()
	a, s := lone(t)
	s.exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
		return in.CreateLogin(now, id, engine.LoginSpec{Name: "u", Password: ptr("Passw0rd!u")})
	})
	login := func(r engine.LoginRequest) (err error) {
		a.do(a.run, func(in *engine.Instance) { _, err = in.Login(a.c.now, r) })
		return err
	}
	wantNumber(t, "weak password", s.call(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return 0, in.CreateLogin(now, id, engine.LoginSpec{Name: "w", Password: ptr("password")})
	}), 15118)
	wantNumber(t, "wrong password", login(engine.LoginRequest{User: "u", Password: "x"}), 18456)
	wantNumber(t, "unknown login", login(engine.LoginRequest{User: "nobody", Password: "x"}), 18456)
	wantNumber(t, "no user in the database", login(engine.LoginRequest{User: "u", Password: "Passw0rd!u", Database: "db"}), 18456)
	if err := login(engine.LoginRequest{User: "U", Password: "Passw0rd!u"}); err != nil {
		t.Fatalf("names are case-insensitive: %v", err)
	}
	s.exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
		return errors.Join(in.UseDatabase(now, id, "db"), in.CreateUser(now, id, "u", "u"), in.AlterRole(now, id, false, "db_datareader", "u", true), in.UseDatabase(now, id, "master"))
	})
	var u engine.SessionID
	a.do(a.run, func(in *engine.Instance) {
		var err error
		if u, err = in.Login(a.c.now, engine.LoginRequest{User: "u", Password: "Passw0rd!u", Database: "db"}); err != nil {
			t.Fatal(err)
		}
		d, _ := in.LookupDatabase("db")
		if !in.DatabasePermitted(u, d, 0, "SELECT") || in.DatabasePermitted(u, d, 0, "INSERT") {
			t.Error("db_datareader must read and not write")
		}
		if err := in.DropLogin(a.c.now, s.id, "u"); number(err) != 15434 {
			t.Errorf("drop of a logged-in login: %v", err)
		}
		if err := in.Shutdown(a.c.now, u, true); number(err) != 6004 {
			t.Errorf("SHUTDOWN without right: %v", err)
		}
		if err := in.Fault(a.c.now, u, "crash", nil); number(err) != 229 {
			t.Errorf("fault without right: %v", err)
		}
		in.Logout(a.c.now, u)
	})
	s.exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
		return in.AlterLogin(now, id, engine.LoginSpec{Name: "u", Disabled: ptr(true)})
	})
	wantNumber(t, "disabled", login(engine.LoginRequest{User: "u", Password: "Passw0rd!u"}), 18470)
}

func TestPVKCarriesAKeyThereAndBack(t *testing.T) {
	t.Parallel()
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p8, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	b, err := engine.EncodePVK(p8, "secret", make([]byte, 16))
	if err != nil {
		t.Fatal(err)
	}
	got, err := engine.DecodePVK(b, "secret")
	if err != nil || !slices.Equal(got, p8) {
		t.Fatalf("decoded %d bytes, %v", len(got), err)
	}
	if _, err := engine.DecodePVK(b, "wrong"); err == nil {
		t.Fatal("a wrong password opened it")
	}
}

func FuzzDecodePVK(f *testing.F) {
	f.Add([]byte{}, "p")
	f.Add([]byte("\x1e\xf1\xb5\xb0\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x10\x00\x00\x00\x40\x00\x00\x00"), "p")
	f.Fuzz(func(_ *testing.T, b []byte, p string) { _, _ = engine.DecodePVK(b, p) })
}

func TestASharedCertificateTravelsAsBytes(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	a, b := c.add("a"), c.add("b")
	var der, pvk []byte
	a.sa().exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
		if err := in.CreateCertificate(now, id, engine.CertificateSpec{Name: "c", Subject: "CN=c"}); number(err) != 15581 {
			t.Errorf("without a master key: %v", err)
		}
		err := errors.Join(in.CreateMasterKey(now, id, "Passw0rd!key"), in.CreateCertificate(now, id, engine.CertificateSpec{Name: "c", Subject: "CN=c"}))
		cid, _ := in.CertificateID("c")
		der, pvk = in.CertificateEncoded(id, cid), in.CertificatePrivateKey(now, id, cid, "Passw0rd!pvk")
		return err
	})
	b.sa().exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
		if err := in.CreateMasterKey(now, id, "Passw0rd!key"); err != nil {
			return err
		}
		if err := in.CreateCertificate(now, id, engine.CertificateSpec{Name: "c", DER: der, PrivateKey: pvk, Password: "nope"}); number(err) != 15465 {
			t.Errorf("wrong password: %v", err)
		}
		return in.CreateCertificate(now, id, engine.CertificateSpec{Name: "c", DER: der, PrivateKey: pvk, Password: "Passw0rd!pvk"})
	})
	for _, n := range []*node{a, b} {
		n.sa().exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
			return in.CreateEndpoint(now, id, engine.EndpointSpec{Name: "hadr", State: ptr(engine.EndpointStarted), Port: ptr(5022), Certificate: ptr("c")})
		})
	}
	a.sa().must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.CreateAvailabilityGroup(now, id, engine.CreateGroup{Name: "ag", Options: external(),
			Replicas: []engine.ReplicaSpec{spec(a, engine.SynchronousCommit), spec(b, engine.SynchronousCommit)}})
	})
	b.join()
	c.until("b SECONDARY and connected", 10*time.Second, func() bool { return b.role("ag") == 2 && a.state(b).ConnectedState.V == 1 })
}

func TestAPeerWithoutConnectRightIsRefused(t *testing.T) {
	t.Parallel()
	c, a, b, _ := trio(t, external())
	a.sa().exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
		return in.GrantPermission(now, id, engine.GrantSpec{Verb: engine.Revoke, Permissions: []string{"CONNECT"}, Class: engine.ClassEndpoint, Object: "hadr", To: []string{"peer_cert_b"}})
	})
	c.run(time.Second)
	if a.state(b).ConnectedState.V != 1 {
		t.Fatal("REVOKE cut an existing link")
	}
	b.endpointState(engine.EndpointStopped)
	b.endpointState(engine.EndpointStarted)
	c.run(20 * time.Second)
	if a.state(b).ConnectedState.V != 0 {
		t.Fatal("a peer without CONNECT came in")
	}
	a.sa().exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
		return in.GrantPermission(now, id, engine.GrantSpec{Permissions: []string{"CONNECT"}, Class: engine.ClassEndpoint, Object: "hadr", To: []string{"peer_cert_b"}})
	})
	c.until("b back", 20*time.Second, func() bool { return a.sync(b) == "SYNCHRONIZED" })
}

func TestCertificateRotationWithoutOutage(t *testing.T) {
	t.Parallel()
	c, a, b, d := trio(t, external())
	nodes := []*node{a, b, d}
	for _, n := range nodes {
		n.sa().exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
			return in.CreateCertificate(now, id, engine.CertificateSpec{Name: "new_" + n.name, Subject: "CN=new " + n.name})
		})
	}
	for _, n := range nodes {
		for _, o := range nodes {
			if o != n {
				n.trust(o, "new_"+o.name)
			}
		}
	}
	for _, n := range []*node{b, d, a} {
		n.sa().exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
			return in.AlterEndpoint(now, id, engine.EndpointSpec{Name: "hadr", Certificate: ptr("new_" + n.name)})
		})
		c.until("all synchronised with "+n.name+"'s new certificate", 30*time.Second, func() bool { return a.sync(b) == "SYNCHRONIZED" && a.sync(d) == "SYNCHRONIZED" })
		a.sa().mustInsert("db", int(n.name[0]))
	}
	for _, n := range nodes {
		n.sa().exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
			return in.DropCertificate(now, id, "cert_"+n.name)
		})
	}
}
