package tsql

import (
	"errors"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// errStop ends a row loop early; boundQuery.each turns it into nil.
var errStop = errors.New("stop")

// errLimit ends a query that has reached its TOP.
var errLimit = errors.New("limit")

// boundQuery is a query ready to run.
type boundQuery struct {
	cols []Column
	// run produces the rows; up is the frame of the enclosing query.
	run func(up *frame, emit func(engine.Row) error) error
	// assigns tells that the query only sets variables: it emits a nil row per row.
	assigns bool
	into    *objName
}

// each runs the query; emit may return errStop.
func (q *boundQuery) each(up *frame, emit func(engine.Row) error) error {
	err := q.run(up, emit)
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// all gives all rows.
func (q *boundQuery) all(up *frame) ([]engine.Row, error) {
	var rows []engine.Row
	err := q.each(up, func(r engine.Row) error {
		rows = append(rows, r)
		return nil
	})
	return rows, err
}

// subquery binds a query inside an expression; many columns are allowed for EXISTS only.
func (b *binder) subquery(sc *scope, q *query, exists bool) (*boundQuery, error) {
	if q.order != nil && !exists {
		if s, ok := q.body.(*selectBody); (!ok || s.top == nil) && q.offset == nil {
			return nil, errOrderInSub(q.line)
		}
	}
	bq, err := b.query(sc, q, nil)
	if err != nil {
		return nil, err
	}
	if bq.assigns {
		return nil, errBind(q.line, 141, 15, 1, "A SELECT statement that assigns a value to a variable must not be combined with data-retrieval operations.")
	}
	if !exists && len(bq.cols) != 1 {
		return nil, errBind(q.line, 116, 16, 1, "Only one expression can be specified in the select list when the subquery is not introduced with EXISTS.")
	}
	return bq, nil
}

func errOrderInSub(line int) error {
	return errBind(line, 1033, 15, 1, "The ORDER BY clause is invalid in views, inline functions, derived tables, subqueries, and common table expressions, unless TOP, OFFSET or FOR XML is also specified.")
}

func (b *binder) scalarQuery(sc *scope, q *query) (bexpr, error) {
	bq, err := b.subquery(sc, q, false)
	if err != nil {
		return bexpr{}, err
	}
	t := bq.cols[0].Type
	return bexpr{typ: t, eval: func(f *frame) (value, error) {
		v, n := sqltypes.Null(t), 0
		err := bq.each(f, func(r engine.Row) error {
			if n++; n > 1 {
				return errNum(512, 16, 1, "Subquery returned more than 1 value. This is not permitted when the subquery follows =, !=, <, <= , >, >= or when the subquery is used as an expression.")
			}
			v = r[0]
			return nil
		})
		return v, err
	}}, nil
}

// query binds a query expression. parent is the enclosing scope, ctes what WITH has defined.
func (b *binder) query(parent *scope, q *query, ctes []*boundCTE) (*boundQuery, error) {
	if err := b.enter(); err != nil {
		return nil, err
	}
	defer func() { b.depth-- }()
	if ctes == nil && parent != nil {
		ctes = parent.ctes
	}
	for i := range q.with {
		c := &q.with[i]
		for _, o := range q.with[:i] {
			if equalName(o.name, c.name) {
				return nil, errBind(q.line, 239, 16, 1, "Duplicate common table expression name '%s' was specified.", c.name)
			}
		}
		ctes = append(ctes[:len(ctes):len(ctes)], &boundCTE{def: c, prev: ctes})
	}
	if s, ok := q.body.(*selectBody); ok {
		return b.selectQuery(parent, q, s, ctes)
	}
	bq, err := b.body(parent, q.body, ctes, q.line)
	if err != nil {
		return nil, err
	}
	if q.order == nil {
		return bq, nil
	}
	return b.orderSet(bq, q)
}

// body binds one side of a set operation.
func (b *binder) body(parent *scope, qb queryBody, ctes []*boundCTE, line int) (*boundQuery, error) {
	switch qb := qb.(type) {
	case *selectBody:
		return b.selectQuery(parent, &query{body: qb, line: qb.line}, qb, ctes)
	case *valuesBody:
		return b.values(parent, qb, ctes)
	case *setOp:
		l, err := b.body(parent, qb.l, ctes, line)
		if err != nil {
			return nil, err
		}
		r, err := b.body(parent, qb.r, ctes, line)
		if err != nil {
			return nil, err
		}
		return combine(qb.op, l, r, line)
	}
	return nil, errBind(line, 102, 15, 1, "Incorrect syntax near 'SELECT'.")
}

// combine is a set operation.
func combine(op string, l, r *boundQuery, line int) (*boundQuery, error) {
	if len(l.cols) != len(r.cols) {
		return nil, errBind(line, 205, 16, 1, "All queries combined using a UNION, INTERSECT or EXCEPT operator must have an equal number of expressions in their target lists.")
	}
	if l.assigns || r.assigns {
		return nil, errBind(line, 141, 15, 1, "A SELECT statement that assigns a value to a variable must not be combined with data-retrieval operations.")
	}
	cols := make([]Column, len(l.cols))
	for i := range cols {
		if err := comparable(l.cols[i].Type, r.cols[i].Type); err != nil {
			return nil, err
		}
		cols[i] = Column{Name: l.cols[i].Name, Type: wireType(sqltypes.Unify(l.cols[i].Type, r.cols[i].Type)), Nullable: l.cols[i].Nullable || r.cols[i].Nullable}
	}
	fit := func(row engine.Row) (engine.Row, error) {
		out := row
		for i := range row {
			v, err := coerce(row[i], cols[i].Type)
			if err != nil {
				return nil, err
			}
			if v != row[i] {
				if &out[0] == &row[0] {
					out = append(engine.Row(nil), row...)
				}
				out[i] = v
			}
		}
		return out, nil
	}
	q := &boundQuery{cols: cols, into: l.into}
	q.run = func(up *frame, emit func(engine.Row) error) error {
		seen := map[string]bool{}
		var key []byte
		keyOf := func(r engine.Row) string {
			key = key[:0]
			for i := range r {
				key = r[i].AppendKey(key)
			}
			return string(key)
		}
		pass := func(distinct bool, keep func(string) bool) func(engine.Row) error {
			return func(r engine.Row) error {
				r, err := fit(r)
				if err != nil {
					return err
				}
				if distinct {
					k := keyOf(r)
					if seen[k] || keep != nil && !keep(k) {
						return nil
					}
					seen[k] = true
				}
				return emit(r)
			}
		}
		switch op {
		case "UNION ALL", "UNION":
			p := pass(op == "UNION", nil)
			if err := l.run(up, p); err != nil {
				return err
			}
			return r.run(up, p)
		}
		right := map[string]bool{}
		if err := r.each(up, func(row engine.Row) error {
			row, err := fit(row)
			if err == nil {
				right[keyOf(row)] = true
			}
			return err
		}); err != nil {
			return err
		}
		return l.run(up, pass(true, func(k string) bool { return right[k] == (op == "INTERSECT") }))
	}
	return q, nil
}

// wireType replaces the type of an untyped NULL by int.
func wireType(t sqltypes.Type) sqltypes.Type {
	if t.ID == sqltypes.Unknown {
		return sqltypes.TInt
	}
	return t
}

func (b *binder) values(parent *scope, vb *valuesBody, ctes []*boundCTE) (*boundQuery, error) {
	sc := &scope{parent: parent, ctes: ctes, noAgg: true, noWin: true}
	rows := make([][]bexpr, len(vb.rows))
	cols := make([]Column, len(vb.rows[0]))
	for i, r := range vb.rows {
		l, err := b.exprs(sc, r)
		if err != nil {
			return nil, err
		}
		rows[i] = l
		for j := range l {
			cols[j].Type = sqltypes.Unify(cols[j].Type, l[j].typ)
			cols[j].Nullable = cols[j].Nullable || !l[j].notNull
		}
	}
	for j := range cols {
		cols[j].Type = wireType(cols[j].Type)
	}
	return &boundQuery{cols: cols, run: func(up *frame, emit func(engine.Row) error) error {
		f := &frame{ex: up.ex, up: up}
		for _, l := range rows {
			row := make(engine.Row, len(l))
			for j := range l {
				v, err := coerceTo(l[j].eval, f, cols[j].Type)
				if err != nil {
					return err
				}
				row[j] = v
			}
			if err := emit(row); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

// orderSet sorts the result of a set operation by output columns.
func (b *binder) orderSet(bq *boundQuery, q *query) (*boundQuery, error) {
	type key struct {
		at   int
		desc bool
	}
	keys := make([]key, len(q.order))
	for i, o := range q.order {
		at, ok, err := outputColumn(bq.cols, o.x, q.line)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, errBind(q.line, 104, 16, 1, "ORDER BY items must appear in the select list if the statement contains a UNION, INTERSECT or EXCEPT operator.")
		}
		keys[i] = key{at, o.desc}
	}
	off, err := b.offset(q)
	if err != nil {
		return nil, err
	}
	inner := bq.run
	out := *bq
	out.run = func(up *frame, emit func(engine.Row) error) error {
		var rows []engine.Row
		if err := inner(up, func(r engine.Row) error {
			rows = append(rows, r)
			return nil
		}); err != nil && !errors.Is(err, errStop) {
			return err
		}
		sortBy(rows, func(x, y engine.Row) int {
			for _, k := range keys {
				if c := sqltypes.Order(x[k.at], y[k.at]); c != 0 {
					if k.desc {
						return -c
					}
					return c
				}
			}
			return 0
		})
		lo, hi, err := off(up, len(rows))
		if err != nil {
			return err
		}
		for _, r := range rows[lo:hi] {
			if err := emit(r); err != nil {
				return err
			}
		}
		return nil
	}
	return &out, nil
}

// outputColumn finds the output column that an ORDER BY item names by number or by name.
func outputColumn(cols []Column, x expr, line int) (int, bool, error) {
	switch x := x.(type) {
	case *litExpr:
		if !x.v.Type().IsInteger() || x.v.IsNull() {
			return 0, false, errBind(line, 408, 16, 1, "A constant expression was encountered in the ORDER BY list, position 1.")
		}
		n := x.v.Int64()
		if n < 1 || n > int64(len(cols)) {
			return 0, false, errBind(line, 108, 16, 1, "The ORDER BY position number %d is out of range of the number of items in the select list.", n)
		}
		return int(n) - 1, true, nil
	case *colExpr:
		if len(x.qual) > 0 {
			return 0, false, nil
		}
		for i := range cols {
			if cols[i].Name != "" && equalName(cols[i].Name, x.name) {
				return i, true, nil
			}
		}
	}
	return 0, false, nil
}

// offset binds OFFSET and FETCH and gives the bounds for n rows.
func (b *binder) offset(q *query) (func(up *frame, n int) (lo, hi int, err error), error) {
	if q.offset == nil {
		return func(_ *frame, n int) (int, int, error) { return 0, n, nil }, nil
	}
	off, err := b.expr(nil, q.offset)
	if err != nil {
		return nil, err
	}
	var fetch *bexpr
	if q.fetch != nil {
		e, err := b.expr(nil, q.fetch)
		if err != nil {
			return nil, err
		}
		fetch = &e
	}
	return func(up *frame, n int) (int, int, error) {
		v, err := asBigInt(off.eval, up)
		if err != nil {
			return 0, 0, err
		}
		if v < 0 {
			return 0, 0, errNum(10742, 15, 1, "The offset specified in a OFFSET clause may not be negative.")
		}
		lo := int(min(v, int64(n)))
		hi := n
		if fetch != nil {
			c, err := asBigInt(fetch.eval, up)
			if err != nil {
				return 0, 0, err
			}
			if c < 1 {
				return 0, 0, errNum(10744, 15, 1, "The number of rows provided for a FETCH clause must be greater then zero.")
			}
			if c < int64(n-lo) {
				hi = lo + int(c)
			}
		}
		return lo, hi, nil
	}, nil
}

func asBigInt(e evalFunc, f *frame) (int64, error) {
	v, err := e(f)
	if err == nil {
		v, err = sqltypes.Cast(v, sqltypes.TBigInt, 0)
	}
	return v.Int64(), err
}
