package tds

import (
	"encoding/binary"
	"fmt"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// TDS data type tokens (field guide §10.5).
const (
	tNull           = 0x1F
	tInt1           = 0x30
	tBit            = 0x32
	tInt2           = 0x34
	tInt4           = 0x38
	tDateTime4      = 0x3A
	tFloat4         = 0x3B
	tMoney          = 0x3C
	tDateTime       = 0x3D
	tFloat8         = 0x3E
	tMoney4         = 0x7A
	tInt8           = 0x7F
	tGUID           = 0x24
	tIntN           = 0x26
	tDate           = 0x28
	tTime           = 0x29
	tDateTime2      = 0x2A
	tDateTimeOffset = 0x2B
	tBitN           = 0x68
	tDecimalN       = 0x6A
	tNumericN       = 0x6C
	tFloatN         = 0x6D
	tMoneyN         = 0x6E
	tDateTimeN      = 0x6F
	tBigVarBinary   = 0xA5
	tBigVarChar     = 0xA7
	tBigBinary      = 0xAD
	tBigChar        = 0xAF
	tNVarChar       = 0xE7
	tNChar          = 0xEF
	tXML            = 0xF1
	tText           = 0x23
	tImage          = 0x22
	tNText          = 0x63
	tVariant        = 0x62
	tTableValued    = 0xF3
)

const (
	plpMax        = 0xFFFF             // the length that announces a (max) type
	plpNull       = 0xFFFFFFFFFFFFFFFF // total length of a NULL
	plpUnknown    = 0xFFFFFFFFFFFFFFFE // total length not given
	varNull       = 0xFFFF             // length of a NULL of a short type
	maxVarBytes   = 8000
	variantMaxLen = 8009
)

// collation is SQL_Latin1_General_CP1_CI_AS: LCID 0x0409, ignore case, kana and width,
// sort order 52.
var collation = [5]byte{0x09, 0x04, 0xD0, 0x00, 0x34}

// decimalSize is the value length of decimal(p): a sign byte and the magnitude.
func decimalSize(prec uint8) int {
	switch {
	case prec <= 9:
		return 5
	case prec <= 19:
		return 9
	case prec <= 28:
		return 13
	default:
		return 17
	}
}

// timeSize is the length of time(s).
func timeSize(scale uint8) int {
	switch {
	case scale <= 2:
		return 3
	case scale <= 4:
		return 4
	default:
		return 5
	}
}

// appendTypeInfo writes the TYPE_INFO of a column or return value.
func appendTypeInfo(b []byte, t sqltypes.Type) []byte {
	switch t.ID {
	case sqltypes.Bit:
		return append(b, tBitN, 1)
	case sqltypes.TinyInt:
		return append(b, tIntN, 1)
	case sqltypes.SmallInt:
		return append(b, tIntN, 2)
	case sqltypes.BigInt:
		return append(b, tIntN, 8)
	case sqltypes.Decimal:
		return append(b, tDecimalN, byte(decimalSize(t.Prec)), t.Prec, t.Scale)
	case sqltypes.Numeric:
		return append(b, tNumericN, byte(decimalSize(t.Prec)), t.Prec, t.Scale)
	case sqltypes.Real:
		return append(b, tFloatN, 4)
	case sqltypes.Float:
		return append(b, tFloatN, 8)
	case sqltypes.Char, sqltypes.VarChar:
		token := byte(tBigVarChar)
		if t.ID == sqltypes.Char {
			token = tBigChar
		}
		return append(appendSizedType(b, token, t.Len, 1), collation[:]...)
	case sqltypes.NChar, sqltypes.NVarChar, sqltypes.SysName:
		token := byte(tNVarChar)
		if t.ID == sqltypes.NChar {
			token = tNChar
		}
		return append(appendSizedType(b, token, t.Len, 2), collation[:]...)
	case sqltypes.XML:
		return append(b, tXML, 0)
	case sqltypes.Binary:
		return appendSizedType(b, tBigBinary, t.Len, 1)
	case sqltypes.VarBinary:
		return appendSizedType(b, tBigVarBinary, t.Len, 1)
	case sqltypes.UniqueIdentifier:
		return append(b, tGUID, 16)
	case sqltypes.Date:
		return append(b, tDate)
	case sqltypes.Time:
		return append(b, tTime, t.Scale)
	case sqltypes.SmallDateTime:
		return append(b, tDateTimeN, 4)
	case sqltypes.DateTime:
		return append(b, tDateTimeN, 8)
	case sqltypes.DateTime2:
		return append(b, tDateTime2, t.Scale)
	case sqltypes.DateTimeOffset:
		return append(b, tDateTimeOffset, t.Scale)
	case sqltypes.SQLVariant:
		return binary.LittleEndian.AppendUint32(append(b, tVariant), variantMaxLen)
	default: // int, and an untyped NULL, which is an int to clients
		return append(b, tIntN, 4)
	}
}

// appendSizedType writes the token and the length of a character or binary type; unit is
// the bytes of one character.
func appendSizedType(b []byte, token byte, length int32, unit int) []byte {
	size := plpMax
	if length != sqltypes.Max {
		size = min(max(int(length), 1)*unit, maxVarBytes)
	}
	return binary.LittleEndian.AppendUint16(append(b, token), uint16(size))
}

// isPLP tells whether values of t travel in chunks.
func isPLP(t sqltypes.Type) bool {
	switch t.ID {
	case sqltypes.XML:
		return true
	case sqltypes.VarChar, sqltypes.NVarChar, sqltypes.VarBinary:
		return t.Len == sqltypes.Max
	default:
		return false
	}
}

// wireType is a TYPE_INFO as a client sends it with a parameter.
type wireType struct {
	token byte
	size  int // announced maximum in bytes; plpMax for chunked values
	prec  byte
	scale byte
}

// readTypeInfo reads a parameter's TYPE_INFO.
func readTypeInfo(r *reader) wireType {
	w := wireType{token: r.u8()}
	switch w.token {
	case tNull, tInt1, tBit, tInt2, tInt4, tInt8, tDateTime4, tFloat4, tMoney, tDateTime, tFloat8, tMoney4:
		w.size = fixedSize(w.token)
	case tGUID, tIntN, tBitN, tFloatN, tMoneyN, tDateTimeN:
		w.size = int(r.u8())
	case tDate:
		w.size = 3
	case tTime, tDateTime2, tDateTimeOffset:
		w.scale = r.u8()
		if w.scale > 7 {
			r.fail("parameter type 0x%02x has scale %d", w.token, w.scale)
		}
	case tDecimalN, tNumericN:
		w.size = int(r.u8())
		w.prec, w.scale = r.u8(), r.u8()
		if w.prec < 1 || w.prec > 38 || w.scale > w.prec {
			r.fail("parameter is decimal(%d,%d)", w.prec, w.scale)
		}
	case tBigVarBinary, tBigBinary:
		w.size = int(r.u16())
	case tBigVarChar, tBigChar, tNVarChar, tNChar:
		w.size = int(r.u16())
		r.take(len(collation))
	case tXML:
		w.size = plpMax
		if r.u8() != 0 { // schema present: database, owner, collection
			r.bVarChar()
			r.bVarChar()
			r.usVarChar()
		}
	case tText, tNText:
		w.size = int(r.u32())
		r.take(len(collation))
	case tImage:
		w.size = int(r.u32())
	case tVariant:
		w.size = int(r.u32())
	default:
		r.fail("parameter type 0x%02x is not supported", w.token)
	}
	return w
}

func fixedSize(token byte) int {
	switch token {
	case tInt1, tBit:
		return 1
	case tInt2:
		return 2
	case tInt4, tDateTime4, tFloat4, tMoney4:
		return 4
	case tInt8, tMoney, tDateTime, tFloat8:
		return 8
	default:
		return 0
	}
}

// sqlType is the SQL type that the wire type declares.
func (w wireType) sqlType() sqltypes.Type {
	sized := func(id sqltypes.ID, unit int) sqltypes.Type {
		if w.size == plpMax {
			return sqltypes.Type{ID: id, Len: sqltypes.Max}
		}
		return sqltypes.Type{ID: id, Len: int32(max(w.size/unit, 1))}
	}
	switch w.token {
	case tInt1:
		return sqltypes.TTinyInt
	case tInt2:
		return sqltypes.TSmallInt
	case tInt8:
		return sqltypes.TBigInt
	case tIntN:
		switch w.size {
		case 1:
			return sqltypes.TTinyInt
		case 2:
			return sqltypes.TSmallInt
		case 8:
			return sqltypes.TBigInt
		}
		return sqltypes.TInt
	case tBit, tBitN:
		return sqltypes.TBit
	case tFloat4, tFloat8, tFloatN:
		return sqltypes.TFloat
	case tMoney, tMoney4, tMoneyN:
		return sqltypes.TNumeric(19, 4)
	case tDateTime4, tDateTime, tDateTimeN:
		if w.size == 4 {
			return sqltypes.TSmallDateTime
		}
		return sqltypes.TDateTime
	case tDate:
		return sqltypes.TDate
	case tTime:
		return sqltypes.Type{ID: sqltypes.Time, Scale: w.scale}
	case tDateTime2:
		return sqltypes.Type{ID: sqltypes.DateTime2, Scale: w.scale}
	case tDateTimeOffset:
		return sqltypes.Type{ID: sqltypes.DateTimeOffset, Scale: w.scale}
	case tGUID:
		return sqltypes.TGUID
	case tDecimalN:
		return sqltypes.Type{ID: sqltypes.Decimal, Prec: w.prec, Scale: w.scale}
	case tNumericN:
		return sqltypes.Type{ID: sqltypes.Numeric, Prec: w.prec, Scale: w.scale}
	case tBigVarBinary:
		return sized(sqltypes.VarBinary, 1)
	case tBigBinary:
		return sized(sqltypes.Binary, 1)
	case tBigVarChar:
		return sized(sqltypes.VarChar, 1)
	case tBigChar:
		return sized(sqltypes.Char, 1)
	case tNVarChar:
		return sized(sqltypes.NVarChar, 2)
	case tNChar:
		return sized(sqltypes.NChar, 2)
	case tXML:
		return sqltypes.TXML
	case tText:
		return sqltypes.TVarCharMax
	case tNText:
		return sqltypes.TNVarCharMax
	case tImage:
		return sqltypes.TVarBinaryMax
	case tVariant:
		return sqltypes.TVariant
	default:
		return sqltypes.TInt
	}
}

// String names the type for an error message.
func (w wireType) String() string { return fmt.Sprintf("%s (0x%02x)", w.sqlType(), w.token) }
