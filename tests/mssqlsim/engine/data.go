package engine

import "time"

// CheckAccess tells whether the session may read (or write) the database now: 976, 978, 979, 983,
// 988, 3906, 916 and the database state errors.
func (in *Instance) CheckAccess(now time.Time, id SessionID, db DatabaseID, write bool) error {
	in.begin(now)
	s := in.session(id)
	d := in.database(db)
	if err := in.enter(s, d, ""); err != nil {
		return err
	}
	return in.usable(s, d, write)
}

// usable checks the state of the database, whatever the rights.
func (in *Instance) usable(s *session, d *database, write bool) error {
	if s.dead {
		return killedError()
	}
	name := d.state.Name
	switch in.status(d) {
	case dbOffline:
		return msg(942, 14, 4, "Database '%s' cannot be opened because it is offline.", name)
	case dbSuspect:
		return msg(926, 14, 1, "Database '%s' cannot be opened. It has been marked SUSPECT by recovery. See the SQL Server errorlog for more information.", name)
	}
	if d.pending {
		return msg(945, 14, 2, "Database '%s' cannot be opened due to inaccessible files or insufficient memory or disk space.  See the SQL Server errorlog for details.", name)
	}
	if m := d.member; m != nil {
		if err := m.usable(s, write); err != nil {
			return err
		}
	} else if d.state.Restoring {
		return msg(927, 14, 2, "Database '%s' cannot be opened. It is in the middle of a restore.", name)
	}
	if d.recovering {
		return msg(922, 14, 1, "Database '%s' is being recovered. Waiting until recovery is finished.", name)
	}
	if write && (d.state.ReadOnly || d.state.Emergency) {
		return readOnly(d, 1)
	}
	return nil
}

func readOnly(d *database, state uint8) error {
	return msg(3906, 16, state, "Failed to update database \"%s\" because the database is read-only.", d.state.Name)
}

// open gives the session's view of a database after the checks.
func (in *Instance) open(now time.Time, id SessionID, db DatabaseID, write bool) (*session, view, error) {
	in.begin(now)
	s := in.session(id)
	d := in.database(db)
	if d == nil {
		return s, view{}, msg(911, 16, 1, "Database id %d does not exist.", db)
	}
	if err := in.usable(s, d, write); err != nil {
		return s, view{}, err
	}
	if write && s.txn == nil {
		return s, view{}, msg(3902, 16, 1, "There is no transaction to change database '%s' in.", d.state.Name)
	}
	return s, in.view(s, d), nil
}

// Tables lists the tables of a database as the session sees them, by object id.
func (in *Instance) Tables(now time.Time, id SessionID, db DatabaseID) ([]*Table, error) {
	_, v, err := in.open(now, id, db, false)
	if err != nil {
		return nil, err
	}
	return v.tables(), nil
}

// LookupTable finds a table by schema and name (case-insensitive); nil if there is none.
func (in *Instance) LookupTable(now time.Time, id SessionID, db DatabaseID, schema, name string) (*Table, error) {
	_, v, err := in.open(now, id, db, false)
	if err != nil {
		return nil, err
	}
	return v.lookup(schema, name), nil
}

func (v view) lookup(schema, name string) *Table {
	for _, t := range v.tables() {
		if equalName(t.Name, name) && equalName(t.Schema, schema) {
			return t
		}
	}
	return nil
}

func noObject(id ObjectID) error {
	return msg(208, 16, 1, "Invalid object id %d.", id)
}

// Scan iterates the rows that the session sees. The sequence is valid only inside Host.Do.
func (in *Instance) Scan(now time.Time, id SessionID, db DatabaseID, table ObjectID) (RowSeq, error) {
	_, v, err := in.open(now, id, db, false)
	if err != nil {
		return nil, err
	}
	if v.def(table) == nil {
		return nil, noObject(table)
	}
	return v.scan(table), nil
}

// Seek finds the row with the given values of a key (index into Table.Keys, unique keys only); a
// nil row means that there is none.
func (in *Instance) Seek(now time.Time, id SessionID, db DatabaseID, table ObjectID, key int, values Row) (RowID, Row, error) {
	_, v, err := in.open(now, id, db, false)
	if err != nil {
		return 0, nil, err
	}
	def := v.def(table)
	if def == nil || key < 0 || key >= len(def.Keys) || len(values) != len(def.Keys[key].Columns) {
		return 0, nil, noObject(table)
	}
	var b []byte
	for _, x := range values {
		b = x.AppendKey(b)
	}
	if o := v.own(table); o != nil {
		if r, ok := o.lookup(key, string(b)); ok {
			return r, o.get(r), nil
		}
		return 0, nil, nil
	}
	t := v.db.content.table(table)
	if r, ok := t.keys[key][string(b)]; ok {
		return r, t.get(r), nil
	}
	return 0, nil, nil
}

