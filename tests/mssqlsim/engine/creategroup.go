package engine

import (
	"slices"
	"strings"
	"time"
)

// limits of replicas (FG 8, 11 no. 22)
func (in *Instance) maxSync() int {
	if in.cfg.Major <= 14 {
		return 3
	}
	return 5
}

const maxReplicas = 9

// CreateAvailabilityGroup creates a group with the local instance as its primary (FG 1.1). Errors of
// the replica list come before those of databases, and each ends in 41152 only after something was
// created, which never is the case here.
func (in *Instance) CreateAvailabilityGroup(now time.Time, id SessionID, c CreateGroup) (WaitID, error) {
	in.begin(now)
	s := in.session(id)
	if err := in.groupStatement(s); err != nil {
		return 0, err
	}
	if !in.can(s, "CREATE AVAILABILITY GROUP") {
		return 0, msg(15247, 16, 1, "User does not have permission to perform this action.")
	}
	o := c.Options
	if o.WriteLeaseSeconds != nil && in.cfg.Major < 15 {
		return 0, msg(102, 15, 1, "Incorrect syntax near 'WRITE_LEASE_VALIDITY'.")
	}
	if o.Contained && in.cfg.Major < 16 {
		return 0, msg(102, 15, 1, "Incorrect syntax near 'CONTAINED'.")
	}
	if o.Contained || o.Distributed {
		return 0, msg(41199, 16, 1, "The specified command is invalid because the Always On Availability Groups feature that it needs is not supported by this edition of SQL Server.")
	}
	if in.groupByName(c.Name) != nil {
		return 0, exists(c.Name)
	}
	clusterType := ClusterWSFC
	set(&clusterType, o.ClusterType)
	if clusterType == ClusterWSFC {
		return 0, msg(41199, 16, 1, "The specified command is invalid because the WSFC cluster type is not available on Linux. Specify CLUSTER_TYPE = EXTERNAL or CLUSTER_TYPE = NONE.")
	}
	cfg := &Configuration{GroupID: in.rnd.guid(), ResourceID: in.rnd.guid(), Name: c.Name, ClusterType: clusterType, BackupPreference: 2, FailureLevel: 3, HealthTimeout: 30000, Basic: o.Basic}
	if err := in.applyOptions(cfg, o); err != nil {
		return 0, err
	}
	if len(c.Replicas) > maxReplicas {
		return 0, msg(35233, 16, 1, "You cannot create an availability group containing %d availability replica(s).  The maximum number of availability replicas in an availability group %s is %d.", len(c.Replicas), "(excluding configuration-only replicas)", maxReplicas)
	}
	for _, r := range c.Replicas {
		if err := in.addReplica(cfg, r); err != nil {
			return 0, err
		}
	}
	local := cfg.replicaOn(in.srv.ServerName)
	if local == nil {
		return 0, msg(35237, 16, 1, "None of the specified replicas for availability group %s maps to the instance of SQL Server to which you are connected.  Reenter the command, specifying this server instance to host one of the replicas.  This replica will be the initial primary replica.", c.Name)
	}
	if local.Availability == ConfigurationOnly {
		return 0, msg(47109, 16, 1, "Availability group '%s' cannot be created on a configuration-only replica. Configuration-only replicas cannot become primary.", c.Name)
	}
	if err := in.checkLimits(cfg); err != nil {
		return 0, err
	}
	if o.RequiredSecondaries != nil {
		if err := in.checkRequired(cfg, cfg.Required); err != nil {
			return 0, err
		}
	}
	local.Joined, local.Voter = true, true
	var dbs []*database
	for _, n := range c.Databases {
		d, err := in.joinable(s, n)
		if err != nil {
			return 0, err
		}
		dbs = append(dbs, d)
	}
	for _, l := range listenersOf(c.Listener) {
		l.ID = in.rnd.guid()
		cfg.Listeners = append(cfg.Listeners, l)
	}
	cfg.Sequence = 1 << 32
	if in.cfg.Readings.FlatSequence {
		cfg.Sequence = 1
	}
	cfg.Primary = local.ID
	st := &GroupState{Config: cfg, Committed: cfg.Sequence, Replica: local.ID, Created: in.wall(), Grantor: s.login}
	in.persist(PutGroup{State: st})
	g := in.newGroup(st)
	in.groups = append(in.groups, g)
	g.setRole(RoleResolving, "NOT_AVAILABLE", "RESOLVING_NORMAL")
	g.setRole(RolePrimary, "PRIMARY_PENDING", "PRIMARY_NORMAL")
	g.known = in.srv.ServerName
	g.startLease()
	var w *wait
	if len(dbs) > 0 {
		w = in.newWait(s, "HADR_AG_MUTEX", nil)
		g.enlist(dbs, w)
	}
	g.broadcast()
	g.connect()
	if w == nil {
		return 0, nil
	}
	if w.done {
		return 0, in.withdraw(w)
	}
	return w.id, nil
}

