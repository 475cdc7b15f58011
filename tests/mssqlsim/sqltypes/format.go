package sqltypes

import (
	"encoding/hex"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Format is the value as sqlcmd prints it; NULL prints as NULL.
func (v Value) Format() string {
	if !v.ok {
		return "NULL"
	}
	switch v.typ.ID {
	case SmallDateTime, DateTime, Date, Time, DateTime2, DateTimeOffset:
		return formatISO(v, " ")
	case Binary, VarBinary:
		return "0x" + strings.ToUpper(hex.EncodeToString([]byte(v.s)))
	case Float, Real:
		return formatFloat(v.Float64(), 15)
	}
	s, err := textOf(v, TNVarCharMax, 0)
	if err != nil {
		return ""
	}
	return s
}

// String is Format, for test output.
func (v Value) String() string { return v.Format() }

func formatFloat(f float64, digits int) string {
	s := strconv.FormatFloat(f, 'g', digits, 64)
	if m, e, ok := strings.Cut(s, "e"); ok {
		sign := e[:1]
		e = strings.TrimLeft(e[1:], "0")
		for len(e) < 3 {
			e = "0" + e
		}
		return m + "e" + sign + e
	}
	return s
}

func formatDecimal(v Value) string {
	n := v.Unscaled()
	s := new(big.Int).Abs(n).String()
	if k := int(v.typ.Scale); k > 0 {
		if len(s) <= k {
			s = strings.Repeat("0", k-len(s)+1) + s
		}
		s = s[:len(s)-k] + "." + s[len(s)-k:]
	}
	if n.Sign() < 0 {
		return "-" + s
	}
	return s
}

func formatGUID(g [16]byte) string {
	h := strings.ToUpper(hex.EncodeToString(g[:]))
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// formatISO is yyyy-mm-dd hh:mm:ss[.fraction][ +hh:mm] with the fraction digits of the type.
func formatISO(v Value, sep string) string {
	t := timeOfTicks(int64(v.lo))
	date := fmt.Sprintf("%04d-%02d-%02d", t.Year(), int(t.Month()), t.Day())
	clock := fmt.Sprintf("%02d:%02d:%02d", t.Hour(), t.Minute(), t.Second())
	frac := fraction(v)
	switch v.typ.ID {
	case Date:
		return date
	case Time:
		return clock + frac
	case DateTimeOffset:
		return date + sep + clock + frac + " " + zoneText(v.hi)
	}
	return date + sep + clock + frac
}

func zoneText(min int64) string {
	sign := '+'
	if min < 0 {
		sign, min = '-', -min
	}
	return fmt.Sprintf("%c%02d:%02d", sign, min/60, min%60)
}

// fraction is the fraction of a second with its point, or nothing.
func fraction(v Value) string {
	in := int64(v.lo) % tickSecond
	digits := 0
	switch v.typ.ID {
	case DateTime:
		digits = 3
	case Time, DateTime2, DateTimeOffset:
		digits = int(v.typ.Scale)
	}
	if digits == 0 {
		return ""
	}
	return "." + fmt.Sprintf("%07d", in)[:digits]
}

// textOf converts any value to text for the target character type with a CONVERT style.
func textOf(v Value, t Type, style int) (string, error) {
	switch {
	case v.typ.IsString():
		return v.s, nil
	case v.typ.IsInteger():
		return strconv.FormatInt(int64(v.lo), 10), nil
	case v.typ.IsDecimal():
		return formatDecimal(v), nil
	case v.typ.IsFloat():
		switch style {
		case 1:
			return formatFloat8(v.Float64(), 7), nil
		case 2:
			return formatFloat8(v.Float64(), 15), nil
		case 3:
			return formatFloat(v.Float64(), 17), nil
		}
		return formatFloat(v.Float64(), 6), nil
	case v.typ.ID == UniqueIdentifier:
		return formatGUID(v.GUID()), nil
	case v.typ.IsBinary():
		switch style {
		case 1:
			return "0x" + strings.ToUpper(hex.EncodeToString([]byte(v.s))), nil
		case 2:
			return strings.ToUpper(hex.EncodeToString([]byte(v.s))), nil
		case 0:
			if t.IsUnicode() {
				b := v.s
				u := make([]uint16, 0, len(b)/2+1)
				for i := 0; i < len(b); i += 2 {
					c := uint16(b[i])
					if i+1 < len(b) {
						c |= uint16(b[i+1]) << 8
					}
					u = append(u, c)
				}
				return string(utf16.Decode(u)), nil
			}
			return decode1252(v.s), nil
		}
		return "", errStyle(style, v.typ)
	case v.typ.IsTemporal():
		return formatStyle(v, style)
	}
	return "", errExplicit(v.typ, t)
}

func formatFloat8(f float64, digits int) string {
	s := strconv.FormatFloat(f, 'e', digits, 64)
	m, e, _ := strings.Cut(s, "e")
	sign := e[:1]
	e = strings.TrimLeft(e[1:], "0")
	for len(e) < 3 {
		e = "0" + e
	}
	return m + "e" + sign + e
}

func errStyle(style int, from Type) *Error {
	return Errf(281, 16, 1, "%d is not a valid style number when converting from %s to a character string.", style, from.ID.Name())
}

// formatStyle renders a temporal value in one of CONVERT's styles.
func formatStyle(v Value, style int) (string, error) {
	t := timeOfTicks(int64(v.lo))
	hasDate, hasTime := v.typ.ID != Time, v.typ.ID != Date
	mon := t.Month().String()[:3]
	h12, ap := t.Hour()%12, "AM"
	if h12 == 0 {
		h12 = 12
	}
	if t.Hour() >= 12 {
		ap = "PM"
	}
	frac := fraction(v)
	clock := fmt.Sprintf("%02d:%02d:%02d", t.Hour(), t.Minute(), t.Second())
	both := func(date, tod string) string {
		switch {
		case hasDate && hasTime:
			return date + " " + tod
		case hasDate:
			return date
		}
		return tod
	}
	y, m, d := t.Year(), int(t.Month()), t.Day()
	newTypes := v.typ.ID == Date || v.typ.ID == Time || v.typ.ID == DateTime2 || v.typ.ID == DateTimeOffset
	zone := ""
	if v.typ.ID == DateTimeOffset {
		zone = " " + zoneText(v.hi)
	}
	switch style {
	case 0, 100:
		if newTypes && style == 0 {
			// the newer types default to style 121
			return formatISO(v, " "), nil
		}
		return both(fmt.Sprintf("%s %2d %04d", mon, d, y), fmt.Sprintf("%2d:%02d%s", h12, t.Minute(), ap)) + zone, nil
	case 1, 101:
		return fmt.Sprintf("%02d/%02d/%s", m, d, yearText(y, style)), nil
	case 2, 102:
		return fmt.Sprintf("%s.%02d.%02d", yearText(y, style), m, d), nil
	case 3, 103:
		return fmt.Sprintf("%02d/%02d/%s", d, m, yearText(y, style)), nil
	case 4, 104:
		return fmt.Sprintf("%02d.%02d.%s", d, m, yearText(y, style)), nil
	case 5, 105:
		return fmt.Sprintf("%02d-%02d-%s", d, m, yearText(y, style)), nil
	case 6, 106:
		return fmt.Sprintf("%02d %s %s", d, mon, yearText(y, style)), nil
	case 7, 107:
		return fmt.Sprintf("%s %02d, %s", mon, d, yearText(y, style)), nil
	case 8, 24, 108:
		return clock, nil
	case 9, 109:
		return both(fmt.Sprintf("%s %2d %04d", mon, d, y), fmt.Sprintf("%2d:%02d:%02d%s%s", h12, t.Minute(), t.Second(), strings.Replace(frac, ".", colonFor(v), 1), ap)), nil
	case 10, 110:
		return fmt.Sprintf("%02d-%02d-%s", m, d, yearText(y, style)), nil
	case 11, 111:
		return fmt.Sprintf("%s/%02d/%02d", yearText(y, style), m, d), nil
	case 12, 112:
		return fmt.Sprintf("%s%02d%02d", yearText(y, style), m, d), nil
	case 13, 113:
		return both(fmt.Sprintf("%02d %s %04d", d, mon, y), clock+strings.Replace(frac, ".", colonFor(v), 1)), nil
	case 14, 114:
		return clock + strings.Replace(frac, ".", colonFor(v), 1), nil
	case 20, 120:
		return both(fmt.Sprintf("%04d-%02d-%02d", y, m, d), clock) + zone, nil
	case 21, 25, 121:
		return formatISO(v, " "), nil
	case 23:
		return fmt.Sprintf("%04d-%02d-%02d", y, m, d), nil
	case 126, 127:
		f := frac
		if v.typ.ID == DateTime && strings.Trim(f, ".0") == "" {
			f = ""
		}
		switch {
		case !hasTime:
			return fmt.Sprintf("%04d-%02d-%02d", y, m, d), nil
		case !hasDate:
			return clock + f, nil
		}
		z := ""
		if v.typ.ID == DateTimeOffset {
			z = zoneText(v.hi)
			if style == 127 && v.hi == 0 {
				z = "Z"
			}
		}
		return fmt.Sprintf("%04d-%02d-%02dT%s%s%s", y, m, d, clock, f, z), nil
	}
	return "", errStyle(style, v.typ)
}

func colonFor(v Value) string {
	if v.typ.ID == DateTime {
		return ":"
	}
	return "."
}

func yearText(y, style int) string {
	if style < 100 {
		return fmt.Sprintf("%02d", y%100)
	}
	return fmt.Sprintf("%04d", y)
}

const cp1252High = "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ"

func encode1252(s string) string {
	b := make([]byte, 0, len(s))
	for _, r := range s {
		switch {
		case r < 0x80 || r >= 0xA0 && r <= 0xFF:
			b = append(b, byte(r))
		default:
			c := byte('?')
			i := byte(0x80)
			for _, h := range cp1252High {
				if h == r {
					c = i
					break
				}
				i++
			}
			b = append(b, c)
		}
	}
	return string(b)
}

func decode1252(s string) string {
	high := []rune(cp1252High)
	var sb strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 0x80 && c < 0xA0 {
			sb.WriteRune(high[c-0x80])
		} else {
			sb.WriteRune(rune(c))
		}
	}
	return sb.String()
}

// Encode1252 is s in code page 1252, the bytes of a varchar on the wire under this collation.
func Encode1252(s string) []byte { return []byte(encode1252(s)) }

// Decode1252 reads text in code page 1252.
func Decode1252(b []byte) string { return decode1252(string(b)) }
