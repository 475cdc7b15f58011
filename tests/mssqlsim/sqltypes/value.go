package sqltypes

import (
	"math"
	"math/big"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// Value is one typed SQL value, or a typed NULL. It is immutable, comparable with == (identity of
// type and content, not SQL equality) and cheap to copy. The zero Value is an untyped NULL.
//
// Storage: numbers in lo; decimals as a signed 128-bit integer (hi, lo) scaled by Type.Scale;
// uniqueidentifier as its 16 bytes in text order in (hi, lo); temporal values as 100 ns ticks
// since 0001-01-01 in lo, the zone offset in minutes in hi; text and bytes in s.
type Value struct {
	typ  Type
	ok   bool // not NULL
	vari bool // came through sql_variant: the static type is sql_variant, typ is the base type
	hi   int64
	lo   uint64
	s    string
}

// Null is the NULL of type t.
func Null(t Type) Value { return Value{typ: t} }

// NewBit makes a bit.
func NewBit(b bool) Value {
	if b {
		return Value{typ: TBit, ok: true, lo: 1}
	}
	return Value{typ: TBit, ok: true}
}

// NewTinyInt makes a tinyint.
func NewTinyInt(n uint8) Value { return Value{typ: TTinyInt, ok: true, lo: uint64(n)} }

// NewSmallInt makes a smallint.
func NewSmallInt(n int16) Value { return Value{typ: TSmallInt, ok: true, lo: uint64(int64(n))} }

// NewInt makes an int.
func NewInt(n int32) Value { return Value{typ: TInt, ok: true, lo: uint64(int64(n))} }

// NewBigInt makes a bigint.
func NewBigInt(n int64) Value { return Value{typ: TBigInt, ok: true, lo: uint64(n)} }

// NewFloat makes a float; NaN and infinities become NULL, since SQL Server has neither.
func NewFloat(f float64) Value {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return Null(TFloat)
	}
	return Value{typ: TFloat, ok: true, lo: math.Float64bits(f)}
}

// NewNVarChar makes an nvarchar as long as its content.
func NewNVarChar(s string) Value { return newText(NVarChar, s, 4000) }

// NewVarChar makes a varchar as long as its content.
func NewVarChar(s string) Value { return newText(VarChar, s, 8000) }

// NewSysName makes a sysname.
func NewSysName(s string) Value { return Value{typ: TSysName, ok: true, s: s} }

func newText(id ID, s string, limit int) Value {
	n := textLen(s)
	if n > limit {
		n = Max
	} else if n == 0 {
		n = 1
	}
	return Value{typ: Type{ID: id, Len: int32(n)}, ok: true, s: s}
}

// NewText makes a value of the character type t from s without length checks; callers cut first.
func NewText(t Type, s string) Value { return Value{typ: t, ok: true, s: s} }

// NewBinary makes a varbinary as long as its content.
func NewBinary(b []byte) Value {
	n := len(b)
	if n > 8000 {
		n = Max
	} else if n == 0 {
		n = 1
	}
	return Value{typ: Type{ID: VarBinary, Len: int32(n)}, ok: true, s: string(b)}
}

// NewGUID makes a uniqueidentifier from 16 bytes in the order of its text form.
func NewGUID(g [16]byte) Value {
	v := Value{typ: TGUID, ok: true}
	for i := range 8 {
		v.hi = v.hi<<8 | int64(g[i])
		v.lo = v.lo<<8 | uint64(g[i+8])
	}
	return v
}

// NewTime makes a temporal value of type t (date, time, smalldatetime, datetime, datetime2,
// datetimeoffset) from the wall clock of tm, rounded to the type's accuracy. For every type but
// datetimeoffset the zone is ignored: pass UTC for UTC. Out of range years become NULL.
func NewTime(t Type, tm time.Time) Value {
	_, off := tm.Zone()
	ticks, ok := ticksOf(tm)
	if !ok {
		return Null(t)
	}
	v := Value{typ: t, ok: true, lo: uint64(ticks)}
	if t.ID == DateTimeOffset {
		v.hi = int64(off / 60)
	}
	v.roundTicks()
	return v
}

// NewDateTime makes a datetime of tm in UTC; the zero time is NULL.
func NewDateTime(tm time.Time) Value {
	if tm.IsZero() {
		return Null(TDateTime)
	}
	return NewTime(TDateTime, tm.UTC())
}

