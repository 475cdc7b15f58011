package tds

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"
)

// Conn is one client connection.
type Conn struct {
	server     *Server
	raw        net.Conn
	stream     net.Conn // raw, or TLS over it
	encrypted  bool
	strict     bool
	cancel     context.CancelCauseFunc
	spid       uint16
	packetSize int
	login      Login
	session    Session
	prepared   preparedSet

	mu      sync.Mutex
	request *underway // nil between requests
}

// SPID is the session number.
func (c *Conn) SPID() int { return int(c.spid) }

// Kill breaks the connection: the client sees it reset, as when the server kills the
// sessions of a database. It does not wait.
func (c *Conn) Kill(cause error) {
	c.cancel(cause)
	_ = c.raw.Close()
}

// deadlineConn gives every write a deadline, so that a client that does not read cannot
// hold a session for ever.
type deadlineConn struct {
	net.Conn
	timeout time.Duration
}

func (c deadlineConn) Write(b []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *Conn) serve(ctx context.Context) error {
	if err := c.raw.SetDeadline(time.Now().Add(c.server.LoginTimeout)); err != nil {
		return err
	}
	c.stream = deadlineConn{Conn: c.raw, timeout: c.server.WriteTimeout}
	if err := c.handshake(ctx); err != nil {
		if errors.Is(err, io.EOF) { // a port probe: connect and leave
			return nil
		}
		return err
	}
	ok, err := c.logIn(ctx)
	if err != nil || !ok {
		return err
	}
	defer c.session.Close()
	if err := c.raw.SetDeadline(time.Time{}); err != nil {
		return err
	}
	return c.requests(ctx)
}

// firstTLSByte starts a TLS handshake record; a client that begins so speaks TDS 8.0.
const firstTLSByte = 0x16

// handshake goes from the open socket to the point where LOGIN7 is due.
func (c *Conn) handshake(ctx context.Context) error {
	var first [1]byte
	if _, err := io.ReadFull(c.stream, first[:]); err != nil {
		return err
	}
	c.stream = &prefixConn{Conn: c.stream, prefix: first[:]}
	if first[0] == firstTLSByte {
		t := tls.Server(c.stream, strictTLSConfig(c.server.Certificate))
		if err := t.HandshakeContext(ctx); err != nil {
			return fmt.Errorf("TLS handshake: %w", err)
		}
		c.stream, c.encrypted, c.strict = t, true, true
	} else if c.server.ForceStrict {
		return errors.New("the client does not speak TDS 8.0, which network.forcestrict demands")
	}

	m, err := readMessage(c.stream, maxLoginSize)
	if err != nil {
		return fmt.Errorf("read PRELOGIN: %w", err)
	}
	if m.kind != typePrelogin {
		return fmt.Errorf("packet type 0x%02x where PRELOGIN is due", m.kind)
	}
	p, err := parsePrelogin(m.payload)
	if err != nil {
		return err
	}
	if c.strict {
		return c.reply(preloginReply(c.server.Version, p.encryption))
	}
	answer, useTLS, ok := negotiateEncryption(p.encryption, c.server.ForceEncryption)
	if err := c.reply(preloginReply(c.server.Version, answer)); err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("the client's encryption setting %d does not fit the server's", p.encryption)
	}
	if !useTLS {
		return nil
	}
	wrapped := &handshakeConn{Conn: c.stream, size: defaultPacketSize}
	t := tls.Server(wrapped, wrappedTLSConfig(c.server.Certificate))
	if err := t.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("TLS handshake: %w", err)
	}
	wrapped.done = true
	c.stream, c.encrypted = t, true
	return nil
}

// reply sends one whole reply message.
func (c *Conn) reply(payload []byte) error {
	w := newPacketWriter(c.stream, typeReply, c.spid, c.packetSize)
	if _, err := w.Write(payload); err != nil {
		return err
	}
	return w.end()
}

// logIn reads LOGIN7 and asks the handler. ok is false when the client was refused or
// sent elsewhere.
func (c *Conn) logIn(ctx context.Context) (ok bool, err error) {
	m, err := readMessage(c.stream, maxLoginSize)
	if err != nil {
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		return false, fmt.Errorf("read LOGIN7: %w", err)
	}
	if m.kind != typeLogin7 {
		return false, fmt.Errorf("packet type 0x%02x where LOGIN7 is due", m.kind)
	}
	login, err := parseLogin7(m.payload)
	if err != nil {
		return false, err
	}
	version := login.TDSVersion
	switch {
	case c.strict:
		version = tdsVersion80
	case version>>24 < 0x72 || version > tdsVersion74:
		version = tdsVersion74
	}
	login.ClientAddr, login.Encrypted = c.raw.RemoteAddr().String(), c.encrypted
	c.login = login

	ctx, cancel := context.WithTimeout(ctx, c.server.LoginTimeout)
	defer cancel()
	session, result, err := c.server.handler.Login(ctx, c, login)
	var refused *LoginError
	if errors.As(err, &refused) {
		var b []byte
		for _, m := range refused.Messages {
			b = appendMessage(b, m, c.server.ServerName())
		}
		return false, c.reply(appendDone(b, tokDone, doneError, 0, 0))
	}
	if err != nil {
		return false, fmt.Errorf("log in: %w", err)
	}
	c.session = session
	if result.SPID != 0 {
		c.spid = uint16(result.SPID)
	}
	old := c.packetSize
	if err := c.reply(c.loginReply(result, version)); err != nil {
		session.Close()
		return false, fmt.Errorf("answer LOGIN7: %w", err)
	}
	if result.Routing != nil {
		session.Close()
		c.session = nil
		c.packetSize = old
		c.drain()
		return false, nil
	}
	c.packetSize = c.wantedPacketSize()
	return true, nil
}

// drain waits until the client has closed, so that it reads the whole reply before the
// connection goes away.
func (c *Conn) drain() {
	_, _ = io.Copy(io.Discard, io.LimitReader(c.stream, maxLoginSize))
}

func (c *Conn) wantedPacketSize() int {
	if c.login.PacketSize < minPacketSize {
		return defaultPacketSize
	}
	return min(c.login.PacketSize, maxPacketSize)
}

func (c *Conn) loginReply(result LoginResult, version uint32) []byte {
	server := c.server.ServerName()
	var b []byte
	b = appendEnvString(b, envDatabase, result.Database, "master")
	for _, m := range result.Messages {
		b = appendMessage(b, m, server)
	}
	b = appendEnvBytes(b, envCollation, collation[:], nil)
	if result.Language != "" {
		b = appendEnvString(b, envLanguage, result.Language, "")
	}
	b = appendLoginAck(b, version, c.server.Version)
	b = appendEnvString(b, envPacketSize, strconv.Itoa(c.wantedPacketSize()), strconv.Itoa(c.packetSize))
	if r := result.Routing; r != nil {
		b = appendEnvRouting(b, r.Host, r.Port)
	}
	return appendDone(b, tokDone, 0, 0, 0)
}
