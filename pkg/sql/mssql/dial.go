package mssql

import (
	"context"
	"crypto/tls"
	"database/sql"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	driver "github.com/microsoft/go-mssqldb"
	"github.com/microsoft/go-mssqldb/msdsn"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// NetDialer makes the TCP connection: the pod network, a port-forward, loopback.
type NetDialer interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
}

// Login is who logs in, and how the server is verified.
type Login struct {
	User string
	// Password is asked for at every login, so that a changed Secret is seen. It is
	// kept nowhere.
	Password func(context.Context) (string, error)
	// TLS verifies the server: RootCAs and ServerName must be set. Nil means an
	// unverified connection, for loopback inside the server's own container only.
	TLS *tls.Config
}

// Dialer makes sessions.
type Dialer struct {
	// Net dials; nil is the machine's own network.
	Net NetDialer
	// AppName is shown in sys.dm_exec_sessions.program_name.
	AppName string
	// LoginTimeout bounds dial, TLS and login together, within the caller's deadline; 0 is 15 s.
	LoginTimeout time.Duration
}

// defaultLoginTimeout is SQL Server's customary login time-out.
const defaultLoginTimeout = 15 * time.Second

// hangUpAfter is how long the driver may take to cancel a statement politely once
// its deadline has passed; then the connection is cut.
const hangUpAfter = 250 * time.Millisecond

// Dial logs in at address (host:port) and returns the session, in master.
func (d *Dialer) Dial(ctx context.Context, address string, login Login) (Conn, error) {
	const op = "log in"
	timeout := d.LoginTimeout
	if timeout <= 0 {
		timeout = defaultLoginTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()

	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &ag.Error{Kind: ag.ErrUnreachable, Message: fmt.Sprintf("%s: address %q: %v", op, address, err)}
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		return nil, &ag.Error{Kind: ag.ErrUnreachable, Message: fmt.Sprintf("%s: address %q has no port number", op, address)}
	}
	if login.Password == nil {
		return nil, &ag.Error{Kind: ag.ErrLogin, Message: op + ": no password for " + login.User}
	}
	password, err := login.Password(ctx)
	if err != nil {
		return nil, &ag.Error{Kind: ag.ErrLogin, Message: fmt.Sprintf("%s: password of %s: %v", op, login.User, err)}
	}
	config := msdsn.Config{
		Host: host, Port: port, Protocols: []string{"tcp"},
		Database: "master", User: login.User, Password: password,
		Encryption: msdsn.EncryptionRequired, HostInCertificateProvided: true,
		AppName: d.AppName, DisableRetry: true, DialTimeout: -1,
		TLSConfig: clientTLS(login.TLS),
		Encoding:  msdsn.EncodeParameters{Timezone: time.UTC},
	}
	link := &link{net: d.Net, host: host}
	connector := driver.NewConnectorConfig(config)
	connector.Dialer = link
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	// The driver's TLS handshake and login know no context: cut the line when it ends.
	stop := context.AfterFunc(ctx, link.cut)
	conn, err := db.Conn(ctx)
	stop()
	if err == nil && ctx.Err() != nil { // the deadline passed in the last moment: the line may be cut
		_ = conn.Close()
		err = ctx.Err()
	}
	if err != nil {
		_ = db.Close()
		link.cut()
		return nil, loginError(op, address, err, ctx.Err())
	}
	return &session{db: db, conn: conn, link: link, address: address}, nil
}

// clientTLS is the client's configuration for one connection. The TDS layer wants
// one TLS record a packet, hence DynamicRecordSizingDisabled.
func clientTLS(given *tls.Config) *tls.Config {
	if given == nil {
		return &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12, DynamicRecordSizingDisabled: true}
	}
	c := given.Clone()
	c.DynamicRecordSizingDisabled = true
	if c.MinVersion == 0 {
		c.MinVersion = tls.VersionTLS12
	}
	return c
}

// link dials for the driver and remembers the connection, so that it can be cut.
type link struct {
	net  NetDialer
	host string

	mu     sync.Mutex
	conn   net.Conn
	closed bool
}

// DialContext implements the driver's Dialer.
func (l *link) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := l.net
	if dialer == nil {
		dialer = &net.Dialer{}
	}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	l.conn = conn
	return conn, nil
}

// HostName implements the driver's HostDialer: names are resolved by our own dialer.
func (l *link) HostName() string { return l.host }

// cut closes the connection under the driver's feet: any call that waits for the server returns.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.conn != nil {
		_ = l.conn.Close()
	}
}

type session struct {
	db      *sql.DB
	conn    *sql.Conn
	link    *link
	address string
}

// Exec implements Conn.
func (s *session) Exec(ctx context.Context, batch string) error {
	_, err := s.Query(ctx, batch)
	return err
}

// Query implements Conn.
func (s *session) Query(ctx context.Context, batch string) ([]Result, error) {
	hungUp := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-hungUp:
		case <-time.After(hangUpAfter): //nolint:forbidigo // the wire's own patience; no choice rests on it
			s.link.cut()
		}
	})
	defer stop()
	defer close(hungUp)
	results, err := s.read(ctx, batch)
	if err != nil {
		return results, statementError(s.address, err, ctx.Err())
	}
	return results, nil
}

func (s *session) read(ctx context.Context, batch string) ([]Result, error) {
	rows, err := s.conn.QueryContext(ctx, batch)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var results []Result
	for {
		columns, err := rows.Columns()
		if err != nil {
			return results, err
		}
		if len(columns) > 0 {
			r := Result{Columns: columns}
			for rows.Next() {
				values := make([]any, len(columns))
				into := make([]any, len(columns))
				for i := range values {
					into[i] = &values[i]
				}
				if err := rows.Scan(into...); err != nil {
					return results, err
				}
				r.Rows = append(r.Rows, values)
			}
			if err := rows.Err(); err != nil {
				return append(results, r), err
			}
			results = append(results, r)
		}
		if !rows.NextResultSet() {
			return results, rows.Err()
		}
	}
}

// Close implements Conn.
func (s *session) Close() error {
	_ = s.conn.Close()
	err := s.db.Close()
	s.link.cut()
	return err
}
