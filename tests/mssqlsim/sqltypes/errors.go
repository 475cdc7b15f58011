package sqltypes

import "fmt"

// Error is an error as SQL Server reports it: message number, severity (class), state and text.
type Error struct {
	Number  int32
	Class   uint8
	State   uint8
	Message string
}

// Error implements the error interface in the form the client tools print.
func (e *Error) Error() string {
	return fmt.Sprintf("Msg %d, Level %d, State %d: %s", e.Number, e.Class, e.State, e.Message)
}

// Errf makes an Error.
func Errf(number int32, class, state uint8, format string, args ...any) *Error {
	return &Error{Number: number, Class: class, State: state, Message: fmt.Sprintf(format, args...)}
}

func errOverflow(t Type) *Error {
	return Errf(8115, 16, 2, "Arithmetic overflow error converting expression to data type %s.", t.ID.Name())
}

func errClash(from, to Type) *Error {
	return Errf(206, 16, 2, "Operand type clash: %s is incompatible with %s", from.ID.Name(), to.ID.Name())
}

func errExplicit(from, to Type) *Error {
	return Errf(529, 16, 2, "Explicit conversion from data type %s to %s is not allowed.", from.ID.Name(), to.ID.Name())
}
