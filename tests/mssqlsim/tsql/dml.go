package tsql

import (
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// writeTarget resolves what a DML statement writes to. It runs inside do.
func (ex *exec) writeTarget(ref tableRef, permission string) (*resolved, store, error) {
	switch ref := ref.(type) {
	case *tableVar:
		v := ex.vars.get(ref.name)
		if v == nil || v.table == nil {
			return nil, nil, errBind(ref.line, 1087, 15, 2, "Must declare the table variable \"%s\".", ref.name)
		}
		return &resolved{name: ref.name, mem: v.table, cols: tableColumns(v.table.def)}, v.table, nil
	case *tableName:
		r, err := ex.resolve(ref.obj)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case r.mem != nil:
			return r, r.mem, nil
		case r.table != nil:
			if err := ex.in.CheckAccess(ex.hst, ex.s.id, r.db, true); engine.Failed(err) {
				return nil, nil, err
			}
			if err := ex.allowed(r, permission); err != nil {
				return nil, nil, err
			}
			return r, &engineTable{ex: ex, db: r.db, def: r.table}, nil
		case r.view != nil:
			return nil, nil, errNum(259, 16, 1, "Ad hoc updates to system catalogs are not allowed.")
		}
		return nil, nil, errNum(4406, 16, 1, "Update or insert of view or function '%s' failed because it contains a derived or constant field.", r.name)
	}
	return nil, nil, errBind(0, 102, 15, 1, "Incorrect syntax near ','.")
}

// write runs one changing statement on a target: it locks the table, opens a transaction of its
// own if there is none, undoes the statement when fn fails, and commits.
func (ex *exec) write(ref tableRef, permission string, fn func(r *resolved, st store) error) error {
	if ex.s.doomed {
		return errDoomed()
	}
	var auto bool
	var lock engine.WaitID
	var mem *memTable
	err := ex.do(func() error {
		r, _, err := ex.writeTarget(ref, permission)
		if err != nil {
			return err
		}
		if r.mem != nil {
			mem = r.mem
			return nil
		}
		auto = ex.begin()
		lock, err = ex.in.LockTable(ex.hst, ex.s.id, r.db, r.table.ID, engine.LockExclusive)
		return err
	})
	if mem != nil {
		saved := mem.clone()
		err := ex.do(func() error {
			r, st, err := ex.writeTarget(ref, permission)
			if err != nil {
				return err
			}
			return fn(r, st)
		})
		if err != nil {
			mem.copyFrom(saved)
		}
		return err
	}
	if err == nil {
		err = ex.waitLock(lock)
	}
	if err == nil {
		err = ex.do(func() error {
			r, st, err := ex.writeTarget(ref, permission)
			if err != nil {
				return err
			}
			const mark = "\x00statement"
			ex.in.Savepoint(ex.s.id, mark)
			if err := fn(r, st); err != nil {
				ex.in.RollbackTo(ex.s.id, mark)
				return err
			}
			return nil
		})
	}
	return ex.finish(auto, err)
}

// begin opens a transaction for one statement unless the session has one, and tells whether it
// did. It runs inside do.
func (ex *exec) begin() bool {
	if ex.s.tranCount > 0 {
		return false
	}
	ex.in.Begin(ex.hst, ex.s.id)
	if ex.s.opts.implicitTxn {
		ex.s.started()
		return false
	}
	return true
}

// finish commits or rolls back a transaction that begin opened.
func (ex *exec) finish(auto bool, err error) error {
	if engine.Messages(err) != nil && lost(err) {
		ex.forgetTransaction()
		return err
	}
	if !auto {
		return err
	}
	if err != nil {
		if e := ex.do(func() error { ex.in.Rollback(ex.hst, ex.s.id); return nil }); e != nil {
			return e
		}
		return err
	}
	return ex.commit()
}

// lost tells that the engine has rolled the transaction back by itself (deadlock victim).
func lost(err error) bool {
	for _, m := range engine.Messages(err) {
		if m.Number == 1205 {
			return true
		}
	}
	return false
}

