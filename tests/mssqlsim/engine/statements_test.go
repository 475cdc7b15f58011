package engine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

func ptr[T any](v T) *T { return &v }

func (s *session) createDatabase(name string) {
	s.n.c.t.Helper()
	s.must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.CreateDatabase(now, id, engine.CreateDatabaseSpec{Name: name})
	})
}

func (s *session) backup(name string) {
	s.n.c.t.Helper()
	s.must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.Backup(now, id, engine.BackupSpec{Database: name, Device: "NUL"})
	})
}

// exec runs statements that do not wait.
func (s *session) exec(f func(in *engine.Instance, now time.Time, id engine.SessionID) error) {
	s.n.c.t.Helper()
	s.must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return 0, f(in, now, id)
	})
}

func (s *session) createTable(db string) {
	s.n.c.t.Helper()
	s.must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		d, _ := in.LookupDatabase(db)
		in.Begin(now, id)
		_, err := in.CreateTable(now, id, d, table())
		if err != nil {
			return 0, err
		}
		return in.Commit(now, id)
	})
}

func table() engine.Table {
	return engine.Table{Schema: "dbo", Name: "t", Columns: []engine.Column{{Name: "k", Type: sqltypes.TInt}, {Name: "v", Type: sqltypes.TInt}},
		Keys: []engine.Key{{Name: "pk", Columns: []int{0}, Primary: true, Unique: true}}}
}

// insert starts INSERT INTO t VALUES (k, k) as a transaction of its own.
func (s *session) insert(db string, k int) (engine.WaitID, error) {
	return s.start(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		d, ok := in.LookupDatabase(db)
		if !ok {
			return 0, errors.New("no database " + db)
		}
		t, err := in.LookupTable(now, id, d, "dbo", "t")
		if err != nil {
			return 0, err
		}
		if t == nil {
			return 0, errors.New("no table")
		}
		in.Begin(now, id)
		if w, err := in.LockTable(now, id, d, t.ID, engine.LockExclusive); err != nil || w != 0 {
			in.CancelWait(now, w)
			in.Rollback(now, id)
			return 0, errors.Join(err, errors.New("the table is locked"))
		}
		if _, err := in.Insert(now, id, d, t.ID, engine.Row{sqltypes.NewInt(int32(k)), sqltypes.NewInt(int32(k))}); err != nil {
			in.Rollback(now, id)
			return 0, err
		}
		return in.Commit(now, id)
	})
}

func (s *session) mustInsert(db string, k int) {
	s.n.c.t.Helper()
	w, err := s.insert(db, k)
	if err == nil && w != 0 {
		err = s.wait(w, time.Minute)
	}
	if err != nil {
		s.n.c.t.Fatalf("insert %d on %s: %v", k, s.n.name, err)
	}
}

// rows reads the keys of t.
func (s *session) rows(db string) ([]int, error) {
	var l []int
	var err error
	s.n.do(s.n.run, func(in *engine.Instance) {
		now := s.n.c.now
		d, ok := in.LookupDatabase(db)
		if !ok {
			err = errors.New("no database")
			return
		}
		var t *engine.Table
		if t, err = in.LookupTable(now, s.id, d, "dbo", "t"); err != nil || t == nil {
			return
		}
		var seq engine.RowSeq
		if seq, err = in.Scan(now, s.id, d, t.ID); err != nil {
			return
		}
		for _, r := range seq {
			l = append(l, int(r[0].Int64()))
		}
	})
	return l, err
}

// endpoint gives a node a certificate and a started endpoint; every node trusts all certificates made
// so far and later (trust).
func (c *cluster) endpoints(nodes ...*node) {
	c.t.Helper()
	for _, n := range nodes {
		s := n.sa()
		s.exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
			return errors.Join(
				in.CreateMasterKey(now, id, "Passw0rd!key"),
				in.CreateCertificate(now, id, engine.CertificateSpec{Name: "cert_" + n.name, Subject: "CN=" + n.name}),
				in.CreateEndpoint(now, id, engine.EndpointSpec{Name: "hadr", State: ptr(engine.EndpointStarted), Port: ptr(5022), Certificate: ptr("cert_" + n.name)}))
		})
	}
	for _, n := range nodes {
		for _, o := range nodes {
			if o != n {
				n.trust(o, "cert_"+o.name)
			}
		}
	}
}

// trust imports the public certificate of a peer under a user of its own, as FG 2.2 has it.
func (n *node) trust(o *node, cert string) {
	n.c.t.Helper()
	var der []byte
	o.sa().exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
		cid, _ := in.CertificateID(cert)
		der = in.CertificateEncoded(id, cid)
		return nil
	})
	user := "peer_" + cert
	n.sa().exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
		return errors.Join(
			in.CreateLogin(now, id, engine.LoginSpec{Name: user, Password: ptr("Passw0rd!peer")}),
			in.CreateUser(now, id, user, user),
			in.CreateCertificate(now, id, engine.CertificateSpec{Name: cert, Authorization: user, DER: der}),
			in.GrantPermission(now, id, engine.GrantSpec{Verb: engine.Grant, Permissions: []string{"CONNECT"}, Class: engine.ClassEndpoint, Object: "hadr", To: []string{user}}))
	})
}

func external() engine.GroupOptions {
	return engine.GroupOptions{ClusterType: ptr(engine.ClusterExternal), DBFailover: ptr(true)}
}

func spec(n *node, mode engine.AvailabilityMode) engine.ReplicaSpec {
	r := engine.ReplicaSpec{Server: n.name, EndpointURL: ptr(urlOf(n.name)), Availability: ptr(mode)}
	if mode != engine.ConfigurationOnly {
		r.Failover, r.SeedingAutomatic, r.SecondaryConnections = ptr(engine.FailoverExternal), ptr(true), ptr(uint8(2))
	}
	return r
}

