package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// Limits of the endpoint transport.
const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	maxEndpointFrame = 256 << 20
	alpnEndpoint     = "mssqlsim-endpoint"
)

// Dialer opens TCP connections; tests use it to cut the network.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// transport is the endpoint side of an instance: its listener and its links. All methods
// but the goroutines' own are called by the host's applier.
type transport struct {
	host  *host
	dial  Dialer
	gates []*gate
	log   func(string)

	ctx    context.Context
	cancel context.CancelFunc
	wait   sync.WaitGroup

	// spawning orders new goroutines against the end: after ended nothing starts.
	spawning sync.Mutex
	ended    bool

	mu       sync.Mutex
	listener net.Listener
	opened   int // counts changes of the listener
	links    map[engine.LinkID]*link
	lastID   engine.LinkID // of accepted links: even
}

func newTransport(h *host, dial Dialer, gates []*gate, log func(string)) *transport {
	ctx, cancel := context.WithCancel(context.Background())
	return &transport{host: h, dial: dial, gates: gates, log: log, ctx: ctx, cancel: cancel, links: map[engine.LinkID]*link{}}
}

// link is one connection to a peer.
type link struct {
	id     engine.LinkID
	conn   net.Conn // nil while dialling
	cancel context.CancelFunc
	out    sendQueue
}

// sendQueue is an unbounded queue of encoded messages: the engine's session time-out
// bounds how long a peer may stay silent, and with it what piles up here.
type sendQueue struct {
	mu     sync.Mutex
	frames [][]byte
	closed bool
	ready  chan struct{}
}

func (q *sendQueue) push(b []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.frames = append(q.frames, b)
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

func (q *sendQueue) take() [][]byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	f := q.frames
	q.frames = nil
	return f
}

// listen follows a Listen effect.
func (t *transport) listen(e engine.Listen) {
	t.mu.Lock()
	old := t.listener
	t.listener = nil
	t.opened++
	t.mu.Unlock()
	if old != nil {
		_ = old.Close()
	}
	if !e.Open || t.ctx.Err() != nil {
		return
	}
	address := net.JoinHostPort(e.IP, strconv.Itoa(e.Port))
	t.mu.Lock()
	t.opened++
	mine := t.opened
	t.mu.Unlock()
	var config net.ListenConfig
	l, err := config.Listen(t.ctx, "tcp", address)
	if err == nil {
		t.listening(l, mine)
		return
	}
	// A former owner of the port may still be going away; the applier must not wait for it.
	t.spawn(func() {
		deadline := time.Now().Add(30 * time.Second)
		for errors.Is(err, syscall.EADDRINUSE) && time.Now().Before(deadline) {
			select {
			case <-t.ctx.Done():
				return
			case <-time.After(20 * time.Millisecond):
			}
			if l, err = config.Listen(t.ctx, "tcp", address); err == nil {
				t.listening(l, mine)
				return
			}
		}
		t.log(fmt.Sprintf("The Database Mirroring endpoint cannot listen on port %d: %v", e.Port, err))
	})
}

// listening takes a new listener over, unless the endpoint was changed since.
func (t *transport) listening(l net.Listener, opened int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.opened != opened || t.ctx.Err() != nil {
		_ = l.Close()
		return
	}
	t.listener = l
	t.spawn(func() { t.accept(l) })
}

func (t *transport) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || t.ctx.Err() != nil {
				return
			}
			select {
			case <-t.ctx.Done():
				return
			case <-time.After(50 * time.Millisecond):
			}
			continue
		}
		if !t.spawn(func() { t.accepted(conn) }) {
			_ = conn.Close()
		}
	}
}

func (t *transport) accepted(raw net.Conn) {
	conn, peer, err := t.secure(t.ctx, raw, false)
	if err != nil {
		_ = raw.Close()
		if !errors.Is(err, io.EOF) {
			t.log(fmt.Sprintf("Database Mirroring login attempt failed with error: '%v'. [CLIENT: %s]", err, raw.RemoteAddr()))
		}
		return
	}
	ctx, cancel := context.WithCancel(t.ctx)
	l := &link{conn: conn, cancel: cancel}
	t.mu.Lock()
	t.lastID += 2
	l.id = t.lastID
	t.mu.Unlock()
	t.serve(ctx, l, peer)
}

