package engine

import (
	"slices"
	"strings"
	"time"
)

// database is one database of the running instance.
type database struct {
	state *DatabaseState
	// content is what committed (acknowledged) transactions made of it; nil while there is no
	// usable copy.
	content *content
	// log and image are what the disk holds: content at recovery is image plus all of log.
	image       *Image
	log         logTail
	end         LSN // last record in the log
	endTime     time.Time
	next        LSN // number of the next record
	applied     LSN // last record in content
	appliedTime time.Time
	// recovering is set while the database is not yet usable after a role change or restart.
	recovering bool
	// suspect and pending are faults: SUSPECT and RECOVERY_PENDING.
	suspect, pending bool
	// offlined: the replica left its role by OFFLINE or a lost lease, not by a restart (FG 11 no. 20).
	offlined bool
	// commits waits for acknowledgement, in LSN order (group members only).
	commits []*pendingCommit
	// member is the group database this copy belongs to, nil outside.
	member *member
	locks  lockTable
}

// pendingCommit is a record in the log that the group has not yet acknowledged.
type pendingCommit struct {
	record   *LogRecord
	wait     *wait
	txn      *transaction
	since    time.Time
	ready    time.Time // written by a slow disk
	required int       // commit quorum at the time of the commit (Readings.RaiseSparesWaiting)
}

func (in *Instance) database(id DatabaseID) *database {
	i, ok := slices.BinarySearchFunc(in.dbs, id, func(d *database, id DatabaseID) int { return int(d.state.ID - id) })
	if !ok {
		return nil
	}
	return in.dbs[i]
}

func (in *Instance) databaseByName(name string) *database {
	for _, d := range in.dbs {
		if equalName(d.state.Name, name) {
			return d
		}
	}
	return nil
}

// LookupDatabase finds a database by name, whatever its state.
func (in *Instance) LookupDatabase(name string) (DatabaseID, bool) {
	if d := in.databaseByName(name); d != nil {
		return d.state.ID, true
	}
	return 0, false
}

// setState replaces the metadata of a database, durably.
func (in *Instance) setState(d *database, change func(*DatabaseState)) {
	n := *d.state
	change(&n)
	d.state = &n
	in.persist(PutDatabase{State: d.state})
}

func (d *database) isSystem() bool { return d.state.ID <= MSDBID }

// database states as sys.databases.state
const (
	dbOnline          = 0
	dbRestoring       = 1
	dbRecovering      = 2
	dbRecoveryPending = 3
	dbSuspect         = 4
	dbEmergency       = 5
	dbOffline         = 6
)

var databaseStateNames = [...]string{"ONLINE", "RESTORING", "RECOVERING", "RECOVERY_PENDING", "SUSPECT", "EMERGENCY", "OFFLINE"}

// status is the state that sys.databases shows.
func (in *Instance) status(d *database) uint8 {
	switch {
	case d.suspect:
		return dbSuspect
	case d.pending:
		return dbRecoveryPending
	case d.state.Offline:
		return dbOffline
	case d.state.Emergency:
		return dbEmergency
	}
	if m := d.member; m != nil {
		return m.databaseState()
	}
	switch {
	case d.state.Restoring:
		return dbRestoring
	case d.recovering:
		return dbRecovering
	}
	return dbOnline
}

// appendRecord puts a record at the end of the log, durably. It is not yet applied.
func (in *Instance) appendRecord(d *database, changes []Change) *LogRecord {
	r := &LogRecord{LSN: d.next, Time: in.wall(), Bytes: changeBytes(changes), Changes: changes}
	in.harden(d, r)
	return r
}

// harden writes records that follow the end of the log.
func (in *Instance) harden(d *database, rs ...*LogRecord) {
	d.log = append(d.log, rs...)
	last := rs[len(rs)-1]
	d.end, d.endTime = last.LSN, last.Time
	d.next = nextLSN(last.LSN, last.Bytes)
	in.persist(AppendLog{DB: d.state.ID, Records: rs})
}

// redo applies the log up to and including l.
func (d *database) redo(l LSN) {
	if l <= d.applied {
		return
	}
	for _, r := range d.log[d.log.after(d.applied):d.log.after(l)] {
		d.content.apply(r)
		d.applied, d.appliedTime = r.LSN, r.Time
	}
}

// revert drops the log after l and rebuilds the content. It fails when the image is later.
func (in *Instance) revert(d *database, l LSN) bool {
	if l < d.image.LSN {
		return false
	}
	cut := d.log.after(l)
	if cut < len(d.log) {
		d.log = d.log[:cut:cut]
		in.persist(CutLog{DB: d.state.ID, After: l})
	}
	d.recount()
	if d.applied > d.end {
		d.rebuild()
	}
	return true
}

// recount derives end and next from image and log.
func (d *database) recount() {
	d.end, d.next = d.image.LSN, d.image.LSN
	d.next = nextLSN(d.end, 1)
	if n := len(d.log); n > 0 {
		r := d.log[n-1]
		d.end, d.endTime = r.LSN, r.Time
		d.next = nextLSN(r.LSN, r.Bytes)
	}
}

