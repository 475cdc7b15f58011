package engine

import (
	"errors"
	"fmt"
	"strings"
)

// Error is one message of the server: ERROR on the wire for Class > 10, INFO otherwise.
type Error struct {
	Number  int32
	State   uint8
	Class   uint8 // severity
	Message string
}

func (e *Error) Error() string {
	return fmt.Sprintf("Msg %d, Level %d, State %d: %s", e.Number, e.Class, e.State, e.Message)
}

// Errors are the messages of one statement in the order of the wire: a wrapper such as 41158
// follows the inner error that it reports (FG 1.11). Entries of Class <= 10 are informational; a
// list with only such entries means that the statement succeeded.
type Errors []*Error

func (l Errors) Error() string {
	var b strings.Builder
	for i, e := range l {
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(e.Error())
	}
	return b.String()
}

// Messages lists the server messages inside an error that a statement method or a [Complete]
// effect gave; nil for an error that is not the engine's (such as a cancelled context).
func Messages(err error) []*Error {
	var l Errors
	if errors.As(err, &l) {
		return l
	}
	var e *Error
	if errors.As(err, &e) {
		return []*Error{e}
	}
	return nil
}

// Failed tells whether err means failure: anything but nil and purely informational messages.
func Failed(err error) bool {
	if err == nil {
		return false
	}
	m := Messages(err)
	if m == nil {
		return true
	}
	for _, e := range m {
		if e.Class > 10 {
			return true
		}
	}
	return false
}

func msg(number int32, class uint8, state uint8, format string, args ...any) *Error {
	return &Error{Number: number, State: state, Class: class, Message: fmt.Sprintf(format, args...)}
}