func listenersOf(l *ListenerSpec) []Listener {
	if l == nil {
		return nil
	}
	n := Listener{DNSName: l.DNSName, Addresses: l.Addresses, Port: l.Port}
	if n.Port == 0 {
		n.Port = 1433
	}
	return []Listener{n}
}

// applyOptions sets the group options of CREATE and SET (FG 1.1).
func (in *Instance) applyOptions(cfg *Configuration, o GroupOptions) error {
	if o.FailureLevel != nil && (*o.FailureLevel < 1 || *o.FailureLevel > 5) {
		return msg(102, 15, 1, "Incorrect syntax near '%d'.", *o.FailureLevel)
	}
	if o.HealthCheckTimeout != nil && (*o.HealthCheckTimeout < 15000 || *o.HealthCheckTimeout > 4294967295) {
		return msg(102, 15, 1, "Incorrect syntax near '%d'.", *o.HealthCheckTimeout)
	}
	if o.WriteLeaseSeconds != nil && (*o.WriteLeaseSeconds <= 0 || *o.WriteLeaseSeconds > 1<<31-1) {
		return msg(47118, 16, 1, "The write lease validity %d of availability group '%s' is invalid.", *o.WriteLeaseSeconds, cfg.Name)
	}
	set(&cfg.DBFailover, o.DBFailover)
	set(&cfg.DTCPerDB, o.DTCPerDB)
	set(&cfg.Required, o.RequiredSecondaries)
	set(&cfg.WriteLease, o.WriteLeaseSeconds)
	set(&cfg.BackupPreference, o.BackupPreference)
	set(&cfg.FailureLevel, o.FailureLevel)
	set(&cfg.HealthTimeout, o.HealthCheckTimeout)
	return nil
}

// checkRequired is 35248: the commit quorum exceeds the synchronous secondaries.
func (in *Instance) checkRequired(cfg *Configuration, n int) error {
	sync, witness := 0, false
	for i := range cfg.Replicas {
		switch cfg.Replicas[i].Availability {
		case SynchronousCommit:
			sync++
		case ConfigurationOnly:
			witness = true
		}
	}
	if n < 0 || n > max(0, sync-1) {
		return msg(35248, 16, 1, "Invalid value for REQUIRED_SYNCHRONIZED_SECONDARIES_TO_COMMIT of availability group '%s': %d. It must not be larger than the number of synchronous secondary replicas, %d.", cfg.Name, n, max(0, sync-1))
	}
	if witness && n > 0 && sync > 2 {
		return in.witnessRule(cfg)
	}
	return nil
}

func (in *Instance) witnessRule(cfg *Configuration) error {
	return msg(47108, 16, 1, "The configuration of availability group '%s' is not valid with a configuration-only replica: at most two synchronous replicas and REQUIRED_SYNCHRONIZED_SECONDARIES_TO_COMMIT = 0 are allowed.", cfg.Name)
}