// start follows a Dial effect.
func (t *transport) start(e engine.Dial) {
	ctx, cancel := context.WithCancel(t.ctx)
	l := &link{id: e.Link, cancel: cancel}
	l.out.ready = make(chan struct{}, 1)
	t.mu.Lock()
	t.links[e.Link] = l
	t.mu.Unlock()
	t.spawn(func() {
		conn, peer, err := t.connect(ctx, e.URL)
		if err != nil {
			t.forget(l)
			if ctx.Err() == nil {
				number, text := osError(err)
				t.host.post(func(now time.Time, in *engine.Instance) { in.LinkFailed(now, e.Link, number, text) })
			}
			cancel()
			return
		}
		t.mu.Lock()
		l.conn = conn
		t.mu.Unlock()
		t.serve(ctx, l, peer)
	})
}

func (t *transport) connect(ctx context.Context, endpoint string) (net.Conn, []byte, error) {
	u, err := url.Parse(endpoint)
	if err != nil || !strings.EqualFold(u.Scheme, "tcp") || u.Port() == "" {
		return nil, nil, fmt.Errorf("endpoint URL %q is not TCP://host:port", endpoint)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	raw, err := t.dial(ctx, "tcp", u.Host)
	if err != nil {
		return nil, nil, err
	}
	conn, peer, err := t.secure(ctx, raw, true)
	if err != nil {
		_ = raw.Close()
		return nil, nil, err
	}
	return conn, peer, nil
}

// secure runs the mutual TLS handshake. Each side proves that it owns the key of the
// certificate that it shows; whether the certificate may connect is the engine's choice.
func (t *transport) secure(ctx context.Context, raw net.Conn, client bool) (net.Conn, []byte, error) {
	var pair engine.KeyPair
	var ok bool
	t.host.post(func(_ time.Time, in *engine.Instance) { pair, ok = in.EndpointIdentity() })
	if !ok {
		return nil, nil, errors.New("the endpoint has no certificate with a private key, or is not started")
	}
	key, err := x509.ParsePKCS8PrivateKey(pair.PKCS8)
	if err != nil {
		return nil, nil, fmt.Errorf("read the endpoint's key: %w", err)
	}
	config := &tls.Config{
		Certificates:           []tls.Certificate{{Certificate: [][]byte{pair.DER}, PrivateKey: key}},
		MinVersion:             tls.VersionTLS12,
		NextProtos:             []string{alpnEndpoint},
		ClientAuth:             tls.RequireAnyClientCert,
		InsecureSkipVerify:     true, // trust is by certificate in master, which the engine checks
		SessionTicketsDisabled: true,
	}
	raw = &gatedConn{Conn: raw, gates: t.gates}
	conn := tls.Server(raw, config)
	if client {
		conn = tls.Client(raw, config)
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, nil, err
	}
	peers := conn.ConnectionState().PeerCertificates
	if len(peers) == 0 {
		return nil, nil, errors.New("the peer shows no certificate")
	}
	if err := usableKey(peers[0]); err != nil {
		return nil, nil, err
	}
	return conn, bytes.Clone(peers[0].Raw), nil
}

func usableKey(c *x509.Certificate) error {
	switch c.PublicKey.(type) {
	case *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey:
		return nil
	default:
		return fmt.Errorf("the peer's key of type %T is not supported", c.PublicKey)
	}
}

// serve runs an established link until it ends.
func (t *transport) serve(ctx context.Context, l *link, peer []byte) {
	defer l.cancel()
	if l.out.ready == nil {
		l.out.ready = make(chan struct{}, 1)
	}
	t.mu.Lock()
	t.links[l.id] = l
	t.mu.Unlock()
	stop := context.AfterFunc(ctx, func() { _ = l.conn.Close() })
	defer stop()
	t.host.post(func(now time.Time, in *engine.Instance) { in.LinkUp(now, l.id, peer) })
	t.spawn(func() { t.write(ctx, l) })
	err := t.read(l)
	t.forget(l)
	if ctx.Err() == nil { // not closed by the engine itself
		_, text := osError(err)
		t.host.post(func(now time.Time, in *engine.Instance) { in.LinkDown(now, l.id, text) })
	}
}

func (t *transport) read(l *link) error {
	in := bufio.NewReaderSize(l.conn, 64<<10)
	var header [4]byte
	for {
		if _, err := io.ReadFull(in, header[:]); err != nil {
			return err
		}
		n := binary.LittleEndian.Uint32(header[:])
		if n > maxEndpointFrame {
			return fmt.Errorf("message of %d bytes from a peer", n)
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(in, b); err != nil {
			return err
		}
		m, err := engine.DecodeMessage(b)
		if err != nil {
			return fmt.Errorf("message from a peer: %w", err)
		}
		t.host.post(func(now time.Time, in *engine.Instance) { in.Receive(now, l.id, m) })
	}
}

func (t *transport) write(ctx context.Context, l *link) {
	out := bufio.NewWriterSize(l.conn, 64<<10)
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.out.ready:
		}
		for _, b := range l.out.take() {
			var header [4]byte
			binary.LittleEndian.PutUint32(header[:], uint32(len(b)))
			if _, err := out.Write(header[:]); err != nil {
				_ = l.conn.Close()
				return
			}
			if _, err := out.Write(b); err != nil {
				_ = l.conn.Close()
				return
			}
		}
		if err := out.Flush(); err != nil {
			_ = l.conn.Close()
			return
		}
	}
}

