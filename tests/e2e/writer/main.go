// Command writer is a client that writes unique rows all the time and remembers
// which of them were acknowledged. It runs inside the cluster; a checker reads
// GET /report and resets the measurement with POST /reset.
package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	_ "github.com/microsoft/go-mssqldb"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "writer:", err)
		os.Exit(1)
	}
}

type settings struct {
	server, database, client string
	password                 string
	interval, timeout        time.Duration
}

func run() error {
	var s settings
	var passwordFile, listen string
	flag.StringVar(&s.server, "server", "", "host:port of the listener")
	flag.StringVar(&s.database, "database", "orders", "database to write to")
	flag.StringVar(&s.client, "client", "", "name of this client, the first part of each row's key")
	flag.StringVar(&passwordFile, "password-file", "/secret/password", "file with the password of sa")
	flag.DurationVar(&s.interval, "interval", 20*time.Millisecond, "pause between two rows")
	flag.DurationVar(&s.timeout, "timeout", 3*time.Second, "how long one row may take")
	flag.StringVar(&listen, "listen", ":8080", "address of the report")
	flag.Parse()
	b, err := os.ReadFile(passwordFile)
	if err != nil {
		return err
	}
	s.password = strings.TrimSpace(string(b))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	l := &ledger{client: s.client}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /report", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(l.report(time.Now())) // a reader that went away needs no answer
	})
	mux.HandleFunc("POST /reset", func(http.ResponseWriter, *http.Request) { l.reset(time.Now()) })
	srv := &http.Server{Addr: listen, Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		<-ctx.Done()
		_ = srv.Close()
	}()
	go write(ctx, s, l)
	if err := srv.ListenAndServe(); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// write sends one row after the other over one connection, and connects again when it breaks.
func write(ctx context.Context, s settings, l *ledger) {
	q := url.Values{"database": {s.database}, "encrypt": {"true"}, "TrustServerCertificate": {"true"},
		"dial timeout": {"2"}, "connection timeout": {"5"}, "app name": {"writer " + s.client}}
	dsn := (&url.URL{Scheme: "sqlserver", User: url.UserPassword("sa", s.password), Host: s.server, RawQuery: q.Encode()}).String()
	next := int64(1)
	for ctx.Err() == nil {
		db, err := sql.Open("sqlserver", dsn)
		if err == nil {
			db.SetMaxOpenConns(1)
			err = session(ctx, db, s, l, &next)
			_ = db.Close() // the connection is broken anyway
		}
		if err != nil && ctx.Err() == nil {
			l.fail(next, false, err, time.Now())
		}
		pause(ctx, 100*time.Millisecond)
	}
}

func session(ctx context.Context, db *sql.DB, s settings, l *ledger, next *int64) error {
	connectCtx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := db.Conn(connectCtx)
	if err != nil {
		return err
	}
	defer conn.Close()
	const table = `IF OBJECT_ID(N'dbo.written') IS NULL CREATE TABLE dbo.written (client nvarchar(64) NOT NULL, n bigint NOT NULL, PRIMARY KEY (client, n))`
	if _, err := conn.ExecContext(connectCtx, table); err != nil && !strings.Contains(err.Error(), "already an object") {
		return err
	}
	for ctx.Err() == nil {
		n := *next
		*next++
		rowCtx, cancel := context.WithTimeout(ctx, s.timeout)
		_, err := conn.ExecContext(rowCtx, `INSERT dbo.written (client, n) VALUES (@p1, @p2)`, s.client, n)
		cancel()
		if err != nil {
			l.fail(n, true, err, time.Now())
			return err
		}
		l.ack(n, time.Now())
		pause(ctx, s.interval)
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
