package engine

// RecoveryModel as sys.databases.recovery_model.
type RecoveryModel uint8

// Recovery models.
const (
	RecoveryFull RecoveryModel = iota + 1
	RecoveryBulkLogged
	RecoverySimple
)

// CreateDatabaseSpec is CREATE DATABASE; empty paths take the instance's defaults.
type CreateDatabaseSpec struct {
	Name      string
	Collation string
	DataName  string
	DataPath  string
	LogName   string
	LogPath   string
}

// DatabaseOptions are the SET options of ALTER DATABASE; nil means not given.
type DatabaseOptions struct {
	Recovery          *RecoveryModel
	ReadOnly          *bool
	AutoClose         *bool
	UserAccess        *uint8 // 0 MULTI_USER, 1 SINGLE_USER, 2 RESTRICTED_USER
	State             *uint8 // 0 ONLINE, 5 EMERGENCY, 6 OFFLINE
	SnapshotIsolation *bool
	Compatibility     *int
	RollbackImmediate bool
}

// BackupKind is what BACKUP takes.
type BackupKind uint8

// Kinds of backup.
const (
	BackupFull BackupKind = iota
	BackupDifferential
	BackupLog
)

// BackupSpec is BACKUP DATABASE or BACKUP LOG.
type BackupSpec struct {
	Database string
	Kind     BackupKind
	CopyOnly bool
	Device   string // path, URL or "NUL"
	Name     string
}
