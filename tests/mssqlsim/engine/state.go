package engine

import "time"

// ServerState is the durable state of the instance itself.
type ServerState struct {
	ServerName    string
	Seed          uint64
	Starts        int
	NextDatabase  DatabaseID
	NextPrincipal PrincipalID
	NextCert      int
	NextEndpoint  int
	NextBackup    int
	Principals    []*Principal // logins and server roles, by id
	Members       []RoleMemberRow
	Permissions   []*Permission
	MasterKey     *MasterKey
	Certificates  []*Certificate
	Endpoint      *MirroringEndpoint
	PendingName   string // sp_addserver: takes effect at the next start
	Unregistered  bool   // sp_dropserver, and no sp_addserver since
	// Configured and Running are the options of sp_configure by configuration_id.
	Configured, Running map[int]int64
	Credentials         []Credential
}

// MasterKey is the database master key of master.
type MasterKey struct {
	GUID     GUID
	Created  time.Time
	Modified time.Time
}

// Certificate is a certificate in master. It is immutable.
type Certificate struct {
	ID         int
	Name       string
	Owner      PrincipalID // database principal of master
	DER        []byte
	Key        []byte // PKCS #8, nil without private key
	KeyType    string // NA, MK, PW
	Subject    string
	Issuer     string
	Serial     string
	Start, End time.Time
	Thumbprint []byte
	KeyLength  int
	KeyBackup  time.Time
}

// MirroringEndpoint is the database mirroring endpoint. It is immutable.
type MirroringEndpoint struct {
	ID          int
	Name        string
	Owner       PrincipalID
	State       EndpointState
	Port        int
	IP          string // "" = ALL
	Role        uint8  // 1 PARTNER, 2 WITNESS, 3 ALL
	Certificate int
	Encryption  bool
	Restarts    int // how often it was started; tells peers that a stale transport is gone (FG 4.7)
}

// DatabaseState is the durable metadata of a database. It is immutable.
type DatabaseState struct {
	ID            DatabaseID
	Name          string
	GUID          GUID
	Family        GUID
	Owner         []byte // SID
	Created       time.Time
	Recovery      RecoveryModel
	Collation     string
	Compatibility int
	ReadOnly      bool
	AutoClose     bool
	UserAccess    uint8
	Snapshot      bool
	Offline       bool
	Emergency     bool
	Restoring     bool // a copy that was not recovered
	FullBackup    LSN  // of the last full backup since FULL recovery was set, 0 none
	LogBackup     LSN
	DataName      string
	DataPath      string
	LogName       string
	LogPath       string
	// Membership in an availability group.
	Group     GUID
	GroupDB   GUID
	Joined    bool // this copy takes part
	Suspended bool
	Suspend   uint8 // reason, FG 3.6
}

// GroupState is the durable local state of an availability group. It is immutable.
type GroupState struct {
	Config    *Configuration
	Committed int64 // newest sequence number known to be committed
	Replica   GUID  // the local replica
	LastRole  Role
	CreateAny bool        // GRANT CREATE ANY DATABASE
	Grantor   PrincipalID // who granted it: owner of seeded databases
	Created   time.Time
	Latch     *Latch
}

// Latch is a stuck SET (ROLE = SECONDARY) (FG 4.7).
type Latch struct {
	Since    time.Time
	Offlined bool
	Own      int    // restarts of the own endpoint when it latched
	Primary  string // server
	Peer     int    // restarts of the primary's endpoint when it latched
}

// Role as dm_hadr_availability_replica_states.role.
type Role uint8

// Replica roles.
const (
	RoleResolving Role = iota
	RolePrimary
	RoleSecondary
)

func (r Role) String() string { return [...]string{"RESOLVING", "PRIMARY", "SECONDARY"}[r] }

// Configuration is one version of a group's configuration (FG 5.1). It is immutable.
type Configuration struct {
	GroupID          GUID
	ResourceID       GUID
	Name             string
	Sequence         int64
	Primary          GUID // replica that made this version
	ClusterType      ClusterType
	DBFailover       bool
	DTCPerDB         bool
	Basic            bool
	Contained        bool
	Distributed      bool
	Required         int // REQUIRED_SYNCHRONIZED_SECONDARIES_TO_COMMIT
	WriteLease       int64
	BackupPreference uint8
	FailureLevel     int
	HealthTimeout    int64
	Replicas         []Replica
	Databases        []GroupDatabase
	Listeners        []Listener
}

// Replica is one replica in a configuration.
type Replica struct {
	ID                   GUID
	Server               string
	EndpointURL          string
	Availability         AvailabilityMode
	Failover             FailoverMode
	SeedingAutomatic     bool
	SeedGeneration       int // raised when MODIFY REPLICA sets SEEDING_MODE again
	BackupPriority       int
	SessionTimeout       int
	SecondaryConnections uint8
	PrimaryConnections   uint8
	ReadOnlyRoutingURL   string
	ReadWriteRoutingURL  string
	ReadOnlyRoutingList  [][]string
	Joined               bool
	Voter                bool // counts for the quorum: joined, and not written off by a forced failover
	Created, Modified    time.Time
	JoinedDBs            []GUID // databases whose copy here has joined
	SyncDBs              []GUID // databases whose copy here is synchronised: it may be promoted
}

// GroupDatabase is one database in a configuration.
type GroupDatabase struct {
	ID   GUID
	Name string
}

// Listener is listener metadata in a configuration.
type Listener struct {
	ID        GUID
	DNSName   string
	Addresses []string
	Port      int
}
