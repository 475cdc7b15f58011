package tds

import (
	"encoding/binary"
	"fmt"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// maxParams is the product's limit of parameters of one call.
const maxParams = 2100

// Param is one parameter of a call.
type Param struct {
	Name   string // with its @; empty when the client sent it by position
	Type   sqltypes.Type
	Value  sqltypes.Value
	Output bool // the client wants the value back
	// Default means that the client left the value out and the callee's default counts.
	Default bool
}

// stripHeaders checks and removes ALL_HEADERS: a total length and then headers of
// length, type and data. Only the length matters to this server.
func stripHeaders(b []byte) ([]byte, error) {
	if len(b) < 4 {
		return nil, fmt.Errorf("parse ALL_HEADERS: %w", errShort)
	}
	total := int64(binary.LittleEndian.Uint32(b))
	if total < 4 || total > int64(len(b)) {
		return nil, fmt.Errorf("parse ALL_HEADERS: total length %d in a message of %d bytes", total, len(b))
	}
	for rest := b[4:total]; len(rest) > 0; {
		if len(rest) < 6 {
			return nil, fmt.Errorf("parse ALL_HEADERS: %w", errShort)
		}
		n := int64(binary.LittleEndian.Uint32(rest))
		if n < 6 || n > int64(len(rest)) {
			return nil, fmt.Errorf("parse ALL_HEADERS: header of %d bytes", n)
		}
		rest = rest[n:]
	}
	return b[total:], nil
}

// Numbers of the procedures that a client may call by id.
const (
	procCursor      = 1
	procExecuteSQL  = 10
	procPrepare     = 11
	procExecute     = 12
	procPrepExec    = 13
	procPrepExecRPC = 14
	procUnprepare   = 15
)

var procNames = map[uint16]string{
	procCursor: "sp_cursor", 2: "sp_cursoropen", 3: "sp_cursorprepare", 4: "sp_cursorexecute",
	5: "sp_cursorprepexec", 6: "sp_cursorunprepare", 7: "sp_cursorfetch", 8: "sp_cursoroption", 9: "sp_cursorclose",
	procExecuteSQL: "sp_executesql", procPrepare: "sp_prepare", procExecute: "sp_execute",
	procPrepExec: "sp_prepexec", procPrepExecRPC: "sp_prepexecrpc", procUnprepare: "sp_unprepare",
}

// rpcCall is one call of an RPC message.
type rpcCall struct {
	proc   string
	params []Param
}

// Bytes that separate calls in one RPC message.
const (
	batchFlag   = 0x80
	batchFlag72 = 0xFF
	noExecFlag  = 0xFE
)

// parseRPC reads the calls of an RPC message, without its ALL_HEADERS.
func parseRPC(b []byte) ([]rpcCall, error) {
	r := &reader{b: b}
	var calls []rpcCall
	for {
		c := readCall(r)
		if r.err != nil {
			return nil, fmt.Errorf("parse RPC: %w", r.err)
		}
		calls = append(calls, c)
		if r.left() == 0 {
			return calls, nil
		}
	}
}

func readCall(r *reader) rpcCall {
	var c rpcCall
	if n := r.u16(); n == 0xFFFF {
		id := r.u16()
		name, ok := procNames[id]
		if !ok {
			r.fail("procedure number %d is not known", id)
		}
		c.proc = name
	} else {
		if n > 4*128+3 {
			r.fail("procedure name of %d characters", n)
		}
		c.proc = r.ucs2(int(n))
	}
	r.u16() // option flags: recompile, no metadata
	for r.err == nil && r.left() > 0 {
		if next := r.b[0]; next == batchFlag || next == batchFlag72 || next == noExecFlag {
			r.u8()
			return c
		}
		if len(c.params) == maxParams {
			r.fail("more than %d parameters", maxParams)
			return c
		}
		var p Param
		p.Name = r.bVarChar()
		status := r.u8()
		p.Output, p.Default = status&0x01 != 0, status&0x02 != 0
		w := readTypeInfo(r)
		if r.err != nil {
			return c
		}
		p.Type = w.sqlType()
		p.Value = readValue(r, w)
		c.params = append(c.params, p)
	}
	return c
}

// Transaction manager requests (field guide §10.4).
const (
	tmBegin    = 5
	tmCommit   = 7
	tmRollback = 8
	tmSave     = 9
)

var isolationLevels = map[byte]string{
	1: "READ UNCOMMITTED", 2: "READ COMMITTED", 3: "REPEATABLE READ", 4: "SERIALIZABLE", 5: "SNAPSHOT",
}

// parseTransaction turns a transaction manager request, without its ALL_HEADERS, into
// the T-SQL that does the same. name is quoted as an identifier.
func parseTransaction(b []byte) (string, error) {
	r := &reader{b: b}
	kind := r.u16()
	var sql string
	switch kind {
	case tmBegin:
		sql = beginSQL(r)
	case tmCommit, tmRollback:
		name := r.bVarCharBytes()
		sql = "COMMIT TRANSACTION"
		if kind == tmRollback {
			sql = "ROLLBACK TRANSACTION"
			if name != "" {
				sql += " " + quoteName(name)
			}
		}
		if r.left() > 0 && r.u8()&1 != 0 { // begin the next one at once
			sql += "; " + beginSQL(r)
		}
	case tmSave:
		sql = "SAVE TRANSACTION " + quoteName(r.bVarCharBytes())
	default:
		r.fail("transaction manager request %d is not supported", kind)
	}
	if r.err != nil {
		return "", fmt.Errorf("parse transaction manager request: %w", r.err)
	}
	return sql, nil
}

func beginSQL(r *reader) string {
	sql := "BEGIN TRANSACTION"
	if level, ok := isolationLevels[r.u8()]; ok {
		sql = "SET TRANSACTION ISOLATION LEVEL " + level + "; " + sql
	}
	if name := r.bVarCharBytes(); name != "" {
		sql += " " + quoteName(name)
	}
	return sql
}

// bVarCharBytes reads a string whose length byte counts bytes.
func (r *reader) bVarCharBytes() string { return decodeUCS2(r.take(int(r.u8()))) }

func quoteName(s string) string {
	out := []rune{'['}
	for _, c := range s {
		if c == ']' {
			out = append(out, ']')
		}
		out = append(out, c)
	}
	return string(append(out, ']'))
}
