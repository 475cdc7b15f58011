package tds

import (
	"encoding/binary"
	"fmt"
)

// PRELOGIN option tokens (field guide §10.2).
const (
	preVersion    = 0x00
	preEncryption = 0x01
	preInstance   = 0x02
	preThread     = 0x03
	preMARS       = 0x04
	preTraceID    = 0x05
	preFedAuth    = 0x06
	preEnd        = 0xFF
)

// Values of the ENCRYPTION option.
const (
	encryptOff          = 0x00
	encryptOn           = 0x01
	encryptNotSupported = 0x02
	encryptRequired     = 0x03
)

// prelogin holds the options of a PRELOGIN message that the server looks at.
type prelogin struct {
	encryption    byte
	hasEncryption bool
	instance      string
	fedAuth       bool
}

// maxPreloginOptions bounds the option list: the protocol defines eight tokens.
const maxPreloginOptions = 64

// parsePrelogin reads the option list. Offsets and lengths are big-endian and count
// from the start of the payload.
func parsePrelogin(b []byte) (prelogin, error) {
	var p prelogin
	for i, n := 0, 0; ; i, n = i+5, n+1 {
		if i >= len(b) {
			return p, fmt.Errorf("parse PRELOGIN: %w", errShort)
		}
		if b[i] == preEnd {
			return p, nil
		}
		if n == maxPreloginOptions {
			return p, fmt.Errorf("parse PRELOGIN: more than %d options", maxPreloginOptions)
		}
		if i+5 > len(b) {
			return p, fmt.Errorf("parse PRELOGIN: %w", errShort)
		}
		offset, length := int(binary.BigEndian.Uint16(b[i+1:])), int(binary.BigEndian.Uint16(b[i+3:]))
		if offset+length > len(b) {
			return p, fmt.Errorf("parse PRELOGIN: option 0x%02x lies outside the message", b[i])
		}
		data := b[offset : offset+length]
		switch b[i] {
		case preEncryption:
			if length < 1 {
				return p, fmt.Errorf("parse PRELOGIN: empty ENCRYPTION option")
			}
			p.encryption, p.hasEncryption = data[0], true
		case preInstance:
			for j, c := range data {
				if c == 0 {
					data = data[:j]
					break
				}
			}
			p.instance = string(data)
		case preFedAuth:
			p.fedAuth = length > 0 && data[0] != 0
		}
	}
}

// preloginReply is the server's answer: version, encryption, instance accepted, no MARS.
func preloginReply(version [4]byte, encryption byte) []byte {
	options := []struct {
		token byte
		data  []byte
	}{
		{preVersion, []byte{version[0], version[1], version[2], version[3], 0, 0}},
		{preEncryption, []byte{encryption}},
		{preInstance, []byte{0}},
		{preThread, nil},
		{preMARS, []byte{0}},
	}
	offset := 5*len(options) + 1
	var head, body []byte
	for _, o := range options {
		head = append(head, o.token)
		head = binary.BigEndian.AppendUint16(head, uint16(offset+len(body)))
		head = binary.BigEndian.AppendUint16(head, uint16(len(o.data)))
		body = append(body, o.data...)
	}
	return append(append(head, preEnd), body...)
}

// negotiateEncryption gives the answer to the client's wish. required is the server's
// forceencryption setting. ok is false when the two cannot meet; the answer is sent all
// the same so that the client can tell why.
//
// A client that wants only the login encrypted (off) gets full encryption: the product
// would protect the login alone, which FG §10.2 calls easy to get wrong, and every
// client accepts the stronger answer.
func negotiateEncryption(client byte, required bool) (answer byte, tls, ok bool) {
	switch client {
	case encryptNotSupported:
		if required {
			return encryptRequired, false, false
		}
		return encryptNotSupported, false, true
	case encryptRequired:
		return encryptOn, true, true
	case encryptOn, encryptOff:
		if required {
			return encryptRequired, true, true
		}
		return encryptOn, true, true
	default:
		return encryptNotSupported, false, false
	}
}
