package sqltypes

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// AppendBinary appends a compact, self-delimiting form of v to b. It never fails.
func (v Value) AppendBinary(b []byte) ([]byte, error) {
	flags := byte(0)
	if v.ok {
		flags |= 1
	}
	if v.vari {
		flags |= 2
	}
	if v.hi != 0 {
		flags |= 4
	}
	if v.lo != 0 {
		flags |= 8
	}
	if v.s != "" {
		flags |= 16
	}
	b = append(b, flags, byte(v.typ.ID), v.typ.Prec, v.typ.Scale)
	b = binary.AppendVarint(b, int64(v.typ.Len))
	if v.hi != 0 {
		b = binary.AppendVarint(b, v.hi)
	}
	if v.lo != 0 {
		b = binary.AppendUvarint(b, v.lo)
	}
	if v.s != "" {
		b = binary.AppendUvarint(b, uint64(len(v.s)))
		b = append(b, v.s...)
	}
	return b, nil
}

// MarshalBinary makes Value usable with encoding/gob.
func (v Value) MarshalBinary() ([]byte, error) { return v.AppendBinary(nil) }

var errValueData = errors.New("decode SQL value: data is damaged")

// UnmarshalBinary reads what MarshalBinary wrote.
func (v *Value) UnmarshalBinary(b []byte) error {
	w, rest, err := DecodeValue(b)
	if err != nil {
		return err
	}
	if len(rest) != 0 {
		return errValueData
	}
	*v = w
	return nil
}

// DecodeValue reads one value from the front of b and returns the rest.
func DecodeValue(b []byte) (v Value, rest []byte, err error) {
	if len(b) < 5 || b[1] >= byte(idCount) || b[0] > 31 {
		return v, b, errValueData
	}
	flags := b[0]
	v.typ.ID, v.typ.Prec, v.typ.Scale = ID(b[1]), b[2], b[3]
	v.ok, v.vari = flags&1 != 0, flags&2 != 0
	b = b[4:]
	n, w := binary.Varint(b)
	if w <= 0 || n < -1 || n > 8000 || v.typ.Prec > 38 || v.typ.Scale > 38 {
		return v, b, errValueData
	}
	v.typ.Len = int32(n)
	b = b[w:]
	if flags&4 != 0 {
		if v.hi, w = binary.Varint(b); w <= 0 {
			return v, b, errValueData
		}
		b = b[w:]
	}
	if flags&8 != 0 {
		if v.lo, w = binary.Uvarint(b); w <= 0 {
			return v, b, errValueData
		}
		b = b[w:]
	}
	if flags&16 != 0 {
		k, w := binary.Uvarint(b)
		if w <= 0 || k > uint64(len(b)-w) {
			return v, b, errValueData
		}
		v.s = string(b[w : w+int(k)])
		b = b[w+int(k):]
	}
	if v.typ.IsTemporal() && (v.lo >= maxTicks || v.typ.Scale > 7 || v.hi < -14*60 || v.hi > 14*60) ||
		v.typ.IsDecimal() && (v.typ.Prec == 0 || v.typ.Scale > v.typ.Prec) {
		return v, b, errValueData
	}
	return v, b, nil
}

// MarshalJSON writes {"t":"nvarchar(10)","v":"text"}; NULL has no "v", binary is 0x hexadecimal.
func (v Value) MarshalJSON() ([]byte, error) {
	d := jsonValue{T: v.typ.String(), Variant: v.vari}
	if v.typ.ID == Unknown {
		d.T = "null"
	}
	if v.ok {
		s := v.Format()
		if v.typ.IsFloat() {
			s = formatFloat(v.Float64(), 17)
		}
		d.V = &s
	}
	return json.Marshal(d)
}

type jsonValue struct {
	T       string  `json:"t"`
	V       *string `json:"v,omitempty"`
	Variant bool    `json:"variant,omitempty"`
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (v *Value) UnmarshalJSON(b []byte) error {
	var d jsonValue
	if err := json.Unmarshal(b, &d); err != nil {
		return fmt.Errorf("decode SQL value: %w", err)
	}
	var t Type
	if d.T != "null" {
		var err error
		if t, err = ParseType(d.T); err != nil {
			return fmt.Errorf("decode SQL value: %w", err)
		}
	}
	if d.V == nil {
		*v = Null(t)
		v.vari = d.Variant
		return nil
	}
	style := 0
	src := NewNVarChar(*d.V)
	if t.IsBinary() {
		style = 1
	}
	if strings.HasPrefix(d.T, "sysname") || t.IsString() {
		*v = NewText(t, *d.V)
		v.vari = d.Variant
		return nil
	}
	w, err := Cast(src, t, style)
	if err != nil {
		return fmt.Errorf("decode SQL value: %w", err)
	}
	w.vari = d.Variant
	*v = w
	return nil
}
