package tsql

import "strings"

// walkExpr calls f for x and its parts, but does not enter subqueries; f returns false to skip the
// parts of an expression.
func walkExpr(x expr, f func(expr) bool) {
	if x == nil || !f(x) {
		return
	}
	each := func(l []expr) {
		for _, e := range l {
			walkExpr(e, f)
		}
	}
	switch x := x.(type) {
	case *unaryExpr:
		walkExpr(x.x, f)
	case *binExpr:
		walkExpr(x.l, f)
		walkExpr(x.r, f)
	case *cmpExpr:
		walkExpr(x.l, f)
		walkExpr(x.r, f)
	case *logicExpr:
		walkExpr(x.l, f)
		walkExpr(x.r, f)
	case *notExpr:
		walkExpr(x.x, f)
	case *isNullExpr:
		walkExpr(x.x, f)
	case *inExpr:
		walkExpr(x.x, f)
		each(x.list)
	case *betweenExpr:
		walkExpr(x.x, f)
		walkExpr(x.lo, f)
		walkExpr(x.hi, f)
	case *likeExpr:
		walkExpr(x.x, f)
		walkExpr(x.pat, f)
	case *caseExpr:
		walkExpr(x.operand, f)
		for _, w := range x.whens {
			walkExpr(w.cond, f)
			walkExpr(w.then, f)
		}
		walkExpr(x.els, f)
	case *castExpr:
		walkExpr(x.x, f)
	case *collateExpr:
		walkExpr(x.x, f)
	case *funcExpr:
		each(x.args)
	}
}

// hasAggregate tells whether x holds an aggregate that is not a window function.
func hasAggregate(x expr) bool {
	found := false
	walkExpr(x, func(e expr) bool {
		if fn, ok := e.(*funcExpr); ok && fn.schema == "" && fn.over == nil && isAggregate(fn.name) {
			found = true
		}
		return !found
	})
	return found
}

// exprKey is a canonical text of x: equal for expressions that mean the same by their form.
func exprKey(x expr) string {
	var b strings.Builder
	writeKey(&b, x)
	return b.String()
}

func writeKey(b *strings.Builder, x expr) {
	list := func(l []expr) {
		for _, e := range l {
			writeKey(b, e)
			b.WriteByte(',')
		}
	}
	switch x := x.(type) {
	case nil:
		b.WriteByte('-')
	case *litExpr:
		b.WriteString(x.v.Type().String() + ":" + x.v.Key())
	case *varExpr:
		b.WriteString(x.name)
	case *colExpr:
		// the qualifier is left out: an unqualified and a qualified name may mean the same column
		b.WriteString("col " + strings.ToLower(x.name))
	case *unaryExpr:
		b.WriteByte(x.op)
		writeKey(b, x.x)
	case *binExpr:
		b.WriteByte('(')
		writeKey(b, x.l)
		b.WriteByte(x.op)
		writeKey(b, x.r)
		b.WriteByte(')')
	case *castExpr:
		b.WriteString("cast " + x.to.String() + "(")
		writeKey(b, x.x)
		writeKey(b, x.style)
		b.WriteByte(')')
	case *funcExpr:
		b.WriteString(x.schema + "." + x.name + "(" + x.part)
		list(x.args)
		b.WriteByte(')')
		if x.over != nil || x.within != nil || x.distinct {
			b.WriteString("!")
		}
	case *caseExpr:
		b.WriteString("case ")
		writeKey(b, x.operand)
		for _, w := range x.whens {
			writeKey(b, w.cond)
			b.WriteByte(':')
			writeKey(b, w.then)
			b.WriteByte(';')
		}
		writeKey(b, x.els)
	case *cmpExpr:
		writeKey(b, x.l)
		b.WriteString(x.op)
		writeKey(b, x.r)
	case *logicExpr:
		writeKey(b, x.l)
		if x.and {
			b.WriteString(" and ")
		} else {
			b.WriteString(" or ")
		}
		writeKey(b, x.r)
	case *isNullExpr:
		writeKey(b, x.x)
		b.WriteString(" isnull")
		if x.not {
			b.WriteString(" not")
		}
	case *notExpr:
		b.WriteString("not ")
		writeKey(b, x.x)
	case *collateExpr:
		writeKey(b, x.x)
		b.WriteString(" collate " + x.name)
	default:
		// never equal to anything else
		b.WriteString("?")
	}
}
