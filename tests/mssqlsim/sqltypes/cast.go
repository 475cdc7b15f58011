package sqltypes

import (
	"encoding/hex"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
)

// ImplicitOK reports whether SQL Server converts from one type to the other without CAST.
func ImplicitOK(from, to Type) bool {
	if from.ID == to.ID || from.ID == Unknown || to.ID == SQLVariant || from.IsNumber() && to.IsNumber() {
		return true
	}
	switch {
	case from.ID == SQLVariant:
		return false
	case from.IsString():
		return !to.IsBinary()
	case to.IsString():
		return true
	case from.IsBinary():
		return to.IsBinary() || to.IsInteger() || to.IsDecimal() || to.ID == UniqueIdentifier || to.ID == DateTime || to.ID == SmallDateTime
	case to.IsBinary():
		return from.IsInteger() || from.IsDecimal() || from.ID == UniqueIdentifier
	case from.IsNumber():
		return to.ID == DateTime || to.ID == SmallDateTime
	case from.IsTemporal():
		if !to.IsTemporal() {
			return false
		}
		return !(from.ID == Date && to.ID == Time || from.ID == Time && to.ID == Date)
	}
	return false
}

// Cast converts v to type t, as CAST and, with a style, as CONVERT does. NULL gives the NULL of t.
// Errors are *Error with the product's numbers: 245, 248, 244, 8114, 8115, 220, 241, 242, 8169,
// 529, 281. Character data longer than the target is cut, as CAST does.
func Cast(v Value, t Type, style int) (Value, error) {
	if t.ID == SQLVariant {
		return v.AsVariant(), nil
	}
	if t.ID == Unknown {
		return v, nil
	}
	v.vari = false
	if !v.ok {
		return Null(t), nil
	}
	if v.typ == t {
		return v, nil
	}
	switch {
	case t.IsString():
		s, err := textOf(v, t, style)
		if err != nil {
			return Value{}, err
		}
		return fitText(v, t, s)
	case t.IsInteger():
		return castInt(v, t)
	case t.IsDecimal():
		return castDecimal(v, t)
	case t.IsFloat():
		return castFloat(v, t)
	case t.IsBinary():
		return castBinary(v, t, style)
	case t.ID == UniqueIdentifier:
		return castGUID(v, t)
	case t.IsTemporal():
		return castTemporal(v, t, style)
	}
	return Value{}, errExplicit(v.typ, t)
}

// fitText pads or cuts s for t; numbers that do not fit are errors rather than cut.
func fitText(v Value, t Type, s string) (Value, error) {
	if t.Len != Max {
		n := textLen(s)
		if n > int(t.Len) {
			switch {
			case v.typ.IsInteger():
				return NewText(t, "*"), nil
			case v.typ.IsDecimal(), v.typ.IsFloat():
				return Value{}, errOverflow(t)
			case v.typ.ID == UniqueIdentifier:
				return Value{}, Errf(8170, 16, 2, "Insufficient result space to convert uniqueidentifier value to char.")
			}
			s = CutText(s, int(t.Len))
			n = textLen(s)
		}
		if (t.ID == Char || t.ID == NChar) && n < int(t.Len) {
			s += strings.Repeat(" ", int(t.Len)-n)
		}
	}
	if t.ID == Char || t.ID == VarChar {
		s = latin1(s)
	}
	return NewText(t, s), nil
}

// latin1 replaces what code page 1252 cannot hold by '?', as a varchar column does.
func latin1(s string) string {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return strings.Map(func(r rune) rune {
				if r < 0x80 || r >= 0xA0 && r <= 0xFF || strings.ContainsRune("€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ", r) {
					return r
				}
				return '?'
			}, s)
		}
	}
	return s
}

func intRange(id ID) (lo, hi int64) {
	switch id {
	case TinyInt:
		return 0, 255
	case SmallInt:
		return math.MinInt16, math.MaxInt16
	case Int:
		return math.MinInt32, math.MaxInt32
	}
	return math.MinInt64, math.MaxInt64
}

