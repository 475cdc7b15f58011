package engine

import "time"

// DatabaseRow is a row of sys.databases (FG 3.9).
type DatabaseRow struct {
	DatabaseID          DatabaseID
	Name                string
	OwnerSID            []byte
	CreateDate          time.Time
	State               uint8
	StateDesc           string
	RecoveryModel       uint8 // 1 FULL, 2 BULK_LOGGED, 3 SIMPLE
	RecoveryModelDesc   string
	UserAccess          uint8 // 0 MULTI_USER, 1 SINGLE_USER, 2 RESTRICTED_USER
	UserAccessDesc      string
	IsReadOnly          bool
	IsAutoClose         bool
	IsInStandby         bool
	CompatibilityLevel  int
	Collation           string
	ReplicaID           Opt[GUID]
	GroupDatabaseID     Opt[GUID]
	LogReuseWait        uint8
	LogReuseWaitDesc    string
	SnapshotIsolation   bool
	IsEncrypted         bool
	DataPath, LogPath   string // of the primary files
	DataBytes, LogBytes int64
}

// RecoveryStatusRow is a row of sys.database_recovery_status (FG 3.9).
type RecoveryStatusRow struct {
	DatabaseID                      DatabaseID
	DatabaseGUID, FamilyGUID        GUID
	RecoveryForkGUID, FirstForkGUID GUID
	LastLogBackupLSN                Opt[LSN]
}

// PrincipalRow is a row of sys.server_principals or sys.database_principals.
type PrincipalRow struct {
	ID              PrincipalID
	Name            string
	SID             []byte
	Type            string // S SQL login or user, C certificate, R role
	TypeDesc        string
	IsDisabled      bool
	IsFixedRole     bool
	CreateDate      time.Time
	ModifyDate      time.Time
	DefaultDatabase string // logins
	DefaultSchema   string // users
	OwnerID         PrincipalID
	CertificateName string
	PolicyChecked   bool
}

// PermissionRow is a row of sys.server_permissions or sys.database_permissions.
type PermissionRow struct {
	Class     uint8 // 100 server, 105 endpoint, 101 principal, 108 availability group; 0 database, 1 object
	ClassDesc string
	MajorID   int
	GranteeID PrincipalID
	GrantorID PrincipalID
	Type      string // four characters
	Name      string
	State     string // G, W, D
	StateDesc string
}

// RoleMemberRow is a row of sys.server_role_members or sys.database_role_members.
type RoleMemberRow struct{ RoleID, MemberID PrincipalID }

// EndpointRow is a row of sys.endpoints, sys.tcp_endpoints and sys.database_mirroring_endpoints (FG 3.9).
type EndpointRow struct {
	Name                    string
	ID                      int
	PrincipalID             PrincipalID
	Protocol                uint8 // 2 TCP, 4 shared memory, 3 named pipe
	ProtocolDesc            string
	Type                    uint8 // 2 TSQL, 4 DATABASE_MIRRORING
	TypeDesc                string
	State                   uint8
	StateDesc               string
	IsAdmin                 bool
	Port                    int
	IPAddress               string
	Role                    uint8 // 1 PARTNER, 2 WITNESS, 3 ALL
	RoleDesc                string
	IsEncryptionEnabled     bool
	ConnectionAuth          uint8
	ConnectionAuthDesc      string
	CertificateID           int
	EncryptionAlgorithm     uint8
	EncryptionAlgorithmDesc string
}

// CertificateRow is a row of sys.certificates (FG 3.9).
type CertificateRow struct {
	Name               string
	ID                 int
	PrincipalID        PrincipalID
	PrivateKeyType     string // NA, MK, PW
	PrivateKeyTypeDesc string
	IsActiveForDialog  bool
	Issuer, Subject    string
	Serial             string
	SID                []byte
	StringSID          string
	StartDate, Expiry  time.Time
	Thumbprint         []byte
	KeyLength          int
	LastKeyBackup      Opt[time.Time]
}

// SymmetricKeyRow is a row of sys.symmetric_keys.
type SymmetricKeyRow struct {
	Name        string
	ID          int
	PrincipalID PrincipalID
	KeyLength   int
	Algorithm   string
	AlgoDesc    string
	CreateDate  time.Time
	ModifyDate  time.Time
	GUID        GUID
}

// SessionRow is a row of sys.dm_exec_sessions joined with sys.dm_exec_connections.
type SessionRow struct {
	ID                           SessionID
	LoginTime                    time.Time
	HostName, ProgramName, Login string
	OriginalLogin                string
	ClientInterface              string
	ClientAddress                string
	ClientPort                   int
	Encrypted                    bool
	Status                       string // running, sleeping, background
	DatabaseID                   DatabaseID
	OpenTransactions             int
	IsUserProcess                bool
	LastRequestStart             time.Time
	LastRequestEnd               Opt[time.Time]
	ReadOnlyIntent               bool
	SID                          []byte
}

// RequestRow is a row of sys.dm_exec_requests.
type RequestRow struct {
	SessionID           SessionID
	StartTime           time.Time
	Status, Command     string
	DatabaseID          DatabaseID
	BlockingSession     SessionID
	WaitType            Opt[string]
	WaitStart           time.Time
	WaitTime            time.Duration
	PercentComplete     float64
	EstimatedCompletion time.Duration
	Text                string
}

// ErrorLogRow is a line that sp_readerrorlog returns.
type ErrorLogRow struct {
	Date    time.Time
	Process string
	Text    string
}

// SysInfoRow is the row of sys.dm_os_sys_info.
type SysInfoRow struct {
	StartTime         time.Time
	MillisecondTicks  int64
	CPUCount          int
	SchedulerCount    int
	MemoryKB          int64
	CommittedKB       int64
	CommittedTargetKB int64
	ContainerType     int
	ContainerTypeDesc string
	MaxWorkers        int
}

// HostInfoRow is the row of sys.dm_os_host_info.
type HostInfoRow struct {
	Platform, Distribution, Release, ServicePack string
	SKU                                          Opt[int]
	LanguageVersion                              int
	Architecture                                 string
}

// ListenerStateRow is a row of sys.dm_tcp_listener_states.
type ListenerStateRow struct {
	ListenerID int
	IPAddress  string
	IsIPv4     bool
	Port       int
	Type       uint8
	TypeDesc   string
	State      uint8
	StateDesc  string
	StartTime  time.Time
}

// BackupSetRow is a row of msdb.dbo.backupset with its media family.
type BackupSetRow struct {
	ID                               int
	Name                             string
	Database                         string
	Type                             string // D, I, L
	Start, Finish                    time.Time
	FirstLSN, LastLSN                LSN
	CheckpointLSN, DatabaseBackupLSN LSN
	Bytes, CompressedBytes           int64
	IsCopyOnly                       bool
	RecoveryModel                    string
	ServerName, UserName             string
	PhysicalDevice                   string
	DeviceType                       int
	FamilyGUID, FirstForkGUID        GUID
}

// FileRow is a row of sys.master_files and sys.database_files.
type FileRow struct {
	DatabaseID   DatabaseID
	FileID       int
	Type         uint8 // 0 rows, 1 log
	TypeDesc     string
	Name         string
	PhysicalName string
	State        uint8
	StateDesc    string
	Pages        int64 // 8 KB
}

// DiagnosticsRow is a row of sp_server_diagnostics (FG 6).
type DiagnosticsRow struct {
	CreateTime    time.Time
	ComponentType string
	ComponentName string
	State         int
	StateDesc     string
	Data          string
}
