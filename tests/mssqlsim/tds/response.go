package tds

import (
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// ErrAttention is the cause of a request's cancelled context when the client cancelled
// it with an attention message.
var ErrAttention = errors.New("tds: the client cancelled the request")

// flushAt is how many buffered reply bytes are sent without waiting for more.
const flushAt = 32 << 10

// Response writes the reply to one request. Its methods are called in the order in which
// the client shall see their tokens, by one goroutine at a time.
type Response struct {
	conn    *Conn
	out     *packetWriter
	buf     []byte
	columns []Column
	inProc  bool // the request is an RPC: statements end in DONEINPROC

	pending       *doneToken // the last DONE, kept back until it is known whether more follows
	failed        bool       // an error since the last DONE
	fatal         bool       // severity 20 and above: the connection ends after the reply
	err           error      // of the socket or of the encoder; sticks
	before        SessionState
	returnOrdinal int
}

type doneToken struct {
	token  byte
	status uint16
	rows   uint64
}

func (r *Response) settle(more bool) {
	if r.pending == nil {
		return
	}
	d := *r.pending
	r.pending = nil
	if more {
		d.status |= doneMore
	}
	r.buf = appendDone(r.buf, d.token, d.status, d.rows)
}

func (r *Response) push() {
	if len(r.buf) < flushAt || r.err != nil {
		return
	}
	r.send()
}

func (r *Response) send() {
	if r.err == nil {
		_, r.err = r.out.Write(r.buf)
	}
	r.buf = r.buf[:0]
}

// Flush sends what was written so far, so that the client sees it before the request ends.
func (r *Response) Flush() error {
	r.send()
	if r.err == nil {
		r.err = r.out.flush()
	}
	return r.err
}

// Columns starts a result set.
func (r *Response) Columns(columns []Column) error {
	r.settle(true)
	r.columns = columns
	r.buf = appendColumns(r.buf, columns)
	r.push()
	return r.err
}

// Row writes one row of the current result set.
func (r *Response) Row(values []sqltypes.Value) error {
	if r.err != nil {
		return r.err
	}
	if len(values) != len(r.columns) {
		r.err = errors.New("tds: a row of " + strconv.Itoa(len(values)) + " values in a result of " + strconv.Itoa(len(r.columns)) + " columns")
		return r.err
	}
	r.buf = append(r.buf, tokRow)
	for i, v := range values {
		if r.buf, r.err = appendValue(r.buf, r.columns[i].Type, v); r.err != nil {
			return r.err
		}
	}
	r.push()
	return r.err
}

// Message writes an error or, for severity up to 10, an information message.
func (r *Response) Message(m Message) error {
	r.settle(true)
	if m.Class > 10 {
		r.failed = true
	}
	if m.Class >= 20 {
		r.fatal = true
	}
	r.buf = appendMessage(r.buf, m, r.conn.server.ServerName())
	r.push()
	return r.err
}

// Done ends one statement. rows is its row count; negative means that it has none.
func (r *Response) Done(rows int64) error {
	r.settle(true)
	d := &doneToken{token: tokDone}
	if r.inProc {
		d.token = tokDoneInProc
	}
	if rows >= 0 {
		d.status |= doneCount
		d.rows = uint64(rows)
	}
	if r.failed {
		d.status |= doneError
		r.failed = false
	}
	r.columns = nil
	r.pending = d
	r.push()
	return r.err
}

// ReturnStatus writes the return code of a procedure.
func (r *Response) ReturnStatus(code int32) error {
	r.settle(true)
	r.buf = binary.LittleEndian.AppendUint32(append(r.buf, tokReturnStatus), uint32(code))
	return r.err
}

// ReturnValue writes the value of an output parameter.
func (r *Response) ReturnValue(p Param) error {
	r.settle(true)
	if r.err != nil {
		return r.err
	}
	r.buf, r.err = appendReturnValue(r.buf, r.returnOrdinal, p)
	r.returnOrdinal++
	return r.err
}

// stateChanges writes the ENVCHANGEs that tell the client what the request did to its
// session.
func (r *Response) stateChanges(now SessionState) {
	if now.Database != r.before.Database {
		r.settle(true)
		r.buf = appendEnvString(r.buf, envDatabase, now.Database, r.before.Database)
	}
	if now.Transaction != r.before.Transaction {
		r.settle(true)
		if old := r.before.Transaction; old != 0 {
			kind := byte(envCommit)
			if now.RolledBack {
				kind = envRollback
			}
			r.buf = appendEnvBytes(r.buf, kind, nil, descriptor(old))
		}
		if now.Transaction != 0 {
			r.buf = appendEnvBytes(r.buf, envBegin, descriptor(now.Transaction), nil)
		}
	}
	r.before = now
}

func descriptor(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }

// endProc ends one procedure call.
func (r *Response) endProc(status uint16) {
	r.settle(true)
	if r.failed {
		status |= doneError
		r.failed = false
	}
	r.buf = appendDone(r.buf, tokDoneProc, status, 0)
}

// finish ends the reply. The last token of a message is a DONE without the more bit: the
// kept-back one, the one of the procedure, or the answer to an attention.
func (r *Response) finish(attention bool, now SessionState) error {
	var status uint16
	if now.Transaction != 0 {
		status |= doneInXact
	}
	if r.fatal {
		status |= doneServerError
	}
	switch {
	case attention:
		r.stateChanges(now)
		r.settle(true)
		r.buf = appendDone(r.buf, tokDone, status|doneAttention, 0)
	case r.inProc:
		r.stateChanges(now)
		r.endProc(status)
	default:
		r.stateChanges(now)
		if r.pending == nil {
			r.pending = &doneToken{token: tokDone}
			if r.failed {
				r.pending.status |= doneError
			}
		}
		r.pending.status |= status
		r.settle(false)
	}
	r.send()
	if r.err == nil {
		r.err = r.out.end()
	}
	return r.err
}
