package instance

import (
	"errors"
	"fmt"
)

// Exit codes of `instance run`. A server that ends by itself passes its own code
// on (128 + n when signal n ended it), so these keep clear of the usual ones.
const (
	ExitClean      = 0  // stopped cleanly on SIGTERM
	ExitConfig     = 70 // the configuration or the environment cannot be used
	ExitVolume     = 71 // the data volume cannot be used
	ExitLocked     = 72 // another run holds the lock on the data volume
	ExitLeaseKill  = 73 // sqlservr was killed: its write lease must have ended, or the clock jumped (R6, R7)
	ExitHealthKill = 74 // sqlservr was killed: a primary beyond saving (R7)
	ExitStopKill   = 75 // sqlservr was killed: it did not stop in time
	ExitStart      = 76 // sqlservr could not be started
)

// ExitError carries the code that the process shall end with.
type ExitError struct {
	Code int
	Err  error
}

// Error implements error.
func (e *ExitError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ExitError) Unwrap() error { return e.Err }

// ExitCode is the code for the process.
func (e *ExitError) ExitCode() int { return e.Code }

func exitf(code int, format string, args ...any) *ExitError {
	return &ExitError{Code: code, Err: fmt.Errorf(format, args...)}
}

// CodeOf is the exit code of an error of the command: 0 without one, 1 when it carries none.
func CodeOf(err error) int {
	var e *ExitError
	switch {
	case err == nil:
		return ExitClean
	case errors.As(err, &e):
		return e.Code
	}
	return 1
}
