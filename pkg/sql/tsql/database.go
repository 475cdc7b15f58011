package tsql

// CreateDatabase creates a database where the name is free, in the full recovery
// model, and makes its first full backup to NUL: a group takes no other (1465,
// 1475; FG 4.10). Only for a brand-new database: a backup to NUL would become the
// base of the log chain of one that has a history.
//
// The three batches run in this order; each is idempotent.
func CreateDatabase(name string) []string {
	return []string{
		when("NOT EXISTS (SELECT 1 FROM sys.databases WHERE name = "+Literal(name)+")", "CREATE DATABASE "+Ident(name)) + ";",
		SetRecoveryFull(name),
		BackupToNull(name),
	}
}

// SetRecoveryFull sets the full recovery model where it is another one.
func SetRecoveryFull(name string) string {
	return when("EXISTS (SELECT 1 FROM sys.databases WHERE name = "+Literal(name)+" AND recovery_model_desc <> N'FULL')",
		"ALTER DATABASE "+Ident(name)+" SET RECOVERY FULL") + ";"
}

// BackupToNull is the first full backup of a brand-new database: see [CreateDatabase].
func BackupToNull(name string) string {
	return batch("BACKUP DATABASE " + Ident(name) + " TO DISK = N'NUL'")
}

// AddDatabase is ADD DATABASE on the primary; nothing when the group has it.
func AddDatabase(group, name string) string {
	return when("NOT EXISTS ("+groupDatabase(group, name)+")", alter(group, "ADD DATABASE "+Ident(name))) + ";"
}

// RemoveDatabase is REMOVE DATABASE on the primary: online there, RESTORING elsewhere (FG 4.10).
func RemoveDatabase(group, name string) string {
	return when("EXISTS ("+groupDatabase(group, name)+")", alter(group, "REMOVE DATABASE "+Ident(name))) + ";"
}

// ResumeDatabase resumes data movement of one copy (FG 4.8). On a former primary it
// discards the divergent tail (FG 4.9).
func ResumeDatabase(name string) string {
	return batch("ALTER DATABASE " + Ident(name) + " SET HADR RESUME")
}

// SuspendDatabase suspends it: all copies when on the primary.
func SuspendDatabase(name string) string {
	return batch("ALTER DATABASE " + Ident(name) + " SET HADR SUSPEND")
}

func groupDatabase(group, name string) string {
	return "SELECT 1 FROM sys.availability_databases_cluster AS d JOIN sys.availability_groups AS g ON g.group_id = d.group_id" +
		" WHERE g.name = " + Literal(group) + " AND d.database_name = " + Literal(name)
}
