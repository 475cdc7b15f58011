package engine

import (
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

func copyGUID(g GUID) Opt[GUID] { return Opt[GUID]{V: g, OK: !g.IsZero()} }

// Databases is sys.databases.
func (in *Instance) Databases(now time.Time, id SessionID) []DatabaseRow {
	in.begin(now)
	s := in.session(id)
	all := in.can(s, "VIEW ANY DATABASE")
	models := [...]string{"", "FULL", "BULK_LOGGED", "SIMPLE"}
	access := [...]string{"MULTI_USER", "SINGLE_USER", "RESTRICTED_USER"}
	l := make([]DatabaseRow, 0, len(in.dbs))
	for _, d := range in.dbs {
		if !all && d.state.ID > TempDBID && !slices.Equal(d.state.Owner, s.sid()) {
			continue
		}
		st := in.status(d)
		r := DatabaseRow{DatabaseID: d.state.ID, Name: d.state.Name, OwnerSID: d.state.Owner, CreateDate: d.state.Created, State: st, StateDesc: databaseStateNames[st],
			RecoveryModel: uint8(d.state.Recovery), RecoveryModelDesc: models[d.state.Recovery], UserAccess: d.state.UserAccess, UserAccessDesc: access[d.state.UserAccess],
			IsReadOnly: d.state.ReadOnly, IsAutoClose: d.state.AutoClose, CompatibilityLevel: d.state.Compatibility, Collation: d.state.Collation,
			LogReuseWaitDesc: "NOTHING", SnapshotIsolation: d.state.Snapshot, DataPath: d.state.DataPath, LogPath: d.state.LogPath,
			DataBytes: in.dataBytes(d), LogBytes: in.logBytes(d)}
		if m := d.member; m != nil {
			r.ReplicaID, r.GroupDatabaseID = copyGUID(m.group.st.Replica), copyGUID(d.state.GroupDB)
			if m.pinned() {
				r.LogReuseWait, r.LogReuseWaitDesc = 13, "AVAILABILITY_REPLICA"
			}
		}
		if r.LogReuseWait == 0 && d.state.Recovery != RecoverySimple && len(d.log) > 0 {
			r.LogReuseWait, r.LogReuseWaitDesc = 2, "LOG_BACKUP"
		}
		l = append(l, r)
	}
	return l
}

func (in *Instance) dataBytes(d *database) int64 {
	if d.content == nil {
		return 8 << 20
	}
	return 8<<20 + d.content.bytes
}

func (in *Instance) logBytes(d *database) int64 {
	n := int64(8 << 20)
	for _, r := range d.log {
		n += int64(r.Bytes)
	}
	return n
}

// RecoveryStatus is sys.database_recovery_status.
func (in *Instance) RecoveryStatus(now time.Time, id SessionID) []RecoveryStatusRow {
	in.begin(now)
	if !in.can(in.session(id), "VIEW ANY DEFINITION") {
		return nil
	}
	l := make([]RecoveryStatusRow, 0, len(in.dbs))
	for _, d := range in.dbs {
		fork, first := d.recoveryFork()
		l = append(l, RecoveryStatusRow{DatabaseID: d.state.ID, DatabaseGUID: d.state.GUID, FamilyGUID: d.state.Family, RecoveryForkGUID: fork,
			FirstForkGUID: first, LastLogBackupLSN: optLSN(d.state.LogBackup)})
	}
	return l
}

func optLSN(l LSN) Opt[LSN] { return Opt[LSN]{V: l, OK: l != 0} }

// Files is sys.master_files.
func (in *Instance) Files(now time.Time, id SessionID) []FileRow {
	in.begin(now)
	s := in.session(id)
	var l []FileRow
	for _, d := range in.dbs {
		if !in.can(s, "VIEW ANY DEFINITION") && !in.isUser(s, d) {
			continue
		}
		st := in.status(d)
		l = append(l,
			FileRow{DatabaseID: d.state.ID, FileID: 1, TypeDesc: "ROWS", Name: d.state.DataName, PhysicalName: d.state.DataPath, State: st, StateDesc: databaseStateNames[st], Pages: in.dataBytes(d) / 8192},
			FileRow{DatabaseID: d.state.ID, FileID: 2, Type: 1, TypeDesc: "LOG", Name: d.state.LogName, PhysicalName: d.state.LogPath, State: st, StateDesc: databaseStateNames[st], Pages: in.logBytes(d) / 8192})
	}
	return l
}

// Sessions is sys.dm_exec_sessions and sys.dm_exec_connections; a login without the right sees its own.
func (in *Instance) Sessions(now time.Time, id SessionID) ([]SessionRow, error) {
	in.begin(now)
	s := in.session(id)
	all := in.viewState(s) == nil
	var l []SessionRow
	for _, o := range in.sessions {
		if o.dead || !all && o != s {
			continue
		}
		r := SessionRow{ID: o.id, LoginTime: o.since, HostName: o.req.HostName, ProgramName: o.req.AppName, Login: o.principal.Name, OriginalLogin: o.principal.Name,
			ClientInterface: o.req.ClientInterface, ClientAddress: o.req.Address, ClientPort: o.req.Port, Encrypted: o.req.Encrypted, Status: "sleeping",
			DatabaseID: o.db, IsUserProcess: true, LastRequestStart: o.began, ReadOnlyIntent: o.req.ReadOnlyIntent, SID: o.principal.SID}
		if o.running {
			r.Status = "running"
		} else if !o.ended.IsZero() {
			r.LastRequestEnd = Some(o.ended)
		}
		if o.txn != nil {
			r.OpenTransactions = 1
		}
		l = append(l, r)
	}
	return l, nil
}

// Requests is sys.dm_exec_requests; a login without the right sees its own.
func (in *Instance) Requests(now time.Time, id SessionID) ([]RequestRow, error) {
	in.begin(now)
	s := in.session(id)
	all := in.viewState(s) == nil
	var l []RequestRow
	for _, o := range in.sessions {
		if o.dead || !o.running || !all && o != s {
			continue
		}
		r := RequestRow{SessionID: o.id, StartTime: o.began, Status: "running", Command: o.command, DatabaseID: o.db, PercentComplete: o.percent, Text: o.text}
		if w := o.wait; w != nil {
			r.Status, r.WaitType, r.WaitStart, r.WaitTime = "suspended", Some(w.kind), w.since, in.now.Sub(w.since)
			if w.blocker != nil {
				r.BlockingSession = w.blocker.id
			}
		}
		l = append(l, r)
	}
	return l, nil
}

// KillSession is KILL: 6106 (not active), 6104 (own).
func (in *Instance) KillSession(now time.Time, id, victim SessionID) error {
	in.begin(now)
	s := in.session(id)
	if !in.can(s, "ALTER ANY CONNECTION") {
		return msg(6102, 14, 1, "User does not have permission to use the KILL statement.")
	}
	if victim == id {
		return msg(6104, 16, 1, "Cannot use KILL to kill your own process.")
	}
	if in.session(victim) == in.nobody || in.session(victim).dead {
		return msg(6106, 16, 2, "Process ID %d is not an active process ID.", victim)
	}
	in.kill(func(o *session) bool { return o.id == victim }, killedError())
	return nil
}

// ReadErrorLog is sp_readerrorlog: log 0 is the current one; both filters must match, "" matches all.
func (in *Instance) ReadErrorLog(now time.Time, id SessionID, log int, filter1, filter2 string) ([]ErrorLogRow, error) {
	in.begin(now)
	if !in.can(in.session(id), "VIEW ANY ERROR LOG") {
		return nil, msg(229, 14, 5, "The EXECUTE permission was denied on the object 'xp_readerrorlog', database 'mssqlsystemresource', schema 'sys'.")
	}
	lines := in.errorLog
	if log > 0 {
		if log > len(in.oldLogs) {
			return nil, msg(22004, 16, 1, "Failed to open loopback connection. Please see event log for more information.")
		}
		lines = in.oldLogs[log-1]
	}
	var l []ErrorLogRow
	for _, r := range lines {
		if containsFold(r.Text, filter1) && containsFold(r.Text, filter2) {
			l = append(l, r)
		}
	}
	return l, nil
}

func containsFold(s, part string) bool {
	return part == "" || strings.Contains(strings.ToLower(s), strings.ToLower(part))
}

// CycleErrorLog is sp_cycle_errorlog.
func (in *Instance) CycleErrorLog(now time.Time, id SessionID) error {
	in.begin(now)
	if !in.isSysadmin(in.session(id)) {
		return msg(229, 14, 5, "The EXECUTE permission was denied on the object 'sp_cycle_errorlog', database 'master', schema 'sys'.")
	}
	in.oldLogs = append([][]ErrorLogRow{in.errorLog}, in.oldLogs[:min(5, len(in.oldLogs))]...)
	in.errorLog = nil
	in.log(0, in.session(id).process(), "The error log has been reinitialized. See the previous log for older entries.")
	return nil
}

// RaiseLog is RAISERROR … WITH LOG and xp_logevent: a line in the error log.
func (in *Instance) RaiseLog(now time.Time, id SessionID, number int32, text string) {
	in.begin(now)
	in.log(number, in.session(id).process(), "%s", text)
}

// SysInfo is sys.dm_os_sys_info.
func (in *Instance) SysInfo(now time.Time, id SessionID) (SysInfoRow, error) {
	in.begin(now)
	if err := in.viewState(in.session(id)); err != nil {
		return SysInfoRow{}, err
	}
	return SysInfoRow{StartTime: in.started, MillisecondTicks: in.wall().Sub(in.started).Milliseconds(), CPUCount: in.cfg.CPUCount, SchedulerCount: in.cfg.CPUCount,
		MemoryKB: in.cfg.MemoryKB, CommittedKB: in.cfg.MemoryKB / 4, CommittedTargetKB: in.cfg.MemoryKB / 5 * 4, ContainerType: 1, ContainerTypeDesc: "SELFCONTAINED", MaxWorkers: 512}, nil
}

// HostInfo is sys.dm_os_host_info.
func (in *Instance) HostInfo(now time.Time, id SessionID) (HostInfoRow, error) {
	in.begin(now)
	if err := in.viewState(in.session(id)); err != nil {
		return HostInfoRow{}, err
	}
	arch := "X64"
	if runtime.GOARCH == "arm64" {
		arch = "ARM64"
	}
	return HostInfoRow{Platform: "Linux", Distribution: in.cfg.HostDistribution, Release: in.cfg.HostRelease, LanguageVersion: 0, Architecture: arch}, nil
}

// BackupSets is msdb.dbo.backupset with backupmediafamily.
func (in *Instance) BackupSets(now time.Time, id SessionID) []BackupSetRow {
	in.begin(now)
	return slices.Clone(in.backups)
}

// Property is a value of SERVERPROPERTY: string, int or nil for NULL or an unknown name (FG 3.10).
func (in *Instance) Property(name string) any {
	flag := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	switch strings.ToLower(name) {
	case "servername":
		return in.srv.ServerName
	case "machinename", "computernamephysicalnetbios":
		return in.cfg.MachineName
	case "instancename":
		return nil
	case "productversion":
		return in.cfg.Version
	case "productmajorversion":
		return strconv.Itoa(in.cfg.Major)
	case "productminorversion":
		return "0"
	case "productbuild":
		if p := strings.Split(in.cfg.Version, "."); len(p) > 2 {
			return p[2]
		}
		return nil
	case "productlevel":
		return "RTM"
	case "productupdatelevel", "productupdatereference", "productbuildtype":
		return nil
	case "edition":
		return in.cfg.Edition
	case "editionid":
		switch {
		case strings.HasPrefix(in.cfg.Edition, "Express"):
			return -1592396055
		case strings.HasPrefix(in.cfg.Edition, "Standard"):
			return -1534726760
		case strings.HasPrefix(in.cfg.Edition, "Enterprise"):
			return 1804890536
		}
		return -2117995310
	case "engineedition":
		switch {
		case strings.HasPrefix(in.cfg.Edition, "Express"):
			return 4
		case strings.HasPrefix(in.cfg.Edition, "Standard"), strings.HasPrefix(in.cfg.Edition, "Web"):
			return 2
		}
		return 3
	case "ishadrenabled":
		return flag(in.cfg.HADR)
	case "hadrmanagerstatus":
		if !in.cfg.HADR {
			return 2
		}
		return 1
	case "isclustered", "issingleuser", "isintegratedsecurityonly", "isxtpsupported", "isfulltextinstalled", "ispolybaseinstalled", "islocaldb",
		"isbigdatacluster", "isadvancedanalyticsinstalled", "istempdbmetadatamemoryoptimized", "filestreamconfiguredlevel", "filestreameffectivelevel":
		return 0
	case "collation":
		return in.cfg.Collation
	case "collationid":
		return 872468488
	case "lcid":
		return 1033
	case "sqlcharset":
		return 1
	case "sqlcharsetname":
		return "iso_1"
	case "sqlsortorder":
		return 52
	case "sqlsortordername":
		return "nocase_iso"
	case "licensetype":
		return "DISABLED"
	case "processid":
		return in.cfg.ProcessID
	case "instancedefaultdatapath":
		return in.cfg.DataPath + "/"
	case "instancedefaultlogpath":
		return in.cfg.LogPath + "/"
	case "instancedefaultbackuppath":
		return in.cfg.BackupPath
	case "resourceversion":
		return in.cfg.Version
	case "buildclrversion":
		return "v4.0.30319"
	}
	return nil
}
