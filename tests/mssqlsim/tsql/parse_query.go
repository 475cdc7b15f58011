package tsql

// query parses a query expression with ORDER BY and OFFSET.
func (p *parser) query() *query {
	p.enter()
	defer p.leave()
	return p.queryAfterWith(nil)
}

func (p *parser) queryAfterWith(with []cte) *query {
	q := &query{with: with, line: p.peek().line}
	q.body = p.queryBody()
	if p.is("ORDER") {
		q.order = p.orderBy()
		if p.accept("OFFSET") {
			q.offset = p.value()
			p.expectOneOf("ROW", "ROWS")
			if p.accept("FETCH") {
				p.expectOneOf("FIRST", "NEXT")
				q.fetch = p.value()
				p.expectOneOf("ROW", "ROWS")
				p.expect("ONLY")
			}
		}
	}
	if p.is("OPTION") && p.peekAt(1).kw == "(" {
		p.i++
		p.skipParens()
	}
	return q
}

// skipParens passes a parenthesised list that has no effect here (hints).
func (p *parser) skipParens() {
	p.expect("(")
	for depth := 1; depth > 0; {
		switch t := p.next(); {
		case t.kind == tokEOF:
			p.failHere()
		case t.kw == "(":
			depth++
		case t.kw == ")":
			depth--
		}
	}
}

func (p *parser) ctes() []cte {
	p.expect("WITH")
	var l []cte
	for {
		c := cte{name: p.name()}
		if p.accept("(") {
			c.cols = p.nameList()
		}
		p.expect("AS", "(")
		c.q = p.query()
		p.expect(")")
		l = append(l, c)
		if !p.accept(",") {
			return l
		}
	}
}

// nameList reads names up to the closing parenthesis.
func (p *parser) nameList() []string {
	var l []string
	for {
		l = append(l, p.name())
		if !p.accept(",") {
			p.expect(")")
			return l
		}
	}
}

// queryBody parses UNION and EXCEPT over INTERSECT over primaries.
func (p *parser) queryBody() queryBody {
	l := p.queryTerm()
	for p.is("UNION", "EXCEPT") {
		op := p.next().kw
		if op == "UNION" && p.accept("ALL") {
			op = "UNION ALL"
		}
		l = &setOp{op: op, l: l, r: p.queryTerm()}
	}
	return l
}

func (p *parser) queryTerm() queryBody {
	l := p.queryPrimary()
	for p.accept("INTERSECT") {
		l = &setOp{op: "INTERSECT", l: l, r: p.queryPrimary()}
	}
	return l
}

func (p *parser) queryPrimary() queryBody {
	if p.is("(") {
		p.enter()
		defer p.leave()
		p.i++
		b := p.queryBody()
		p.expect(")")
		return b
	}
	return p.selectBody()
}

func (p *parser) selectBody() *selectBody {
	t := p.peek()
	p.expect("SELECT")
	s := &selectBody{line: t.line}
	if p.accept("DISTINCT") {
		s.distinct = true
	} else {
		p.accept("ALL")
	}
	if p.accept("TOP") {
		s.top, s.topPercent, s.withTies = p.topClause()
	}
	for {
		s.items = append(s.items, p.selectItem())
		if !p.accept(",") {
			break
		}
	}
	if p.accept("INTO") {
		o := p.object()
		s.into = &o
	}
	if p.accept("FROM") {
		s.from = p.fromList()
	}
	if p.accept("WHERE") {
		s.where = p.condition()
	}
	if p.is("GROUP") {
		p.expect("GROUP", "BY")
		for {
			s.group = append(s.group, p.value())
			if !p.accept(",") {
				break
			}
		}
	}
	if p.accept("HAVING") {
		s.having = p.condition()
	}
	return s
}

func (p *parser) topClause() (x expr, percent, ties bool) {
	if p.accept("(") {
		x = p.value()
		p.expect(")")
	} else {
		l, ok := p.literal()
		if !ok {
			if v := p.peek(); v.kind == tokVar {
				p.i++
				x = &varExpr{name: p.use(v, false), line: v.line}
			} else {
				p.failHere()
			}
		} else {
			x = l
		}
	}
	percent = p.accept("PERCENT")
	if p.isSeq("WITH", "TIES") {
		p.i += 2
		ties = true
	}
	return x, percent, ties
}

