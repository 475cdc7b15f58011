package tsql

import (
	"errors"
	"strconv"
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// arg is an evaluated argument of a procedure call.
type arg struct {
	name   string // lower case with @, "" for positional
	val    value
	output string // variable that takes the value back, "" for none
	deflt  bool
}

// callEnd is what a procedure gave back.
type callEnd struct {
	status  int32
	outputs map[string]value // by parameter name
}

// execute runs EXEC of a procedure or of dynamic text.
func (ex *exec) execute(s *execStmt) (signal, error) {
	if s.text != nil {
		t, err := ex.text(s.text)
		if err != nil {
			return sigNone, err
		}
		return ex.dynamic(t, varScope{}, "")
	}
	obj := s.proc
	if s.procVar != "" {
		v := ex.vars.get(s.procVar)
		if v == nil {
			return sigNone, errBind(s.line, 137, 15, 2, "Must declare the scalar variable \"%s\".", s.procVar)
		}
		o, ok := splitName(v.val.Text())
		if !ok {
			return sigNone, errNum(2812, 16, 62, "Could not find stored procedure '%s'.", v.val.Text())
		}
		obj = o
	}
	args := make([]arg, len(s.args))
	for i, a := range s.args {
		args[i] = arg{name: a.name, deflt: a.deflt}
		if a.deflt {
			continue
		}
		v, err := ex.scalar(a.x)
		if err != nil {
			return sigNone, err
		}
		args[i].val = v
		if a.output {
			if vx, ok := a.x.(*varExpr); ok {
				args[i].output = vx.name
			}
		}
	}
	end, sig, err := ex.call(obj, args)
	if err != nil || sig == sigAbort {
		return sig, err
	}
	for _, a := range args {
		if a.output == "" {
			continue
		}
		for name, v := range end.outputs {
			if name == a.name {
				if err := ex.assign(a.output, 0, v); err != nil {
					return sigNone, err
				}
			}
		}
	}
	if s.ret != "" {
		if err := ex.assign(s.ret, 0, sqltypes.NewInt(end.status)); err != nil {
			return sigNone, err
		}
	}
	if ex.depth == 0 && ex.collect == nil {
		ex.out.ReturnStatus(end.status)
		ex.out.Done(Done{Command: cmdExec, Proc: true})
	}
	return sigNone, nil
}

// splitName reads a dotted, possibly bracketed name.
func splitName(s string) (objName, bool) {
	toks, err := lex(s)
	if err != nil {
		return objName{}, false
	}
	p := &parser{src: s, toks: toks}
	o, ok := objName{}, false
	func() {
		defer func() {
			if r := recover(); r != nil {
				if _, mine := r.(parseFailure); !mine {
					panic(r)
				}
			}
		}()
		o = p.object()
		ok = p.peek().kind == tokEOF
	}()
	return o, ok
}

// level makes the execution of a nested level.
func (ex *exec) level(proc string, vars varScope) (*exec, error) {
	if ex.depth >= maxProcNesting {
		return nil, &stmtError{m: *sqltypes.Errf(217, 16, 1, "Maximum stored procedure, function, trigger, or view nesting level exceeded (limit %d).", maxProcNesting), abort: true}
	}
	return &exec{s: ex.s, ctx: ex.ctx, out: ex.out, vars: vars, parent: ex, depth: ex.depth + 1, proc: proc}, nil
}

// dynamic runs text as a level of its own.
func (ex *exec) dynamic(text string, vars varScope, proc string) (signal, error) {
	in, err := ex.level(proc, vars)
	if err != nil {
		return sigNone, err
	}
	b, perr := ex.s.cache.parse(text)
	if perr == nil {
		perr = in.unknownVariable(b)
	}
	if perr != nil {
		// to the caller a syntax error of the text is an ordinary error
		e := *perr
		e.abort, e.uncatchable = false, false
		return sigNone, &e
	}
	return in.body(b.body)
}

// body runs the statements of a nested level and translates how it ended for its caller.
func (ex *exec) body(l []node) (signal, error) {
	db := ""
	_ = ex.do(func() error { _, db = ex.in.CurrentDatabase(ex.s.id); return nil })
	nocount, xact := ex.s.opts.nocount, ex.s.opts.xactAbort
	sig, err := ex.list(l)
	ex.s.opts.nocount, ex.s.opts.xactAbort = nocount, xact
	// USE inside dynamic text ends with it
	_ = ex.do(func() error {
		if _, now := ex.in.CurrentDatabase(ex.s.id); now != db && db != "" {
			_ = ex.in.UseDatabase(ex.hst, ex.s.id, db)
		}
		return nil
	})
	if se := (*stmtError)(nil); errors.As(err, &se) {
		// crossing the level makes a binding error catchable
		e := *se
		if e.uncatchable {
			e.uncatchable, e.abort = false, false
		}
		return sigAbort, &e
	}
	if err != nil {
		return sigAbort, err
	}
	if sig == sigAbort {
		if ex.scopeOnly {
			return sigNone, nil
		}
		return sigAbort, nil
	}
	return sigNone, nil
}

// call runs a procedure: a system procedure or a stored one.
func (ex *exec) call(o objName, args []arg) (callEnd, signal, error) {
	name, schema := strings.ToLower(o.name), strings.ToLower(o.schema)
	if schema == "" || schema == "sys" || schema == "dbo" || schema == "mssqlsim" {
		if fn := systemProcedure(schema, name); fn != nil {
			ex.inSys++
			end, sig, err := fn(ex, args)
			ex.inSys--
			if quit := (*errQuit)(nil); err != nil && !errors.As(err, &quit) && name != "sp_executesql" && len(engine.Messages(err)) < 2 {
				// errors name the procedure that raised them
				se := *asStmtError(err)
				if se.proc == "" {
					se.proc, se.line = name, 1
				}
				err = &se
			}
			return end, sig, err
		}
	}
	var m *engine.Module
	dbName := ""
	if err := ex.do(func() error {
		db, n, err := ex.database(o)
		if err != nil {
			return errNum(2812, 16, 62, "Could not find stored procedure '%s'.", o.String())
		}
		dbName = n
		if err := ex.in.CheckAccess(ex.hst, ex.s.id, db, false); engine.Failed(err) {
			return err
		}
		if m, err = ex.module(db, o.schema, o.name, "P"); err != nil {
			return err
		}
		if m == nil {
			return nil
		}
		return ex.allowed(&resolved{db: db, dbName: dbName, schema: m.Schema, name: m.Name, module: m}, "EXECUTE")
	}); err != nil {
		return callEnd{}, sigNone, err
	}
	if m == nil {
		return callEnd{}, sigNone, errNum(2812, 16, 62, "Could not find stored procedure '%s'.", o.String())
	}
	b, perr := ex.s.cache.parse(m.Text)
	if perr != nil {
		return callEnd{}, sigNone, perr
	}
	def, ok := b.body[0].s.(*createModuleStmt)
	if !ok {
		return callEnd{}, sigNone, errNum(2812, 16, 62, "Could not find stored procedure '%s'.", o.String())
	}
	vars, err := ex.bindArgs(m.Name, def.params, args)
	if err != nil {
		return callEnd{}, sigNone, err
	}
	in, err := ex.level(m.Name, vars)
	if err != nil {
		return callEnd{}, sigNone, err
	}
	sig, err := in.body(def.body)
	end := callEnd{status: in.status, outputs: map[string]value{}}
	for i := range args {
		name := args[i].name
		if name == "" && i < len(def.params) {
			name = def.params[i].name
			args[i].name = name
		}
		for _, p := range def.params {
			if p.output && p.name == name {
				end.outputs[name] = vars[name].val
			}
		}
	}
	return end, sig, err
}

// bindArgs makes the variables of a procedure from its parameters and a call's arguments.
func (ex *exec) bindArgs(proc string, params []procParam, args []arg) (varScope, error) {
	vars := varScope{}
	if len(args) > len(params) {
		return nil, errNum(8144, 16, 2, "Procedure or function %s has too many arguments specified.", proc)
	}
	given := map[string]arg{}
	named := false
	for i, a := range args {
		if a.name == "" {
			if named {
				return nil, errNum(119, 15, 1, "Must pass parameter number %d and subsequent parameters as '@name = value'. After the form '@name = value' has been used, all subsequent parameters must be passed in the form '@name = value'.", i+1)
			}
			given[params[i].name] = a
			continue
		}
		named = true
		known := false
		for _, p := range params {
			known = known || p.name == a.name
		}
		if !known {
			return nil, errNum(8145, 16, 1, "%s is not a parameter for procedure %s.", a.name, proc)
		}
		given[a.name] = a
	}
	for _, p := range params {
		a, ok := given[p.name]
		v := a.val
		if !ok || a.deflt {
			if p.deflt == nil {
				return nil, errNum(201, 16, 4, "Procedure or function '%s' expects parameter '%s', which was not supplied.", proc, p.name)
			}
			var err error
			if v, err = ex.scalar(p.deflt); err != nil {
				return nil, err
			}
		}
		w, err := convertParam(v, p.typ)
		if err != nil {
			return nil, err
		}
		vars[p.name] = &variable{typ: p.typ, val: w}
	}
	return vars, nil
}

// convertParam converts an argument; a failed conversion is 8114 as for procedure calls.
func convertParam(v value, t sqltypes.Type) (value, error) {
	w, err := convertImplicit(v, t)
	if err == nil {
		return w, nil
	}
	if n := asStmtError(err).m.Number; n == 245 || n == 241 {
		return w, errNum(8114, 16, 5, "Error converting data type %s to %s.", v.Type().ID.Name(), t.ID.Name())
	}
	return w, err
}

// callRequest is an RPC by name.
func (ex *exec) callRequest(r Request) error {
	o, ok := splitName(r.Proc)
	args := make([]arg, len(r.Params))
	for i, p := range r.Params {
		args[i] = arg{name: strings.ToLower(p.Name), val: p.Value}
		if p.Output {
			args[i].output = p.Name
		}
	}
	ex.out = &inProc{ex.out}
	fail := func(err error) error {
		if quit := (*errQuit)(nil); errors.As(err, &quit) {
			return err
		}
		_, err = ex.failed(asStmtError(err))
		return err
	}
	if !ok {
		if err := fail(errNum(2812, 16, 62, "Could not find stored procedure '%s'.", r.Proc)); err != nil {
			return err
		}
		ex.out.Done(Done{Failed: true, Command: cmdExec, Proc: true})
		return nil
	}
	end, _, err := ex.call(o, args)
	failed := err != nil
	if failed {
		if err := fail(err); err != nil {
			return err
		}
	}
	ex.batchEnd()
	ex.out.ReturnStatus(end.status)
	for _, a := range args {
		if a.output == "" {
			continue
		}
		if v, ok := end.outputs[a.name]; ok {
			ex.out.ReturnValue(a.output, v)
		}
	}
	ex.out.Done(Done{Failed: failed, Command: cmdExec, Proc: true})
	return nil
}

// inProc marks every DONE as inside a procedure.
type inProc struct{ ResultSink }

// Done implements ResultSink.
func (p *inProc) Done(d Done) {
	d.InProc = !d.Proc
	p.ResultSink.Done(d)
}

// parameterised runs a statement with parameters (sp_executesql and the prepared forms).
func (ex *exec) parameterised(r Request) error {
	params, err := declaration(r.Declaration)
	ex.out = &inProc{ex.out}
	finish := func(failed bool) error {
		ex.batchEnd()
		ex.out.ReturnStatus(0)
		for i, p := range r.Params {
			if !p.Output {
				continue
			}
			name := strings.ToLower(p.Name)
			if name == "" && i < len(params) {
				name = params[i].name
			}
			if v := ex.vars.get(name); v != nil && v.table == nil {
				ex.out.ReturnValue(p.Name, v.val)
			}
		}
		ex.out.Done(Done{Failed: failed, Command: cmdExec, Proc: true})
		return nil
	}
	if err == nil {
		err = ex.declareParams(params, r.Params)
	}
	if err != nil {
		ex.report(asStmtError(err))
		return finish(true)
	}
	b, perr := ex.s.cache.parse(r.SQL)
	if perr == nil {
		perr = ex.unknownVariable(b)
	}
	if perr != nil {
		ex.report(perr)
		ex.s.lastError = perr.m.Number
		return finish(true)
	}
	if _, err := ex.list(b.body); err != nil {
		return err
	}
	return finish(false)
}

// declareParams makes the variables of a parameterised statement.
func (ex *exec) declareParams(params []procParam, vals []Param) error {
	for i, v := range vals {
		name := strings.ToLower(v.Name)
		if name == "" {
			if i >= len(params) {
				return errNum(8144, 16, 2, "Procedure or function has too many arguments specified.")
			}
			name = params[i].name
		}
		if !strings.HasPrefix(name, "@") {
			name = "@" + name
		}
		typ := v.Value.Type()
		found := len(params) == 0
		for _, p := range params {
			if p.name == name {
				typ, found = p.typ, true
			}
		}
		if !found {
			return errNum(8145, 16, 1, "%s is not a parameter for procedure .", name)
		}
		if typ.ID == sqltypes.Unknown {
			typ = sqltypes.TNVarChar(4000)
		}
		w, err := convertParam(v.Value, typ)
		if err != nil {
			return err
		}
		ex.vars[name] = &variable{typ: typ, val: w}
	}
	for _, p := range params {
		if ex.vars.get(p.name) != nil {
			continue
		}
		return errNum(8178, 16, 1, "The parameterized query '(%s)' expects the parameter '%s', which was not supplied.", p.name, p.name)
	}
	return nil
}

// declaration reads a parameter declaration, e.g. "@p1 nvarchar(4000), @n int OUTPUT".
func declaration(text string) (params []procParam, err error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	toks, lerr := lex(text)
	if lerr != nil {
		return nil, lerr
	}
	p := &parser{src: text, toks: toks}
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(parseFailure)
			if !ok {
				panic(r)
			}
			params, err = nil, f.err
		}
	}()
	for {
		t := p.next()
		if t.kind != tokVar {
			p.failNear(t)
		}
		q := procParam{name: strings.ToLower(t.val)}
		p.accept("AS")
		q.typ = p.typeName(1)
		if p.accept("=") {
			q.deflt = p.value()
		}
		q.output = p.accept("OUTPUT") || p.accept("OUT")
		p.accept("READONLY")
		params = append(params, q)
		if !p.accept(",") {
			break
		}
	}
	if p.peek().kind != tokEOF {
		p.failHere()
	}
	return params, nil
}

