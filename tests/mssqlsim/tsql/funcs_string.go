package tsql

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// maxResult bounds the text that REPLICATE, SPACE and the like make.
const maxResult = 1 << 20

func stringFuncs(m map[string]builtin) {
	text := func(min, max int, typ func([]bexpr) sqltypes.Type, fn func(a []value) (value, error)) builtin {
		return builtin{min: min, max: max, typ: typ, strict: true, eval: func(_ *frame, a []value) (value, error) { return fn(a) }}
	}
	one := func(fn func(string) string) builtin {
		return text(1, 1, textType, func(a []value) (value, error) { return like(a[0], fn(str(a[0]))), nil })
	}
	m["upper"] = one(strings.ToUpper)
	m["lower"] = one(strings.ToLower)
	m["reverse"] = one(func(s string) string {
		r := []rune(s)
		for i, j := 0, len(r)-1; i < j; i, j = i+1, j-1 {
			r[i], r[j] = r[j], r[i]
		}
		return string(r)
	})
	trim := func(left, right bool) builtin {
		return text(1, 2, textType, func(a []value) (value, error) {
			set, s := " ", str(a[0])
			v := a[0]
			if len(a) == 2 {
				set, s, v = str(a[0]), str(a[1]), a[1]
			}
			if left {
				s = strings.TrimLeft(s, set)
			}
			if right {
				s = strings.TrimRight(s, set)
			}
			return like(v, s), nil
		})
	}
	m["ltrim"], m["rtrim"], m["trim"] = trim(true, false), trim(false, true), trim(true, true)
	m["len"] = text(1, 1, bigOrInt, func(a []value) (value, error) {
		return sqltypes.NewInt(int32(sqltypes.TextLen(strings.TrimRight(str(a[0]), " ")))), nil
	})
	m["datalength"] = builtin{min: 1, max: 1, typ: bigOrInt, strict: true, eval: func(_ *frame, a []value) (value, error) {
		return sqltypes.NewInt(int32(dataLength(a[0]))), nil
	}}
	m["left"] = text(2, 2, textType, func(a []value) (value, error) {
		n, err := num(a[1])
		if err == nil && n < 0 {
			err = errNum(536, 16, 1, "Invalid length parameter passed to the LEFT function.")
		}
		return like(a[0], substr(str(a[0]), 1, n)), err
	})
	m["right"] = text(2, 2, textType, func(a []value) (value, error) {
		n, err := num(a[1])
		if err == nil && n < 0 {
			err = errNum(536, 16, 2, "Invalid length parameter passed to the RIGHT function.")
		}
		s := str(a[0])
		l := int64(sqltypes.TextLen(s))
		return like(a[0], substr(s, max(l-n+1, 1), n)), err
	})
	m["substring"] = builtin{min: 3, max: 3, strict: true, typ: func(a []bexpr) sqltypes.Type {
		if a[0].typ.IsBinary() {
			return a[0].typ
		}
		return textType(a)
	}, eval: func(_ *frame, a []value) (value, error) {
		start, err := num(a[1])
		if err != nil {
			return value{}, err
		}
		n, err := num(a[2])
		if err != nil {
			return value{}, err
		}
		if n < 0 {
			return value{}, errNum(537, 16, 3, "Invalid length parameter passed to the LEFT or SUBSTRING function.")
		}
		if a[0].Type().IsBinary() {
			b := a[0].Bytes()
			if start < 1 {
				n += start - 1
				start = 1
			}
			lo := min(start-1, int64(len(b)))
			return sqltypes.NewBinary(b[lo:max(lo, min(lo+n, int64(len(b))))]), nil
		}
		return like(a[0], substr(str(a[0]), start, n)), nil
	}}
	m["charindex"] = text(2, 3, func([]bexpr) sqltypes.Type { return sqltypes.TInt }, func(a []value) (value, error) {
		start := int64(1)
		if len(a) == 3 {
			var err error
			if start, err = num(a[2]); err != nil {
				return value{}, err
			}
		}
		return sqltypes.NewInt(int32(charIndex(str(a[0]), str(a[1]), start))), nil
	})
	m["patindex"] = text(2, 2, func([]bexpr) sqltypes.Type { return sqltypes.TInt }, func(a []value) (value, error) {
		return sqltypes.NewInt(int32(patIndex(str(a[0]), str(a[1])))), nil
	})
	m["replace"] = text(3, 3, longText, func(a []value) (value, error) {
		return like(a[0], replaceFold(str(a[0]), str(a[1]), str(a[2]))), nil
	})
	m["stuff"] = text(4, 4, longText, func(a []value) (value, error) {
		s := str(a[0])
		start, err := num(a[1])
		if err != nil {
			return value{}, err
		}
		n, err := num(a[2])
		if err != nil {
			return value{}, err
		}
		l := int64(sqltypes.TextLen(s))
		if start < 1 || start > l || n < 0 {
			return sqltypes.Null(sqltypes.TNVarChar(4000)), nil
		}
		return like(a[0], substr(s, 1, start-1)+str(a[3])+substr(s, min(start+n, l+1), l)), nil
	})
	m["replicate"] = text(2, 2, longText, func(a []value) (value, error) {
		n, err := num(a[1])
		s := str(a[0])
		if err != nil || n < 0 {
			return sqltypes.Null(sqltypes.TNVarChar(4000)), err
		}
		if s != "" && n > int64(maxResult/len(s)) {
			n = int64(maxResult / len(s))
		}
		if s == "" {
			n = 0
		}
		return like(a[0], strings.Repeat(s, int(n))), nil
	})
	m["space"] = text(1, 1, func([]bexpr) sqltypes.Type { return sqltypes.TVarChar(8000) }, func(a []value) (value, error) {
		n, err := num(a[0])
		if err != nil || n < 0 {
			return sqltypes.Null(sqltypes.TVarChar(8000)), err
		}
		return sqltypes.NewVarChar(strings.Repeat(" ", int(min(n, 8000)))), nil
	})
	m["ascii"] = text(1, 1, func([]bexpr) sqltypes.Type { return sqltypes.TInt }, func(a []value) (value, error) {
		b := sqltypes.Encode1252(str(a[0]))
		if len(b) == 0 {
			return sqltypes.Null(sqltypes.TInt), nil
		}
		return sqltypes.NewInt(int32(b[0])), nil
	})
	m["unicode"] = text(1, 1, func([]bexpr) sqltypes.Type { return sqltypes.TInt }, func(a []value) (value, error) {
		u := utf16.Encode([]rune(str(a[0])))
		if len(u) == 0 {
			return sqltypes.Null(sqltypes.TInt), nil
		}
		return sqltypes.NewInt(int32(u[0])), nil
	})
	m["char"] = text(1, 1, func([]bexpr) sqltypes.Type { return sqltypes.TVarChar(1) }, func(a []value) (value, error) {
		n, err := num(a[0])
		if err != nil || n < 0 || n > 255 {
			return sqltypes.Null(sqltypes.TVarChar(1)), err
		}
		return sqltypes.NewVarChar(sqltypes.Decode1252([]byte{byte(n)})), nil
	})
	m["nchar"] = text(1, 1, func([]bexpr) sqltypes.Type { return fixedNV(1) }, func(a []value) (value, error) {
		n, err := num(a[0])
		if err != nil || n < 0 || n > 65535 {
			return sqltypes.Null(fixedNV(1)), err
		}
		return sqltypes.NewNVarChar(string(rune(n))), nil
	})
	m["quotename"] = text(1, 2, func([]bexpr) sqltypes.Type { return fixedNV(258) }, func(a []value) (value, error) {
		q := "["
		if len(a) == 2 {
			q = str(a[1])
		}
		s := str(a[0])
		if sqltypes.TextLen(s) > 128 {
			return sqltypes.Null(fixedNV(258)), nil
		}
		open, closing := q, q
		switch q {
		case "[", "]", "[]":
			open, closing = "[", "]"
		case "(", ")":
			open, closing = "(", ")"
		case "<", ">":
			open, closing = "<", ">"
		case "{", "}":
			open, closing = "{", "}"
		case "'", "\"", "`":
		default:
			return sqltypes.Null(fixedNV(258)), nil
		}
		return sqltypes.NewNVarChar(open + strings.ReplaceAll(s, closing, closing+closing) + closing), nil
	})
	m["concat"] = builtin{min: 2, max: 254, typ: concatType, eval: func(_ *frame, a []value) (value, error) { return concat("", a) }}
	m["concat_ws"] = builtin{min: 3, max: 254, typ: concatType, eval: func(_ *frame, a []value) (value, error) {
		l := make([]value, 0, len(a))
		for _, v := range a[1:] {
			if !v.IsNull() {
				l = append(l, v)
			}
		}
		return concat(str(a[0]), l)
	}}
	m["str"] = text(1, 3, func([]bexpr) sqltypes.Type { return sqltypes.TVarChar(8000) }, func(a []value) (value, error) {
		f, err := sqltypes.Cast(a[0], sqltypes.TFloat, 0)
		if err != nil {
			return f, err
		}
		length, dec := int64(10), int64(0)
		if len(a) > 1 {
			if length, err = num(a[1]); err != nil {
				return value{}, err
			}
		}
		if len(a) > 2 {
			if dec, err = num(a[2]); err != nil {
				return value{}, err
			}
		}
		length, dec = max(min(length, 8000), 1), max(min(dec, 16), 0)
		s := strconv.FormatFloat(f.Float64(), 'f', int(dec), 64)
		if int64(len(s)) > length {
			s = strings.Repeat("*", int(length))
		}
		return sqltypes.NewVarChar(strings.Repeat(" ", int(length)-len(s)) + s), nil
	})
	m["translate"] = text(3, 3, longText, func(a []value) (value, error) {
		from, to := []rune(str(a[1])), []rune(str(a[2]))
		if len(from) != len(to) {
			return value{}, errNum(9828, 16, 1, "The second and third arguments of the TRANSLATE built-in function must contain an equal number of characters.")
		}
		return like(a[0], strings.Map(func(r rune) rune {
			for i, c := range from {
				if strings.EqualFold(string(c), string(r)) {
					return to[i]
				}
			}
			return r
		}, str(a[0]))), nil
	})
	m["parsename"] = text(2, 2, func([]bexpr) sqltypes.Type { return fixedNV(128) }, func(a []value) (value, error) {
		n, err := num(a[1])
		null := sqltypes.Null(fixedNV(128))
		o, ok := splitName(str(a[0]))
		if err != nil || !ok {
			return null, err
		}
		parts := [...]string{o.name, o.schema, o.db, o.server}
		if n < 1 || n > 4 || parts[n-1] == "" {
			return null, nil
		}
		return sqltypes.NewNVarChar(parts[n-1]), nil
	})
	m["hashbytes"] = builtin{min: 2, max: 2, fixed: sqltypes.TVarBinary(8000), strict: true, eval: func(_ *frame, a []value) (value, error) {
		return hashBytes(str(a[0]), a[1])
	}}
	m["formatmessage"] = builtin{min: 1, max: 21, fixed: fixedNV(2047), eval: func(_ *frame, a []value) (value, error) {
		if a[0].IsNull() || !a[0].Type().IsString() {
			return sqltypes.Null(fixedNV(2047)), nil
		}
		s, err := formatMessage(a[0].Text(), a[1:])
		if err != nil {
			return sqltypes.Null(fixedNV(2047)), nil
		}
		return sqltypes.NewNVarChar(s), nil
	}}
	m["json_value"] = text(2, 2, func([]bexpr) sqltypes.Type { return fixedNV(4000) }, func(a []value) (value, error) {
		return jsonValue(str(a[0]), str(a[1]))
	})
	m["isjson"] = text(1, 1, func([]bexpr) sqltypes.Type { return sqltypes.TInt }, func(a []value) (value, error) {
		s := strings.TrimSpace(str(a[0]))
		ok := json.Valid([]byte(s)) && (strings.HasPrefix(s, "{") || strings.HasPrefix(s, "["))
		if ok {
			return sqltypes.NewInt(1), nil
		}
		return sqltypes.NewInt(0), nil
	})
	m["isnumeric"] = builtin{min: 1, max: 1, fixed: sqltypes.TInt, eval: func(_ *frame, a []value) (value, error) {
		if !a[0].IsNull() {
			if a[0].Type().IsNumber() {
				return sqltypes.NewInt(1), nil
			}
			s := strings.TrimSpace(str(a[0]))
			if _, err := sqltypes.Cast(sqltypes.NewVarChar(s), sqltypes.TFloat, 0); err == nil && s != "" {
				return sqltypes.NewInt(1), nil
			}
		}
		return sqltypes.NewInt(0), nil
	}}
}

