// Package sqltypes holds the data types and values of the simulated SQL Server: a compact Value,
// conversion with the product's error numbers, arithmetic, comparison under the
// Latin1_General_CI_AS collation, and text formats. It is pure: no clock, no I/O, no state.
package sqltypes

import (
	"strconv"
	"strings"
)

// ID names a data type family.
type ID uint8

// The data types of the simulator. The order is only an encoding; precedence is in precedence().
const (
	Unknown ID = iota // the type of an untyped NULL literal; behaves as int on the wire
	Bit
	TinyInt
	SmallInt
	Int
	BigInt
	Decimal
	Numeric // a synonym of Decimal that keeps its name, as the product does in metadata
	Real
	Float
	Char
	VarChar
	NChar
	NVarChar
	SysName // nvarchar(128) NOT NULL by another name
	XML     // held and sent as text
	Binary
	VarBinary
	UniqueIdentifier
	Date
	Time
	SmallDateTime
	DateTime
	DateTime2
	DateTimeOffset
	SQLVariant
	idCount
)

// Max is the Len of varchar(max), nvarchar(max) and varbinary(max).
const Max = -1

// Type is a data type with its facets. Len counts characters for character types and bytes for
// binary types, and is Max for the (max) forms. Prec and Scale serve decimal/numeric; Scale alone
// serves time, datetime2 and datetimeoffset (fractional digits).
type Type struct {
	ID    ID
	Prec  uint8
	Scale uint8
	Len   int32
}

// Ready-made types for the usual columns.
var (
	TUnknown        = Type{ID: Unknown}
	TBit            = Type{ID: Bit}
	TTinyInt        = Type{ID: TinyInt}
	TSmallInt       = Type{ID: SmallInt}
	TInt            = Type{ID: Int}
	TBigInt         = Type{ID: BigInt}
	TFloat          = Type{ID: Float}
	TReal           = Type{ID: Real}
	TSysName        = Type{ID: SysName, Len: 128}
	TNVarCharMax    = Type{ID: NVarChar, Len: Max}
	TVarCharMax     = Type{ID: VarChar, Len: Max}
	TVarBinaryMax   = Type{ID: VarBinary, Len: Max}
	TGUID           = Type{ID: UniqueIdentifier}
	TDate           = Type{ID: Date}
	TSmallDateTime  = Type{ID: SmallDateTime}
	TDateTime       = Type{ID: DateTime}
	TDateTime2      = Type{ID: DateTime2, Scale: 7}
	TDateTimeOffset = Type{ID: DateTimeOffset, Scale: 7}
	TTime           = Type{ID: Time, Scale: 7}
	TVariant        = Type{ID: SQLVariant}
	TXML            = Type{ID: XML, Len: Max}
	TLSN            = Type{ID: Numeric, Prec: 25, Scale: 0}
)

// TNVarChar is nvarchar(n); n = Max gives nvarchar(max).
func TNVarChar(n int) Type { return Type{ID: NVarChar, Len: int32(n)} }

// TVarChar is varchar(n); n = Max gives varchar(max).
func TVarChar(n int) Type { return Type{ID: VarChar, Len: int32(n)} }

// TVarBinary is varbinary(n); n = Max gives varbinary(max).
func TVarBinary(n int) Type { return Type{ID: VarBinary, Len: int32(n)} }

// TNumeric is numeric(p,s).
func TNumeric(p, s int) Type { return Type{ID: Numeric, Prec: uint8(p), Scale: uint8(s)} }

var idNames = [idCount]string{
	"int", "bit", "tinyint", "smallint", "int", "bigint", "decimal", "numeric", "real", "float",
	"char", "varchar", "nchar", "nvarchar", "sysname", "xml", "binary", "varbinary",
	"uniqueidentifier", "date", "time", "smalldatetime", "datetime", "datetime2", "datetimeoffset", "sql_variant",
}

// Name is the product's name of the family, without facets.
func (id ID) Name() string {
	if id >= idCount {
		return "unknown"
	}
	return idNames[id]
}

// LookupID finds a type family by its T-SQL name, case-insensitively, synonyms included.
func LookupID(name string) (ID, bool) {
	n := strings.ToLower(name)
	switch n {
	case "integer":
		return Int, true
	case "dec":
		return Decimal, true
	case "character":
		return Char, true
	case "rowversion", "timestamp", "image", "text", "ntext", "money", "smallmoney":
		return Unknown, false
	}
	for id := Bit; id < idCount; id++ {
		if idNames[id] == n {
			return id, true
		}
	}
	return Unknown, false
}