func castInt(v Value, t Type) (Value, error) {
	lo, hi := intRange(t.ID)
	switch {
	case v.typ.IsInteger():
		n := int64(v.lo)
		if t.ID == Bit {
			return NewBit(n != 0), nil
		}
		if n < lo || n > hi {
			if t.ID == Int || t.ID == BigInt {
				return Value{}, errOverflow(t)
			}
			return Value{}, Errf(220, 16, 1, "Arithmetic overflow error for data type %s, value = %d.", t.ID.Name(), n)
		}
		return Value{typ: t, ok: true, lo: v.lo}, nil
	case v.typ.IsDecimal():
		n := v.Unscaled()
		if t.ID == Bit {
			return NewBit(n.Sign() != 0), nil
		}
		n.Quo(n, pow10(int(v.typ.Scale)))
		if !n.IsInt64() || n.Int64() < lo || n.Int64() > hi {
			return Value{}, Errf(8115, 16, 8, "Arithmetic overflow error converting %s to data type %s.", v.typ.ID.Name(), t.ID.Name())
		}
		return Value{typ: t, ok: true, lo: uint64(n.Int64())}, nil
	case v.typ.IsFloat():
		f := math.Trunc(v.Float64())
		if t.ID == Bit {
			return NewBit(v.Float64() != 0), nil
		}
		if f < float64(lo) || f > float64(hi) || f >= math.MaxInt64 {
			return Value{}, Errf(232, 16, 3, "Arithmetic overflow error for type %s, value = %f.", t.ID.Name(), v.Float64())
		}
		return Value{typ: t, ok: true, lo: uint64(int64(f))}, nil
	case v.typ.IsString():
		return textToInt(v, t, lo, hi)
	case v.typ.IsBinary():
		b := v.s
		if len(b) > 8 {
			b = b[len(b)-8:]
		}
		var n uint64
		for i := range len(b) {
			n = n<<8 | uint64(b[i])
		}
		switch t.ID {
		case Bit:
			return NewBit(n != 0), nil
		case TinyInt:
			n = uint64(uint8(n))
		case SmallInt:
			n = uint64(int64(int16(n)))
		case Int:
			n = uint64(int64(int32(n)))
		}
		return Value{typ: t, ok: true, lo: n}, nil
	case v.typ.ID == DateTime || v.typ.ID == SmallDateTime:
		days := int64(v.lo) - origin1900
		n := days / tickDay
		rest := days % tickDay
		if rest < 0 {
			n--
			rest += tickDay
		}
		if rest >= tickDay/2 {
			n++
		}
		return castInt(NewBigInt(n), t)
	}
	return Value{}, errExplicit(v.typ, t)
}

