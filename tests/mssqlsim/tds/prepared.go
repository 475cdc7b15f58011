package tds

import (
	"context"
	"fmt"
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// maxPrepared bounds the prepared statements of one session.
const maxPrepared = 10_000

// preparedSet holds the statements that a client prepared; they end with the session and
// with a reset.
type preparedSet struct {
	last       int32
	statements map[int32]statement
}

type statement struct {
	sql, declaration string
}

func (p *preparedSet) add(s statement) (int32, bool) {
	if len(p.statements) >= maxPrepared {
		return 0, false
	}
	if p.statements == nil {
		p.statements = map[int32]statement{}
	}
	p.last++
	p.statements[p.last] = s
	return p.last, true
}

func (p *preparedSet) clear() { p.statements = nil }

// call executes one RPC. The procedures of the statement protocol are handled here; the
// session sees the others by name.
func (c *Conn) call(ctx context.Context, call rpcCall, r *Response) {
	name := strings.ToLower(call.proc)
	name = strings.TrimPrefix(strings.TrimPrefix(name, "master."), "sys.")
	args := arguments{params: call.params}
	switch name {
	case "sp_executesql":
		sql := args.text("stmt", "statement")
		declaration := ""
		if args.left() > 0 {
			declaration = args.text("params", "parameters")
		}
		c.statement(ctx, r, &args, name, statement{sql: sql, declaration: declaration})
	case "sp_prepare":
		args.skip("handle")
		declaration := args.text("params")
		c.prepare(r, &args, statement{sql: args.text("stmt"), declaration: declaration})
	case "sp_prepexec":
		args.skip("handle")
		declaration := args.text("params")
		s := statement{sql: args.text("stmt"), declaration: declaration}
		if c.prepare(r, &args, s) {
			c.statement(ctx, r, &args, name, s)
		}
	case "sp_execute":
		handle := args.integer("handle")
		s, ok := c.prepared.statements[handle]
		if args.bad == "" && !ok {
			_ = r.Message(Message{Number: 8179, Class: 16, State: 4, Line: 1, Proc: "sp_execute",
				Text: fmt.Sprintf("Could not find prepared statement with handle %d.", handle)})
			return
		}
		c.statement(ctx, r, &args, name, s)
	case "sp_unprepare":
		handle := args.integer("handle")
		if _, ok := c.prepared.statements[handle]; args.bad == "" && !ok {
			_ = r.Message(Message{Number: 8179, Class: 16, State: 4, Line: 1, Proc: "sp_unprepare",
				Text: fmt.Sprintf("Could not find prepared statement with handle %d.", handle)})
			return
		}
		delete(c.prepared.statements, handle)
		if !args.report(r, name) {
			_ = r.ReturnStatus(0)
		}
	default:
		c.session.Execute(ctx, Request{Proc: call.proc, Params: call.params}, r)
	}
}

// prepare keeps a statement and returns its handle to the client; false means that the
// client was told why not.
func (c *Conn) prepare(r *Response, args *arguments, s statement) bool {
	if args.report(r, "sp_prepare") {
		return false
	}
	handle, ok := c.prepared.add(s)
	if !ok {
		_ = r.Message(Message{Number: 701, Class: 17, State: 123, Line: 1, Proc: "sp_prepare",
			Text: "There is insufficient system memory in resource pool 'internal' to run this query."})
		return false
	}
	_ = r.ReturnValue(Param{Name: args.handleName, Type: sqltypes.TInt, Value: sqltypes.NewInt(handle)})
	return true
}

// statement runs parameterised SQL with the rest of the arguments as its parameters.
func (c *Conn) statement(ctx context.Context, r *Response, args *arguments, proc string, s statement) {
	if args.report(r, proc) {
		return
	}
	params := args.params
	names := declaredNames(s.declaration)
	for i := range params {
		if params[i].Name == "" && i < len(names) {
			params[i].Name = names[i]
		}
	}
	c.session.Execute(ctx, Request{SQL: s.sql, Declaration: s.declaration, Params: params}, r)
}

// arguments takes the fixed parameters of a protocol procedure off the front, by position
// or by name.
type arguments struct {
	params     []Param
	bad        string
	handleName string
}

func (a *arguments) left() int { return len(a.params) }

func (a *arguments) take(name string) (Param, bool) {
	if len(a.params) == 0 {
		if a.bad == "" {
			a.bad = name
		}
		return Param{}, false
	}
	p := a.params[0]
	a.params = a.params[1:]
	return p, true
}

func (a *arguments) skip(name string) {
	p, _ := a.take(name)
	a.handleName = p.Name
}

func (a *arguments) text(names ...string) string {
	p, ok := a.take(names[0])
	if !ok {
		return ""
	}
	if !p.Type.IsString() && !p.Value.IsNull() {
		a.bad = names[0]
	}
	return p.Value.Text()
}

func (a *arguments) integer(name string) int32 {
	p, ok := a.take(name)
	if !ok {
		return 0
	}
	if !p.Type.IsInteger() || p.Value.IsNull() {
		a.bad = name
	}
	return int32(p.Value.Int64())
}

// report tells the client about a missing or wrong argument.
func (a *arguments) report(r *Response, proc string) bool {
	if a.bad == "" {
		return false
	}
	_ = r.Message(Message{Number: 214, Class: 16, State: 2, Line: 1, Proc: proc,
		Text: fmt.Sprintf("Procedure expects parameter '@%s' of type 'ntext/nchar/nvarchar'.", a.bad)})
	return true
}

// declaredNames lists the @names of a parameter declaration in order. Commas inside
// parentheses belong to a type.
func declaredNames(declaration string) []string {
	var names []string
	depth, start := 0, true
	for i := 0; i < len(declaration); i++ {
		switch ch := declaration[i]; {
		case ch == '(':
			depth++
		case ch == ')':
			depth--
		case ch == ',' && depth == 0:
			start = true
		case ch == '@' && start && depth == 0:
			j := i + 1
			for j < len(declaration) && isNameByte(declaration[j]) {
				j++
			}
			names = append(names, declaration[i:j])
			i, start = j-1, false
		}
	}
	return names
}

func isNameByte(c byte) bool {
	return c == '_' || c == '@' || c == '#' || c == '$' || c >= 0x80 ||
		c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