func (ex *exec) forgetTransaction() {
	if ex.s.tranCount > 0 {
		ex.s.ended(true)
	}
	_ = ex.do(func() error {
		if ex.in.InTransaction(ex.s.id) {
			ex.in.Rollback(ex.hst, ex.s.id)
		}
		return nil
	})
}

// commit hardens the engine's transaction and waits for its commit rule.
func (ex *exec) commit() error {
	var id engine.WaitID
	if err := ex.do(func() (err error) {
		id, err = ex.in.Commit(ex.hst, ex.s.id)
		return err
	}); err != nil {
		return err
	}
	return ex.wait(id)
}

// waitLock waits for a table lock within SET LOCK_TIMEOUT (1222).
func (ex *exec) waitLock(id engine.WaitID) error {
	limit := ex.s.opts.lockTimeout
	switch {
	case id == 0 || limit < 0:
	case limit == 0:
		if err := ex.do(func() error { ex.in.CancelWait(ex.hst, id); return nil }); err != nil {
			return err
		}
		return errLockTimeout()
	default:
		if err := ex.do(func() error { ex.in.LimitLockWait(ex.hst, id, limit); return nil }); err != nil {
			return err
		}
	}
	return ex.wait(id)
}

func errLockTimeout() error { return errNum(1222, 16, 51, "Lock request time out period exceeded.") }

func errDoomed() error {
	return errNum(3930, 16, 1, "The current transaction cannot be committed and cannot support operations that write to the log file. Roll back the transaction.")
}

// columnsOf maps the column list of INSERT to ordinals.
func columnsOf(t *engine.Table, names []string, line int) ([]int, error) {
	out := make([]int, 0, len(names))
	for _, n := range names {
		at := findColumn(t, n)
		if at < 0 {
			return nil, errBind(line, 207, 16, 1, "Invalid column name '%s'.", n)
		}
		for _, o := range out {
			if o == at {
				return nil, errBind(line, 264, 16, 1, "The column name '%s' is specified more than once in the SET clause or column list of an INSERT. A column cannot be assigned more than one value in the same clause. Modify the clause to make sure that a column is updated only once. If this statement updates or inserts columns into a view, column aliasing can conceal the duplication in your code.", n)
			}
		}
		out = append(out, at)
	}
	return out, nil
}

func findColumn(t *engine.Table, name string) int {
	for i := range t.Columns {
		if equalName(t.Columns[i].Name, name) {
			return i
		}
	}
	return -1
}

// storeValue converts a value for a column: 515 for NULL, 2628 for text that does not fit.
func storeValue(t *engine.Table, c *engine.Column, v value) (value, error) {
	if v.IsNull() {
		if !c.Nullable {
			return v, errNum(515, 16, 2, "Cannot insert the value NULL into column '%s', table '%s'; column does not allow nulls. INSERT fails.", c.Name, t.Name)
		}
		return sqltypes.Null(c.Type), nil
	}
	if c.Type.Len != sqltypes.Max && (c.Type.IsString() && v.Type().IsString() && sqltypes.TextLen(v.Text()) > int(c.Type.Len) ||
		c.Type.IsBinary() && v.Type().IsBinary() && len(v.Bytes()) > int(c.Type.Len)) {
		text := v.Text()
		if c.Type.IsString() {
			// trailing spaces beyond the length are dropped silently
			cut := sqltypes.CutText(text, int(c.Type.Len))
			if sqltypes.EqualText(cut, text) && len(trimRight(text)) <= len(cut) {
				return convertImplicit(v, c.Type)
			}
		}
		return v, errNum(2628, 16, 1, "String or binary data would be truncated in table '%s', column '%s'. Truncated value: '%s'.", t.Name, c.Name, sqltypes.CutText(text, int(c.Type.Len)))
	}
	return convertImplicit(v, c.Type)
}