func dataLength(v value) int {
	switch t := v.Type(); {
	case t.IsUnicode():
		return 2 * sqltypes.TextLen(v.Text())
	case t.IsString():
		return sqltypes.TextLen(v.Text())
	case t.IsBinary():
		return len(v.Bytes())
	default:
		switch t.ID {
		case sqltypes.Bit, sqltypes.TinyInt:
			return 1
		case sqltypes.SmallInt:
			return 2
		case sqltypes.Int, sqltypes.Real, sqltypes.SmallDateTime:
			return 4
		case sqltypes.Date:
			return 3
		case sqltypes.UniqueIdentifier:
			return 16
		case sqltypes.DateTimeOffset:
			return 10
		case sqltypes.Decimal, sqltypes.Numeric:
			switch {
			case t.Prec <= 9:
				return 5
			case t.Prec <= 19:
				return 9
			case t.Prec <= 28:
				return 13
			}
			return 17
		}
		return 8
	}
}

func concatType(args []bexpr) sqltypes.Type {
	unicode, long := false, false
	for _, a := range args {
		unicode = unicode || a.typ.IsUnicode()
		long = long || a.typ.Len == sqltypes.Max
	}
	switch {
	case unicode && long:
		return sqltypes.TNVarCharMax
	case unicode:
		return fixedNV(4000)
	case long:
		return sqltypes.TVarCharMax
	}
	return sqltypes.TVarChar(8000)
}

