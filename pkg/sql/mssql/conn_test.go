package mssql_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/tsql"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/tds"
)

const user, secret = "kubectl_mssql", "p@ss;w{o}rd'"

// handler answers batches with Go functions, by their first word.
type handler map[string]func(ctx context.Context, out *tds.Response)

func (h handler) Login(_ context.Context, _ *tds.Conn, l tds.Login) (tds.Session, tds.LoginResult, error) {
	if l.User != user || l.Password != secret {
		return nil, tds.LoginResult{}, &tds.LoginError{Messages: []tds.Message{{Number: 18456, Class: 14, State: 1, Text: "Login failed for user."}}}
	}
	return session{h}, tds.LoginResult{Database: "master"}, nil
}

type session struct{ h handler }

func (s session) Execute(ctx context.Context, r tds.Request, out *tds.Response) {
	for word, answer := range s.h {
		if strings.HasPrefix(r.SQL, word) {
			answer(ctx, out)
			return
		}
	}
	_ = out.Done(tds.Done{})
}
func (s session) State() tds.SessionState     { return tds.SessionState{Database: "master"} }
func (s session) Reset(context.Context, bool) {}
func (s session) Close()                      {}

// serve starts a server with a certificate for "ag1-0.ag1.ns.svc" and returns its address and a login that verifies it.
func serve(t *testing.T, h handler) (string, mssql.Login) {
	t.Helper()
	certificate, err := tds.SelfSigned(time.Now(), "ag1-0.ag1.ns.svc")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = tds.NewServer(h, tds.Config{Certificate: certificate}).Serve(ctx, l)
	}()
	t.Cleanup(func() { cancel(); <-done })
	roots := x509.NewCertPool()
	leaf, err := x509.ParseCertificate(certificate.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	roots.AddCert(leaf)
	return l.Addr().String(), mssql.Login{
		User: user, Password: func(context.Context) (string, error) { return secret, nil },
		TLS: &tls.Config{RootCAs: roots, ServerName: "ag1-0.ag1.ns.svc"},
	}
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func dial(t *testing.T, address string, login mssql.Login) mssql.Conn {
	t.Helper()
	c, err := (&mssql.Dialer{}).Dial(within(t, 10*time.Second), address, login)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func fail(out *tds.Response, numbers ...int32) {
	for _, n := range numbers {
		_ = out.Message(tds.Message{Number: n, Class: 16, State: 3, Text: "text"})
	}
	_ = out.Done(tds.Done{})
}

func one(out *tds.Response, name string, typ sqltypes.Type, v sqltypes.Value) {
	_ = out.Columns([]tds.Column{{Name: name, Type: typ}})
	_ = out.Row([]sqltypes.Value{v})
	_ = out.Done(tds.Done{Count: 1, Counted: true})
}

func TestLoginFailuresSayWhatTheyAre(t *testing.T) {
	t.Parallel()
	address, login := serve(t, handler{})
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and says nothing: a stopped process
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()

	wrongPassword, wrongName, noPassword := login, login, login
	wrongPassword.Password = func(context.Context) (string, error) { return "other", nil }
	wrongName.TLS = login.TLS.Clone()
	wrongName.TLS.ServerName = "ag1-1.ag1.ns.svc"
	noPassword.Password = func(context.Context) (string, error) { return "", errors.New("no such Secret") }

	for _, tt := range []struct {
		name    string
		address string
		login   mssql.Login
		kind    ag.ErrorKind
		reach   ag.Reach
		number  int32
	}{
		{"a wrong password", address, wrongPassword, ag.ErrLogin, ag.ReachLoginFailed, 18456},
		{"a password that cannot be read", address, noPassword, ag.ErrLogin, ag.ReachLoginFailed, 0},
		{"another server at the address", address, wrongName, ag.ErrUnreachable, ag.ReachRefused, 0},
		{"a port that nobody listens on", closed.Addr().String(), login, ag.ErrUnreachable, ag.ReachRefused, 0},
		{"a server that accepts and says nothing", silent.Addr().String(), login, ag.ErrTimeout, ag.ReachTimeout, 0},
		{"an address without a port", "127.0.0.1", login, ag.ErrUnreachable, ag.ReachRefused, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			started := time.Now()
			c, err := (&mssql.Dialer{LoginTimeout: time.Second}).Dial(context.Background(), tt.address, tt.login)
			if c != nil || err == nil {
				t.Fatal("logged in")
			}
			e := mssql.AsError(err)
			if e.Kind != tt.kind || e.Number != tt.number || mssql.Reach(err) != tt.reach {
				t.Errorf("kind %s, number %d, reach %s: %v", e.Kind, e.Number, mssql.Reach(err), err)
			}
			if strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "other") && tt.kind == ag.ErrLogin {
				t.Errorf("the error tells the password: %v", err)
			}
			if took := time.Since(started); took > 5*time.Second {
				t.Errorf("took %s, its deadline was 1 s", took)
			}
		})
	}
}

