package tsql

import (
	"errors"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// stmtError is an error with its place and its effect on the batch.
type stmtError struct {
	m     sqltypes.Error
	line  int
	proc  string
	abort bool // ends the batch
	// uncatchable errors pass TRY…CATCH of the same batch: they are found when the statement is compiled.
	uncatchable bool
	// raised by RAISERROR: XACT_ABORT does not apply.
	raised bool
	noWait bool // RAISERROR … WITH NOWAIT
	// before are messages that precede this one on the wire (wrapped failures).
	before []sqltypes.Error
}

// Error implements error.
func (e *stmtError) Error() string { return e.m.Error() }

// errNum makes an error that ends its statement only.
func errNum(number int32, class, state uint8, format string, args ...any) *stmtError {
	return &stmtError{m: *sqltypes.Errf(number, class, state, format, args...)}
}

// errBind makes an error found while compiling a statement: it ends the batch, and TRY…CATCH of
// the same batch does not see it.
func errBind(line int, number int32, class, state uint8, format string, args ...any) *stmtError {
	return &stmtError{m: *sqltypes.Errf(number, class, state, format, args...), line: line, abort: true, uncatchable: true}
}

// asStmtError turns any error of evaluation or of the engine into a stmtError. Conversion errors
// of text end the batch in the product.
func asStmtError(err error) *stmtError {
	var se *stmtError
	if errors.As(err, &se) {
		// a copy: syntax errors are shared by the batch cache
		e := *se
		return &e
	}
	var te *sqltypes.Error
	if errors.As(err, &te) {
		e := &stmtError{m: *te}
		switch te.Number {
		case 245, 241, 242, 244, 248, 295, 8114, 8169:
			e.abort = true
		}
		return e
	}
	msgs := engine.Messages(err)
	if len(msgs) == 0 {
		return errNum(50000, 16, 1, "%v", err)
	}
	var e *stmtError
	var before []sqltypes.Error
	for _, m := range msgs {
		if e != nil {
			before = append(before, e.m)
		}
		e = &stmtError{m: sqltypes.Error{Number: m.Number, Class: m.Class, State: m.State, Message: m.Message}}
	}
	e.before = before
	switch e.m.Number {
	case 1205, 3903:
		e.abort = e.m.Number == 1205
	}
	return e
}