func concat(sep string, l []value) (value, error) {
	var b strings.Builder
	unicode := false
	for i, v := range l {
		if i > 0 {
			b.WriteString(sep)
		}
		unicode = unicode || v.Type().IsUnicode()
		if !v.IsNull() {
			b.WriteString(str(v))
		}
	}
	if unicode {
		return sqltypes.NewNVarChar(b.String()), nil
	}
	return sqltypes.NewVarChar(b.String()), nil
}

// charIndex finds sub in s from the 1-based position start, without regard to case.
func charIndex(sub, s string, start int64) int {
	if sub == "" {
		return 0
	}
	a, b := []rune(strings.ToLower(s)), []rune(strings.ToLower(sub))
	for i := int(max(start, 1)) - 1; i >= 0 && i+len(b) <= len(a); i++ {
		if string(a[i:i+len(b)]) == string(b) {
			return i + 1
		}
	}
	return 0
}

func patIndex(pattern, s string) int {
	r := []rune(s)
	open := strings.HasPrefix(pattern, "%")
	p := strings.TrimPrefix(pattern, "%")
	for i := 0; i <= len(r); i++ {
		if likeMatch(string(r[i:]), p, -1) {
			return i + 1
		}
		if !open {
			break
		}
	}
	return 0
}

// replaceFold replaces without regard to case.
func replaceFold(s, old, repl string) string {
	if old == "" {
		return s
	}
	ls, lo := strings.ToLower(s), strings.ToLower(old)
	if len(ls) != len(s) {
		return strings.ReplaceAll(s, old, repl)
	}
	var b strings.Builder
	for {
		i := strings.Index(ls, lo)
		if i < 0 || b.Len() > maxResult {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		b.WriteString(repl)
		s, ls = s[i+len(lo):], ls[i+len(lo):]
	}
}

func hashBytes(algorithm string, v value) (value, error) {
	var b []byte
	switch {
	case v.Type().IsBinary():
		b = v.Bytes()
	case v.Type().IsString():
		w, err := sqltypes.Cast(v, sqltypes.TVarBinaryMax, 0)
		if err != nil {
			return w, err
		}
		b = w.Bytes()
	default:
		return value{}, errNum(8116, 16, 1, "Argument data type %s is invalid for argument 2 of hashbytes function.", v.Type().ID.Name())
	}
	switch strings.ToUpper(algorithm) {
	case "MD5":
		s := md5.Sum(b)
		return sqltypes.NewBinary(s[:]), nil
	case "SHA", "SHA1":
		s := sha1.Sum(b)
		return sqltypes.NewBinary(s[:]), nil
	case "SHA2_256":
		s := sha256.Sum256(b)
		return sqltypes.NewBinary(s[:]), nil
	case "SHA2_512":
		s := sha512.Sum512(b)
		return sqltypes.NewBinary(s[:]), nil
	}
	return sqltypes.Null(sqltypes.TVarBinary(8000)), nil
}

// jsonValue follows a path of names and indexes to a scalar; lax mode: anything else is NULL.
func jsonValue(doc, path string) (value, error) {
	null := sqltypes.Null(fixedNV(4000))
	d := json.NewDecoder(strings.NewReader(doc))
	d.UseNumber()
	var cur any
	if err := d.Decode(&cur); err != nil {
		return null, errNum(13609, 16, 1, "JSON text is not properly formatted. Unexpected character is found at position 0.")
	}
	path = strings.TrimPrefix(strings.TrimSpace(path), "lax ")
	if !strings.HasPrefix(path, "$") {
		return null, errNum(13607, 16, 1, "JSON path is not properly formatted. Unexpected character '%s' is found at position 0.", sqltypes.CutText(path, 1))
	}
	for p := path[1:]; p != ""; {
		switch {
		case p[0] == '.' && strings.HasPrefix(p, ".\""):
			end := strings.IndexByte(p[2:], '"')
			if end < 0 {
				return null, nil
			}
			o, ok := cur.(map[string]any)
			if !ok {
				return null, nil
			}
			cur, p = o[p[2:2+end]], p[3+end:]
		case p[0] == '.':
			end := strings.IndexAny(p[1:], ".[")
			if end < 0 {
				end = len(p) - 1
			}
			o, ok := cur.(map[string]any)
			if !ok {
				return null, nil
			}
			cur, p = o[p[1:1+end]], p[1+end:]
		case p[0] == '[':
			end := strings.IndexByte(p, ']')
			n, err := strconv.Atoi(p[1:max(end, 1)])
			l, ok := cur.([]any)
			if end < 0 || err != nil || !ok || n < 0 || n >= len(l) {
				return null, nil
			}
			cur, p = l[n], p[end+1:]
		default:
			return null, errNum(13607, 16, 1, "JSON path is not properly formatted. Unexpected character '%s' is found at position 1.", p[:1])
		}
	}
	switch v := cur.(type) {
	case string:
		return sqltypes.NewNVarChar(v), nil
	case json.Number:
		return sqltypes.NewNVarChar(v.String()), nil
	case bool:
		return sqltypes.NewNVarChar(strconv.FormatBool(v)), nil
	}
	return null, nil
}

func mathFuncs(m map[string]builtin) {
	same := func(a []bexpr) sqltypes.Type {
		t := a[0].typ
		switch {
		case t.ID == sqltypes.Bit || t.IsString() || t.ID == sqltypes.Unknown || t.ID == sqltypes.Real:
			return sqltypes.TFloat
		case t.ID == sqltypes.TinyInt || t.ID == sqltypes.SmallInt:
			return sqltypes.TInt
		}
		return t
	}
	asNumber := func(v value) (value, error) {
		t := v.Type()
		switch {
		case t.ID == sqltypes.Bit || t.IsString() || t.ID == sqltypes.Real:
			return sqltypes.Cast(v, sqltypes.TFloat, 0)
		case t.ID == sqltypes.TinyInt || t.ID == sqltypes.SmallInt:
			return sqltypes.Cast(v, sqltypes.TInt, 0)
		case !t.IsNumber():
			return v, errNum(8116, 16, 1, "Argument data type %s is invalid for argument 1 of the function.", t.ID.Name())
		}
		return v, nil
	}
	number := func(name string, fn func(v value) (value, error)) {
		m[name] = builtin{min: 1, max: 1, typ: same, strict: true, eval: func(_ *frame, a []value) (value, error) {
			v, err := asNumber(a[0])
			if err != nil {
				return v, err
			}
			return fn(v)
		}}
	}
	number("abs", func(v value) (value, error) {
		if sqltypes.Order(v, sqltypes.NewInt(0)) < 0 {
			return sqltypes.Negate(v)
		}
		return v, nil
	})
	number("sign", func(v value) (value, error) {
		return sqltypes.Cast(sqltypes.NewInt(int32(sqltypes.Order(v, sqltypes.NewInt(0)))), v.Type(), 0)
	})
	whole := func(up bool) func(v value) (value, error) {
		return func(v value) (value, error) {
			t := v.Type()
			switch {
			case t.IsFloat() && up:
				return sqltypes.NewFloat(math.Ceil(v.Float64())), nil
			case t.IsFloat():
				return sqltypes.NewFloat(math.Floor(v.Float64())), nil
			case !t.IsDecimal():
				return v, nil
			}
			to := sqltypes.Type{ID: t.ID, Prec: 38}
			n, err := sqltypes.Cast(v, sqltypes.Type{ID: t.ID, Prec: 38, Scale: t.Scale}, 0)
			if err != nil {
				return n, err
			}
			r, err := sqltypes.Cast(n, to, 0)
			if err != nil {
				return r, err
			}
			c := sqltypes.Order(r, v)
			if up && c < 0 {
				return sqltypes.Arith('+', r, sqltypes.NewInt(1))
			}
			if !up && c > 0 {
				return sqltypes.Arith('-', r, sqltypes.NewInt(1))
			}
			return r, nil
		}
	}
	number("ceiling", whole(true))
	number("floor", whole(false))
	m["round"] = builtin{min: 2, max: 3, typ: same, strict: true, eval: func(_ *frame, a []value) (value, error) {
		v, err := asNumber(a[0])
		if err != nil {
			return v, err
		}
		n, err := num(a[1])
		if err != nil {
			return value{}, err
		}
		cut := false
		if len(a) == 3 {
			c, err := num(a[2])
			if err != nil {
				return value{}, err
			}
			cut = c != 0
		}
		return round(v, n, cut)
	}}
	float := func(name string, fn func(x float64) float64) {
		m[name] = builtin{min: 1, max: 1, fixed: sqltypes.TFloat, strict: true, eval: func(_ *frame, a []value) (value, error) {
			v, err := sqltypes.Cast(a[0], sqltypes.TFloat, 0)
			if err != nil {
				return v, err
			}
			r := fn(v.Float64())
			if math.IsNaN(r) || math.IsInf(r, 0) {
				return value{}, errNum(3623, 16, 1, "An invalid floating point operation occurred.")
			}
			return sqltypes.NewFloat(r), nil
		}}
	}
	float("sqrt", math.Sqrt)
	float("square", func(x float64) float64 { return x * x })
	float("exp", math.Exp)
	float("log10", math.Log10)
	m["log"] = builtin{min: 1, max: 2, fixed: sqltypes.TFloat, strict: true, eval: func(_ *frame, a []value) (value, error) {
		v, err := sqltypes.Cast(a[0], sqltypes.TFloat, 0)
		if err != nil {
			return v, err
		}
		r := math.Log(v.Float64())
		if len(a) == 2 {
			b, err := sqltypes.Cast(a[1], sqltypes.TFloat, 0)
			if err != nil {
				return b, err
			}
			r /= math.Log(b.Float64())
		}
		if math.IsNaN(r) || math.IsInf(r, 0) {
			return value{}, errNum(3623, 16, 1, "An invalid floating point operation occurred.")
		}
		return sqltypes.NewFloat(r), nil
	}}
	m["pi"] = builtin{fixed: sqltypes.TFloat, eval: func(*frame, []value) (value, error) { return sqltypes.NewFloat(math.Pi), nil }}
	m["power"] = builtin{min: 2, max: 2, typ: same, strict: true, eval: func(_ *frame, a []value) (value, error) {
		v, err := asNumber(a[0])
		if err != nil {
			return v, err
		}
		x, err := sqltypes.Cast(v, sqltypes.TFloat, 0)
		if err != nil {
			return x, err
		}
		y, err := sqltypes.Cast(a[1], sqltypes.TFloat, 0)
		if err != nil {
			return y, err
		}
		r := math.Pow(x.Float64(), y.Float64())
		if math.IsNaN(r) || math.IsInf(r, 0) {
			return value{}, errNum(3623, 16, 1, "An invalid floating point operation occurred.")
		}
		return sqltypes.Cast(sqltypes.NewFloat(r), v.Type(), 0)
	}}
	m["rand"] = builtin{min: 0, max: 1, fixed: sqltypes.TFloat, eval: func(f *frame, _ []value) (value, error) {
		return sqltypes.NewFloat(float64(f.ex.s.random64()>>11) / (1 << 53)), nil
	}}
	extreme := func(sign int) builtin {
		return builtin{min: 1, max: 254, typ: func(args []bexpr) sqltypes.Type {
			var t sqltypes.Type
			for _, a := range args {
				t = sqltypes.Unify(t, a.typ)
			}
			return wireType(t)
		}, eval: func(_ *frame, a []value) (value, error) {
			best := a[0]
			for _, v := range a[1:] {
				if !v.IsNull() && (best.IsNull() || sqltypes.Order(v, best)*sign > 0) {
					best = v
				}
			}
			return best, nil
		}}
	}
	m["greatest"], m["least"] = extreme(1), extreme(-1)
}

// round is ROUND: half away from zero, or cut.
func round(v value, n int64, cut bool) (value, error) {
	t := v.Type()
	n = max(min(n, 38), -38)
	if t.IsFloat() {
		p := math.Pow(10, float64(n))
		x := v.Float64() * p
		if cut {
			x = math.Trunc(x)
		} else {
			x = math.Round(x)
		}
		return sqltypes.NewFloat(x / p), nil
	}
	scale := int64(0)
	if t.IsDecimal() {
		scale = int64(t.Scale)
	}
	if n >= scale {
		return v, nil
	}
	// shift the kept digits in front of the point, cut or round there, shift back
	d, err := sqltypes.Cast(v, sqltypes.TNumeric(38, int(scale)), 0)
	if err != nil {
		return d, err
	}
	u := d.Unscaled()
	unit := pow10(scale - n)
	half := pow10(scale - n)
	half.Rsh(half, 1)
	if !cut {
		if u.Sign() < 0 {
			u.Sub(u, half)
		} else {
			u.Add(u, half)
		}
	}
	u.Quo(u, unit)
	u.Mul(u, unit)
	r, err := sqltypes.NewDecimal(sqltypes.TNumeric(38, int(scale)), u)
	if err != nil {
		return r, err
	}
	return sqltypes.Cast(r, t, 0)
}
