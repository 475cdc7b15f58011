package tsql

import (
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// constraintName makes the name that the product generates: kind, table, column and eight digits.
func constraintName(kind, table, column string) string {
	cut := func(s string, n int) string { return sqltypes.CutText(strings.TrimPrefix(s, "#"), n) }
	h := fnv.New32a()
	fmt.Fprintf(h, "%s|%s|%s", kind, table, column)
	parts := kind + "__" + cut(table, 9)
	if column != "" {
		parts += "__" + cut(column, 5)
	}
	return fmt.Sprintf("%s__%08X", parts, h.Sum32())
}

// tableOf makes a table definition.
func (ex *exec) tableOf(o objName, d *tableDef) (*engine.Table, error) {
	t := &engine.Table{Schema: "dbo", Name: o.name}
	if o.schema != "" {
		t.Schema = o.schema
	}
	identity := false
	for i := range d.cols {
		c, err := columnOf(t, &d.cols[i])
		if err != nil {
			return nil, err
		}
		if c.Identity {
			if identity {
				return nil, errBind(o.line, 2744, 16, 2, "Multiple identity columns specified for table '%s'. Only one identity column per table is allowed.", t.Name)
			}
			identity = true
		}
		if findColumn(t, c.Name) >= 0 {
			return nil, errBind(o.line, 2705, 16, 3, "Column names in each table must be unique. Column name '%s' in table '%s' is specified more than once.", c.Name, t.Name)
		}
		t.Columns = append(t.Columns, c)
	}
	for i := range d.constraints {
		if d.constraints[i].kind == "FOREIGN KEY" {
			continue
		}
		if err := addConstraint(t, &d.constraints[i]); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// foreignKeys adds the FOREIGN KEY constraints of a definition; tables of the session have none.
func (ex *exec) foreignKeys(db engine.DatabaseID, t *engine.Table, l []constraintDef) error {
	for i := range l {
		if l[i].kind == "FOREIGN KEY" {
			if err := ex.addForeignKey(db, t, &l[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// columnOf makes a column.
func columnOf(t *engine.Table, d *columnDef) (engine.Column, error) {
	c := engine.Column{Name: d.name, Type: d.typ, Nullable: !d.notNull && d.typ.ID != sqltypes.SysName || d.nullable, Identity: d.identity, Seed: d.seed, Step: d.step, Default: d.dfltText, DefaultName: d.dfltName}
	if c.Identity {
		if !(d.typ.IsInteger() && d.typ.ID != sqltypes.Bit || d.typ.IsDecimal() && d.typ.Scale == 0) {
			return c, errBind(d.line, 2749, 16, 2, "Identity column '%s' must be of data type int, bigint, smallint, tinyint, or decimal or numeric with a scale of 0, unencrypted, and constrained to be nonnullable.", d.name)
		}
		if c.Step == 0 {
			return c, errBind(d.line, 2717, 16, 1, "The increment of an identity column must not be 0.")
		}
		c.Nullable = false
	}
	if c.Default != "" && c.DefaultName == "" {
		c.DefaultName = constraintName("DF", t.Name, d.name)
	}
	return c, nil
}

func addConstraint(t *engine.Table, d *constraintDef) error {
	if d.kind == "CHECK" {
		c := engine.Check{Name: d.name, Text: d.text}
		if c.Name == "" {
			c.Name = constraintName("CK", t.Name, strings.Join(d.cols, ","))
		}
		t.Checks = append(t.Checks, c)
		return nil
	}
	k := engine.Key{Name: d.name, Primary: d.kind == "PRIMARY KEY", Unique: d.kind != "INDEX", Clustered: d.clustered}
	for _, n := range d.cols {
		at := findColumn(t, n)
		if at < 0 {
			return errBind(0, 1911, 16, 1, "Column name '%s' does not exist in the target table or view.", n)
		}
		k.Columns = append(k.Columns, at)
		if k.Primary {
			t.Columns[at].Nullable = false
		}
	}
	for _, o := range t.Keys {
		if o.Primary && k.Primary {
			return errBind(0, 8110, 16, 0, "Cannot add multiple PRIMARY KEY constraints to table '%s'.", t.Name)
		}
		if k.Name != "" && equalName(o.Name, k.Name) {
			return errBind(0, 1913, 16, 1, "The operation failed because an index or statistics with name '%s' already exists on table '%s'.", k.Name, t.Name)
		}
	}
	if k.Name == "" {
		kind := "UQ"
		if k.Primary {
			kind = "PK"
		}
		k.Name = constraintName(kind, t.Name, strings.Join(d.cols, ","))
		if k.Primary {
			k.Name = constraintName(kind, t.Name, "")
		}
	}
	t.Keys = append(t.Keys, k)
	return nil
}

// ddl runs fn as one transaction of the session, or inside the one that is open.
func (ex *exec) ddl(fn func() error) error {
	if ex.s.doomed {
		return errDoomed()
	}
	auto := false
	err := ex.do(func() error {
		auto = ex.begin()
		const mark = "\x00statement"
		ex.in.Savepoint(ex.s.id, mark)
		err := fn()
		if err != nil {
			ex.in.RollbackTo(ex.s.id, mark)
		}
		return err
	})
	return ex.finish(auto, err)
}

// mayDefine checks the right to create or alter objects in a database (262, 1088).
func (ex *exec) mayDefine(db engine.DatabaseID, dbName, permission string) error {
	if err := ex.in.CheckAccess(ex.hst, ex.s.id, db, true); engine.Failed(err) {
		return err
	}
	if !ex.in.DatabasePermitted(ex.s.id, db, 0, permission) {
		return errNum(262, 14, 1, "%s permission denied in database '%s'.", permission, dbName)
	}
	return nil
}

func (ex *exec) createTable(s *createTableStmt) error {
	if strings.HasPrefix(s.obj.name, "#") {
		return ex.createTemp(s.obj, &s.def)
	}
	return ex.ddl(func() error {
		db, dbName, err := ex.database(s.obj)
		if err != nil {
			return errNum(911, 16, 1, "Database '%s' does not exist. Make sure that the name is entered correctly.", s.obj.db)
		}
		if err := ex.mayDefine(db, dbName, "CREATE TABLE"); err != nil {
			return err
		}
		t, err := ex.tableOf(s.obj, &s.def)
		if err != nil {
			return err
		}
		if err := ex.freeName(db, t.Schema, t.Name); err != nil {
			return err
		}
		if err := ex.foreignKeys(db, t, s.def.constraints); err != nil {
			return err
		}
		if _, err := ex.checker("INSERT", &resolved{db: db}, t); err != nil {
			return err
		}
		_, err = ex.in.CreateTable(ex.hst, ex.s.id, db, *t)
		return err
	})
}

// freeName fails with 2714 when a module has the name; tables are the engine's to check.
func (ex *exec) freeName(db engine.DatabaseID, schema, name string) error {
	for _, typ := range [...]string{"V", "P", "FN"} {
		m, err := ex.module(db, schema, name, typ)
		if err != nil {
			return err
		}
		if m != nil {
			return errNum(2714, 16, 6, "There is already an object named '%s' in the database.", name)
		}
	}
	return nil
}

func (ex *exec) createTemp(o objName, d *tableDef) error {
	key := strings.ToLower(o.name)
	if ex.s.temp[key] != nil {
		return errNum(2714, 16, 6, "There is already an object named '%s' in the database.", o.name)
	}
	return ex.do(func() error {
		t, err := ex.tableOf(o, d)
		if err != nil {
			return err
		}
		ex.s.tempID--
		t.ID = -1_000_000_000 + ex.s.tempID
		ex.s.temp[key] = newMemTable(t)
		return nil
	})
}

// selectInto makes a table of a result and fills it.
func (ex *exec) selectInto(bq *boundQuery, rows []engine.Row) error {
	o := *bq.into
	t := &engine.Table{Schema: "dbo", Name: o.name}
	if o.schema != "" {
		t.Schema = o.schema
	}
	for i, c := range bq.cols {
		if c.Name == "" {
			return errBind(o.line, 1038, 15, 5, "An object or column name is missing or empty. For SELECT INTO statements, verify each column has a name. For other statements, look for empty alias names. Aliases defined as \"\" or [] are not allowed. Change the alias to a valid name.")
		}
		if findColumn(t, c.Name) >= 0 {
			return errBind(o.line, 2705, 16, 3, "Column names in each table must be unique. Column name '%s' in table '%s' is specified more than once.", c.Name, t.Name)
		}
		t.Columns = append(t.Columns, engine.Column{Name: bq.cols[i].Name, Type: c.Type, Nullable: c.Nullable})
	}
	for _, r := range rows {
		for i := range r {
			v, err := coerce(r[i], t.Columns[i].Type)
			if err != nil {
				return err
			}
			r[i] = v
		}
	}
	if strings.HasPrefix(o.name, "#") {
		key := strings.ToLower(o.name)
		if ex.s.temp[key] != nil {
			return errNum(2714, 16, 6, "There is already an object named '%s' in the database.", o.name)
		}
		ex.s.tempID--
		t.ID = -1_000_000_000 + ex.s.tempID
		m := newMemTable(t)
		for _, r := range rows {
			if err := m.insert(r); err != nil {
				return err
			}
		}
		ex.s.temp[key] = m
		ex.done(cmdSelect, int64(len(rows)), true)
		return nil
	}
	if err := ex.ddl(func() error {
		db, dbName, err := ex.database(o)
		if err != nil {
			return err
		}
		if err := ex.mayDefine(db, dbName, "CREATE TABLE"); err != nil {
			return err
		}
		id, err := ex.in.CreateTable(ex.hst, ex.s.id, db, *t)
		if err != nil {
			return err
		}
		for _, r := range rows {
			if _, err := ex.in.Insert(ex.hst, ex.s.id, db, id, r); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	ex.done(cmdSelect, int64(len(rows)), true)
	return nil
}

func (ex *exec) dropObjects(s *dropObjectStmt) error {
	if s.kind == "INDEX" {
		return ex.dropIndex(s)
	}
	for _, o := range s.objs {
		if strings.HasPrefix(o.name, "#") && s.kind == "TABLE" {
			key := strings.ToLower(o.name)
			if ex.s.temp[key] == nil {
				if s.ifExists {
					continue
				}
				return errDrop("table", o.name)
			}
			delete(ex.s.temp, key)
			continue
		}
		if err := ex.ddl(func() error { return ex.dropObject(s, o) }); err != nil {
			return err
		}
	}
	return nil
}

func errDrop(kind, name string) error {
	return errNum(3701, 11, 5, "Cannot drop the %s '%s', because it does not exist or you do not have permission.", kind, name)
}

func (ex *exec) dropObject(s *dropObjectStmt, o objName) error {
	kind := strings.ToLower(s.kind)
	missing := func() error {
		if s.ifExists {
			return nil
		}
		return errDrop(kind, o.name)
	}
	db, _, err := ex.database(o)
	if err != nil {
		return missing()
	}
	if err := ex.in.CheckAccess(ex.hst, ex.s.id, db, true); engine.Failed(err) {
		return err
	}
	schema := o.schema
	if schema == "" {
		schema = "dbo"
	}
	if s.kind == "TABLE" {
		t, err := ex.in.LookupTable(ex.hst, ex.s.id, db, schema, o.name)
		if err != nil {
			return err
		}
		if t == nil || !ex.in.DatabasePermitted(ex.s.id, db, t.ID, "ALTER") {
			return missing()
		}
		if ref, err := ex.referenced(db, t); err != nil || ref {
			if err != nil {
				return err
			}
			return errNum(3726, 16, 1, "Could not drop object '%s' because it is referenced by a FOREIGN KEY constraint.", o.String())
		}
		return ex.in.DropTable(ex.hst, ex.s.id, db, t.ID)
	}
	typ := map[string]string{"VIEW": "V", "PROCEDURE": "P", "FUNCTION": "FN", "TRIGGER": "TR"}[s.kind]
	if typ == "" {
		return missing()
	}
	m, err := ex.module(db, schema, o.name, typ)
	if err != nil {
		return err
	}
	if m == nil || !ex.in.DatabasePermitted(ex.s.id, db, m.ID, "ALTER") {
		return missing()
	}
	return ex.in.DropModule(ex.hst, ex.s.id, db, m.ID)
}

func (ex *exec) createIndex(s *createIndexStmt) error {
	return ex.alter(s.table, func(t *engine.Table, rows rowReader) (func(engine.Row) engine.Row, error) {
		kind := "INDEX"
		if s.unique {
			kind = "UNIQUE"
		}
		return nil, addConstraint(t, &constraintDef{name: s.name, kind: kind, cols: s.cols, clustered: s.clustered})
	})
}

func (ex *exec) dropIndex(s *dropObjectStmt) error {
	name := s.objs[0].name
	err := ex.alter(s.table, func(t *engine.Table, rows rowReader) (func(engine.Row) engine.Row, error) {
		for i, k := range t.Keys {
			if !equalName(k.Name, name) {
				continue
			}
			if k.Primary {
				return nil, errNum(3723, 16, 4, "An explicit DROP INDEX is not allowed on index '%s.%s'. It is being used for PRIMARY KEY constraint enforcement.", t.Name, name)
			}
			t.Keys = append(t.Keys[:i:i], t.Keys[i+1:]...)
			return nil, nil
		}
		return nil, errNum(3701, 11, 7, "Cannot drop the index '%s.%s', because it does not exist or you do not have permission.", t.Name, name)
	})
	if err != nil && s.ifExists {
		switch asStmtError(err).m.Number {
		case 3701, 4902:
			return nil
		}
	}
	return err
}

// createModule stores a procedure or a view.
func (ex *exec) createModule(s *createModuleStmt) error {
	if strings.HasPrefix(s.obj.name, "#") {
		return errBind(s.obj.line, 102, 15, 1, "Incorrect syntax near '%s'.", s.obj.name)
	}
	return ex.ddl(func() error {
		if s.obj.db != "" {
			return errNum(166, 15, 1, "'CREATE/ALTER %s' does not allow specifying the database name as a prefix to the object name.", s.kind)
		}
		db, dbName, err := ex.database(s.obj)
		if err != nil {
			return err
		}
		if err := ex.mayDefine(db, dbName, "CREATE "+s.kind); err != nil {
			return err
		}
		m := engine.Module{Schema: "dbo", Name: s.obj.name, Type: "P", Text: s.text}
		if s.kind == "VIEW" {
			m.Type = "V"
			if s.q.order != nil {
				if sb, ok := s.q.body.(*selectBody); !ok || sb.top == nil {
					return errOrderInSub(s.obj.line)
				}
			}
			b := &binder{ex: ex}
			if _, err := b.query(nil, s.q, nil); err != nil {
				return err
			}
		}
		if s.obj.schema != "" {
			m.Schema = s.obj.schema
		}
		old, err := ex.module(db, m.Schema, m.Name, m.Type)
		if err != nil {
			return err
		}
		switch {
		case s.alter && old == nil:
			return errNum(208, 16, 6, "Invalid object name '%s'.", s.obj.String())
		case old != nil && !s.alter && !s.orAlt:
			return errNum(2714, 16, 3, "There is already an object named '%s' in the database.", m.Name)
		case old != nil:
			m.ID = old.ID
		default:
			t, err := ex.in.LookupTable(ex.hst, ex.s.id, db, m.Schema, m.Name)
			if err != nil {
				return err
			}
			if t != nil {
				return errNum(2714, 16, 3, "There is already an object named '%s' in the database.", m.Name)
			}
			if err := ex.freeName(db, m.Schema, m.Name); err != nil {
				return err
			}
		}
		_, err = ex.in.PutModule(ex.hst, ex.s.id, db, m)
		return err
	})
}
