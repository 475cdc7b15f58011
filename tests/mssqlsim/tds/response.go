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
	conn     *Conn
	out      *packetWriter
	buf      []byte
	columns  []Column
	inProc   bool // the request is an RPC: statements end in DONEINPROC
	returned bool // the return status of the current call is written

	pending       *doneToken // the last DONE, kept back until it is known whether more follows
	failed        bool       // an error since the last DONE
	fatal         bool       // severity 20 and above: the connection ends after the reply
	err           error      // of the socket or of the encoder; sticks
	before        SessionState
	returnOrdinal int
}

type doneToken struct {
	token   byte
	status  uint16
	command uint16
	rows    uint64
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
	r.buf = appendDone(r.buf, d.token, d.status, d.command, d.rows)
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

// Done is the end of one statement, or of one procedure.
type Done struct {
	Count   int64 // rows, if Counted
	Counted bool
	Failed  bool   // beside what the messages since the last Done say
	Command uint16 // current command of the token: 0xC1 SELECT, 0xC3 INSERT …; 0 is allowed
	InProc  bool   // DONEINPROC: inside a procedure. Always so in the reply to an RPC
	Proc    bool   // DONEPROC: the end of a procedure, after its return status
}

// Done ends one statement.
func (r *Response) Done(d Done) error {
	r.settle(true)
	t := &doneToken{token: tokDone, command: d.Command}
	switch {
	case d.Proc:
		t.token = tokDoneProc
		if r.inProc && !r.returned {
			_ = r.ReturnStatus(0)
		}
	case d.InProc, r.inProc:
		t.token = tokDoneInProc
	}
	if d.Counted {
		t.status |= doneCount
		t.rows = uint64(d.Count)
	}
	if r.failed || d.Failed {
		t.status |= doneError
		r.failed = false
	}
	r.columns = nil
	r.pending = t
	r.push()
	return r.err
}

// Abort drops what was not sent yet and breaks the connection without another word, as
// when the server dies.
func (r *Response) Abort(cause error) {
	if r.err == nil {
		r.err = cause
	}
	r.buf = r.buf[:0]
}

// Break closes the connection after this reply.
func (r *Response) Break() { r.fatal = true }

// ReturnStatus writes the return code of a procedure.
func (r *Response) ReturnStatus(code int32) error {
	r.settle(true)
	r.returned = true
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

const commandExecute = 0xE0

// stateChanges writes the ENVCHANGEs that tell the client what the request did to its
// session.
func (r *Response) stateChanges(now SessionState) {
	kept := r.pending // the last DONE of the reply stays behind the changes
	r.pending = nil
	defer func() { r.pending = kept }()
	if now.Database != r.before.Database {
		r.buf = appendEnvString(r.buf, envDatabase, now.Database, r.before.Database)
	}
	if now.Transaction != r.before.Transaction {
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

// endProc ends one procedure call of an RPC: with the DONEPROC that the handler wrote, or
// with one of its own.
func (r *Response) endProc(status uint16) {
	if r.pending == nil || r.pending.token != tokDoneProc {
		_ = r.Done(Done{Proc: true, Command: commandExecute})
	}
	r.pending.status |= status
	r.settle(status&doneMore != 0)
	r.returned = false
}

// finish ends the reply. The last token of a message is a DONE without the more bit: the
// kept-back one, or the one of the procedure.
func (r *Response) finish(now SessionState) error {
	status := r.status(now)
	r.stateChanges(now)
	if r.inProc {
		r.endProc(status)
	} else {
		if r.pending == nil {
			r.pending = &doneToken{token: tokDone}
			if r.failed {
				r.pending.status |= doneError
			}
		}
		r.pending.status |= status
		r.settle(false)
	}
	return r.end()
}

// acknowledge answers an attention: a message of its own behind the reply, where every
// client looks for it.
func (r *Response) acknowledge(now SessionState) error {
	r.buf = appendDone(r.buf, tokDone, r.status(now)|doneAttention, 0, 0)
	return r.end()
}

func (r *Response) status(now SessionState) (status uint16) {
	if now.Transaction != 0 {
		status |= doneInXact
	}
	if r.fatal {
		status |= doneServerError
	}
	return status
}

func (r *Response) end() error {
	r.send()
	if r.err == nil {
		r.err = r.out.end()
	}
	return r.err
}
