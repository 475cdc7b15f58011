package tsql

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

func truth(b bool) tri {
	if b {
		return isTrue
	}
	return isFalse
}

func (t tri) not() tri {
	switch t {
	case isTrue:
		return isFalse
	case isFalse:
		return isTrue
	}
	return isUnknown
}

// cond binds a search condition.
func (b *binder) cond(sc *scope, x expr) (condFunc, error) {
	if err := b.enter(); err != nil {
		return nil, err
	}
	defer func() { b.depth-- }()
	switch x := x.(type) {
	case *logicExpr:
		l, err := b.cond(sc, x.l)
		if err != nil {
			return nil, err
		}
		r, err := b.cond(sc, x.r)
		if err != nil {
			return nil, err
		}
		// AND stops at false, OR at true; otherwise unknown wins over the neutral value
		stop := truth(!x.and)
		return func(f *frame) (tri, error) {
			a, err := l(f)
			if err != nil || a == stop {
				return a, err
			}
			c, err := r(f)
			if err != nil || c == stop || a != isUnknown {
				return c, err
			}
			return isUnknown, nil
		}, nil
	case *notExpr:
		c, err := b.cond(sc, x.x)
		if err != nil {
			return nil, err
		}
		return func(f *frame) (tri, error) {
			t, err := c(f)
			return t.not(), err
		}, nil
	case *cmpExpr:
		return b.compare(sc, x)
	case *isNullExpr:
		e, err := b.expr(sc, x.x)
		if err != nil {
			return nil, err
		}
		not := x.not
		return func(f *frame) (tri, error) {
			v, err := e.eval(f)
			return truth(v.IsNull() != not), err
		}, nil
	case *inExpr:
		return b.in(sc, x)
	case *betweenExpr:
		lo := &cmpExpr{op: ">=", l: x.x, r: x.lo}
		hi := &cmpExpr{op: "<=", l: x.x, r: x.hi}
		c, err := b.cond(sc, &logicExpr{and: true, l: lo, r: hi})
		if err != nil || !x.not {
			return c, err
		}
		return func(f *frame) (tri, error) {
			t, err := c(f)
			return t.not(), err
		}, nil
	case *likeExpr:
		return b.like(sc, x)
	case *existsExpr:
		q, err := b.subquery(sc, x.q, true)
		if err != nil {
			return nil, err
		}
		return func(f *frame) (tri, error) {
			found := false
			err := q.each(f, func(engine.Row) error {
				found = true
				return errStop
			})
			return truth(found), err
		}, nil
	}
	return nil, errBind(0, 4145, 15, 1, "An expression of non-boolean type specified in a context where a condition is expected, near ''.")
}

// caseSensitive tells whether a COLLATE clause on either side asks for it.
func caseSensitive(xs ...expr) bool {
	for _, x := range xs {
		if c, ok := x.(*collateExpr); ok {
			n := strings.ToUpper(c.name)
			if strings.Contains(n, "_CS") || strings.Contains(n, "_BIN") {
				return true
			}
		}
	}
	return false
}

func comparison(op string) func(c int) bool {
	switch op {
	case "=":
		return func(c int) bool { return c == 0 }
	case "<>":
		return func(c int) bool { return c != 0 }
	case "<":
		return func(c int) bool { return c < 0 }
	case "<=":
		return func(c int) bool { return c <= 0 }
	case ">":
		return func(c int) bool { return c > 0 }
	}
	return func(c int) bool { return c >= 0 }
}

// comparable refuses at binding what the product refuses when compiling.
func comparable(a, c sqltypes.Type) error {
	if a.ID == sqltypes.Unknown || c.ID == sqltypes.Unknown || a.ID == sqltypes.SQLVariant || c.ID == sqltypes.SQLVariant {
		return nil
	}
	t := sqltypes.Unify(a, c)
	for _, x := range [2]sqltypes.Type{a, c} {
		if !sqltypes.ImplicitOK(x, t) {
			return bindError(sqltypes.Errf(402, 16, 1, "The data types %s and %s are incompatible in the equal to operator.", a.ID.Name(), c.ID.Name()))
		}
	}
	return nil
}

