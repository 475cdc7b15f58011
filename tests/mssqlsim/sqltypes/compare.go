package sqltypes

import (
	"math/big"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Compare orders two values that are not NULL, after converting the one of lower type precedence
// to the other's type, as SQL Server does. A conversion that fails is the error of Cast.
func Compare(a, b Value) (int, error) {
	if a.typ.ID == b.typ.ID || a.typ.IsInteger() && b.typ.IsInteger() || a.typ.IsString() && b.typ.IsString() ||
		a.typ.IsBinary() && b.typ.IsBinary() || a.typ.IsDecimal() && b.typ.IsDecimal() {
		return compareSame(a, b), nil
	}
	if a.vari && b.vari && family(a.typ) != family(b.typ) {
		// sql_variants of different families order by family, they do not convert
		return cmpInt(int64(family(a.typ)), int64(family(b.typ))), nil
	}
	t := Unify(a.typ, b.typ)
	if t.IsFloat() {
		t = TFloat
	}
	ca, err := comparand(a, t)
	if err != nil {
		return 0, err
	}
	cb, err := comparand(b, t)
	if err != nil {
		return 0, err
	}
	if ca.typ.ID != cb.typ.ID && ca.typ.IsNumber() && cb.typ.IsNumber() {
		return cmpNumbers(ca, cb), nil
	}
	return compareSame(ca, cb), nil
}

func comparand(v Value, t Type) (Value, error) {
	if v.typ.ID == t.ID {
		return v, nil
	}
	if v.typ.IsNumber() && t.IsDecimal() && !v.typ.IsFloat() {
		return v, nil // compared exactly by cmpNumbers, without fitting it into t first
	}
	if t.IsTemporal() && v.typ.IsNumber() {
		if t.ID != DateTime && t.ID != SmallDateTime {
			return Value{}, errClash(v.typ, t)
		}
	}
	if !ImplicitOK(v.typ, t) {
		return Value{}, errClash(v.typ, t)
	}
	return Cast(v, t, 0)
}

func family(t Type) int {
	switch {
	case t.IsTemporal():
		return 5
	case t.IsNumber():
		return 4
	case t.ID == UniqueIdentifier:
		return 3
	case t.IsString():
		return 2
	}
	return 1
}

func cmpInt(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func cmpNumbers(a, b Value) int {
	ua, sa := decimalParts(a)
	ub, sb := decimalParts(b)
	if sa < sb {
		ua.Mul(ua, pow10(sb-sa))
	} else if sb < sa {
		ub.Mul(ub, pow10(sa-sb))
	}
	return ua.Cmp(ub)
}

// decimalParts gives an integer or decimal as unscaled integer and scale.
func decimalParts(v Value) (*big.Int, int) {
	if v.typ.IsDecimal() {
		return v.Unscaled(), int(v.typ.Scale)
	}
	return big.NewInt(int64(v.lo)), 0
}

func compareSame(a, b Value) int {
	switch {
	case a.typ.IsInteger():
		return cmpInt(int64(a.lo), int64(b.lo))
	case a.typ.IsString():
		return Collate(a.s, b.s)
	case a.typ.IsFloat():
		x, y := a.Float64(), b.Float64()
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	case a.typ.IsDecimal():
		if a.typ.Scale == b.typ.Scale {
			if a.hi != b.hi {
				return cmpInt(a.hi, b.hi)
			}
			switch {
			case a.lo < b.lo:
				return -1
			case a.lo > b.lo:
				return 1
			}
			return 0
		}
		return cmpNumbers(a, b)
	case a.typ.IsBinary():
		// trailing zero bytes are not significant
		return strings.Compare(strings.TrimRight(a.s, "\x00"), strings.TrimRight(b.s, "\x00"))
	case a.typ.ID == UniqueIdentifier:
		return compareGUID(a.GUID(), b.GUID())
	case a.typ.ID == DateTimeOffset:
		return cmpInt(int64(a.lo)-a.hi*60*tickSecond, int64(b.lo)-b.hi*60*tickSecond)
	}
	return cmpInt(int64(a.lo), int64(b.lo))
}

// compareGUID uses SQL Server's byte order: the last group first, then the groups from the right.
// Positions are those of the text form; the first three groups are little-endian inside the product.
func compareGUID(a, b [16]byte) int {
	order := [16]int{10, 11, 12, 13, 14, 15, 8, 9, 7, 6, 5, 4, 3, 2, 1, 0}
	for _, i := range order {
		if a[i] != b[i] {
			return cmpInt(int64(a[i]), int64(b[i]))
		}
	}
	return 0
}

// Order is a total order for ORDER BY and indexes: NULL first, then Compare; values that cannot
// be converted to each other order by family, so that sorting never fails.
func Order(a, b Value) int {
	switch {
	case !a.ok && !b.ok:
		return 0
	case !a.ok:
		return -1
	case !b.ok:
		return 1
	}
	c, err := Compare(a, b)
	if err != nil {
		return cmpInt(int64(family(a.typ)), int64(family(b.typ)))
	}
	return c
}

// Collate compares text under Latin1_General_CI_AS: case does not matter, accents do, trailing
// spaces do not; punctuation sorts before digits and digits before letters.
func Collate(a, b string) int {
	if a == b {
		return 0
	}
	a, b = trimSpaces(a), trimSpaces(b)
	i, j := 0, 0
	accent := 0
	for i < len(a) && j < len(b) {
		var ra, rb rune
		wa, wb := 1, 1
		if c := a[i]; c < utf8.RuneSelf {
			ra = rune(c)
		} else {
			ra, wa = utf8.DecodeRuneInString(a[i:])
		}
		if c := b[j]; c < utf8.RuneSelf {
			rb = rune(c)
		} else {
			rb, wb = utf8.DecodeRuneInString(b[j:])
		}
		i += wa
		j += wb
		if ra == rb {
			continue
		}
		ca, cb := weight(ra), weight(rb)
		if ca.primary != cb.primary {
			return cmpInt(int64(ca.primary), int64(cb.primary))
		}
		if accent == 0 && ca.accent != cb.accent {
			accent = cmpInt(int64(ca.accent), int64(cb.accent))
		}
	}
	switch {
	case i < len(a):
		return 1
	case j < len(b):
		return -1
	}
	return accent
}

// EqualText reports equality under the collation, quickly.
func EqualText(a, b string) bool { return a == b || Collate(a, b) == 0 }

func trimSpaces(s string) string {
	for len(s) > 0 && s[len(s)-1] == ' ' {
		s = s[:len(s)-1]
	}
	return s
}

type charWeight struct{ primary, accent int32 }

func weight(r rune) charWeight {
	if r < utf8.RuneSelf {
		switch {
		case r >= 'A' && r <= 'Z':
			return charWeight{primary: 1<<23 + (r|0x20)<<4}
		case r >= 'a' && r <= 'z':
			return charWeight{primary: 1<<23 + r<<4}
		case r >= '0' && r <= '9':
			return charWeight{primary: 1<<22 + r}
		}
		return charWeight{primary: r}
	}
	l := unicode.ToLower(r)
	if l < utf8.RuneSelf {
		return weight(l)
	}
	if base, ok := latinBase(l); ok {
		return charWeight{primary: 1<<23 + base<<4, accent: l}
	}
	if unicode.IsLetter(l) {
		return charWeight{primary: 1<<24 + l}
	}
	return charWeight{primary: 1<<10 + l}
}

// latinBase maps the accented lower-case letters of Latin-1 to the letter they sort with.
func latinBase(r rune) (rune, bool) {
	switch {
	case r >= 'à' && r <= 'å':
		return 'a', true
	case r == 'ç':
		return 'c', true
	case r >= 'è' && r <= 'ë':
		return 'e', true
	case r >= 'ì' && r <= 'ï':
		return 'i', true
	case r == 'ñ':
		return 'n', true
	case r >= 'ò' && r <= 'ö':
		return 'o', true
	case r >= 'ù' && r <= 'ü':
		return 'u', true
	case r == 'ý', r == 'ÿ':
		return 'y', true
	}
	return 0, false
}

// Fold is the key of s under the collation: texts are equal exactly when their keys are.
func Fold(s string) string {
	s = trimSpaces(s)
	for i := range len(s) {
		c := s[i]
		if c >= utf8.RuneSelf || c >= 'A' && c <= 'Z' {
			return strings.Map(func(r rune) rune {
				return unicode.ToLower(r)
			}, s)
		}
	}
	return s
}

// Key is a string that is equal for two values of one type exactly when they are equal in SQL,
// NULLs included; for GROUP BY, DISTINCT and unique indexes. Append it to build composite keys.
func (v Value) Key() string { return string(v.AppendKey(nil)) }

// AppendKey appends the self-delimiting Key of v to b.
func (v Value) AppendKey(b []byte) []byte {
	if !v.ok {
		return append(b, 0)
	}
	switch {
	case v.typ.IsString():
		return appendKeyText(append(b, 's'), Fold(v.s))
	case v.typ.IsBinary():
		return appendKeyText(append(b, 'b'), strings.TrimRight(v.s, "\x00"))
	case v.typ.IsDecimal():
		n, s := decimalParts(v)
		var q, r big.Int
		ten := big.NewInt(10)
		for s > 0 {
			q.QuoRem(n, ten, &r)
			if r.Sign() != 0 {
				break
			}
			n.Set(&q)
			s--
		}
		if s == 0 && n.IsInt64() {
			return appendKeyInt(append(b, 'i'), n.Int64(), 0)
		}
		return appendKeyText(append(b, 'd', byte(s)), n.String())
	case v.typ.IsFloat():
		f := v.Float64()
		if f == 0 {
			f = 0 // minus zero
		}
		if n := int64(f); float64(n) == f {
			return appendKeyInt(append(b, 'i'), n, 0)
		}
		return appendKeyInt(append(b, 'f'), int64(v.lo), 0)
	case v.typ.IsInteger():
		return appendKeyInt(append(b, 'i'), int64(v.lo), 0)
	case v.typ.ID == UniqueIdentifier:
		return appendKeyInt(append(b, 'g'), int64(v.lo), v.hi)
	case v.typ.ID == DateTimeOffset:
		return appendKeyInt(append(b, 't'), int64(v.lo)-v.hi*60*tickSecond, 0)
	}
	return appendKeyInt(append(b, 't'), int64(v.lo), 0)
}

func appendKeyText(b []byte, s string) []byte {
	n := len(s)
	b = append(b, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	return append(b, s...)
}

func appendKeyInt(b []byte, lo, hi int64) []byte {
	for i := 56; i >= 0; i -= 8 {
		b = append(b, byte(hi>>i))
	}
	for i := 56; i >= 0; i -= 8 {
		b = append(b, byte(lo>>i))
	}
	return b
}
