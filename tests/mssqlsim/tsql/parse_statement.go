package tsql

import (
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// statement parses one statement with its optional semicolon.
func (p *parser) statement(first bool) node {
	p.enter()
	defer p.leave()
	start := p.i
	t := p.peek()
	n := node{line: t.line}
	n.s = p.statementBody(t, first)
	n.text = p.source(start)
	p.accept(";")
	return n
}

func (p *parser) statementBody(t token, first bool) stmt {
	if t.kind == tokIdent {
		switch t.kw {
		case "SELECT":
			return p.selectStatement()
		case "WITH":
			return p.withStatement()
		case "INSERT":
			return p.insertStatement(nil)
		case "UPDATE":
			return p.updateStatement(nil)
		case "DELETE":
			return p.deleteStatement(nil)
		case "TRUNCATE":
			p.expect("TRUNCATE", "TABLE")
			return &truncateStmt{obj: p.object()}
		case "DECLARE":
			return p.declareStatement()
		case "SET":
			return p.setStatement()
		case "IF":
			return p.ifStatement()
		case "WHILE":
			p.i++
			w := &whileStmt{cond: p.condition()}
			body := p.statement(false)
			w.body = &body
			return w
		case "BEGIN":
			return p.beginStatement()
		case "BREAK":
			p.i++
			return &breakStmt{}
		case "CONTINUE":
			p.i++
			return &continueStmt{}
		case "RETURN":
			p.i++
			r := &returnStmt{}
			if p.startsExpr() {
				r.x = p.value()
			}
			return r
		case "THROW":
			p.i++
			th := &throwStmt{}
			if p.startsExpr() {
				th.number = p.value()
				p.expect(",")
				th.msg = p.value()
				p.expect(",")
				th.state = p.value()
			}
			return th
		case "RAISERROR":
			return p.raiserrorStatement()
		case "PRINT":
			p.i++
			return &printStmt{x: p.value()}
		case "WAITFOR":
			p.i++
			w := &waitforStmt{time: p.expectOneOf("DELAY", "TIME") == "TIME"}
			w.x = p.value()
			return w
		case "EXEC", "EXECUTE":
			p.i++
			return p.execStatement(t)
		case "USE":
			p.i++
			return &useStmt{db: p.name()}
		case "COMMIT", "ROLLBACK", "SAVE":
			return p.tranStatement()
		case "CREATE":
			return p.createStatement()
		case "ALTER":
			return p.alterStatement()
		case "DROP":
			return p.dropStatement()
		case "GRANT", "DENY", "REVOKE":
			return p.grantStatement()
		case "BACKUP":
			return p.backupStatement()
		case "RESTORE":
			return p.restoreStatement()
		case "OPEN", "CLOSE":
			return p.masterKeyStatement()
		case "SHUTDOWN":
			p.i++
			s := &shutdownStmt{}
			if p.accept("WITH") {
				p.expect("NOWAIT")
				s.nowait = true
			}
			return s
		case "KILL":
			p.i++
			return &killStmt{x: p.value()}
		case "CHECKPOINT":
			p.i++
			if p.peek().kind == tokNumber {
				p.i++
			}
			return &checkpointStmt{}
		case "RECONFIGURE":
			p.i++
			if p.accept("WITH") {
				p.expect("OVERRIDE")
			}
			return &reconfigStmt{}
		case "DBCC":
			return p.dbccStatement()
		}
	}
	if t.kw == "(" && (p.peekAt(1).kw == "SELECT" || p.peekAt(1).kw == "(") {
		return p.selectStatement()
	}
	if first && p.isName() {
		// a batch may begin with the name of a procedure
		return p.execStatement(t)
	}
	p.failHere()
	return nil
}

// startsExpr tells whether the next token can begin an expression that belongs to the present
// statement (for RETURN and THROW).
func (p *parser) startsExpr() bool {
	t := p.peek()
	switch t.kind {
	case tokNumber, tokString, tokNString, tokBinary, tokVar:
		return true
	case tokOp:
		return t.kw == "(" || t.kw == "-" || t.kw == "+" || t.kw == "~"
	case tokIdent:
		switch t.kw {
		case "CASE", "COALESCE", "NULLIF", "CONVERT", "NULL", "LEFT", "RIGHT":
			return true
		}
		return !reserved(t.kw) && p.peekAt(1).kw == "("
	}
	return false
}

func (p *parser) ifStatement() stmt {
	p.expect("IF")
	s := &ifStmt{cond: p.condition()}
	then := p.statement(false)
	s.then = &then
	if p.accept("ELSE") {
		els := p.statement(false)
		s.els = &els
	}
	return s
}

func (p *parser) beginStatement() stmt {
	p.expect("BEGIN")
	switch {
	case p.is("TRAN", "TRANSACTION"):
		p.i++
		s := &tranStmt{op: "BEGIN"}
		if p.isName() || p.peek().kind == tokVar {
			s.name = p.next().val
			if p.accept("WITH") {
				p.expect("MARK")
				if p.peek().kind == tokString {
					p.i++
				}
			}
		}
		return s
	case p.accept("TRY"):
		s := &tryStmt{try: p.block("TRY")}
		p.expect("BEGIN", "CATCH")
		s.catch = p.block("CATCH")
		return s
	}
	body := p.block("")
	if len(body) == 0 {
		p.failNear(p.toks[p.i-1])
	}
	return &blockStmt{body: body}
}

// block reads statements up to END [what].
func (p *parser) block(what string) []node {
	var body []node
	for {
		for p.accept(";") {
		}
		if p.peek().kind == tokEOF {
			p.failHere()
		}
		if p.accept("END") {
			if what != "" {
				p.expect(what)
			}
			if what == "TRY" {
				p.accept(";")
			}
			return body
		}
		body = append(body, p.statement(false))
	}
}

func (p *parser) tranStatement() stmt {
	t := p.next()
	s := &tranStmt{op: t.kw}
	switch {
	case p.accept("TRAN"), p.accept("TRANSACTION"):
		if p.isName() || p.peek().kind == tokVar {
			s.name = p.next().val
		} else if t.kw == "SAVE" {
			p.failHere()
		}
	case t.kw == "SAVE":
		p.failHere()
	default:
		p.accept("WORK")
	}
	if t.kw == "COMMIT" && p.isSeq("WITH", "(", "DELAYED_DURABILITY") {
		p.i += 3
		p.expect("=")
		p.onOff()
		p.expect(")")
	}
	return s
}

func (p *parser) raiserrorStatement() stmt {
	p.expect("RAISERROR", "(")
	s := &raiseStmt{msg: p.value()}
	p.expect(",")
	s.severity = p.value()
	p.expect(",")
	s.state = p.value()
	for p.accept(",") {
		s.args = append(s.args, p.value())
	}
	p.expect(")")
	if p.accept("WITH") {
		for {
			switch p.expectOneOf("NOWAIT", "LOG", "SETERROR") {
			case "NOWAIT":
				s.nowait = true
			case "LOG":
				s.log = true
			case "SETERROR":
				s.seterr = true
			}
			if !p.accept(",") {
				break
			}
		}
	}
	return s
}

func (p *parser) declareStatement() stmt {
	p.expect("DECLARE")
	s := &declareStmt{}
	for {
		t := p.peek()
		if t.kind != tokVar || strings.HasPrefix(t.val, "@@") {
			p.failHere()
		}
		p.i++
		d := varDecl{name: strings.ToLower(t.val), line: t.line}
		p.accept("AS")
		if p.accept("TABLE") {
			def := p.tableDefinition()
			d.table = &def
		} else {
			d.typ = p.typeName(1)
			if p.accept("=") {
				d.init = p.value()
			}
		}
		s.vars = append(s.vars, d)
		if p.declared[d.name] {
			p.failAt(t, 134, 15, 2, "The variable name '%s' has already been declared. Variable names must be unique within a query batch or stored procedure.", t.val)
		}
		p.declare(d.name)
		if !p.accept(",") {
			return s
		}
	}
}

func (p *parser) setStatement() stmt {
	p.expect("SET")
	if t := p.peek(); t.kind == tokVar {
		p.i++
		s := &setVarStmt{name: p.use(t, false), line: t.line}
		s.op = p.assignOp()
		s.x = p.value()
		return s
	}
	if p.acceptSeq("TRANSACTION", "ISOLATION", "LEVEL") {
		start := p.i
		switch p.expectOneOf("READ", "REPEATABLE", "SNAPSHOT", "SERIALIZABLE") {
		case "READ":
			p.expectOneOf("COMMITTED", "UNCOMMITTED")
		case "REPEATABLE":
			p.expect("READ")
		}
		return &setOptStmt{names: []string{"TRANSACTION ISOLATION LEVEL"}, value: strings.ToUpper(p.source(start))}
	}
	if p.accept("IDENTITY_INSERT") {
		o := p.object()
		v := "OFF"
		if p.onOff() {
			v = "ON"
		}
		return &setOptStmt{names: []string{"IDENTITY_INSERT", o.db, o.schema, o.name}, value: v}
	}
	if p.accept("STATISTICS") {
		for {
			p.expectOneOf("IO", "TIME", "XML", "PROFILE")
			if !p.accept(",") {
				break
			}
		}
		p.onOff()
		return &setOptStmt{names: []string{"STATISTICS"}}
	}
	s := &setOptStmt{}
	for {
		t := p.peek()
		if t.kind != tokIdent {
			p.failHere()
		}
		p.i++
		switch t.kw {
		case "NOCOUNT", "XACT_ABORT", "ANSI_NULLS", "ANSI_WARNINGS", "ANSI_PADDING", "ANSI_NULL_DFLT_ON", "ANSI_NULL_DFLT_OFF",
			"QUOTED_IDENTIFIER", "ARITHABORT", "ARITHIGNORE", "CONCAT_NULL_YIELDS_NULL", "NUMERIC_ROUNDABORT",
			"IMPLICIT_TRANSACTIONS", "CURSOR_CLOSE_ON_COMMIT", "ANSI_DEFAULTS", "NOEXEC", "FMTONLY", "PARSEONLY",
			"SHOWPLAN_ALL", "SHOWPLAN_TEXT", "SHOWPLAN_XML", "REMOTE_PROC_TRANSACTIONS", "FORCEPLAN":
			s.names = append(s.names, t.kw)
			if p.accept(",") {
				continue
			}
			s.value = "OFF"
			if p.onOff() {
				s.value = "ON"
			}
			return s
		case "LOCK_TIMEOUT", "DEADLOCK_PRIORITY", "DATEFORMAT", "LANGUAGE", "ROWCOUNT", "TEXTSIZE", "DATEFIRST", "CONTEXT_INFO", "QUERY_GOVERNOR_COST_LIMIT":
			start := p.i
			p.accept("-")
			if v := p.peek(); v.kind == tokEOF || v.kind == tokOp {
				p.failHere()
			}
			p.i++
			return &setOptStmt{names: []string{t.kw}, value: p.source(start)}
		}
		p.failAt(t, 195, 15, 5, "'%s' is not a recognized SET option.", t.val)
	}
}

// assignOp reads = or a compound assignment and gives 0 or the operator.
func (p *parser) assignOp() byte {
	t := p.peek()
	switch t.kw {
	case "=":
		p.i++
		return 0
	case "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=":
		p.i++
		return t.kw[0]
	}
	p.failHere()
	return 0
}

// execStatement parses what follows EXEC, or a bare procedure call.
func (p *parser) execStatement(t token) stmt {
	s := &execStmt{line: t.line}
	if p.accept("(") {
		s.text = p.value()
		p.expect(")")
		if p.is("AS", "AT") {
			p.failHere()
		}
		return s
	}
	if v := p.peek(); v.kind == tokVar {
		p.i++
		if p.accept("=") {
			s.ret = p.use(v, false)
			if w := p.peek(); w.kind == tokVar {
				p.i++
				s.procVar = p.use(w, false)
			} else {
				s.proc = p.object()
			}
		} else {
			s.procVar = p.use(v, false)
		}
	} else {
		s.proc = p.object()
	}
	if p.endOfArgs() {
		return s
	}
	for {
		var a execArg
		if v := p.peek(); v.kind == tokVar && p.peekAt(1).kw == "=" {
			a.name = strings.ToLower(v.val)
			p.i += 2
		}
		v := p.peek()
		switch {
		case p.accept("DEFAULT"):
			a.deflt = true
		case v.kind == tokVar:
			p.i++
			a.x = &varExpr{name: p.use(v, false), line: v.line}
			if p.accept("OUTPUT") || p.accept("OUT") {
				a.output = true
			}
		case v.kind == tokIdent && v.kw != "NULL" || v.kind == tokQuoted:
			// a bare word is a string; words such as ON are allowed
			p.i++
			a.x = &litExpr{sqltypes.NewNVarChar(v.val)}
		default:
			neg := false
			for p.is("-", "+") {
				neg = neg != (p.next().kw == "-")
			}
			l, ok := p.literal()
			if !ok {
				p.failHere()
			}
			if neg {
				a.x = &unaryExpr{op: '-', x: l}
			} else {
				a.x = l
			}
		}
		s.args = append(s.args, a)
		if !p.accept(",") {
			break
		}
	}
	if p.acceptSeq("WITH", "RECOMPILE") || p.isSeq("WITH", "RESULT", "SETS") {
		if p.is("WITH") {
			p.failHere()
		}
	}
	return s
}

// endOfArgs tells that a procedure call has no arguments: the next token starts a statement.
func (p *parser) endOfArgs() bool {
	t := p.peek()
	switch t.kind {
	case tokEOF:
		return true
	case tokOp:
		return t.kw != "-" && t.kw != "+"
	case tokIdent:
		switch t.kw {
		case "NULL", "DEFAULT", "ON", "OFF":
			return false
		}
		return reserved(t.kw)
	}
	return false
}

func (p *parser) dbccStatement() stmt {
	p.expect("DBCC")
	t := p.peek()
	if t.kind != tokIdent {
		p.failHere()
	}
	p.i++
	s := &dbccStmt{verb: t.kw}
	if p.accept("(") {
		for !p.accept(")") {
			v := p.peek()
			if p.isName() || v.kind == tokString || v.kind == tokNString {
				p.i++
				s.args = append(s.args, &litExpr{sqltypes.NewNVarChar(v.val)})
			} else {
				s.args = append(s.args, p.value())
			}
			if !p.accept(",") {
				p.expect(")")
				break
			}
		}
	}
	if p.accept("WITH") {
		for {
			p.name()
			if !p.accept(",") {
				break
			}
		}
	}
	return s
}
