package sqltypes

import (
	"math"
	"math/big"
	"math/bits"
	"strings"
)

// ArithType is the result type of a op b for op in + - * / % & | ^, or an error 402/8117.
func ArithType(op byte, a, b Type) (Type, error) {
	if a.ID == Unknown && b.ID == Unknown {
		return TInt, nil
	}
	if a.ID == Unknown {
		a = b
	} else if b.ID == Unknown {
		b = a
	}
	if op == '+' && (a.IsString() && b.IsString() || a.IsBinary() && b.IsBinary()) {
		t := Unify(a, b)
		if t.Len != Max && a.Len != Max && b.Len != Max {
			limit := int32(8000)
			if t.IsUnicode() {
				limit = 4000
			}
			t.Len = min(a.Len+b.Len, limit)
		}
		switch t.ID {
		case SysName, XML:
			t.ID = NVarChar
		}
		return t, nil
	}
	if (op == '+' || op == '-') && (a.IsTemporal() || b.IsTemporal()) {
		ok := func(x Type) bool {
			return x.ID == DateTime || x.ID == SmallDateTime || x.IsNumber() || x.IsString()
		}
		if !ok(a) || !ok(b) {
			if a.IsTemporal() && b.IsTemporal() {
				return Type{}, Errf(8117, 16, 1, "Operand data type %s is invalid for %s operator.", a.ID.Name(), opName(op))
			}
			return Type{}, errClash(a, b)
		}
		if a.ID == SmallDateTime && b.ID != DateTime || b.ID == SmallDateTime && a.ID != DateTime {
			return TSmallDateTime, nil
		}
		return TDateTime, nil
	}
	if a.IsBinary() && b.IsNumber() {
		a = b
	} else if b.IsBinary() && a.IsNumber() {
		b = a
	}
	if a.IsString() && b.IsNumber() {
		a = b
	} else if b.IsString() && a.IsNumber() {
		b = a
	}
	for _, t := range [2]Type{a, b} {
		if !t.IsNumber() {
			if a.ID != b.ID && a.ID.precedence() > 8 && b.ID.precedence() > 8 {
				return Type{}, errClash(a, b)
			}
			return Type{}, Errf(8117, 16, 1, "Operand data type %s is invalid for %s operator.", t.ID.Name(), opName(op))
		}
	}
	switch op {
	case '&', '|', '^', '%':
		if a.IsFloat() || b.IsFloat() || op != '%' && (a.IsDecimal() || b.IsDecimal()) {
			return Type{}, Errf(402, 16, 1, "The data types %s and %s are incompatible in the '%s' operator.", a.ID.Name(), b.ID.Name(), string(op))
		}
	}
	if a.ID == Bit && b.ID == Bit {
		if op == '&' || op == '|' || op == '^' {
			return TBit, nil
		}
		return Type{}, Errf(402, 16, 1, "The data types bit and bit are incompatible in the %s operator.", opName(op))
	}
	if a.IsFloat() || b.IsFloat() {
		return TFloat, nil
	}
	if a.IsInteger() && b.IsInteger() {
		if a.ID > b.ID {
			return a, nil
		}
		return b, nil
	}
	id := Numeric
	if a.ID == Decimal || b.ID == Decimal {
		id = Decimal
	}
	x, y := asDecimalType(a), asDecimalType(b)
	p1, s1, p2, s2 := int(x.Prec), int(x.Scale), int(y.Prec), int(y.Scale)
	var p, s int
	switch op {
	case '*':
		p, s = p1+p2+1, s1+s2
	case '/':
		s = max(6, s1+p2+1)
		p = p1 - s1 + s2 + s
	case '%':
		s = max(s1, s2)
		p = min(p1-s1, p2-s2) + s
	default:
		s = max(s1, s2)
		p = max(p1-s1, p2-s2) + 1 + s
	}
	if p > 38 {
		whole := p - s
		s = max(min(s, 38-whole), min(s, 6))
		p = 38
	}
	return Type{ID: id, Prec: uint8(p), Scale: uint8(s)}, nil
}

