package tsql

import (
	"math"
	"math/big"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

func pow10(n int64) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(max(n, 0)), nil)
}

func dateFuncs(m map[string]builtin) {
	now := func(t sqltypes.Type) builtin {
		return builtin{fixed: t, stable: true, eval: func(f *frame, _ []value) (value, error) {
			f.ex.timely()
			return sqltypes.NewTime(t, f.ex.now), nil
		}}
	}
	m["getdate"], m["getutcdate"], m["current_timestamp"] = now(sqltypes.TDateTime), now(sqltypes.TDateTime), now(sqltypes.TDateTime)
	m["sysdatetime"], m["sysutcdatetime"], m["sysdatetimeoffset"] = now(sqltypes.TDateTime2), now(sqltypes.TDateTime2), now(sqltypes.TDateTimeOffset)
	part := func(name string, fn func(t time.Time) int) {
		m[name] = builtin{min: 1, max: 1, fixed: sqltypes.TInt, strict: true, eval: func(_ *frame, a []value) (value, error) {
			t, err := temporal(a[0])
			if err != nil {
				return t, err
			}
			return sqltypes.NewInt(int32(fn(t.Time()))), nil
		}}
	}
	part("year", time.Time.Year)
	part("month", func(t time.Time) int { return int(t.Month()) })
	part("day", time.Time.Day)
	m["eomonth"] = builtin{min: 1, max: 2, fixed: sqltypes.TDate, strict: true, eval: func(_ *frame, a []value) (value, error) {
		v, err := temporal(a[0])
		if err != nil {
			return v, err
		}
		n := int64(0)
		if len(a) == 2 {
			if n, err = num(a[1]); err != nil {
				return value{}, err
			}
		}
		if n > 120000 || n < -120000 {
			return value{}, errNum(517, 16, 1, "Adding a value to a 'date' column caused an overflow.")
		}
		t := v.Time()
		return sqltypes.NewTime(sqltypes.TDate, time.Date(t.Year(), t.Month()+time.Month(n)+1, 0, 0, 0, 0, 0, time.UTC)), nil
	}}
	m["datefromparts"] = builtin{min: 3, max: 3, fixed: sqltypes.TDate, strict: true, eval: func(_ *frame, a []value) (value, error) {
		var n [3]int64
		for i := range n {
			var err error
			if n[i], err = num(a[i]); err != nil {
				return value{}, err
			}
		}
		if n[0] < 1 || n[0] > 9999 || n[1] < 1 || n[1] > 12 || n[2] < 1 || n[2] > 31 {
			return value{}, errNum(289, 16, 1, "Cannot construct data type date, some of the arguments have values which are not valid.")
		}
		t := time.Date(int(n[0]), time.Month(n[1]), int(n[2]), 0, 0, 0, 0, time.UTC)
		if int64(t.Day()) != n[2] {
			return value{}, errNum(289, 16, 1, "Cannot construct data type date, some of the arguments have values which are not valid.")
		}
		return sqltypes.NewTime(sqltypes.TDate, t), nil
	}}
	m["isdate"] = builtin{min: 1, max: 1, fixed: sqltypes.TInt, eval: func(_ *frame, a []value) (value, error) {
		if !a[0].IsNull() && a[0].Type().IsString() && strings.TrimSpace(a[0].Text()) != "" {
			if _, err := sqltypes.Cast(a[0], sqltypes.TDateTime, 0); err == nil {
				return sqltypes.NewInt(1), nil
			}
		}
		return sqltypes.NewInt(0), nil
	}}
}

// temporal converts an argument to a date or time; text and numbers become datetime.
func temporal(v value) (value, error) {
	t := v.Type()
	if t.IsTemporal() {
		return v, nil
	}
	if t.IsString() {
		return sqltypes.Cast(v, sqltypes.TDateTime2, 0)
	}
	return sqltypes.Cast(v, sqltypes.TDateTime, 0)
}

