package tsql

import (
	"bytes"
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// errUnsupported refuses by name what the engine does not model.
func errUnsupported(what string) error {
	return errNum(40515, 16, 1, "%s is not supported in this version of the simulated server.", what)
}

func (ex *exec) credential(s *credentialStmt) error {
	return ex.do(func() error {
		if s.verb == "DROP" {
			return ex.in.DropCredential(ex.hst, ex.s.id, s.name)
		}
		return ex.in.PutCredential(ex.hst, ex.s.id, s.name, s.identity, s.verb == "CREATE")
	})
}

// A device holds one backup set per line: BACKUP appends, WITH INIT and FORMAT begin anew.

// devicePath is the file of a DISK device; relative names live in the default directory.
func (ex *exec) devicePath(name string, url bool) string {
	if url || strings.HasPrefix(name, "/") || strings.EqualFold(name, "NUL") {
		return name
	}
	dir, _ := ex.in.Property("InstanceDefaultBackupPath").(string)
	if dir == "" {
		dir = "/var/opt/mssql/data"
	}
	return strings.TrimSuffix(dir, "/") + "/" + name
}

// errDevice is 3201 with the number and text of an operating system error, and 3013 after it.
func errDevice(verb, device, code, text string) error {
	e := errNum(3013, 16, 1, "%s is terminating abnormally.", verb)
	e.before = append(e.before, *sqltypes.Errf(3201, 16, 1, "Cannot open backup device '%s'. Operating system error %s(%s).", device, code, text))
	return e
}

func backupVerb(verb string, k engine.BackupKind) string {
	if k == engine.BackupLog {
		return verb + " LOG"
	}
	return verb + " DATABASE"
}

func (ex *exec) backup(s *backupStmt) error {
	if err := ex.noTransaction("BACKUP DATABASE"); err != nil {
		return err
	}
	spec := s.spec
	verb := backupVerb("BACKUP", spec.Kind)
	var err error
	if spec.Database, err = ex.text(s.nameVar); err != nil {
		return err
	}
	var paths []string
	for _, d := range s.devices {
		t, err := ex.text(d)
		if err != nil {
			return err
		}
		if s.urls {
			if err := ex.checkURL(verb, t); err != nil {
				return err
			}
		}
		if err := ex.do(func() error { paths = append(paths, ex.devicePath(t, s.urls)); return nil }); err != nil {
			return err
		}
	}
	spec.Device = paths[0]
	if strings.EqualFold(spec.Device, "NUL") {
		if err := ex.blocking(func() (engine.WaitID, error) { return ex.in.Backup(ex.hst, ex.s.id, spec) }); err != nil {
			return err
		}
		ex.processed(verb)
		return nil
	}
	files, ok := ex.s.host.(Files)
	if !ok {
		return errDevice(verb, spec.Device, "50", "The request is not supported.")
	}
	var media []byte
	if !s.init {
		// an existing file is appended to; one that is no backup is refused
		if media, err = files.ReadFile(spec.Device); err == nil {
			if _, err := engine.DecodeBackup(set(media, 1)); err != nil {
				return err
			}
		}
	}
	var content []byte
	if err := ex.do(func() (err error) {
		content, err = ex.in.BackupContent(ex.hst, ex.s.id, spec)
		return err
	}); err != nil {
		return err
	}
	media = append(append(media, content...), '\n')
	if err := files.WriteFile(spec.Device, media); err != nil {
		return errDevice(verb, spec.Device, "3", "The system cannot find the path specified.")
	}
	ex.processed(verb)
	return nil
}

// processed is the message of a successful backup or restore.
func (ex *exec) processed(verb string) {
	ex.message(*sqltypes.Errf(3014, 0, 1, "%s successfully processed 0 pages in 0.001 seconds (0.000 MB/sec).", verb), 0, "")
}

// set is the n-th backup set of a device, counted from 1; nil if there is none.
func set(media []byte, n int64) []byte {
	for line := range bytes.Lines(media) {
		if n--; n == 0 {
			return line
		}
	}
	return nil
}

// checkURL is what the server can tell about an object storage URL without reaching it (FG 9.1).
func (ex *exec) checkURL(verb, u string) error {
	l := strings.ToLower(u)
	if !strings.HasPrefix(l, "s3://") && !strings.HasPrefix(l, "https://") || len(u) > 259 {
		return errDevice(verb, u, "0x80070057", "The parameter is incorrect.")
	}
	ok := false
	if err := ex.do(func() error { ok = ex.in.HasCredentialFor(u); return nil }); err != nil {
		return err
	}
	if !ok {
		return errDevice(verb, u, "5", "Access is denied.")
	}
	return nil
}

func (ex *exec) restore(s *restoreStmt) error {
	verb := "RESTORE " + s.kind
	if err := ex.noTransaction(verb); err != nil {
		return err
	}
	var media []byte
	device := ""
	if len(s.devices) > 0 {
		t, err := ex.text(s.devices[0])
		if err != nil {
			return err
		}
		if s.urls {
			if err := ex.checkURL(verb, t); err != nil {
				return err
			}
		}
		if err := ex.do(func() error { device = ex.devicePath(t, s.urls); return nil }); err != nil {
			return err
		}
		files, ok := ex.s.host.(Files)
		if !ok {
			return errDevice(verb, device, "50", "The request is not supported.")
		}
		if media, err = files.ReadFile(device); err != nil {
			return errDevice(verb, device, "2", "The system cannot find the file specified.")
		}
	}
	switch s.kind {
	case "DATABASE", "LOG":
		return ex.restoreSet(s, verb, media)
	}
	var sets []*engine.BackupFile
	for n := int64(1); set(media, n) != nil; n++ {
		f, err := engine.DecodeBackup(set(media, n))
		if err != nil {
			return err
		}
		sets = append(sets, f)
	}
	if len(sets) == 0 {
		_, err := engine.DecodeBackup(nil)
		return err
	}
	switch s.kind {
	case "HEADERONLY":
		ex.backupHeaders(sets)
	case "FILELISTONLY":
		ex.backupFiles(sets[0])
	case "LABELONLY":
		ex.rowsOut([]Column{{Name: "MediaName", Type: sqltypes.TNVarChar(128), Nullable: true}, {Name: "SoftwareName", Type: sqltypes.TNVarChar(128)}},
			[]engine.Row{{sqltypes.Null(sqltypes.TNVarChar(128)), sqltypes.NewNVarChar("Microsoft SQL Server")}})
		ex.done(cmdSelect, 1, true)
	default:
		ex.message(*sqltypes.Errf(3262, 0, 1, "The backup set on file 1 is valid."), 0, "")
	}
	return nil
}

func (ex *exec) restoreSet(s *restoreStmt, verb string, media []byte) error {
	if s.opts.standby != "" {
		return errUnsupported(verb + " WITH STANDBY")
	}
	spec := engine.RestoreSpec{NoRecovery: s.opts.noRecovery, Replace: s.opts.replace}
	if s.kind == "LOG" {
		spec.Kind = engine.BackupLog
	}
	var err error
	if spec.Database, err = ex.text(s.db); err != nil {
		return err
	}
	if s.opts.stopAt != nil {
		v, err := ex.scalar(s.opts.stopAt)
		if err == nil {
			v, err = sqltypes.Cast(v, sqltypes.TDateTime2, 0)
		}
		if err != nil {
			return err
		}
		spec.StopAt = ptr(v.Time())
	}
	if len(s.devices) > 0 {
		if spec.Content = set(media, max(s.opts.file, 1)); spec.Content == nil {
			e := errNum(3013, 16, 1, "%s is terminating abnormally.", verb)
			e.before = append(e.before, *sqltypes.Errf(3287, 16, 1, "The file ID %d on device is not valid.", s.opts.file))
			return e
		}
		if f, err := engine.DecodeBackup(spec.Content); err == nil {
			for _, m := range s.opts.moves {
				switch {
				case equalName(m[0], f.State.DataName):
					spec.DataPath = m[1]
				case equalName(m[0], f.State.LogName):
					spec.LogPath = m[1]
				default:
					e := errNum(3013, 16, 1, "%s is terminating abnormally.", verb)
					e.before = append(e.before, *sqltypes.Errf(3234, 16, 2, "Logical file '%s' is not part of database '%s'. Use RESTORE FILELISTONLY to list the logical file names.", m[0], spec.Database))
					return e
				}
			}
		}
	}
	if err := ex.do(func() error { return ex.infos(ex.in.Restore(ex.hst, ex.s.id, spec)) }); err != nil {
		return err
	}
	ex.processed(verb)
	return nil
}

// backupHeaders is the result of RESTORE HEADERONLY: the columns that tools read.
func (ex *exec) backupHeaders(sets []*engine.BackupFile) {
	nvc, num := sqltypes.TNVarChar(128), sqltypes.TNumeric(25, 0)
	cols := []Column{
		{Name: "BackupName", Type: nvc, Nullable: true}, {Name: "BackupType", Type: sqltypes.TSmallInt}, {Name: "Position", Type: sqltypes.TSmallInt},
		{Name: "DeviceType", Type: sqltypes.TTinyInt}, {Name: "UserName", Type: nvc, Nullable: true}, {Name: "ServerName", Type: nvc, Nullable: true},
		{Name: "DatabaseName", Type: nvc, Nullable: true}, {Name: "BackupSize", Type: sqltypes.TBigInt}, {Name: "FirstLSN", Type: num, Nullable: true},
		{Name: "LastLSN", Type: num, Nullable: true}, {Name: "CheckpointLSN", Type: num, Nullable: true}, {Name: "DatabaseBackupLSN", Type: num, Nullable: true},
		{Name: "BackupStartDate", Type: sqltypes.TDateTime}, {Name: "BackupFinishDate", Type: sqltypes.TDateTime}, {Name: "FamilyGUID", Type: sqltypes.TGUID},
		{Name: "IsCopyOnly", Type: sqltypes.TBit}, {Name: "FirstRecoveryForkID", Type: sqltypes.TGUID}, {Name: "RecoveryModel", Type: sqltypes.TNVarChar(60), Nullable: true},
		{Name: "CompressedBackupSize", Type: sqltypes.TBigInt},
	}
	var rows []engine.Row
	for i, f := range sets {
		b := f.Set
		typ := map[string]int16{"D": 1, "L": 2, "I": 5}[b.Type]
		rows = append(rows, engine.Row{
			nvOrNull(b.Name), sqltypes.NewSmallInt(typ), sqltypes.NewSmallInt(int16(i + 1)), sqltypes.NewTinyInt(uint8(b.DeviceType)), nvOrNull(b.UserName), nvOrNull(b.ServerName),
			nvOrNull(b.Database), sqltypes.NewBigInt(b.Bytes), sqltypes.NewLSN(uint64(b.FirstLSN)), sqltypes.NewLSN(uint64(b.LastLSN)), sqltypes.NewLSN(uint64(b.CheckpointLSN)),
			sqltypes.NewLSN(uint64(b.DatabaseBackupLSN)), sqltypes.NewDateTime(b.Start), sqltypes.NewDateTime(b.Finish), sqltypes.NewGUID(b.FamilyGUID), sqltypes.NewBit(b.IsCopyOnly),
			sqltypes.NewGUID(b.FirstForkGUID), nvOrNull(b.RecoveryModel), sqltypes.NewBigInt(b.CompressedBytes),
		})
	}
	ex.rowsOut(cols, rows)
	ex.done(cmdSelect, int64(len(rows)), true)
}

// backupFiles is the result of RESTORE FILELISTONLY.
func (ex *exec) backupFiles(f *engine.BackupFile) {
	char1 := sqltypes.Type{ID: sqltypes.Char, Len: 1}
	cols := []Column{
		{Name: "LogicalName", Type: sqltypes.TNVarChar(128)}, {Name: "PhysicalName", Type: sqltypes.TNVarChar(260)}, {Name: "Type", Type: char1},
		{Name: "FileGroupName", Type: sqltypes.TNVarChar(128), Nullable: true}, {Name: "Size", Type: sqltypes.TNumeric(20, 0)}, {Name: "MaxSize", Type: sqltypes.TNumeric(20, 0)},
	}
	size := func(n int64) value {
		v, err := sqltypes.Cast(sqltypes.NewBigInt(n), sqltypes.TNumeric(20, 0), 0)
		if err != nil {
			return sqltypes.Null(sqltypes.TNumeric(20, 0))
		}
		return v
	}
	st := f.State
	ex.rowsOut(cols, []engine.Row{
		{sqltypes.NewNVarChar(st.DataName), sqltypes.NewNVarChar(st.DataPath), sqltypes.NewText(char1, "D"), sqltypes.NewNVarChar("PRIMARY"), size(f.Set.Bytes), size(35184372080640)},
		{sqltypes.NewNVarChar(st.LogName), sqltypes.NewNVarChar(st.LogPath), sqltypes.NewText(char1, "L"), nvOrNull(""), size(8 << 20), size(2199023255552)},
	})
	ex.done(cmdSelect, 2, true)
}
