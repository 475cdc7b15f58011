package tds

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Defaults of Config.
const (
	defaultLoginTimeout = 30 * time.Second
	defaultMaxMessage   = 64 << 20
	defaultWriteTimeout = 5 * time.Minute
)

// Config says how a Server speaks.
type Config struct {
	Certificate tls.Certificate
	// ForceEncryption refuses clients that cannot encrypt (network.forceencryption).
	ForceEncryption bool
	// ForceStrict refuses clients that do not start with TLS (TDS 8.0; network.forcestrict).
	ForceStrict bool
	// ServerName is asked for each message, since the name may change.
	ServerName func() string
	// Version is the product version of PRELOGIN and LOGINACK: major, minor, build (big-endian).
	Version [4]byte
	// MaxMessage bounds a client message in bytes, LoginTimeout the time from connection to
	// login, WriteTimeout a client that does not read. Zero means the default.
	MaxMessage   int
	LoginTimeout time.Duration
	WriteTimeout time.Duration
	// Log receives one line about each connection that ends badly. It may be nil.
	Log func(line string)
}

// Server serves a Handler over TDS.
type Server struct {
	Config
	handler Handler
	spid    atomic.Uint32

	mu    sync.Mutex
	conns map[*Conn]struct{}
	wait  sync.WaitGroup
}

// firstSPID is the lowest session number of a user in the product.
const firstSPID = 51

// NewServer makes a server; nothing runs yet.
func NewServer(handler Handler, config Config) *Server {
	if config.ServerName == nil {
		config.ServerName = func() string { return "" }
	}
	if config.MaxMessage == 0 {
		config.MaxMessage = defaultMaxMessage
	}
	if config.LoginTimeout == 0 {
		config.LoginTimeout = defaultLoginTimeout
	}
	if config.WriteTimeout == 0 {
		config.WriteTimeout = defaultWriteTimeout
	}
	if config.Log == nil {
		config.Log = func(string) {}
	}
	s := &Server{Config: config, handler: handler, conns: map[*Conn]struct{}{}}
	s.spid.Store(firstSPID - 1)
	return s
}

// Serve accepts connections until ctx ends or the listener fails, then closes the
// connections and waits for them. It closes the listener. A context that ended is no
// error.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	defer s.wait.Wait()
	defer func() { _ = l.Close() }()
	var delay time.Duration
	for {
		c, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			var ne net.Error
			if errors.As(err, &ne) && ne.Timeout() {
				continue
			}
			if errors.Is(err, net.ErrClosed) {
				return fmt.Errorf("accept: %w", err)
			}
			// Out of descriptors or an aborted connection: the listener itself still works.
			delay = min(max(2*delay, 5*time.Millisecond), time.Second)
			s.Log(fmt.Sprintf("accept: %v", err))
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(delay):
			}
			continue
		}
		delay = 0
		s.wait.Go(func() { s.ServeConn(ctx, c) })
	}
}

// ServeConn serves one connection until it ends, and closes it.
func (s *Server) ServeConn(ctx context.Context, nc net.Conn) {
	ctx, cancel := context.WithCancelCause(ctx)
	c := &Conn{server: s, raw: nc, cancel: cancel, spid: uint16(s.spid.Add(1)), packetSize: defaultPacketSize}
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	defer stop()
	defer cancel(net.ErrClosed)
	defer func() { _ = nc.Close() }()

	s.mu.Lock()
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	if err := c.serve(ctx); err != nil && ctx.Err() == nil {
		s.Log(fmt.Sprintf("connection from %s: %v", nc.RemoteAddr(), err))
	}
}