// datePart is the canonical name of a date part.
func datePart(s string) (string, bool) {
	switch s {
	case "year", "yy", "yyyy":
		return "year", true
	case "quarter", "qq", "q":
		return "quarter", true
	case "month", "mm", "m":
		return "month", true
	case "dayofyear", "dy", "y":
		return "dayofyear", true
	case "day", "dd", "d":
		return "day", true
	case "week", "wk", "ww":
		return "week", true
	case "weekday", "dw", "w":
		return "weekday", true
	case "hour", "hh":
		return "hour", true
	case "minute", "mi", "n":
		return "minute", true
	case "second", "ss", "s":
		return "second", true
	case "millisecond", "ms":
		return "millisecond", true
	case "microsecond", "mcs":
		return "microsecond", true
	case "nanosecond", "ns":
		return "nanosecond", true
	case "iso_week", "isowk", "isoww":
		return "iso_week", true
	case "tzoffset", "tz":
		return "tzoffset", true
	}
	return "", false
}

// dateFunc binds the functions that take a date part.
func (b *binder) dateFunc(sc *scope, x *funcExpr) (bexpr, error) {
	part, ok := datePart(x.part)
	if !ok {
		return bexpr{}, errBind(x.line, 155, 15, 1, "'%s' is not a recognized %s option.", x.part, x.name)
	}
	want := 1
	if x.name == "dateadd" || strings.HasPrefix(x.name, "datediff") {
		want = 2
	}
	if len(x.args) != want {
		return bexpr{}, errArgs(x, want+1, want+1)
	}
	args, err := b.exprs(sc, x.args)
	if err != nil {
		return bexpr{}, err
	}
	var t sqltypes.Type
	var fn func(a []value) (value, error)
	switch x.name {
	case "dateadd":
		t = args[1].typ
		if !t.IsTemporal() {
			t = sqltypes.TDateTime
		}
		if (part == "microsecond" || part == "nanosecond") && (t.ID == sqltypes.DateTime || t.ID == sqltypes.SmallDateTime || t.ID == sqltypes.Date) {
			return bexpr{}, errBind(x.line, 9810, 16, 1, "The datepart %s is not supported by date function dateadd for data type %s.", part, t.ID.Name())
		}
		typ := t
		fn = func(a []value) (value, error) { return dateAdd(part, a[0], a[1], typ) }
	case "datediff", "datediff_big":
		big := x.name == "datediff_big"
		t = sqltypes.TInt
		if big {
			t = sqltypes.TBigInt
		}
		fn = func(a []value) (value, error) { return dateDiff(part, a[0], a[1], big) }
	case "datepart":
		t = sqltypes.TInt
		fn = func(a []value) (value, error) {
			v, err := temporal(a[0])
			if err != nil {
				return v, err
			}
			return sqltypes.NewInt(int32(partOf(part, v))), nil
		}
	case "datename":
		t = fixedNV(30)
		fn = func(a []value) (value, error) {
			v, err := temporal(a[0])
			if err != nil {
				return v, err
			}
			switch part {
			case "month":
				return sqltypes.NewNVarChar(v.Time().Month().String()), nil
			case "weekday":
				return sqltypes.NewNVarChar(v.Time().Weekday().String()), nil
			}
			return sqltypes.Cast(sqltypes.NewInt(int32(partOf(part, v))), fixedNV(30), 0)
		}
	default: // datetrunc
		t = args[0].typ
		if !t.IsTemporal() {
			t = sqltypes.TDateTime2
		}
		typ := t
		fn = func(a []value) (value, error) {
			v, err := temporal(a[0])
			if err != nil {
				return v, err
			}
			return sqltypes.Cast(sqltypes.NewTime(sqltypes.TDateTime2, truncate(part, v.Time())), typ, 0)
		}
	}
	return bexpr{typ: t, eval: func(f *frame) (value, error) {
		vals := make([]value, len(args))
		for i := range args {
			v, err := args[i].eval(f)
			if err != nil {
				return v, err
			}
			if v.IsNull() {
				return sqltypes.Null(t), nil
			}
			vals[i] = v
		}
		return fn(vals)
	}}, nil
}

