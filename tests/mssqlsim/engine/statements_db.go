package engine

import "time"

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

// CreateDatabase is CREATE DATABASE: 1801, 262.
func (in *Instance) CreateDatabase(now time.Time, s SessionID, c CreateDatabaseSpec) (WaitID, error) {
	return 0, unfinished("CREATE DATABASE")
}

// DropDatabase is DROP DATABASE: 3701, 3702 (in use), 3708 (system), 3752 (in an AG).
func (in *Instance) DropDatabase(now time.Time, s SessionID, name string) (WaitID, error) {
	return 0, unfinished("DROP DATABASE")
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

// AlterDatabase is ALTER DATABASE … SET: 1468 where a group forbids it.
func (in *Instance) AlterDatabase(now time.Time, s SessionID, name string, o DatabaseOptions) (WaitID, error) {
	return 0, unfinished("ALTER DATABASE")
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

// Backup runs BACKUP: 3059, 3062, 4208 (log under SIMPLE), 4214 (no full backup), 3013 (FG 9.2).
func (in *Instance) Backup(now time.Time, s SessionID, b BackupSpec) (WaitID, error) {
	return 0, unfinished("BACKUP")
}

// Checkpoint is CHECKPOINT.
func (in *Instance) Checkpoint(now time.Time, s SessionID) error { return nil }