func trimRight(s string) string {
	for len(s) > 0 && s[len(s)-1] == ' ' {
		s = s[:len(s)-1]
	}
	return s
}

func (ex *exec) insert(s *insertStmt) error {
	var source []engine.Row
	width := -1
	if s.exec != nil {
		rows, err := ex.insertExec(s)
		if err != nil {
			return err
		}
		source = rows
	}
	n := int64(0)
	var out *outputRows
	err := ex.write(s.target, "INSERT", func(r *resolved, st store) error {
		t := st.table()
		identityInsert := r.table != nil && ex.s.opts.identityIns == tableKey(r)
		var cols []int
		var err error
		if s.cols != nil {
			if cols, err = columnsOf(t, s.cols, s.colLine); err != nil {
				return err
			}
		} else {
			for i := range t.Columns {
				if !t.Columns[i].Identity {
					cols = append(cols, i)
				}
			}
		}
		for _, c := range cols {
			if t.Columns[c].Identity && !identityInsert {
				return errNum(544, 16, 1, "Cannot insert explicit value for identity column in table '%s' when IDENTITY_INSERT is set to OFF.", t.Name)
			}
		}
		if out, err = ex.bindOutput(s.output, r, t, false); err != nil {
			return err
		}
		rows := source
		if s.q != nil {
			if rows, width, err = ex.insertRows(s, t, cols); err != nil {
				return err
			}
			if width != len(cols) {
				return errWidth(s, width, len(cols))
			}
		} else if s.deflt {
			rows, cols = []engine.Row{{}}, nil
		}
		deflts, err := ex.defaults(t, cols)
		if err != nil {
			return err
		}
		ck, err := ex.checker("INSERT", r, t)
		if err != nil {
			return err
		}
		for _, src := range rows {
			row := make(engine.Row, len(t.Columns))
			for i := range row {
				if row[i], err = deflts[i](); err != nil {
					return err
				}
			}
			for i, c := range cols {
				if isDefaultMark(src[i]) {
					continue
				}
				row[c] = src[i]
			}
			for i := range row {
				c := &t.Columns[i]
				if c.Identity {
					if row[i].IsNull() {
						v, err := sqltypes.Cast(sqltypes.NewBigInt(st.nextIdentity()), c.Type, 0)
						if err != nil {
							return err
						}
						row[i] = v
					} else {
						st.setIdentity(wholeNumber(row[i]))
					}
				}
				if row[i], err = storeValue(t, c, row[i]); err != nil {
					return err
				}
			}
			if err := ck.row(row, nil); err != nil {
				return err
			}
			if err := st.insert(row); err != nil {
				return err
			}
			if at := identityColumn(t); at >= 0 {
				if v, err := sqltypes.Cast(row[at], sqltypes.TNumeric(38, 0), 0); err == nil {
					ex.s.identity = v
				}
			}
			if err := out.add(ex, row, nil); err != nil {
				return err
			}
			n++
		}
		return ck.done()
	})
	if err != nil {
		return err
	}
	if err := ex.sendOutput(out); err != nil {
		return err
	}
	ex.done(cmdInsert, n, true)
	return nil
}

func errWidth(s *insertStmt, have, want int) error {
	if _, ok := s.q.body.(*valuesBody); ok && s.cols == nil {
		return errBind(s.colLine, 213, 16, 1, "Column name or number of supplied values does not match table definition.")
	}
	if s.cols == nil {
		return errBind(s.colLine, 213, 16, 1, "Column name or number of supplied values does not match table definition.")
	}
	if _, ok := s.q.body.(*valuesBody); ok {
		if have < want {
			return errBind(s.colLine, 109, 15, 1, "There are more columns in the INSERT statement than values specified in the VALUES clause. The number of values in the VALUES clause must match the number of columns specified in the INSERT statement.")
		}
		return errBind(s.colLine, 110, 15, 1, "There are fewer columns in the INSERT statement than values specified in the VALUES clause. The number of values in the VALUES clause must match the number of columns specified in the INSERT statement.")
	}
	if have < want {
		return errBind(s.colLine, 120, 15, 1, "The select list for the INSERT statement contains fewer items than the insert list. The number of SELECT values must match the number of INSERT columns.")
	}
	return errBind(s.colLine, 121, 15, 1, "The select list for the INSERT statement contains more items than the insert list. The number of SELECT values must match the number of INSERT columns.")
}