func truncate(part string, t time.Time) time.Time {
	y, m, d := t.Date()
	h, mi, s := t.Clock()
	switch part {
	case "year":
		m, d, h, mi, s = 1, 1, 0, 0, 0
	case "quarter":
		m = (m-1)/3*3 + 1
		d, h, mi, s = 1, 0, 0, 0
	case "month":
		d, h, mi, s = 1, 0, 0, 0
	case "week":
		d -= int(t.Weekday())
		h, mi, s = 0, 0, 0
	case "iso_week":
		d -= (int(t.Weekday()) + 6) % 7
		h, mi, s = 0, 0, 0
	case "hour":
		mi, s = 0, 0
	case "minute":
		s = 0
	case "second":
	case "millisecond":
		return time.Date(y, m, d, h, mi, s, t.Nanosecond()/1e6*1e6, time.UTC)
	case "microsecond":
		return time.Date(y, m, d, h, mi, s, t.Nanosecond()/1e3*1e3, time.UTC)
	default:
		h, mi, s = 0, 0, 0
	}
	return time.Date(y, m, d, h, mi, s, 0, time.UTC)
}

func errDateOverflow(t sqltypes.Type) error {
	return errNum(517, 16, 1, "Adding a value to a '%s' column caused an overflow.", t.ID.Name())
}

func dateAdd(part string, n, d value, t sqltypes.Type) (value, error) {
	w, err := sqltypes.Cast(n, sqltypes.TBigInt, 0)
	if err != nil {
		return w, err
	}
	k := w.Int64()
	v, err := temporal(d)
	if err != nil {
		return v, err
	}
	if k > math.MaxInt32*100 || k < math.MinInt32*100 {
		return value{}, errDateOverflow(t)
	}
	at := v.Time()
	switch part {
	case "year", "quarter", "month":
		months := k
		switch part {
		case "year":
			months = k * 12
		case "quarter":
			months = k * 3
		}
		if months > 120_000 || months < -120_000 {
			return value{}, errDateOverflow(t)
		}
		y, m, day := at.Date()
		first := time.Date(y, m+time.Month(months), 1, at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), at.Location())
		last := first.AddDate(0, 1, -1).Day()
		at = first.AddDate(0, 0, min(day, last)-1)
	case "day", "dayofyear", "weekday", "week", "iso_week":
		days := k
		if part == "week" || part == "iso_week" {
			days *= 7
		}
		if days > 4_000_000 || days < -4_000_000 {
			return value{}, errDateOverflow(t)
		}
		at = at.AddDate(0, 0, int(days))
	default:
		sec, ns := int64(0), int64(0)
		switch part {
		case "hour":
			sec = k * 3600
		case "minute":
			sec = k * 60
		case "second":
			sec = k
		case "millisecond":
			sec, ns = k/1000, k%1000*1e6
		case "microsecond":
			sec, ns = k/1e6, k%1e6*1e3
		case "nanosecond":
			sec, ns = k/1e9, k%1e9
		default:
			return value{}, errNum(9810, 16, 1, "The datepart %s is not supported by date function dateadd for data type %s.", part, t.ID.Name())
		}
		if sec > 320_000_000_000 || sec < -320_000_000_000 {
			return value{}, errDateOverflow(t)
		}
		// in steps, since a Duration holds 292 years only
		at = at.AddDate(0, 0, int(sec/86400)).Add(time.Duration(sec%86400)*time.Second + time.Duration(ns))
	}
	if at.Year() < 1 || at.Year() > 9999 {
		return value{}, errDateOverflow(t)
	}
	src := sqltypes.NewTime(sqltypes.TDateTime2, at)
	if t.ID == sqltypes.DateTimeOffset {
		return sqltypes.NewTime(t, at), nil
	}
	r, err := sqltypes.Cast(src, t, 0)
	if err != nil {
		return value{}, errDateOverflow(t)
	}
	return r, nil
}

