//go:build linux

package instance

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql/mssqltest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/tsql"
)

// loginServer knows passwords and names.
type loginServer struct {
	down      bool
	passwords map[string]string
	name      string
	// registered is the name for the next start.
	registered string
	groups     int64
	sent       []string
}

func (s *loginServer) dial(_ context.Context, user, password string) (mssql.Conn, error) {
	if s.down {
		return nil, &ag.Error{Kind: ag.ErrUnreachable, Message: "connection refused"}
	}
	if want, ok := s.passwords[user]; !ok || want != password {
		return nil, &ag.Error{Kind: ag.ErrLogin, Number: 18456, Message: "Login failed for user '" + user + "'."}
	}
	return &loginConn{s: s}, nil
}

type loginConn struct{ s *loginServer }

func (c *loginConn) Close() error { return nil }

func (c *loginConn) Exec(ctx context.Context, batch string) error {
	_, err := c.Query(ctx, batch)
	return err
}

func (c *loginConn) Query(_ context.Context, batch string) ([]mssql.Result, error) {
	s := c.s
	s.sent = append(s.sent, batch)
	for _, user := range []string{operatorLogin, saLogin} {
		for _, password := range []string{"Op-1-password", "Op-2-password", "Sa-1-password", "Sa-2-password"} {
			if batch == tsql.SetLoginPassword(user, password) {
				s.passwords[user] = password
			}
		}
	}
	switch {
	case batch == tsql.ServerNames():
		return []mssql.Result{mssqltest.Table([]string{"server_name", "registered_name", "group_count"}, []any{s.name, s.registered, s.groups})}, nil
	case strings.Contains(batch, "sp_addserver"):
		s.registered = "ag1-0"
	case strings.HasSuffix(batch, " AS token;"):
		token := strings.TrimSuffix(strings.TrimPrefix(batch, "SELECT N'"), "' AS token;")
		return []mssql.Result{mssqltest.Table([]string{"token"}, []any{token})}, nil
	}
	return nil, nil
}

func newLoginBench(t *testing.T, s *loginServer) *manager {
	t.Helper()
	b := newBench(t, t.TempDir())
	b.m.dial = s.dial
	b.m.starts.Store(1)
	write(t, b.m.o.OperatorPasswordFile, "Op-1-password")
	write(t, b.m.o.SAPasswordFile, "Sa-1-password")
	return b.m
}

func firstStart() *loginServer {
	return &loginServer{passwords: map[string]string{saLogin: "Sa-1-password"}, name: "AG1-0", registered: "AG1-0"}
}

func TestLogin_IsMadeAtTheFirstStartAndFollowsItsSecret(t *testing.T) {
	t.Parallel()
	s := firstStart()
	m := newLoginBench(t, s)
	ctx := context.Background()
	if err := m.checkLogin(ctx, "t1"); err != nil {
		t.Fatal(err)
	}
	if s.passwords[operatorLogin] != "Op-1-password" {
		t.Errorf("passwords %v", s.passwords)
	}
	made := len(s.sent)
	if err := m.checkLogin(ctx, "t2"); err != nil {
		t.Fatal(err)
	}
	if got := s.sent[made:]; len(got) != 1 || got[0] != tsql.Ping("t2") {
		t.Errorf("a later check sent %q", got)
	}
	write(t, m.o.OperatorPasswordFile, "Op-2-password")
	if err := m.checkLogin(ctx, "t3"); err != nil {
		t.Fatal(err)
	}
	if s.passwords[operatorLogin] != "Op-2-password" {
		t.Errorf("passwords %v", s.passwords)
	}
	write(t, m.o.SAPasswordFile, "Sa-2-password")
	if err := m.checkLogin(ctx, "t4"); err != nil {
		t.Fatal(err)
	}
	if s.passwords[saLogin] != "Sa-2-password" {
		t.Errorf("passwords %v", s.passwords)
	}
}