// IsString reports a character type (xml counts: it is text here).
func (t Type) IsString() bool { return t.ID >= Char && t.ID <= XML }

// IsUnicode reports a UTF-16 character type.
func (t Type) IsUnicode() bool { return t.ID >= NChar && t.ID <= XML }

// IsBinary reports binary and varbinary.
func (t Type) IsBinary() bool { return t.ID == Binary || t.ID == VarBinary }

// IsInteger reports bit and the integer types.
func (t Type) IsInteger() bool { return t.ID >= Bit && t.ID <= BigInt }

// IsDecimal reports decimal and numeric.
func (t Type) IsDecimal() bool { return t.ID == Decimal || t.ID == Numeric }

// IsFloat reports real and float.
func (t Type) IsFloat() bool { return t.ID == Real || t.ID == Float }

// IsNumber reports every exact or approximate number, bit included.
func (t Type) IsNumber() bool { return t.ID >= Bit && t.ID <= Float }

// IsTemporal reports the date and time types.
func (t Type) IsTemporal() bool { return t.ID >= Date && t.ID <= DateTimeOffset }

// String is the type as a column definition spells it, e.g. nvarchar(60), numeric(25,0).
func (t Type) String() string {
	n := t.ID.Name()
	switch t.ID {
	case Char, VarChar, NChar, NVarChar, Binary, VarBinary:
		if t.Len == Max {
			return n + "(max)"
		}
		return n + "(" + strconv.Itoa(int(t.Len)) + ")"
	case Decimal, Numeric:
		return n + "(" + strconv.Itoa(int(t.Prec)) + "," + strconv.Itoa(int(t.Scale)) + ")"
	case Time, DateTime2, DateTimeOffset:
		return n + "(" + strconv.Itoa(int(t.Scale)) + ")"
	}
	return n
}

// ParseType reads what String writes, plus defaults for absent facets: length 1 for char and
// binary types in a definition, (18,0) for decimal, 7 for the fractional types.
func ParseType(s string) (Type, error) {
	name, args, _ := strings.Cut(strings.TrimSpace(s), "(")
	id, ok := LookupID(strings.TrimSpace(name))
	if !ok {
		return Type{}, Errf(2715, 16, 6, "Cannot find data type %s.", strings.TrimSpace(name))
	}
	var a []int
	args = strings.TrimSuffix(strings.TrimSpace(args), ")")
	if args != "" {
		for _, p := range strings.Split(args, ",") {
			p = strings.TrimSpace(p)
			if strings.EqualFold(p, "max") {
				a = append(a, Max)
				continue
			}
			n, err := strconv.Atoi(p)
			if err != nil || n < 0 {
				return Type{}, Errf(102, 15, 1, "Incorrect syntax near '%s'.", p)
			}
			a = append(a, n)
		}
	}
	return NewType(id, a, 1)
}

// NewType builds a type from its family and the numbers in its parentheses; defLen is the length
// of character and binary types when none is given (1 in definitions, 30 in CAST and CONVERT).
func NewType(id ID, args []int, defLen int) (Type, error) {
	t := Type{ID: id}
	bad := func() (Type, error) {
		return Type{}, Errf(2716, 16, 1, "Column, parameter, or variable #1: Cannot specify a column width on data type %s.", id.Name())
	}
	arg := func(i, def int) int {
		if i < len(args) {
			return args[i]
		}
		return def
	}
	switch id {
	case Char, NChar, Binary, VarChar, NVarChar, VarBinary:
		if len(args) > 1 {
			return bad()
		}
		limit := 8000
		if id == NChar || id == NVarChar {
			limit = 4000
		}
		n := arg(0, defLen)
		isVar := id == VarChar || id == NVarChar || id == VarBinary
		switch {
		case n == Max && isVar:
		case n == 0:
			return Type{}, Errf(1001, 15, 1, "Length or precision specification 0 is invalid.")
		case n < 0, n > limit:
			return Type{}, Errf(131, 15, 3, "The size (%d) given to the type '%s' exceeds the maximum allowed for any data type (%d).", n, id.Name(), 8000)
		}
		t.Len = int32(n)
	case SysName:
		if len(args) > 0 {
			return bad()
		}
		t.Len = 128
	case XML:
		if len(args) > 0 {
			return bad()
		}
		t.Len = Max
	case Decimal, Numeric:
		p, s := arg(0, 18), arg(1, 0)
		if len(args) > 2 || p < 1 || p > 38 {
			return Type{}, Errf(2750, 16, 1, "Column or parameter #1: Specified column precision %d is greater than the maximum precision of 38.", p)
		}
		if s < 0 || s > p {
			return Type{}, Errf(183, 15, 1, "The scale (%d) for column '' must be within the range 0 to %d.", s, p)
		}
		t.Prec, t.Scale = uint8(p), uint8(s)
	case Float:
		if n := arg(0, 53); n < 1 || n > 53 || len(args) > 1 {
			return bad()
		} else if n <= 24 {
			t.ID = Real
		}
	case Time, DateTime2, DateTimeOffset:
		s := arg(0, 7)
		if len(args) > 1 || s < 0 || s > 7 {
			return Type{}, Errf(1002, 16, 1, "Line 1: Specified scale %d is invalid.", s)
		}
		t.Scale = uint8(s)
	default:
		if len(args) > 0 {
			return bad()
		}
	}
	return t, nil
}

