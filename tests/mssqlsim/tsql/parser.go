package tsql

import (
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// maxNesting bounds the depth of expressions, subqueries and blocks, as the product does (191).
const maxNesting = 120

// parser is a recursive descent parser over the tokens of one batch. A syntax error unwinds to
// parseBatch by a panic with parseFailure, which never leaves this package.
type parser struct {
	src   string
	toks  []token
	i     int
	depth int
	// declared are the variables declared so far; free are those used without declaration before.
	declared map[string]bool
	free     []varUse
}

// varUse is a variable that a batch uses without declaring it.
type varUse struct {
	name  string
	line  int
	table bool
}

// use notes a variable and gives its lower-case name.
func (p *parser) use(t token, table bool) string {
	n := strings.ToLower(t.val)
	if !p.declared[n] && !strings.HasPrefix(n, "@@") {
		p.free = append(p.free, varUse{name: n, line: t.line, table: table})
	}
	return n
}

func (p *parser) declare(name string) {
	if p.declared == nil {
		p.declared = map[string]bool{}
	}
	p.declared[name] = true
}

type parseFailure struct{ err *stmtError }

// batch is a parsed batch.
type batch struct {
	body []node
	free []varUse
	err  *stmtError
}

// parseBatch parses a whole batch; any syntax error fails all of it.
func parseBatch(src string) (b *batch, err *stmtError) {
	toks, lerr := lex(src)
	if lerr != nil {
		return nil, lerr
	}
	p := &parser{src: src, toks: toks}
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(parseFailure)
			if !ok {
				panic(r)
			}
			b, err = nil, f.err
		}
	}()
	b = &batch{}
	for {
		for p.accept(";") {
		}
		if p.peek().kind == tokEOF {
			b.free = p.free
			return b, nil
		}
		b.body = append(b.body, p.statement(len(b.body) == 0))
	}
}

func (p *parser) peek() token { return p.toks[p.i] }

func (p *parser) peekAt(n int) token {
	if p.i+n >= len(p.toks) {
		return p.toks[len(p.toks)-1]
	}
	return p.toks[p.i+n]
}

func (p *parser) next() token {
	t := p.toks[p.i]
	if t.kind != tokEOF {
		p.i++
	}
	return t
}

func (p *parser) is(kws ...string) bool {
	t := p.peek()
	for _, k := range kws {
		if t.kw == k {
			return true
		}
	}
	return false
}

// isSeq tells whether the next words are exactly these.
func (p *parser) isSeq(kws ...string) bool {
	for n, k := range kws {
		if p.peekAt(n).kw != k {
			return false
		}
	}
	return true
}

func (p *parser) accept(kw string) bool {
	if p.peek().kw == kw {
		p.i++
		return true
	}
	return false
}

func (p *parser) acceptSeq(kws ...string) bool {
	if !p.isSeq(kws...) {
		return false
	}
	p.i += len(kws)
	return true
}

func (p *parser) expect(kws ...string) {
	for _, k := range kws {
		if !p.accept(k) {
			p.failHere()
		}
	}
}

// expectOneOf takes the next word, which must be one of these.
func (p *parser) expectOneOf(kws ...string) string {
	for _, k := range kws {
		if p.accept(k) {
			return k
		}
	}
	p.failHere()
	return ""
}

func (p *parser) fail(err *stmtError) { panic(parseFailure{err}) }

func (p *parser) failAt(t token, number int32, class, state uint8, format string, args ...any) {
	p.fail(errSyntax(number, class, state, t.line, format, args...))
}

// failHere is the syntax error near the next token.
func (p *parser) failHere() { p.failNear(p.peek()) }

func (p *parser) failNear(t token) {
	if t.kind == tokEOF && p.i > 0 {
		last := p.toks[max(p.i-1, 0)]
		p.failAt(last, 102, 15, 1, "Incorrect syntax near '%s'.", last.val)
	}
	if t.kind == tokIdent && reserved(t.kw) {
		p.failAt(t, 156, 15, 1, "Incorrect syntax near the keyword '%s'.", t.text)
	}
	p.failAt(t, 102, 15, 1, "Incorrect syntax near '%s'.", t.val)
}