// throw is THROW.
func (ex *exec) throw(s *throwStmt) error {
	if s.number == nil {
		if len(ex.s.caught) == 0 {
			return &stmtError{m: *sqltypes.Errf(10704, 15, 1, "To rethrow an error, a THROW statement must be used inside a CATCH block. Insert the THROW statement inside a CATCH block, or add error parameters to the THROW statement."), abort: true}
		}
		e := *ex.s.caught[len(ex.s.caught)-1]
		e.abort, e.uncatchable, e.raised = true, false, false
		return &e
	}
	n, err := ex.scalar(s.number)
	if err == nil {
		n, err = sqltypes.Cast(n, sqltypes.TInt, 0)
	}
	if err != nil {
		return err
	}
	t, err := ex.text(s.msg)
	if err != nil {
		return err
	}
	st, err := ex.scalar(s.state)
	if err == nil {
		st, err = sqltypes.Cast(st, sqltypes.TInt, 0)
	}
	if err != nil {
		return err
	}
	if n.Int64() < 50000 {
		return errNum(35100, 16, 10, "Error number %d in the THROW statement is outside the valid range. Specify an error number in the valid range of 50000 to 2147483647.", n.Int64())
	}
	return &stmtError{m: sqltypes.Error{Number: int32(n.Int64()), Class: 16, State: uint8(st.Int64()), Message: t}, abort: true}
}

