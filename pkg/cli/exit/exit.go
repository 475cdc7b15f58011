// Package exit holds the plugin's exit codes. They are part of the interface:
// docs/reference/exit-codes.md lists them.
package exit

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Code is a process exit status.
type Code int

const (
	OK           Code = 0   // done, or already so
	Unexpected   Code = 1   // unexpected error
	Usage        Code = 2   // wrong usage
	NotFound     Code = 3   // availability group or replica not found
	Refused      Code = 4   // refused by a safety gate
	NotConfirmed Code = 5   // not confirmed
	Conflict     Code = 6   // a conflicting operation is running
	Forbidden    Code = 7   // an RBAC verb is missing
	Degraded     Code = 8   // status --exit-code: degraded, writes are fine
	WritesDown   Code = 9   // status --exit-code: writes are down or failover is blocked
	Warnings     Code = 10  // check --strict: warnings only
	Incompatible Code = 11  // plugin and operator do not fit together
	Timeout      Code = 124 // time-out; the operation goes on
	Interrupted  Code = 130 // interrupted; the operation goes on
)

// Error carries the exit code of a failed command. Hint tells what to do next.
type Error struct {
	Code Code
	Err  error
	Hint string
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an error with a code and a hint; the hint may be empty.
func Errorf(code Code, hint, format string, args ...any) error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...), Hint: hint}
}

// With gives an existing error a code and a hint.
func With(code Code, hint string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Code: code, Err: err, Hint: hint}
}

// Silent ends with a code and prints nothing: what there is to say is said already.
func Silent(code Code) error {
	if code == OK {
		return nil
	}
	return &Error{Code: code, Err: errSilent}
}

var errSilent = errors.New("")

// IsSilent tells whether an error has nothing to say.
func IsSilent(err error) bool { return errors.Is(err, errSilent) }

// Of maps any error to its exit code.
func Of(err error) Code {
	var e *Error
	var coded interface{ ExitCode() int }
	switch {
	case err == nil:
		return OK
	case errors.As(err, &e):
		return e.Code
	case errors.As(err, &coded): // the instance manager passes its server's code on
		return Code(coded.ExitCode())
	case apierrors.IsForbidden(err):
		return Forbidden
	case apierrors.IsNotFound(err):
		return NotFound
	case errors.Is(err, context.Canceled):
		return Interrupted
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	}
	return Unexpected
}
