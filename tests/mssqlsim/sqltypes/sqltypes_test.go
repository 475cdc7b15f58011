package sqltypes

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func mustType(t *testing.T, s string) Type {
	t.Helper()
	ty, err := ParseType(s)
	if err != nil {
		t.Fatalf("ParseType(%q): %v", s, err)
	}
	return ty
}

func number(err error) int32 {
	var e *Error
	if errors.As(err, &e) {
		return e.Number
	}
	if err != nil {
		return -1
	}
	return 0
}

func num(t *testing.T, s string) Value {
	t.Helper()
	v, err := ParseNumber(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

var day = time.Date(2026, 11, 29, 23, 5, 7, 123_456_700, time.UTC)

func TestCastGivesTheProductsValuesAndErrorNumbers(t *testing.T) {
	t.Parallel()
	guid, _ := ParseGUID("6F9619FF-8B86-D011-B42D-00C04FC964FF")
	for _, c := range []struct {
		name  string
		in    Value
		to    string
		style int
		want  string
		errNo int32
	}{
		{"text to int", NewVarChar(" 42 "), "int", 0, "42", 0},
		{"empty text is zero", NewVarChar(""), "int", 0, "0", 0},
		{"letters to int fail", NewVarChar("abc"), "int", 0, "", 245},
		{"a fraction in text is no int", NewVarChar("1.5"), "int", 0, "", 245},
		{"letters to bigint fail", NewVarChar("abc"), "bigint", 0, "", 8114},
		{"text beyond int overflows", NewVarChar("99999999999"), "int", 0, "", 248},
		{"text beyond tinyint overflows", NewVarChar("300"), "tinyint", 0, "", 244},
		{"int beyond tinyint overflows", NewInt(300), "tinyint", 0, "", 220},
		{"bigint beyond int overflows", NewBigInt(1 << 40), "int", 0, "", 8115},
		{"letters to numeric fail", NewVarChar("abc"), "numeric(10,2)", 0, "", 8114},
		{"numeric rounds half away from zero", num(t, "2.345"), "numeric(10,2)", 0, "2.35", 0},
		{"numeric to int truncates", num(t, "-2.9"), "int", 0, "-2", 0},
		{"numeric too large", NewInt(1000), "numeric(3,1)", 0, "", 8115},
		{"text is cut by CAST", NewNVarChar("hello"), "nvarchar(3)", 0, "hel", 0},
		{"char pads", NewVarChar("ab"), "char(4)", 0, "ab  ", 0},
		{"an int that does not fit its text is a star", NewInt(12345), "varchar(3)", 0, "*", 0},
		{"non-1252 text becomes question marks in varchar", NewNVarChar("añ中"), "varchar(10)", 0, "añ?", 0},
		{"true is a bit", NewVarChar("TRUE"), "bit", 0, "1", 0},
		{"any number is a bit", NewInt(-7), "bit", 0, "1", 0},
		{"date text to datetime", NewVarChar("2026-11-29 23:05:07.126"), "datetime", 0, "2026-11-29 23:05:07.127", 0},
		{"iso T text", NewVarChar("2026-11-29T23:05:07"), "datetime2(0)", 0, "2026-11-29 23:05:07", 0},
		{"compact date", NewVarChar("20261129"), "datetime", 0, "2026-11-29 00:00:00.000", 0},
		{"month name", NewVarChar("Nov 29 2026 11:05PM"), "datetime", 0, "2026-11-29 23:05:00.000", 0},
		{"nonsense date", NewVarChar("yesterday"), "datetime", 0, "", 241},
		{"a day that does not exist", NewVarChar("2026-02-30"), "datetime2", 0, "", 241},
		{"datetime starts in 1753", NewVarChar("1700-01-01"), "datetime", 0, "", 242},
		{"zero is 1900", NewInt(0), "datetime", 0, "1900-01-01 00:00:00.000", 0},
		{"datetime default text", NewTime(TDateTime, day), "varchar(30)", 0, "Nov 29 2026 11:05PM", 0},
		{"datetime style 120", NewTime(TDateTime, day), "varchar(30)", 120, "2026-11-29 23:05:07", 0},
		{"datetime style 126", NewTime(TDateTime, day), "varchar(30)", 126, "2026-11-29T23:05:07.123", 0},
		{"datetime style 112", NewTime(TDateTime, day), "varchar(8)", 112, "20261129", 0},
		{"datetime style 108 for hhmmss", NewTime(TDateTime, day), "varchar(8)", 108, "23:05:07", 0},
		{"datetime2 default text", NewTime(TDateTime2, day), "varchar(30)", 0, "2026-11-29 23:05:07.1234567", 0},
		{"unknown style", NewTime(TDateTime, day), "varchar(30)", 99, "", 281},
		{"binary style 1", NewBinary([]byte{0xAB, 1}), "varchar(10)", 1, "0xAB01", 0},
		{"binary style 2", NewBinary([]byte{0xAB, 1}), "varchar(10)", 2, "AB01", 0},
		{"text style 1 to binary", NewVarChar("0xab01"), "varbinary(8)", 1, "0xAB01", 0},
		{"bad hexadecimal", NewVarChar("0xzz"), "varbinary(8)", 1, "", 8114},
		{"nvarchar to binary is UTF-16", NewNVarChar("A"), "varbinary(8)", 0, "0x4100", 0},
		{"int to binary is big-endian", NewInt(258), "varbinary(8)", 0, "0x00000102", 0},
		{"binary to int", NewBinary([]byte{1, 2}), "int", 0, "258", 0},
		{"guid text", NewGUID(guid), "nvarchar(36)", 0, "6F9619FF-8B86-D011-B42D-00C04FC964FF", 0},
		{"guid to binary swaps", NewGUID(guid), "binary(16)", 0, "0xFF19966F868B11D0B42D00C04FC964FF", 0},
		{"guid needs room", NewGUID(guid), "varchar(10)", 0, "", 8170},
		{"nonsense guid", NewVarChar("x"), "uniqueidentifier", 0, "", 8169},
		{"int is no guid", NewInt(1), "uniqueidentifier", 0, "", 206},
		{"guid is no int", NewGUID(guid), "int", 0, "", 529},
		{"float text", NewFloat(1234567), "varchar(20)", 0, "1.23457e+006", 0},
		{"NULL stays NULL", Null(TInt), "varchar(5)", 0, "NULL", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ty := mustType(t, c.to)
			got, err := Cast(c.in, ty, c.style)
			if n := number(err); n != c.errNo {
				t.Fatalf("error %v, want number %d", err, c.errNo)
			}
			if err == nil && got.Format() != c.want {
				t.Errorf("got %q, want %q", got.Format(), c.want)
			}
			if err == nil && got.Type() != ty {
				t.Errorf("type %v, want %v", got.Type(), ty)
			}
		})
	}
}

func TestArithmeticFollowsTheProductsTypesAndLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b  Value
		op    byte
		want  string
		typ   string
		errNo int32
	}{
		{NewInt(7), NewInt(2), '/', "3", "int", 0},
		{NewInt(7), NewInt(2), '%', "1", "int", 0},
		{NewInt(1), NewInt(0), '/', "", "", 8134},
		{NewInt(2147483647), NewInt(1), '+', "", "", 8115},
		{NewInt(2147483647), NewBigInt(1), '+', "2147483648", "bigint", 0},
		{NewVarChar("5"), NewInt(1), '+', "6", "int", 0},
		{NewVarChar("x"), NewInt(1), '+', "", "", 245},
		{NewVarChar("a"), NewNVarChar("b"), '+', "ab", "nvarchar(2)", 0},
		{num(t, "1.5"), NewInt(2), '*', "3.0", "numeric(13,1)", 0},
		{num(t, "1.0"), num(t, "3.0"), '/', "0.333333", "numeric(8,6)", 0},
		{NewInt(1), NewFloat(2), '/', "0.5", "float", 0},
		{NewInt(6), NewInt(3), '&', "2", "int", 0},
		{NewBit(true), NewBit(false), '|', "1", "bit", 0},
		{NewBit(true), NewBit(true), '+', "", "", 402},
		{NewTime(TDateTime, day), NewInt(1), '+', "2026-11-30 23:05:07.123", "datetime", 0},
		{NewTime(TDateTime2, day), NewInt(1), '+', "", "", 206},
		{NewVarChar("a"), NewVarChar("b"), '*', "", "", 8117},
		{Null(TInt), NewInt(1), '+', "NULL", "int", 0},
		{NewBigInt(-1 << 63), NewBigInt(-1), '/', "", "", 8115},
		{NewBigInt(-1 << 63), NewBigInt(-1), '%', "0", "bigint", 0},
	} {
		t.Run(fmt.Sprintf("%v %c %v", c.a, c.op, c.b), func(t *testing.T) {
			t.Parallel()
			got, err := Arith(c.op, c.a, c.b)
			if n := number(err); n != c.errNo {
				t.Fatalf("error %v, want number %d", err, c.errNo)
			}
			if err == nil && (got.Format() != c.want || got.Type().String() != c.typ) {
				t.Errorf("got %s %q, want %s %q", got.Type(), got.Format(), c.typ, c.want)
			}
		})
	}
}

