package tsql

import (
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// resolved is what an object name means now.
type resolved struct {
	db     engine.DatabaseID
	dbName string
	schema string
	name   string
	table  *engine.Table // user table
	mem    *memTable     // #table
	view   *sysView
	module *engine.Module
	cols   []Column
}

func errObject(o objName) error {
	return errBind(o.line, 208, 16, 1, "Invalid object name '%s'.", o.String())
}

// database resolves the database part of a name; "" is the current one.
func (ex *exec) database(o objName) (engine.DatabaseID, string, error) {
	if o.server != "" && !equalName(o.server, ex.s.server) {
		return 0, "", errBind(o.line, 7202, 11, 2, "Could not find server '%s' in sys.servers. Verify that the correct server name was specified. If necessary, execute the stored procedure sp_addlinkedserver to add the server to sys.servers.", o.server)
	}
	if o.db == "" {
		id, name := ex.in.CurrentDatabase(ex.s.id)
		return id, name, nil
	}
	id, ok := ex.in.LookupDatabase(o.db)
	if !ok {
		return 0, "", errObject(o)
	}
	return id, o.db, nil
}

// resolve finds a table or view. It runs inside do.
func (ex *exec) resolve(o objName) (*resolved, error) {
	if strings.HasPrefix(o.name, "#") {
		if t := ex.s.temp[strings.ToLower(o.name)]; t != nil {
			return &resolved{dbName: "tempdb", schema: "dbo", name: o.name, mem: t, cols: tableColumns(t.def)}, nil
		}
		return nil, errObject(o)
	}
	db, dbName, err := ex.database(o)
	if err != nil {
		return nil, err
	}
	schema := strings.ToLower(o.schema)
	if v := ex.systemView(db, schema, strings.ToLower(o.name)); v != nil {
		return &resolved{db: db, dbName: dbName, schema: v.schema, name: v.name, view: v, cols: v.columns}, nil
	}
	if schema == "sys" || schema == "information_schema" {
		return nil, errObject(o)
	}
	if err := ex.in.CheckAccess(ex.hst, ex.s.id, db, false); engine.Failed(err) {
		return nil, err
	}
	if schema == "" {
		schema = "dbo"
	}
	t, err := ex.in.LookupTable(ex.hst, ex.s.id, db, schema, o.name)
	if err != nil {
		return nil, err
	}
	if t != nil {
		return &resolved{db: db, dbName: dbName, schema: t.Schema, name: t.Name, table: t, cols: tableColumns(t)}, nil
	}
	m, err := ex.module(db, schema, o.name, "V")
	if err != nil {
		return nil, err
	}
	if m != nil {
		return &resolved{db: db, dbName: dbName, schema: m.Schema, name: m.Name, module: m}, nil
	}
	return nil, errObject(o)
}

// module finds a stored definition of a type; nil if there is none.
func (ex *exec) module(db engine.DatabaseID, schema, name, typ string) (*engine.Module, error) {
	l, err := ex.in.Modules(ex.hst, ex.s.id, db)
	if err != nil {
		return nil, err
	}
	if schema == "" {
		schema = "dbo"
	}
	for _, m := range l {
		if strings.TrimSpace(m.Type) == typ && equalName(m.Name, name) && equalName(m.Schema, schema) {
			return m, nil
		}
	}
	return nil, nil
}

func tableColumns(t *engine.Table) []Column {
	cols := make([]Column, len(t.Columns))
	for i, c := range t.Columns {
		cols[i] = Column{Name: c.Name, Type: c.Type, Nullable: c.Nullable, Identity: c.Identity}
	}
	return cols
}

// allowed checks a permission on an object of a database (229).
func (ex *exec) allowed(r *resolved, permission string) error {
	var id engine.ObjectID
	switch {
	case r.table != nil:
		id = r.table.ID
	case r.module != nil:
		id = r.module.ID
	default:
		return nil
	}
	if ex.in.DatabasePermitted(ex.s.id, r.db, id, permission) {
		return nil
	}
	return errNum(229, 14, 5, "The %s permission was denied on the object '%s', database '%s', schema '%s'.", permission, r.name, r.dbName, r.schema)
}

// tableName binds a named source: common table expression, table, view or system view.
func (b *binder) tableName(sc *scope, t *tableName) (*fromNode, error) {
	o := t.obj
	alias := t.alias
	if alias == "" {
		alias = o.name
	}
	if o.schema == "" && o.db == "" {
		for i := len(sc.ctes) - 1; i >= 0; i-- {
			if c := sc.ctes[i]; equalName(c.def.name, o.name) {
				return b.cteSource(sc, c, alias, o.line)
			}
		}
	}
	r, err := b.ex.resolve(o)
	if err != nil {
		return nil, err
	}
	b.deps = append(b.deps, dep{obj: o, table: r})
	src := &source{alias: alias, db: r.dbName, schema: r.schema, name: r.name, cols: r.cols}
	if t.alias != "" {
		src.name = ""
	}
	if r.module != nil {
		if err := b.ex.allowed(r, "SELECT"); err != nil {
			return nil, err
		}
		return b.viewSource(sc, r, alias, o.line)
	}
	if r.table != nil {
		if err := b.ex.allowed(r, "SELECT"); err != nil {
			return nil, err
		}
	}
	return sc.addSource(src, b.scanOf(r, src))
}

// scanOf makes the reader of a table or system view.
func (b *binder) scanOf(r *resolved, src *source) func(f *frame) ([]engine.Row, error) {
	b.impure = b.impure || r.view == nil
	switch {
	case r.mem != nil:
		name := strings.ToLower(r.mem.def.Name)
		if strings.HasPrefix(name, "#") {
			return func(f *frame) ([]engine.Row, error) {
				t := f.ex.s.temp[name]
				if t == nil {
					return nil, errNum(208, 16, 0, "Invalid object name '%s'.", name)
				}
				return t.snapshot(), nil
			}
		}
		mem := r.mem
		return func(*frame) ([]engine.Row, error) { return mem.snapshot(), nil }
	case r.view != nil:
		view, db := r.view, r.db
		return func(f *frame) ([]engine.Row, error) { return f.ex.viewRows(view, db, src.used) }
	}
	db, id := r.db, r.table.ID
	return func(f *frame) ([]engine.Row, error) {
		ex := f.ex
		if err := ex.in.CheckAccess(ex.hst, ex.s.id, db, false); engine.Failed(err) {
			return nil, err
		}
		seq, err := ex.in.Scan(ex.hst, ex.s.id, db, id)
		if err != nil {
			return nil, err
		}
		var rows []engine.Row
		for _, r := range seq {
			rows = append(rows, r)
		}
		return rows, nil
	}
}

func (b *binder) tableVariable(sc *scope, t *tableVar) (*fromNode, error) {
	v := b.ex.vars.get(t.name)
	if v == nil || v.table == nil {
		return nil, errBind(t.line, 1087, 15, 2, "Must declare the table variable \"%s\".", t.name)
	}
	alias := t.alias
	if alias == "" {
		alias = t.name
	}
	name := t.name
	b.impure = true
	b.deps = append(b.deps, dep{variable: name, table: &resolved{mem: v.table}})
	return sc.addSource(&source{alias: alias, cols: tableColumns(v.table.def)}, func(f *frame) ([]engine.Row, error) {
		if v := f.ex.vars.get(name); v != nil && v.table != nil {
			return v.table.snapshot(), nil
		}
		return nil, nil
	})
}

// viewSource binds a user view.
func (b *binder) viewSource(sc *scope, r *resolved, alias string, line int) (*fromNode, error) {
	b.viewDepth++
	defer func() { b.viewDepth-- }()
	if b.viewDepth > maxProcNesting {
		return nil, errBind(line, 4429, 16, 1, "View or function '%s' contains a self-reference. Views or functions cannot reference themselves directly or indirectly.", r.name)
	}
	def, perr := b.ex.s.cache.parse(r.module.Text)
	if perr != nil {
		return nil, perr
	}
	m, ok := def.body[0].s.(*createModuleStmt)
	if !ok || m.q == nil {
		return nil, errObject(objName{name: r.name, line: line})
	}
	bq, err := b.query(nil, m.q, nil)
	if err != nil {
		return nil, errBind(line, 4413, 16, 1, "Could not use view or function '%s' because of binding errors.", r.name)
	}
	names := m.cols
	return b.queryLeaf(sc, bq, alias, names, line, false)
}

// cteSource binds a reference to a common table expression.
func (b *binder) cteSource(sc *scope, c *boundCTE, alias string, line int) (*fromNode, error) {
	if c.work != nil {
		// the recursive reference
		w := c.work
		w.used = true
		return sc.addSource(&source{alias: alias, cols: append([]Column(nil), w.cols...)}, func(*frame) ([]engine.Row, error) { return w.rows, nil })
	}
	q := c.def.q
	if set, ok := q.body.(*setOp); ok && set.op == "UNION ALL" && q.order == nil {
		return b.recursive(sc, c, set, alias, line)
	}
	ctes := c.prev
	if ctes == nil {
		ctes = []*boundCTE{}
	}
	bq, err := b.query(nil, q, ctes)
	if err != nil {
		return nil, err
	}
	return b.queryLeaf(sc, bq, alias, c.def.cols, line, false)
}

// maxRecursion is the default limit of a recursive query (530).
const maxRecursion = 100

func (b *binder) recursive(sc *scope, c *boundCTE, set *setOp, alias string, line int) (*fromNode, error) {
	prev := c.prev
	if prev == nil {
		prev = []*boundCTE{}
	}
	anchor, err := b.body(nil, set.l, prev, line)
	if err != nil {
		return nil, err
	}
	cols := append([]Column(nil), anchor.cols...)
	for i := range cols {
		if i < len(c.def.cols) {
			cols[i].Name = c.def.cols[i]
		}
	}
	work := &workTable{cols: cols}
	self := &boundCTE{def: c.def, prev: prev, work: work}
	step, err := b.body(nil, set.r, append(prev[:len(prev):len(prev)], self), line)
	if err != nil {
		return nil, err
	}
	if !work.used {
		both, err := combine("UNION ALL", anchor, step, line)
		if err != nil {
			return nil, err
		}
		return b.queryLeaf(sc, both, alias, c.def.cols, line, false)
	}
	if len(step.cols) != len(anchor.cols) {
		return nil, errBind(line, 205, 16, 1, "All queries combined using a UNION, INTERSECT or EXCEPT operator must have an equal number of expressions in their target lists.")
	}
	for i := range cols {
		a, s := cols[i].Type, step.cols[i].Type
		if a.ID != s.ID && !(a.IsInteger() && s.IsInteger() && a.ID >= s.ID) {
			return nil, errBind(line, 240, 16, 1, "Types don't match between the anchor and the recursive part in column \"%s\" of recursive query \"%s\".", cols[i].Name, c.def.name)
		}
	}
	bq := &boundQuery{cols: anchor.cols, run: func(up *frame, emit func(engine.Row) error) error {
		rows, err := anchor.all(up)
		if err != nil {
			return err
		}
		for n := 0; len(rows) > 0; n++ {
			for _, r := range rows {
				if err := emit(r); err != nil {
					return err
				}
			}
			if n == maxRecursion {
				return errNum(530, 16, 1, "The statement terminated. The maximum recursion %d has been exhausted before statement completion.", maxRecursion)
			}
			work.rows = rows
			next, err := step.all(up)
			if err != nil {
				return err
			}
			for _, r := range next {
				for i := range r {
					if r[i], err = coerce(r[i], cols[i].Type); err != nil {
						return err
					}
				}
			}
			rows = next
		}
		return nil
	}}
	return b.queryLeaf(sc, bq, alias, c.def.cols, line, false)
}

// tableFunction binds a table-valued function.
func (b *binder) tableFunction(sc *scope, t *tableFunc) (*fromNode, error) {
	name := strings.ToLower(t.obj.name)
	alias := t.alias
	if alias == "" {
		alias = t.obj.name
	}
	args, err := b.exprs(sc, t.args)
	if err != nil {
		return nil, err
	}
	b.impure = true
	fn, ok := tableFunctions(strings.ToLower(t.obj.schema), name)
	if !ok {
		return nil, errBind(t.obj.line, 208, 16, 1, "Invalid object name '%s'.", t.obj.String())
	}
	if len(args) < fn.min || len(args) > fn.max {
		return nil, errBind(t.obj.line, 313, 16, 3, "An insufficient number of arguments were supplied for the procedure or function %s.", t.obj.String())
	}
	cols := append([]Column(nil), fn.cols...)
	for i := range cols {
		if i < len(t.cols) {
			cols[i].Name = t.cols[i]
		}
	}
	n, err := sc.addSource(&source{alias: alias, cols: cols}, func(f *frame) ([]engine.Row, error) {
		vals := make([]value, len(args))
		for i := range args {
			v, err := args[i].eval(f)
			if err != nil {
				return nil, err
			}
			vals[i] = v
		}
		return fn.rows(f.ex, vals)
	})
	return n, err
}

type tableFuncDef struct {
	min, max int
	cols     []Column
	rows     func(ex *exec, a []value) ([]engine.Row, error)
}

func tableFunctions(schema, name string) (tableFuncDef, bool) {
	switch {
	case schema == "" && name == "string_split":
		return tableFuncDef{2, 3, []Column{{Name: "value", Type: sqltypes.TNVarCharMax, Nullable: true}}, stringSplit}, true
	case schema == "sys" && name == "dm_exec_sql_text":
		return tableFuncDef{1, 1, []Column{
			{Name: "dbid", Type: sqltypes.TSmallInt, Nullable: true}, {Name: "objectid", Type: sqltypes.TInt, Nullable: true},
			{Name: "number", Type: sqltypes.TSmallInt, Nullable: true}, {Name: "encrypted", Type: sqltypes.TBit},
			{Name: "text", Type: sqltypes.TNVarCharMax, Nullable: true},
		}, sqlText}, true
	}
	return tableFuncDef{}, false
}

func stringSplit(_ *exec, a []value) ([]engine.Row, error) {
	if a[0].IsNull() || a[1].IsNull() {
		return nil, nil
	}
	s, err := sqltypes.Cast(a[0], sqltypes.TNVarCharMax, 0)
	if err != nil {
		return nil, err
	}
	sep, err := sqltypes.Cast(a[1], sqltypes.TNVarCharMax, 0)
	if err != nil {
		return nil, err
	}
	if sqltypes.TextLen(sep.Text()) != 1 {
		return nil, errNum(214, 16, 11, "Procedure expects parameter 'separator' of type 'nchar(1)/nvarchar(1)'.")
	}
	var rows []engine.Row
	for _, p := range strings.Split(s.Text(), sep.Text()) {
		rows = append(rows, engine.Row{sqltypes.NewNVarChar(p)})
	}
	return rows, nil
}

// sqlText is sys.dm_exec_sql_text: handles are made by sys.dm_exec_requests and carry the session.
func sqlText(ex *exec, a []value) ([]engine.Row, error) {
	if a[0].IsNull() {
		return nil, nil
	}
	h, err := sqltypes.Cast(a[0], sqltypes.TVarBinary(64), 0)
	if err != nil {
		return nil, err
	}
	reqs, err := ex.in.Requests(ex.hst, ex.s.id)
	if err != nil {
		return nil, err
	}
	for i := range reqs {
		if string(sqlHandle(&reqs[i])) == string(h.Bytes()) {
			return []engine.Row{{
				sqltypes.Null(sqltypes.TSmallInt), sqltypes.Null(sqltypes.TInt), sqltypes.Null(sqltypes.TSmallInt),
				sqltypes.NewBit(false), sqltypes.NewText(sqltypes.TNVarCharMax, reqs[i].Text),
			}}, nil
		}
	}
	return nil, nil
}