// checkLimits are the numbers of replicas (FG 1.2, 8).
func (in *Instance) checkLimits(cfg *Configuration) error {
	data, sync, witness := 0, 0, 0
	for i := range cfg.Replicas {
		switch cfg.Replicas[i].Availability {
		case ConfigurationOnly:
			witness++
			continue
		case SynchronousCommit:
			sync++
		}
		data++
	}
	switch {
	case data > maxReplicas:
		return msg(35223, 16, 0, "Cannot add %d availability replica(s) to availability group '%s'. The availability group already contains %d replica(s), and the maximum number of replicas supported in an availability group is %d.", 1, cfg.Name, data-1, maxReplicas)
	case sync > in.maxSync():
		return msg(35212, 16, 1, "The %s operation is not allowed by the current availability-group configuration.  This operation would exceed the maximum number of %d synchronous-commit availability replicas in availability group '%s'.", "CREATE/ALTER", in.maxSync(), cfg.Name)
	case witness > 1:
		return msg(47107, 16, 1, "The availability group '%s' cannot have more than one configuration-only replica.", cfg.Name)
	case witness == 1 && sync > 2:
		return in.witnessRule(cfg)
	}
	return nil
}

// addReplica checks one replica specification and appends it (FG 1.2).
func (in *Instance) addReplica(cfg *Configuration, spec ReplicaSpec) error {
	name := cfg.Name
	if cfg.replicaOn(spec.Server) != nil {
		return msg(35234, 16, 1, "Database name or replica name '%s' was specified more than once for availability group '%s'.", spec.Server, name)
	}
	r := Replica{ID: in.rnd.guid(), Server: spec.Server, BackupPriority: 50, SessionTimeout: 10, PrimaryConnections: 2, Created: in.wall(), Modified: in.wall()}
	if spec.EndpointURL == nil {
		return msg(35236, 15, 1, "The endpoint URL was not specified for the availability replica hosted by server instance '%s'.  Reenter the command, specifying the endpoint URL of this instance of SQL Server.", spec.Server)
	}
	if spec.Availability == nil {
		return msg(41198, 16, 0, "Cannot add replica '%s' to the availability group '%s'. You must specify the AVAILABILITY_MODE option for each replica.", spec.Server, name)
	}
	r.Availability = *spec.Availability
	if r.Availability == ConfigurationOnly {
		if cfg.ClusterType == ClusterWSFC || in.cfg.Major < 14 {
			return msg(47110, 16, 1, "The configuration-only replica '%s' is not allowed in availability group '%s' with this cluster type.", spec.Server, name)
		}
		if spec.Failover != nil || spec.SeedingAutomatic != nil || spec.BackupPriority != nil || spec.SecondaryConnections != nil || spec.PrimaryConnections != nil ||
			spec.ReadOnlyRoutingURL != nil || spec.ReadWriteRoutingURL != nil || spec.ReadOnlyRoutingList != nil {
			return configurationOnlyOptions(name, spec.Server)
		}
		r.Failover = FailoverManual
		if cfg.ClusterType == ClusterExternal {
			r.Failover = FailoverExternal
		}
	} else if spec.Failover == nil {
		return msg(41197, 16, 0, "The FAILOVER_MODE option has not been specified for the replica '%s' in availability group '%s'. Reenter the command, specifying a failover mode for the replica.", spec.Server, name)
	}
	if err := in.changeReplica(cfg, &r, spec); err != nil {
		return err
	}
	for i := range cfg.Replicas {
		if strings.EqualFold(cfg.Replicas[i].EndpointURL, r.EndpointURL) {
			return msg(35235, 16, 1, "The endpoint '%s' was specified more than once for availability group '%s'.", r.EndpointURL, name)
		}
	}
	cfg.Replicas = append(cfg.Replicas, r)
	return nil
}

func configurationOnlyOptions(group, server string) error {
	return msg(47112, 16, 1, "Configuration-only replica '%s' of availability group '%s' accepts only the ENDPOINT_URL, AVAILABILITY_MODE and SESSION_TIMEOUT options.", server, group)
}