func (p *parser) selectItem() selectItem {
	t := p.peek()
	if t.kw == "*" && t.kind == tokOp {
		p.i++
		return selectItem{x: &starExpr{}}
	}
	if t.kind == tokVar {
		switch p.peekAt(1).kw {
		case "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=":
			p.i++
			op := p.assignOp()
			return selectItem{assign: p.use(t, false), op: op, x: p.value()}
		}
	}
	// alias = expression
	if (t.kind == tokIdent && !reserved(t.kw) || t.kind == tokQuoted || t.kind == tokString || t.kind == tokNString) && p.peekAt(1).kw == "=" && p.peekAt(1).kind == tokOp {
		p.i += 2
		return selectItem{x: p.value(), alias: t.val}
	}
	it := selectItem{x: p.value()}
	if _, star := it.x.(*starExpr); star {
		return it
	}
	if p.accept("AS") {
		it.alias = p.nameOrString()
	} else if n := p.peek(); p.isName() || n.kind == tokString || n.kind == tokNString {
		it.alias = p.nameOrString()
	}
	return it
}

func (p *parser) fromList() []tableRef {
	var l []tableRef
	for {
		l = append(l, p.joined())
		if !p.accept(",") {
			return l
		}
	}
}

func (p *parser) joined() tableRef {
	p.enter()
	defer p.leave()
	l := p.tablePrimary()
	for {
		switch {
		case p.acceptSeq("CROSS", "JOIN"):
			l = &joinRef{kind: joinCross, l: l, r: p.tablePrimary()}
			continue
		case p.acceptSeq("CROSS", "APPLY"):
			l = &joinRef{kind: applyCross, l: l, r: p.tablePrimary()}
			continue
		case p.acceptSeq("OUTER", "APPLY"):
			l = &joinRef{kind: applyOuter, l: l, r: p.tablePrimary()}
			continue
		}
		kind := joinInner
		switch {
		case p.is("JOIN"):
		case p.is("INNER"):
			p.i++
		case p.is("LEFT"), p.is("RIGHT"), p.is("FULL"):
			switch p.next().kw {
			case "LEFT":
				kind = joinLeft
			case "RIGHT":
				kind = joinRight
			default:
				kind = joinFull
			}
			p.accept("OUTER")
		default:
			return l
		}
		if p.is("HASH", "LOOP", "MERGE") {
			p.i++
		}
		p.expect("JOIN")
		// a JOIN b JOIN c ON … ON …: the right side may itself be a join
		r := p.tablePrimary()
		for !p.is("ON") && p.is("JOIN", "INNER", "LEFT", "RIGHT", "FULL") {
			r = p.joinTail(r)
		}
		p.expect("ON")
		l = &joinRef{kind: kind, l: l, r: r, on: p.condition()}
	}
}

// joinTail parses one nested join whose ON comes before the outer one's.
func (p *parser) joinTail(l tableRef) tableRef {
	p.enter()
	defer p.leave()
	kind := joinInner
	switch p.peek().kw {
	case "INNER":
		p.i++
	case "LEFT", "RIGHT", "FULL":
		switch p.next().kw {
		case "LEFT":
			kind = joinLeft
		case "RIGHT":
			kind = joinRight
		default:
			kind = joinFull
		}
		p.accept("OUTER")
	}
	p.expect("JOIN")
	r := p.tablePrimary()
	for !p.is("ON") && p.is("JOIN", "INNER", "LEFT", "RIGHT", "FULL") {
		r = p.joinTail(r)
	}
	p.expect("ON")
	return &joinRef{kind: kind, l: l, r: r, on: p.condition()}
}

