package tsql

// OperatorLogin are the batches that make the login of the controller and the
// plugin, with the rights that the procedures of pkg/sql/agops need and no more
// (FG 1.8, 2.4, 7.6). They are idempotent, run by sa over loopback, in this order,
// in master. The first two contain passwords: never log them.
//
// masterKeyPassword is for master's master key, random and kept nowhere (see
// [CreateMasterKey]): making it needs CONTROL on master, which the login shall not
// have. A password of the login that has changed is set with [SetLoginPassword].
func OperatorLogin(login, password, masterKeyPassword string) []string {
	l := Ident(login)
	grant := func(right string) string { return batch("GRANT " + right + " TO " + l) }
	return []string{
		CreateMasterKey(masterKeyPassword),
		when("NOT EXISTS (SELECT 1 FROM sys.server_principals WHERE name = "+Literal(login)+")",
			"CREATE LOGIN "+l+" WITH PASSWORD = "+Literal(password)) + ";",
		when("NOT EXISTS (SELECT 1 FROM sys.database_principals WHERE name = "+Literal(login)+")",
			"CREATE USER "+l+" FOR LOGIN "+l) + ";",
		// To see: roles, replicas, certificates, other logins' names.
		grant("VIEW SERVER STATE"),
		grant("VIEW ANY DEFINITION"),
		// To make and steer the group.
		grant("CREATE AVAILABILITY GROUP"),
		grant("ALTER ANY AVAILABILITY GROUP"),
		grant("CREATE ENDPOINT"),
		grant("ALTER ANY ENDPOINT"),
		grant("ALTER ANY LOGIN"),
		grant("CREATE ANY DATABASE"),
		grant("ALTER ANY DATABASE"),
		// In master.
		grant("CREATE CERTIFICATE"),
	}
}

// SetLoginPassword changes a login's password. The text contains it: never log it.
func SetLoginPassword(login, password string) string {
	return batch("ALTER LOGIN " + Ident(login) + " WITH PASSWORD = " + Literal(password))
}
