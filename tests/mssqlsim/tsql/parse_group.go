package tsql

import (
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

func ptr[T any](v T) *T { return &v }

// serverName is a replica's name: a plain or Unicode literal.
func (p *parser) serverName() string { return p.str() }

// createGroup parses what follows CREATE AVAILABILITY GROUP (FG 1.1).
func (p *parser) createGroup() stmt {
	s := &createGroupStmt{line: p.peek().line}
	s.c.Name = p.name()
	if p.accept("WITH") {
		s.keywords = p.groupOptions(&s.c.Options, true)
	}
	if s.c.Options.Distributed {
		p.distributed(s)
		return s
	}
	p.expect("FOR")
	if p.accept("DATABASE") {
		for {
			s.c.Databases = append(s.c.Databases, p.name())
			if !p.accept(",") {
				break
			}
		}
	}
	p.expect("REPLICA", "ON")
	for {
		s.c.Replicas = append(s.c.Replicas, p.replica())
		if !p.accept(",") {
			break
		}
	}
	if p.accept("LISTENER") {
		l := p.listener(false)
		s.c.Listener = &l
	}
	return s
}

// distributed passes AVAILABILITY GROUP ON … of a distributed group; executing it is refused.
func (p *parser) distributed(s *createGroupStmt) {
	p.expect("AVAILABILITY", "GROUP", "ON")
	for {
		r := engine.ReplicaSpec{Server: p.str()}
		p.expect("WITH")
		p.skipParens()
		s.c.Replicas = append(s.c.Replicas, r)
		if !p.accept(",") {
			return
		}
	}
}

// groupOptions reads a parenthesised option list of CREATE (create true) or SET, and gives the
// names that it holds.
func (p *parser) groupOptions(o *engine.GroupOptions, create bool) []string {
	p.expect("(")
	var names []string
	for {
		t := p.peek()
		if t.kind != tokIdent {
			p.failHere()
		}
		for _, n := range names {
			if n == t.kw {
				p.failHere()
			}
		}
		names = append(names, t.kw)
		p.i++
		switch t.kw {
		case "BASIC", "DISTRIBUTED", "CONTAINED":
			if !create {
				p.failNear(t)
			}
			switch t.kw {
			case "BASIC":
				o.Basic = true
			case "DISTRIBUTED":
				o.Distributed = true
			default:
				o.Contained = true
				for p.is("REUSE_SYSTEM_DATABASES", "AUTOSEEDING_SYSTEM_DATABASES") {
					o.ReuseSystem = o.ReuseSystem || p.is("REUSE_SYSTEM_DATABASES")
					p.i++
				}
			}
		default:
			p.expect("=")
			p.groupOption(t, o, create)
		}
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
	return names
}

func (p *parser) groupOption(t token, o *engine.GroupOptions, create bool) {
	switch t.kw {
	case "CLUSTER_TYPE":
		if !create {
			p.failNear(t)
		}
		o.ClusterType = p.clusterType()
	case "DB_FAILOVER":
		o.DBFailover = ptr(p.onOff())
	case "DTC_SUPPORT":
		o.DTCPerDB = ptr(p.expectOneOf("PER_DB", "NONE") == "PER_DB")
	case "REQUIRED_SYNCHRONIZED_SECONDARIES_TO_COMMIT":
		o.RequiredSecondaries = ptr(int(min(p.integer(), 1<<30)))
	case "WRITE_LEASE_VALIDITY":
		o.WriteLeaseSeconds = ptr(p.integer())
	case "AUTOMATED_BACKUP_PREFERENCE":
		switch p.expectOneOf("PRIMARY", "SECONDARY_ONLY", "SECONDARY", "NONE") {
		case "PRIMARY":
			o.BackupPreference = ptr(uint8(0))
		case "SECONDARY_ONLY":
			o.BackupPreference = ptr(uint8(1))
		case "SECONDARY":
			o.BackupPreference = ptr(uint8(2))
		default:
			o.BackupPreference = ptr(uint8(3))
		}
	case "FAILURE_CONDITION_LEVEL":
		o.FailureLevel = ptr(int(min(p.integer(), 1<<30)))
	case "HEALTH_CHECK_TIMEOUT":
		o.HealthCheckTimeout = ptr(p.integer())
	case "CLUSTER_CONNECTION_OPTIONS":
		p.str()
	default:
		p.failNear(t)
	}
}

func (p *parser) clusterType() *engine.ClusterType {
	switch p.expectOneOf("WSFC", "EXTERNAL", "NONE") {
	case "WSFC":
		return ptr(engine.ClusterWSFC)
	case "EXTERNAL":
		return ptr(engine.ClusterExternal)
	}
	return ptr(engine.ClusterNone)
}

// replica parses 'server' WITH ( … ) (FG 1.2).
func (p *parser) replica() engine.ReplicaSpec {
	r := engine.ReplicaSpec{Server: p.serverName()}
	p.expect("WITH", "(")
	p.replicaOptions(&r, false)
	p.expect(")")
	return r
}

// replicaOptions reads the options up to the closing parenthesis; MODIFY takes exactly one.
func (p *parser) replicaOptions(r *engine.ReplicaSpec, one bool) {
	seen := map[string]bool{}
	for {
		t := p.peek()
		if t.kind != tokIdent || seen[t.kw] {
			p.failHere()
		}
		seen[t.kw] = true
		p.i++
		switch t.kw {
		case "SECONDARY_ROLE", "PRIMARY_ROLE":
			p.expect("(")
			p.roleOptions(r, t.kw == "PRIMARY_ROLE")
			p.expect(")")
		default:
			p.expect("=")
			p.replicaOption(t, r)
		}
		if one || !p.accept(",") {
			return
		}
	}
}

func (p *parser) replicaOption(t token, r *engine.ReplicaSpec) {
	switch t.kw {
	case "ENDPOINT_URL":
		r.EndpointURL = ptr(p.str())
	case "AVAILABILITY_MODE":
		switch p.expectOneOf("SYNCHRONOUS_COMMIT", "ASYNCHRONOUS_COMMIT", "CONFIGURATION_ONLY") {
		case "SYNCHRONOUS_COMMIT":
			r.Availability = ptr(engine.SynchronousCommit)
		case "ASYNCHRONOUS_COMMIT":
			r.Availability = ptr(engine.AsynchronousCommit)
		default:
			r.Availability = ptr(engine.ConfigurationOnly)
		}
	case "FAILOVER_MODE":
		switch p.expectOneOf("AUTOMATIC", "MANUAL", "EXTERNAL") {
		case "AUTOMATIC":
			r.Failover = ptr(engine.FailoverAutomatic)
		case "MANUAL":
			r.Failover = ptr(engine.FailoverManual)
		default:
			r.Failover = ptr(engine.FailoverExternal)
		}
	case "SEEDING_MODE":
		r.SeedingAutomatic = ptr(p.expectOneOf("AUTOMATIC", "MANUAL") == "AUTOMATIC")
	case "BACKUP_PRIORITY":
		r.BackupPriority = ptr(int(min(p.integer(), 1<<30)))
	case "SESSION_TIMEOUT":
		r.SessionTimeout = ptr(int(min(p.integer(), 1<<30)))
	default:
		p.failNear(t)
	}
}

func (p *parser) roleOptions(r *engine.ReplicaSpec, primary bool) {
	for {
		t := p.peek()
		if t.kind != tokIdent {
			p.failHere()
		}
		p.i++
		p.expect("=")
		switch {
		case t.kw == "ALLOW_CONNECTIONS" && primary:
			r.PrimaryConnections = ptr(uint8(2))
			if p.expectOneOf("READ_WRITE", "ALL") == "READ_WRITE" {
				r.PrimaryConnections = ptr(uint8(3))
			}
		case t.kw == "ALLOW_CONNECTIONS":
			switch p.expectOneOf("NO", "READ_ONLY", "ALL") {
			case "NO":
				r.SecondaryConnections = ptr(uint8(0))
			case "READ_ONLY":
				r.SecondaryConnections = ptr(uint8(1))
			default:
				r.SecondaryConnections = ptr(uint8(2))
			}
		case t.kw == "READ_ONLY_ROUTING_URL" && !primary:
			if p.accept("NONE") {
				r.ReadOnlyRoutingURL = ptr("")
			} else {
				r.ReadOnlyRoutingURL = ptr(p.str())
			}
		case t.kw == "READ_WRITE_ROUTING_URL" && primary:
			if p.accept("NONE") {
				r.ReadWriteRoutingURL = ptr("")
			} else {
				r.ReadWriteRoutingURL = ptr(p.str())
			}
		case t.kw == "READ_ONLY_ROUTING_LIST" && primary:
			r.ReadOnlyRoutingList = p.routingList()
		default:
			p.failNear(t)
		}
		if !p.accept(",") {
			return
		}
	}
}

func (p *parser) routingList() [][]string {
	if p.accept("NONE") {
		return [][]string{}
	}
	p.expect("(")
	l := [][]string{}
	for {
		if p.accept("(") {
			var set []string
			for {
				set = append(set, p.str())
				if !p.accept(",") {
					break
				}
			}
			p.expect(")")
			l = append(l, set)
		} else {
			l = append(l, []string{p.str()})
		}
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
	return l
}

// listener parses 'dns' ( WITH IP ( (…), … ) [, PORT = n] ); modify also takes ADD IP and PORT alone.
func (p *parser) listener(modify bool) engine.ListenerSpec {
	l := engine.ListenerSpec{DNSName: p.nameOrString()}
	p.expect("(")
	switch {
	case p.acceptSeq("WITH", "DHCP"):
		if p.accept("ON") {
			p.skipParens()
		}
	case modify && p.acceptSeq("ADD", "IP"):
		l.Addresses = append(l.Addresses, p.listenerAddress())
	case modify && p.accept("PORT"):
		p.expect("=")
		l.Port = int(min(p.integer(), 1<<20))
	default:
		p.expect("WITH", "IP", "(")
		for {
			l.Addresses = append(l.Addresses, p.listenerAddress())
			if !p.accept(",") {
				break
			}
		}
		p.expect(")")
		if p.accept(",") {
			p.expect("PORT", "=")
			l.Port = int(min(p.integer(), 1<<20))
		}
	}
	p.expect(")")
	return l
}

func (p *parser) listenerAddress() string {
	p.expect("(")
	a := p.str()
	if p.accept(",") {
		a += "/" + p.str()
	}
	p.expect(")")
	return a
}

// alterGroup parses what follows ALTER AVAILABILITY GROUP (FG 1.3).
func (p *parser) alterGroup() stmt {
	s := &alterGroupStmt{line: p.peek().line}
	s.name = p.name()
	names := func(read func() string) {
		for {
			s.names = append(s.names, read())
			if !p.accept(",") {
				return
			}
		}
	}
	switch {
	case p.isSeq("SET", "(", "ROLE"):
		p.i += 3
		p.expect("=", "SECONDARY", ")")
		s.verb = "ROLE"
	case p.accept("SET"):
		s.verb = "SET"
		s.keywords = p.groupOptions(&s.opts, false)
		if s.opts.WriteLeaseSeconds != nil {
			if len(s.keywords) > 1 {
				p.failNear(p.toks[p.i-1])
			}
			s.verb, s.lease = "LEASE", *s.opts.WriteLeaseSeconds
		}
	case p.acceptSeq("ADD", "DATABASE"):
		s.verb = "ADD DATABASE"
		names(p.name)
	case p.acceptSeq("REMOVE", "DATABASE"):
		s.verb = "REMOVE DATABASE"
		names(p.name)
	case p.acceptSeq("ADD", "REPLICA", "ON"):
		s.verb = "ADD REPLICA"
		for {
			s.replicas = append(s.replicas, p.replica())
			if !p.accept(",") {
				break
			}
		}
	case p.acceptSeq("MODIFY", "REPLICA", "ON"):
		s.verb = "MODIFY REPLICA"
		for {
			r := engine.ReplicaSpec{Server: p.serverName()}
			p.expect("WITH", "(")
			p.replicaOptions(&r, true)
			p.expect(")")
			s.replicas = append(s.replicas, r)
			if !p.accept(",") {
				break
			}
		}
	case p.acceptSeq("REMOVE", "REPLICA", "ON"):
		s.verb = "REMOVE REPLICA"
		names(p.serverName)
	case p.accept("JOIN"):
		s.verb = "JOIN"
		if p.is("AVAILABILITY") {
			p.failHere()
		}
		if p.isSeq("WITH", "(") {
			p.i += 2
			p.expect("CLUSTER_TYPE", "=")
			s.cluster = p.clusterType()
			p.expect(")")
		}
	case p.isSeq("GRANT", "CREATE", "ANY", "DATABASE"), p.isSeq("DENY", "CREATE", "ANY", "DATABASE"):
		s.verb = p.peek().kw
		p.i += 4
	case p.accept("FAILOVER"):
		s.verb = "FAILOVER"
	case p.accept("FORCE_FAILOVER_ALLOW_DATA_LOSS"):
		s.verb = "FORCE"
	case p.accept("OFFLINE"):
		s.verb = "OFFLINE"
	case p.acceptSeq("ADD", "LISTENER"):
		s.verb = "ADD LISTENER"
		s.listener = p.listener(false)
	case p.acceptSeq("MODIFY", "LISTENER"):
		s.verb = "MODIFY LISTENER"
		s.listener = p.listener(true)
	case p.acceptSeq("RESTART", "LISTENER"):
		s.verb = "RESTART LISTENER"
		s.listener.DNSName = p.nameOrString()
	case p.acceptSeq("REMOVE", "LISTENER"):
		s.verb = "REMOVE LISTENER"
		s.listener.DNSName = p.nameOrString()
	default:
		p.failHere()
	}
	return s
}

// createDatabase parses what follows CREATE DATABASE.
func (p *parser) createDatabase() stmt {
	s := &createDatabaseStmt{}
	s.spec.Name = p.name()
	file := func() (name, path string) {
		p.expect("(")
		for {
			t := p.peek()
			if t.kind != tokIdent {
				p.failHere()
			}
			p.i++
			p.expect("=")
			switch t.kw {
			case "NAME":
				name = p.nameOrString()
			case "FILENAME":
				path = p.str()
			case "SIZE", "MAXSIZE", "FILEGROWTH":
				p.fileSize()
			default:
				p.failNear(t)
			}
			if !p.accept(",") {
				break
			}
		}
		p.expect(")")
		return name, path
	}
	if p.accept("CONTAINMENT") {
		p.expect("=")
		p.expectOneOf("NONE", "PARTIAL")
	}
	if p.accept("ON") {
		p.accept("PRIMARY")
		s.spec.DataName, s.spec.DataPath = file()
	}
	if p.acceptSeq("LOG", "ON") {
		s.spec.LogName, s.spec.LogPath = file()
	}
	if p.accept("COLLATE") {
		s.spec.Collation = p.name()
	}
	if p.is("FOR", "AS") {
		p.failHere()
	}
	return s
}

// fileSize passes a number with a unit, or UNLIMITED.
func (p *parser) fileSize() {
	if p.accept("UNLIMITED") {
		return
	}
	p.integer()
	if p.is("KB", "MB", "GB", "TB", "%") {
		p.i++
	}
}

// alterDatabase parses what follows ALTER DATABASE.
func (p *parser) alterDatabase() stmt {
	name := ""
	if !p.accept("CURRENT") {
		name = p.name()
	}
	if p.acceptSeq("MODIFY", "NAME") {
		p.expect("=")
		return &alterDatabaseStmt{name: name, newName: p.name()}
	}
	if p.accept("COLLATE") {
		p.name()
		return &alterDatabaseStmt{name: name, nothing: true}
	}
	p.expect("SET")
	if p.accept("HADR") {
		h := &alterDatabaseHADRStmt{name: name}
		switch {
		case p.acceptSeq("AVAILABILITY", "GROUP"):
			p.expect("=")
			h.action, h.group = engine.HADRJoin, p.name()
		case p.accept("OFF"):
			h.action = engine.HADROff
		case p.accept("SUSPEND"):
			h.action = engine.HADRSuspend
		case p.accept("RESUME"):
			h.action = engine.HADRResume
		default:
			p.failHere()
		}
		return h
	}
	s := &alterDatabaseStmt{name: name}
	for {
		p.databaseOption(s)
		if !p.accept(",") {
			break
		}
	}
	if p.accept("WITH") {
		switch {
		case p.acceptSeq("ROLLBACK", "IMMEDIATE"):
			s.opts.RollbackImmediate = true
		case p.acceptSeq("ROLLBACK", "AFTER"):
			p.integer()
			p.accept("SECONDS")
			s.opts.RollbackImmediate = true
		default:
			p.expect("NO_WAIT")
		}
	}
	return s
}

func (p *parser) databaseOption(s *alterDatabaseStmt) {
	t := p.peek()
	if t.kind != tokIdent {
		p.failHere()
	}
	p.i++
	switch t.kw {
	case "RECOVERY":
		switch p.expectOneOf("FULL", "SIMPLE", "BULK_LOGGED") {
		case "FULL":
			s.opts.Recovery = ptr(engine.RecoveryFull)
		case "SIMPLE":
			s.opts.Recovery = ptr(engine.RecoverySimple)
		default:
			s.opts.Recovery = ptr(engine.RecoveryBulkLogged)
		}
	case "READ_ONLY", "READ_WRITE":
		s.opts.ReadOnly = ptr(t.kw == "READ_ONLY")
	case "AUTO_CLOSE":
		s.opts.AutoClose = ptr(p.onOff())
	case "MULTI_USER":
		s.opts.UserAccess = ptr(uint8(0))
	case "SINGLE_USER":
		s.opts.UserAccess = ptr(uint8(1))
	case "RESTRICTED_USER":
		s.opts.UserAccess = ptr(uint8(2))
	case "ONLINE":
		s.opts.State = ptr(uint8(0))
	case "EMERGENCY":
		s.opts.State = ptr(uint8(5))
	case "OFFLINE":
		s.opts.State = ptr(uint8(6))
	case "ALLOW_SNAPSHOT_ISOLATION":
		s.opts.SnapshotIsolation = ptr(p.onOff())
	case "COMPATIBILITY_LEVEL":
		p.expect("=")
		s.opts.Compatibility = ptr(int(min(p.integer(), 1<<20)))
	case "READ_COMMITTED_SNAPSHOT", "AUTO_SHRINK", "AUTO_CREATE_STATISTICS", "AUTO_UPDATE_STATISTICS", "AUTO_UPDATE_STATISTICS_ASYNC",
		"TRUSTWORTHY", "ENABLE_BROKER", "DISABLE_BROKER", "ANSI_NULLS", "ANSI_WARNINGS", "ANSI_PADDING", "ARITHABORT",
		"QUOTED_IDENTIFIER", "CONCAT_NULL_YIELDS_NULL", "DB_CHAINING":
		if p.is("ON", "OFF") {
			p.i++
		}
		s.nothing = true
	case "PAGE_VERIFY":
		p.expectOneOf("CHECKSUM", "TORN_PAGE_DETECTION", "NONE")
		s.nothing = true
	case "TARGET_RECOVERY_TIME":
		p.expect("=")
		p.integer()
		p.expectOneOf("SECONDS", "MINUTES")
		s.nothing = true
	case "DELAYED_DURABILITY":
		p.expect("=")
		p.expectOneOf("DISABLED", "ALLOWED", "FORCED")
		s.nothing = true
	case "QUERY_STORE":
		if p.accept("=") {
			p.onOff()
		} else {
			p.onOff()
		}
		if p.is("(") {
			p.skipParens()
		}
		s.nothing = true
	default:
		p.failNear(t)
	}
}

// binary is a 0x… constant.
func (p *parser) binary() []byte {
	t := p.peek()
	if t.kind != tokBinary {
		p.failHere()
	}
	l, _ := p.literal()
	return l.v.Bytes()
}