func TestLogin_WorksWithoutSAWhenItIsThereAlready(t *testing.T) {
	t.Parallel()
	s := firstStart()
	s.passwords = map[string]string{operatorLogin: "Op-1-password"} // sa is disabled
	m := newLoginBench(t, s)
	if err := m.checkLogin(context.Background(), "t"); err != nil {
		t.Error(err)
	}
}

func TestLogin_SaysWhatDoesNotWork(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(s *loginServer)
		want   string
	}{
		{"a server that is not up yet", func(s *loginServer) { s.down = true }, "connection refused"},
		{"neither password is the server's", func(s *loginServer) { s.passwords = map[string]string{} }, "neither sa nor kubectl_mssql can log in"},
		{"a volume of another replica", func(s *loginServer) { s.name, s.registered, s.groups = "ag1-2", "ag1-2", 1 }, "belongs to another replica"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := firstStart()
			tt.change(s)
			err := newLoginBench(t, s).checkLogin(context.Background(), "t")
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "-password") {
				t.Errorf("the error tells a password: %v", err)
			}
		})
	}
}

func TestServerName_IsCorrectedByOneRestart(t *testing.T) {
	t.Parallel()
	s := firstStart()
	s.name, s.registered = "old-host", "old-host"
	m := newLoginBench(t, s)
	ctx := context.Background()
	for range 3 { // it asks once, and waits
		if err := m.checkLogin(ctx, "t"); !errors.Is(err, errRestarting) {
			t.Fatalf("got %v", err)
		}
	}
	if n := count(s.sent, "sp_addserver"); n != 1 {
		t.Errorf("renamed %d times", n)
	}
	if len(m.restarts) != 1 {
		t.Error("no restart was asked for")
	}
	m.starts.Add(1)
	s.name = s.registered
	if err := m.checkLogin(ctx, "t"); err != nil {
		t.Error(err)
	}
	// A server that keeps its old name is not restarted for ever.
	s.name = "old-host"
	m.starts.Add(1)
	m.nameChecked.Store(false)
	drain(m.restarts)
	if err := m.checkLogin(ctx, "t"); err == nil || !strings.Contains(err.Error(), "although it was renamed") {
		t.Errorf("got %v", err)
	}
	if len(m.restarts) != 0 {
		t.Error("it restarts again")
	}
}

func count(batches []string, part string) int {
	n := 0
	for _, b := range batches {
		if strings.Contains(b, part) {
			n++
		}
	}
	return n
}

func TestCheckPolicy_RefusesWhatTheServerWould(t *testing.T) {
	t.Parallel()
	for password, ok := range map[string]bool{
		"Abcdef12": true, "abcdefg!1": true, "ABCDEFGH1!": true,
		"Abcd12!": false, "abcdefgh1": false, "abcdefgh": false, strings.Repeat("aB1", 43): false,
	} {
		if got := checkPolicy(password) == nil; got != ok {
			t.Errorf("%q: accepted %t, want %t", password, got, ok)
		}
	}
}

func TestParseDiagnostics_NeedsItsThreeComponents(t *testing.T) {
	t.Parallel()
	full := diagnosticsResult(true)
	d, err := parseDiagnostics([]mssql.Result{full})
	if err != nil || d.System != 3 || d.Resource != 3 || d.QueryProcessing != 3 {
		t.Errorf("got %+v, %v", d, err)
	}
	short := full
	short.Rows = full.Rows[:2]
	if _, err := parseDiagnostics([]mssql.Result{short}); err == nil {
		t.Error("a missing component was accepted")
	}
	if _, err := parseDiagnostics([]mssql.Result{{Columns: []string{"x"}, Rows: [][]any{{"y"}}}}); err == nil {
		t.Error("another result was accepted")
	}
	if got := fmt.Sprintf("%d %d %s", number(int32(3)), number([]byte("3")), text([]byte("a"))); got != "3 0 a" {
		t.Errorf("got %s", got)
	}
}
