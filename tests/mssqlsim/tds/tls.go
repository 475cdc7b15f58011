package tds

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"time"
)

// alpnTDS8 is the application protocol that a TDS 8.0 client offers.
const alpnTDS8 = "tds/8.0"

// SelfSigned makes the certificate that the product makes for itself at every start when
// none is configured (field guide §7.5). names are the host names and
// addresses that it holds for.
func SelfSigned(now time.Time, names ...string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make self-signed certificate: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make self-signed certificate: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "SSL_Self_Signed_Fallback"},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.AddDate(30, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make self-signed certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// wrappedTLSConfig is for handshakes inside PRELOGIN packets. It stops at TLS 1.2 and
// sends no session tickets: in TLS 1.3 they follow the handshake, where a client no
// longer expects wrapped records (field guide §10.2).
func wrappedTLSConfig(cert tls.Certificate) *tls.Config {
	return &tls.Config{
		Certificates:           []tls.Certificate{cert},
		MinVersion:             tls.VersionTLS12,
		MaxVersion:             tls.VersionTLS12,
		SessionTicketsDisabled: true,
	}
}

// strictTLSConfig is for TDS 8.0, where TLS is the outer layer.
func strictTLSConfig(cert tls.Certificate) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{cert},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{alpnTDS8},
	}
}

// handshakeConn carries TLS records inside packets of type PRELOGIN until done is set,
// then lets them through.
type handshakeConn struct {
	net.Conn
	pending bytes.Reader
	size    int
	done    bool
}

func (c *handshakeConn) Read(b []byte) (int, error) {
	if c.done && c.pending.Len() == 0 {
		return c.Conn.Read(b)
	}
	if c.pending.Len() == 0 {
		m, err := readMessage(c.Conn, maxLoginSize)
		if err != nil {
			return 0, err
		}
		if m.kind != typePrelogin {
			return 0, fmt.Errorf("tds: packet type 0x%02x inside the TLS handshake", m.kind)
		}
		if len(m.payload) == 0 {
			return 0, io.ErrUnexpectedEOF
		}
		c.pending.Reset(m.payload)
	}
	return c.pending.Read(b)
}

func (c *handshakeConn) Write(b []byte) (int, error) {
	if c.done {
		return c.Conn.Write(b)
	}
	w := newPacketWriter(c.Conn, typePrelogin, 0, c.size)
	if _, err := w.Write(b); err != nil {
		return 0, err
	}
	if err := w.end(); err != nil {
		return 0, err
	}
	return len(b), nil
}

// prefixConn gives back bytes that were read to look at them.
type prefixConn struct {
	net.Conn
	prefix []byte
}

func (c *prefixConn) Read(b []byte) (int, error) {
	if len(c.prefix) > 0 {
		n := copy(b, c.prefix)
		c.prefix = c.prefix[n:]
		return n, nil
	}
	return c.Conn.Read(b)
}