// changeReplica checks and sets the given options on a replica.
func (in *Instance) changeReplica(cfg *Configuration, r *Replica, spec ReplicaSpec) error {
	name := cfg.Name
	if spec.EndpointURL != nil {
		if _, _, ok := parseEndpointURL(*spec.EndpointURL); !ok {
			return msg(35232, 16, 1, "The specified endpoint URL '%s' is not valid.  Reenter the command and specify the correct URL.  For information about specifying the endpoint URL for an availability replica, see SQL Server Books Online.", *spec.EndpointURL)
		}
		r.EndpointURL = *spec.EndpointURL
	}
	if spec.Failover != nil {
		switch {
		case cfg.ClusterType == ClusterExternal && *spec.Failover != FailoverExternal:
			return msg(47102, 16, 1, "The failover mode of replica '%s' in availability group '%s' is not valid: CLUSTER_TYPE = EXTERNAL supports only FAILOVER_MODE = EXTERNAL.", r.Server, name)
		case cfg.ClusterType == ClusterNone && *spec.Failover != FailoverManual:
			return msg(47101, 16, 1, "The failover mode of replica '%s' in availability group '%s' is not valid: CLUSTER_TYPE = NONE supports only FAILOVER_MODE = MANUAL.", r.Server, name)
		}
		r.Failover = *spec.Failover
	}
	if spec.SessionTimeout != nil {
		if *spec.SessionTimeout < 5 {
			return msg(35214, 16, 0, "The %s operation failed for availability replica '%s'.  The minimum value for session timeout is %d.  Retry the operation specifying a valid session-timeout value.", "CREATE/ALTER", r.Server, 5)
		}
		r.SessionTimeout = *spec.SessionTimeout
	}
	if spec.BackupPriority != nil {
		if *spec.BackupPriority < 0 || *spec.BackupPriority > 100 {
			return msg(35209, 16, 1, "The %s operation failed for availability replica '%s', because the backup priority value is outside the valid range.  The valid range is between %d and %d, inclusive.  Set the backup priority to a value within this range, and retry the operation.", "CREATE/ALTER", r.Server, 0, 100)
		}
		r.BackupPriority = *spec.BackupPriority
	}
	if spec.SeedingAutomatic != nil {
		r.SeedingAutomatic = *spec.SeedingAutomatic
		r.SeedGeneration++
	}
	set(&r.Availability, spec.Availability)
	set(&r.SecondaryConnections, spec.SecondaryConnections)
	set(&r.PrimaryConnections, spec.PrimaryConnections)
	set(&r.ReadOnlyRoutingURL, spec.ReadOnlyRoutingURL)
	set(&r.ReadWriteRoutingURL, spec.ReadWriteRoutingURL)
	if spec.ReadOnlyRoutingList != nil {
		r.ReadOnlyRoutingList = spec.ReadOnlyRoutingList
		for _, set := range spec.ReadOnlyRoutingList {
			for _, n := range set {
				if cfg.replicaOn(n) == nil && !equalName(n, r.Server) {
					return msg(19403, 16, 0, "The availability replica '%s' specified in the read-only routing list for availability replica '%s' does not exist. Only availability replicas that belong to the specified availability group '%s' can be added to this list.", n, r.Server, name)
				}
			}
		}
	}
	r.Modified = in.wall()
	return nil
}

