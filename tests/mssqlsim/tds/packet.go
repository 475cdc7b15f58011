package tds

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Packet types (field guide §10.1).
const (
	typeBatch       = 0x01
	typeRPC         = 0x03
	typeReply       = 0x04
	typeAttention   = 0x06
	typeBulk        = 0x07
	typeTransaction = 0x0E
	typeLogin7      = 0x10
	typePrelogin    = 0x12
)

// Packet status bits.
const (
	statusEOM             = 0x01
	statusIgnore          = 0x02
	statusReset           = 0x08
	statusResetKeepingTxn = 0x10
)

const (
	headerSize = 8
	// defaultPacketSize is the size before and, unless the client asks, after login.
	defaultPacketSize = 4096
	minPacketSize     = 512
	// maxPacketSize is the product's limit for encrypted connections: a TLS record holds
	// at most 16 KiB (field guide §10.1).
	maxPacketSize = 16383
	// maxWirePacket is what a client may send in one packet whatever was negotiated.
	maxWirePacket = 32767
)

// errMessageTooLarge means that a client's message went over the server's limit.
var errMessageTooLarge = errors.New("tds: message is larger than the server accepts")

// message is one client message: the payloads of its packets joined.
type message struct {
	kind    byte
	status  byte // of the first packet, which carries the reset bits
	ignored bool // the client took the message back with the ignore bit
	payload []byte
}

// readMessage reads packets up to the end-of-message bit. limit bounds the joined
// payload in bytes.
func readMessage(r io.Reader, limit int) (message, error) {
	var m message
	var header [headerSize]byte
	for first := true; ; first = false {
		if _, err := io.ReadFull(r, header[:]); err != nil {
			if first && errors.Is(err, io.EOF) {
				return m, io.EOF
			}
			return m, fmt.Errorf("read packet header: %w", err)
		}
		size := int(binary.BigEndian.Uint16(header[2:]))
		if size < headerSize || size > maxWirePacket {
			return m, fmt.Errorf("read packet header: length %d is not between %d and %d", size, headerSize, maxWirePacket)
		}
		if first {
			m.kind, m.status = header[0], header[1]
		} else if header[0] != m.kind {
			return m, fmt.Errorf("read packet header: type 0x%02x inside a message of type 0x%02x", header[0], m.kind)
		}
		body := size - headerSize
		if len(m.payload)+body > limit {
			return m, errMessageTooLarge
		}
		at := len(m.payload)
		m.payload = append(m.payload, make([]byte, body)...)
		if _, err := io.ReadFull(r, m.payload[at:]); err != nil {
			return m, fmt.Errorf("read packet body: %w", err)
		}
		if header[1]&statusEOM != 0 {
			m.ignored = header[1]&statusIgnore != 0
			return m, nil
		}
	}
}

// packetWriter cuts one reply at a time into packets.
type packetWriter struct {
	w    io.Writer
	kind byte
	spid uint16
	size int
	id   byte
	buf  []byte // header and payload of the packet being filled
	err  error
}

func newPacketWriter(w io.Writer, kind byte, spid uint16, size int) *packetWriter {
	p := &packetWriter{w: w, kind: kind, spid: spid, size: size}
	p.buf = append(make([]byte, 0, size), make([]byte, headerSize)...)
	return p
}

// Write adds payload bytes and sends each packet that fills up.
func (p *packetWriter) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 && p.err == nil {
		if len(p.buf) == p.size {
			p.send(0)
		}
		room := min(p.size-len(p.buf), len(b))
		p.buf = append(p.buf, b[:room]...)
		b = b[room:]
	}
	return n, p.err
}

// flush sends what is buffered without ending the message.
func (p *packetWriter) flush() error {
	if len(p.buf) > headerSize {
		p.send(0)
	}
	return p.err
}

// end sends the last packet of the message; the writer is then ready for the next one.
func (p *packetWriter) end() error {
	p.send(statusEOM)
	p.id = 0
	return p.err
}

func (p *packetWriter) send(status byte) {
	if p.err != nil {
		return
	}
	p.id++
	p.buf[0], p.buf[1] = p.kind, status
	binary.BigEndian.PutUint16(p.buf[2:], uint16(len(p.buf)))
	binary.BigEndian.PutUint16(p.buf[4:], p.spid)
	p.buf[6], p.buf[7] = p.id, 0
	_, p.err = p.w.Write(p.buf)
	p.buf = p.buf[:headerSize]
}