func (p *parser) tablePrimary() tableRef {
	t := p.peek()
	switch {
	case t.kind == tokVar:
		p.i++
		v := &tableVar{name: p.use(t, true), line: t.line}
		v.alias = p.tableAlias()
		return v
	case t.kw == "(" && t.kind == tokOp:
		p.i++
		if p.is("VALUES") {
			q := &query{body: p.valuesBody(), line: t.line}
			p.expect(")")
			d := &derivedTable{q: q, line: t.line}
			p.derivedAlias(d)
			return d
		}
		if p.is("SELECT") || p.is("(") && p.startsQuery() && p.parenQuery() {
			q := p.query()
			p.expect(")")
			d := &derivedTable{q: q, line: t.line}
			p.derivedAlias(d)
			return d
		}
		j := p.joined()
		p.expect(")")
		return j
	}
	o := p.object()
	if p.is("(") && !p.isHintList() {
		p.i++
		f := &tableFunc{obj: o}
		for !p.accept(")") {
			if p.accept("DEFAULT") {
				f.args = append(f.args, &defaultExpr{})
			} else {
				f.args = append(f.args, p.value())
			}
			if !p.accept(",") {
				p.expect(")")
				break
			}
		}
		f.alias = p.tableAlias()
		if f.alias != "" && p.accept("(") {
			f.cols = p.nameList()
		}
		return f
	}
	tn := &tableName{obj: o}
	p.hints()
	tn.alias = p.tableAlias()
	p.hints()
	return tn
}

func (p *parser) derivedAlias(d *derivedTable) {
	d.alias = p.tableAlias()
	if d.alias == "" {
		p.failHere()
	}
	if p.accept("(") {
		d.cols = p.nameList()
	}
}

func (p *parser) tableAlias() string {
	if p.accept("AS") {
		return p.name()
	}
	if !p.isName() {
		return ""
	}
	switch p.peek().kw {
	case "APPLY", "TABLESAMPLE", "PIVOT", "UNPIVOT":
		return ""
	}
	return p.name()
}

// isHintList tells whether the next parenthesis holds an old-style table hint.
func (p *parser) isHintList() bool {
	return p.is("(") && tableHint(p.peekAt(1).kw) && (p.peekAt(2).kw == ")" || p.peekAt(2).kw == ",")
}

func tableHint(kw string) bool {
	switch kw {
	case "NOLOCK", "READUNCOMMITTED", "READCOMMITTED", "REPEATABLEREAD", "SERIALIZABLE", "HOLDLOCK", "ROWLOCK", "PAGLOCK",
		"TABLOCK", "TABLOCKX", "UPDLOCK", "XLOCK", "READPAST", "NOWAIT", "SNAPSHOT", "NOEXPAND", "FORCESEEK", "FORCESCAN",
		"READCOMMITTEDLOCK", "KEEPIDENTITY", "KEEPDEFAULTS", "IGNORE_CONSTRAINTS", "IGNORE_TRIGGERS":
		return true
	}
	return false
}

func (p *parser) hints() {
	switch {
	case p.isHintList():
	case p.is("WITH") && p.peekAt(1).kw == "(" && (tableHint(p.peekAt(2).kw) || p.peekAt(2).kw == "INDEX"):
		p.i++
	default:
		return
	}
	p.expect("(")
	for {
		t := p.peek()
		switch {
		case tableHint(t.kw):
			p.i++
		case t.kw == "INDEX":
			p.i++
			if p.accept("=") {
				p.next()
			} else {
				p.skipParens()
			}
		default:
			p.failAt(t, 321, 15, 1, "\"%s\" is not a recognized table hints option. If it is intended as a parameter to a table-valued function or to the CHANGETABLE function, ensure that your database compatibility mode is set to 90.", t.val)
		}
		if !p.accept(",") {
			break
		}
	}
	p.expect(")")
}

func (p *parser) valuesBody() *valuesBody {
	p.expect("VALUES")
	v := &valuesBody{}
	for {
		p.expect("(")
		var row []expr
		for {
			if p.accept("DEFAULT") {
				row = append(row, &defaultExpr{})
			} else {
				row = append(row, p.value())
			}
			if !p.accept(",") {
				break
			}
		}
		p.expect(")")
		if len(v.rows) > 0 && len(v.rows[0]) != len(row) {
			p.failAt(p.toks[p.i-1], 10709, 15, 1, "The number of columns for each row in a table value constructor must be the same.")
		}
		v.rows = append(v.rows, row)
		if !p.accept(",") {
			return v
		}
	}
}