func opName(op byte) string {
	switch op {
	case '+':
		return "add"
	case '-':
		return "subtract"
	case '*':
		return "multiply"
	case '/':
		return "divide"
	case '%':
		return "modulo"
	}
	return "'" + string(op) + "'"
}

// Arith computes a op b for op in + - * / % & | ^. NULL with anything is NULL of the result type.
func Arith(op byte, a, b Value) (Value, error) {
	if a.vari || b.vari {
		return Value{}, Errf(402, 16, 1, "The data types sql_variant and sql_variant are incompatible in the %s operator.", opName(op))
	}
	t, err := ArithType(op, a.typ, b.typ)
	if err != nil {
		return Value{}, err
	}
	if !a.ok || !b.ok {
		return Null(t), nil
	}
	switch {
	case t.IsString():
		s := a.s + b.s
		if t.Len != Max && textLen(s) > int(t.Len) {
			s = CutText(s, int(t.Len))
		}
		return NewText(t, s), nil
	case t.IsBinary():
		s := a.s + b.s
		if t.Len != Max && len(s) > int(t.Len) {
			s = s[:t.Len]
		}
		return Value{typ: t, ok: true, s: s}, nil
	case t.IsTemporal():
		return arithTime(op, a, b, t)
	case t.IsFloat():
		return arithFloat(op, a, b)
	case t.IsInteger():
		if a, err = Cast(a, t, 0); err != nil {
			return Value{}, err
		}
		if b, err = Cast(b, t, 0); err != nil {
			return Value{}, err
		}
		return arithInt(op, int64(a.lo), int64(b.lo), t)
	}
	return arithDecimal(op, a, b, t)
}

func errDivide() *Error { return Errf(8134, 16, 1, "Divide by zero error encountered.") }

func arithInt(op byte, x, y int64, t Type) (Value, error) {
	var n int64
	over := false
	switch op {
	case '+':
		n = x + y
		over = (x > 0 && y > 0 && n < 0) || (x < 0 && y < 0 && n >= 0)
	case '-':
		n = x - y
		over = (x >= 0 && y < 0 && n < 0) || (x < 0 && y > 0 && n >= 0)
	case '*':
		hi, lo := bits.Mul64(absU(x), absU(y))
		n = x * y
		limit := uint64(math.MaxInt64)
		if (x < 0) != (y < 0) {
			limit++
		}
		over = hi != 0 || lo > limit
	case '/', '%':
		if y == 0 {
			return Value{}, errDivide()
		}
		if x == math.MinInt64 && y == -1 {
			over = op == '/'
		} else if op == '/' {
			n = x / y
		} else {
			n = x % y
		}
	case '&':
		n = x & y
	case '|':
		n = x | y
	case '^':
		n = x ^ y
	}
	lo, hi := intRange(t.ID)
	if over || n < lo || n > hi {
		return Value{}, errOverflow(t)
	}
	return Value{typ: t, ok: true, lo: uint64(n)}, nil
}

func absU(x int64) uint64 {
	if x < 0 {
		return uint64(-(x + 1)) + 1
	}
	return uint64(x)
}

func arithFloat(op byte, a, b Value) (Value, error) {
	x, err := castFloat(a, TFloat)
	if err != nil {
		return Value{}, err
	}
	y, err := castFloat(b, TFloat)
	if err != nil {
		return Value{}, err
	}
	f, g := x.Float64(), y.Float64()
	switch op {
	case '+':
		f += g
	case '-':
		f -= g
	case '*':
		f *= g
	case '/':
		if g == 0 {
			return Value{}, errDivide()
		}
		f /= g
	}
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return Value{}, errOverflow(TFloat)
	}
	return NewFloat(f), nil
}

func arithTime(op byte, a, b Value, t Type) (Value, error) {
	x, err := Cast(a, TDateTime, 0)
	if err != nil {
		return Value{}, err
	}
	y, err := Cast(b, TDateTime, 0)
	if err != nil {
		return Value{}, err
	}
	n := int64(x.lo) - origin1900
	m := int64(y.lo) - origin1900
	if op == '-' {
		m = -m
	}
	n += m + origin1900
	if n < dateTimeMin || n >= maxTicks {
		return Value{}, errOverflow(t)
	}
	v := Value{typ: t, ok: true, lo: uint64(n)}
	v.roundTicks()
	return v, nil
}

