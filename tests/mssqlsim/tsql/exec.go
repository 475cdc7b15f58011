package tsql

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// maxProcNesting is the limit of nested procedure and dynamic text levels (217).
const maxProcNesting = 32

// variable is a local variable: a scalar or a table.
type variable struct {
	typ   sqltypes.Type
	val   value
	table *memTable
}

type varScope map[string]*variable

func (s varScope) get(name string) *variable { return s[name] }

// signal is how a statement list ended.
type signal uint8

const (
	sigNone signal = iota
	sigBreak
	sigContinue
	sigReturn
	sigAbort // the batch ends
)

// exec runs one level of a request: the batch itself, a procedure or dynamic text.
type exec struct {
	s      *Session
	ctx    context.Context
	out    ResultSink
	vars   varScope
	parent *exec
	depth  int
	proc   string // name of the procedure, for messages
	trying int    // open TRY blocks of this level
	caught []*stmtError
	status int32
	inSys  int // running a system procedure: its statements end in DONEINPROC
	line   int // of the running statement
	// scopeOnly is set when a binding error ended this level only.
	scopeOnly bool
	// collect gathers the rows of INSERT … EXEC.
	collect *collector

	// reads is set while a SELECT runs: what it has read of system views.
	reads *memo

	in  *engine.Instance // set inside do
	now time.Time        // server wall clock of the statement
	hst time.Time        // host time of the present do
}

// errQuit ends the request: the context is over or the connection is broken.
type errQuit struct{ err error }

func (e *errQuit) Error() string { return e.err.Error() }
func (e *errQuit) Unwrap() error { return e.err }

// do runs f with the instance at hand; nested calls run in the same hold of it.
func (ex *exec) do(f func() error) error {
	if ex.in != nil {
		return f()
	}
	s := ex.s
	s.held = held{ex: ex, f: f}
	if s.hold == nil {
		s.hold = s.held.run // one function for all: it is called again and again
	}
	s.host.Do(s.hold)
	err := s.held.err
	s.held = held{}
	return err
}

// held is what runs while the session holds the instance.
type held struct {
	ex  *exec
	f   func() error
	err error
}

func (h *held) run(now time.Time, in *engine.Instance) {
	ex := h.ex
	ex.in, ex.hst = in, now
	ex.now = in.WallClock(now)
	defer func() { ex.in = nil }()
	h.err = h.f()
}

// wait parks until the engine completes id. A context that ends becomes errQuit.
func (ex *exec) wait(id engine.WaitID) error {
	if id == 0 {
		return nil
	}
	err := ex.s.host.Wait(ex.ctx, id)
	if err != nil && len(engine.Messages(err)) == 0 {
		return &errQuit{err}
	}
	return err
}

func (ex *exec) sleep(d time.Duration) error {
	if err := ex.s.host.Sleep(ex.ctx, d); err != nil {
		return &errQuit{err}
	}
	return nil
}

// step counts a row of a query, so that a long one ends with its context or limit.
func (ex *exec) step() error {
	s := ex.s
	s.steps++
	if s.steps&1023 != 0 {
		return nil
	}
	if err := ex.ctx.Err(); err != nil {
		return &errQuit{err}
	}
	if s.Limit > 0 && s.steps > s.Limit*100 {
		return &errQuit{ErrStatementLimit}
	}
	return nil
}

// trying outside: some enclosing level has an open TRY block.
func (ex *exec) outerTry() bool {
	for p := ex.parent; p != nil; p = p.parent {
		if p.trying > 0 {
			return true
		}
	}
	return false
}

// message sends one message of the present statement.
func (ex *exec) message(m sqltypes.Error, line int, proc string) {
	ex.out.Message(ex.placed(m, line, proc))
}

// placed is a message with its place: by default that of the present statement.
func (ex *exec) placed(m sqltypes.Error, line int, proc string) Message {
	if line == 0 {
		line = ex.line
	}
	if proc == "" {
		proc = ex.proc
	}
	return Message{Number: m.Number, State: m.State, Class: m.Class, Text: m.Message, Server: ex.s.server, Procedure: proc, Line: line}
}

// done ends a statement on the wire.
func (ex *exec) done(cmd uint16, count int64, counted bool) {
	ex.s.rowCount = 0
	if counted {
		ex.s.rowCount = count
	}
	ex.out.Done(Done{Count: count, Counted: counted && !ex.s.opts.nocount, Command: cmd, InProc: ex.depth+ex.inSys > 0})
}

