package main

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/golang-sql/sqlexp"
	mssql "github.com/microsoft/go-mssqldb"
	"github.com/microsoft/go-mssqldb/msdsn"
)

const driverName = "Microsoft ODBC Driver 18 for SQL Server"

// run is the whole program; it returns the exit code.
func run(ctx context.Context, args []string, env func(string) string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, env)
	if err != nil {
		fmt.Fprintf(stderr, "Sqlcmd: %v\n", err)
		return 1
	}
	if o.help {
		fmt.Fprint(stdout, usage)
		return 0
	}
	if o.output != "" {
		f, err := os.Create(o.output)
		if err != nil {
			fmt.Fprintf(stderr, "Sqlcmd: Error: Error occurred while opening or operating on file %s (Reason: %v).\n", o.output, err)
			return 1
		}
		defer func() { _ = f.Close() }()
		stdout = f
	}
	c := &client{o: o, out: bufio.NewWriter(stdout), err: stderr}
	code := c.session(ctx, stdin)
	if err := c.out.Flush(); err != nil {
		return 1
	}
	return code
}

// client runs a script on one connection.
type client struct {
	o    options
	out  *bufio.Writer
	err  io.Writer
	conn *sql.Conn
	code int
}

// say reports a failure of the connection, not of a statement. sqlcmd writes these to
// the error stream.
func (c *client) say(format string, args ...any) {
	_ = c.out.Flush()
	fmt.Fprintf(c.err, "Sqlcmd: Error: "+driverName+" : "+format+"\n", args...)
}

func (c *client) session(ctx context.Context, stdin io.Reader) int {
	closeAll, err := c.connect(ctx)
	if err != nil {
		var e usageError
		var m mssql.Error
		switch {
		case errors.As(err, &e):
			fmt.Fprintf(c.err, "Sqlcmd: %v\n", err)
		case errors.As(err, &m):
			c.say("%s.", strings.TrimPrefix(m.Message, "login error: "))
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), strings.Contains(err.Error(), "i/o timeout"):
			c.say("Login timeout expired.")
		case strings.Contains(err.Error(), "x509:"):
			c.say("SSL Provider: [error:0A000086:SSL routines::certificate verify failed:self-signed certificate].")
			c.say("Client unable to establish connection. (%v)", err)
		default:
			c.say("Login timeout expired.")
			c.say("TCP Provider: %v.", err)
		}
		return 1
	}
	defer closeAll()

	s := &script{variables: c.o.variables, noVariables: c.o.noVariables, onErrorExit: func(exit bool) { c.o.exitOnError = exit }}
	if c.o.echo {
		s.echo = c.out
	}
	s.run = func(b batch) (bool, error) {
		for range b.times {
			if stop := c.batch(ctx, b.text); stop {
				return true, nil
			}
		}
		return false, nil
	}
	if err := c.inputs(s, stdin); err != nil {
		_ = c.out.Flush()
		fmt.Fprintf(c.err, "Sqlcmd: Error: %v\n", err)
		return 1
	}
	return c.code
}

func (c *client) inputs(s *script, stdin io.Reader) error {
	switch {
	case c.o.hasQuery:
		_, err := s.read(strings.NewReader(c.o.query))
		return err
	case len(c.o.inputs) > 0:
		for _, name := range c.o.inputs {
			f, err := os.Open(name)
			if err != nil {
				return scriptError(fmt.Sprintf("'%s': Invalid filename.", name))
			}
			stop, err := s.read(f)
			_ = f.Close()
			if stop || err != nil {
				return err
			}
		}
		return nil
	default:
		// At a terminal sqlcmd runs only what ends in GO; so it does with a pipe.
		_, err := s.consume(stdin)
		return err
	}
}

// deadlineDialer puts the login time-out on the socket itself: a server that accepts and
// then says nothing would hold the driver's handshake for ever.
type deadlineDialer struct {
	dialer net.Dialer
	until  time.Time
	mu     sync.Mutex
	conns  []net.Conn
}

func (d *deadlineDialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := d.dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	if !d.until.IsZero() {
		if err := conn.SetDeadline(d.until); err != nil {
			return nil, err
		}
	}
	d.mu.Lock()
	d.conns = append(d.conns, conn)
	d.mu.Unlock()
	return conn, nil
}

func (d *deadlineDialer) loggedIn() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.conns {
		_ = c.SetDeadline(time.Time{})
	}
}