// joinable finds a database that may become an availability database (FG 4.10).
func (in *Instance) joinable(s *session, name string) (*database, error) {
	d := in.databaseByName(name)
	if d == nil {
		return nil, msg(35238, 16, 1, "Database '%s' does not exist on this server instance. Make sure that the name is entered correctly.", name)
	}
	no := func(number int32, why string) (*database, error) {
		return nil, Errors{msg(number, 16, 1, "Database \"%s\" %s", name, why)}
	}
	switch {
	case d.isSystem():
		return nil, msg(35249, 16, 1, "An attempt to add or join a system database, '%s', to an availability group failed. Specify only user databases for this operation.", name)
	case !in.mayAlter(s, d):
		return nil, msg(15247, 16, 1, "User does not have permission to perform this action.")
	case d.member != nil || !d.state.Group.IsZero() && d.state.Joined:
		return nil, msg(35244, 16, 1, "Database '%s' cannot be added to availability group. The database is currently joined to an availability group.", name)
	case in.status(d) != dbOnline:
		return no(1467, "cannot be added to an availability group: it is not online.")
	case d.state.Recovery != RecoveryFull:
		return no(1465, "database is not in full recovery mode on each of the server instances. The full recovery model is required for a database to participate in database mirroring or in an availability group.")
	case d.state.ReadOnly:
		return no(1466, "database is read-only on one of the server instances which is incompatible with participating in database mirroring or in an availability group.")
	case d.state.AutoClose:
		return no(1469, "database is in auto close mode on one of the server instances which is incompatible with participating in database mirroring or in an availability group.")
	case d.state.UserAccess != 0:
		return no(1488, "database is in single user mode which is incompatible with participating in database mirroring or in an availability group.")
	case d.state.FullBackup == 0:
		return no(1475, "might contain bulk logged changes that have not been backed up. Take a log backup on the principal database or primary database. Then restore this backup either on the mirror database to enable database mirroring or on every secondary database to enable you to join it to the availability group.")
	}
	return d, nil
}

// enlist adds databases to the configuration and proposes it.
func (g *group) enlist(dbs []*database, w *wait) {
	in := g.in
	var add []GroupDatabase
	for _, d := range dbs {
		gd := GroupDatabase{ID: in.rnd.guid(), Name: d.state.Name}
		add = append(add, gd)
		in.setState(d, func(st *DatabaseState) { st.Group, st.GroupDB, st.Joined = g.id(), gd.ID, true })
	}
	g.propose(func(c *Configuration) {
		c.Databases = append(c.Databases, add...)
		r := c.replica(g.st.Replica)
		for _, d := range add {
			r.JoinedDBs = append(r.JoinedDBs, d.ID)
			r.mark(d.ID, true)
		}
	}, w)
	for _, d := range dbs {
		in.log(1480, "Server", "The availability group database \"%s\" is changing roles from \"%s\" to \"%s\" because the mirroring session or availability group failed over due to role synchronization. This is an informational message only. No user action is required.", d.state.Name, "RESOLVING", "PRIMARY")
	}
	g.judge()
}

// onPrimary finds a group for a statement that only its primary takes: 41140, 41190.
func (in *Instance) onPrimary(id SessionID, name string) (*group, error) {
	g, err := in.alterable(id, name)
	if err != nil {
		return nil, err
	}
	if g.role != RolePrimary {
		return nil, msg(41140, 16, 0, "Availability group '%s' cannot process the ALTER AVAILABILITY GROUP command, because the local availability replica is not the primary replica.  Connect to the server instance that is currently hosting the primary replica of this availability group, and rerun the command.", name)
	}
	if g.superseded {
		return nil, msg(41190, 16, 1, "Availability group '%s' failed to process the command.  The local availability replica is not in a state that could process the command.", name)
	}
	return g, nil
}

// commit proposes a change and waits for its quorum. Cancelling the statement leaves the proposal.
func (g *group) commit(id SessionID, change func(*Configuration)) (WaitID, error) {
	w := g.in.newWait(g.in.session(id), "HADR_AG_MUTEX", nil)
	g.propose(change, w)
	g.judge()
	if w.done {
		return 0, g.in.withdraw(w)
	}
	return w.id, nil
}

