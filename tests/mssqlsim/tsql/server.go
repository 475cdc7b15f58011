package tsql

import (
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// blocking runs a statement method that may give something to wait for.
func (ex *exec) blocking(f func() (engine.WaitID, error)) error {
	var id engine.WaitID
	if err := ex.do(func() (err error) {
		id, err = f()
		return ex.infos(err)
	}); err != nil {
		return err
	}
	return ex.infos(ex.wait(id))
}

// noTransaction refuses statements that a user transaction cannot hold (226, 574).
func (ex *exec) noTransaction(what string) error {
	if ex.s.tranCount > 0 {
		return errNum(226, 16, 6, "%s statement not allowed within multi-statement transaction.", what)
	}
	return nil
}

// serverStatement runs statements about the server.
func (ex *exec) serverStatement(n *node) error {
	id := ex.s.id
	quick := func(f func() error) error { return ex.do(func() error { return ex.infos(f()) }) }
	// changes of a database's catalog are transactions that may wait for the commit rule
	inTxn := func(f func() error) error { return ex.ddl(func() error { return ex.infos(f()) }) }
	switch s := n.s.(type) {
	case *createGroupStmt:
		return ex.createGroup(s)
	case *alterGroupStmt:
		return ex.alterGroup(s)
	case *dropGroupStmt:
		if err := ex.groupContext("DROP AVAILABILITY GROUP"); err != nil {
			return err
		}
		return ex.blocking(func() (engine.WaitID, error) { return ex.in.DropAvailabilityGroup(ex.hst, id, s.name) })
	case *createDatabaseStmt:
		if err := ex.noTransaction("CREATE DATABASE"); err != nil {
			return err
		}
		return ex.blocking(func() (engine.WaitID, error) { return ex.in.CreateDatabase(ex.hst, id, s.spec) })
	case *dropDatabaseStmt:
		return ex.dropDatabases(s)
	case *alterDatabaseStmt:
		return ex.alterDatabase(s)
	case *alterDatabaseHADRStmt:
		if err := ex.noTransaction("ALTER DATABASE"); err != nil {
			return err
		}
		return ex.blocking(func() (engine.WaitID, error) {
			name := s.name
			if name == "" {
				_, name = ex.in.CurrentDatabase(id)
			}
			return ex.in.SetDatabaseHADR(ex.hst, id, name, s.action, s.group)
		})
	case *createLoginStmt:
		if s.windows {
			return errNum(15401, 16, 1, "Windows NT user or group '%s' not found. Check the name again.", s.spec.Name)
		}
		return quick(func() error { return ex.in.CreateLogin(ex.hst, id, s.spec) })
	case *alterLoginStmt:
		return quick(func() error { return ex.in.AlterLogin(ex.hst, id, s.spec) })
	case *dropLoginStmt:
		return quick(func() error { return ex.in.DropLogin(ex.hst, id, s.name) })
	case *createUserStmt:
		return inTxn(func() error { return ex.in.CreateUser(ex.hst, id, s.name, s.login) })
	case *dropUserStmt:
		return inTxn(func() error {
			if s.ifExists && !ex.userExists(s.name) {
				return nil
			}
			return ex.in.DropUser(ex.hst, id, s.name)
		})
	case *roleMemberStmt:
		return inTxn(func() error { return ex.in.AlterRole(ex.hst, id, s.server, s.role, s.member, s.add) })
	case *roleStmt:
		return inTxn(func() error {
			if s.drop {
				if s.ifExists && !ex.userExists(s.name) {
					return nil
				}
				return ex.in.DropRole(ex.hst, id, s.server, s.name)
			}
			return ex.in.CreateRole(ex.hst, id, s.server, s.name)
		})
	case *grantStmt:
		return inTxn(func() error { return ex.in.GrantPermission(ex.hst, id, s.spec) })
	case *masterKeyStmt:
		return quick(func() error { return ex.masterKey(s) })
	case *createCertStmt:
		return ex.createCertificate(s)
	case *dropCertStmt:
		return quick(func() error { return ex.in.DropCertificate(ex.hst, id, s.name) })
	case *backupCertStmt:
		return ex.backupCertificate(s)
	case *createEndpointStmt:
		return quick(func() error { return ex.in.CreateEndpoint(ex.hst, id, s.spec) })
	case *alterEndpointStmt:
		return quick(func() error { return ex.in.AlterEndpoint(ex.hst, id, s.spec) })
	case *dropEndpointStmt:
		return quick(func() error { return ex.in.DropEndpoint(ex.hst, id, s.name) })
	case *credentialStmt:
		return ex.credential(s)
	case *backupStmt:
		return ex.backup(s)
	case *restoreStmt:
		return ex.restore(s)
	case *shutdownStmt:
		if err := quick(func() error { return ex.in.Shutdown(ex.hst, id, s.nowait) }); err != nil {
			return err
		}
		return nil
	case *killStmt:
		return ex.kill(s)
	case *checkpointStmt:
		return quick(func() error { return ex.in.Checkpoint(ex.hst, id) })
	case *reconfigStmt:
		return ex.reconfigure()
	case *dbccStmt:
		return ex.dbcc(s)
	case *createSchemaStmt:
		return errNum(156, 15, 1, "Incorrect syntax near the keyword 'SCHEMA'.")
	}
	return errNum(102, 15, 1, "Incorrect syntax near '%s'.", firstWord(n.text))
}

func firstWord(s string) string {
	if i := strings.IndexAny(s, " \t\r\n("); i > 0 {
		return s[:i]
	}
	return s
}

// userExists looks a database principal up in the current database.
func (ex *exec) userExists(name string) bool {
	db, _ := ex.in.CurrentDatabase(ex.s.id)
	for _, p := range ex.in.DatabasePrincipals(ex.hst, ex.s.id, db) {
		if equalName(p.Name, name) {
			return true
		}
	}
	return false
}

// groupContext is what every availability group statement needs: master (35208) and no
// transaction (574).
func (ex *exec) groupContext(what string) error {
	if ex.s.tranCount > 0 {
		return errNum(574, 16, 0, "%s statement cannot be used inside a user transaction.", what)
	}
	return ex.do(func() error {
		if db, _ := ex.in.CurrentDatabase(ex.s.id); db != engine.MasterID {
			return errNum(35208, 16, 1, "Availability-group DDL operations are permitted only when you are using the master database. Run the USE master statement, and retry your availability-group DDL command.")
		}
		return nil
	})
}

// known refuses option names that the product's version does not have (102, FG 1.1).
func (ex *exec) known(keywords []string, line int) error {
	major, _ := ex.major()
	for _, k := range keywords {
		since := 11
		switch k {
		case "DB_FAILOVER", "DTC_SUPPORT", "BASIC", "DISTRIBUTED":
			since = 13
		case "CLUSTER_TYPE", "REQUIRED_SYNCHRONIZED_SECONDARIES_TO_COMMIT":
			since = 14
		case "WRITE_LEASE_VALIDITY":
			since = 15
		case "CONTAINED":
			since = 16
		case "CLUSTER_CONNECTION_OPTIONS":
			since = 17
		}
		if major < since {
			return errSyntax(102, 15, 1, line, "Incorrect syntax near '%s'.", k)
		}
	}
	return nil
}

func (ex *exec) major() (int, string) {
	text := ""
	_ = ex.do(func() error {
		text, _ = ex.in.Property("ProductVersion").(string)
		return nil
	})
	n := 0
	for i := 0; i < len(text) && text[i] >= '0' && text[i] <= '9'; i++ {
		n = n*10 + int(text[i]-'0')
	}
	return n, text
}

func (ex *exec) createGroup(s *createGroupStmt) error {
	if err := ex.known(s.keywords, s.line); err != nil {
		return err
	}
	if err := ex.groupContext("CREATE AVAILABILITY GROUP"); err != nil {
		return err
	}
	if s.c.Options.Distributed {
		return errNum(41199, 16, 1, "The specified command is invalid because the Always On Availability Groups feature 'distributed availability group' is not supported by this edition of SQL Server. For information about features supported by the editions of SQL Server, see SQL Server Books Online.")
	}
	return ex.blocking(func() (engine.WaitID, error) { return ex.in.CreateAvailabilityGroup(ex.hst, ex.s.id, s.c) })
}

func (ex *exec) alterGroup(s *alterGroupStmt) error {
	if err := ex.known(s.keywords, s.line); err != nil {
		return err
	}
	if err := ex.groupContext("ALTER AVAILABILITY GROUP"); err != nil {
		return err
	}
	id := ex.s.id
	return ex.blocking(func() (engine.WaitID, error) {
		in, now := ex.in, ex.hst
		switch s.verb {
		case "SET":
			return in.SetGroupOptions(now, id, s.name, s.opts)
		case "LEASE":
			return 0, in.RenewWriteLease(now, id, s.name, s.lease)
		case "ROLE":
			return in.SetRoleSecondary(now, id, s.name)
		case "ADD DATABASE":
			return in.AddDatabase(now, id, s.name, s.names)
		case "REMOVE DATABASE":
			return in.RemoveDatabase(now, id, s.name, s.names)
		case "ADD REPLICA":
			return in.AddReplica(now, id, s.name, s.replicas)
		case "MODIFY REPLICA":
			if len(s.replicas) != 1 {
				break
			}
			return in.ModifyReplica(now, id, s.name, s.replicas[0])
		case "REMOVE REPLICA":
			return in.RemoveReplica(now, id, s.name, s.names)
		case "JOIN":
			return in.JoinAvailabilityGroup(now, id, s.name, s.cluster)
		case "GRANT", "DENY":
			return 0, in.GrantCreateAnyDatabase(now, id, s.name, s.verb == "GRANT")
		case "FAILOVER", "FORCE":
			return in.Failover(now, id, s.name, s.verb == "FORCE")
		case "OFFLINE":
			return in.Offline(now, id, s.name)
		case "ADD LISTENER":
			return in.AlterListener(now, id, s.name, engine.ListenerAdd, s.listener)
		case "MODIFY LISTENER":
			return in.AlterListener(now, id, s.name, engine.ListenerModify, s.listener)
		case "RESTART LISTENER":
			return in.AlterListener(now, id, s.name, engine.ListenerRestart, s.listener)
		case "REMOVE LISTENER":
			return in.AlterListener(now, id, s.name, engine.ListenerRemove, s.listener)
		}
		return 0, errNum(102, 15, 1, "Incorrect syntax near ','.")
	})
}

func (ex *exec) dropDatabases(s *dropDatabaseStmt) error {
	if err := ex.noTransaction("DROP DATABASE"); err != nil {
		return err
	}
	for _, name := range s.names {
		if err := ex.blocking(func() (engine.WaitID, error) {
			if _, ok := ex.in.LookupDatabase(name); !ok && s.ifExists {
				return 0, nil
			}
			return ex.in.DropDatabase(ex.hst, ex.s.id, name)
		}); err != nil {
			return err
		}
	}
	return nil
}

func (ex *exec) alterDatabase(s *alterDatabaseStmt) error {
	if err := ex.noTransaction("ALTER DATABASE"); err != nil {
		return err
	}
	return ex.blocking(func() (engine.WaitID, error) {
		name := s.name
		if name == "" {
			_, name = ex.in.CurrentDatabase(ex.s.id)
		}
		if s.newName != "" {
			return 0, errNum(102, 15, 1, "Incorrect syntax near 'NAME'.")
		}
		if s.nothing && s.opts == (engine.DatabaseOptions{}) {
			if _, ok := ex.in.LookupDatabase(name); !ok {
				return 0, errNum(5011, 14, 5, "User does not have permission to alter database '%s', the database does not exist, or the database is not in a state that allows access checks.", name)
			}
			return 0, nil
		}
		return ex.in.AlterDatabase(ex.hst, ex.s.id, name, s.opts)
	})
}

func (ex *exec) masterKey(s *masterKeyStmt) error {
	switch s.verb {
	case "CREATE":
		return ex.in.CreateMasterKey(ex.hst, ex.s.id, s.password)
	case "REGENERATE":
		return ex.in.AlterMasterKey(ex.hst, ex.s.id, s.password)
	case "DROP":
		return ex.in.DropMasterKey(ex.hst, ex.s.id)
	}
	// OPEN, CLOSE, ADD and DROP ENCRYPTION: the key is always open through the service master key
	for _, k := range ex.in.SymmetricKeys(ex.hst, ex.s.id) {
		if k.Name == "##MS_DatabaseMasterKey##" {
			return nil
		}
	}
	return errNum(15151, 16, 1, "Cannot find the symmetric key 'master key', because it does not exist or you do not have permission.")
}

// certificateDate reads START_DATE and EXPIRY_DATE.
func certificateDate(text string) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	v, err := sqltypes.Cast(sqltypes.NewVarChar(text), sqltypes.TDateTime, 0)
	if err != nil {
		return nil, err
	}
	t := v.Time()
	return &t, nil
}

