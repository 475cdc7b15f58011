package engine

import (
	"fmt"
	"slices"
	"time"
)

// Instance is one running SQL Server process.
type Instance struct {
	cfg      Config
	now      time.Time
	started  time.Time
	rnd      random
	effects  []Effect
	timers   timerHeap
	timerSeq uint64
	exited   bool

	srv      *ServerState
	dbs      []*database // by id
	groups   []*group    // in order of creation
	backups  []BackupSetRow
	sessions []*session // by id
	nobody   *session   // stands for an unknown session: has no right
	waits    map[WaitID]*wait
	nextWait WaitID

	links    []*link // in order of creation
	nextLink LinkID
	joins    []*join
	errorLog []ErrorLogRow
	oldLogs  [][]ErrorLogRow
	faults   faults
	seeding  []*AutomaticSeedingRow

	// scratch holds the rows that the views which are read most gave last.
	scratch struct {
		replicas []ReplicaStateRow
		copies   []DatabaseReplicaStateRow
		members  []DatabaseClusterStateRow
	}

	// rights are answers of can, as of rightsOf.
	rights   map[right]bool
	rightsOf *ServerState
}

const editionExpress = "Express Edition (64-bit)"

// withDefaults fills the fields that were left empty.
func (c Config) withDefaults() Config {
	def := func(s *string, v string) {
		if *s == "" {
			*s = v
		}
	}
	def(&c.MachineName, c.ServerName)
	if c.Major == 0 {
		c.Major = 16
	}
	def(&c.Version, map[int]string{14: "14.0.3456.2", 15: "15.0.4375.4", 16: "16.0.4165.4", 17: "17.0.1000.7"}[c.Major])
	def(&c.Edition, "Developer Edition (64-bit)")
	def(&c.Collation, "SQL_Latin1_General_CP1_CI_AS")
	def(&c.DataPath, "/var/opt/mssql/data")
	def(&c.LogPath, "/var/opt/mssql/data")
	def(&c.BackupPath, "/var/opt/mssql/data")
	def(&c.HostDistribution, "Ubuntu")
	def(&c.HostRelease, "22.04")
	if c.CPUCount == 0 {
		c.CPUCount = 2
	}
	if c.MemoryKB == 0 {
		c.MemoryKB = 4 << 20
	}
	if c.TCPPort == 0 {
		c.TCPPort = 1433
	}
	if c.Keys == nil {
		c.Keys = SeededKeys{}
	}
	d := DefaultTimings()
	for _, f := range []struct{ v, def *time.Duration }{
		{&c.Timings.PromotionMin, &d.PromotionMin}, {&c.Timings.PromotionMax, &d.PromotionMax}, {&c.Timings.Recovery, &d.Recovery},
		{&c.Timings.RoleChange, &d.RoleChange}, {&c.Timings.Redial, &d.Redial}, {&c.Timings.AttachWait, &d.AttachWait},
		{&c.Timings.JoinWait, &d.JoinWait}, {&c.Timings.SeedStep, &d.SeedStep},
	} {
		if *f.v == 0 {
			*f.v = *f.def
		}
	}
	return c
}

// Open starts an instance on a volume. It takes over what the disk holds; the host goes on applying
// records to the same disk. An empty disk is initialised first.
func Open(cfg Config, disk *Disk, now time.Time) *Instance {
	cfg = cfg.withDefaults()
	in := &Instance{cfg: cfg, now: now, waits: map[WaitID]*wait{}, nextLink: 1}
	in.nobody = &session{dead: true, db: MasterID, principal: &Principal{}}
	if disk.IsEmpty() {
		in.rnd.s = mix(cfg.Seed, hashName(cfg.ServerName))
		in.started = in.wall()
		in.initialise()
	} else {
		in.srv = disk.Server
		in.rnd.s = mix(in.srv.Seed, uint64(in.srv.Starts))
		in.started = in.wall()
		in.changeServer(func(st *ServerState) {
			st.Starts++
			if st.PendingName != "" {
				st.ServerName, st.PendingName = st.PendingName, ""
			}
		})
		in.load(disk)
	}
	in.log(0, "Server", "Microsoft SQL Server (%s) - %s, %s on Linux (%s %s)", productYear(cfg.Major), cfg.Version, cfg.Edition, cfg.HostDistribution, cfg.HostRelease)
	in.log(0, "Server", "Server process ID is %d.", cfg.ProcessID)
	for _, d := range in.dbs {
		if d.member != nil {
			in.log(35262, "Server", "Skipping the default startup of database '%s' because the database belongs to an availability group (Group ID: %s). The database will be started by the availability group. This is an informational message only. No user action is required.", d.state.Name, d.state.Group)
			continue
		}
		in.log(0, "Server", "Starting up database '%s'.", d.state.Name)
	}
	in.listen()
	for _, g := range in.groups {
		g.start()
	}
	in.log(0, "Server", "SQL Server is now ready for client connections. This is an informational message; no user action is required.")
	return in
}

func productYear(major int) string {
	return map[int]string{14: "2017", 15: "2019", 16: "2022", 17: "2025"}[major]
}