// SetGroupOptions is ALTER AVAILABILITY GROUP … SET of anything but ROLE and WRITE_LEASE_VALIDITY.
func (in *Instance) SetGroupOptions(now time.Time, id SessionID, name string, o GroupOptions) (WaitID, error) {
	in.begin(now)
	g, err := in.onPrimary(id, name)
	if err != nil {
		return 0, err
	}
	cfg := g.st.Config.clone()
	if err := in.applyOptions(cfg, o); err != nil {
		return 0, err
	}
	if o.RequiredSecondaries != nil {
		if err := in.checkRequired(cfg, *o.RequiredSecondaries); err != nil {
			return 0, err
		}
	}
	return g.commit(id, func(c *Configuration) {
		lease := c.WriteLease
		_ = in.applyOptions(c, o) // checked above
		c.WriteLease = lease
	})
}

// AddDatabase is ADD DATABASE (FG 4.10).
func (in *Instance) AddDatabase(now time.Time, id SessionID, name string, databases []string) (WaitID, error) {
	in.begin(now)
	g, err := in.onPrimary(id, name)
	if err != nil {
		return 0, err
	}
	s := in.session(id)
	var dbs []*database
	for _, n := range databases {
		d, err := in.joinable(s, n)
		if err != nil {
			return 0, err
		}
		dbs = append(dbs, d)
	}
	if g.st.Config.Basic && len(g.members)+len(dbs) > 1 {
		return 0, msg(35200, 16, 1, "Basic availability group '%s' cannot contain more than one database.", name)
	}
	w := in.newWait(s, "HADR_AG_MUTEX", nil)
	g.enlist(dbs, w)
	if w.done {
		return 0, in.withdraw(w)
	}
	return w.id, nil
}

// RemoveDatabase is REMOVE DATABASE: 35281 unknown. The primary's copy stays online.
func (in *Instance) RemoveDatabase(now time.Time, id SessionID, name string, databases []string) (WaitID, error) {
	in.begin(now)
	g, err := in.onPrimary(id, name)
	if err != nil {
		return 0, err
	}
	var ids []GUID
	for _, n := range databases {
		i := slices.IndexFunc(g.st.Config.Databases, func(d GroupDatabase) bool { return equalName(d.Name, n) })
		if i < 0 {
			return 0, msg(35281, 16, 1, "Database '%s' cannot be removed from availability group '%s'.  The database is not joined to the specified availability group.  Verify that the database name and the availability group name are correct, then retry the operation.", n, name)
		}
		ids = append(ids, g.st.Config.Databases[i].ID)
	}
	return g.commit(id, func(c *Configuration) {
		c.Databases = slices.DeleteFunc(c.Databases, func(d GroupDatabase) bool { return slices.Contains(ids, d.ID) })
		for i := range c.Replicas {
			gone := func(x GUID) bool { return slices.Contains(ids, x) }
			c.Replicas[i].JoinedDBs = slices.DeleteFunc(c.Replicas[i].JoinedDBs, gone)
			c.Replicas[i].SyncDBs = slices.DeleteFunc(c.Replicas[i].SyncDBs, gone)
		}
	})
}

// AddReplica is ADD REPLICA: 35282 exists, 35223 too many.
func (in *Instance) AddReplica(now time.Time, id SessionID, name string, specs []ReplicaSpec) (WaitID, error) {
	in.begin(now)
	g, err := in.onPrimary(id, name)
	if err != nil {
		return 0, err
	}
	cfg := g.st.Config.clone()
	for _, r := range specs {
		if cfg.replicaOn(r.Server) != nil {
			return 0, msg(35282, 16, 1, "Availability replica '%s' cannot be added to availability group '%s'.  The availability group already contains an availability replica with the specified name.  Verify that the availability replica name and the availability group name are correct, then retry the operation.", r.Server, name)
		}
		if err := in.addReplica(cfg, r); err != nil {
			return 0, err
		}
	}
	if err := in.checkLimits(cfg); err != nil {
		return 0, err
	}
	added := cfg.Replicas[len(g.st.Config.Replicas):]
	w, err := g.commit(id, func(c *Configuration) { c.Replicas = append(c.Replicas, added...) })
	g.connect()
	return w, err
}