func (c *client) connect(ctx context.Context) (func(), error) {
	host, port, err := c.o.address()
	if err != nil {
		return nil, err
	}
	query := url.Values{"encrypt": {c.o.encrypt}, "app name": {c.o.app}}
	if c.o.trust || c.o.encrypt == "false" {
		query.Set("TrustServerCertificate", "true")
	}
	if c.o.database != "" {
		query.Set("database", c.o.database)
	}
	if c.o.readOnly {
		query.Set("ApplicationIntent", "ReadOnly")
	}
	if c.o.workstation != "" {
		query.Set("workstation id", c.o.workstation)
	}
	u := url.URL{Scheme: "sqlserver", Host: net.JoinHostPort(host, strconv.Itoa(port)), RawQuery: query.Encode()}
	config, err := msdsn.Parse(u.String())
	if err != nil {
		return nil, err
	}
	config.User, config.Password = c.o.user, c.o.password
	connector := mssql.NewConnectorConfig(config)
	dialer := &deadlineDialer{}
	if c.o.loginTimeout > 0 {
		dialer.until = time.Now().Add(c.o.loginTimeout)
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, dialer.until)
		defer cancel()
	}
	connector.Dialer = dialer
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(1)
	if c.conn, err = db.Conn(ctx); err != nil {
		_ = db.Close()
		return nil, err
	}
	dialer.loggedIn()
	return func() { _ = c.conn.Close(); _ = db.Close() }, nil
}

// batch runs one batch and prints what comes. stop tells that the script ends here.
func (c *client) batch(ctx context.Context, text string) (stop bool) {
	if c.o.queryTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.o.queryTimeout)
		defer cancel()
	}
	failed := false
	var queue sqlexp.ReturnMessage
	// The driver takes a lone word for the name of a procedure, but not with a line break.
	rows, err := c.conn.QueryContext(ctx, text+"\n", &queue)
	if err == nil {
		failed, err = c.results(ctx, rows, &queue)
		//nolint:sqlclosecheck // the close's own error is the batch's last message
		if closeErr := rows.Close(); err == nil && closeErr != nil && !isServerMessage(closeErr) {
			err = closeErr
		}
	}
	if err != nil {
		var m mssql.Error
		switch {
		case ctx.Err() != nil:
			c.say("Query timeout expired.")
		case errors.As(err, &m):
			return c.message(m) && c.o.exitOnError
		default:
			c.say("Communication link failure. (%v)", err)
		}
		c.code = 1
		return true
	}
	return failed && c.o.exitOnError
}

func isServerMessage(err error) bool {
	var m mssql.Error
	return errors.As(err, &m)
}

func (c *client) results(ctx context.Context, rows *sql.Rows, queue *sqlexp.ReturnMessage) (failed bool, err error) {
	p := &printer{out: c.out, o: &c.o}
	for {
		switch m := queue.Message(ctx).(type) {
		case sqlexp.MsgNext:
			if err := c.resultSet(rows, p); err != nil {
				return failed, err
			}
		case sqlexp.MsgRowsAffected:
			p.affected(m.Count)
		case sqlexp.MsgNotice:
			var e mssql.Error
			if errors.As(asError(m.Message), &e) {
				c.message(e)
			} else {
				fmt.Fprintln(c.out, m.Message)
			}
		case sqlexp.MsgError:
			var e mssql.Error
			if !errors.As(m.Error, &e) {
				return failed, m.Error
			}
			if c.message(e) {
				failed = true
			}
			if failed && c.o.exitOnError {
				return true, nil
			}
		case sqlexp.MsgNextResultSet:
			if ctx.Err() != nil {
				return failed, ctx.Err()
			}
			if !rows.NextResultSet() {
				if err := rows.Err(); err != nil && !isServerMessage(err) {
					return failed, err
				}
				return failed, nil
			}
		}
	}
}

func asError(v any) error {
	if err, ok := v.(error); ok {
		return err
	}
	return nil
}

func (c *client) resultSet(rows *sql.Rows, p *printer) error {
	types, err := rows.ColumnTypes()
	if err != nil {
		return err
	}
	p.begin(columnsOf(types, &c.o))
	values := make([]any, len(types))
	into := make([]any, len(types))
	for i := range values {
		into[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		p.row(values)
	}
	if err := rows.Err(); err != nil && !isServerMessage(err) {
		return err
	}
	return nil
}

// message prints a message of the server and tells whether it is an error that counts
// for the exit code.
func (c *client) message(e mssql.Error) bool {
	isError := e.Class > 10
	w := io.Writer(c.out)
	if c.o.errorsTo == 1 || c.o.errorsTo == 0 && isError {
		_ = c.out.Flush()
		w = c.err
	}
	if int(e.Class) >= c.o.minLevel {
		if isError || c.o.minLevel < 0 {
			fmt.Fprintf(w, "Msg %d, Level %d, State %d, Server %s, ", e.Number, e.Class, e.State, e.ServerName)
			if e.ProcName != "" {
				fmt.Fprintf(w, "Procedure %s, ", e.ProcName)
			}
			fmt.Fprintf(w, "Line %d\n", e.LineNo)
		}
		fmt.Fprintln(w, e.Message)
	}
	if !isError {
		return false
	}
	switch {
	case c.o.severity > 0:
		if int(e.Class) < c.o.severity {
			return false
		}
		c.code = int(e.Class)
	case c.o.exitOnError:
		c.code = 1
	}
	return true
}