// rebuild makes the content from image and log.
func (d *database) rebuild() {
	d.content = contentOf(d.image)
	d.applied = d.image.LSN
	d.redo(d.end)
}

// forks lists the branches of the whole log, applied or not.
func (d *database) forks() []Fork {
	f := d.content.forks
	for _, r := range d.log[d.log.after(d.applied):] {
		for i := range r.Changes {
			if r.Changes[i].Op == OpFork {
				f = append(f[:len(f):len(f)], *r.Changes[i].Fork)
			}
		}
	}
	return f
}

// recoveryFork is the newest branch that a forced failover or the creation began.
func (d *database) recoveryFork() (current, first GUID) {
	if d.content == nil {
		return
	}
	forks := d.forks()
	for _, f := range forks {
		if f.Forced {
			current = f.ID
		}
	}
	if len(forks) > 0 {
		first = forks[0].ID
	}
	return current, first
}

// checkpointRecords bounds the log that a database outside a group keeps.
const checkpointRecords = 4096

// keptRecords bounds the log that waits for a log backup which never comes. The product would fill
// the disk; the simulated one would fill the memory of the tests.
const keptRecords = 1 << 18

// checkpoint replaces image and log by the present content where nobody needs the log.
func (in *Instance) checkpoint(d *database, force bool) {
	if d.content == nil || d.member != nil || d.state.Restoring || d.applied != d.end || len(d.log) == 0 {
		return
	}
	if d.state.Recovery != RecoverySimple && d.state.FullBackup != 0 && len(d.log) < keptRecords {
		return // a log backup will want it
	}
	if !force && len(d.log) < checkpointRecords {
		return
	}
	d.image = d.content.image(d.applied)
	d.log = nil
	in.persist(PutImage{DB: d.state.ID, Image: d.image})
}

// newContent is the content of model: schema dbo and the fixed principals.
func newContent(owner []byte, now time.Time) *content {
	c := &content{nextObject: 901578250, nextPrincipal: 5}
	for i, n := range []string{"public", "dbo", "guest", "INFORMATION_SCHEMA", "sys"} {
		typ, desc := "S", "SQL_USER"
		if i == 0 {
			typ, desc = "R", "DATABASE_ROLE"
		}
		p := &Principal{PrincipalRow: PrincipalRow{ID: PrincipalID(i), Name: n, Type: typ, TypeDesc: desc,
			CreateDate: now, ModifyDate: now, OwnerID: 1}}
		if n == "dbo" {
			p.SID, p.DefaultSchema = owner, "dbo"
		}
		c.principals = append(c.principals, p)
	}
	for i, n := range []string{"db_owner", "db_accessadmin", "db_securityadmin", "db_ddladmin", "", "db_backupoperator",
		"db_datareader", "db_datawriter", "db_denydatareader", "db_denydatawriter"} {
		if n == "" {
			continue
		}
		c.principals = append(c.principals, &Principal{PrincipalRow: PrincipalRow{ID: PrincipalID(16384 + i), Name: n, Type: "R",
			TypeDesc: "DATABASE_ROLE", IsFixedRole: true, CreateDate: now, ModifyDate: now, OwnerID: 1}})
	}
	c.members = []RoleMemberRow{{RoleID: 16384, MemberID: 1}}
	return c
}

// install puts a database into the instance with an image, durably.
func (in *Instance) install(st *DatabaseState, im *Image) *database {
	d := &database{state: st, image: im, content: contentOf(im), applied: im.LSN}
	d.recount()
	d.appliedTime, d.endTime = in.wall(), in.wall()
	i, _ := slices.BinarySearchFunc(in.dbs, st.ID, func(d *database, id DatabaseID) int { return int(d.state.ID - id) })
	in.dbs = slices.Insert(in.dbs, i, d)
	in.persist(PutDatabase{State: st}, PutImage{DB: st.ID, Image: im, Reset: true})
	return d
}

// uninstall removes a database with its files.
func (in *Instance) uninstall(d *database) {
	in.dbs = slices.DeleteFunc(in.dbs, func(x *database) bool { return x == d })
	in.persist(RemoveDatabaseRecord{ID: d.state.ID})
}

func (in *Instance) newDatabaseState(name string) *DatabaseState {
	id := in.srv.NextDatabase
	in.changeServer(func(s *ServerState) { s.NextDatabase++ })
	return &DatabaseState{ID: id, Name: name, GUID: in.rnd.guid(), Created: in.wall(), Recovery: RecoveryFull,
		Collation: in.cfg.Collation, Compatibility: in.cfg.Major * 10,
		DataName: name, LogName: name + "_log",
		DataPath: in.cfg.DataPath + "/" + name + ".mdf", LogPath: in.cfg.LogPath + "/" + name + "_log.ldf"}
}