func (p *parser) enter() {
	p.depth++
	if p.depth > maxNesting {
		p.failAt(p.peek(), 191, 15, 1, "Some part of your SQL statement is nested too deeply. Rewrite the query or break it up into smaller queries.")
	}
}

func (p *parser) leave() { p.depth-- }

// isName tells whether the next token can be a name.
func (p *parser) isName() bool {
	t := p.peek()
	return t.kind == tokQuoted || t.kind == tokIdent && !reserved(t.kw)
}

func (p *parser) name() string {
	if !p.isName() {
		p.failHere()
	}
	return p.next().val
}

// nameOrString is a name or a character literal.
func (p *parser) nameOrString() string {
	if t := p.peek(); t.kind == tokString || t.kind == tokNString {
		p.i++
		return t.val
	}
	return p.name()
}

func (p *parser) str() string {
	t := p.peek()
	if t.kind != tokString && t.kind != tokNString {
		p.failHere()
	}
	p.i++
	return t.val
}

// integer is an unsigned integer literal.
func (p *parser) integer() int64 {
	t := p.peek()
	if t.kind != tokNumber || strings.ContainsAny(t.text, ".eE") {
		p.failHere()
	}
	v, err := sqltypes.ParseNumber(t.text)
	if err == nil {
		v, err = sqltypes.Cast(v, sqltypes.TBigInt, 0)
	}
	if err != nil {
		p.failHere()
	}
	p.i++
	return v.Int64()
}

// object is a name of one to four parts; empty inner parts (db..t) are allowed.
func (p *parser) object() objName {
	line := p.peek().line
	parts := []string{p.name()}
	for p.accept(".") {
		if p.peek().kw == "." {
			parts = append(parts, "")
			continue
		}
		if len(parts) == 4 {
			p.failHere()
		}
		// after a dot, reserved words are still refused
		parts = append(parts, p.name())
	}
	o := objName{line: line, name: parts[len(parts)-1]}
	if n := len(parts); n > 1 {
		o.schema = parts[n-2]
		if n > 2 {
			o.db = parts[n-3]
		}
		if n > 3 {
			o.server = parts[n-4]
		}
	}
	return o
}

// onOff reads ON or OFF.
func (p *parser) onOff() bool { return p.expectOneOf("ON", "OFF") == "ON" }

// typeName reads a data type; defLen as in sqltypes.NewType.
func (p *parser) typeName(defLen int) sqltypes.Type {
	t := p.peek()
	if t.kind != tokIdent && t.kind != tokQuoted || t.kind == tokIdent && reserved(t.kw) && t.kw != "NATIONAL" && t.kw != "DOUBLE" {
		p.failHere()
	}
	p.i++
	if (strings.EqualFold(t.val, "sys") || strings.EqualFold(t.val, "dbo")) && p.accept(".") {
		t = p.next()
	}
	id, ok := sqltypes.LookupID(t.val)
	if t.kw == "DOUBLE" && p.accept("PRECISION") {
		id, ok = sqltypes.Float, true
	}
	if !ok {
		p.failAt(t, 2715, 16, 6, "Column, parameter, or variable #1: Cannot find data type %s.", t.val)
	}
	var args []int
	if p.accept("(") {
		for {
			if p.accept("MAX") {
				args = append(args, sqltypes.Max)
			} else {
				args = append(args, int(min(p.integer(), 1<<20)))
			}
			if !p.accept(",") {
				break
			}
		}
		p.expect(")")
	}
	ty, err := sqltypes.NewType(id, args, defLen)
	if err != nil {
		e := asStmtError(err)
		e.line, e.abort = t.line, true
		p.fail(e)
	}
	return ty
}

// source is the text from token a up to the token before the present one.
func (p *parser) source(a int) string {
	if p.i <= a {
		return ""
	}
	return p.src[p.toks[a].pos:p.toks[p.i-1].end]
}

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
