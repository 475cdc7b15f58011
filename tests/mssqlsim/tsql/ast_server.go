package tsql

import "github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"

// Statements about the server: availability groups, databases, security, backup.
type (
	createGroupStmt struct {
		c        engine.CreateGroup
		keywords []string // option names, for the check against the version
		line     int
	}
	alterGroupStmt struct {
		name string
		verb string // SET, LEASE, ROLE, ADD DATABASE, REMOVE DATABASE, ADD REPLICA, MODIFY REPLICA, …
		// arguments by verb
		opts     engine.GroupOptions
		lease    int64
		names    []string
		replicas []engine.ReplicaSpec
		cluster  *engine.ClusterType
		listener engine.ListenerSpec
		keywords []string
		line     int
	}
	dropGroupStmt struct{ name string }

	createDatabaseStmt struct{ spec engine.CreateDatabaseSpec }
	dropDatabaseStmt   struct {
		names    []string
		ifExists bool
	}
	alterDatabaseStmt struct {
		name    string // "" is CURRENT
		opts    engine.DatabaseOptions
		newName string
		nothing bool // an accepted option without effect on the simulator
	}
	alterDatabaseHADRStmt struct {
		name   string
		action engine.HADRAction
		group  string
	}

	createLoginStmt struct {
		spec    engine.LoginSpec
		windows bool
	}
	alterLoginStmt struct{ spec engine.LoginSpec }
	dropLoginStmt  struct {
		name     string
		ifExists bool
	}
	createUserStmt struct{ name, login string }
	dropUserStmt   struct {
		name     string
		ifExists bool
	}
	roleMemberStmt struct {
		server       bool
		role, member string
		add          bool
	}
	roleStmt struct {
		server   bool
		name     string
		drop     bool
		ifExists bool
	}
	grantStmt struct{ spec engine.GrantSpec }

	masterKeyStmt struct {
		verb     string // CREATE, REGENERATE, DROP, OPEN, CLOSE, ADD, DROP ENCRYPTION
		password string
	}
	createCertStmt struct {
		spec             engine.CertificateSpec
		start, expiry    string
		file, keyFile    string
		line             int
		activeForDialogs bool
	}
	dropCertStmt   struct{ name string }
	backupCertStmt struct {
		name, file, keyFile, password, decryption string
	}
	createEndpointStmt struct{ spec engine.EndpointSpec }
	alterEndpointStmt  struct{ spec engine.EndpointSpec }
	dropEndpointStmt   struct{ name string }
	credentialStmt     struct {
		verb                   string // CREATE, ALTER, DROP
		name, identity, secret string
	}

	backupStmt struct {
		spec    engine.BackupSpec
		nameVar expr   // database by variable
		devices []expr // literals and variables
		urls    bool
		init    bool // INIT or FORMAT: begin the device anew
	}
	restoreStmt struct {
		kind    string // DATABASE, LOG, HEADERONLY, FILELISTONLY, LABELONLY, VERIFYONLY
		db      expr
		devices []expr
		urls    bool
		opts    restoreOptions
	}
	restoreOptions struct {
		replace, noRecovery, recovery bool
		standby                       string
		stopAt                        expr
		file                          int64
		moves                         [][2]string
	}
)
