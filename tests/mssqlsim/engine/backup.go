package engine

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// BackupFile is the content of a backup. What is written to a device is its JSON.
type BackupFile struct {
	Set   BackupSetRow
	State *DatabaseState
	Image *Image       // full backup
	After LSN          // log backup: the records that follow this one
	Log   []*LogRecord // log backup
}

// DecodeBackup reads the content of a backup device: 3241 when it is none.
func DecodeBackup(content []byte) (*BackupFile, error) {
	var f BackupFile
	if err := json.Unmarshal(content, &f); err != nil || f.State == nil || f.Set.Type == "D" && f.Image == nil {
		return nil, msg(3241, 16, 0, "The media family on device is incorrectly formed. SQL Server cannot process this media family.")
	}
	return &f, nil
}

// Backup runs BACKUP to a device that keeps nothing, such as NUL; see BackupContent for the errors.
func (in *Instance) Backup(now time.Time, id SessionID, b BackupSpec) (WaitID, error) {
	_, err := in.backup(now, id, b)
	return 0, err
}

// BackupContent runs BACKUP and returns what the device is to hold: 3059 (full not COPY_ONLY on a
// secondary), 3062 (secondary not synchronising), 4208 (log under SIMPLE), 4214 and 3035 (no full
// backup), with 3013 after each (FG 9.2).
func (in *Instance) BackupContent(now time.Time, id SessionID, b BackupSpec) ([]byte, error) {
	f, err := in.backup(now, id, b)
	if err != nil {
		return nil, err
	}
	c, err := json.Marshal(f)
	if err != nil {
		return nil, msg(3202, 16, 1, "Write on \"%s\" failed: %v", b.Device, err)
	}
	return c, nil
}

func (in *Instance) backup(now time.Time, id SessionID, b BackupSpec) (*BackupFile, error) {
	in.begin(now)
	s := in.session(id)
	what := "DATABASE"
	if b.Kind == BackupLog {
		what = "LOG"
	}
	fail := func(e error) (*BackupFile, error) {
		return nil, append(Errors(Messages(e)), msg(3013, 16, 1, "BACKUP %s is terminating abnormally.", what))
	}
	d := in.databaseByName(b.Database)
	if d == nil {
		return fail(msg(911, 16, 11, "Database '%s' does not exist. Make sure that the name is entered correctly.", b.Database))
	}
	if !in.dbCan(s, d, "", "BACKUP "+what) {
		return fail(msg(262, 14, 1, "BACKUP %s permission denied in database '%s'.", what, d.state.Name))
	}
	if d.state.ID == TempDBID {
		return fail(msg(3147, 16, 3, "Backup and restore operations are not allowed on database tempdb."))
	}
	if m := d.member; m != nil {
		if err := m.backupAllowed(b); err != nil {
			return fail(err)
		}
	} else if err := in.usable(s, d, false); err != nil {
		return fail(err)
	}
	if in.faults.diskFull && !strings.EqualFold(b.Device, "NUL") {
		return fail(msg(3202, 16, 1, "Write on \"%s\" failed: 112(There is not enough space on the disk.)", b.Device))
	}
	switch {
	case b.Kind == BackupLog && d.state.Recovery == RecoverySimple:
		return fail(msg(4208, 16, 1, "The statement BACKUP LOG is not allowed while the recovery model is SIMPLE. Use BACKUP DATABASE or change the recovery model using ALTER DATABASE."))
	case b.Kind == BackupLog && d.state.FullBackup == 0:
		return fail(msg(4214, 16, 1, "BACKUP LOG cannot be performed because there is no current database backup."))
	case b.Kind == BackupDifferential && d.state.FullBackup == 0:
		return fail(msg(3035, 16, 1, "Cannot perform a differential backup for database \"%s\", because a current database backup does not exist. Perform a full database backup by reissuing BACKUP DATABASE, omitting the WITH DIFFERENTIAL option.", d.state.Name))
	}
	set := BackupSetRow{ID: in.srv.NextBackup, Name: b.Name, Database: d.state.Name, Type: [...]string{"D", "I", "L"}[b.Kind], Start: in.wall(), Finish: in.wall(),
		FirstLSN: d.image.LSN, LastLSN: d.next, CheckpointLSN: d.image.LSN, DatabaseBackupLSN: d.state.FullBackup, Bytes: in.dataBytes(d), IsCopyOnly: b.CopyOnly,
		RecoveryModel: [...]string{"", "FULL", "BULK-LOGGED", "SIMPLE"}[d.state.Recovery], ServerName: in.srv.ServerName, UserName: s.principal.Name,
		PhysicalDevice: b.Device, DeviceType: 2, FamilyGUID: d.state.Family}
	_, set.FirstForkGUID = d.recoveryFork()
	if b.Kind == BackupLog {
		set.FirstLSN = max(d.state.LogBackup, d.image.LSN)
		set.Bytes = in.logBytes(d)
	}
	if strings.Contains(b.Device, "://") {
		set.DeviceType = 9
	}
	set.CompressedBytes = set.Bytes
	d.redo(min(d.end, d.acknowledged()))
	file := &BackupFile{Set: set, State: d.state}
	if b.Kind == BackupLog {
		file.After = max(d.state.LogBackup, d.image.LSN)
		file.Log = slices.Clone(d.log[d.log.after(file.After):d.log.after(d.acknowledged())])
	} else {
		file.Image = d.content.image(d.applied)
	}
	in.backups = append(in.backups, set)
	in.changeServer(func(st *ServerState) { st.NextBackup++ })
	in.persist(AddBackup{Set: set})
	if !b.CopyOnly && b.Kind != BackupDifferential {
		in.setState(d, func(st *DatabaseState) {
			switch b.Kind {
			case BackupFull:
				st.FullBackup = d.applied
				if st.LogBackup == 0 {
					st.LogBackup = d.applied
				}
			case BackupLog:
				st.LogBackup = d.applied
			}
		})
	}
	if b.Kind == BackupLog && !b.CopyOnly {
		in.truncateLog(d)
	}
	kind := "Database"
	if b.Kind == BackupLog {
		kind = "Log"
	}
	in.log(18264, "Backup", "%s backed up. Database: %s, creation date(time): %s, pages dumped: %d, first LSN: %d, last LSN: %d, number of dump devices: 1, device information: (FILE=1, TYPE=DISK: {'%s'}). This is an informational message only. No user action is required.",
		kind, d.state.Name, d.state.Created.Format("2006/01/02(15:04:05)"), set.Bytes/8192, set.FirstLSN, set.LastLSN, b.Device)
	return file, nil
}

// acknowledged is the end of the log without the commits that wait for their acknowledgement.
func (d *database) acknowledged() LSN {
	if len(d.commits) > 0 {
		return d.applied
	}
	return d.end
}

// truncateLog frees the log that a log backup holds and no replica needs any more.
func (in *Instance) truncateLog(d *database) {
	if d.member != nil {
		if !d.member.truncatable() {
			return
		}
	}
	if d.content == nil || d.applied != d.end || len(d.log) == 0 {
		return
	}
	d.image = d.content.image(d.applied)
	d.log = nil
	in.persist(PutImage{DB: d.state.ID, Image: d.image})
}