func arithDecimal(op byte, a, b Value, t Type) (Value, error) {
	var err error
	// text operands take the other side's type first
	if a.typ.IsString() || a.typ.IsBinary() {
		if a, err = Cast(a, b.typ, 0); err != nil {
			return Value{}, err
		}
	}
	if b.typ.IsString() || b.typ.IsBinary() {
		if b, err = Cast(b, a.typ, 0); err != nil {
			return Value{}, err
		}
	}
	x, sx := decimalParts(a)
	y, sy := decimalParts(b)
	n, s := new(big.Int), max(sx, sy)
	switch op {
	case '*':
		n.Mul(x, y)
		s = sx + sy
	case '/':
		if y.Sign() == 0 {
			return Value{}, errDivide()
		}
		// one more digit than the result keeps, cut rather than rounded as the product does
		k := int(t.Scale) + sy - sx
		if k >= 0 {
			x.Mul(x, pow10(k))
		} else {
			y.Mul(y, pow10(-k))
		}
		n.Quo(x, y)
		s = int(t.Scale)
	default:
		x = rescale(x, sx, s)
		y = rescale(y, sy, s)
		switch op {
		case '+':
			n.Add(x, y)
		case '-':
			n.Sub(x, y)
		case '%':
			if y.Sign() == 0 {
				return Value{}, errDivide()
			}
			n.Rem(x, y)
		}
	}
	n = rescale(n, s, int(t.Scale))
	if n.CmpAbs(pow10(int(t.Prec))) >= 0 {
		return Value{}, errOverflow(t)
	}
	v := Value{typ: t, ok: true}
	v.setBig(n)
	return v, nil
}

// Negate is unary minus.
func Negate(v Value) (Value, error) {
	switch {
	case !v.ok:
		return v, nil
	case v.typ.IsInteger() && v.typ.ID != Bit:
		return arithInt('-', 0, int64(v.lo), v.typ)
	case v.typ.IsDecimal():
		w := v
		w.setBig(new(big.Int).Neg(v.Unscaled()))
		return w, nil
	case v.typ.IsFloat():
		return Value{typ: v.typ, ok: true, lo: math.Float64bits(-v.Float64())}, nil
	}
	return Value{}, Errf(8117, 16, 1, "Operand data type %s is invalid for minus operator.", v.typ.ID.Name())
}

// Complement is the bitwise NOT (~) of an integer.
func Complement(v Value) (Value, error) {
	switch {
	case !v.ok:
		return v, nil
	case v.typ.ID == Bit:
		return NewBit(v.lo == 0), nil
	case v.typ.ID == TinyInt:
		return NewTinyInt(^uint8(v.lo)), nil
	case v.typ.IsInteger():
		v.lo = ^v.lo
		return v, nil
	}
	return Value{}, Errf(8117, 16, 1, "Operand data type %s is invalid for '~' operator.", v.typ.ID.Name())
}

// ParseNumber reads a numeric literal: int, then numeric for larger or fractional ones, float
// with an exponent.
func ParseNumber(lit string) (Value, error) {
	if strings.ContainsAny(lit, "eE") {
		s := lit
		if last := s[len(s)-1]; last == 'e' || last == 'E' || last == '+' || last == '-' {
			s += "0"
		}
		return castFloat(NewVarChar(s), TFloat)
	}
	n, scale, ok := parseDecimal(lit)
	if !ok {
		return Value{}, Errf(102, 15, 1, "Incorrect syntax near '%s'.", lit)
	}
	if !strings.Contains(lit, ".") && n.IsInt64() && n.Int64() <= math.MaxInt32 && n.Int64() >= math.MinInt32 {
		return NewInt(int32(n.Int64())), nil
	}
	digits := max(len(strings.TrimLeft(n.String(), "-")), scale)
	if scale > 38 || digits > 38 {
		return Value{}, Errf(1007, 15, 1, "The number '%s' is out of the range for numeric representation (maximum precision 38).", lit)
	}
	return NewDecimal(Type{ID: Numeric, Prec: uint8(max(digits, 1)), Scale: uint8(scale)}, n)
}