// raiserror is RAISERROR.
func (ex *exec) raiserror(s *raiseStmt) error {
	v, err := ex.scalar(s.msg)
	if err != nil {
		return err
	}
	sev, err := ex.scalar(s.severity)
	if err == nil {
		sev, err = sqltypes.Cast(sev, sqltypes.TInt, 0)
	}
	if err != nil {
		return err
	}
	st, err := ex.scalar(s.state)
	if err == nil {
		st, err = sqltypes.Cast(st, sqltypes.TInt, 0)
	}
	if err != nil {
		return err
	}
	args := make([]value, len(s.args))
	for i, a := range s.args {
		if args[i], err = ex.scalar(a); err != nil {
			return err
		}
	}
	number, text := int32(50000), ""
	if v.Type().IsString() {
		if text, err = formatMessage(v.Text(), args); err != nil {
			return err
		}
	} else {
		n, err := sqltypes.Cast(v, sqltypes.TInt, 0)
		if err != nil {
			return err
		}
		return errNum(18054, 16, 1, "Error %d, severity %d, state %d was raised, but no message with that error number was found in sys.messages. If error is larger than 50000, make sure the user-defined message is added using sp_addmessage.", n.Int64(), sev.Int64(), st.Int64())
	}
	class := max(min(sev.Int64(), 25), 0)
	state := st.Int64()
	if state < 0 {
		state = 1
	}
	if class > 18 {
		if err := ex.do(func() error {
			if ok, _ := ex.in.IsServerRoleMember(ex.s.id, "sysadmin", ""); !ok || !s.log {
				return errNum(2754, 16, 1, "Error severity levels greater than 18 can only be specified by members of the sysadmin role, using the WITH LOG option.")
			}
			return nil
		}); err != nil {
			return err
		}
	}
	m := sqltypes.Error{Number: number, Class: uint8(class), State: uint8(min(state, 255)), Message: text}
	if s.log {
		_ = ex.do(func() error {
			ex.in.RaiseLog(ex.hst, ex.s.id, number, text)
			return nil
		})
	}
	if class <= 10 {
		info := ex.placed(m, 0, "")
		info.NoWait = s.nowait
		ex.out.Message(info)
		ex.s.lastError = 0
		if s.seterr {
			ex.s.lastError = number
		}
		return nil
	}
	return &stmtError{m: m, raised: true, noWait: s.nowait}
}

