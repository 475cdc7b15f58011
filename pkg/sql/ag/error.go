package ag

import "fmt"

// ErrorKind sorts failures by what they mean for a decision.
type ErrorKind string

const (
	ErrUnknown     ErrorKind = ""
	ErrTimeout     ErrorKind = "Timeout"     // no answer; may or may not have been executed
	ErrUnreachable ErrorKind = "Unreachable" // never sent
	ErrLogin       ErrorKind = "Login"       // 18456 and friends
	ErrMsg         ErrorKind = "Msg"         // SQL Server said no: Number tells
	ErrGuard       ErrorKind = "Guard"       // the guard did not hold: nothing was done
	ErrExpired     ErrorKind = "Expired"     // the statement's expiry had passed: nothing was done
	ErrConflict    ErrorKind = "Conflict"    // the swap lost
	ErrAPI         ErrorKind = "API"         // the API server did not do it
)

// Msg numbers that decisions look at (FG 1.11).
const (
	MsgResourcePreviousError = 41104
	MsgNotSynchronized       = 41142
	MsgAlreadyPrimary        = 41122
	MsgFailoverPending       = 41113
	MsgReplicaExists         = 41106
	MsgExternalKeyMissing    = 47104
	MsgLeaseNotEnabled       = 47116
	MsgLeaseShorter          = 47119
	MsgNotPrimary            = 41140
	MsgBusy                  = 41138
)

// Error is a failure as data. All holds every Msg number of the answer, the wrapping one last.
type Error struct {
	Kind    ErrorKind `json:"kind"`
	Number  int32     `json:"number,omitempty"`
	State   uint8     `json:"state,omitempty"`
	All     []int32   `json:"all,omitempty"`
	Message string    `json:"message"`
	// Failed names the replicas that did not answer, where an action went to several at once.
	Failed []string `json:"failed,omitempty"`
}

// Error implements error.
func (e *Error) Error() string {
	if e.Number != 0 {
		return fmt.Sprintf("%s (Msg %d)", e.Message, e.Number)
	}
	return e.Message
}

// Has tells whether the answer contained this Msg number.
func (e *Error) Has(number int32) bool {
	if e == nil {
		return false
	}
	if e.Number == number {
		return true
	}
	for _, n := range e.All {
		if n == number {
			return true
		}
	}
	return false
}