// initialise makes the system databases and the fixed principals.
func (in *Instance) initialise() {
	st := &ServerState{ServerName: in.cfg.ServerName, Seed: in.rnd.next(), Starts: 1, NextDatabase: MSDBID + 1, NextPrincipal: 300, NextCert: 256, NextBackup: 1}
	sa := &Principal{PrincipalRow: PrincipalRow{ID: 1, Name: "sa", SID: []byte{1}, Type: "S", TypeDesc: "SQL_LOGIN", CreateDate: in.started, ModifyDate: in.started,
		DefaultDatabase: "master", PolicyChecked: true}}
	sa.Salt = in.rnd.bytes(16)
	sa.Hash = hashPassword(sa.Salt, in.cfg.SAPassword)
	st.Principals = append(st.Principals, sa)
	public := PrincipalRow{ID: publicRole, Name: "public", SID: []byte{2}, Type: "R", TypeDesc: "SERVER_ROLE", CreateDate: in.started, ModifyDate: in.started, OwnerID: 1}
	st.Principals = append(st.Principals, &Principal{PrincipalRow: public})
	for i, r := range serverRoles() {
		row := public
		row.ID, row.Name, row.SID, row.IsFixedRole = sysadminRole+PrincipalID(i), r.name, []byte{3, byte(i)}, true
		st.Principals = append(st.Principals, &Principal{PrincipalRow: row})
	}
	st.Permissions = []*Permission{{Class: ClassServer, Name: "CONNECT SQL", Grantee: 1, Grantor: 1}, {Class: ClassServer, Name: "VIEW ANY DATABASE", Grantee: publicRole, Grantor: 1}}
	in.srv = st
	in.persist(PutServer{State: st})
	for i, n := range []string{"master", "tempdb", "model", "msdb"} {
		d := &DatabaseState{ID: DatabaseID(i + 1), Name: n, GUID: in.rnd.guid(), Owner: sa.SID, Created: in.started, Recovery: RecoverySimple,
			Collation: in.cfg.Collation, Compatibility: in.cfg.Major * 10, DataName: n, LogName: n + "log",
			DataPath: in.cfg.DataPath + "/" + n + ".mdf", LogPath: in.cfg.LogPath + "/" + n + "log.ldf"}
		d.Family = d.GUID
		if n == "model" {
			d.Recovery = RecoveryFull
		}
		c := newContent(sa.SID, in.started)
		c.forks = []Fork{{ID: in.rnd.guid(), Start: firstLSN, Forced: true}}
		in.install(d, c.image(firstLSN))
	}
}

// load reads the databases and groups of a volume.
func (in *Instance) load(disk *Disk) {
	in.backups = slices.Clone(disk.Backups)
	for _, dd := range disk.Databases {
		if dd.Image == nil {
			continue
		}
		d := &database{state: dd.State, image: dd.Image, log: slices.Clone(dd.Log), content: contentOf(dd.Image), applied: dd.Image.LSN}
		d.recount()
		d.redo(d.end)
		in.dbs = append(in.dbs, d)
	}
	for _, gs := range disk.Groups {
		in.groups = append(in.groups, in.newGroup(gs))
	}
	if t := in.database(TempDBID); t != nil { // tempdb starts empty
		c := newContent(t.state.Owner, in.started)
		c.forks = t.image.Forks
		t.image, t.log = c.image(t.end), nil
		t.content = contentOf(t.image)
		t.applied = t.image.LSN
		t.recount()
		in.persist(PutImage{DB: TempDBID, Image: t.image, Reset: true})
	}
}

// TakeEffects returns the effects since the last call, in order.
func (in *Instance) TakeEffects() []Effect {
	e := in.effects
	in.effects = nil
	return e
}

func (in *Instance) emit(e Effect) {
	if in.effects == nil {
		in.effects = make([]Effect, 0, 8)
	}
	in.effects = append(in.effects, e)
}

// wall is the server's own idea of the time.
func (in *Instance) wall() time.Time { return in.now.UTC().Add(in.faults.clockOffset) }

// WallClock is the server's own idea of the time (SYSUTCDATETIME), which a fault may move away
// from the host's.
func (in *Instance) WallClock(now time.Time) time.Time { return now.UTC().Add(in.faults.clockOffset) }

// ServerName is @@SERVERNAME.
func (in *Instance) ServerName() string { return in.srv.ServerName }

// Exited tells whether the process has ended.
func (in *Instance) Exited() bool { return in.exited }

const errorLogLines = 20000

// log writes a line of the error log; number 0 is free text.
func (in *Instance) log(number int32, process, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(in.errorLog) >= errorLogLines {
		in.errorLog = slices.Clone(in.errorLog[errorLogLines/2:])
	}
	t := in.wall()
	in.errorLog = append(in.errorLog, ErrorLogRow{Date: t, Process: process, Text: text})
	in.emit(LogLine{Time: t, Process: process, Number: number, Text: text})
}

// logError writes an error as the product does: a header line and the text.
func (in *Instance) logError(process string, e *Error) {
	in.log(0, process, "Error: %d, Severity: %d, State: %d.", e.Number, e.Class, e.State)
	in.log(e.Number, process, "%s", e.Message)
}
