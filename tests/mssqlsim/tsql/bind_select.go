package tsql

import (
	"errors"
	"slices"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// boundSelect is a SELECT ready to run.
type boundSelect struct {
	from    *fromNode
	nsrc    int
	where   condFunc
	group   []bexpr
	agg     *aggContext
	having  condFunc
	items   []boundItem
	cols    []Column
	wins    []*winSpec
	order   []boundOrder
	top     *bexpr
	percent bool
	ties    bool
	unique  bool
	assigns bool
	offset  func(up *frame, n int) (lo, hi int, err error)
}

type boundItem struct {
	bexpr
	assign string
	op     byte
}

type boundOrder struct {
	eval evalFunc
	at   int // output column, or -1
	desc bool
}

type looseColumn struct {
	name string
	line int
}

// aggContext is what a grouped query has: its grouping columns and expressions, and the aggregates.
type aggContext struct {
	cols  [][2]int
	keys  map[string]bool
	specs []*aggSpec
	loose []looseColumn
}

func (a *aggContext) groups(src, col int) bool {
	return slices.Contains(a.cols, [2]int{src, col})
}

// matches tells whether x is one of the grouping expressions that are not plain columns.
func (a *aggContext) matches(x expr) bool {
	if len(a.keys) == 0 {
		return false
	}
	switch x.(type) {
	case *colExpr, *litExpr, *varExpr:
		return false
	}
	return a.keys[exprKey(x)]
}

func sortBy[T any](l []T, cmp func(a, b T) int) { slices.SortStableFunc(l, cmp) }

// selectQuery binds one SELECT with the ORDER BY of its query.
func (b *binder) selectQuery(parent *scope, q *query, s *selectBody, ctes []*boundCTE) (*boundQuery, error) {
	bs := &boundSelect{unique: s.distinct, percent: s.topPercent, ties: s.withTies}
	sc := &scope{parent: parent, ctes: ctes, wins: &bs.wins}
	for _, ref := range s.from {
		n, err := b.tableRef(sc, ref)
		if err != nil {
			return nil, err
		}
		if bs.from == nil {
			bs.from = n
		} else {
			bs.from = &fromNode{kind: joinCross, l: bs.from, r: n, hashOrd: -1}
		}
	}
	bs.nsrc = len(sc.srcs)
	var err error
	if s.where != nil {
		sc.noAgg, sc.noWin = true, true
		if bs.where, err = b.cond(sc, s.where); err != nil {
			return nil, err
		}
		sc.noAgg, sc.noWin = false, false
	}
	grouped := len(s.group) > 0 || s.having != nil
	for _, it := range s.items {
		grouped = grouped || hasAggregate(it.x)
	}
	for _, o := range q.order {
		grouped = grouped || hasAggregate(o.x)
	}
	if grouped {
		if err := b.grouping(sc, s, bs); err != nil {
			return nil, err
		}
	}
	if err := b.items(sc, s, bs); err != nil {
		return nil, err
	}
	if err := b.loose(bs.agg, 8120, "the select list"); err != nil {
		return nil, err
	}
	if s.having != nil {
		sc.noWin = true
		if bs.having, err = b.cond(sc, s.having); err != nil {
			return nil, err
		}
		sc.noWin = false
		if err := b.loose(bs.agg, 8121, "the HAVING clause"); err != nil {
			return nil, err
		}
	}
	if err := b.orderItems(sc, q, bs); err != nil {
		return nil, err
	}
	if err := b.loose(bs.agg, 8127, "the ORDER BY clause"); err != nil {
		return nil, err
	}
	if s.top != nil {
		e, err := b.expr(nil, s.top)
		if err != nil {
			return nil, err
		}
		bs.top = &e
		if s.withTies && len(q.order) == 0 {
			return nil, errBind(s.line, 1062, 15, 1, "The TOP N WITH TIES clause is not allowed without a corresponding ORDER BY clause.")
		}
	}
	if bs.offset, err = b.offset(q); err != nil {
		return nil, err
	}
	sc.agg = nil
	return &boundQuery{cols: bs.cols, run: bs.run, assigns: bs.assigns, into: s.into}, nil
}

func (b *binder) loose(a *aggContext, number int32, where string) error {
	if a == nil || len(a.loose) == 0 {
		return nil
	}
	l := a.loose[0]
	return errBind(l.line, number, 16, 1, "Column '%s' is invalid in %s because it is not contained in either an aggregate function or the GROUP BY clause.", l.name, where)
}

func (b *binder) grouping(sc *scope, s *selectBody, bs *boundSelect) error {
	a := &aggContext{keys: map[string]bool{}}
	sc.noAgg, sc.noWin = true, true
	for _, g := range s.group {
		if l, ok := g.(*litExpr); ok {
			_ = l
			return errBind(s.line, 164, 15, 1, "Each GROUP BY expression must contain at least one column that is not an outer reference.")
		}
		e, err := b.expr(sc, g)
		if err != nil {
			return err
		}
		bs.group = append(bs.group, e)
		if e.col > 0 && e.depth == 0 {
			a.cols = append(a.cols, [2]int{e.src, e.col - 1})
		} else {
			a.keys[exprKey(g)] = true
		}
	}
	sc.noAgg, sc.noWin = false, false
	sc.agg, bs.agg = a, a
	return nil
}

func (b *binder) items(sc *scope, s *selectBody, bs *boundSelect) error {
	assigns, plain := 0, 0
	for _, it := range s.items {
		if st, ok := it.x.(*starExpr); ok {
			plain++
			if err := b.star(sc, s, st, bs); err != nil {
				return err
			}
			continue
		}
		e, err := b.expr(sc, it.x)
		if err != nil {
			return err
		}
		bi := boundItem{bexpr: e, assign: it.assign, op: it.op}
		if it.assign != "" {
			assigns++
			v := b.ex.vars.get(it.assign)
			if v == nil || v.table != nil {
				return errBind(s.line, 137, 15, 2, "Must declare the scalar variable \"%s\".", it.assign)
			}
			b.deps = append(b.deps, dep{variable: it.assign, typ: v.typ})
		} else {
			plain++
			name := it.alias
			if name == "" {
				name = e.name
			}
			bs.cols = append(bs.cols, Column{Name: name, Type: wireType(e.typ), Nullable: !e.notNull, Identity: e.identity && it.alias == ""})
		}
		bs.items = append(bs.items, bi)
	}
	if assigns > 0 && plain > 0 {
		return errBind(s.line, 141, 15, 1, "A SELECT statement that assigns a value to a variable must not be combined with data-retrieval operations.")
	}
	bs.assigns = assigns > 0
	return nil
}

func (b *binder) star(sc *scope, s *selectBody, st *starExpr, bs *boundSelect) error {
	if len(sc.srcs) == 0 && len(st.qual) == 0 {
		return errBind(s.line, 263, 16, 1, "Must specify table to select from.")
	}
	found := false
	for i, src := range sc.srcs {
		if len(st.qual) > 0 && !src.matches(st.qual) {
			continue
		}
		found = true
		for j := range src.cols {
			e, err := b.columnOf(sc, i, j, 0, s.line)
			if err != nil {
				return err
			}
			bs.items = append(bs.items, boundItem{bexpr: e})
			bs.cols = append(bs.cols, Column{Name: e.name, Type: e.typ, Nullable: !e.notNull, Identity: e.identity})
		}
	}
	if !found {
		return errBind(s.line, 107, 15, 1, "The column prefix '%s' does not match with a table name or alias name used in the query.", st.qual[len(st.qual)-1])
	}
	return nil
}

func (b *binder) orderItems(sc *scope, q *query, bs *boundSelect) error {
	for _, o := range q.order {
		at, ok, err := outputColumn(bs.cols, o.x, q.line)
		if err != nil {
			return err
		}
		if ok && !bs.assigns {
			bs.order = append(bs.order, boundOrder{at: at, desc: o.desc})
			continue
		}
		e, err := b.expr(sc, o.x)
		if err != nil {
			return err
		}
		if bs.unique {
			found := false
			for i := range bs.items {
				if e.col > 0 && bs.items[i].col == e.col && bs.items[i].src == e.src && bs.items[i].depth == e.depth {
					bs.order = append(bs.order, boundOrder{at: i, desc: o.desc})
					found = true
					break
				}
			}
			if !found {
				return errBind(q.line, 145, 15, 1, "ORDER BY items must appear in the select list if SELECT DISTINCT is specified.")
			}
			continue
		}
		bs.order = append(bs.order, boundOrder{eval: e.eval, at: -1, desc: o.desc})
	}
	return nil
}

// outRow is a result row with the values that it is ordered by.
type outRow struct {
	row  engine.Row
	keys []value
	f    *frame
}

func (s *boundSelect) newFrame(up *frame) *frame {
	f := &frame{ex: up.ex, up: up}
	if s.nsrc > 0 {
		f.rows = make([]engine.Row, s.nsrc)
		f.scans = make([][]engine.Row, s.nsrc)
		f.found = make([]bool, s.nsrc)
	}
	return f
}

// snapshot copies the current rows of f.
func (f *frame) snapshot() *frame {
	g := *f
	g.rows = slices.Clone(f.rows)
	return &g
}

func (s *boundSelect) run(up *frame, emit func(engine.Row) error) error {
	f := s.newFrame(up)
	limit := -1
	if s.top != nil && !s.percent {
		n, err := asBigInt(s.top.eval, f)
		if err != nil {
			return err
		}
		if n < 0 {
			return errNum(1060, 15, 1, "The number of rows provided for a TOP or FETCH clauses row count parameter must be an integer.")
		}
		limit = int(min(n, 1<<31))
	}
	if s.agg == nil && len(s.wins) == 0 && len(s.order) == 0 && !s.percent {
		return s.stream(f, limit, emit)
	}
	frames, err := s.frames(f)
	if err != nil {
		return err
	}
	for _, w := range s.wins {
		if err := w.compute(frames, len(s.wins)); err != nil {
			return err
		}
	}
	if s.assigns && len(s.order) == 0 {
		for _, g := range frames {
			if err := s.assign(g); err != nil {
				return err
			}
			if err := emit(nil); err != nil {
				return err
			}
		}
		return nil
	}
	out := make([]outRow, 0, len(frames))
	var seen map[string]bool
	if s.unique {
		seen = map[string]bool{}
	}
	for _, g := range frames {
		o := outRow{f: g}
		if !s.assigns {
			if o.row, err = s.project(g); err != nil {
				return err
			}
		}
		if s.unique {
			k := rowKey(o.row)
			if seen[k] {
				continue
			}
			seen[k] = true
		}
		for _, k := range s.order {
			if k.at >= 0 {
				o.keys = append(o.keys, o.row[k.at])
				continue
			}
			v, err := k.eval(g)
			if err != nil {
				return err
			}
			o.keys = append(o.keys, v)
		}
		out = append(out, o)
	}
	compare := func(a, c outRow) int {
		for i, k := range s.order {
			if n := sqltypes.Order(a.keys[i], c.keys[i]); n != 0 {
				if k.desc {
					return -n
				}
				return n
			}
		}
		return 0
	}
	if len(s.order) > 0 {
		sortBy(out, compare)
	}
	if s.percent {
		p, err := s.top.eval(f)
		if err == nil {
			p, err = sqltypes.Cast(p, sqltypes.TFloat, 0)
		}
		if err != nil {
			return err
		}
		if p.Float64() < 0 || p.Float64() > 100 {
			return errNum(1031, 15, 1, "Percent values must be between 0 and 100.")
		}
		limit = ceilPercent(len(out), p.Float64())
	}
	lo, hi, err := s.offset(f, len(out))
	if err != nil {
		return err
	}
	out = out[lo:hi]
	if limit >= 0 && limit < len(out) {
		if s.ties {
			for limit > 0 && limit < len(out) && compare(out[limit-1], out[limit]) == 0 {
				limit++
			}
		}
		out = out[:limit]
	}
	for i := range out {
		if s.assigns {
			if err := s.assign(out[i].f); err != nil {
				return err
			}
		}
		if err := emit(out[i].row); err != nil {
			return err
		}
	}
	return nil
}

func ceilPercent(n int, p float64) int {
	x := float64(n) * p / 100
	k := int(x)
	if float64(k) < x {
		k++
	}
	return k
}

func rowKey(r engine.Row) string {
	var b []byte
	for i := range r {
		b = r[i].AppendKey(b)
	}
	return string(b)
}

// stream is the path of a plain query: rows go out as they are found.
func (s *boundSelect) stream(f *frame, limit int, emit func(engine.Row) error) error {
	var seen map[string]bool
	if s.unique {
		seen = map[string]bool{}
	}
	n := 0
	if limit == 0 {
		return nil
	}
	err := s.each(f, func() error {
		if s.assigns {
			if err := s.assign(f); err != nil {
				return err
			}
			if err := emit(nil); err != nil {
				return err
			}
		} else {
			row, err := s.project(f)
			if err != nil {
				return err
			}
			if s.unique {
				k := rowKey(row)
				if seen[k] {
					return nil
				}
				seen[k] = true
			}
			if err := emit(row); err != nil {
				return err
			}
		}
		if n++; n == limit {
			return errLimit
		}
		return nil
	})
	if errors.Is(err, errLimit) {
		return nil
	}
	return err
}

// each calls fn for every row of FROM that WHERE accepts.
func (s *boundSelect) each(f *frame, fn func() error) error {
	step := func() error {
		if err := f.ex.step(); err != nil {
			return err
		}
		if s.where != nil {
			ok, err := s.where(f)
			if err != nil || ok != isTrue {
				return err
			}
		}
		return fn()
	}
	if s.from == nil {
		return step()
	}
	return s.from.run(f, step)
}

func (s *boundSelect) project(f *frame) (engine.Row, error) {
	row := make(engine.Row, len(s.items))
	for i := range s.items {
		v, err := s.items[i].eval(f)
		if err != nil {
			return nil, err
		}
		if v.Type().ID != s.cols[i].Type.ID {
			if v, err = coerce(v, s.cols[i].Type); err != nil {
				return nil, err
			}
		}
		row[i] = v
	}
	return row, nil
}

func (s *boundSelect) assign(f *frame) error {
	for i := range s.items {
		v, err := s.items[i].eval(f)
		if err != nil {
			return err
		}
		if err := f.ex.assign(s.items[i].assign, s.items[i].op, v); err != nil {
			return err
		}
	}
	return nil
}

// frames collects the rows of a query that must see all of them before the first goes out:
// one frame per row, or per group.
func (s *boundSelect) frames(f *frame) ([]*frame, error) {
	var out []*frame
	if s.agg == nil {
		err := s.each(f, func() error {
			out = append(out, f.snapshot())
			return nil
		})
		if errors.Is(err, errStop) {
			err = nil
		}
		return out, err
	}
	type group struct {
		f      *frame
		states []aggState
	}
	groups := map[string]*group{}
	var order []*group
	var key []byte
	newGroup := func(rep *frame) *group {
		g := &group{f: rep, states: make([]aggState, len(s.agg.specs))}
		for i, sp := range s.agg.specs {
			g.states[i] = sp.start()
		}
		order = append(order, g)
		return g
	}
	err := s.each(f, func() error {
		key = key[:0]
		for i := range s.group {
			v, err := s.group[i].eval(f)
			if err != nil {
				return err
			}
			key = v.AppendKey(key)
		}
		g := groups[string(key)]
		if g == nil {
			g = newGroup(f.snapshot())
			groups[string(key)] = g
		}
		for i, sp := range s.agg.specs {
			if err := sp.add(g.states[i], f); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, errStop) {
		return nil, err
	}
	if len(order) == 0 && len(s.group) == 0 {
		empty := *f
		empty.rows = make([]engine.Row, len(f.rows))
		newGroup(&empty)
	}
	for _, g := range order {
		g.f.aggs = make([]value, len(g.states))
		for i, st := range g.states {
			v, err := s.agg.specs[i].finish(st)
			if err != nil {
				return nil, err
			}
			g.f.aggs[i] = v
		}
		if s.having != nil {
			ok, err := s.having(g.f)
			if err != nil {
				return nil, err
			}
			if ok != isTrue {
				continue
			}
		}
		out = append(out, g.f)
	}
	return out, nil
}
