package engine

import "time"

// Transactions. A session has at most one; nesting is the executor's counter. Row changes are
// buffered in it and become one log record per database at Commit. A statement outside a
// transaction is Begin, the change, Commit.
//
// Readers see committed rows plus their own transaction's; they take no locks. Writers hold a
// table lock to the end of the transaction: call LockTable before reading the rows to be changed,
// wait for its WaitID, then Scan, Insert, Update, Delete.

// Begin opens a transaction; it is an error of the caller if one is open.
func (in *Instance) Begin(now time.Time, s SessionID) {}

// InTransaction tells whether the session has a transaction and when it began.
func (in *Instance) InTransaction(s SessionID) bool { return false }

// Commit hardens the transaction and waits for the group's commit rule. The transaction is closed
// in any case; an error means that nothing was committed, an error of the wait that the outcome is
// unknown to the client.
func (in *Instance) Commit(now time.Time, s SessionID) (WaitID, error) {
	return 0, unfinished("COMMIT")
}

// Rollback drops the transaction.
func (in *Instance) Rollback(now time.Time, s SessionID) {}

// Savepoint marks the present state of the transaction; RollbackTo goes back to it and tells
// whether it exists.
func (in *Instance) Savepoint(s SessionID, name string) {}

// RollbackTo undoes what the transaction did since the savepoint.
func (in *Instance) RollbackTo(s SessionID, name string) bool { return false }

// LockTable takes a table lock for the session's transaction: 1205 at once when waiting would
// close a cycle. The lock time-out (1222) is the executor's: CancelWait.
func (in *Instance) LockTable(now time.Time, s SessionID, db DatabaseID, table ObjectID, m LockMode) (WaitID, error) {
	return 0, unfinished("lock")
}

// CheckAccess tells whether the session may read (or write) the database now: 976, 978, 979, 983,
// 988, 3906, 916 and the database state errors.
func (in *Instance) CheckAccess(now time.Time, s SessionID, db DatabaseID, write bool) error {
	return unfinished("access")
}

// LookupDatabase finds a database by name, whatever its state.
func (in *Instance) LookupDatabase(name string) (DatabaseID, bool) { return 0, false }

// Tables lists the tables of a database as the session sees them, by object id.
func (in *Instance) Tables(now time.Time, s SessionID, db DatabaseID) ([]*Table, error) {
	return nil, unfinished("tables")
}

// LookupTable finds a table by schema and name (case-insensitive); nil if there is none.
func (in *Instance) LookupTable(now time.Time, s SessionID, db DatabaseID, schema, name string) (*Table, error) {
	return nil, unfinished("tables")
}

// Scan iterates the rows that the session sees. The sequence is valid only inside Host.Do.
func (in *Instance) Scan(now time.Time, s SessionID, db DatabaseID, table ObjectID) (RowSeq, error) {
	return nil, unfinished("scan")
}

// Seek finds the row with the given values of a key (index into Table.Keys, unique keys only).
func (in *Instance) Seek(now time.Time, s SessionID, db DatabaseID, table ObjectID, key int, values Row) (RowID, Row, error) {
	return 0, nil, unfinished("seek")
}

// Insert adds a row: 2627 (key), 2601 (unique index). NULL checks and conversions are the
// executor's. An identity column must already be filled (NextIdentity).
func (in *Instance) Insert(now time.Time, s SessionID, db DatabaseID, table ObjectID, r Row) (RowID, error) {
	return 0, unfinished("INSERT")
}

// Update replaces a row: 2627, 2601.
func (in *Instance) Update(now time.Time, s SessionID, db DatabaseID, table ObjectID, id RowID, r Row) error {
	return unfinished("UPDATE")
}

// Delete removes a row.
func (in *Instance) Delete(now time.Time, s SessionID, db DatabaseID, table ObjectID, id RowID) error {
	return unfinished("DELETE")
}

// Truncate is TRUNCATE TABLE.
func (in *Instance) Truncate(now time.Time, s SessionID, db DatabaseID, table ObjectID) error {
	return unfinished("TRUNCATE")
}

// NextIdentity draws the next identity value of a table; it is not given back by a rollback.
func (in *Instance) NextIdentity(db DatabaseID, table ObjectID) int64 { return 0 }

// SetIdentity moves the identity counter so that the next value follows v (IDENTITY_INSERT, RESEED).
func (in *Instance) SetIdentity(db DatabaseID, table ObjectID, v int64) {}

// CreateTable adds a table inside the transaction: 2714. ID is chosen by the engine.
func (in *Instance) CreateTable(now time.Time, s SessionID, db DatabaseID, t Table) (ObjectID, error) {
	return 0, unfinished("CREATE TABLE")
}

// AlterTable replaces the definition of a table and maps each row with convert (nil keeps it).
func (in *Instance) AlterTable(now time.Time, s SessionID, db DatabaseID, t Table, convert func(Row) Row) error {
	return unfinished("ALTER TABLE")
}

// DropTable drops a table inside the transaction.
func (in *Instance) DropTable(now time.Time, s SessionID, db DatabaseID, table ObjectID) error {
	return unfinished("DROP TABLE")
}

// Modules lists the stored definitions of a database, by object id.
func (in *Instance) Modules(now time.Time, s SessionID, db DatabaseID) ([]*Module, error) {
	return nil, unfinished("modules")
}

// PutModule creates or replaces a stored definition inside the transaction; ID 0 is chosen.
func (in *Instance) PutModule(now time.Time, s SessionID, db DatabaseID, m Module) (ObjectID, error) {
	return 0, unfinished("CREATE")
}

// DropModule drops one.
func (in *Instance) DropModule(now time.Time, s SessionID, db DatabaseID, id ObjectID) error {
	return unfinished("DROP")
}