func TestComparisonIgnoresCaseAndTrailingSpacesButNotAccents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b Value
		want int
	}{
		{NewVarChar("AG1"), NewNVarChar("ag1  "), 0},
		{NewVarChar("resume"), NewVarChar("résumé"), -1},
		{NewVarChar("a_1"), NewVarChar("a1"), -1},
		{NewVarChar("a10"), NewVarChar("aB"), -1},
		{NewVarChar("mssql-0"), NewVarChar("mssql-1"), -1},
		{NewInt(2), NewVarChar("10"), -1},
		{NewInt(2), num(t, "2.00"), 0},
		{num(t, "34000000015200001"), num(t, "34000000015200002"), -1},
		{NewBit(true), NewInt(1), 0},
		{NewBinary([]byte{1, 0}), NewBinary([]byte{1}), 0},
		{NewTime(TDateTime, day), NewVarChar("2026-11-29"), 1},
		{NewInt(1).AsVariant(), NewInt(1), 0},
		{NewVarChar("Linux").AsVariant(), NewVarChar("linux"), 0},
	} {
		got, err := Compare(c.a, c.b)
		if err != nil || got != c.want {
			t.Errorf("Compare(%v, %v) = %d, %v; want %d", c.a, c.b, got, err, c.want)
		}
		if c.want == 0 && c.a.Type().ID == c.b.Type().ID && c.a.Key() != c.b.Key() {
			t.Errorf("keys of equal values %v and %v differ", c.a, c.b)
		}
	}
	if _, err := Compare(NewVarChar("x"), NewInt(1)); number(err) != 245 {
		t.Errorf("comparing letters with an int: %v, want 245", err)
	}
}