// ModifyReplica is MODIFY REPLICA with the options that r gives: 35210 unknown.
func (in *Instance) ModifyReplica(now time.Time, id SessionID, name string, spec ReplicaSpec) (WaitID, error) {
	in.begin(now)
	g, err := in.onPrimary(id, name)
	if err != nil {
		return 0, err
	}
	cfg := g.st.Config.clone()
	r := cfg.replicaOn(spec.Server)
	if r == nil {
		return 0, msg(35210, 16, 1, "Failed to modify options for availability replica '%s' in availability group '%s'.  The specified availability group does not contain an availability replica with specified name.  Verify that availability group name and availability replica name are correct, then retry the operation.", spec.Server, name)
	}
	only := r.Availability == ConfigurationOnly
	if only && (spec.Failover != nil || spec.SeedingAutomatic != nil || spec.BackupPriority != nil || spec.SecondaryConnections != nil || spec.PrimaryConnections != nil ||
		spec.ReadOnlyRoutingURL != nil || spec.ReadWriteRoutingURL != nil || spec.ReadOnlyRoutingList != nil) {
		return 0, configurationOnlyOptions(name, r.Server)
	}
	if spec.Availability != nil && (only != (*spec.Availability == ConfigurationOnly)) {
		return 0, configurationOnlyOptions(name, r.Server)
	}
	if err := in.changeReplica(cfg, r, spec); err != nil {
		return 0, err
	}
	if err := in.checkLimits(cfg); err != nil {
		return 0, err
	}
	if spec.Availability != nil && *spec.Availability == AsynchronousCommit {
		if err := in.checkRequired(cfg, cfg.Required); err != nil {
			return 0, err
		}
		r.SyncDBs = nil
		if r.ID == g.st.Replica {
			r.SyncDBs = slices.Clone(g.st.Config.replica(r.ID).SyncDBs)
		}
	}
	url := g.st.Config.replica(r.ID).EndpointURL
	n := *r
	w, err := g.commit(id, func(c *Configuration) {
		to := c.replica(n.ID)
		if spec.Availability == nil || *spec.Availability != AsynchronousCommit {
			n.SyncDBs = to.SyncDBs
		}
		n.JoinedDBs, n.Joined, n.Voter = to.JoinedDBs, to.Joined, to.Voter
		*to = n
	})
	if n.EndpointURL != url {
		if p := g.peer(n.ID); p != nil && p.link != nil {
			in.closeLink(p.link, 10054, "the endpoint URL was changed")
		}
	}
	for _, m := range g.members {
		m.catchUp()
		m.acknowledge()
	}
	return w, err
}

// RemoveReplica is REMOVE REPLICA: 35283 unknown, 35284 local.
func (in *Instance) RemoveReplica(now time.Time, id SessionID, name string, servers []string) (WaitID, error) {
	in.begin(now)
	g, err := in.onPrimary(id, name)
	if err != nil {
		return 0, err
	}
	cfg := g.st.Config.clone()
	var ids []GUID
	for _, n := range servers {
		r := cfg.replicaOn(n)
		switch {
		case r == nil:
			return 0, msg(35283, 16, 1, "Availability replica '%s' cannot be removed from availability group '%s'. The availability group does not contain an availability replica with the specified name. Verify the availability replica and availability group names are correct, then retry the operation.", n, name)
		case r.ID == g.st.Replica:
			return 0, msg(35284, 16, 1, "Availability replica '%s' cannot be removed from availability group '%s', because this replica is on the local instance of SQL Server.  If the local availability replica is a secondary replica, connect to the server instance that is currently hosting the primary replica, and re-run the command.", n, name)
		}
		ids = append(ids, r.ID)
	}
	cfg.Replicas = slices.DeleteFunc(cfg.Replicas, func(r Replica) bool { return slices.Contains(ids, r.ID) })
	if err := in.checkRequired(cfg, cfg.Required); err != nil {
		return 0, err
	}
	var gone []*link
	for _, p := range g.peers {
		if slices.Contains(ids, p.id) && p.attached && p.link != nil {
			gone = append(gone, p.link)
		}
	}
	w, err := g.commit(id, func(c *Configuration) {
		c.Replicas = slices.DeleteFunc(c.Replicas, func(r Replica) bool { return slices.Contains(ids, r.ID) })
	})
	for _, l := range gone {
		in.send(l, Configure{Config: g.st.Config, Committed: g.committed.Sequence})
	}
	return w, err
}

