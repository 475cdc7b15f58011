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