// infos sends the informational messages that a statement method returned with its success, and
// gives back real errors.
func (ex *exec) infos(err error) error {
	if err == nil || engine.Failed(err) {
		return err
	}
	for _, m := range engine.Messages(err) {
		ex.message(sqltypes.Error{Number: m.Number, Class: m.Class, State: m.State, Message: m.Message}, 0, "")
	}
	return nil
}

// list runs statements in order.
func (ex *exec) list(body []node) (signal, error) {
	for i := range body {
		sig, err := ex.one(&body[i])
		if sig != sigNone || err != nil {
			return sig, err
		}
	}
	return sigNone, nil
}

// one runs a statement and deals with its error: it returns a *stmtError only to be caught by an
// enclosing TRY block, and *errQuit when the request is over.
func (ex *exec) one(n *node) (signal, error) {
	if err := ex.ctx.Err(); err != nil {
		return sigAbort, &errQuit{err}
	}
	if ex.s.broken.Load() {
		return sigAbort, &errQuit{ErrBroken}
	}
	if err := ex.s.spend(); err != nil {
		return sigAbort, err
	}
	ex.line = n.line
	sig, err := ex.statement(n)
	if err == nil {
		switch n.s.(type) {
		case *ifStmt, *whileStmt, *blockStmt, *tryStmt, *raiseStmt, *declareStmt:
		default:
			ex.s.lastError = 0
		}
		return sig, nil
	}
	var q *errQuit
	if errors.As(err, &q) {
		return sigAbort, err
	}
	se := asStmtError(err)
	if se.line == 0 {
		se.line = n.line
	}
	if se.proc == "" {
		se.proc = ex.proc
	}
	return ex.failed(se)
}

// failed is what an error does to the batch.
func (ex *exec) failed(se *stmtError) (signal, error) {
	if se.m.Class <= 10 {
		ex.message(se.m, se.line, se.proc)
		return sigNone, nil
	}
	ex.s.lastError = se.m.Number
	ex.s.rowCount = 0
	if se.m.Class >= 20 {
		ex.report(se)
		ex.s.broken.Store(true)
		return sigAbort, &errQuit{ErrBroken}
	}
	inTxn := ex.s.tranCount > 0
	if ex.trying > 0 && !se.uncatchable || ex.outerTry() {
		if inTxn && (ex.s.opts.xactAbort && !se.raised || se.abort && !se.uncatchable && !se.raised) {
			ex.s.doomed = true
		}
		return sigAbort, se
	}
	ex.report(se)
	if ex.s.opts.xactAbort && !se.raised || se.abort && !se.uncatchable && !se.raised {
		if inTxn {
			ex.rollbackAll()
		}
		return sigAbort, nil
	}
	if se.abort || se.uncatchable {
		ex.scopeOnly = se.uncatchable
		return sigAbort, nil
	}
	return sigNone, nil
}

// report sends an error to the client and ends its statement.
func (ex *exec) report(se *stmtError) {
	for _, m := range se.before {
		ex.message(m, se.line, se.proc)
	}
	m := ex.placed(se.m, se.line, se.proc)
	m.NoWait = se.noWait
	ex.out.Message(m)
	ex.out.Done(Done{Failed: true, Command: cmdOther, InProc: ex.depth > 0})
}

// statement runs one statement.
func (ex *exec) statement(n *node) (signal, error) {
	switch s := n.s.(type) {
	case *blockStmt:
		return ex.list(s.body)
	case *ifStmt:
		ok, err := ex.condition(s.cond)
		if err != nil {
			return sigNone, err
		}
		if ok {
			return ex.one(s.then)
		}
		if s.els != nil {
			return ex.one(s.els)
		}
		return sigNone, nil
	case *whileStmt:
		return ex.while(s)
	case *breakStmt:
		return sigBreak, nil
	case *continueStmt:
		return sigContinue, nil
	case *returnStmt:
		if s.x != nil {
			v, err := ex.scalar(s.x)
			if err == nil {
				v, err = sqltypes.Cast(v, sqltypes.TInt, 0)
			}
			if err != nil {
				return sigNone, err
			}
			ex.status = int32(v.Int64())
		}
		return sigReturn, nil
	case *tryStmt:
		return ex.try(s)
	case *execStmt:
		return ex.execute(s)
	}
	return sigNone, ex.simple(n)
}

func (ex *exec) while(s *whileStmt) (signal, error) {
	for {
		if err := ex.ctx.Err(); err != nil {
			return sigAbort, &errQuit{err}
		}
		if err := ex.s.spend(); err != nil {
			return sigAbort, err
		}
		ok, err := ex.condition(s.cond)
		if err != nil || !ok {
			return sigNone, err
		}
		sig, err := ex.one(s.body)
		if err != nil {
			return sig, err
		}
		switch sig {
		case sigBreak:
			return sigNone, nil
		case sigReturn, sigAbort:
			return sig, nil
		}
	}
}