// defaultMark stands for DEFAULT in a VALUES row.
func defaultMark() value {
	return sqltypes.NewText(sqltypes.Type{ID: sqltypes.XML, Prec: 99}, "DEFAULT")
}

func isDefaultMark(v value) bool { return v == defaultMark() }

// insertRows evaluates VALUES or the query of an INSERT.
func (ex *exec) insertRows(s *insertStmt, t *engine.Table, cols []int) ([]engine.Row, int, error) {
	vb, ok := s.q.body.(*valuesBody)
	if !ok {
		bq, err := ex.bindCached(s.q)
		if err != nil {
			return nil, 0, err
		}
		rows, err := bq.all(&frame{ex: ex})
		return rows, len(bq.cols), err
	}
	b := &binder{ex: ex}
	f := &frame{ex: ex}
	rows := make([]engine.Row, len(vb.rows))
	for i, r := range vb.rows {
		row := make(engine.Row, len(r))
		for j, x := range r {
			if _, ok := x.(*defaultExpr); ok {
				row[j] = defaultMark()
				continue
			}
			e, err := b.expr(nil, x)
			if err != nil {
				return nil, 0, err
			}
			if row[j], err = e.eval(f); err != nil {
				return nil, 0, err
			}
		}
		rows[i] = row
	}
	return rows, len(vb.rows[0]), nil
}

// defaults makes, per column, what an unnamed column gets.
func (ex *exec) defaults(t *engine.Table, given []int) ([]func() (value, error), error) {
	out := make([]func() (value, error), len(t.Columns))
	for i := range t.Columns {
		c := &t.Columns[i]
		null := sqltypes.Null(c.Type)
		out[i] = func() (value, error) { return null, nil }
		if c.Default == "" {
			continue
		}
		out[i] = func() (value, error) { return ex.defaultOf(c) }
	}
	return out, nil
}

// defaultOf evaluates the default expression of a column.
func (ex *exec) defaultOf(c *engine.Column) (value, error) {
	b, perr := ex.s.cache.parse("SELECT " + c.Default)
	if perr != nil {
		return value{}, perr
	}
	q := b.body[0].s.(*selectStmt).q
	bq, err := ex.bindCached(q)
	if err != nil {
		return value{}, err
	}
	rows, err := bq.all(&frame{ex: ex})
	if err != nil || len(rows) != 1 {
		return value{}, err
	}
	return rows[0][0], nil
}

func tableKey(r *resolved) string { return r.dbName + "\x00" + r.schema + "\x00" + r.name }

// insertExec runs the EXEC of INSERT … EXEC and gives its rows.
func (ex *exec) insertExec(s *insertStmt) ([]engine.Row, error) {
	width := 0
	if err := ex.do(func() error {
		_, st, err := ex.writeTarget(s.target, "INSERT")
		if err != nil {
			return err
		}
		if s.cols != nil {
			width = len(s.cols)
			return nil
		}
		for _, c := range st.table().Columns {
			if !c.Identity {
				width++
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	for e := ex; e != nil; e = e.parent {
		if e.collect != nil {
			return nil, errNum(8164, 16, 1, "An INSERT EXEC statement cannot be nested.")
		}
	}
	c := &collector{width: width}
	ex.collect = c
	sig, err := ex.execute(s.exec)
	ex.collect = nil
	if err != nil {
		return nil, err
	}
	_ = sig
	if c.bad {
		return nil, errNum(213, 16, 7, "Column name or number of supplied values does not match table definition.")
	}
	return c.rows, nil
}
