package tsql

import (
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// builtin is a scalar function.
type builtin struct {
	min, max int
	// typ is the result type; nil with fixed set means fixed.
	fixed sqltypes.Type
	typ   func(args []bexpr) sqltypes.Type
	// strict functions are NULL when an argument is NULL.
	strict bool
	// stable functions depend on nothing but their arguments as long as the instance runs.
	stable bool
	eval   func(f *frame, a []value) (value, error)
}

// builtins are the functions by lower-case name; those of schema sys have the prefix "sys.".
var builtins = makeBuiltins()

func makeBuiltins() map[string]builtin {
	m := map[string]builtin{}
	for _, add := range [...]func(map[string]builtin){stringFuncs, mathFuncs, dateFuncs, metaFuncs, serverFuncs, errorFuncs} {
		add(m)
	}
	return m
}

// call binds a function call.
func (b *binder) call(sc *scope, x *funcExpr) (bexpr, error) {
	if x.schema == "" {
		switch x.name {
		case "coalesce":
			return b.coalesce(sc, x)
		case "isnull":
			return b.isNull(sc, x)
		case "nullif":
			return b.nullIf(sc, x)
		case "dateadd", "datediff", "datediff_big", "datepart", "datename", "datetrunc":
			return b.dateFunc(sc, x)
		case "choose":
			return b.choose(sc, x)
		}
		if isAggregate(x.name) {
			return b.aggregate(sc, x)
		}
		if isRanking(x.name) && x.over != nil {
			return b.window(sc, x, nil)
		}
	}
	name := x.name
	if x.schema != "" {
		name = x.schema + "." + name
	}
	fn, ok := builtins[name]
	if !ok {
		if x.schema != "" {
			return bexpr{}, errBind(x.line, 4121, 16, 1, "Cannot find either column \"%s\" or the user-defined function or aggregate \"%s.%s\", or the name is ambiguous.", x.schema, x.schema, x.name)
		}
		return bexpr{}, errBind(x.line, 195, 15, 10, "'%s' is not a recognized built-in function name.", x.name)
	}
	if x.over != nil || x.within != nil || x.distinct || x.star {
		return bexpr{}, errBind(x.line, 102, 15, 1, "Incorrect syntax near '%s'.", x.name)
	}
	if len(x.args) < fn.min || len(x.args) > fn.max {
		return bexpr{}, errArgs(x, fn.min, fn.max)
	}
	b.impure = b.impure || !fn.stable
	args, err := b.exprs(sc, x.args)
	if err != nil {
		return bexpr{}, err
	}
	t := fn.fixed
	if fn.typ != nil {
		t = fn.typ(args)
	}
	eval, strict := fn.eval, fn.strict
	return bexpr{typ: t, eval: func(f *frame) (value, error) {
		vals := make([]value, len(args))
		for i := range args {
			v, err := args[i].eval(f)
			if err != nil {
				return v, err
			}
			if strict && v.IsNull() {
				return sqltypes.Null(t), nil
			}
			vals[i] = v
		}
		return eval(f, vals)
	}}, nil
}

func errArgs(x *funcExpr, lo, hi int) error {
	if lo == hi {
		return errBind(x.line, 174, 15, 1, "The %s function requires %d argument(s).", x.name, lo)
	}
	return errBind(x.line, 189, 15, 1, "The %s function requires %d to %d arguments.", x.name, lo, hi)
}

func (b *binder) coalesce(sc *scope, x *funcExpr) (bexpr, error) {
	if len(x.args) < 2 {
		return bexpr{}, errArgs(x, 2, 2)
	}
	args, err := b.exprs(sc, x.args)
	if err != nil {
		return bexpr{}, err
	}
	var t sqltypes.Type
	notNull := false
	for _, a := range args {
		t = sqltypes.Unify(t, a.typ)
		notNull = notNull || a.notNull
	}
	if t.ID == sqltypes.Unknown {
		return bexpr{}, errBind(x.line, 4127, 16, 1, "At least one of the arguments to COALESCE must be an expression that is not the NULL constant.")
	}
	return bexpr{typ: t, notNull: notNull, eval: func(f *frame) (value, error) {
		for i := range args {
			v, err := args[i].eval(f)
			if err != nil {
				return v, err
			}
			if !v.IsNull() {
				return coerce(v, t)
			}
		}
		return sqltypes.Null(t), nil
	}}, nil
}

func (b *binder) isNull(sc *scope, x *funcExpr) (bexpr, error) {
	if len(x.args) != 2 {
		return bexpr{}, errArgs(x, 2, 2)
	}
	args, err := b.exprs(sc, x.args)
	if err != nil {
		return bexpr{}, err
	}
	t := args[0].typ
	if t.ID == sqltypes.Unknown {
		t = wireType(args[1].typ)
	}
	return bexpr{typ: t, notNull: args[0].notNull || args[1].notNull, eval: func(f *frame) (value, error) {
		v, err := args[0].eval(f)
		if err != nil || !v.IsNull() {
			return v, err
		}
		if v, err = args[1].eval(f); err != nil {
			return v, err
		}
		if v.IsNull() {
			return sqltypes.Null(t), nil
		}
		if !sqltypes.ImplicitOK(v.Type(), t) {
			return v, sqltypes.Errf(206, 16, 2, "Operand type clash: %s is incompatible with %s", v.Type().ID.Name(), t.ID.Name())
		}
		return sqltypes.Cast(v, t, 0)
	}}, nil
}

func (b *binder) nullIf(sc *scope, x *funcExpr) (bexpr, error) {
	if len(x.args) != 2 {
		return bexpr{}, errArgs(x, 2, 2)
	}
	args, err := b.exprs(sc, x.args)
	if err != nil {
		return bexpr{}, err
	}
	if err := comparable(args[0].typ, args[1].typ); err != nil {
		return bexpr{}, err
	}
	t := wireType(args[0].typ)
	eq := comparison("=")
	return bexpr{typ: t, eval: func(f *frame) (value, error) {
		v, err := args[0].eval(f)
		if err != nil {
			return v, err
		}
		w, err := args[1].eval(f)
		if err != nil {
			return w, err
		}
		same, err := compareValues(v, w, eq, false)
		if err != nil || same == isTrue {
			return sqltypes.Null(t), err
		}
		return v, nil
	}}, nil
}

func (b *binder) choose(sc *scope, x *funcExpr) (bexpr, error) {
	if len(x.args) < 2 {
		return bexpr{}, errArgs(x, 2, 255)
	}
	args, err := b.exprs(sc, x.args)
	if err != nil {
		return bexpr{}, err
	}
	var t sqltypes.Type
	for _, a := range args[1:] {
		t = sqltypes.Unify(t, a.typ)
	}
	t = wireType(t)
	return bexpr{typ: t, eval: func(f *frame) (value, error) {
		n, err := args[0].eval(f)
		if err != nil || n.IsNull() {
			return sqltypes.Null(t), err
		}
		if n, err = sqltypes.Cast(n, sqltypes.TInt, 0); err != nil {
			return n, err
		}
		if n.Int64() < 1 || n.Int64() >= int64(len(args)) {
			return sqltypes.Null(t), nil
		}
		return coerceTo(args[n.Int64()].eval, f, t)
	}}, nil
}

// str is an argument as text.
func str(v value) string {
	if v.Type().IsString() {
		return v.Text()
	}
	w, err := sqltypes.Cast(v, sqltypes.TNVarCharMax, 0)
	if err != nil {
		return ""
	}
	return w.Text()
}

// num is an argument as bigint.
func num(v value) (int64, error) {
	w, err := sqltypes.Cast(v, sqltypes.TBigInt, 0)
	return w.Int64(), err
}

// textType is the type of the text functions that keep their argument's family.
func textType(args []bexpr) sqltypes.Type {
	t := args[0].typ
	switch t.ID {
	case sqltypes.SysName, sqltypes.XML, sqltypes.NChar:
		t.ID = sqltypes.NVarChar
	case sqltypes.Char:
		t.ID = sqltypes.VarChar
	}
	if !t.IsString() {
		return sqltypes.TVarChar(8000)
	}
	return t
}

// longText is textType without the argument's length.
func longText(args []bexpr) sqltypes.Type {
	t := textType(args)
	if t.Len != sqltypes.Max {
		t.Len = 8000
		if t.IsUnicode() {
			t.Len = 4000
		}
	}
	return t
}

// like gives text of the family of v.
func like(v value, s string) value {
	if t := v.Type(); t.IsString() && !t.IsUnicode() || !t.IsString() {
		return sqltypes.NewVarChar(s)
	}
	return sqltypes.NewNVarChar(s)
}

func fixedNV(n int) sqltypes.Type { return sqltypes.TNVarChar(n) }

func bigOrInt(args []bexpr) sqltypes.Type {
	if args[0].typ.Len == sqltypes.Max {
		return sqltypes.TBigInt
	}
	return sqltypes.TInt
}

// runes works on UTF-16 positions for the common case of text without surrogate pairs.
func substr(s string, start, n int64) string {
	// start is 1-based and may be below 1
	if start < 1 {
		n += start - 1
		start = 1
	}
	if n <= 0 {
		return ""
	}
	head := sqltypes.CutText(s, int(min(start-1, 1<<30)))
	rest := s[len(head):]
	return sqltypes.CutText(rest, int(min(n, 1<<30)))
}

func lowerASCII(s string) string { return strings.ToLower(s) }