func (ex *exec) try(s *tryStmt) (signal, error) {
	ex.trying++
	sig, err := ex.list(s.try)
	ex.trying--
	if err == nil {
		return sig, nil
	}
	var se *stmtError
	if !errors.As(err, &se) || se.uncatchable {
		return sig, err
	}
	ex.s.caught = append(ex.s.caught, se)
	sig, err = ex.list(s.catch)
	ex.s.caught = ex.s.caught[:len(ex.s.caught)-1]
	return sig, err
}

// condition evaluates a search condition outside a query.
func (ex *exec) condition(x expr) (bool, error) {
	res := isFalse
	err := ex.do(func() error {
		p, err := ex.planFor(x, func(b *binder, p *plan) (err error) {
			p.c, err = b.cond(nil, x)
			return err
		})
		if err != nil {
			return err
		}
		res, err = p.c(&frame{ex: ex})
		return err
	})
	return res == isTrue, err
}

// scalar evaluates an expression outside a query.
func (ex *exec) scalar(x expr) (v value, err error) {
	if l, ok := x.(*litExpr); ok {
		return l.v, nil
	}
	err = ex.do(func() error {
		p, err := ex.planFor(x, func(b *binder, p *plan) (err error) {
			p.e, err = b.expr(nil, x)
			return err
		})
		if err != nil {
			return err
		}
		v, err = p.e.eval(&frame{ex: ex})
		return err
	})
	return v, err
}

// text evaluates an expression to text; NULL is "".
func (ex *exec) text(x expr) (string, error) {
	v, err := ex.scalar(x)
	if err == nil {
		v, err = sqltypes.Cast(v, sqltypes.TNVarCharMax, 0)
	}
	return v.Text(), err
}

// assign sets a variable, converting to its type.
func (ex *exec) assign(name string, op byte, v value) error {
	vr := ex.vars.get(name)
	if vr == nil || vr.table != nil {
		return errBind(0, 137, 15, 1, "Must declare the scalar variable \"%s\".", name)
	}
	if op != 0 {
		var err error
		if v, err = sqltypes.Arith(op, vr.val, v); err != nil {
			return err
		}
	}
	w, err := convertImplicit(v, vr.typ)
	if err != nil {
		return err
	}
	vr.val = w
	return nil
}

// convertImplicit converts as an assignment does: 257 where CAST would be needed; text is cut.
func convertImplicit(v value, t sqltypes.Type) (value, error) {
	if v.Type() == t && !v.IsVariant() {
		return v, nil
	}
	if v.IsVariant() && t.ID != sqltypes.SQLVariant && !v.IsNull() {
		return v, sqltypes.Errf(257, 16, 3, "Implicit conversion from data type sql_variant to %s is not allowed. Use the CONVERT function to run this query.", t.ID.Name())
	}
	if !v.IsNull() && !sqltypes.ImplicitOK(v.Type(), t) {
		from := v.Type()
		if from.IsTemporal() && t.IsNumber() || from.IsString() && t.IsBinary() {
			return v, sqltypes.Errf(257, 16, 3, "Implicit conversion from data type %s to %s is not allowed. Use the CONVERT function to run this query.", from.ID.Name(), t.ID.Name())
		}
		return v, sqltypes.Errf(206, 16, 2, "Operand type clash: %s is incompatible with %s", from.ID.Name(), t.ID.Name())
	}
	return sqltypes.Cast(v, t, 0)
}

// simple runs a statement that neither nests nor jumps.
func (ex *exec) simple(n *node) error {
	switch s := n.s.(type) {
	case *selectStmt:
		return ex.selectStatement(s)
	case *setVarStmt:
		v, err := ex.scalar(s.x)
		if err != nil {
			return err
		}
		return ex.assign(s.name, s.op, v)
	case *declareStmt:
		return ex.declare(s)
	case *printStmt:
		t, err := ex.text(s.x)
		if err != nil {
			return err
		}
		if t == "" {
			t = " "
		}
		ex.message(sqltypes.Error{Number: 0, Class: 0, State: 1, Message: sqltypes.CutText(t, 4000)}, 0, "")
		return nil
	case *raiseStmt:
		return ex.raiserror(s)
	case *throwStmt:
		return ex.throw(s)
	case *waitforStmt:
		return ex.waitfor(s)
	case *setOptStmt:
		return ex.setOption(s)
	case *useStmt:
		return ex.use(s.db)
	case *insertStmt:
		return ex.insert(s)
	case *updateStmt:
		return ex.update(s)
	case *deleteStmt:
		return ex.delete(s)
	case *truncateStmt:
		return ex.truncate(s)
	case *tranStmt:
		return ex.transaction(s)
	case *createTableStmt:
		return ex.createTable(s)
	case *alterTableStmt:
		return ex.alterTable(s)
	case *createIndexStmt:
		return ex.createIndex(s)
	case *dropObjectStmt:
		return ex.dropObjects(s)
	case *createModuleStmt:
		return ex.createModule(s)
	case *emptyStmt:
		return nil
	}
	return ex.serverStatement(n)
}

