package tds

import (
	"encoding/binary"
	"math"
	"math/big"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// readValue reads a parameter's value of the wire type w.
func readValue(r *reader, w wireType) sqltypes.Value {
	t := w.sqlType()
	null := sqltypes.Null(t)
	var raw []byte
	switch w.token {
	case tNull:
		return null
	case tInt1, tBit, tInt2, tInt4, tInt8, tDateTime4, tFloat4, tMoney, tDateTime, tFloat8, tMoney4:
		raw = r.take(w.size)
	case tBigVarBinary, tBigBinary, tBigVarChar, tBigChar, tNVarChar, tNChar:
		if w.size == plpMax {
			b, ok := readPLP(r)
			if !ok {
				return null
			}
			raw = b
			break
		}
		n := r.u16()
		if n == varNull {
			return null
		}
		raw = r.take(int(n))
	case tXML:
		b, ok := readPLP(r)
		if !ok {
			return null
		}
		raw = b
	case tText, tNText, tImage:
		n := r.u32()
		if n == math.MaxUint32 {
			return null
		}
		if int64(n) > int64(r.left()) {
			r.fail("parameter announces %d bytes, the message has %d left", n, r.left())
			return null
		}
		raw = r.take(int(n))
	case tVariant:
		return readVariant(r)
	default:
		n := r.u8()
		if n == 0 {
			return null
		}
		raw = r.take(int(n))
	}
	if r.err != nil {
		return null
	}
	return decodeValue(r, w, raw)
}

// readPLP joins the chunks of a (max) value; ok is false for NULL.
func readPLP(r *reader) (out []byte, ok bool) {
	total := r.u64()
	if total == plpNull || r.err != nil {
		return nil, false
	}
	if total != plpUnknown && total > uint64(r.left()) {
		r.fail("parameter announces %d bytes, the message has %d left", total, r.left())
		return nil, false
	}
	out = []byte{}
	for {
		n := r.u32()
		if n == 0 || r.err != nil {
			return out, r.err == nil
		}
		if int64(n) > int64(r.left()) {
			r.fail("parameter chunk announces %d bytes, the message has %d left", n, r.left())
			return nil, false
		}
		out = append(out, r.take(int(n))...)
	}
}

func readVariant(r *reader) sqltypes.Value {
	null := sqltypes.Null(sqltypes.TVariant)
	total := r.u32()
	if total == 0 || r.err != nil {
		return null
	}
	if int64(total) > int64(r.left()) {
		r.fail("sql_variant announces %d bytes, the message has %d left", total, r.left())
		return null
	}
	inner := reader{b: r.take(int(total))}
	w := wireType{token: inner.u8()}
	props := reader{b: inner.take(int(inner.u8()))}
	switch w.token {
	case tTime, tDateTime2, tDateTimeOffset:
		if w.scale = props.u8(); w.scale > 7 {
			props.fail("sql_variant has scale %d", w.scale)
		}
	case tDecimalN, tNumericN:
		w.prec, w.scale = props.u8(), props.u8()
		if w.prec < 1 || w.prec > 38 || w.scale > w.prec {
			props.fail("sql_variant is decimal(%d,%d)", w.prec, w.scale)
		}
	case tBigVarChar, tBigChar, tNVarChar, tNChar:
		props.take(len(collation))
		w.size = int(props.u16())
	case tBigVarBinary, tBigBinary:
		w.size = int(props.u16())
	case tGUID, tDate, tInt1, tBit, tInt2, tInt4, tInt8, tDateTime4, tFloat4, tMoney, tDateTime, tFloat8, tMoney4:
		w.size = fixedSize(w.token)
	default:
		inner.fail("sql_variant holds type 0x%02x", w.token)
	}
	for _, err := range []error{inner.err, props.err} {
		if err != nil && r.err == nil {
			r.err = err
		}
	}
	if r.err != nil {
		return null
	}
	return decodeValue(r, w, inner.b).AsVariant()
}

// decodeValue turns the bytes of a non-NULL value into a Value. A length that the type
// does not have is an error of the client.
func decodeValue(r *reader, w wireType, raw []byte) sqltypes.Value {
	t := w.sqlType()
	bad := func() sqltypes.Value {
		r.fail("a value of type %s has %d bytes", w, len(raw))
		return sqltypes.Null(t)
	}
	switch {
	case t.ID == sqltypes.Bit || t.IsInteger():
		return decodeInteger(t, raw, bad)
	case t.IsFloat():
		switch len(raw) {
		case 4:
			return sqltypes.NewFloat(float64(math.Float32frombits(binary.LittleEndian.Uint32(raw))))
		case 8:
			return sqltypes.NewFloat(math.Float64frombits(binary.LittleEndian.Uint64(raw)))
		}
		return bad()
	case w.token == tMoney || w.token == tMoney4 || w.token == tMoneyN:
		return decodeMoney(t, raw, bad)
	case t.IsDecimal():
		if len(raw) < 5 || len(raw) > 17 {
			return bad()
		}
		magnitude := make([]byte, len(raw)-1)
		for i := range magnitude {
			magnitude[i] = raw[len(raw)-1-i]
		}
		n := new(big.Int).SetBytes(magnitude)
		if raw[0] == 0 {
			n.Neg(n)
		}
		v, err := sqltypes.NewDecimal(t, n)
		if err != nil {
			r.fail("parameter: %v", err)
			return sqltypes.Null(t)
		}
		return v
	case w.token == tText || w.token == tBigVarChar || w.token == tBigChar:
		return sqltypes.NewText(t, decode1252(raw))
	case t.IsString():
		if len(raw)%2 != 0 {
			return bad()
		}
		if w.token == tXML && len(raw) >= 2 && raw[0] == 0xFF && raw[1] == 0xFE {
			raw = raw[2:]
		}
		return sqltypes.NewText(t, decodeUCS2(raw))
	case t.IsBinary():
		return sqltypes.NewBinary(raw)
	case t.ID == sqltypes.UniqueIdentifier:
		if len(raw) != 16 {
			return bad()
		}
		return sqltypes.NewGUID([16]byte(wireGUID([16]byte(raw))))
	default:
		return decodeTemporal(t, raw, bad)
	}
}

func decodeInteger(t sqltypes.Type, raw []byte, bad func() sqltypes.Value) sqltypes.Value {
	switch {
	case t.ID == sqltypes.Bit && len(raw) == 1:
		return sqltypes.NewBit(raw[0] != 0)
	case len(raw) == 1:
		return sqltypes.NewTinyInt(raw[0])
	case len(raw) == 2:
		return sqltypes.NewSmallInt(int16(binary.LittleEndian.Uint16(raw)))
	case len(raw) == 4:
		return sqltypes.NewInt(int32(binary.LittleEndian.Uint32(raw)))
	case len(raw) == 8:
		return sqltypes.NewBigInt(int64(binary.LittleEndian.Uint64(raw)))
	}
	return bad()
}

// decodeMoney reads money, which is ten-thousandths with the high half first.
func decodeMoney(t sqltypes.Type, raw []byte, bad func() sqltypes.Value) sqltypes.Value {
	var n int64
	switch len(raw) {
	case 4:
		n = int64(int32(binary.LittleEndian.Uint32(raw)))
	case 8:
		n = int64(uint64(binary.LittleEndian.Uint32(raw))<<32 | uint64(binary.LittleEndian.Uint32(raw[4:])))
	default:
		return bad()
	}
	v, err := sqltypes.NewDecimal(t, big.NewInt(n))
	if err != nil {
		return bad()
	}
	return v
}

const (
	maxDays    = 3_652_058 // 9999-12-31, counted from 0001-01-01
	ticksOfDay = int64(24 * 3600 * 1e7)
)

func decodeTemporal(t sqltypes.Type, raw []byte, bad func() sqltypes.Value) sqltypes.Value {
	switch t.ID {
	case sqltypes.DateTime, sqltypes.SmallDateTime:
		origin := time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)
		switch len(raw) {
		case 4:
			days, minutes := binary.LittleEndian.Uint16(raw), binary.LittleEndian.Uint16(raw[2:])
			return sqltypes.NewTime(t, origin.AddDate(0, 0, int(days)).Add(time.Duration(minutes)*time.Minute))
		case 8:
			days, ticks := int32(binary.LittleEndian.Uint32(raw)), binary.LittleEndian.Uint32(raw[4:])
			if days < -53_690 || days > 2_958_463 || ticks >= 300*86_400 {
				return bad()
			}
			ms := (int64(ticks)*10 + 1) / 3
			return sqltypes.NewTime(t, origin.AddDate(0, 0, int(days)).Add(time.Duration(ms)*time.Millisecond))
		}
		return bad()
	case sqltypes.Date:
		if len(raw) != 3 || days24(raw) > maxDays {
			return bad()
		}
		return sqltypes.NewTime(t, dayTime(days24(raw), 0))
	case sqltypes.Time:
		ticks, ok := ticksAt(raw, t.Scale)
		if !ok || len(raw) != timeSize(t.Scale) {
			return bad()
		}
		return sqltypes.NewTime(t, dayTime(0, ticks))
	}
	tail := 3
	if t.ID == sqltypes.DateTimeOffset {
		tail = 5
	}
	n := timeSize(t.Scale)
	if len(raw) != n+tail {
		return bad()
	}
	ticks, ok := ticksAt(raw[:n], t.Scale)
	days := days24(raw[n:])
	if !ok || days > maxDays {
		return bad()
	}
	at := dayTime(days, ticks)
	if t.ID == sqltypes.DateTimeOffset {
		offset := int16(binary.LittleEndian.Uint16(raw[n+3:]))
		if offset < -14*60 || offset > 14*60 {
			return bad()
		}
		at = at.In(time.FixedZone("", int(offset)*60))
	}
	return sqltypes.NewTime(t, at)
}

func days24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

// ticksAt reads a time of day of the given scale as 100 ns ticks.
func ticksAt(b []byte, scale uint8) (int64, bool) {
	var n int64
	for i := len(b) - 1; i >= 0; i-- {
		n = n<<8 | int64(b[i])
	}
	for s := scale; s < 7; s++ {
		n *= 10
	}
	return n, n < ticksOfDay
}

func dayTime(days int, ticks int64) time.Time {
	return time.Date(1, 1, 1+days, 0, 0, 0, 0, time.UTC).Add(time.Duration(ticks) * 100)
}