func samples(t *testing.T) []Value {
	guid, _ := ParseGUID("6F9619FF-8B86-D011-B42D-00C04FC964FF")
	neg, err := NewDecimal(TNumeric(38, 4), new(big.Int).Neg(pow10(37)))
	if err != nil {
		t.Fatal(err)
	}
	return []Value{
		{}, Null(TSysName), NewBit(true), NewTinyInt(200), NewSmallInt(-5), NewInt(-1), NewBigInt(1 << 62),
		NewFloat(-2.5e-7), NewNVarChar("z\u00e9 \U0001F600"), NewVarChar(""), NewSysName("AG"), NewBinary([]byte{0, 1, 255}),
		NewGUID(guid), NewTime(TDateTime, day), NewTime(TDateTime2, day), NewTime(TDate, day), NewTime(TTime, day),
		NewTime(TDateTimeOffset, day.In(time.FixedZone("", 3600))), neg, NewLSN(1 << 63), NewInt(3).AsVariant(),
	}
}

func TestValuesSurviveBinaryGobAndJSON(t *testing.T) {
	t.Parallel()
	same := cmp.Comparer(func(a, b Value) bool { return a == b })
	want := samples(t)
	var buf bytes.Buffer
	if err := gob.NewEncoder(&buf).Encode(want); err != nil {
		t.Fatal(err)
	}
	var got []Value
	if err := gob.NewDecoder(&buf).Decode(&got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, same); d != "" {
		t.Errorf("gob:\n%s", d)
	}
	j, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got = nil
	if err := json.Unmarshal(j, &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got, same); d != "" {
		t.Errorf("json %s:\n%s", j, d)
	}
}