func (b *binder) compare(sc *scope, x *cmpExpr) (condFunc, error) {
	l, err := b.expr(sc, x.l)
	if err != nil {
		return nil, err
	}
	ok := comparison(x.op)
	cs := caseSensitive(x.l, x.r)
	if x.quant != "" {
		q, err := b.subquery(sc, x.r.(*subExpr).q, false)
		if err != nil {
			return nil, err
		}
		all := x.quant == "ALL"
		return func(f *frame) (tri, error) {
			v, err := l.eval(f)
			if err != nil {
				return isUnknown, err
			}
			res := truth(all)
			err = q.each(f, func(r engine.Row) error {
				t, err := compareValues(v, r[0], ok, cs)
				if err != nil {
					return err
				}
				if all && t == isFalse || !all && t == isTrue {
					res = t
					return errStop
				}
				if t == isUnknown {
					res = isUnknown
				}
				return nil
			})
			return res, err
		}, nil
	}
	r, err := b.expr(sc, x.r)
	if err != nil {
		return nil, err
	}
	if err := comparable(l.typ, r.typ); err != nil {
		return nil, err
	}
	le, re := l.eval, r.eval
	if x.op == "=" && l.typ.IsString() && r.typ.IsString() && !cs {
		return func(f *frame) (tri, error) {
			a, err := le(f)
			if err != nil {
				return isUnknown, err
			}
			c, err := re(f)
			if err != nil || a.IsNull() || c.IsNull() {
				return isUnknown, err
			}
			return truth(sqltypes.EqualText(a.Text(), c.Text())), nil
		}, nil
	}
	return func(f *frame) (tri, error) {
		a, err := le(f)
		if err != nil {
			return isUnknown, err
		}
		c, err := re(f)
		if err != nil {
			return isUnknown, err
		}
		return compareValues(a, c, ok, cs)
	}, nil
}

func compareValues(a, c value, ok func(int) bool, cs bool) (tri, error) {
	if a.IsNull() || c.IsNull() {
		return isUnknown, nil
	}
	if cs && a.Type().IsString() && c.Type().IsString() {
		return truth(ok(strings.Compare(strings.TrimRight(a.Text(), " "), strings.TrimRight(c.Text(), " ")))), nil
	}
	n, err := sqltypes.Compare(a, c)
	if err != nil {
		return isUnknown, err
	}
	return truth(ok(n)), nil
}

func (b *binder) in(sc *scope, x *inExpr) (condFunc, error) {
	e, err := b.expr(sc, x.x)
	if err != nil {
		return nil, err
	}
	eq := comparison("=")
	cs := caseSensitive(x.x)
	finish := func(t tri, not bool) tri {
		if not {
			return t.not()
		}
		return t
	}
	not := x.not
	if x.q != nil {
		q, err := b.subquery(sc, x.q, false)
		if err != nil {
			return nil, err
		}
		return func(f *frame) (tri, error) {
			v, err := e.eval(f)
			if err != nil {
				return isUnknown, err
			}
			res := isFalse
			err = q.each(f, func(r engine.Row) error {
				t, err := compareValues(v, r[0], eq, cs)
				if err != nil {
					return err
				}
				switch t {
				case isTrue:
					res = isTrue
					return errStop
				case isUnknown:
					res = isUnknown
				}
				return nil
			})
			return finish(res, not), err
		}, nil
	}
	list, err := b.exprs(sc, x.list)
	if err != nil {
		return nil, err
	}
	for _, l := range list {
		if err := comparable(e.typ, l.typ); err != nil {
			return nil, err
		}
	}
	return func(f *frame) (tri, error) {
		v, err := e.eval(f)
		if err != nil {
			return isUnknown, err
		}
		res := isFalse
		for i := range list {
			c, err := list[i].eval(f)
			if err != nil {
				return isUnknown, err
			}
			t, err := compareValues(v, c, eq, cs)
			if err != nil {
				return isUnknown, err
			}
			if t == isTrue {
				res = isTrue
				break
			}
			if t == isUnknown {
				res = isUnknown
			}
		}
		return finish(res, not), nil
	}, nil
}

