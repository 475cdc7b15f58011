package tds

import "strings"

// high1252 maps the bytes 0x80–0x9F of Windows code page 1252, the code page of the
// server's collation; 0 marks the five unassigned bytes, which stand for themselves.
var high1252 = [32]rune{
	0x20AC, 0, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0, 0x017D, 0,
	0, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0, 0x017E, 0x0178,
}

// encode1252 turns a string into varchar bytes; what the code page lacks becomes '?', as
// the product does.
func encode1252(s string) []byte {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		out = append(out, byte1252(r))
	}
	return out
}

func byte1252(r rune) byte {
	if r < 0x80 || r >= 0xA0 && r <= 0xFF {
		return byte(r)
	}
	for i, h := range high1252 {
		if h == r || h == 0 && rune(0x80+i) == r {
			return byte(0x80 + i)
		}
	}
	return '?'
}

// decode1252 turns varchar bytes into a string.
func decode1252(b []byte) string {
	var out strings.Builder
	out.Grow(len(b))
	for _, c := range b {
		r := rune(c)
		if c >= 0x80 && c < 0xA0 && high1252[c-0x80] != 0 {
			r = high1252[c-0x80]
		}
		out.WriteRune(r)
	}
	return out.String()
}