// change opens a table for writing by the session's transaction.
func (in *Instance) change(now time.Time, id SessionID, db DatabaseID, table ObjectID) (*part, *overlay, error) {
	s, v, err := in.open(now, id, db, true)
	if err != nil {
		return nil, nil, err
	}
	if err := in.lockNow(s, v.db, table); err != nil {
		return nil, nil, err
	}
	p := s.txn.part(v.db)
	o := p.overlay(table)
	if o == nil {
		return nil, nil, noObject(table)
	}
	return p, o, nil
}

// lockNow takes the exclusive lock if the caller forgot to, and never waits.
func (in *Instance) lockNow(s *session, d *database, table ObjectID) error {
	t := d.locks.get(table)
	if h := t.held(s.txn); h != nil && h.mode == LockExclusive {
		return nil
	}
	if !t.compatible(s.txn, LockExclusive) || len(t.queue) > 0 {
		return msg(1222, 16, 51, "Lock request time out period exceeded.")
	}
	t.grant(s.txn, LockExclusive)
	return nil
}

// Insert adds a row: 2627 (key), 2601 (unique index). NULL checks and conversions are the
// executor's. An identity column must already be filled (NextIdentity).
func (in *Instance) Insert(now time.Time, id SessionID, db DatabaseID, table ObjectID, r Row) (RowID, error) {
	p, o, err := in.change(now, id, db, table)
	if err != nil {
		return 0, err
	}
	if err := o.conflict(0, r); err != nil {
		return 0, err
	}
	row := o.nextRow
	c := Change{Op: OpInsert, Object: table, Row: row, Values: r}
	for i := range o.def.Columns {
		if o.def.Columns[i].Identity {
			c.Identity = p.db.identity(o.def, r[i].Int64())
		}
	}
	p.replay(c)
	return row, nil
}

// identity is the counter that a record carries so that every replica goes on from it.
func (d *database) identity(def *Table, v int64) int64 {
	if t := d.content.table(def.ID); t != nil {
		return t.identity
	}
	return v
}

// Update replaces a row: 2627, 2601.
func (in *Instance) Update(now time.Time, id SessionID, db DatabaseID, table ObjectID, row RowID, r Row) error {
	p, o, err := in.change(now, id, db, table)
	if err != nil {
		return err
	}
	if o.get(row) == nil {
		return nil
	}
	if err := o.conflict(row, r); err != nil {
		return err
	}
	p.replay(Change{Op: OpUpdate, Object: table, Row: row, Values: r})
	return nil
}

// Delete removes a row.
func (in *Instance) Delete(now time.Time, id SessionID, db DatabaseID, table ObjectID, row RowID) error {
	p, o, err := in.change(now, id, db, table)
	if err != nil {
		return err
	}
	if o.get(row) == nil {
		return nil
	}
	p.replay(Change{Op: OpDelete, Object: table, Row: row})
	return nil
}

// Truncate is TRUNCATE TABLE.
func (in *Instance) Truncate(now time.Time, id SessionID, db DatabaseID, table ObjectID) error {
	p, _, err := in.change(now, id, db, table)
	if err != nil {
		return err
	}
	p.replay(Change{Op: OpTruncate, Object: table})
	return nil
}

// NextIdentity draws the next identity value of a table; it is not given back by a rollback.
// Outside the committed content (a table made in the same transaction) it draws from the session's
// own counter.
func (in *Instance) NextIdentity(id SessionID, db DatabaseID, table ObjectID) int64 {
	c, def := in.identityCounter(id, db, table)
	if c == nil {
		return 0
	}
	for i := range def.Columns {
		if def.Columns[i].Identity {
			*c += def.Columns[i].Step
		}
	}
	return *c
}

func (in *Instance) identityCounter(id SessionID, db DatabaseID, table ObjectID) (*int64, *Table) {
	d := in.database(db)
	if d == nil || d.content == nil {
		return nil, nil
	}
	v := in.view(in.session(id), d)
	def := v.def(table)
	if def == nil {
		return nil, nil
	}
	if t := d.content.table(table); t != nil {
		return &t.identity, def
	}
	o := v.own(table)
	if !o.counting {
		o.counting = true
		for _, c := range def.Columns {
			if c.Identity {
				o.identity = c.Seed - c.Step
			}
		}
	}
	return &o.identity, def
}

// SetIdentity moves the identity counter so that the next value follows v (IDENTITY_INSERT, RESEED).
func (in *Instance) SetIdentity(id SessionID, db DatabaseID, table ObjectID, v int64) {
	if c, _ := in.identityCounter(id, db, table); c != nil {
		*c = v
	}
}

// IdentityValue is the last value drawn (IDENT_CURRENT).
func (in *Instance) IdentityValue(id SessionID, db DatabaseID, table ObjectID) int64 {
	if c, _ := in.identityCounter(id, db, table); c != nil {
		return *c
	}
	return 0
}