func (ex *exec) createCertificate(s *createCertStmt) error {
	spec := s.spec
	var err error
	if spec.Start, err = certificateDate(s.start); err != nil {
		return err
	}
	if spec.Expiry, err = certificateDate(s.expiry); err != nil {
		return err
	}
	read := func(path string) ([]byte, error) {
		if f, ok := ex.s.host.(Files); ok {
			if b, err := f.ReadFile(path); err == nil {
				return b, nil
			}
		}
		return nil, errNum(15208, 16, 6, "The certificate, asymmetric key, or private key file is not valid or does not exist; or you do not have permissions for it.")
	}
	if s.file != "" {
		if spec.DER, err = read(s.file); err != nil {
			return err
		}
	}
	if s.keyFile != "" {
		if spec.PrivateKey, err = read(s.keyFile); err != nil {
			return err
		}
	}
	return ex.do(func() error { return ex.infos(ex.in.CreateCertificate(ex.hst, ex.s.id, spec)) })
}

func (ex *exec) backupCertificate(s *backupCertStmt) error {
	var der, key []byte
	if err := ex.do(func() error {
		id, ok := ex.in.CertificateID(s.name)
		if ok {
			der = ex.in.CertificateEncoded(ex.s.id, id)
		}
		if der == nil {
			return errNum(15151, 16, 1, "Cannot find the certificate '%s', because it does not exist or you do not have permission.", s.name)
		}
		if s.keyFile == "" {
			return nil
		}
		if key = ex.in.CertificatePrivateKey(ex.hst, ex.s.id, id, s.password); key == nil {
			return errNum(15466, 16, 1, "An error occurred during decryption.")
		}
		return nil
	}); err != nil {
		return err
	}
	write := func(path string, b []byte) error {
		if f, ok := ex.s.host.(Files); ok && f.CreateFile(path, b) == nil {
			return nil
		}
		return errNum(15240, 16, 1, "Cannot write into file '%s'. Verify that you have write permissions, that the file path is valid, and that the file does not already exist.", path)
	}
	if err := write(s.file, der); err != nil {
		return err
	}
	if s.keyFile != "" {
		return write(s.keyFile, key)
	}
	return nil
}