// send follows a Send effect.
func (t *transport) send(e engine.Send) {
	t.mu.Lock()
	l := t.links[e.Link]
	t.mu.Unlock()
	if l == nil {
		return
	}
	b, err := engine.EncodeMessage(e.Message)
	if err != nil {
		t.log(fmt.Sprintf("encode a message for a peer: %v", err))
		t.mu.Lock()
		if l.conn != nil {
			_ = l.conn.Close() // the reader reports the link as down
		}
		t.mu.Unlock()
		return
	}
	l.out.push(b)
}

// end follows a CloseLink effect. What was sent before still goes out if it can.
func (t *transport) end(e engine.CloseLink) {
	t.mu.Lock()
	l := t.links[e.Link]
	delete(t.links, e.Link)
	t.mu.Unlock()
	if l != nil {
		l.cancel()
	}
}

func (t *transport) forget(l *link) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.links[l.id] == l {
		delete(t.links, l.id)
	}
}

// stop closes everything and waits for the goroutines.
func (t *transport) stop() {
	t.cancel()
	t.mu.Lock()
	if t.listener != nil {
		_ = t.listener.Close()
	}
	t.mu.Unlock()
	t.spawning.Lock()
	t.ended = true
	t.spawning.Unlock()
	t.wait.Wait()
}

// osError gives the number and the text that the product reports for a failed connection.
func osError(err error) (int, string) {
	var errno syscall.Errno
	var dns *net.DNSError
	switch {
	case err == nil:
		return 0, ""
	case errors.As(err, &dns):
		return 11001, fmt.Sprintf("11001(No such host is known.) %v", err) // as the product shows it (field guide §1.5)
	case errors.As(err, &errno):
		return int(errno), fmt.Sprintf("%d(%s)", int(errno), errno.Error())
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return int(syscall.ECONNRESET), "An existing connection was forcibly closed by the remote host."
	case errors.Is(err, context.DeadlineExceeded):
		return int(syscall.ETIMEDOUT), "connection timed out"
	default:
		return -1, err.Error()
	}
}

// spawn runs f unless the transport has ended, and tells whether it does.
func (t *transport) spawn(f func()) bool {
	t.spawning.Lock()
	defer t.spawning.Unlock()
	if t.ended {
		return false
	}
	t.wait.Go(f)
	return true
}