func (p *parser) selectStatement() stmt { return &selectStmt{q: p.query()} }

// withStatement is a statement that begins with common table expressions.
func (p *parser) withStatement() stmt {
	with := p.ctes()
	switch p.peek().kw {
	case "INSERT":
		return p.insertStatement(with)
	case "UPDATE":
		return p.updateStatement(with)
	case "DELETE":
		return p.deleteStatement(with)
	}
	return &selectStmt{q: p.queryAfterWith(with)}
}

func (p *parser) insertStatement(with []cte) stmt {
	p.expect("INSERT")
	s := &insertStmt{}
	if p.accept("TOP") {
		s.top, _, _ = p.topClause()
	}
	p.accept("INTO")
	s.target = p.target()
	p.hints()
	s.colLine = p.peek().line
	if p.is("(") && !p.startsQuery() {
		p.i++
		for {
			// a column may be qualified by its table
			o := p.object()
			s.cols = append(s.cols, o.name)
			if !p.accept(",") {
				break
			}
		}
		p.expect(")")
	}
	s.output = p.outputClause()
	switch {
	case p.acceptSeq("DEFAULT", "VALUES"):
		s.deflt = true
	case p.is("VALUES"):
		s.q = &query{body: p.valuesBody(), line: s.colLine}
	case p.is("EXEC", "EXECUTE"):
		t := p.next()
		s.exec = p.execStatement(t).(*execStmt)
	default:
		s.q = p.queryAfterWith(with)
	}
	return s
}

func (p *parser) target() tableRef {
	if t := p.peek(); t.kind == tokVar {
		p.i++
		return &tableVar{name: p.use(t, true), line: t.line}
	}
	return &tableName{obj: p.object()}
}

func (p *parser) outputClause() *outputClause {
	if !p.accept("OUTPUT") {
		return nil
	}
	o := &outputClause{}
	for {
		o.items = append(o.items, p.selectItem())
		if !p.accept(",") {
			break
		}
	}
	if p.accept("INTO") {
		o.into = p.target()
		if p.is("(") && !p.startsQuery() {
			p.i++
			o.intoCols = p.nameList()
		}
	}
	return o
}

func (p *parser) updateStatement(with []cte) stmt {
	p.expect("UPDATE")
	s := &updateStmt{with: with, line: p.peek().line}
	if p.accept("STATISTICS") {
		p.object()
		return &emptyStmt{}
	}
	if p.accept("TOP") {
		s.top, _, _ = p.topClause()
	}
	s.target = p.target()
	p.hints()
	p.expect("SET")
	for {
		c := setClause{line: p.peek().line}
		if t := p.peek(); t.kind == tokVar {
			p.i++
			c.vari = p.use(t, false)
			c.op = p.assignOp()
			if c.op == 0 && p.isName() && p.peekAt(1).kw == "=" {
				c.col = p.name()
				p.i++
			}
		} else {
			c.col = p.object().name
			c.op = p.assignOp()
		}
		if p.accept("DEFAULT") {
			c.x = &defaultExpr{}
		} else {
			c.x = p.value()
		}
		s.sets = append(s.sets, c)
		if !p.accept(",") {
			break
		}
	}
	s.output = p.outputClause()
	if p.accept("FROM") {
		s.from = p.fromList()
	}
	if p.accept("WHERE") {
		s.where = p.condition()
	}
	if p.is("OPTION") {
		p.i++
		p.skipParens()
	}
	return s
}

func (p *parser) deleteStatement(with []cte) stmt {
	p.expect("DELETE")
	s := &deleteStmt{with: with, line: p.peek().line}
	if p.accept("TOP") {
		s.top, _, _ = p.topClause()
	}
	p.accept("FROM")
	s.target = p.target()
	p.hints()
	s.output = p.outputClause()
	if p.accept("FROM") {
		s.from = p.fromList()
	}
	if p.accept("WHERE") {
		s.where = p.condition()
	}
	if p.is("OPTION") {
		p.i++
		p.skipParens()
	}
	return s
}