func (ex *exec) selectStatement(s *selectStmt) error {
	sel := selecting{ex: ex, s: s}
	if err := ex.do(sel.run); err != nil {
		return err
	}
	bq, rows, n := sel.q, sel.rows, sel.n
	if bq.into != nil {
		return ex.selectInto(bq, rows)
	}
	if !bq.assigns {
		if limit := ex.s.opts.rowCount; limit > 0 && int64(len(rows)) > limit {
			rows, n = rows[:limit], limit
		}
		ex.rowsOut(bq.cols, rows)
	}
	ex.done(cmdSelect, n, true)
	return nil
}

// selecting is a SELECT that runs.
type selecting struct {
	ex   *exec
	s    *selectStmt
	q    *boundQuery
	rows []engine.Row
	n    int64
}

func (sel *selecting) run() error {
	p, err := sel.ex.planOf(sel.s.q)
	if err != nil {
		return err
	}
	sel.q = p.q
	sel.rows, sel.n, err = sel.ex.answer(p)
	return err
}

// rowsOut sends a result set, or gives it to an enclosing INSERT … EXEC.
func (ex *exec) rowsOut(cols []Column, rows []engine.Row) {
	for e := ex; e != nil; e = e.parent {
		if e.collect != nil {
			e.collect.add(cols, rows)
			return
		}
	}
	if s, ok := ex.out.(SetSink); ok {
		s.Set(cols, rows)
		return
	}
	ex.out.Columns(cols)
	for _, r := range rows {
		ex.out.Row(r)
	}
}

// collector gathers the results of INSERT … EXEC.
type collector struct {
	width int
	rows  []engine.Row
	bad   bool
}

func (c *collector) add(cols []Column, rows []engine.Row) {
	if len(cols) != c.width {
		c.bad = true
		return
	}
	c.rows = append(c.rows, rows...)
}

func (ex *exec) declare(s *declareStmt) error {
	for _, d := range s.vars {
		if d.table != nil {
			t, err := ex.tableOf(objName{name: d.name, line: d.line}, d.table)
			if err != nil {
				return err
			}
			ex.vars[d.name] = &variable{table: newMemTable(t)}
			continue
		}
		if ex.vars[d.name] == nil || d.init != nil {
			ex.vars[d.name] = &variable{typ: d.typ, val: sqltypes.Null(d.typ)}
		}
		if d.init != nil {
			v, err := ex.scalar(d.init)
			if err != nil {
				return err
			}
			if err := ex.assign(d.name, 0, v); err != nil {
				return err
			}
		}
	}
	return nil
}

func (ex *exec) waitfor(s *waitforStmt) error {
	t, err := ex.text(s.x)
	if err != nil {
		return err
	}
	v, err := sqltypes.Cast(sqltypes.NewVarChar(t), sqltypes.TTime, 0)
	if err != nil || strings.TrimSpace(t) == "" {
		return errNum(148, 15, 1, "Incorrect time syntax in time string '%s' used with WAITFOR.", t)
	}
	_, ticks, _ := v.DayTicks()
	d := time.Duration(ticks) * 100
	if s.time {
		now := time.Duration(0)
		if err := ex.do(func() error {
			_, n, _ := sqltypes.NewTime(sqltypes.TTime, ex.now).DayTicks()
			now = time.Duration(n) * 100
			return nil
		}); err != nil {
			return err
		}
		if d < now {
			d += 24 * time.Hour
		}
		d -= now
	}
	return ex.sleep(d)
}

func (ex *exec) use(db string) error {
	name := ""
	if err := ex.do(func() error {
		err := ex.infos(ex.in.UseDatabase(ex.hst, ex.s.id, db))
		_, name = ex.in.CurrentDatabase(ex.s.id)
		return err
	}); err != nil {
		return err
	}
	ex.message(sqltypes.Error{Number: 5701, Class: 0, State: 1, Message: "Changed database context to '" + name + "'."}, 0, "")
	return nil
}
