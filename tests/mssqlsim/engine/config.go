package engine

import "time"

// Config is what an instance is started with. Everything else is on its Disk.
type Config struct {
	// ServerName is @@SERVERNAME at first start; later starts keep the persisted one (FG 7.4).
	ServerName string
	// MachineName is the host name now; empty means ServerName.
	MachineName string
	// Seed feeds every random choice: GUIDs, delays.
	Seed uint64
	// SAPassword is set at first start.
	SAPassword string
	// Major is the product's major version: 14 (2017), 15, 16 (2022, default) or 17.
	Major int
	// Version is the full ProductVersion; empty means the one of Major.
	Version string
	// Edition as in SERVERPROPERTY('Edition'); empty means Developer Edition (64-bit).
	Edition string
	// HADR is hadrenabled; without it AG statements fail with 35221.
	HADR bool
	// Collation is the server collation; empty means SQL_Latin1_General_CP1_CI_AS.
	Collation string
	// DataPath, LogPath, BackupPath are the default directories; empty means the image's.
	DataPath, LogPath, BackupPath string
	// CPUCount and MemoryKB show in sys.dm_os_sys_info.
	CPUCount int
	MemoryKB int64
	// ProcessID is SERVERPROPERTY('ProcessID').
	ProcessID int
	// TCPPort is the TDS port that the listener view shows; 0 means 1433.
	TCPPort int
	// HostDistribution and HostRelease show in sys.dm_os_host_info.
	HostDistribution, HostRelease string
	// Keys makes key pairs for certificates; nil means deterministic ones from Seed.
	Keys KeyMaker
	// Readings selects between unconfirmed facts.
	Readings Readings
	// Timings; zero fields take the defaults of DefaultTimings.
	Timings Timings
}

// Timings are the durations that an outside observer can see (FG 4.6).
type Timings struct {
	// PromotionMin and PromotionMax bound the time from FAILOVER accepted to PRIMARY.
	PromotionMin, PromotionMax time.Duration
	// Recovery is the time from PRIMARY until its databases are ONLINE.
	Recovery time.Duration
	// RoleChange is the time from SET (ROLE = SECONDARY) accepted to SECONDARY, and of OFFLINE.
	RoleChange time.Duration
	// Redial is the pause between two connection attempts of a primary to a lost replica.
	Redial time.Duration
	// AttachWait bounds how long SET (ROLE = SECONDARY) looks for a primary before 41104.
	AttachWait time.Duration
	// JoinWait bounds JOIN before 47106.
	JoinWait time.Duration
	// SeedStep is the time of one tenth of a database's seeding.
	SeedStep time.Duration
}

// DefaultTimings are those of a small, healthy system.
func DefaultTimings() Timings {
	return Timings{
		PromotionMin: 800 * time.Millisecond, PromotionMax: 2 * time.Second,
		Recovery: 300 * time.Millisecond, RoleChange: 150 * time.Millisecond,
		Redial: 2 * time.Second, AttachWait: 5 * time.Second, JoinWait: 30 * time.Second,
		SeedStep: 100 * time.Millisecond,
	}
}