// group makes the group "ag" on the nodes, all synchronous, the first as primary, and joins the others.
func (c *cluster) group(o engine.GroupOptions, nodes ...*node) {
	c.t.Helper()
	var l []engine.ReplicaSpec
	for _, n := range nodes {
		l = append(l, spec(n, engine.SynchronousCommit))
	}
	c.groupOf(o, nodes, l)
}

func (c *cluster) groupOf(o engine.GroupOptions, nodes []*node, l []engine.ReplicaSpec) {
	c.t.Helper()
	c.endpoints(nodes...)
	nodes[0].sa().must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.CreateAvailabilityGroup(now, id, engine.CreateGroup{Name: "ag", Options: o, Replicas: l})
	})
	for i, n := range nodes {
		if i > 0 {
			n.join()
		}
		if *l[i].Availability != engine.ConfigurationOnly {
			n.grant()
		}
	}
	for i, n := range nodes {
		if i > 0 {
			c.until(n.name+" SECONDARY", 20*time.Second, func() bool { return n.role("ag") == 2 })
		}
	}
}

func (n *node) join() {
	n.c.t.Helper()
	n.sa().must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.JoinAvailabilityGroup(now, id, "ag", ptr(engine.ClusterExternal))
	})
}

func (n *node) grant() {
	n.c.t.Helper()
	n.sa().exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
		return in.GrantCreateAnyDatabase(now, id, "ag", true)
	})
}

// addDatabase makes the database db with table t on the primary and waits until all are synchronised.
func (c *cluster) addDatabase(p *node, others ...*node) {
	c.t.Helper()
	s := p.sa()
	s.createDatabase("db")
	s.backup("db")
	s.createTable("db")
	s.must(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.AddDatabase(now, id, "ag", []string{"db"})
	})
	for _, o := range others {
		c.until(o.name+" SYNCHRONIZED", 30*time.Second, func() bool { return p.sync(o) == "SYNCHRONIZED" })
	}
}

// sync is the synchronisation state of db on o as n shows it, "" without a row.
func (n *node) sync(o *node) string {
	state := ""
	s := n.sa()
	n.do(n.run, func(in *engine.Instance) {
		rows, _ := in.DatabaseReplicaStates(n.c.now, s.id)
		names := map[engine.GUID]string{}
		for _, r := range in.AvailabilityReplicas(n.c.now, s.id) {
			names[r.ReplicaID] = r.ReplicaServerName
		}
		for _, r := range rows {
			if names[r.ReplicaID] == o.name {
				state = r.SynchronizationStateDesc
			}
		}
		in.Logout(n.c.now, s.id)
	})
	return state
}

// state is the row of o in dm_hadr_availability_replica_states of n.
func (n *node) state(o *node) (row engine.ReplicaStateRow) {
	s := n.sa()
	n.do(n.run, func(in *engine.Instance) {
		rows, _ := in.ReplicaStates(n.c.now, s.id)
		names := map[engine.GUID]string{}
		for _, r := range in.AvailabilityReplicas(n.c.now, s.id) {
			names[r.ReplicaID] = r.ReplicaServerName
		}
		for _, r := range rows {
			if names[r.ReplicaID] == o.name {
				row = r
			}
		}
		in.Logout(n.c.now, s.id)
	})
	return row
}

func (n *node) sequence() (seq int64) {
	s := n.sa()
	n.do(n.run, func(in *engine.Instance) {
		for _, r := range in.AvailabilityGroups(n.c.now, s.id) {
			seq = r.SequenceNumber
		}
		in.Logout(n.c.now, s.id)
	})
	return seq
}

// failover sets the key and runs FAILOVER, or FORCE, in a session of its own.
func (n *node) failover(force bool) error {
	s := n.sa()
	return s.call(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		if err := in.SetSessionContext(now, id, "external_cluster", "yes", false, false); err != nil {
			return 0, err
		}
		return in.Failover(now, id, "ag", force)
	})
}

func (n *node) offline() error {
	return n.sa().call(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.Offline(now, id, "ag")
	})
}

func (n *node) setSecondary() error {
	return n.sa().call(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.SetRoleSecondary(now, id, "ag")
	})
}

func (n *node) setRequired(k int) error {
	return n.sa().call(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
		return in.SetGroupOptions(now, id, "ag", engine.GroupOptions{RequiredSecondaries: &k})
	})
}

func (n *node) endpointState(st engine.EndpointState) {
	n.c.t.Helper()
	n.sa().exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
		return in.AlterEndpoint(now, id, engine.EndpointSpec{Name: "hadr", State: &st})
	})
}

// number is the last message number of an error, 0 for nil.
func number(err error) int32 {
	if err == nil {
		return 0
	}
	m := engine.Messages(err)
	if len(m) == 0 {
		return -1
	}
	return m[len(m)-1].Number
}

func wantNumber(t *testing.T, what string, err error, n int32) {
	t.Helper()
	if number(err) != n {
		t.Fatalf("%s: got %v, want Msg %d", what, err, n)
	}
}

func (n *node) online() bool { return n.role("ag") == 1 && n.sync(n) == "SYNCHRONIZED" }

func (n *node) waitPrimary() {
	n.c.t.Helper()
	n.c.until(fmt.Sprintf("%s PRIMARY and online", n.name), 20*time.Second, n.online)
}

// trio is a group of three with a database.
func trio(t *testing.T, o engine.GroupOptions, change ...func(*engine.Config)) (c *cluster, a, b, d *node) {
	t.Helper()
	c = newCluster(t)
	a, b, d = c.add("a", change...), c.add("b", change...), c.add("c", change...)
	c.group(o, a, b, d)
	c.addDatabase(a, b, d)
	return c, a, b, d
}