// NewDateTime2 makes a datetime2(7) of tm in UTC; the zero time is NULL.
func NewDateTime2(tm time.Time) Value {
	if tm.IsZero() {
		return Null(TDateTime2)
	}
	return NewTime(TDateTime2, tm.UTC())
}

// NewDecimal makes a decimal of type t from its unscaled integer (value × 10^scale).
// An integer beyond the precision of t is an overflow error 8115.
func NewDecimal(t Type, unscaled *big.Int) (Value, error) {
	if unscaled.CmpAbs(pow10(int(t.Prec))) >= 0 {
		return Value{}, errOverflow(t)
	}
	v := Value{typ: t, ok: true}
	v.setBig(unscaled)
	return v, nil
}

// NewLSN makes a numeric(25,0) from a non-negative integer.
func NewLSN(n uint64) Value { return Value{typ: TLSN, ok: true, lo: n} }

// IsNull reports NULL.
func (v Value) IsNull() bool { return !v.ok }

// Type is the type of the content; for a sql_variant it is the base type.
func (v Value) Type() Type { return v.typ }

// IsVariant reports that the value is a sql_variant with base type Type.
func (v Value) IsVariant() bool { return v.vari || v.typ.ID == SQLVariant }

// AsVariant wraps the value as sql_variant.
func (v Value) AsVariant() Value {
	if !v.ok {
		return Null(TVariant)
	}
	v.vari = true
	return v
}

// Int64 is the content of bit and integer types; other types give 0.
func (v Value) Int64() int64 {
	if v.typ.IsInteger() {
		return int64(v.lo)
	}
	return 0
}

// Bool is the content of a bit (or integer) as truth.
func (v Value) Bool() bool { return v.ok && v.Int64() != 0 }

// Float64 is the content of real and float.
func (v Value) Float64() float64 { return math.Float64frombits(v.lo) }

// Text is the content of character types.
func (v Value) Text() string { return v.s }

// Bytes is a copy of the content of binary types.
func (v Value) Bytes() []byte { return []byte(v.s) }

// GUID is the content of a uniqueidentifier, in the order of its text form.
func (v Value) GUID() (g [16]byte) {
	for i := range 8 {
		g[i] = byte(v.hi >> (56 - 8*i))
		g[i+8] = byte(v.lo >> (56 - 8*i))
	}
	return g
}

// Time is the content of temporal types: UTC wall clock, or with its zone for datetimeoffset.
func (v Value) Time() time.Time {
	t := timeOfTicks(int64(v.lo))
	if v.typ.ID == DateTimeOffset {
		z := time.FixedZone("", int(v.hi)*60)
		return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), z)
	}
	return t
}

// Unscaled is the integer of a decimal (value × 10^scale).
func (v Value) Unscaled() *big.Int {
	n := new(big.Int).SetInt64(v.hi)
	n.Lsh(n, 64)
	return n.Or(n, new(big.Int).SetUint64(v.lo))
}

func (v *Value) setBig(n *big.Int) {
	var w big.Int
	if n.Sign() < 0 {
		// two's complement over 128 bits
		w.Add(n, new(big.Int).Lsh(big.NewInt(1), 128))
	} else {
		w.Set(n)
	}
	v.lo = new(big.Int).And(&w, maxUint64Big()).Uint64()
	v.hi = int64(new(big.Int).Rsh(&w, 64).Uint64())
}

func maxUint64Big() *big.Int { return new(big.Int).SetUint64(math.MaxUint64) }

func pow10(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// textLen is the length of s in UTF-16 code units, the unit of nvarchar lengths.
func textLen(s string) int {
	n := 0
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			i++
			n++
			continue
		}
		r, w := utf8.DecodeRuneInString(s[i:])
		i += w
		n += max(utf16.RuneLen(r), 1)
	}
	return n
}

// TextLen is the length of s in characters as SQL Server counts them (UTF-16 code units).
func TextLen(s string) int { return textLen(s) }

// CutText is the first n characters (UTF-16 code units) of s; a pair is never split.
func CutText(s string, n int) string {
	if n <= 0 {
		return ""
	}
	if len(s) <= n {
		return s
	}
	c := 0
	for i := 0; i < len(s); {
		r, w := utf8.DecodeRuneInString(s[i:])
		k := max(utf16.RuneLen(r), 1)
		if c+k > n {
			return s[:i]
		}
		c += k
		i += w
	}
	return s
}
