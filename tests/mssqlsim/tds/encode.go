package tds

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// appendValue writes v as a value of a column of type t. The content of v may be of a
// narrower type of the same family (an int in a bigint column); another family is an
// error of the handler.
func appendValue(b []byte, t sqltypes.Type, v sqltypes.Value) ([]byte, error) {
	if t.ID == sqltypes.SQLVariant {
		return appendVariant(b, v)
	}
	if v.IsNull() {
		return appendNull(b, t), nil
	}
	if !sameFamily(t, v.Type()) {
		return b, fmt.Errorf("tds: a value of type %s in a column of type %s", v.Type(), t)
	}
	raw := rawValue(t, v)
	switch {
	case isPLP(t):
		b = binary.LittleEndian.AppendUint64(b, uint64(len(raw)))
		if len(raw) > 0 {
			b = binary.LittleEndian.AppendUint32(b, uint32(len(raw)))
			b = append(b, raw...)
		}
		return binary.LittleEndian.AppendUint32(b, 0), nil
	case t.IsString() || t.IsBinary():
		raw = raw[:min(len(raw), maxVarBytes)]
		b = binary.LittleEndian.AppendUint16(b, uint16(len(raw)))
	default:
		b = append(b, byte(len(raw)))
	}
	return append(b, raw...), nil
}

func appendNull(b []byte, t sqltypes.Type) []byte {
	switch {
	case isPLP(t):
		return binary.LittleEndian.AppendUint64(b, plpNull)
	case t.IsString() || t.IsBinary():
		return binary.LittleEndian.AppendUint16(b, varNull)
	default:
		return append(b, 0)
	}
}

func sameFamily(t, v sqltypes.Type) bool {
	switch {
	case t.IsInteger() || t.ID == sqltypes.Unknown:
		return v.IsInteger()
	case t.IsDecimal():
		return v.IsDecimal() || v.IsInteger()
	case t.IsFloat():
		return v.IsFloat()
	case t.IsString():
		return v.IsString()
	case t.IsBinary():
		return v.IsBinary()
	case t.IsTemporal():
		return v.IsTemporal()
	default:
		return t.ID == v.ID
	}
}

// rawValue gives the bytes of a value without its length.
func rawValue(t sqltypes.Type, v sqltypes.Value) []byte {
	switch t.ID {
	case sqltypes.Bit:
		if v.Bool() {
			return []byte{1}
		}
		return []byte{0}
	case sqltypes.TinyInt:
		return []byte{byte(v.Int64())}
	case sqltypes.SmallInt:
		return binary.LittleEndian.AppendUint16(nil, uint16(v.Int64()))
	case sqltypes.BigInt:
		return binary.LittleEndian.AppendUint64(nil, uint64(v.Int64()))
	case sqltypes.Decimal, sqltypes.Numeric:
		return rawDecimal(t, v)
	case sqltypes.Real:
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(v.Float64())))
	case sqltypes.Float:
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(v.Float64()))
	case sqltypes.Char, sqltypes.VarChar:
		return encode1252(v.Text())
	case sqltypes.NChar, sqltypes.NVarChar, sqltypes.SysName, sqltypes.XML:
		return encodeUCS2(v.Text())
	case sqltypes.Binary, sqltypes.VarBinary:
		return v.Bytes()
	case sqltypes.UniqueIdentifier:
		return wireGUID(v.GUID())
	case sqltypes.Date, sqltypes.Time, sqltypes.SmallDateTime, sqltypes.DateTime, sqltypes.DateTime2, sqltypes.DateTimeOffset:
		return rawTemporal(t, v)
	default:
		return binary.LittleEndian.AppendUint32(nil, uint32(v.Int64()))
	}
}

// wireGUID swaps the first three groups, which travel little-endian.
func wireGUID(g [16]byte) []byte {
	return []byte{g[3], g[2], g[1], g[0], g[5], g[4], g[7], g[6], g[8], g[9], g[10], g[11], g[12], g[13], g[14], g[15]}
}

