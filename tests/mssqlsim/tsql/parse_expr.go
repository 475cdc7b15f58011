package tsql

import (
	"encoding/hex"
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

func isCondition(e expr) bool {
	switch e.(type) {
	case *cmpExpr, *logicExpr, *notExpr, *isNullExpr, *inExpr, *betweenExpr, *likeExpr, *existsExpr:
		return true
	}
	return false
}

// condition parses a search condition.
func (p *parser) condition() expr {
	e := p.orExpr()
	if !isCondition(e) {
		t := p.peek()
		if t.kind == tokEOF {
			t = p.toks[max(p.i-1, 0)]
		}
		p.failAt(t, 4145, 15, 1, "An expression of non-boolean type specified in a context where a condition is expected, near '%s'.", t.val)
	}
	return e
}

// value parses a scalar expression.
func (p *parser) value() expr {
	e := p.addExpr()
	if isCondition(e) {
		p.failHere()
	}
	return e
}

func (p *parser) needValue(e expr) {
	if isCondition(e) {
		p.failHere()
	}
}

func (p *parser) needCondition(e expr) {
	if !isCondition(e) {
		t := p.peek()
		p.failAt(t, 4145, 15, 1, "An expression of non-boolean type specified in a context where a condition is expected, near '%s'.", t.val)
	}
}

func (p *parser) orExpr() expr {
	p.enter()
	defer p.leave()
	l := p.andExpr()
	for p.is("OR") {
		p.needCondition(l)
		p.i++
		r := p.andExpr()
		p.needCondition(r)
		l = &logicExpr{l: l, r: r}
	}
	return l
}

func (p *parser) andExpr() expr {
	l := p.notExpr()
	for p.is("AND") {
		p.needCondition(l)
		p.i++
		r := p.notExpr()
		p.needCondition(r)
		l = &logicExpr{and: true, l: l, r: r}
	}
	return l
}

func (p *parser) notExpr() expr {
	if p.accept("NOT") {
		p.enter()
		defer p.leave()
		x := p.notExpr()
		p.needCondition(x)
		return &notExpr{x: x}
	}
	return p.predicate()
}

func (p *parser) predicate() expr {
	if p.accept("EXISTS") {
		p.expect("(")
		q := p.query()
		p.expect(")")
		return &existsExpr{q: q}
	}
	l := p.addExpr()
	if isCondition(l) {
		return l
	}
	t := p.peek()
	switch t.kw {
	case "=", "<>", "!=", "<", "<=", ">", ">=", "!<", "!>":
		if t.kind != tokOp {
			return l
		}
		p.i++
		op := t.kw
		switch op {
		case "!=":
			op = "<>"
		case "!<":
			op = ">="
		case "!>":
			op = "<="
		}
		c := &cmpExpr{op: op, l: l}
		if p.is("ALL", "ANY", "SOME") && p.peekAt(1).kw == "(" {
			c.quant = p.next().kw
			if c.quant == "SOME" {
				c.quant = "ANY"
			}
			p.expect("(")
			c.r = &subExpr{q: p.query()}
			p.expect(")")
			return c
		}
		c.r = p.addExpr()
		p.needValue(c.r)
		return c
	case "IS":
		p.i++
		not := p.accept("NOT")
		p.expect("NULL")
		return &isNullExpr{x: l, not: not}
	case "NOT", "IN", "BETWEEN", "LIKE":
		not := false
		if t.kw == "NOT" {
			if k := p.peekAt(1).kw; k != "IN" && k != "BETWEEN" && k != "LIKE" {
				return l
			}
			p.i++
			not = true
		}
		switch p.next().kw {
		case "IN":
			p.expect("(")
			if p.startsQuery() {
				q := p.query()
				p.expect(")")
				return &inExpr{x: l, q: q, not: not}
			}
			e := &inExpr{x: l, not: not}
			for {
				e.list = append(e.list, p.value())
				if !p.accept(",") {
					break
				}
			}
			p.expect(")")
			return e
		case "BETWEEN":
			lo := p.value()
			p.expect("AND")
			return &betweenExpr{x: l, lo: lo, hi: p.value(), not: not}
		default:
			e := &likeExpr{x: l, pat: p.value(), not: not}
			if p.accept("ESCAPE") {
				e.esc = p.value()
			}
			return e
		}
	}
	return l
}

func (p *parser) startsQuery() bool {
	for n := 0; ; n++ {
		switch p.peekAt(n).kw {
		case "(":
			continue
		case "SELECT":
			return true
		}
		return false
	}
}

func (p *parser) addExpr() expr {
	l := p.mulExpr()
	for {
		t := p.peek()
		if t.kind != tokOp {
			return l
		}
		switch t.kw {
		case "+", "-", "&", "|", "^":
			p.needValue(l)
			p.i++
			r := p.mulExpr()
			p.needValue(r)
			l = &binExpr{op: t.kw[0], l: l, r: r}
		default:
			return l
		}
	}
}

func (p *parser) mulExpr() expr {
	l := p.unary()
	for {
		t := p.peek()
		if t.kind != tokOp {
			return l
		}
		switch t.kw {
		case "*", "/", "%":
			p.needValue(l)
			p.i++
			r := p.unary()
			p.needValue(r)
			l = &binExpr{op: t.kw[0], l: l, r: r}
		default:
			return l
		}
	}
}

func (p *parser) unary() expr {
	t := p.peek()
	if t.kind == tokOp && (t.kw == "-" || t.kw == "+" || t.kw == "~") {
		p.enter()
		defer p.leave()
		p.i++
		x := p.unary()
		p.needValue(x)
		if t.kw == "+" {
			return x
		}
		return &unaryExpr{op: t.kw[0], x: x}
	}
	e := p.primary()
	for p.is("COLLATE") {
		p.i++
		p.needValue(e)
		e = &collateExpr{x: e, name: p.name()}
	}
	return e
}

// literal parses a constant if the next token is one.
func (p *parser) literal() (*litExpr, bool) {
	t := p.peek()
	switch t.kind {
	case tokNumber:
		v, err := sqltypes.ParseNumber(t.text)
		if err != nil {
			e := asStmtError(err)
			e.line, e.abort = t.line, true
			p.fail(e)
		}
		p.i++
		return &litExpr{v}, true
	case tokString:
		p.i++
		return &litExpr{sqltypes.NewVarChar(t.val)}, true
	case tokNString:
		p.i++
		return &litExpr{sqltypes.NewNVarChar(t.val)}, true
	case tokBinary:
		h := t.text[2:]
		if len(h)%2 == 1 {
			h = "0" + h
		}
		b, err := hex.DecodeString(h)
		if err != nil {
			p.failHere()
		}
		p.i++
		return &litExpr{sqltypes.NewBinary(b)}, true
	}
	if t.kw == "NULL" {
		p.i++
		return &litExpr{sqltypes.Value{}}, true
	}
	return nil, false
}

func (p *parser) primary() expr {
	p.enter()
	defer p.leave()
	if l, ok := p.literal(); ok {
		return l
	}
	t := p.peek()
	switch t.kind {
	case tokVar:
		p.i++
		return &varExpr{name: p.use(t, false), line: t.line}
	case tokOp:
		if t.kw != "(" {
			break
		}
		p.i++
		if p.is("SELECT") || p.is("(") && p.startsQuery() && p.parenQuery() {
			q := p.query()
			p.expect(")")
			return &subExpr{q: q}
		}
		e := p.orExpr()
		p.expect(")")
		return e
	case tokIdent:
		switch t.kw {
		case "CASE":
			return p.caseExpr()
		case "CAST", "TRY_CAST":
			if p.peekAt(1).kw == "(" {
				p.i += 2
				e := &castExpr{try: t.kw == "TRY_CAST"}
				e.x = p.value()
				p.expect("AS")
				e.to = p.typeName(30)
				p.expect(")")
				return e
			}
		case "CONVERT", "TRY_CONVERT":
			p.i++
			p.expect("(")
			e := &castExpr{try: t.kw == "TRY_CONVERT"}
			e.to = p.typeName(30)
			p.expect(",")
			e.x = p.value()
			if p.accept(",") {
				e.style = p.value()
			}
			p.expect(")")
			return e
		case "CURRENT_TIMESTAMP", "CURRENT_USER", "SYSTEM_USER", "SESSION_USER", "USER":
			p.i++
			if t.kw != "CURRENT_TIMESTAMP" || !p.is("(") {
				return &funcExpr{name: strings.ToLower(t.kw), line: t.line}
			}
		case "LEFT", "RIGHT", "COALESCE", "NULLIF":
			if p.peekAt(1).kw != "(" {
				break
			}
			p.i += 2
			return p.function("", strings.ToLower(t.kw), t.line)
		}
	}
	if !p.isName() {
		p.failHere()
	}
	return p.nameExpr()
}

// parenQuery tells whether "((" starts a nested query rather than a parenthesised expression
// with a subquery in it: the query must reach up to the outer parenthesis.
func (p *parser) parenQuery() bool {
	depth := 0
	for n := 0; ; n++ {
		t := p.peekAt(n)
		switch {
		case t.kind == tokEOF:
			return false
		case t.kw == "(":
			depth++
		case t.kw == ")":
			depth--
			if depth == 0 {
				k := p.peekAt(n + 1).kw
				return k == ")" || k == "UNION" || k == "EXCEPT" || k == "INTERSECT" || k == "ORDER"
			}
		}
	}
}

func (p *parser) caseExpr() expr {
	p.expect("CASE")
	e := &caseExpr{}
	if !p.is("WHEN") {
		e.operand = p.value()
	}
	for p.accept("WHEN") {
		var w whenClause
		if e.operand != nil {
			w.cond = p.value()
		} else {
			w.cond = p.condition()
		}
		p.expect("THEN")
		w.then = p.value()
		e.whens = append(e.whens, w)
	}
	if len(e.whens) == 0 {
		p.failHere()
	}
	if p.accept("ELSE") {
		e.els = p.value()
	}
	p.expect("END")
	return e
}

// nameExpr parses a column, a function call or schema.function call.
func (p *parser) nameExpr() expr {
	t := p.peek()
	parts := []string{p.name()}
	if p.accept("(") {
		return p.function("", strings.ToLower(parts[0]), t.line)
	}
	for p.is(".") {
		if p.peekAt(1).kw == "*" {
			if len(parts) > 3 {
				p.failHere()
			}
			p.i += 2
			return &starExpr{qual: parts}
		}
		p.i++
		if p.is(".") {
			parts = append(parts, "")
			continue
		}
		parts = append(parts, p.name())
		if len(parts) > 4 {
			p.failHere()
		}
		if p.is("(") {
			p.i++
			return p.function(strings.ToLower(parts[len(parts)-2]), strings.ToLower(parts[len(parts)-1]), t.line)
		}
	}
	return &colExpr{qual: parts[:len(parts)-1], name: parts[len(parts)-1], line: t.line}
}

// datePartFunc tells which functions take a date part as their first argument.
func datePartFunc(name string) bool {
	switch name {
	case "dateadd", "datediff", "datediff_big", "datepart", "datename", "datetrunc":
		return true
	}
	return false
}

// function parses the arguments after "name(".
func (p *parser) function(schema, name string, line int) expr {
	f := &funcExpr{schema: schema, name: name, line: line}
	switch {
	case p.is("*") && p.peekAt(1).kw == ")":
		p.i++
		f.star = true
	case datePartFunc(name) && schema == "":
		t := p.peek()
		if t.kind != tokIdent {
			p.failHere()
		}
		p.i++
		f.part = strings.ToLower(t.val)
		for p.accept(",") {
			f.args = append(f.args, p.value())
		}
	case name == "iif" && schema == "":
		cond := p.condition()
		p.expect(",")
		a := p.value()
		p.expect(",")
		b := p.value()
		p.expect(")")
		return &caseExpr{whens: []whenClause{{cond, a}}, els: b}
	case !p.is(")"):
		if p.accept("DISTINCT") {
			f.distinct = true
		} else {
			p.accept("ALL")
		}
		for {
			f.args = append(f.args, p.value())
			if name == "trim" && len(f.args) == 1 && p.accept("FROM") {
				f.args = append(f.args, p.value())
			}
			if !p.accept(",") {
				break
			}
		}
	}
	p.expect(")")
	if p.acceptSeq("WITHIN", "GROUP") {
		p.expect("(")
		f.within = p.orderBy()
		p.expect(")")
	}
	if p.is("OVER") && p.peekAt(1).kw == "(" {
		p.i += 2
		f.over = &overClause{}
		if p.acceptSeq("PARTITION", "BY") {
			for {
				f.over.partition = append(f.over.partition, p.value())
				if !p.accept(",") {
					break
				}
			}
		}
		if p.is("ORDER") {
			f.over.order = p.orderBy()
		}
		p.expect(")")
	}
	return f
}

func (p *parser) orderBy() []orderItem {
	p.expect("ORDER", "BY")
	var l []orderItem
	for {
		o := orderItem{x: p.value()}
		if p.accept("DESC") {
			o.desc = true
		} else {
			p.accept("ASC")
		}
		l = append(l, o)
		if !p.accept(",") {
			return l
		}
	}
}

func strLit(s string) *litExpr { return &litExpr{sqltypes.NewNVarChar(s)} }
