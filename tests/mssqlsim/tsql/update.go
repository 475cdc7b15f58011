package tsql

import (
	"errors"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// realTarget finds the table that UPDATE and DELETE mean: the target may be an alias of FROM.
func realTarget(target tableRef, from []tableRef) tableRef {
	t, ok := target.(*tableName)
	if !ok || t.obj.schema != "" || t.obj.db != "" {
		return target
	}
	var found tableRef
	var visit func(r tableRef)
	visit = func(r tableRef) {
		switch r := r.(type) {
		case *tableName:
			if found == nil && r.alias != "" && equalName(r.alias, t.obj.name) {
				found = &tableName{obj: r.obj}
			}
		case *tableVar:
			if found == nil && r.alias != "" && equalName(r.alias, t.obj.name) {
				found = &tableVar{name: r.name, line: r.line}
			}
		case *joinRef:
			visit(r.l)
			visit(r.r)
		}
	}
	for _, r := range from {
		visit(r)
	}
	if found != nil {
		return found
	}
	return target
}

// changePlan is the bound FROM and WHERE of UPDATE and DELETE.
type changePlan struct {
	b     *binder
	sc    *scope
	from  *fromNode
	where condFunc
	src   int // source that is the target
	ids   map[*value]engine.RowID
	rows  []engine.Row
	frame *frame
}

// change binds FROM and WHERE over the rows of the target.
func (ex *exec) change(target tableRef, from []tableRef, with []cte, where expr, r *resolved, st store) (*changePlan, error) {
	p := &changePlan{b: &binder{ex: ex}, sc: &scope{noAgg: true, noWin: true}, src: -1}
	for i := range with {
		p.sc.ctes = append(p.sc.ctes[:len(p.sc.ctes):len(p.sc.ctes)], &boundCTE{def: &with[i], prev: p.sc.ctes})
	}
	ids, rows, err := st.scan()
	if err != nil {
		return nil, err
	}
	p.rows = rows
	p.ids = make(map[*value]engine.RowID, len(rows))
	for i, row := range rows {
		if len(row) > 0 {
			p.ids[&row[0]] = ids[i]
		}
	}
	name := r.name
	if t, ok := target.(*tableName); ok {
		name = t.obj.name
	}
	for _, ref := range from {
		n, err := p.b.tableRef(p.sc, ref)
		if err != nil {
			return nil, err
		}
		p.add(n)
	}
	for i, s := range p.sc.srcs {
		if equalName(s.alias, name) || s.name != "" && equalName(s.name, r.name) && equalName(s.schema, r.schema) {
			p.src = i
			break
		}
	}
	own := func(*frame) ([]engine.Row, error) { return p.rows, nil }
	if p.src < 0 {
		n, err := p.sc.addSource(&source{alias: name, db: r.dbName, schema: r.schema, name: r.name, cols: r.cols}, own)
		if err != nil {
			return nil, err
		}
		p.src = n.src
		p.add(n)
	} else if leaf := p.from.leaf(p.src); leaf != nil {
		leaf.scan = own
	}
	if where != nil {
		if p.where, err = p.b.cond(p.sc, where); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *changePlan) add(n *fromNode) {
	if p.from == nil {
		p.from = n
	} else {
		p.from = &fromNode{kind: joinCross, l: p.from, r: n, hashOrd: -1}
	}
}

func (n *fromNode) leaf(src int) *fromNode {
	if n.l == nil {
		if n.src == src {
			return n
		}
		return nil
	}
	if l := n.l.leaf(src); l != nil {
		return l
	}
	return n.r.leaf(src)
}

// each calls fn once per target row that qualifies.
func (p *changePlan) each(ex *exec, limit int64, fn func(f *frame, id engine.RowID, old engine.Row) error) error {
	bs := &boundSelect{from: p.from, nsrc: len(p.sc.srcs), where: p.where}
	f := bs.newFrame(&frame{ex: ex})
	seen := map[engine.RowID]bool{}
	n := int64(0)
	err := bs.each(f, func() error {
		old := f.rows[p.src]
		if len(old) == 0 {
			return nil
		}
		id, ok := p.ids[&old[0]]
		if !ok || seen[id] {
			return nil
		}
		if limit >= 0 && n >= limit {
			return errStop
		}
		seen[id] = true
		n++
		return fn(f, id, old)
	})
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

func (ex *exec) topOf(x expr) (int64, error) {
	if x == nil {
		return -1, nil
	}
	v, err := ex.scalar(x)
	if err == nil {
		v, err = sqltypes.Cast(v, sqltypes.TBigInt, 0)
	}
	if err == nil && v.Int64() < 0 {
		err = errNum(1060, 15, 1, "The number of rows provided for a TOP or FETCH clauses row count parameter must be an integer.")
	}
	return v.Int64(), err
}

func (ex *exec) update(s *updateStmt) error {
	n := int64(0)
	var out *outputRows
	target := realTarget(s.target, s.from)
	err := ex.write(target, "UPDATE", func(r *resolved, st store) error {
		t := st.table()
		p, err := ex.change(s.target, s.from, s.with, s.where, r, st)
		if err != nil {
			return err
		}
		type set struct {
			col  int
			vari string
			op   byte
			x    *bexpr // nil for DEFAULT
		}
		sets := make([]set, len(s.sets))
		for i, c := range s.sets {
			sets[i] = set{col: -1, vari: c.vari, op: c.op}
			if c.col != "" {
				at := findColumn(t, c.col)
				if at < 0 {
					return errBind(c.line, 207, 16, 1, "Invalid column name '%s'.", c.col)
				}
				if t.Columns[at].Identity {
					return errBind(c.line, 8102, 16, 1, "Cannot update identity column '%s'.", t.Columns[at].Name)
				}
				for _, o := range sets[:i] {
					if o.col == at {
						return errBind(c.line, 264, 16, 1, "The column name '%s' is specified more than once in the SET clause or column list of an INSERT. A column cannot be assigned more than one value in the same clause. Modify the clause to make sure that a column is updated only once. If this statement updates or inserts columns into a view, column aliasing can conceal the duplication in your code.", c.col)
					}
				}
				sets[i].col = at
			}
			if _, ok := c.x.(*defaultExpr); ok {
				continue
			}
			e, err := p.b.expr(p.sc, c.x)
			if err != nil {
				return err
			}
			sets[i].x = &e
		}
		if out, err = ex.bindOutput(s.output, r, t, true); err != nil {
			return err
		}
		limit, err := ex.topOf(s.top)
		if err != nil {
			return err
		}
		type change struct {
			id       engine.RowID
			old, new engine.Row
		}
		var changes []change
		if err := p.each(ex, limit, func(f *frame, id engine.RowID, old engine.Row) error {
			row := append(engine.Row(nil), old...)
			for _, c := range sets {
				var v value
				var err error
				if c.x != nil {
					if v, err = c.x.eval(f); err != nil {
						return err
					}
				} else if c.col >= 0 {
					if v, err = ex.defaultOf(&t.Columns[c.col]); err != nil {
						return err
					}
				}
				if c.col >= 0 {
					if c.op != 0 {
						if v, err = sqltypes.Arith(c.op, old[c.col], v); err != nil {
							return err
						}
					}
					if row[c.col], err = storeValue(t, &t.Columns[c.col], v); err != nil {
						if se := asStmtError(err); se.m.Number == 515 {
							return errNum(515, 16, 2, "Cannot insert the value NULL into column '%s', table '%s'; column does not allow nulls. UPDATE fails.", t.Columns[c.col].Name, t.Name)
						}
						return err
					}
					v = row[c.col]
				}
				if c.vari != "" {
					op := c.op
					if c.col >= 0 {
						op = 0
					}
					if err := ex.assign(c.vari, op, v); err != nil {
						return err
					}
				}
			}
			changes = append(changes, change{id, old, row})
			return nil
		}); err != nil {
			return err
		}
		ck, err := ex.checker("UPDATE", r, t)
		if err != nil {
			return err
		}
		for _, c := range changes {
			if err := ck.row(c.new, c.old); err != nil {
				return err
			}
			if err := st.update(c.id, c.new); err != nil {
				return err
			}
			if err := out.add(ex, c.new, c.old); err != nil {
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
	ex.done(cmdUpdate, n, true)
	return nil
}

func (ex *exec) delete(s *deleteStmt) error {
	n := int64(0)
	var out *outputRows
	target := realTarget(s.target, s.from)
	err := ex.write(target, "DELETE", func(r *resolved, st store) error {
		p, err := ex.change(s.target, s.from, s.with, s.where, r, st)
		if err != nil {
			return err
		}
		if out, err = ex.bindOutput(s.output, r, st.table(), true); err != nil {
			return err
		}
		limit, err := ex.topOf(s.top)
		if err != nil {
			return err
		}
		type victim struct {
			id  engine.RowID
			old engine.Row
		}
		var victims []victim
		if err := p.each(ex, limit, func(_ *frame, id engine.RowID, old engine.Row) error {
			victims = append(victims, victim{id, old})
			return nil
		}); err != nil {
			return err
		}
		ck, err := ex.checker("DELETE", r, st.table())
		if err != nil {
			return err
		}
		for _, v := range victims {
			ck.removed(v.old)
			if err := st.delete(v.id); err != nil {
				return err
			}
			if err := out.add(ex, nil, v.old); err != nil {
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
	ex.done(cmdDelete, n, true)
	return nil
}

func (ex *exec) truncate(s *truncateStmt) error {
	return ex.write(&tableName{obj: s.obj}, "ALTER", func(r *resolved, st store) error {
		if r.table != nil {
			if ref, err := ex.referenced(r.db, r.table); err != nil || ref {
				if err != nil {
					return err
				}
				return errNum(4712, 16, 1, "Cannot truncate table '%s' because it is being referenced by a FOREIGN KEY constraint.", s.obj.String())
			}
		}
		if m, ok := st.(*memTable); ok {
			m.ids, m.data, m.used, m.last = nil, nil, false, 0
			m.reindex()
			return nil
		}
		return ex.in.Truncate(ex.hst, ex.s.id, r.db, r.table.ID)
	})
}

// outputRows evaluates an OUTPUT clause.
type outputRows struct {
	clause *outputClause
	items  []boundItem
	cols   []Column
	rows   []engine.Row
}

// bindOutput binds OUTPUT over inserted and, where there is one, deleted.
func (ex *exec) bindOutput(o *outputClause, r *resolved, t *engine.Table, deleted bool) (*outputRows, error) {
	if o == nil {
		return nil, nil
	}
	sc := &scope{noAgg: true, noWin: true}
	cols := tableColumns(t)
	if _, err := sc.addSource(&source{alias: "inserted", cols: cols}, nil); err != nil {
		return nil, err
	}
	if deleted {
		if _, err := sc.addSource(&source{alias: "deleted", cols: cols}, nil); err != nil {
			return nil, err
		}
	}
	bs := &boundSelect{}
	b := &binder{ex: ex}
	if err := b.items(sc, &selectBody{items: o.items}, bs); err != nil {
		return nil, err
	}
	return &outputRows{clause: o, items: bs.items, cols: bs.cols}, nil
}

func (o *outputRows) add(ex *exec, ins, del engine.Row) error {
	if o == nil {
		return nil
	}
	f := &frame{ex: ex, rows: []engine.Row{ins, del}}
	row := make(engine.Row, len(o.items))
	for i := range o.items {
		v, err := o.items[i].eval(f)
		if err == nil {
			v, err = coerce(v, o.cols[i].Type)
		}
		if err != nil {
			return err
		}
		row[i] = v
	}
	o.rows = append(o.rows, row)
	return nil
}

// sendOutput gives the OUTPUT rows to the client or to INTO.
func (ex *exec) sendOutput(o *outputRows) error {
	if o == nil {
		return nil
	}
	if o.clause.into == nil {
		ex.rowsOut(o.cols, o.rows)
		return nil
	}
	return ex.write(o.clause.into, "INSERT", func(r *resolved, st store) error {
		return ex.insertInto(r, st, o.clause.intoCols, o.rows)
	})
}

// insertInto stores rows that are already evaluated.
func (ex *exec) insertInto(r *resolved, st store, names []string, rows []engine.Row) error {
	t := st.table()
	var cols []int
	var err error
	if names != nil {
		if cols, err = columnsOf(t, names, ex.line); err != nil {
			return err
		}
	} else {
		for i := range t.Columns {
			if !t.Columns[i].Identity {
				cols = append(cols, i)
			}
		}
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
		if len(src) != len(cols) {
			return errNum(213, 16, 1, "Column name or number of supplied values does not match table definition.")
		}
		row := make(engine.Row, len(t.Columns))
		for i := range row {
			if row[i], err = deflts[i](); err != nil {
				return err
			}
		}
		for i, c := range cols {
			row[c] = src[i]
		}
		for i := range row {
			c := &t.Columns[i]
			if c.Identity && row[i].IsNull() {
				if row[i], err = sqltypes.Cast(sqltypes.NewBigInt(st.nextIdentity()), c.Type, 0); err != nil {
					return err
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
	}
	return ck.done()
}
