package tsql

import (
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// value is one SQL value.
type value = sqltypes.Value

// frame is the evaluation state of one query level: the current row of each source, results of
// aggregates and window functions, and the enclosing query's frame.
type frame struct {
	ex    *exec
	rows  []engine.Row
	up    *frame
	aggs  []value
	wins  []value
	scans [][]engine.Row
	found []bool // scans[i] is filled
	hash  []map[string][]int32
}

type evalFunc func(f *frame) (value, error)

// bexpr is a bound scalar expression.
type bexpr struct {
	eval evalFunc
	typ  sqltypes.Type
	// col is the source and ordinal + 1 of a plain column of the query's own level.
	src, col int
	depth    int
	name     string // column name, for result sets
	notNull  bool
	konst    bool
	identity bool
}

// tri is a truth value.
type tri int8

const (
	isFalse tri = iota
	isTrue
	isUnknown
)

type condFunc func(f *frame) (tri, error)

// source is one row source visible in a scope.
type source struct {
	alias            string // exposed name
	db, schema, name string // of a table, for multi-part references
	cols             []Column
	used             []bool // columns that the query reads
	scope            *scope
}

// scope is what names mean at one query level.
type scope struct {
	parent *scope
	srcs   []*source
	ctes   []*boundCTE
	// agg collects aggregates while the select list, HAVING and ORDER BY are bound.
	agg *aggContext
	// inAgg is set while the argument of an aggregate is bound.
	inAgg bool
	wins  *[]*winSpec
	// noWin forbids window functions (WHERE, GROUP BY, HAVING).
	noAgg, noWin bool
}

type boundCTE struct {
	def  *cte
	prev []*boundCTE // those visible to its definition
	// work is set while the recursive part of the definition is bound.
	work *workTable
}

// workTable feeds a recursive common table expression.
type workTable struct {
	cols []Column
	rows []engine.Row
	used bool
}

// binder resolves names of one statement. It runs inside Host.Do.
type binder struct {
	ex    *exec
	deps  []dep
	depth int
	// viewDepth bounds views in views.
	viewDepth int
	// impure is set by what may differ between two runs over the same rows of system views:
	// functions that ask for something else, variables, and all other tables.
	impure bool
}

func equalName(a, b string) bool { return sqltypes.EqualText(a, b) }

// column resolves a column reference.
func (b *binder) column(sc *scope, c *colExpr) (bexpr, error) {
	depth := 0
	for s := sc; s != nil; s = s.parent {
		found, at := -1, -1
		qualified := false
		for i, src := range s.srcs {
			if len(c.qual) > 0 {
				if !src.matches(c.qual) {
					continue
				}
				qualified = true
			}
			for j := range src.cols {
				if !equalName(src.cols[j].Name, c.name) {
					continue
				}
				if found >= 0 {
					return bexpr{}, errBind(c.line, 209, 16, 1, "Ambiguous column name '%s'.", c.name)
				}
				found, at = i, j
				break
			}
		}
		if found >= 0 {
			return b.columnOf(s, found, at, depth, c.line)
		}
		if qualified {
			return bexpr{}, errBind(c.line, 207, 16, 1, "Invalid column name '%s'.", c.name)
		}
		depth++
	}
	if len(c.qual) > 0 {
		return bexpr{}, errBind(c.line, 4104, 16, 1, "The multi-part identifier \"%s.%s\" could not be bound.", strings.Join(c.qual, "."), c.name)
	}
	return bexpr{}, errBind(c.line, 207, 16, 1, "Invalid column name '%s'.", c.name)
}

func (s *source) matches(qual []string) bool {
	n := len(qual)
	if n == 1 {
		return equalName(s.alias, qual[0])
	}
	if s.name == "" || !equalName(s.name, qual[n-1]) || !equalName(s.schema, qual[n-2]) && !(qual[n-2] == "" && equalName(s.schema, "dbo")) {
		return false
	}
	return n < 3 || equalName(s.db, qual[n-3])
}

// columnOf makes the evaluator of column at of source i in scope s, depth levels up.
func (b *binder) columnOf(s *scope, i, at, depth, line int) (bexpr, error) {
	src := s.srcs[i]
	src.used[at] = true
	col := src.cols[at]
	if s.agg != nil && !s.inAgg && !s.agg.groups(i, at) {
		s.agg.loose = append(s.agg.loose, looseColumn{name: src.exposed() + "." + col.Name, line: line})
	}
	e := bexpr{typ: col.Type, name: col.Name, src: i, col: at + 1, depth: depth, notNull: !col.Nullable, identity: col.Identity}
	typ := col.Type
	switch depth {
	case 0:
		e.eval = func(f *frame) (value, error) {
			if r := f.rows[i]; r != nil {
				return r[at], nil
			}
			return sqltypes.Null(typ), nil
		}
	case 1:
		e.eval = func(f *frame) (value, error) {
			if r := f.up.rows[i]; r != nil {
				return r[at], nil
			}
			return sqltypes.Null(typ), nil
		}
	default:
		e.eval = func(f *frame) (value, error) {
			for range depth {
				f = f.up
			}
			if r := f.rows[i]; r != nil {
				return r[at], nil
			}
			return sqltypes.Null(typ), nil
		}
	}
	return e, nil
}

func constant(v value) bexpr {
	return bexpr{eval: func(*frame) (value, error) { return v, nil }, typ: v.Type(), konst: true, notNull: !v.IsNull()}
}

func (b *binder) enter() error {
	b.depth++
	if b.depth > maxNesting {
		return errBind(0, 191, 15, 1, "Some part of your SQL statement is nested too deeply. Rewrite the query or break it up into smaller queries.")
	}
	return nil
}

// exprs binds a list.
func (b *binder) exprs(sc *scope, l []expr) ([]bexpr, error) {
	out := make([]bexpr, len(l))
	for i, x := range l {
		e, err := b.expr(sc, x)
		if err != nil {
			return nil, err
		}
		out[i] = e
	}
	return out, nil
}

// expr binds a scalar expression.
func (b *binder) expr(sc *scope, x expr) (bexpr, error) {
	if err := b.enter(); err != nil {
		return bexpr{}, err
	}
	defer func() { b.depth-- }()
	if sc != nil && sc.agg != nil && !sc.inAgg && sc.agg.matches(x) {
		// the whole expression is grouped: its columns need not be
		sc.inAgg = true
		defer func() { sc.inAgg = false }()
	}
	switch x := x.(type) {
	case *litExpr:
		return constant(x.v), nil
	case *varExpr:
		return b.variable(x)
	case *colExpr:
		if sc == nil {
			if len(x.qual) > 0 {
				return bexpr{}, errBind(x.line, 4104, 16, 1, "The multi-part identifier \"%s.%s\" could not be bound.", strings.Join(x.qual, "."), x.name)
			}
			return bexpr{}, errBind(x.line, 128, 15, 1, "The name \"%s\" is not permitted in this context. Valid expressions are constants, constant expressions, and (in some contexts) variables. Column names are not permitted.", x.name)
		}
		return b.column(sc, x)
	case *unaryExpr:
		e, err := b.expr(sc, x.x)
		if err != nil {
			return e, err
		}
		op := sqltypes.Negate
		if x.op == '~' {
			op = sqltypes.Complement
		}
		inner := e.eval
		r := bexpr{typ: e.typ, eval: func(f *frame) (value, error) {
			v, err := inner(f)
			if err != nil {
				return v, err
			}
			return op(v)
		}}
		if r.typ.ID == sqltypes.Unknown {
			r.typ = sqltypes.TInt
		}
		if e.konst {
			if v, err := r.eval(nil); err == nil {
				return constant(v), nil
			}
		}
		return r, nil
	case *binExpr:
		return b.binary(sc, x)
	case *castExpr:
		return b.cast(sc, x)
	case *caseExpr:
		return b.caseOf(sc, x)
	case *collateExpr:
		return b.expr(sc, x.x)
	case *funcExpr:
		return b.call(sc, x)
	case *subExpr:
		return b.scalarQuery(sc, x.q)
	case *starExpr:
		return bexpr{}, errBind(0, 102, 15, 1, "Incorrect syntax near '*'.")
	case *defaultExpr:
		return bexpr{}, errBind(0, 156, 15, 1, "Incorrect syntax near the keyword 'DEFAULT'.")
	}
	return bexpr{}, errBind(0, 102, 15, 1, "Incorrect syntax near ','.")
}

func (b *binder) binary(sc *scope, x *binExpr) (bexpr, error) {
	l, err := b.expr(sc, x.l)
	if err != nil {
		return l, err
	}
	r, err := b.expr(sc, x.r)
	if err != nil {
		return r, err
	}
	t, err := sqltypes.ArithType(x.op, l.typ, r.typ)
	if err != nil {
		return bexpr{}, bindError(err)
	}
	op, le, re := x.op, l.eval, r.eval
	e := bexpr{typ: t, eval: func(f *frame) (value, error) {
		a, err := le(f)
		if err != nil {
			return a, err
		}
		c, err := re(f)
		if err != nil {
			return c, err
		}
		return sqltypes.Arith(op, a, c)
	}}
	return e, nil
}

// bindError is an error of typing: it ends the batch.
func bindError(err error) error {
	e := asStmtError(err)
	e.abort, e.uncatchable = true, true
	return e
}

func (b *binder) cast(sc *scope, x *castExpr) (bexpr, error) {
	e, err := b.expr(sc, x.x)
	if err != nil {
		return e, err
	}
	to, inner := x.to, e.eval
	style := func(*frame) (value, error) { return sqltypes.NewInt(0), nil }
	if x.style != nil {
		s, err := b.expr(sc, x.style)
		if err != nil {
			return s, err
		}
		style = s.eval
	}
	try := x.try
	hasStyle := x.style != nil
	return bexpr{typ: to, eval: func(f *frame) (value, error) {
		v, err := inner(f)
		if err != nil {
			return v, err
		}
		st := 0
		if hasStyle {
			s, err := style(f)
			if err != nil {
				return s, err
			}
			if s.IsNull() {
				return sqltypes.Null(to), nil
			}
			if s, err = sqltypes.Cast(s, sqltypes.TInt, 0); err != nil {
				return s, err
			}
			st = int(s.Int64())
		}
		w, err := sqltypes.Cast(v, to, st)
		if err != nil && try {
			return sqltypes.Null(to), nil
		}
		return w, err
	}}, nil
}

func (b *binder) caseOf(sc *scope, x *caseExpr) (bexpr, error) {
	type arm struct {
		cond condFunc
		then evalFunc
	}
	arms := make([]arm, len(x.whens))
	var t sqltypes.Type
	for i, w := range x.whens {
		cond := w.cond
		if x.operand != nil {
			cond = &cmpExpr{op: "=", l: x.operand, r: w.cond}
		}
		c, err := b.cond(sc, cond)
		if err != nil {
			return bexpr{}, err
		}
		e, err := b.expr(sc, w.then)
		if err != nil {
			return e, err
		}
		arms[i] = arm{c, e.eval}
		t = sqltypes.Unify(t, e.typ)
	}
	els := func(*frame) (value, error) { return value{}, nil }
	if x.els != nil {
		e, err := b.expr(sc, x.els)
		if err != nil {
			return e, err
		}
		els = e.eval
		t = sqltypes.Unify(t, e.typ)
	}
	if t.ID == sqltypes.Unknown {
		return bexpr{}, errBind(0, 8133, 16, 1, "At least one of the result expressions in a CASE specification must be an expression other than the NULL constant.")
	}
	return bexpr{typ: t, eval: func(f *frame) (value, error) {
		for i := range arms {
			ok, err := arms[i].cond(f)
			if err != nil {
				return value{}, err
			}
			if ok == isTrue {
				return coerceTo(arms[i].then, f, t)
			}
		}
		return coerceTo(els, f, t)
	}}, nil
}

// coerceTo evaluates and converts to t, without cutting text.
func coerceTo(e evalFunc, f *frame, t sqltypes.Type) (value, error) {
	v, err := e(f)
	if err != nil {
		return v, err
	}
	return coerce(v, t)
}

func coerce(v value, t sqltypes.Type) (value, error) {
	vt := v.Type()
	if vt == t || v.IsVariant() && t.ID == sqltypes.SQLVariant {
		return v, nil
	}
	if v.IsNull() {
		return sqltypes.Null(t), nil
	}
	if vt.ID == t.ID && (t.IsString() || t.IsBinary()) {
		return v, nil
	}
	if !sqltypes.ImplicitOK(vt, t) {
		return v, sqltypes.Errf(206, 16, 2, "Operand type clash: %s is incompatible with %s", vt.ID.Name(), t.ID.Name())
	}
	return sqltypes.Cast(v, t, 0)
}

// variable binds @x or @@x.
func (b *binder) variable(x *varExpr) (bexpr, error) {
	b.impure = true
	if strings.HasPrefix(x.name, "@@") {
		return b.global(x)
	}
	v := b.ex.vars.get(x.name)
	if v == nil || v.table != nil {
		return bexpr{}, errBind(x.line, 137, 15, 2, "Must declare the scalar variable \"%s\".", x.name)
	}
	name := x.name
	b.deps = append(b.deps, dep{variable: name, typ: v.typ})
	return bexpr{typ: v.typ, eval: func(f *frame) (value, error) {
		if v := f.ex.vars.get(name); v != nil {
			return v.val, nil
		}
		return value{}, nil
	}}, nil
}

// exposed is the name of the source in messages: schema.table unless it has an alias.
func (s *source) exposed() string {
	if s.name != "" && s.schema != "" {
		return s.schema + "." + s.name
	}
	return s.alias
}