func TestEveryErrorOfAnAnswerIsKept(t *testing.T) {
	t.Parallel()
	address, login := serve(t, handler{
		"JOIN": func(_ context.Context, out *tds.Response) { fail(out, 35250, 41158) },
		"INFO": func(_ context.Context, out *tds.Response) {
			_ = out.Message(tds.Message{Number: 41145, Class: 10, Text: "joined"})
			_ = out.Done(tds.Done{})
		},
		"LATER": func(_ context.Context, out *tds.Response) {
			one(out, "a", sqltypes.TInt, sqltypes.NewInt(1))
			fail(out, 41142)
			one(out, "b", sqltypes.TInt, sqltypes.NewInt(2))
		},
		"FIRST": func(_ context.Context, out *tds.Response) {
			fail(out, 47119)
			one(out, "b", sqltypes.TInt, sqltypes.NewInt(2))
		},
	})
	c := dial(t, address, login)
	err := c.Exec(within(t, 5*time.Second), "JOIN it")
	want := &ag.Error{Kind: ag.ErrMsg, Number: 41158, State: 3, All: []int32{35250, 41158}, Message: "text | text"}
	if d := cmp.Diff(want, mssql.AsError(err)); d != "" {
		t.Errorf("JOIN (-want +got)\n%s", d)
	}
	if !mssql.AsError(err).Has(35250) {
		t.Error("the inner error is not found")
	}
	if err := c.Exec(within(t, 5*time.Second), "INFO it"); err != nil {
		t.Errorf("a message of severity 10 is an error: %v", err)
	}
	for _, batch := range []string{"LATER", "FIRST"} {
		if err := c.Exec(within(t, 5*time.Second), batch+" it"); mssql.AsError(err) == nil {
			t.Errorf("%s: an error before or between result sets is lost", batch)
		}
	}
	if err := c.Exec(within(t, 5*time.Second), "NOTHING at all"); err != nil {
		t.Errorf("the session is of no use after an error: %v", err)
	}
}

func TestDeadlineHoldsAgainstAServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	address, login := serve(t, handler{"HANG": func(ctx context.Context, _ *tds.Response) {
		<-ctx.Done()
		if errors.Is(context.Cause(ctx), tds.ErrAttention) {
			// A server that is beyond hearing does not answer the attention either.
			<-time.After(3 * time.Second)
		}
	}})
	c := dial(t, address, login)
	started := time.Now()
	err := c.Exec(within(t, 300*time.Millisecond), "HANG on")
	if e := mssql.AsError(err); e == nil || e.Kind != ag.ErrTimeout {
		t.Errorf("got %v", err)
	}
	if took := time.Since(started); took > 2*time.Second {
		t.Errorf("took %s, its deadline was 300 ms", took)
	}
}

func TestLostConnectionLeavesTheStatementInDoubt(t *testing.T) {
	t.Parallel()
	address, login := serve(t, handler{"DIE": func(_ context.Context, out *tds.Response) {
		_ = out.Message(tds.Message{Number: 596, Class: 21, Text: "killed"})
		_ = out.Done(tds.Done{})
	}})
	c := dial(t, address, login)
	if err := c.Exec(within(t, 5*time.Second), "DIE now"); err == nil {
		t.Fatal("no error")
	}
	if e := mssql.AsError(c.Exec(within(t, 5*time.Second), "AGAIN now")); e == nil || e.Kind != ag.ErrTimeout {
		t.Errorf("after the connection was lost: %v", e)
	}
}

func TestRefusedBatchesAreErrorsOfTheirOwnKind(t *testing.T) {
	t.Parallel()
	refuse := func(why string) func(context.Context, *tds.Response) {
		return func(_ context.Context, out *tds.Response) {
			one(out, tsql.RefusedColumn, sqltypes.TNVarChar(20), sqltypes.NewNVarChar(why))
		}
	}
	address, login := serve(t, handler{
		"LATE":   refuse(tsql.RefusedExpired),
		"GUARD":  refuse(tsql.RefusedGuard),
		"SELECT": func(_ context.Context, out *tds.Response) { one(out, "other", sqltypes.TInt, sqltypes.NewInt(1)) },
	})
	c := dial(t, address, login)
	for batch, kind := range map[string]ag.ErrorKind{"LATE": ag.ErrExpired, "GUARD": ag.ErrGuard} {
		if e := mssql.AsError(mssql.ExecGuarded(within(t, 5*time.Second), c, batch+" it")); e == nil || e.Kind != kind {
			t.Errorf("%s: %v", batch, e)
		}
	}
	if err := mssql.ExecGuarded(within(t, 5*time.Second), c, "SELECT it"); err != nil {
		t.Errorf("another result set was taken for a refusal: %v", err)
	}
}
