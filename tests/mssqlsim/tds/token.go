package tds

import (
	"encoding/binary"
	"fmt"
	"unicode/utf16"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// Reply tokens (field guide §10.3).
const (
	tokReturnStatus = 0x79
	tokColMetadata  = 0x81
	tokError        = 0xAA
	tokInfo         = 0xAB
	tokReturnValue  = 0xAC
	tokLoginAck     = 0xAD
	tokRow          = 0xD1
	tokEnvChange    = 0xE3
	tokDone         = 0xFD
	tokDoneProc     = 0xFE
	tokDoneInProc   = 0xFF
)

// DONE status bits.
const (
	doneMore        = 0x001
	doneError       = 0x002
	doneInXact      = 0x004
	doneCount       = 0x010
	doneAttention   = 0x020
	doneServerError = 0x100
)

// ENVCHANGE types.
const (
	envDatabase    = 1
	envLanguage    = 2
	envPacketSize  = 4
	envCollation   = 7
	envBegin       = 8
	envCommit      = 9
	envRollback    = 10
	envReset       = 18
	envRouting     = 20
	programName    = "Microsoft SQL Server"
	maxMessageText = 2048 // characters of a message's text, as in the product
)

// Column describes one column of a result set.
type Column struct {
	Name     string
	Type     sqltypes.Type
	Nullable bool
	Identity bool
}

// Message is an error or an information message.
type Message struct {
	Number int32
	State  uint8
	Class  uint8 // severity: up to 10 travels as INFO, above as ERROR
	Text   string
	Proc   string
	Line   int32
}

// Error makes Message an error.
func (m *Message) Error() string {
	return fmt.Sprintf("Msg %d, Level %d, State %d: %s", m.Number, m.Class, m.State, m.Text)
}

// appendBVarChar writes a string of at most 255 characters.
func appendBVarChar(b []byte, s string) []byte {
	raw := encodeUCS2(cut(s, 255))
	return append(append(b, byte(len(raw)/2)), raw...)
}

// appendUSVarChar writes a string of at most limit characters.
func appendUSVarChar(b []byte, s string, limit int) []byte {
	raw := encodeUCS2(cut(s, limit))
	return append(binary.LittleEndian.AppendUint16(b, uint16(len(raw)/2)), raw...)
}

// cut shortens s to n UTF-16 code units without splitting a pair.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	units := 0
	for i, r := range s {
		units += max(utf16.RuneLen(r), 1)
		if units > n {
			return s[:i]
		}
	}
	return s
}

// sized writes a token whose body has a 16-bit length.
func sized(b []byte, token byte, body []byte) []byte {
	b = binary.LittleEndian.AppendUint16(append(b, token), uint16(len(body)))
	return append(b, body...)
}

func appendMessage(b []byte, m Message, server string) []byte {
	body := binary.LittleEndian.AppendUint32(nil, uint32(m.Number))
	body = append(body, m.State, m.Class)
	body = appendUSVarChar(body, m.Text, maxMessageText)
	body = appendBVarChar(body, server)
	body = appendBVarChar(body, m.Proc)
	body = binary.LittleEndian.AppendUint32(body, uint32(m.Line))
	token := byte(tokInfo)
	if m.Class > 10 {
		token = tokError
	}
	return sized(b, token, body)
}

func appendEnvString(b []byte, kind byte, now, old string) []byte {
	return sized(b, tokEnvChange, appendBVarChar(appendBVarChar([]byte{kind}, now), old))
}

func appendEnvBytes(b []byte, kind byte, now, old []byte) []byte {
	body := append([]byte{kind, byte(len(now))}, now...)
	body = append(append(body, byte(len(old))), old...)
	return sized(b, tokEnvChange, body)
}

// appendEnvRouting sends the client to another server: protocol 0 is TCP.
func appendEnvRouting(b []byte, host string, port uint16) []byte {
	route := binary.LittleEndian.AppendUint16([]byte{0}, port)
	route = appendUSVarChar(route, host, 255)
	body := binary.LittleEndian.AppendUint16([]byte{envRouting}, uint16(len(route)))
	body = append(body, route...)
	return sized(b, tokEnvChange, append(body, 0, 0))
}

func appendLoginAck(b []byte, tdsVersion uint32, version [4]byte) []byte {
	body := binary.BigEndian.AppendUint32([]byte{1}, tdsVersion)
	body = appendBVarChar(body, programName)
	return sized(b, tokLoginAck, append(body, version[:]...))
}

func appendDone(b []byte, token byte, status, command uint16, rows uint64) []byte {
	b = binary.LittleEndian.AppendUint16(append(b, token), status)
	b = binary.LittleEndian.AppendUint16(b, command)
	return binary.LittleEndian.AppendUint64(b, rows)
}

const (
	columnNullable       = 0x0001
	columnUpdateable     = 0x0008 // "unknown", what the product sends for computed results
	columnIdentity       = 0x0010
	userTypeNone         = 0
	returnValueUDFOrProc = 0x01
)

func appendColumns(b []byte, columns []Column) []byte {
	b = binary.LittleEndian.AppendUint16(append(b, tokColMetadata), uint16(len(columns)))
	for _, c := range columns {
		b = binary.LittleEndian.AppendUint32(b, userTypeNone)
		flags := uint16(columnUpdateable)
		if c.Nullable {
			flags |= columnNullable
		}
		if c.Identity {
			flags |= columnIdentity
		}
		b = binary.LittleEndian.AppendUint16(b, flags)
		b = appendTypeInfo(b, c.Type)
		b = appendBVarChar(b, c.Name)
	}
	return b
}

func appendReturnValue(b []byte, ordinal int, p Param) ([]byte, error) {
	b = binary.LittleEndian.AppendUint16(append(b, tokReturnValue), uint16(ordinal))
	b = appendBVarChar(b, p.Name)
	b = append(b, returnValueUDFOrProc)
	b = binary.LittleEndian.AppendUint32(b, userTypeNone)
	b = binary.LittleEndian.AppendUint16(b, 0)
	b = appendTypeInfo(b, p.Type)
	return appendValue(b, p.Type, p.Value)
}
