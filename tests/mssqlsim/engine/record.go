package engine

// The write-ahead records. Put records carry the whole new value of a small object, so that
// replaying them is idempotent; the log of a database is appended.

// PutServer replaces the instance-level state.
type PutServer struct{ State *ServerState }

// PutDatabase replaces the metadata of a database.
type PutDatabase struct{ State *DatabaseState }

// RemoveDatabaseRecord forgets a database with its log.
type RemoveDatabaseRecord struct{ ID DatabaseID }

// PutGroup replaces the local state of an availability group.
type PutGroup struct{ State *GroupState }

// RemoveGroup forgets a group.
type RemoveGroup struct{ ID GUID }

// AppendLog appends records to the log of a database.
type AppendLog struct {
	DB      DatabaseID
	Records []*LogRecord
}

// CutLog drops the records after an LSN: a revert.
type CutLog struct {
	DB    DatabaseID
	After LSN
}

// PutImage replaces the content of a database as of Image.LSN and drops the log up to it; with
// Reset it drops the whole log.
type PutImage struct {
	DB    DatabaseID
	Image *Image
	Reset bool
}

// AddBackup adds a line to the backup history.
type AddBackup struct{ Set BackupSetRow }

func (PutServer) record()            {}
func (PutDatabase) record()          {}
func (RemoveDatabaseRecord) record() {}
func (PutGroup) record()             {}
func (RemoveGroup) record()          {}
func (AppendLog) record()            {}
func (CutLog) record()               {}
func (PutImage) record()             {}
func (AddBackup) record()            {}

func (in *Instance) persist(r ...Record) { in.emit(Persist{Records: r}) }