// precedence orders the families as the product's data type precedence does; higher wins.
func (id ID) precedence() int {
	switch id {
	case SQLVariant:
		return 30
	case XML:
		return 29
	case DateTimeOffset:
		return 28
	case DateTime2:
		return 27
	case DateTime:
		return 26
	case SmallDateTime:
		return 25
	case Date:
		return 24
	case Time:
		return 23
	case Float:
		return 22
	case Real:
		return 21
	case Decimal, Numeric:
		return 20
	case BigInt:
		return 17
	case Int:
		return 16
	case SmallInt:
		return 15
	case TinyInt:
		return 14
	case Bit:
		return 13
	case UniqueIdentifier:
		return 9
	case NVarChar, SysName:
		return 8
	case NChar:
		return 7
	case VarChar:
		return 6
	case Char:
		return 5
	case VarBinary:
		return 4
	case Binary:
		return 3
	}
	return 0
}

// Unify is the result type of combining a and b in CASE, COALESCE, UNION, IIF and comparisons:
// the family of higher precedence, wide enough for both.
func Unify(a, b Type) Type {
	if a.ID == Unknown {
		return b
	}
	if b.ID == Unknown || a == b {
		return a
	}
	hi, lo := a, b
	if b.ID.precedence() > a.ID.precedence() {
		hi, lo = b, a
	}
	switch {
	case hi.IsString() && lo.IsString(), hi.IsBinary() && lo.IsBinary():
		id := hi.ID
		switch {
		case hi.ID == XML:
			return hi
		case id == SysName, id == NChar && lo.ID == VarChar:
			id = NVarChar
		}
		if hi.ID == Char && lo.ID == Char || hi.ID == NChar && lo.ID == NChar || hi.ID == Binary && lo.ID == Binary {
			return Type{ID: id, Len: max(hi.Len, lo.Len)}
		}
		if hi.Len == Max || lo.Len == Max {
			return Type{ID: id, Len: Max}
		}
		n := max(hi.Len, lo.Len)
		if id == NVarChar || id == NChar {
			n = min(n, 4000)
		}
		return Type{ID: id, Len: n}
	case hi.IsDecimal():
		l := asDecimalType(lo)
		if !lo.IsNumber() {
			return hi
		}
		s := max(hi.Scale, l.Scale)
		p := max(hi.Prec-hi.Scale, l.Prec-l.Scale) + s
		return Type{ID: hi.ID, Prec: min(p, 38), Scale: s}
	case hi.ID == lo.ID && hi.IsTemporal():
		hi.Scale = max(hi.Scale, lo.Scale)
	}
	return hi
}

// asDecimalType is the decimal type an integer or decimal type counts as in arithmetic.
func asDecimalType(t Type) Type {
	switch t.ID {
	case Bit:
		return Type{ID: Decimal, Prec: 1}
	case TinyInt:
		return Type{ID: Decimal, Prec: 3}
	case SmallInt:
		return Type{ID: Decimal, Prec: 5}
	case Int, Unknown:
		return Type{ID: Decimal, Prec: 10}
	case BigInt:
		return Type{ID: Decimal, Prec: 19}
	}
	return t
}