func (b *binder) like(sc *scope, x *likeExpr) (condFunc, error) {
	e, err := b.expr(sc, x.x)
	if err != nil {
		return nil, err
	}
	pat, err := b.expr(sc, x.pat)
	if err != nil {
		return nil, err
	}
	var esc *bexpr
	if x.esc != nil {
		c, err := b.expr(sc, x.esc)
		if err != nil {
			return nil, err
		}
		esc = &c
	}
	not := x.not
	return func(f *frame) (tri, error) {
		v, err := textValue(e.eval, f)
		if err != nil || v.IsNull() {
			return isUnknown, err
		}
		p, err := textValue(pat.eval, f)
		if err != nil || p.IsNull() {
			return isUnknown, err
		}
		escape := rune(-1)
		if esc != nil {
			c, err := textValue(esc.eval, f)
			if err != nil {
				return isUnknown, err
			}
			r, w := utf8.DecodeRuneInString(c.Text())
			if c.IsNull() || c.Text() == "" || w != len(c.Text()) {
				return isUnknown, sqltypes.Errf(506, 16, 1, "The invalid escape character \"%s\" was specified in a LIKE predicate.", c.Text())
			}
			escape = r
		}
		return truth(likeMatch(v.Text(), p.Text(), escape) != not), nil
	}, nil
}

// textValue evaluates and converts to text.
func textValue(e evalFunc, f *frame) (value, error) {
	v, err := e(f)
	if err != nil || v.IsNull() || v.Type().IsString() {
		return v, err
	}
	return sqltypes.Cast(v, sqltypes.TNVarCharMax, 0)
}

type likeToken struct {
	kind byte // 'c' character, '_' any, '%' any run, '[' set
	r    rune
	set  [][2]rune
	not  bool
}

// likeMatch matches under the collation: case does not matter. It is linear in the product of the
// lengths: a % is retried from the last one only.
func likeMatch(s, pattern string, escape rune) bool {
	toks, ok := likeTokens(pattern, escape)
	if !ok {
		return false
	}
	rs := []rune(s)
	i, j, star, mark := 0, 0, -1, 0
	for i < len(rs) {
		switch {
		case j < len(toks) && toks[j].kind == '%':
			star, mark = j, i
			j++
		case j < len(toks) && toks[j].matches(rs[i]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = mark, star+1
		default:
			// trailing spaces of the value do not matter when the pattern is used up
			return j == len(toks) && strings.Trim(string(rs[i:]), " ") == ""
		}
	}
	for j < len(toks) && toks[j].kind == '%' {
		j++
	}
	return j == len(toks)
}

func (t *likeToken) matches(r rune) bool {
	switch t.kind {
	case '_':
		return true
	case 'c':
		return t.r == r || unicode.ToLower(t.r) == unicode.ToLower(r)
	case '[':
		l := unicode.ToLower(r)
		for _, x := range t.set {
			if l >= unicode.ToLower(x[0]) && l <= unicode.ToLower(x[1]) {
				return !t.not
			}
		}
		return t.not
	}
	return false
}

func likeTokens(p string, escape rune) ([]likeToken, bool) {
	rs := []rune(p)
	var out []likeToken
	for i := 0; i < len(rs); i++ {
		switch r := rs[i]; {
		case r == escape:
			if i+1 >= len(rs) {
				return nil, false
			}
			i++
			out = append(out, likeToken{kind: 'c', r: rs[i]})
		case r == '%':
			out = append(out, likeToken{kind: '%'})
		case r == '_':
			out = append(out, likeToken{kind: '_'})
		case r == '[':
			end := i + 1
			for end < len(rs) && rs[end] != ']' {
				end++
			}
			if end >= len(rs) {
				return nil, false // an unclosed set matches nothing
			}
			t := likeToken{kind: '['}
			set := rs[i+1 : end]
			if len(set) > 0 && set[0] == '^' {
				t.not = true
				set = set[1:]
			}
			for k := 0; k < len(set); k++ {
				if k+2 < len(set) && set[k+1] == '-' {
					t.set = append(t.set, [2]rune{set[k], set[k+2]})
					k += 2
				} else {
					t.set = append(t.set, [2]rune{set[k], set[k]})
				}
			}
			out = append(out, t)
			i = end
		default:
			out = append(out, likeToken{kind: 'c', r: r})
		}
	}
	return out, true
}