func TestDateTimeWireFormHasTicksOfAThreeHundredth(t *testing.T) {
	t.Parallel()
	v := NewTime(TDateTime, time.Date(1900, 1, 2, 0, 0, 1, 7_000_000, time.UTC))
	if d, n := v.Ticks300(); d != 1 || n != 302 {
		t.Errorf("got day %d tick %d, want 1 and 302", d, n)
	}
	v = NewTime(TDateTime, time.Date(1899, 12, 31, 23, 59, 59, 0, time.UTC))
	if d, n := v.Ticks300(); d != -1 || n != 86399*300 {
		t.Errorf("got day %d tick %d, want -1 and %d", d, n, 86399*300)
	}
}

func TestTypeNamesRoundTrip(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"int", "nvarchar(60)", "nvarchar(max)", "sysname", "numeric(25,0)", "decimal(18,2)", "datetime", "datetime2(7)", "varbinary(85)", "uniqueidentifier", "sql_variant", "bit", "float", "real"} {
		if got := mustType(t, s).String(); got != s {
			t.Errorf("ParseType(%q).String() = %q", s, got)
		}
	}
	for in, no := range map[string]int32{"nvarchar(5000)": 131, "money": 2715, "int(3)": 2716, "decimal(40,0)": 2750, "datetime2(9)": 1002} {
		if _, err := ParseType(in); number(err) != no {
			t.Errorf("ParseType(%q): %v, want %d", in, err, no)
		}
	}
}

func FuzzDecodeValueNeverPanicsAndRoundTrips(f *testing.F) {
	for _, v := range []Value{NewInt(3), NewNVarChar("x"), NewLSN(7), NewTime(TDateTime, day)} {
		b, _ := v.AppendBinary(nil)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, _, err := DecodeValue(b)
		if err != nil {
			return
		}
		_ = v.Format()
		_ = v.Key()
		out, _ := v.AppendBinary(nil)
		w, rest, err := DecodeValue(out)
		if err != nil || len(rest) != 0 || w != v {
			t.Fatalf("%#v became %#v, %v", v, w, err)
		}
	})
}

func FuzzCastTextNeverPanics(f *testing.F) {
	for _, s := range []string{"12", "2026-11-29 11:05PM", "6F9619FF-8B86-D011-B42D-00C04FC964FF", "1e5", "-.5", "0xab", "12:30 +02:00"} {
		f.Add(s, 0)
	}
	f.Fuzz(func(t *testing.T, s string, style int) {
		for id := Bit; id < idCount; id++ {
			ty, err := NewType(id, nil, 30)
			if err != nil {
				t.Fatal(err)
			}
			v, err := Cast(NewNVarChar(s), ty, style)
			if err != nil {
				continue
			}
			if ty.ID == SQLVariant {
				continue
			}
			// what a value prints as must read back as the same value
			if ty.IsTemporal() || ty.IsDecimal() || ty.IsInteger() || ty.ID == UniqueIdentifier {
				w, err := Cast(NewNVarChar(v.Format()), ty, 0)
				if err != nil || w != v {
					t.Fatalf("%s: %q became %q then %q, %v", ty, s, v.Format(), w.Format(), err)
				}
			}
		}
	})
}

func FuzzCollateIsAnOrderAndAgreesWithFold(f *testing.F) {
	f.Add("AG", "ag ", "É")
	f.Add("mssql-0", "MSSQL_0", "mssql0")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		ab, ba := Collate(a, b), Collate(b, a)
		if ab != -ba {
			t.Fatalf("Collate(%q,%q)=%d but reversed %d", a, b, ab, ba)
		}
		if (ab == 0) != (Fold(a) == Fold(b)) {
			t.Fatalf("Collate(%q,%q)=%d, folds %q %q", a, b, ab, Fold(a), Fold(b))
		}
		if ab <= 0 && Collate(b, c) <= 0 && Collate(a, c) > 0 {
			t.Fatalf("not transitive: %q %q %q", a, b, c)
		}
	})
}