func textToInt(v Value, t Type, lo, hi int64) (Value, error) {
	s := strings.TrimSpace(v.s)
	if t.ID == Bit {
		switch {
		case strings.EqualFold(s, "true"):
			return NewBit(true), nil
		case strings.EqualFold(s, "false"):
			return NewBit(false), nil
		}
	}
	fail := func() (Value, error) {
		if t.ID == BigInt {
			return Value{}, Errf(8114, 16, 5, "Error converting data type %s to bigint.", v.typ.ID.Name())
		}
		return Value{}, Errf(245, 16, 1, "Conversion failed when converting the %s value '%s' to data type %s.", v.typ.ID.Name(), v.s, t.ID.Name())
	}
	if s == "" {
		return Value{typ: t, ok: true}, nil
	}
	sign := strings.TrimLeft(s, "+-")
	if len(s)-len(sign) > 1 || sign == "" {
		return fail()
	}
	for i := range len(sign) {
		if sign[i] < '0' || sign[i] > '9' {
			return fail()
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if t.ID == Bit {
		return NewBit(strings.Trim(sign, "0") != ""), nil
	}
	if err != nil || n < lo || n > hi {
		switch t.ID {
		case TinyInt:
			return Value{}, Errf(244, 16, 1, "The conversion of the %s value '%s' overflowed an INT1 column. Use a larger integer column.", v.typ.ID.Name(), v.s)
		case SmallInt:
			return Value{}, Errf(244, 16, 2, "The conversion of the %s value '%s' overflowed an INT2 column. Use a larger integer column.", v.typ.ID.Name(), v.s)
		case Int:
			return Value{}, Errf(248, 16, 1, "The conversion of the %s value '%s' overflowed an int column.", v.typ.ID.Name(), v.s)
		}
		return Value{}, Errf(8115, 16, 2, "Arithmetic overflow error converting expression to data type bigint.")
	}
	return Value{typ: t, ok: true, lo: uint64(n)}, nil
}

func castDecimal(v Value, t Type) (Value, error) {
	overflow := func() (Value, error) {
		return Value{}, Errf(8115, 16, 8, "Arithmetic overflow error converting %s to data type %s.", v.typ.ID.Name(), t.ID.Name())
	}
	var n *big.Int
	switch {
	case v.typ.IsInteger(), v.typ.IsDecimal():
		u, s := decimalParts(v)
		n = rescale(u, s, int(t.Scale))
	case v.typ.IsFloat():
		u, s, ok := parseDecimal(strconv.FormatFloat(v.Float64(), 'f', -1, 64))
		if !ok {
			return overflow()
		}
		n = rescale(u, s, int(t.Scale))
	case v.typ.IsString():
		u, s, ok := parseDecimal(strings.TrimSpace(v.s))
		if !ok {
			return Value{}, Errf(8114, 16, 5, "Error converting data type %s to %s.", v.typ.ID.Name(), t.ID.Name())
		}
		n = rescale(u, s, int(t.Scale))
	default:
		return Value{}, errExplicit(v.typ, t)
	}
	if n.CmpAbs(pow10(int(t.Prec))) >= 0 {
		return overflow()
	}
	w := Value{typ: t, ok: true}
	w.setBig(n)
	return w, nil
}

// rescale changes the scale of an unscaled integer, rounding half away from zero.
func rescale(n *big.Int, from, to int) *big.Int {
	switch {
	case from < to:
		return new(big.Int).Mul(n, pow10(to-from))
	case from > to:
		d := pow10(from - to)
		q, r := new(big.Int).QuoRem(n, d, new(big.Int))
		if r.Abs(r).Lsh(r, 1).Cmp(d) >= 0 {
			q.Add(q, big.NewInt(int64(n.Sign())))
		}
		return q
	}
	return new(big.Int).Set(n)
}

// parseDecimal reads [+-]digits[.digits] without exponent, at most 80 digits.
func parseDecimal(s string) (n *big.Int, scale int, ok bool) {
	body := s
	if body != "" && (body[0] == '+' || body[0] == '-') {
		body = body[1:]
	}
	dot, digits := -1, 0
	for i := range len(body) {
		switch c := body[i]; {
		case c == '.' && dot < 0:
			dot = i
		case c >= '0' && c <= '9':
			digits++
		default:
			return nil, 0, false
		}
	}
	if digits == 0 || digits > 400 {
		return nil, 0, false
	}
	if dot >= 0 {
		scale = len(body) - dot - 1
		body = body[:dot] + body[dot+1:]
	}
	n, ok = new(big.Int).SetString(body, 10)
	if ok && s[0] == '-' {
		n.Neg(n)
	}
	return n, scale, ok
}

func castFloat(v Value, t Type) (Value, error) {
	var f float64
	switch {
	case v.typ.IsInteger():
		f = float64(int64(v.lo))
	case v.typ.IsFloat():
		f = v.Float64()
	case v.typ.IsDecimal():
		f, _ = strconv.ParseFloat(formatDecimal(v), 64)
	case v.typ.IsString():
		s := strings.TrimSpace(v.s)
		if s == "" {
			break
		}
		var err error
		f, err = strconv.ParseFloat(s, 64)
		if err != nil || strings.ContainsAny(s, "xXpPnN_") || math.IsInf(f, 0) {
			return Value{}, Errf(8114, 16, 5, "Error converting data type %s to %s.", v.typ.ID.Name(), t.ID.Name())
		}
	case v.typ.ID == DateTime || v.typ.ID == SmallDateTime:
		f = float64(int64(v.lo)-origin1900) / tickDay
	default:
		return Value{}, errExplicit(v.typ, t)
	}
	if t.ID == Real {
		if math.Abs(f) > math.MaxFloat32 {
			return Value{}, errOverflow(t)
		}
		f = float64(float32(f))
	}
	return Value{typ: t, ok: true, lo: math.Float64bits(f)}, nil
}

func castBinary(v Value, t Type, style int) (Value, error) {
	var s string
	switch {
	case v.typ.IsBinary():
		s = v.s
	case v.typ.IsString() && (style == 1 || style == 2):
		h := v.s
		if style == 1 {
			if len(h) < 2 || h[0] != '0' || h[1]|0x20 != 'x' {
				return Value{}, errHex(v.typ, t)
			}
			h = h[2:]
		}
		b, err := hex.DecodeString(h)
		if err != nil {
			return Value{}, errHex(v.typ, t)
		}
		s = string(b)
	case v.typ.IsUnicode():
		u := utf16.Encode([]rune(v.s))
		b := make([]byte, 0, 2*len(u))
		for _, c := range u {
			b = append(b, byte(c), byte(c>>8))
		}
		s = string(b)
	case v.typ.IsString():
		s = encode1252(v.s)
	case v.typ.IsInteger():
		size := map[ID]int{Bit: 1, TinyInt: 1, SmallInt: 2, Int: 4, BigInt: 8}[v.typ.ID]
		b := make([]byte, size)
		for i := range b {
			b[size-1-i] = byte(v.lo >> (8 * i))
		}
		// integers keep their low bytes: cut and pad on the left
		if t.Len != Max && size > int(t.Len) {
			b = b[size-int(t.Len):]
		}
		if t.ID == Binary && len(b) < int(t.Len) {
			b = append(make([]byte, int(t.Len)-len(b)), b...)
		}
		return Value{typ: t, ok: true, s: string(b)}, nil
	case v.typ.IsDecimal():
		n := v.Unscaled()
		b := []byte{v.typ.Prec, v.typ.Scale, 0, 1}
		if n.Sign() < 0 {
			b[3] = 0
		}
		m := new(big.Int).Abs(n).Bytes()
		for len(m)%4 != 0 || len(m) == 0 {
			m = append([]byte{0}, m...)
		}
		for i := len(m) - 1; i >= 0; i-- {
			b = append(b, m[i])
		}
		s = string(b)
	case v.typ.ID == UniqueIdentifier:
		g := v.GUID()
		g[0], g[1], g[2], g[3] = g[3], g[2], g[1], g[0]
		g[4], g[5] = g[5], g[4]
		g[6], g[7] = g[7], g[6]
		s = string(g[:])
	default:
		return Value{}, errExplicit(v.typ, t)
	}
	if t.Len != Max && len(s) > int(t.Len) {
		s = s[:t.Len]
	}
	if t.ID == Binary && len(s) < int(t.Len) {
		s += strings.Repeat("\x00", int(t.Len)-len(s))
	}
	return Value{typ: t, ok: true, s: s}, nil
}

func errHex(from, to Type) *Error {
	return Errf(8114, 16, 5, "Error converting data type %s to %s.", from.ID.Name(), to.ID.Name())
}

func castGUID(v Value, t Type) (Value, error) {
	switch {
	case v.typ.IsString():
		g, ok := ParseGUID(strings.TrimSpace(v.s))
		if !ok {
			return Value{}, Errf(8169, 16, 2, "Conversion failed when converting from a character string to uniqueidentifier.")
		}
		return NewGUID(g), nil
	case v.typ.IsBinary():
		var g [16]byte
		copy(g[:], v.s)
		g[0], g[1], g[2], g[3] = g[3], g[2], g[1], g[0]
		g[4], g[5] = g[5], g[4]
		g[6], g[7] = g[7], g[6]
		return NewGUID(g), nil
	}
	return Value{}, errClash(v.typ, t)
}

// ParseGUID reads 8-4-4-4-12 hexadecimal digits, with or without braces; text after them is
// ignored, as the product does.
func ParseGUID(s string) (g [16]byte, ok bool) {
	if strings.HasPrefix(s, "{") {
		if len(s) < 38 || s[37] != '}' {
			return g, false
		}
		s = s[1:37]
	}
	if len(s) < 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return g, false
	}
	b, err := hex.DecodeString(s[0:8] + s[9:13] + s[14:18] + s[19:23] + s[24:36])
	if err != nil {
		return g, false
	}
	copy(g[:], b)
	return g, true
}

func castTemporal(v Value, t Type, style int) (Value, error) {
	var ticks, off int64
	switch {
	case v.typ.IsTemporal():
		ticks, off = int64(v.lo), v.hi
		switch {
		case v.typ.ID == Time && t.ID == Date, v.typ.ID == Date && t.ID == Time:
			return Value{}, errExplicit(v.typ, t)
		case v.typ.ID == Time && t.ID != Time:
			ticks += origin1900
		case t.ID == Time:
			ticks %= tickDay
		}
	case v.typ.IsString():
		n, o, hasZone, ok := parseTemporal(v.s)
		if ok && hasZone && (t.ID == DateTime || t.ID == SmallDateTime) && o != 0 {
			ok = false
		}
		if !ok {
			if t.ID == SmallDateTime {
				return Value{}, Errf(295, 16, 3, "Conversion failed when converting character string to smalldatetime data type.")
			}
			return Value{}, Errf(241, 16, 1, "Conversion failed when converting date and/or time from character string.")
		}
		ticks, off = n, int64(o)
		if t.ID == Time {
			ticks %= tickDay
		}
	case v.typ.IsNumber() && (t.ID == DateTime || t.ID == SmallDateTime):
		f, err := castFloat(v, TFloat)
		if err != nil {
			return Value{}, err
		}
		d := f.Float64()
		if d < -53690 || d >= 2958464 {
			return Value{}, errOverflow(t)
		}
		ticks = origin1900 + int64(math.Round(d*86400*300))*(tickSecond/100)/3
	default:
		return Value{}, errExplicit(v.typ, t)
	}
	_ = style // styles only restrict which text forms the product accepts; all of them are taken here
	switch {
	case t.ID == DateTime && ticks < dateTimeMin, t.ID == SmallDateTime && (ticks < origin1900 || ticks >= origin1900+(smallLastDays+1)*tickDay):
		return Value{}, Errf(242, 16, 3, "The conversion of a %s data type to a %s data type resulted in an out-of-range value.", v.typ.ID.Name(), t.ID.Name())
	}
	w := Value{typ: t, ok: true, lo: uint64(ticks)}
	if t.ID == DateTimeOffset {
		w.hi = off
	}
	w.roundTicks()
	return w, nil
}