func dateDiff(part string, a, c value, wide bool) (value, error) {
	x, err := temporal(a)
	if err != nil {
		return x, err
	}
	y, err := temporal(c)
	if err != nil {
		return y, err
	}
	s, e := x.Time().UTC(), y.Time().UTC()
	unit := func(d time.Duration) *big.Int {
		// boundaries crossed: difference of the floors since the year one
		count := func(t time.Time) *big.Int {
			n := big.NewInt(t.Unix() + 62_135_596_800)
			n.Mul(n, big.NewInt(1e9))
			n.Add(n, big.NewInt(int64(t.Nanosecond())))
			return n.Div(n, big.NewInt(int64(d)))
		}
		return count(e).Sub(count(e), count(s))
	}
	months := func(t time.Time) int64 { return int64(t.Year())*12 + int64(t.Month()) - 1 }
	days := func(t time.Time) int64 { return (t.Unix() + 62_135_596_800) / 86400 }
	var n *big.Int
	switch part {
	case "year":
		n = big.NewInt(int64(e.Year() - s.Year()))
	case "quarter":
		n = big.NewInt(months(e)/3 - months(s)/3)
	case "month":
		n = big.NewInt(months(e) - months(s))
	case "week":
		// weeks begin on Sunday; 0001-01-01 was a Monday
		n = big.NewInt((days(e)+1)/7 - (days(s)+1)/7)
	case "iso_week":
		n = big.NewInt(days(e)/7 - days(s)/7)
	case "day", "dayofyear", "weekday":
		n = big.NewInt(days(e) - days(s))
	case "hour":
		n = unit(time.Hour)
	case "minute":
		n = unit(time.Minute)
	case "second":
		n = unit(time.Second)
	case "millisecond":
		n = unit(time.Millisecond)
	case "microsecond":
		n = unit(time.Microsecond)
	case "nanosecond":
		n = unit(time.Nanosecond)
	default:
		return value{}, errNum(9806, 16, 11, "The datepart %s is not supported by date function datediff.", part)
	}
	if !n.IsInt64() || !wide && (n.Int64() > math.MaxInt32 || n.Int64() < math.MinInt32) {
		name := "datediff"
		if wide {
			name = "datediff_big"
		}
		return value{}, errNum(535, 16, 0, "The %s function resulted in an overflow. The number of dateparts separating two date/time instances is too large. Try to use %s with a less precise datepart.", name, name)
	}
	if wide {
		return sqltypes.NewBigInt(n.Int64()), nil
	}
	return sqltypes.NewInt(int32(n.Int64())), nil
}

func partOf(part string, v value) int {
	t := v.Time()
	switch part {
	case "year":
		return t.Year()
	case "quarter":
		return (int(t.Month())-1)/3 + 1
	case "month":
		return int(t.Month())
	case "dayofyear":
		return t.YearDay()
	case "day":
		return t.Day()
	case "week":
		first := time.Date(t.Year(), 1, 1, 0, 0, 0, 0, time.UTC)
		return (t.YearDay()-1+int(first.Weekday()))/7 + 1
	case "iso_week":
		_, w := t.ISOWeek()
		return w
	case "weekday":
		return int(t.Weekday()) + 1
	case "hour":
		return t.Hour()
	case "minute":
		return t.Minute()
	case "second":
		return t.Second()
	case "millisecond":
		return t.Nanosecond() / 1e6
	case "microsecond":
		return t.Nanosecond() / 1e3
	case "nanosecond":
		return t.Nanosecond()
	case "tzoffset":
		_, off := t.Zone()
		return off / 60
	}
	return 0
}