// CreateDatabase is CREATE DATABASE: 1801, 262.
func (in *Instance) CreateDatabase(now time.Time, s SessionID, c CreateDatabaseSpec) (WaitID, error) {
	in.begin(now)
	ss := in.session(s)
	if !in.can(ss, "CREATE ANY DATABASE") {
		return 0, msg(262, 14, 1, "CREATE DATABASE permission denied in database 'master'.")
	}
	if c.Name == "" || len(c.Name) > 128 || strings.ContainsRune(c.Name, 0) {
		return 0, msg(1038, 15, 4, "An object or column name is missing or empty.")
	}
	if in.databaseByName(c.Name) != nil {
		return 0, msg(1801, 16, 3, "Database '%s' already exists. Choose a different database name.", c.Name)
	}
	st := in.newDatabaseState(c.Name)
	st.Family, st.Owner = st.GUID, ss.sid()
	for _, f := range []struct {
		to *string
		v  string
	}{{&st.Collation, c.Collation}, {&st.DataName, c.DataName}, {&st.DataPath, c.DataPath}, {&st.LogName, c.LogName}, {&st.LogPath, c.LogPath}} {
		if f.v != "" {
			*f.to = f.v
		}
	}
	if in.cfg.Edition == editionExpress {
		st.Recovery = RecoverySimple
	}
	ct := newContent(st.Owner, in.wall())
	ct.forks = []Fork{{ID: in.rnd.guid(), Start: firstLSN, Forced: true}}
	in.install(st, ct.image(firstLSN))
	in.log(0, ss.process(), "Starting up database '%s'.", c.Name)
	return 0, nil
}

// DropDatabase is DROP DATABASE: 3701, 3702 (in use), 3708 (system), 3752 (in an AG).
func (in *Instance) DropDatabase(now time.Time, s SessionID, name string) (WaitID, error) {
	in.begin(now)
	ss := in.session(s)
	d := in.databaseByName(name)
	switch {
	case d == nil || !in.mayAlter(ss, d):
		return 0, msg(3701, 11, 1, "Cannot drop the database '%s', because it does not exist or you do not have permission.", name)
	case d.isSystem():
		return 0, msg(3708, 16, 1, "Cannot drop the database '%s' because it is a system database.", name)
	case d.member != nil && d.state.Joined:
		return 0, msg(3752, 16, 1, "The database '%s' is currently joined to an availability group.  Before you can drop the database, you need to remove it from the availability group.", name)
	}
	for _, o := range in.sessions {
		if o.db == d.state.ID && !o.dead {
			return 0, msg(3702, 16, 3, "Cannot drop database \"%s\" because it is currently in use.", name)
		}
	}
	if d.member != nil {
		d.member.detach()
	}
	in.uninstall(d)
	return 0, nil
}

// AlterDatabase is ALTER DATABASE … SET: 1468 where a group forbids it.
func (in *Instance) AlterDatabase(now time.Time, s SessionID, name string, o DatabaseOptions) (WaitID, error) {
	in.begin(now)
	ss := in.session(s)
	d := in.databaseByName(name)
	if d == nil || !in.mayAlter(ss, d) {
		return 0, msg(5011, 14, 5, "User does not have permission to alter database '%s', the database does not exist, or the database is not in a state that allows access checks.", name)
	}
	failed := msg(5069, 16, 1, "ALTER DATABASE statement failed.")
	if d.isSystem() && (o.State != nil || o.ReadOnly != nil || o.UserAccess != nil) {
		return 0, Errors{msg(5058, 16, 1, "Option cannot be set in database '%s'.", name), failed}
	}
	if d.member != nil && (o.Recovery != nil && *o.Recovery != RecoveryFull || o.State != nil && *o.State != dbOnline ||
		o.ReadOnly != nil && *o.ReadOnly || o.AutoClose != nil && *o.AutoClose || o.UserAccess != nil && *o.UserAccess == 1) {
		return 0, Errors{msg(1468, 16, 1, "The operation cannot be performed on database \"%s\" because it is involved in a database mirroring session or an availability group. Some operations are not allowed on a database that is participating in a database mirroring session or in an availability group.", name), failed}
	}
	if o.RollbackImmediate || o.State != nil && *o.State == dbOffline {
		in.kill(func(x *session) bool { return x.id != s && x.uses(d) }, killedError())
	}
	in.setState(d, func(st *DatabaseState) {
		if o.Recovery != nil {
			if st.Recovery == RecoverySimple && *o.Recovery != RecoverySimple || *o.Recovery == RecoverySimple {
				st.FullBackup, st.LogBackup = 0, 0
			}
			st.Recovery = *o.Recovery
		}
		set(&st.ReadOnly, o.ReadOnly)
		set(&st.AutoClose, o.AutoClose)
		set(&st.UserAccess, o.UserAccess)
		set(&st.Snapshot, o.SnapshotIsolation)
		set(&st.Compatibility, o.Compatibility)
		if o.State != nil {
			st.Offline = *o.State == dbOffline
			st.Emergency = *o.State == dbEmergency
		}
	})
	if o.State != nil && *o.State == dbOnline {
		d.suspect, d.pending = false, false
	}
	return 0, nil
}

func set[T any](to *T, v *T) {
	if v != nil {
		*to = *v
	}
}

// Checkpoint is CHECKPOINT.
func (in *Instance) Checkpoint(now time.Time, s SessionID) error {
	in.begin(now)
	if d := in.database(in.session(s).db); d != nil {
		in.checkpoint(d, true)
	}
	return nil
}
