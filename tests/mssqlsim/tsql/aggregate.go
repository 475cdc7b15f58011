package tsql

import (
	"math"
	"math/big"
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

func isAggregate(name string) bool {
	switch name {
	case "count", "count_big", "sum", "avg", "min", "max", "string_agg", "stdev", "stdevp", "var", "varp", "checksum_agg", "approx_count_distinct":
		return true
	}
	return false
}

// aggSpec is one aggregate of a query.
type aggSpec struct {
	name     string
	arg      evalFunc // nil for COUNT(*)
	typ      sqltypes.Type
	distinct bool
	sep      evalFunc
	order    []boundOrder
}

// aggState accumulates one group.
type aggState interface{}

type accum struct {
	n    int64
	v    value
	f    float64
	sq   float64
	seen map[string]bool
	list []outRow
}

func (s *aggSpec) start() aggState {
	a := &accum{}
	if s.distinct {
		a.seen = map[string]bool{}
	}
	return a
}

func (s *aggSpec) add(st aggState, f *frame) error {
	a := st.(*accum)
	if s.arg == nil {
		a.n++
		return nil
	}
	v, err := s.arg(f)
	if err != nil || v.IsNull() {
		return err
	}
	if s.distinct {
		k := v.Key()
		if a.seen[k] {
			return nil
		}
		a.seen[k] = true
	}
	a.n++
	switch s.name {
	case "sum", "avg":
		if v, err = sqltypes.Cast(v, s.typ, 0); err != nil {
			return err
		}
		if a.n == 1 {
			a.v = v
			return nil
		}
		w, err := sqltypes.Arith('+', a.v, v)
		if err == nil {
			w, err = sqltypes.Cast(w, s.typ, 0)
		}
		a.v = w
		return err
	case "min", "max":
		if a.n == 1 {
			a.v = v
			return nil
		}
		c := sqltypes.Order(v, a.v)
		if s.name == "min" && c < 0 || s.name == "max" && c > 0 {
			a.v = v
		}
	case "stdev", "stdevp", "var", "varp":
		w, err := sqltypes.Cast(v, sqltypes.TFloat, 0)
		if err != nil {
			return err
		}
		a.f += w.Float64()
		a.sq += w.Float64() * w.Float64()
	case "checksum_agg":
		w, err := sqltypes.Cast(v, sqltypes.TInt, 0)
		if err != nil {
			return err
		}
		a.f = float64(int32(a.f) ^ int32(w.Int64()))
	case "string_agg":
		o := outRow{row: []value{v}}
		for _, k := range s.order {
			kv, err := k.eval(f)
			if err != nil {
				return err
			}
			o.keys = append(o.keys, kv)
		}
		if a.n == 1 {
			sep, err := textValue(s.sep, f)
			if err != nil {
				return err
			}
			a.v = sep
		}
		a.list = append(a.list, o)
	}
	return nil
}

func (s *aggSpec) finish(st aggState) (value, error) {
	a := st.(*accum)
	switch s.name {
	case "count":
		if a.n > math.MaxInt32 {
			return value{}, sqltypes.Errf(8115, 16, 2, "Arithmetic overflow error converting expression to data type int.")
		}
		return sqltypes.NewInt(int32(a.n)), nil
	case "count_big", "approx_count_distinct":
		return sqltypes.NewBigInt(a.n), nil
	}
	if a.n == 0 {
		return sqltypes.Null(s.typ), nil
	}
	switch s.name {
	case "avg":
		n := sqltypes.NewBigInt(a.n)
		switch {
		case s.typ.IsDecimal():
			// the count has the scale of nothing: divide exactly, then fit
			d, err := sqltypes.NewDecimal(sqltypes.TNumeric(19, 0), big.NewInt(a.n))
			if err != nil {
				return value{}, err
			}
			v, err := sqltypes.Arith('/', a.v, d)
			if err != nil {
				return value{}, err
			}
			return sqltypes.Cast(v, s.typ, 0)
		case s.typ.IsFloat():
			return sqltypes.Arith('/', a.v, n)
		}
		v, err := sqltypes.Arith('/', a.v, n)
		if err != nil {
			return value{}, err
		}
		return sqltypes.Cast(v, s.typ, 0)
	case "stdev", "stdevp", "var", "varp":
		d := float64(a.n)
		variance := a.sq/d - a.f/d*a.f/d
		if s.name == "stdev" || s.name == "var" {
			if a.n == 1 {
				return sqltypes.Null(s.typ), nil
			}
			variance *= d / (d - 1)
		}
		variance = math.Max(variance, 0)
		if strings.HasPrefix(s.name, "stdev") {
			variance = math.Sqrt(variance)
		}
		return sqltypes.NewFloat(variance), nil
	case "checksum_agg":
		return sqltypes.NewInt(int32(a.f)), nil
	case "string_agg":
		sortBy(a.list, func(x, y outRow) int {
			for i, k := range s.order {
				if c := sqltypes.Order(x.keys[i], y.keys[i]); c != 0 {
					if k.desc {
						return -c
					}
					return c
				}
			}
			return 0
		})
		var b strings.Builder
		for i, o := range a.list {
			if i > 0 {
				b.WriteString(a.v.Text())
			}
			t, err := sqltypes.Cast(o.row[0], sqltypes.TNVarCharMax, 0)
			if err != nil {
				return value{}, err
			}
			b.WriteString(t.Text())
		}
		return sqltypes.NewText(s.typ, b.String()), nil
	}
	return a.v, nil
}

// aggType is the result type of an aggregate over t.
func aggType(name string, t sqltypes.Type) (sqltypes.Type, error) {
	switch name {
	case "count":
		return sqltypes.TInt, nil
	case "count_big", "approx_count_distinct":
		return sqltypes.TBigInt, nil
	case "min", "max":
		if t.ID == sqltypes.Bit {
			return t, errBind(0, 8117, 16, 1, "Operand data type bit is invalid for %s operator.", name)
		}
		return wireType(t), nil
	case "stdev", "stdevp", "var", "varp":
		return sqltypes.TFloat, nil
	case "checksum_agg":
		return sqltypes.TInt, nil
	case "string_agg":
		if t.IsString() && !t.IsUnicode() {
			if t.Len == sqltypes.Max {
				return sqltypes.TVarCharMax, nil
			}
			return sqltypes.TVarChar(8000), nil
		}
		if t.Len == sqltypes.Max {
			return sqltypes.TNVarCharMax, nil
		}
		return sqltypes.TNVarChar(4000), nil
	}
	switch {
	case t.ID == sqltypes.Bit || !t.IsNumber():
		return t, errBind(0, 8117, 16, 1, "Operand data type %s is invalid for %s operator.", t.ID.Name(), name)
	case t.ID == sqltypes.BigInt:
		return t, nil
	case t.IsInteger():
		return sqltypes.TInt, nil
	case t.IsDecimal():
		if name == "avg" {
			return sqltypes.Type{ID: t.ID, Prec: 38, Scale: max(t.Scale, 6)}, nil
		}
		return sqltypes.Type{ID: t.ID, Prec: 38, Scale: t.Scale}, nil
	}
	return sqltypes.TFloat, nil
}

// aggregate binds an aggregate call.
func (b *binder) aggregate(sc *scope, x *funcExpr) (bexpr, error) {
	spec, err := b.aggSpec(sc, x)
	if err != nil {
		return bexpr{}, err
	}
	if x.over != nil {
		return b.window(sc, x, spec)
	}
	if sc == nil || sc.noAgg || sc.agg == nil {
		return bexpr{}, errBind(x.line, 147, 15, 1, "An aggregate may not appear in the WHERE clause unless it is in a subquery contained in a HAVING clause or a select list, and the column being aggregated is an outer reference.")
	}
	slot := len(sc.agg.specs)
	sc.agg.specs = append(sc.agg.specs, spec)
	return bexpr{typ: spec.typ, notNull: strings.HasPrefix(x.name, "count"), eval: func(f *frame) (value, error) { return f.aggs[slot], nil }}, nil
}

func (b *binder) aggSpec(sc *scope, x *funcExpr) (*aggSpec, error) {
	spec := &aggSpec{name: x.name, distinct: x.distinct || x.name == "approx_count_distinct"}
	if sc != nil && sc.inAgg && x.over == nil && sc.agg != nil && !sc.agg.matches(x) {
		return nil, errBind(x.line, 130, 15, 1, "Cannot perform an aggregate function on an expression containing an aggregate or a subquery.")
	}
	want := 1
	if x.name == "string_agg" {
		want = 2
	}
	if x.star {
		if !strings.HasPrefix(x.name, "count") {
			return nil, errBind(x.line, 102, 15, 1, "Incorrect syntax near '*'.")
		}
		spec.typ, _ = aggType(x.name, sqltypes.TInt)
		return spec, nil
	}
	if len(x.args) != want {
		return nil, errBind(x.line, 174, 15, 1, "The %s function requires %d argument(s).", x.name, want)
	}
	if sc != nil && x.over == nil {
		sc.inAgg = true
		defer func() { sc.inAgg = false }()
	}
	e, err := b.expr(sc, x.args[0])
	if err != nil {
		return nil, err
	}
	spec.arg = e.eval
	if spec.typ, err = aggType(x.name, e.typ); err != nil {
		return nil, err
	}
	if want == 2 {
		s, err := b.expr(sc, x.args[1])
		if err != nil {
			return nil, err
		}
		spec.sep = s.eval
		for _, o := range x.within {
			k, err := b.expr(sc, o.x)
			if err != nil {
				return nil, err
			}
			spec.order = append(spec.order, boundOrder{eval: k.eval, at: -1, desc: o.desc})
		}
	}
	return spec, nil
}

// winSpec is one window function of a query.
type winSpec struct {
	name      string
	agg       *aggSpec
	partition []bexpr
	order     []boundOrder
	arg       evalFunc // LAG, LEAD, NTILE, FIRST_VALUE
	offset    evalFunc
	deflt     evalFunc
	typ       sqltypes.Type
	slot      int
}

func isRanking(name string) bool {
	switch name {
	case "row_number", "rank", "dense_rank", "ntile", "lag", "lead", "first_value", "last_value":
		return true
	}
	return false
}

// window binds a function with OVER.
func (b *binder) window(sc *scope, x *funcExpr, agg *aggSpec) (bexpr, error) {
	if sc == nil || sc.noWin || sc.wins == nil {
		return bexpr{}, errBind(x.line, 4108, 15, 1, "Windowed functions can only appear in the SELECT or ORDER BY clauses.")
	}
	w := &winSpec{name: x.name, agg: agg}
	var err error
	if w.partition, err = b.exprs(sc, x.over.partition); err != nil {
		return bexpr{}, err
	}
	for _, o := range x.over.order {
		e, err := b.expr(sc, o.x)
		if err != nil {
			return bexpr{}, err
		}
		w.order = append(w.order, boundOrder{eval: e.eval, at: -1, desc: o.desc})
	}
	switch {
	case agg != nil:
		w.typ = agg.typ
	case len(w.order) == 0:
		return bexpr{}, errBind(x.line, 4112, 15, 1, "The function '%s' must have an OVER clause with ORDER BY.", x.name)
	default:
		w.typ = sqltypes.TBigInt
		args, err := b.exprs(sc, x.args)
		if err != nil {
			return bexpr{}, err
		}
		want, most := 0, 0
		switch x.name {
		case "ntile", "first_value", "last_value":
			want, most = 1, 1
		case "lag", "lead":
			want, most = 1, 3
		}
		if len(args) < want || len(args) > most {
			return bexpr{}, errBind(x.line, 174, 15, 1, "The %s function requires %d argument(s).", x.name, want)
		}
		if len(args) > 0 {
			w.arg = args[0].eval
			if x.name != "ntile" {
				w.typ = wireType(args[0].typ)
			}
		}
		if len(args) > 1 {
			w.offset = args[1].eval
		}
		if len(args) > 2 {
			w.deflt = args[2].eval
		}
	}
	w.slot = len(*sc.wins)
	*sc.wins = append(*sc.wins, w)
	slot, typ := w.slot, w.typ
	return bexpr{typ: typ, notNull: agg == nil && w.arg == nil, eval: func(f *frame) (value, error) {
		if slot < len(f.wins) {
			return f.wins[slot], nil
		}
		return sqltypes.Null(typ), nil
	}}, nil
}

type winRow struct {
	f    *frame
	keys []value
}

// compute fills the slot of w in every frame.
func (w *winSpec) compute(frames []*frame, slots int) error {
	parts := map[string][]winRow{}
	var order []string
	var key []byte
	for _, f := range frames {
		if f.wins == nil {
			f.wins = make([]value, slots)
		}
		key = key[:0]
		for i := range w.partition {
			v, err := w.partition[i].eval(f)
			if err != nil {
				return err
			}
			key = v.AppendKey(key)
		}
		r := winRow{f: f}
		for _, o := range w.order {
			v, err := o.eval(f)
			if err != nil {
				return err
			}
			r.keys = append(r.keys, v)
		}
		k := string(key)
		if parts[k] == nil {
			order = append(order, k)
		}
		parts[k] = append(parts[k], r)
	}
	for _, k := range order {
		rows := parts[k]
		sortBy(rows, w.compare)
		if err := w.fill(rows); err != nil {
			return err
		}
	}
	return nil
}

func (w *winSpec) compare(a, c winRow) int {
	for i, o := range w.order {
		if n := sqltypes.Order(a.keys[i], c.keys[i]); n != 0 {
			if o.desc {
				return -n
			}
			return n
		}
	}
	return 0
}

func (w *winSpec) fill(rows []winRow) error {
	if w.agg != nil {
		// without ORDER BY the whole partition; with it, up to the last peer of the row
		st := w.agg.start()
		for i := 0; i < len(rows); {
			j := i + 1
			if len(w.order) == 0 {
				j = len(rows)
			}
			for j < len(rows) && w.compare(rows[i], rows[j]) == 0 {
				j++
			}
			for _, r := range rows[i:j] {
				if err := w.agg.add(st, r.f); err != nil {
					return err
				}
			}
			v, err := w.agg.finish(st)
			if err != nil {
				return err
			}
			for _, r := range rows[i:j] {
				r.f.wins[w.slot] = v
			}
			i = j
		}
		return nil
	}
	rank, dense := int64(0), int64(0)
	for i, r := range rows {
		if i == 0 || w.compare(rows[i-1], r) != 0 {
			rank = int64(i) + 1
			dense++
		}
		v := sqltypes.NewBigInt(int64(i) + 1)
		switch w.name {
		case "rank":
			v = sqltypes.NewBigInt(rank)
		case "dense_rank":
			v = sqltypes.NewBigInt(dense)
		case "ntile":
			n, err := asBigInt(w.arg, r.f)
			if err != nil {
				return err
			}
			if n <= 0 {
				return errNum(4116, 16, 1, "The function 'ntile' takes only a positive int or bigint expression as its input.")
			}
			size, extra := int64(len(rows))/n, int64(len(rows))%n
			at := int64(i)
			if at < extra*(size+1) {
				v = sqltypes.NewBigInt(at/(size+1) + 1)
			} else {
				v = sqltypes.NewBigInt(extra + (at-extra*(size+1))/max(size, 1) + 1)
			}
		case "lag", "lead", "first_value", "last_value":
			var err error
			if v, err = w.neighbour(rows, i); err != nil {
				return err
			}
		}
		r.f.wins[w.slot] = v
	}
	return nil
}

func (w *winSpec) neighbour(rows []winRow, i int) (value, error) {
	at, step := i, int64(1)
	switch w.name {
	case "first_value":
		return w.arg(rows[0].f)
	case "last_value":
		for at+1 < len(rows) && w.compare(rows[i], rows[at+1]) == 0 {
			at++
		}
		return w.arg(rows[at].f)
	}
	if w.offset != nil {
		n, err := asBigInt(w.offset, rows[i].f)
		if err != nil {
			return value{}, err
		}
		if n < 0 {
			return value{}, errNum(8730, 16, 1, "Offset parameter for Lag and Lead functions cannot be a negative value.")
		}
		step = min(n, int64(len(rows)))
	}
	if w.name == "lag" {
		at -= int(step)
	} else {
		at += int(step)
	}
	if at >= 0 && at < len(rows) {
		return w.arg(rows[at].f)
	}
	if w.deflt != nil {
		return coerceTo(w.deflt, rows[i].f, w.typ)
	}
	return sqltypes.Null(w.typ), nil
}