// formatMessage fills the %-specifications of RAISERROR and FORMATMESSAGE.
func formatMessage(format string, args []value) (string, error) {
	var b strings.Builder
	next := 0
	for i := 0; i < len(format); i++ {
		c := format[i]
		if c != '%' {
			b.WriteByte(c)
			continue
		}
		j := i + 1
		for j < len(format) && strings.IndexByte("-+ #0123456789.*", format[j]) >= 0 {
			j++
		}
		flags := format[i+1 : j]
		for j < len(format) && (format[j] == 'h' || format[j] == 'l' || strings.HasPrefix(format[j:], "I64")) {
			if format[j] == 'I' {
				j += 2
			}
			j++
		}
		if j >= len(format) {
			b.WriteString(format[i:])
			break
		}
		verb := format[j]
		i = j
		if verb == '%' {
			b.WriteByte('%')
			continue
		}
		if strings.IndexByte("diouxXs", verb) < 0 {
			return "", errNum(2787, 16, 1, "Invalid format specification: '%s'.", format)
		}
		if next >= len(args) {
			b.WriteString("(null)")
			continue
		}
		v := args[next]
		next++
		b.WriteString(formatArg(verb, flags, v))
	}
	return sqltypes.CutText(b.String(), 2047), nil
}

func formatArg(verb byte, flags string, v value) string {
	text := "(null)"
	if !v.IsNull() {
		n := v.Int64()
		switch {
		case verb == 's' && v.Type().IsString():
			text = v.Text()
		case verb == 's':
			text = v.Format()
		case !v.Type().IsInteger():
			text = v.Format()
		case verb == 'x':
			text = strconv.FormatUint(uint64(uint32(n)), 16)
		case verb == 'X':
			text = strings.ToUpper(strconv.FormatUint(uint64(uint32(n)), 16))
		case verb == 'o':
			text = strconv.FormatUint(uint64(uint32(n)), 8)
		case verb == 'u':
			text = strconv.FormatUint(uint64(uint32(n)), 10)
		default:
			text = strconv.FormatInt(n, 10)
		}
	}
	left := strings.Contains(flags, "-")
	width, prec, hasPrec := strings.Cut(strings.TrimLeft(flags, "-+ #0"), ".")
	if p, err := strconv.Atoi(prec); hasPrec && err == nil && verb == 's' {
		text = sqltypes.CutText(text, p)
	}
	if w, err := strconv.Atoi(width); err == nil && w < 2048 {
		pad := " "
		if strings.HasPrefix(flags, "0") && verb != 's' {
			pad = "0"
		}
		for k := len(text); k < w; k++ {
			if left {
				text += " "
			} else {
				text = pad + text
			}
		}
	}
	return text
}