func (ex *exec) kill(s *killStmt) error {
	v, err := ex.scalar(s.x)
	if err == nil {
		v, err = sqltypes.Cast(v, sqltypes.TInt, 0)
	}
	if err != nil {
		return errNum(6106, 16, 1, "Process ID %s is not a valid process ID.", v.Format())
	}
	return ex.do(func() error { return ex.infos(ex.in.KillSession(ex.hst, ex.s.id, engine.SessionID(v.Int64()))) })
}

// dbcc runs the few DBCC commands that tools send.
func (ex *exec) dbcc(s *dbccStmt) error {
	finished := func() {
		ex.message(*sqltypes.Errf(2528, 0, 1, "DBCC execution completed. If DBCC printed error messages, contact your system administrator."), 0, "")
	}
	switch s.verb {
	case "TRACEON", "TRACEOFF", "FREEPROCCACHE", "DROPCLEANBUFFERS", "FREESYSTEMCACHE", "CHECKDB", "UPDATEUSAGE":
		finished()
		return nil
	case "OPENTRAN":
		ex.message(*sqltypes.Errf(7964, 0, 1, "No active open transactions."), 0, "")
		finished()
		return nil
	case "CHECKIDENT":
		return ex.checkIdent(s)
	}
	return errNum(2526, 16, 3, "Incorrect DBCC statement. Check the documentation for the correct DBCC syntax and options.")
}

func (ex *exec) checkIdent(s *dbccStmt) error {
	if len(s.args) < 3 {
		return errNum(2560, 16, 9, "Parameter %d is incorrect for this DBCC statement.", len(s.args)+1)
	}
	name, err := ex.text(s.args[0])
	if err != nil {
		return err
	}
	v, err := ex.scalar(s.args[2])
	if err != nil {
		return err
	}
	o, ok := splitName(name)
	if !ok {
		return errNum(2501, 16, 45, "Cannot find a table or object with the name \"%s\". Check the system catalog.", name)
	}
	return ex.do(func() error {
		_, st, err := ex.writeTarget(&tableName{obj: o}, "ALTER")
		if err != nil {
			return errNum(2501, 16, 45, "Cannot find a table or object with the name \"%s\". Check the system catalog.", name)
		}
		st.setIdentity(wholeNumber(v))
		return nil
	})
}