// catalog opens the catalog of a database for a change by the session's transaction.
func (in *Instance) catalog(now time.Time, id SessionID, db DatabaseID) (*part, view, error) {
	s, v, err := in.open(now, id, db, true)
	if err != nil {
		return nil, v, err
	}
	if err := in.lockNow(s, v.db, 0); err != nil {
		return nil, v, err
	}
	p := s.txn.part(v.db)
	return p, view{db: v.db, part: p}, nil
}

// nextObject draws an object id.
func (v view) nextObject() ObjectID {
	n := max(v.db.content.nextObject, 901578250)
	if v.part != nil {
		for id := range v.part.tables {
			n = max(n, id+1)
		}
		for i := range v.part.changes {
			if m := v.part.changes[i].Module; m != nil {
				n = max(n, m.ID+1)
			}
		}
	}
	return n
}

// CreateTable adds a table inside the transaction: 2714. ID is chosen by the engine.
func (in *Instance) CreateTable(now time.Time, id SessionID, db DatabaseID, t Table) (ObjectID, error) {
	p, v, err := in.catalog(now, id, db)
	if err != nil {
		return 0, err
	}
	if v.lookup(t.Schema, t.Name) != nil || v.module(t.Schema, t.Name) != nil {
		return 0, msg(2714, 16, 6, "There is already an object named '%s' in the database.", t.Name)
	}
	t.ID = v.nextObject()
	if err := in.lockNow(in.session(id), v.db, t.ID); err != nil {
		return 0, err
	}
	p.replay(Change{Op: OpCreateTable, Table: &t})
	return t.ID, nil
}

// AlterTable replaces the definition of a table and maps each row with convert (nil keeps it).
func (in *Instance) AlterTable(now time.Time, id SessionID, db DatabaseID, t Table, convert func(Row) Row) error {
	if _, _, err := in.change(now, id, db, t.ID); err != nil {
		return err
	}
	p, v, err := in.catalog(now, id, db)
	if err != nil {
		return err
	}
	var rows []tableRow
	for rid, r := range v.scan(t.ID) {
		if convert != nil {
			r = convert(r)
		}
		rows = append(rows, tableRow{rid, r})
	}
	mark := len(p.changes)
	before := p.tables[t.ID]
	p.replay(Change{Op: OpAlterTable, Table: &t})
	for _, r := range rows {
		if err := p.overlay(t.ID).conflict(0, r.row); err != nil {
			p.changes, p.tables[t.ID] = p.changes[:mark], before
			return err
		}
		c := Change{Op: OpInsert, Object: t.ID, Row: r.id, Values: r.row}
		for i := range t.Columns {
			if t.Columns[i].Identity {
				c.Identity = v.db.identity(&t, r.row[i].Int64())
			}
		}
		p.replay(c)
	}
	return nil
}

// DropTable drops a table inside the transaction.
func (in *Instance) DropTable(now time.Time, id SessionID, db DatabaseID, table ObjectID) error {
	p, _, err := in.change(now, id, db, table)
	if err != nil {
		return err
	}
	p.replay(Change{Op: OpDropTable, Object: table})
	return nil
}

// modules are the stored definitions that the session sees.
func (v view) modules() []*Module {
	l := append([]*Module(nil), v.db.content.modules...)
	if v.part == nil {
		return l
	}
	c := content{modules: l}
	for i := range v.part.changes {
		if op := v.part.changes[i].Op; op == OpPutModule || op == OpDropModule {
			c.change(&v.part.changes[i])
		}
	}
	return c.modules
}

func (v view) module(schema, name string) *Module {
	for _, m := range v.modules() {
		if equalName(m.Name, name) && equalName(m.Schema, schema) {
			return m
		}
	}
	return nil
}

// Modules lists the stored definitions of a database, by object id.
func (in *Instance) Modules(now time.Time, id SessionID, db DatabaseID) ([]*Module, error) {
	_, v, err := in.open(now, id, db, false)
	if err != nil {
		return nil, err
	}
	return v.modules(), nil
}

// PutModule creates or replaces a stored definition inside the transaction; ID 0 is chosen: 2714.
func (in *Instance) PutModule(now time.Time, id SessionID, db DatabaseID, m Module) (ObjectID, error) {
	p, v, err := in.catalog(now, id, db)
	if err != nil {
		return 0, err
	}
	if m.ID == 0 {
		if v.module(m.Schema, m.Name) != nil || v.lookup(m.Schema, m.Name) != nil {
			return 0, msg(2714, 16, 6, "There is already an object named '%s' in the database.", m.Name)
		}
		m.ID = v.nextObject()
	}
	p.replay(Change{Op: OpPutModule, Module: &m})
	return m.ID, nil
}

// DropModule drops one.
func (in *Instance) DropModule(now time.Time, id SessionID, db DatabaseID, module ObjectID) error {
	p, _, err := in.catalog(now, id, db)
	if err != nil {
		return err
	}
	p.replay(Change{Op: OpDropModule, Object: module})
	return nil
}