func rawDecimal(t sqltypes.Type, v sqltypes.Value) []byte {
	n := big.NewInt(v.Int64())
	scale := uint8(0)
	if v.Type().IsDecimal() {
		n, scale = v.Unscaled(), v.Type().Scale
	}
	for ; scale < t.Scale; scale++ {
		n.Mul(n, big.NewInt(10))
	}
	for ; scale > t.Scale; scale-- {
		n.Quo(n, big.NewInt(10))
	}
	out := make([]byte, decimalSize(t.Prec))
	if n.Sign() >= 0 {
		out[0] = 1
	}
	magnitude := n.Bytes()
	for i := range min(len(magnitude), len(out)-1) {
		out[1+i] = magnitude[len(magnitude)-1-i]
	}
	return out
}

func rawTemporal(t sqltypes.Type, v sqltypes.Value) []byte {
	days, ticks, offset := v.DayTicks()
	switch t.ID {
	case sqltypes.DateTime:
		d, n := v.Ticks300()
		return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, uint32(d)), n)
	case sqltypes.SmallDateTime:
		d, n := v.Ticks300()
		return binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(nil, uint16(d)), uint16(n/(300*60)))
	case sqltypes.Date:
		return appendDays(nil, days)
	case sqltypes.Time:
		return appendTicks(nil, ticks, t.Scale)
	case sqltypes.DateTime2:
		return appendDays(appendTicks(nil, ticks, t.Scale), days)
	default: // datetimeoffset travels in UTC with its offset beside it
		const day = int64(24 * 3600 * 1e7)
		total := int64(days)*day + ticks - int64(offset)*60*1e7
		total = max(total, 0)
		out := appendDays(appendTicks(nil, total%day, t.Scale), int32(total/day))
		return binary.LittleEndian.AppendUint16(out, uint16(offset))
	}
}

func appendDays(b []byte, days int32) []byte {
	return append(b, byte(days), byte(days>>8), byte(days>>16))
}

// appendTicks writes 100 ns ticks of a day at the given scale.
func appendTicks(b []byte, ticks int64, scale uint8) []byte {
	for s := scale; s < 7; s++ {
		ticks /= 10
	}
	for i := range timeSize(scale) {
		b = append(b, byte(ticks>>(8*i)))
	}
	return b
}

// appendVariant writes a sql_variant: total length, base type, its properties, the value.
// Types that a variant cannot hold at their size are cut to 8000 bytes.
func appendVariant(b []byte, v sqltypes.Value) ([]byte, error) {
	if v.IsNull() {
		return binary.LittleEndian.AppendUint32(b, 0), nil
	}
	t := v.Type()
	var token byte
	var props []byte
	raw := rawValue(t, v)
	raw = raw[:min(len(raw), maxVarBytes)]
	size := binary.LittleEndian.AppendUint16(nil, uint16(min(max(len(raw), 2), maxVarBytes)))
	switch t.ID {
	case sqltypes.Bit:
		token = tBit
	case sqltypes.TinyInt:
		token = tInt1
	case sqltypes.SmallInt:
		token = tInt2
	case sqltypes.Int:
		token = tInt4
	case sqltypes.BigInt:
		token = tInt8
	case sqltypes.Decimal:
		token, props = tDecimalN, []byte{t.Prec, t.Scale}
	case sqltypes.Numeric:
		token, props = tNumericN, []byte{t.Prec, t.Scale}
	case sqltypes.Real:
		token = tFloat4
	case sqltypes.Float:
		token = tFloat8
	case sqltypes.Char, sqltypes.VarChar:
		token, props = tBigVarChar, append(collation[:], size...)
	case sqltypes.NChar, sqltypes.NVarChar, sqltypes.SysName:
		token, props = tNVarChar, append(collation[:], size...)
	case sqltypes.Binary, sqltypes.VarBinary:
		token, props = tBigVarBinary, size
	case sqltypes.UniqueIdentifier:
		token = tGUID
	case sqltypes.Date:
		token = tDate
	case sqltypes.Time:
		token, props = tTime, []byte{t.Scale}
	case sqltypes.SmallDateTime:
		token = tDateTime4
	case sqltypes.DateTime:
		token = tDateTime
	case sqltypes.DateTime2:
		token, props = tDateTime2, []byte{t.Scale}
	case sqltypes.DateTimeOffset:
		token, props = tDateTimeOffset, []byte{t.Scale}
	default:
		return b, fmt.Errorf("tds: a sql_variant cannot hold %s", t)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(2+len(props)+len(raw)))
	b = append(b, token, byte(len(props)))
	b = append(b, props...)
	return append(b, raw...), nil
}
