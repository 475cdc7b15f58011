package tsql

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/json"
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
