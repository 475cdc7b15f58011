package tds

import (
	"encoding/binary"
	"fmt"
)

// Login is what a client says about itself in LOGIN7.
type Login struct {
	Host, User, Password   string
	App, Server, Library   string
	Language, Database     string
	NewPassword            string
	ReadOnlyIntent         bool
	Integrated             bool   // the client wants Windows authentication
	TDSVersion             uint32 // as sent: 0x74000004 is 7.4
	PacketSize             int
	ClientAddr             string // filled by the server: host:port of the peer
	Encrypted              bool   // filled by the server
	features               map[byte][]byte
	dateFormat, optFlags1b byte
}

// String leaves the password out, so that a login can be logged.
func (l Login) String() string {
	return fmt.Sprintf("user %q database %q app %q from %s", l.User, l.Database, l.App, l.ClientAddr)
}

const (
	login7FixedSize = 94
	// login7MaxField is the product's limit for names and passwords, in characters.
	login7MaxField = 128
	// maxLoginSize bounds the whole LOGIN7 message in bytes.
	maxLoginSize = 128 << 10

	tdsVersion74 = 0x74000004
	tdsVersion80 = 0x08000000
)

// parseLogin7 reads a LOGIN7 payload: a fixed header and then offset/length pairs that
// count UTF-16 characters.
func parseLogin7(b []byte) (Login, error) {
	var l Login
	if len(b) < login7FixedSize {
		return l, fmt.Errorf("parse LOGIN7: %w", errShort)
	}
	if total := binary.LittleEndian.Uint32(b); int64(total) != int64(len(b)) {
		return l, fmt.Errorf("parse LOGIN7: length says %d, message has %d bytes", total, len(b))
	}
	l.TDSVersion = binary.LittleEndian.Uint32(b[4:])
	l.PacketSize = int(binary.LittleEndian.Uint32(b[8:]))
	l.optFlags1b = b[24]
	l.Integrated = b[25]&0x80 != 0
	l.ReadOnlyIntent = b[26]&0x20 != 0
	extension := b[27]&0x10 != 0

	var err error
	field := func(at, limit int) []byte {
		offset, chars := int(binary.LittleEndian.Uint16(b[at:])), int(binary.LittleEndian.Uint16(b[at+2:]))
		if err != nil || chars == 0 {
			return nil
		}
		if chars > limit {
			err = fmt.Errorf("parse LOGIN7: field at %d has %d characters, the limit is %d", at, chars, limit)
			return nil
		}
		if offset+2*chars > len(b) {
			err = fmt.Errorf("parse LOGIN7: field at %d lies outside the message", at)
			return nil
		}
		return b[offset : offset+2*chars]
	}
	l.Host = decodeUCS2(field(36, login7MaxField))
	l.User = decodeUCS2(field(40, login7MaxField))
	l.Password = decodeUCS2(unmangle(field(44, login7MaxField)))
	l.App = decodeUCS2(field(48, login7MaxField))
	l.Server = decodeUCS2(field(52, 4*login7MaxField))
	l.Library = decodeUCS2(field(60, login7MaxField))
	l.Language = decodeUCS2(field(64, login7MaxField))
	l.Database = decodeUCS2(field(68, login7MaxField))
	l.NewPassword = decodeUCS2(unmangle(field(86, login7MaxField)))
	if err != nil {
		return Login{}, err
	}
	if extension {
		if l.features, err = parseFeatures(b); err != nil {
			return Login{}, err
		}
	}
	return l, nil
}

// parseFeatures follows the extension pointer of LOGIN7 to the feature list.
func parseFeatures(b []byte) (map[byte][]byte, error) {
	at := int(binary.LittleEndian.Uint16(b[56:]))
	if at+4 > len(b) {
		return nil, fmt.Errorf("parse LOGIN7: extension lies outside the message")
	}
	start := int64(binary.LittleEndian.Uint32(b[at:]))
	if start > int64(len(b)) {
		return nil, fmt.Errorf("parse LOGIN7: feature list lies outside the message")
	}
	r := reader{b: b[start:]}
	features := map[byte][]byte{}
	for {
		id := r.u8()
		if r.err != nil {
			return nil, fmt.Errorf("parse LOGIN7 features: %w", r.err)
		}
		if id == 0xFF {
			return features, nil
		}
		n := r.u32()
		if int64(n) > int64(r.left()) {
			r.err = errShort
		}
		features[id] = r.take(int(n))
		if r.err != nil {
			return nil, fmt.Errorf("parse LOGIN7 features: %w", r.err)
		}
	}
}

// unmangle undoes LOGIN7's password scrambling: XOR 0xA5, then swap the nibbles.
func unmangle(b []byte) []byte {
	out := make([]byte, len(b))
	for i, c := range b {
		c ^= 0xA5
		out[i] = c<<4 | c>>4
	}
	return out
}