// AlterListener is ADD, MODIFY, RESTART and REMOVE LISTENER.
func (in *Instance) AlterListener(now time.Time, id SessionID, name string, verb ListenerVerb, l ListenerSpec) (WaitID, error) {
	in.begin(now)
	g, err := in.onPrimary(id, name)
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(g.st.Config.Listeners, func(x Listener) bool { return equalName(x.DNSName, l.DNSName) })
	if verb != ListenerAdd && i < 0 {
		return 0, cannotFind("availability group listener", l.DNSName)
	}
	if verb == ListenerAdd && i >= 0 {
		return 0, msg(15233, 16, 1, "Property cannot be added. Property '%s' already exists for '%s'.", l.DNSName, name)
	}
	if verb == ListenerRestart {
		return 0, nil
	}
	n := listenersOf(&l)[0]
	n.ID = in.rnd.guid()
	return g.commit(id, func(c *Configuration) {
		switch verb {
		case ListenerAdd:
			c.Listeners = append(c.Listeners, n)
		case ListenerModify:
			if l.Port != 0 {
				c.Listeners[i].Port = l.Port
			}
			c.Listeners[i].Addresses = append(slices.Clone(c.Listeners[i].Addresses), l.Addresses...)
		case ListenerRemove:
			c.Listeners = slices.Delete(c.Listeners, i, i+1)
		}
	})
}

// DropAvailabilityGroup removes the local metadata of a group (FG 1.7).
func (in *Instance) DropAvailabilityGroup(now time.Time, id SessionID, name string) (WaitID, error) {
	in.begin(now)
	s := in.session(id)
	if err := in.groupStatement(s); err != nil {
		return 0, err
	}
	g := in.groupByName(name)
	if g == nil || !in.mayAlterGroup(s, g.id()) {
		return 0, msg(15151, 16, 1, "Cannot drop the availability group '%s', because it does not exist or you do not have permission.", name)
	}
	if g.role == RolePrimary {
		for _, m := range g.members {
			if m.db != nil {
				// The databases stay online here; what waits for the group no longer does.
				pending := m.db.commits
				m.db.commits = nil
				for _, c := range pending {
					in.settle(m.db, c)
				}
			}
		}
		for _, p := range g.peers {
			if p.attached && p.link != nil {
				in.send(p.link, Detach{Group: g.id()})
			}
			p.attached = false
		}
		for _, p := range g.proposals {
			for _, w := range p.waits {
				in.complete(w, msg(41190, 16, 1, "Availability group '%s' failed to process the command.  The local availability replica is not in a state that could process the command.", name))
			}
		}
	} else {
		g.cutOff()
	}
	g.stopRole()
	g.remove()
	return 0, nil
}

// GrantCreateAnyDatabase is GRANT or DENY CREATE ANY DATABASE (FG 1.6): 47111 on a
// configuration-only replica.
func (in *Instance) GrantCreateAnyDatabase(now time.Time, id SessionID, name string, grant bool) error {
	in.begin(now)
	g, err := in.alterable(id, name)
	if err != nil {
		return err
	}
	s := in.session(id)
	if !in.can(s, "CREATE ANY DATABASE") {
		return msg(15247, 16, 1, "User does not have permission to perform this action.")
	}
	if g.local().Availability == ConfigurationOnly {
		return msg(47111, 16, 1, "Configuration-only replicas of availability group '%s' cannot be granted the permission to create databases.", name)
	}
	g.put(func(st *GroupState) { st.CreateAny, st.Grantor = grant, s.login })
	for _, m := range g.members {
		m.granted = false
	}
	if grant {
		g.seekCopies()
	}
	return nil
}
