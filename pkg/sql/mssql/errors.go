package mssql

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"

	driver "github.com/microsoft/go-mssqldb"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// loginNumbers are the Msg numbers of a refused login: failed, disabled, locked
// out, expired, must be changed; and 4060, the database of the login.
var loginNumbers = [...]int32{18456, 18470, 18486, 18487, 18488, 4060}

// loginError maps a failure before the first statement: nothing was executed.
func loginError(op, address string, err, ctxErr error) *ag.Error {
	if e := msgError(err); e != nil {
		for _, n := range loginNumbers {
			if e.Has(n) {
				e.Kind = ag.ErrLogin
			}
		}
		return e
	}
	e := &ag.Error{Kind: ag.ErrUnreachable, Message: fmt.Sprintf("%s at %s: %v", op, address, err)}
	if ctxErr != nil || timedOut(err) {
		e.Kind = ag.ErrTimeout
		e.Message = fmt.Sprintf("%s at %s: no answer in time", op, address)
	}
	return e
}

// statementError maps a failure after a statement may have been sent. What is no
// answer of the server is ErrTimeout: it may or may not have been executed.
func statementError(address string, err, ctxErr error) *ag.Error {
	if e := msgError(err); e != nil {
		return e
	}
	if ctxErr != nil || timedOut(err) {
		return &ag.Error{Kind: ag.ErrTimeout, Message: fmt.Sprintf("no answer from %s in time", address)}
	}
	return &ag.Error{Kind: ag.ErrTimeout, Message: fmt.Sprintf("connection to %s lost while waiting for the answer: %v", address, err)}
}

// msgError finds the server's own answer in err: its last error gives number and
// state, All holds every one of them in order (wrappers such as 41158, 41160 and
// 41152 come last; FG 1.11).
func msgError(err error) *ag.Error {
	var m driver.Error
	if !errors.As(err, &m) {
		return nil
	}
	e := &ag.Error{Kind: ag.ErrMsg, Number: m.Number, State: m.State}
	all := m.All
	if len(all) == 0 {
		all = []driver.Error{m}
	}
	texts := make([]string, 0, len(all))
	for _, x := range all {
		e.All = append(e.All, x.Number)
		texts = append(texts, x.Message)
	}
	e.Message = strings.Join(texts, " | ")
	return e
}

func timedOut(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, syscall.ETIMEDOUT) {
		return true
	}
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// AsError is err as data: the *ag.Error in its chain, or one of kind Unknown. Nil stays nil.
func AsError(err error) *ag.Error {
	if err == nil {
		return nil
	}
	var e *ag.Error
	if errors.As(err, &e) {
		return e
	}
	return &ag.Error{Kind: ag.ErrUnknown, Message: err.Error()}
}

// Reach says how an attempt to ask a replica ended.
func Reach(err error) ag.Reach {
	if err == nil {
		return ag.ReachOK
	}
	switch AsError(err).Kind {
	case ag.ErrTimeout:
		return ag.ReachTimeout
	case ag.ErrUnreachable:
		return ag.ReachRefused
	case ag.ErrLogin:
		return ag.ReachLoginFailed
	case ag.ErrUnknown, ag.ErrMsg, ag.ErrGuard, ag.ErrExpired, ag.ErrConflict, ag.ErrAPI:
	}
	return ag.ReachError
}
