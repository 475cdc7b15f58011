package tsql

import (
	"slices"
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// rowReader reads the rows of the table that is altered.
type rowReader func() ([]engine.Row, error)

// alteration changes a copy of a table's definition and may give a mapping of its rows.
type alteration func(t *engine.Table, rows rowReader) (func(engine.Row) engine.Row, error)

// alter changes the definition of a table; fn gets a copy and may give a row mapping.
func (ex *exec) alter(o objName, fn alteration) error {
	if strings.HasPrefix(o.name, "#") {
		return ex.do(func() error {
			m := ex.s.temp[strings.ToLower(o.name)]
			if m == nil {
				return errAlter(o)
			}
			t := copyTable(m.def)
			conv, err := fn(t, func() ([]engine.Row, error) { return m.data, nil })
			if err != nil {
				return err
			}
			m.def = t
			if conv != nil {
				for i := range m.data {
					m.data[i] = conv(m.data[i])
				}
			}
			m.reindex()
			return nil
		})
	}
	if ex.s.doomed {
		return errDoomed()
	}
	auto := false
	var lock engine.WaitID
	find := func() (engine.DatabaseID, *engine.Table, error) {
		db, _, err := ex.database(o)
		if err != nil {
			return 0, nil, errAlter(o)
		}
		if err := ex.in.CheckAccess(ex.hst, ex.s.id, db, true); engine.Failed(err) {
			return 0, nil, err
		}
		schema := o.schema
		if schema == "" {
			schema = "dbo"
		}
		t, err := ex.in.LookupTable(ex.hst, ex.s.id, db, schema, o.name)
		if err != nil {
			return 0, nil, err
		}
		if t == nil || !ex.in.DatabasePermitted(ex.s.id, db, t.ID, "ALTER") {
			return 0, nil, errAlter(o)
		}
		return db, t, nil
	}
	err := ex.do(func() error {
		db, t, err := find()
		if err != nil {
			return err
		}
		auto = ex.begin()
		lock, err = ex.in.LockTable(ex.hst, ex.s.id, db, t.ID, engine.LockExclusive)
		return err
	})
	if err == nil {
		err = ex.waitLock(lock)
	}
	if err == nil {
		err = ex.do(func() error {
			db, t, err := find()
			if err != nil {
				return err
			}
			t = copyTable(t)
			st := &engineTable{ex: ex, db: db, def: t}
			conv, err := fn(t, func() ([]engine.Row, error) {
				_, rows, err := st.scan()
				return rows, err
			})
			if err != nil {
				return err
			}
			return ex.in.AlterTable(ex.hst, ex.s.id, db, *t, conv)
		})
	}
	return ex.finish(auto, err)
}

func errAlter(o objName) error {
	return errNum(4902, 16, 1, "Cannot find the object \"%s\" because it does not exist or you do not have permissions.", o.String())
}

func copyTable(t *engine.Table) *engine.Table {
	c := *t
	c.Columns = append([]engine.Column(nil), t.Columns...)
	c.Keys = append([]engine.Key(nil), t.Keys...)
	c.Checks = append([]engine.Check(nil), t.Checks...)
	c.Foreign = append([]engine.ForeignKey(nil), t.Foreign...)
	return &c
}

func (ex *exec) alterTable(s *alterTableStmt) error {
	return ex.alter(s.obj, func(t *engine.Table, rows rowReader) (func(engine.Row) engine.Row, error) {
		switch s.verb {
		case "ADD":
			return ex.addColumns(t, s, rows)
		case "ADD DEFAULT":
			for _, d := range s.cols {
				at := findColumn(t, d.name)
				if at < 0 {
					return nil, errNum(1752, 16, 0, "Column '%s' in table '%s' is invalid for creating a default constraint.", d.name, t.Name)
				}
				if t.Columns[at].Default != "" {
					return nil, errNum(1781, 16, 1, "Column already has a DEFAULT bound to it.")
				}
				t.Columns[at].Default, t.Columns[at].DefaultName = d.dfltText, d.dfltName
				if d.dfltName == "" {
					t.Columns[at].DefaultName = constraintName("DF", t.Name, d.name)
				}
			}
			return nil, nil
		case "DROP COLUMN":
			return dropColumns(t, s)
		case "DROP CONSTRAINT":
			return nil, dropConstraints(t, s)
		}
		return alterColumn(t, &s.cols[0], rows)
	})
}

func (ex *exec) addColumns(t *engine.Table, s *alterTableStmt, rows rowReader) (func(engine.Row) engine.Row, error) {
	var fill []value
	for i := range s.cols {
		d := &s.cols[i]
		c, err := columnOf(t, d)
		if err != nil {
			return nil, err
		}
		if findColumn(t, c.Name) >= 0 {
			return nil, errNum(2705, 16, 4, "Column names in each table must be unique. Column name '%s' in table '%s' is specified more than once.", c.Name, t.Name)
		}
		v := sqltypes.Null(c.Type)
		switch {
		case c.Identity:
			return nil, errNum(2744, 16, 2, "Multiple identity columns specified for table '%s'. Only one identity column per table is allowed.", t.Name)
		case !c.Nullable && c.Default == "":
			if l, err := rows(); err != nil || len(l) == 0 {
				if err != nil {
					return nil, err
				}
				break
			}
			return nil, errNum(4901, 16, 1, "ALTER TABLE only allows columns to be added that can contain nulls, or have a DEFAULT definition specified, or the column being added is an identity or timestamp column, or alternatively if none of the previous conditions are satisfied the table must be empty to allow addition of this column. Column '%s' cannot be added to non-empty table '%s' because it does not satisfy these conditions.", c.Name, t.Name)
		case !c.Nullable:
			if v, err = ex.defaultOf(&c); err == nil {
				v, err = convertImplicit(v, c.Type)
			}
			if err != nil {
				return nil, err
			}
		}
		fill = append(fill, v)
		t.Columns = append(t.Columns, c)
	}
	for i := range s.constraints {
		if s.constraints[i].kind == "FOREIGN KEY" {
			db, _, err := ex.database(s.obj)
			if err != nil {
				return nil, err
			}
			if err := ex.addForeignKey(db, t, &s.constraints[i]); err != nil {
				return nil, err
			}
			continue
		}
		if err := addConstraint(t, &s.constraints[i]); err != nil {
			return nil, err
		}
	}
	if err := ex.valid(s, t, rows, fill); err != nil {
		return nil, err
	}
	if len(fill) == 0 {
		return nil, nil
	}
	return func(r engine.Row) engine.Row {
		return append(append(make(engine.Row, 0, len(r)+len(fill)), r...), fill...)
	}, nil
}

// valid checks the rows of an altered table against its constraints (547).
func (ex *exec) valid(s *alterTableStmt, t *engine.Table, rows rowReader, fill []value) error {
	if len(s.constraints) == 0 {
		return nil
	}
	db, name, err := ex.database(s.obj)
	if err != nil {
		return err
	}
	ck, err := ex.checker("ALTER TABLE", &resolved{db: db, dbName: name, table: t}, t)
	if err != nil {
		return err
	}
	l, err := rows()
	if err != nil {
		return err
	}
	for _, r := range l {
		if err := ck.row(append(append(engine.Row(nil), r...), fill...), nil); err != nil {
			return err
		}
	}
	return ck.done()
}

func dropColumns(t *engine.Table, s *alterTableStmt) (func(engine.Row) engine.Row, error) {
	gone := map[int]bool{}
	for _, n := range s.names {
		at := findColumn(t, n)
		if at < 0 {
			if s.ifExists {
				continue
			}
			return nil, errNum(4924, 16, 1, "ALTER TABLE DROP COLUMN failed because column '%s' does not exist in table '%s'.", n, t.Name)
		}
		for _, k := range t.Keys {
			for _, c := range k.Columns {
				if c == at {
					return nil, errNum(5074, 16, 1, "The object '%s' is dependent on column '%s'.", k.Name, n)
				}
			}
		}
		if t.Columns[at].Default != "" {
			return nil, errNum(5074, 16, 1, "The object '%s' is dependent on column '%s'.", t.Columns[at].DefaultName, n)
		}
		for _, fk := range t.Foreign {
			if slices.Contains(fk.Columns, at) {
				return nil, errNum(5074, 16, 1, "The object '%s' is dependent on column '%s'.", fk.Name, n)
			}
		}
		gone[at] = true
	}
	if len(gone) >= len(t.Columns) {
		return nil, errNum(4923, 16, 1, "ALTER TABLE DROP COLUMN failed because '%s' is the only data column in table '%s'. A table must have at least one data column.", s.names[0], t.Name)
	}
	var keep []int
	moved := make([]int, len(t.Columns))
	var cols []engine.Column
	for i, c := range t.Columns {
		if !gone[i] {
			moved[i] = len(keep)
			keep = append(keep, i)
			cols = append(cols, c)
		}
	}
	t.Columns = cols
	for i, k := range t.Keys {
		l := make([]int, len(k.Columns))
		for j, c := range k.Columns {
			l[j] = moved[c]
		}
		t.Keys[i].Columns = l
	}
	for i, fk := range t.Foreign {
		l := make([]int, len(fk.Columns))
		for j, c := range fk.Columns {
			l[j] = moved[c]
		}
		t.Foreign[i].Columns = l
	}
	return func(r engine.Row) engine.Row {
		out := make(engine.Row, len(keep))
		for i, k := range keep {
			out[i] = r[k]
		}
		return out
	}, nil
}

func dropConstraints(t *engine.Table, s *alterTableStmt) error {
names:
	for _, n := range s.names {
		for i, k := range t.Keys {
			if equalName(k.Name, n) {
				t.Keys = append(t.Keys[:i:i], t.Keys[i+1:]...)
				continue names
			}
		}
		for i, k := range t.Checks {
			if equalName(k.Name, n) {
				t.Checks = append(t.Checks[:i:i], t.Checks[i+1:]...)
				continue names
			}
		}
		for i, k := range t.Foreign {
			if equalName(k.Name, n) {
				t.Foreign = append(t.Foreign[:i:i], t.Foreign[i+1:]...)
				continue names
			}
		}
		for i := range t.Columns {
			if t.Columns[i].Default != "" && equalName(t.Columns[i].DefaultName, n) {
				t.Columns[i].Default, t.Columns[i].DefaultName = "", ""
				continue names
			}
		}
		if !s.ifExists {
			return errNum(3728, 16, 1, "'%s' is not a constraint.", n)
		}
	}
	return nil
}

func alterColumn(t *engine.Table, d *columnDef, rows rowReader) (func(engine.Row) engine.Row, error) {
	at := findColumn(t, d.name)
	if at < 0 {
		return nil, errNum(4924, 16, 1, "ALTER TABLE ALTER COLUMN failed because column '%s' does not exist in table '%s'.", d.name, t.Name)
	}
	c := &t.Columns[at]
	c.Type, c.Nullable = d.typ, !d.notNull
	l, err := rows()
	if err != nil {
		return nil, err
	}
	// every value is converted before anything changes, so the mapping cannot fail
	converted := make(map[value]value, len(l))
	for _, r := range l {
		v, err := storeValue(t, c, r[at])
		if err != nil {
			return nil, err
		}
		converted[r[at]] = v
	}
	return func(r engine.Row) engine.Row {
		out := append(engine.Row(nil), r...)
		out[at] = converted[r[at]]
		return out
	}, nil
}
