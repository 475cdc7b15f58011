package tds_test

import (
	"context"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/tds"
)

const (
	fakeUser     = "sa"
	fakePassword = "Pässword;1{}"
)

// fakeHandler is a session factory whose statements are Go functions.
type fakeHandler struct {
	mu       sync.Mutex
	logins   []tds.Login
	requests []tds.Request
	conns    []*tds.Conn
	closed   int
	routing  *tds.Routing
	// certificate is the path of the server's certificate as PEM.
	certificate string
	execute     map[string]func(ctx context.Context, r tds.Request, out *tds.Response)
}

func (h *fakeHandler) closedSessions() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.closed
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(10 * time.Second)
	defer deadline.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-deadline.C:
			t.Fatalf("waited 10 s for %s", what)
		case <-tick.C:
		}
	}
}

type fakeSession struct {
	h     *fakeHandler
	home  string
	state tds.SessionState
	tran  uint64
}

func (h *fakeHandler) Login(_ context.Context, c *tds.Conn, l tds.Login) (tds.Session, tds.LoginResult, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.logins = append(h.logins, l)
	h.conns = append(h.conns, c)
	if l.User != fakeUser || l.Password != fakePassword {
		return nil, tds.LoginResult{}, &tds.LoginError{Messages: []tds.Message{
			{Number: 18456, Class: 14, State: 1, Line: 1, Text: "Login failed for user '" + l.User + "'."},
		}}
	}
	db := l.Database
	if db == "" {
		db = "master"
	}
	result := tds.LoginResult{
		Database: db, Language: "us_english",
		Messages: []tds.Message{{Number: 5701, Class: 0, State: 2, Text: "Changed database context to '" + db + "'."}},
	}
	if l.ReadOnlyIntent {
		result.Routing = h.routing
	}
	return &fakeSession{h: h, home: db, state: tds.SessionState{Database: db}}, result, nil
}

func (s *fakeSession) State() tds.SessionState { return s.state }
func (s *fakeSession) Reset(context.Context, bool) {
	s.state = tds.SessionState{Database: s.home}
}

func (s *fakeSession) Close() {
	s.h.mu.Lock()
	s.h.closed++
	s.h.mu.Unlock()
}

func (s *fakeSession) Execute(ctx context.Context, r tds.Request, out *tds.Response) {
	s.h.mu.Lock()
	s.h.requests = append(s.h.requests, r)
	run := s.h.execute[r.SQL+r.Proc]
	s.h.mu.Unlock()
	if run != nil {
		run(ctx, r, out)
		return
	}
	switch {
	case strings.Contains(r.SQL, "BEGIN TRAN"):
		s.tran++
		s.state.Transaction = s.tran
	case strings.HasPrefix(r.SQL, "COMMIT"):
		s.state.Transaction, s.state.RolledBack = 0, false
	case strings.HasPrefix(r.SQL, "ROLLBACK"):
		s.state.Transaction, s.state.RolledBack = 0, true
	case strings.HasPrefix(r.SQL, "USE "):
		s.state.Database = strings.TrimPrefix(r.SQL, "USE ")
	case r.SQL == "SELECT DB":
		_ = out.Columns([]tds.Column{{Name: "db", Type: sqltypes.TSysName}})
		_ = out.Row([]sqltypes.Value{sqltypes.NewSysName(s.state.Database)})
		_ = out.Done(tds.Done{Count: 1, Counted: true})
	default:
		_ = out.Message(tds.Message{Number: 102, Class: 15, State: 1, Line: 1, Text: "Incorrect syntax near '" + r.SQL + "'."})
		_ = out.Done(tds.Done{})
	}
}

// start serves h on a loopback port and returns the address.
func start(t *testing.T, h *fakeHandler, change func(*tds.Config)) string {
	t.Helper()
	cert, err := tds.SelfSigned(time.Now(), "localhost", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	h.certificate = filepath.Join(t.TempDir(), "server.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})
	if err := os.WriteFile(h.certificate, block, 0o600); err != nil {
		t.Fatal(err)
	}
	config := tds.Config{
		Certificate: cert,
		ServerName:  func() string { return "mssql-0" },
		Version:     [4]byte{16, 0, 0x10, 0x68},
	}
	if change != nil {
		change(&config)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- tds.NewServer(h, config).Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return l.Addr().String()
}
