package engine

import (
	"slices"
	"time"
)

// RestoreSpec is RESTORE DATABASE and RESTORE LOG. Content is what the device holds; nil is RESTORE
// DATABASE … WITH RECOVERY without a device.
type RestoreSpec struct {
	Database   string
	Kind       BackupKind
	Content    []byte
	NoRecovery bool
	Replace    bool
	StopAt     *time.Time // log: up to this time
	DataPath   string     // MOVE of the first data file
	LogPath    string     // MOVE of the log file
}

// Restore runs RESTORE: 3104 (in an AG), 3101 (in use), 3159 (tail not backed up), 3117 and 3118
// (nothing to restore upon), 4305 (gap in the log), 3241, each with 3013 (FG 9.2).
func (in *Instance) Restore(now time.Time, id SessionID, r RestoreSpec) error {
	in.begin(now)
	s := in.session(id)
	what := "DATABASE"
	if r.Kind == BackupLog {
		what = "LOG"
	}
	fail := func(e error) error {
		return append(Errors(Messages(e)), msg(3013, 16, 1, "RESTORE %s is terminating abnormally.", what))
	}
	d := in.databaseByName(r.Database)
	if !in.can(s, "CREATE ANY DATABASE") && (d == nil || !slices.Equal(d.state.Owner, s.sid())) {
		return fail(msg(3110, 14, 1, "User does not have permission to RESTORE database '%s'.", r.Database))
	}
	if d != nil {
		switch {
		case d.isSystem():
			return fail(msg(3108, 16, 1, "To restore the master database, the server must be running in single-user mode."))
		case d.member != nil:
			return fail(msg(3104, 16, 1, "RESTORE cannot operate on database '%s' because it is configured for database mirroring or has joined an availability group. If you intend to restore the database, use ALTER DATABASE to remove mirroring or to remove the database from its availability group.", r.Database))
		}
		for _, o := range in.sessions {
			if !o.dead && o.db == d.state.ID {
				return fail(msg(3101, 16, 1, "Exclusive access could not be obtained because the database is in use."))
			}
		}
	}
	var f *BackupFile
	if r.Content != nil {
		var err error
		if f, err = DecodeBackup(r.Content); err != nil {
			return fail(err)
		}
	}
	var err error
	switch {
	case r.Kind == BackupLog:
		err = in.restoreLog(d, f, r)
	case f == nil:
		if d == nil || !d.state.Restoring {
			err = msg(3153, 16, 1, "The database is already fully recovered.")
		}
	default:
		d, err = in.restoreFull(s, d, f, r)
	}
	if err != nil {
		return fail(err)
	}
	if !r.NoRecovery {
		in.recover(d)
	}
	in.log(18268, "Backup", "Database was restored: Database: %s, creation date(time): %s. Informational message. No user action required.", d.state.Name, d.state.Created.Format("2006/01/02(15:04:05)"))
	return nil
}

func (in *Instance) restoreFull(s *session, d *database, f *BackupFile, r RestoreSpec) (*database, error) {
	if f.Image == nil {
		return d, msg(3118, 16, 1, "The database \"%s\" does not exist. RESTORE can only create a database when restoring either a full backup or a file backup of the primary file.", r.Database)
	}
	var st *DatabaseState
	if d != nil {
		if !r.Replace && !d.state.Restoring && d.state.Recovery != RecoverySimple && d.end > max(d.state.LogBackup, d.state.FullBackup) {
			return d, msg(3159, 16, 1, "The tail of the log for the database \"%s\" has not been backed up. Use BACKUP LOG WITH NORECOVERY to backup the log if it contains work you do not want to lose. Use the WITH REPLACE or WITH STOPAT clause of the RESTORE statement to just overwrite the contents of the log.", r.Database)
		}
		n := *d.state
		st = &n
		in.uninstall(d)
	} else {
		st = in.newDatabaseState(r.Database)
		st.Owner = s.sid()
	}
	src := f.State
	st.GUID, st.Family, st.Recovery, st.Collation, st.Compatibility = src.GUID, src.Family, src.Recovery, src.Collation, src.Compatibility
	st.FullBackup, st.LogBackup, st.ReadOnly, st.Snapshot = 0, 0, src.ReadOnly, src.Snapshot
	st.Offline, st.Emergency, st.Restoring = false, false, true
	st.DataName, st.LogName = src.DataName, src.LogName
	set := func(to *string, v string) {
		if v != "" {
			*to = v
		}
	}
	set(&st.DataPath, r.DataPath)
	set(&st.LogPath, r.LogPath)
	return in.install(st, f.Image), nil
}

func (in *Instance) restoreLog(d *database, f *BackupFile, r RestoreSpec) error {
	if d == nil || !d.state.Restoring {
		return msg(3117, 16, 1, "The log or differential backup cannot be restored because no files are ready to rollforward.")
	}
	if f == nil || f.Image != nil {
		return msg(3241, 16, 0, "The media family on device is incorrectly formed. SQL Server cannot process this media family.")
	}
	if f.State.Family != d.state.Family {
		return msg(3154, 16, 4, "The backup set holds a backup of a database other than the existing '%s' database.", r.Database)
	}
	if f.After > d.end {
		return msg(4305, 16, 1, "The log in this backup set begins at LSN %d, which is too recent to apply to the database. An earlier log backup that includes LSN %d can be restored.", f.After, d.end)
	}
	records := f.Log[logTail(f.Log).after(d.end):]
	if r.StopAt != nil {
		n := slices.IndexFunc(records, func(x *LogRecord) bool { return x.Time.After(*r.StopAt) })
		if n >= 0 {
			records = records[:n]
		}
	}
	if len(records) > 0 {
		in.harden(d, records...)
		d.redo(d.end)
	}
	return nil
}

// recover ends a restore: the database gets a recovery branch of its own and comes online.
func (in *Instance) recover(d *database) {
	in.setState(d, func(st *DatabaseState) { st.Restoring = false })
	r := in.appendRecord(d, []Change{{Op: OpFork, Fork: &Fork{ID: in.rnd.guid(), Start: d.next, Before: d.end, Forced: true}}})
	d.redo(r.LSN)
}
