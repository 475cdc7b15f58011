package tds

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf16"
)

// errShort means that a message ended before what it announced.
var errShort = errors.New("tds: message ends early")

// reader takes fixed-layout values off a message. The first failure sticks, so that a
// parser can read a group of fields and check once.
type reader struct {
	b   []byte
	err error
}

func (r *reader) take(n int) []byte {
	if r.err != nil {
		return nil
	}
	if n < 0 || n > len(r.b) {
		r.err = errShort
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) left() int { return len(r.b) }

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("tds: "+format, args...)
	}
}

func (r *reader) u8() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if b := r.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// ucs2 reads n UTF-16 code units.
func (r *reader) ucs2(n int) string { return decodeUCS2(r.take(2 * n)) }

// bVarChar reads a string with a length byte that counts characters.
func (r *reader) bVarChar() string { return r.ucs2(int(r.u8())) }

// usVarChar reads a string with a 16-bit length that counts characters.
func (r *reader) usVarChar() string { return r.ucs2(int(r.u16())) }

// decodeUCS2 turns UTF-16LE bytes into a string; an odd last byte is dropped and lone
// surrogates become the replacement character.
func decodeUCS2(b []byte) string {
	if len(b) < 2 {
		return ""
	}
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return string(utf16.Decode(units))
}

// encodeUCS2 turns a string into UTF-16LE bytes.
func encodeUCS2(s string) []byte {
	ascii := true
	for i := range len(s) {
		if s[i] >= 0x80 {
			ascii = false
			break
		}
	}
	if ascii {
		out := make([]byte, 2*len(s))
		for i := range len(s) {
			out[2*i] = s[i]
		}
		return out
	}
	units := utf16.Encode([]rune(s))
	out := make([]byte, 2*len(units))
	for i, u := range units {
		binary.LittleEndian.PutUint16(out[2*i:], u)
	}
	return out
}
