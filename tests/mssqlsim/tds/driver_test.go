package tds_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mssql "github.com/microsoft/go-mssqldb"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/tds"
)

func open(t *testing.T, addr string, options ...string) *sql.DB {
	t.Helper()
	query := url.Values{"TrustServerCertificate": {"true"}, "dial timeout": {"10"}}
	for _, o := range options {
		k, v, _ := strings.Cut(o, "=")
		query.Set(k, v)
	}
	u := url.URL{Scheme: "sqlserver", User: url.UserPassword(fakeUser, fakePassword), Host: addr, RawQuery: query.Encode()}
	db, err := sql.Open("sqlserver", u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestLogin_EveryEncryptionModeOfTheDriver(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"disable", "false", "true", "strict"} {
		t.Run("encrypt is "+mode, func(t *testing.T) {
			t.Parallel()
			h := &fakeHandler{}
			addr := start(t, h, nil)
			options := []string{"encrypt=" + mode, "database=sales", "app name=probe"}
			if mode == "strict" {
				options = append(options, "TrustServerCertificate=false", "certificate="+h.certificate)
			}
			db := open(t, addr, options...)
			var got string
			if err := db.QueryRowContext(t.Context(), "SELECT DB").Scan(&got); err != nil {
				t.Fatal(err)
			}
			if got != "sales" {
				t.Errorf("database = %q, want sales", got)
			}
			l := h.logins[0]
			if l.App != "probe" || l.Encrypted != (mode != "disable") || l.ReadOnlyIntent {
				t.Errorf("login = %+v", l)
			}
		})
	}
}

func TestLogin_RefusalsReachTheClient(t *testing.T) {
	t.Parallel()
	addr := start(t, &fakeHandler{}, nil)
	db, err := sql.Open("sqlserver", "sqlserver://bob:x@"+addr+"?TrustServerCertificate=true")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var e mssql.Error
	err = db.PingContext(t.Context())
	if !errors.As(err, &e) || e.Number != 18456 || e.Class != 14 || e.State != 1 || e.ServerName != "mssql-0" {
		t.Fatalf("ping = %v", err)
	}
}

func TestLogin_ForcedEncryptionRefusesPlainText(t *testing.T) {
	t.Parallel()
	addr := start(t, &fakeHandler{}, func(c *tds.Config) { c.ForceEncryption = true })
	if err := open(t, addr, "encrypt=disable").PingContext(t.Context()); err == nil {
		t.Error("a plain-text login went through")
	}
	var s string
	if err := open(t, addr, "encrypt=true").QueryRowContext(t.Context(), "SELECT DB").Scan(&s); err != nil {
		t.Errorf("an encrypted login: %v", err)
	}
}

func TestLogin_ForcedStrictRefusesTDS7(t *testing.T) {
	t.Parallel()
	h := &fakeHandler{}
	addr := start(t, h, func(c *tds.Config) { c.ForceStrict = true })
	if err := open(t, addr, "encrypt=true").PingContext(t.Context()); err == nil {
		t.Error("a TDS 7.4 login went through")
	}
	var s string
	if err := open(t, addr, "encrypt=strict", "TrustServerCertificate=false", "certificate="+h.certificate).QueryRowContext(t.Context(), "SELECT DB").Scan(&s); err != nil {
		t.Errorf("a strict login: %v", err)
	}
}

func TestLogin_ReadIntentIsRouted(t *testing.T) {
	t.Parallel()
	second := start(t, &fakeHandler{}, nil)
	host, port, _ := strings.Cut(second, ":")
	var p uint16
	if _, err := fmt.Sscan(port, &p); err != nil {
		t.Fatal(err)
	}
	h := &fakeHandler{routing: &tds.Routing{Host: host, Port: p}}
	first := start(t, h, nil)
	var s string
	if err := open(t, first, "ApplicationIntent=ReadOnly", "database=ro").QueryRowContext(t.Context(), "SELECT DB").Scan(&s); err != nil {
		t.Fatal(err)
	}
	if len(h.logins) != 1 || !h.logins[0].ReadOnlyIntent || len(h.requests) != 0 {
		t.Errorf("first server saw %v and %v", h.logins, h.requests)
	}
}

func mustDecimal(t *testing.T, typ sqltypes.Type, s string) sqltypes.Value {
	t.Helper()
	n, ok := new(big.Int).SetString(s, 10)
	if !ok {
		t.Fatal(s)
	}
	v, err := sqltypes.NewDecimal(typ, n)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTypes_EveryTypeArrivesAsTheDriverShowsIt(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 29, 23, 5, 7, 123_456_700, time.UTC)
	zone := time.FixedZone("", 90*60)
	long := strings.Repeat("ä€𝄞", 9000)
	guid := [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	cases := []struct {
		name string
		typ  sqltypes.Type
		in   sqltypes.Value
		want any
	}{
		{"bit", sqltypes.TBit, sqltypes.NewBit(true), true},
		{"tinyint", sqltypes.TTinyInt, sqltypes.NewTinyInt(255), int64(255)},
		{"smallint", sqltypes.TSmallInt, sqltypes.NewSmallInt(-3), int64(-3)},
		{"int", sqltypes.TInt, sqltypes.NewInt(math.MinInt32), int64(math.MinInt32)},
		{"bigint", sqltypes.TBigInt, sqltypes.NewBigInt(math.MaxInt64), int64(math.MaxInt64)},
		{"int in a bigint column", sqltypes.TBigInt, sqltypes.NewInt(-1), int64(-1)},
		{"float", sqltypes.TFloat, sqltypes.NewFloat(1.5e300), 1.5e300},
		{"numeric(25,0)", sqltypes.TLSN, mustDecimal(t, sqltypes.TLSN, "1234567890123456789012345"), []byte("1234567890123456789012345")},
		{"negative decimal", sqltypes.TNumeric(10, 2), mustDecimal(t, sqltypes.TNumeric(10, 2), "-1234"), []byte("-12.34")},
		{"nvarchar", sqltypes.TNVarChar(60), sqltypes.NewNVarChar("SYNCHRONIZED ä€𝄞"), "SYNCHRONIZED ä€𝄞"},
		{"nvarchar(max)", sqltypes.TNVarCharMax, sqltypes.NewNVarChar(long), long},
		{"empty nvarchar(max)", sqltypes.TNVarCharMax, sqltypes.NewNVarChar(""), ""},
		{"varchar", sqltypes.TVarChar(20), sqltypes.NewVarChar("ä€"), "ä€"},
		{"sysname", sqltypes.TSysName, sqltypes.NewSysName("ag1"), "ag1"},
		{"xml", sqltypes.TXML, sqltypes.NewText(sqltypes.TXML, "<a/>"), "<a/>"},
		{"varbinary", sqltypes.TVarBinary(8), sqltypes.NewBinary([]byte{0, 1, 255}), []byte{0, 1, 255}},
		{"varbinary(max)", sqltypes.TVarBinaryMax, sqltypes.NewBinary(bytes.Repeat([]byte{7}, 70000)), bytes.Repeat([]byte{7}, 70000)},
		{"uniqueidentifier", sqltypes.TGUID, sqltypes.NewGUID(guid), []byte{4, 3, 2, 1, 6, 5, 8, 7, 9, 10, 11, 12, 13, 14, 15, 16}},
		{"date", sqltypes.TDate, sqltypes.NewTime(sqltypes.TDate, at), time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)},
		{"datetime", sqltypes.TDateTime, sqltypes.NewDateTime(at), time.Date(2026, 11, 29, 23, 5, 7, 123_000_000, time.UTC)},
		{"datetime2", sqltypes.TDateTime2, sqltypes.NewDateTime2(at), at},
		{"smalldatetime", sqltypes.TSmallDateTime, sqltypes.NewTime(sqltypes.TSmallDateTime, at), time.Date(2026, 11, 29, 23, 5, 0, 0, time.UTC)},
		{"datetimeoffset", sqltypes.TDateTimeOffset, sqltypes.NewTime(sqltypes.TDateTimeOffset, at.In(zone)), at.In(zone)},
		{"variant of nvarchar", sqltypes.TVariant, sqltypes.NewNVarChar("Developer Edition (64-bit)").AsVariant(), "Developer Edition (64-bit)"},
		{"variant of int", sqltypes.TVariant, sqltypes.NewInt(1).AsVariant(), int64(1)},
		{"variant of datetime2", sqltypes.TVariant, sqltypes.NewDateTime2(at).AsVariant(), at},
		{"null variant", sqltypes.TVariant, sqltypes.Null(sqltypes.TVariant), nil},
		{"null int", sqltypes.TInt, sqltypes.Null(sqltypes.TInt), nil},
		{"null nvarchar", sqltypes.TNVarChar(9), sqltypes.Null(sqltypes.TNVarChar(9)), nil},
		{"null nvarchar(max)", sqltypes.TNVarCharMax, sqltypes.Null(sqltypes.TNVarCharMax), nil},
		{"null datetime2", sqltypes.TDateTime2, sqltypes.Null(sqltypes.TDateTime2), nil},
		{"untyped null", sqltypes.TUnknown, sqltypes.Null(sqltypes.TUnknown), nil},
	}
	var columns []tds.Column
	var row []sqltypes.Value
	for _, c := range cases {
		columns = append(columns, tds.Column{Name: c.name, Type: c.typ, Nullable: true})
		row = append(row, c.in)
	}
	h := &fakeHandler{execute: map[string]func(context.Context, tds.Request, *tds.Response){
		"TYPES": func(_ context.Context, _ tds.Request, out *tds.Response) {
			_ = out.Columns(columns)
			for range 3 {
				if err := out.Row(row); err != nil {
					t.Errorf("Row: %v", err)
				}
			}
			_ = out.Done(tds.Done{Count: 3, Counted: true})
		},
	}}
	rows, err := open(t, start(t, h, nil)).QueryContext(t.Context(), "TYPES")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	n := 0
	for rows.Next() {
		got := make([]any, len(cases))
		into := make([]any, len(cases))
		for i := range got {
			into[i] = &got[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		for i, c := range cases {
			want := c.want
			if w, ok := want.(time.Time); ok {
				if g, ok := got[i].(time.Time); !ok || !g.Equal(w) {
					t.Errorf("%s = %v, want %v", c.name, got[i], w)
				}
				continue
			}
			if diff := cmp.Diff(want, got[i]); diff != "" {
				t.Errorf("%s (-want +got):\n%.300s", c.name, diff)
			}
		}
		n++
	}
	if err := rows.Err(); err != nil || n != 3 {
		t.Fatalf("%d rows, %v", n, err)
	}
}

func TestRPC_ParametersArriveTyped(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	var got tds.Request
	h := &fakeHandler{execute: map[string]func(context.Context, tds.Request, *tds.Response){
		"SELECT @p1": func(_ context.Context, r tds.Request, out *tds.Response) {
			got = r
			_ = out.Done(tds.Done{Count: 7, Counted: true})
		},
	}}
	db := open(t, start(t, h, nil))
	result, err := db.ExecContext(t.Context(), "SELECT @p1",
		int64(-5), "text ä", []byte{1, 2}, true, 2.5, at, nil, strings.Repeat("x", 9000), mssql.VarChar("v"),
		mssql.DateTime1(at), mssql.UniqueIdentifier{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, sql.Named("named", int32(4)))
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := result.RowsAffected(); n != 7 {
		t.Errorf("rows affected = %d, want 7", n)
	}
	var names []string
	var values []any
	for _, p := range got.Params {
		names = append(names, p.Name)
		switch v := p.Value; {
		case v.IsNull():
			values = append(values, nil)
		case v.Type().IsInteger():
			values = append(values, v.Int64())
		case v.Type().IsFloat():
			values = append(values, v.Float64())
		case v.Type().IsString():
			values = append(values, v.Text())
		case v.Type().IsBinary():
			values = append(values, v.Bytes())
		case v.Type().IsTemporal():
			values = append(values, v.Time().UTC().Format(time.RFC3339Nano))
		default:
			values = append(values, v.GUID())
		}
	}
	wantNames := []string{"@p1", "@p2", "@p3", "@p4", "@p5", "@p6", "@p7", "@p8", "@p9", "@p10", "@p11", "@named"}
	if diff := cmp.Diff(wantNames, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	want := []any{int64(-5), "text ä", []byte{1, 2}, int64(1), 2.5, "2026-01-02T03:04:05.678Z", nil, strings.Repeat("x", 9000), "v",
		"2026-01-02T03:04:05.677Z", [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, int64(4)}
	if diff := cmp.Diff(want, values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if !strings.Contains(got.Declaration, "@p1 bigint") {
		t.Errorf("declaration = %q", got.Declaration)
	}
}

func TestRPC_ProcedureReturnsStatusAndOutput(t *testing.T) {
	t.Parallel()
	h := &fakeHandler{execute: map[string]func(context.Context, tds.Request, *tds.Response){
		"sp_thing": func(_ context.Context, r tds.Request, out *tds.Response) {
			if r.Params[0].Name != "@in" || !r.Params[1].Output {
				t.Errorf("params = %+v", r.Params)
			}
			_ = out.Done(tds.Done{})
			_ = out.ReturnStatus(3)
			_ = out.ReturnValue(tds.Param{Name: "@out", Type: sqltypes.TNVarChar(20), Value: sqltypes.NewNVarChar("hello")})
		},
	}}
	db := open(t, start(t, h, nil))
	var out string
	var status mssql.ReturnStatus
	_, err := db.ExecContext(t.Context(), "sp_thing", sql.Named("in", 1), sql.Named("out", sql.Out{Dest: &out}), &status)
	if err != nil || out != "hello" || status != 3 {
		t.Fatalf("out = %q, status = %d, %v", out, status, err)
	}
}

func TestMessages_ErrorsInfosAndLaterResults(t *testing.T) {
	t.Parallel()
	h := &fakeHandler{execute: map[string]func(context.Context, tds.Request, *tds.Response){
		"MIXED": func(_ context.Context, _ tds.Request, out *tds.Response) {
			_ = out.Message(tds.Message{Number: 41145, Class: 10, State: 1, Line: 1, Text: "already joined"})
			_ = out.Message(tds.Message{Number: 1408, Class: 16, State: 211, Line: 2, Text: "inner"})
			_ = out.Message(tds.Message{Number: 41158, Class: 16, State: 3, Line: 2, Text: "wrapper"})
			_ = out.Done(tds.Done{})
		},
		"INFO": func(_ context.Context, _ tds.Request, out *tds.Response) {
			_ = out.Message(tds.Message{Number: 41131, Class: 10, State: 1, Line: 1, Text: "informational"})
			_ = out.Done(tds.Done{})
		},
		"BREAK": func(_ context.Context, _ tds.Request, out *tds.Response) {
			_ = out.Message(tds.Message{Number: 596, Class: 21, State: 1, Line: 1, Text: "session is in the kill state"})
		},
	}}
	db := open(t, start(t, h, nil))
	_, err := db.ExecContext(t.Context(), "MIXED")
	var e mssql.Error
	if !errors.As(err, &e) || e.Number != 41158 || len(e.All) != 2 || e.All[0].Number != 1408 || e.All[0].State != 211 {
		t.Errorf("MIXED = %#v", err)
	}
	if _, err := db.ExecContext(t.Context(), "INFO"); err != nil {
		t.Errorf("severity 10 is an error to the client: %v", err)
	}
	if _, err := db.ExecContext(t.Context(), "BREAK"); err == nil {
		t.Error("severity 21 is no error")
	}
	if h.closedSessions() == 0 {
		waitFor(t, "the session to close", func() bool { return h.closedSessions() > 0 })
	}
}

func TestTransactions_DescriptorFollowsTheSession(t *testing.T) {
	t.Parallel()
	h := &fakeHandler{}
	db := open(t, start(t, h, nil))
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelSnapshot})
	if err != nil {
		t.Fatal(err)
	}
	var s string
	if err := tx.QueryRowContext(t.Context(), "SELECT DB").Scan(&s); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	tx, err = db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	var sqls []string
	for _, r := range h.requests {
		sqls = append(sqls, r.SQL)
	}
	want := []string{"SET TRANSACTION ISOLATION LEVEL SNAPSHOT; BEGIN TRANSACTION", "SELECT DB", "COMMIT TRANSACTION", "BEGIN TRANSACTION", "ROLLBACK TRANSACTION"}
	if diff := cmp.Diff(want, sqls); diff != "" {
		t.Errorf("statements (-want +got):\n%s", diff)
	}
}

func TestReset_ReturnsTheSessionToItsStart(t *testing.T) {
	t.Parallel()
	db := open(t, start(t, &fakeHandler{}, nil))
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(t.Context(), "USE other"); err != nil {
		t.Fatal(err)
	}
	var s string
	if err := db.QueryRowContext(t.Context(), "SELECT DB").Scan(&s); err != nil || s != "master" {
		t.Fatalf("database after reset = %q, %v", s, err)
	}
}

func TestAttention_EndsTheStatementAndKeepsTheSession(t *testing.T) {
	t.Parallel()
	running := make(chan struct{}, 1)
	h := &fakeHandler{execute: map[string]func(context.Context, tds.Request, *tds.Response){
		"WAIT": func(ctx context.Context, _ tds.Request, out *tds.Response) {
			_ = out.Columns([]tds.Column{{Name: "a", Type: sqltypes.TInt}})
			_ = out.Row([]sqltypes.Value{sqltypes.NewInt(1)})
			_ = out.Flush()
			running <- struct{}{}
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), tds.ErrAttention) {
				t.Errorf("cause = %v", context.Cause(ctx))
			}
		},
	}}
	db := open(t, start(t, h, nil))
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-running; cancel() }()
	if _, err := conn.ExecContext(ctx, "WAIT"); !errors.Is(err, context.Canceled) {
		t.Fatalf("WAIT = %v", err)
	}
	var s string
	if err := conn.QueryRowContext(t.Context(), "SELECT DB").Scan(&s); err != nil {
		t.Fatalf("the session is not usable after an attention: %v", err)
	}
	if len(h.logins) != 1 {
		t.Errorf("%d logins, want 1", len(h.logins))
	}
}

func TestKill_BreaksTheConnectionAndClosesTheSession(t *testing.T) {
	t.Parallel()
	h := &fakeHandler{}
	h.execute = map[string]func(context.Context, tds.Request, *tds.Response){
		"WAIT": func(ctx context.Context, _ tds.Request, _ *tds.Response) {
			h.mu.Lock()
			h.conns[0].Kill(errors.New("role change"))
			h.mu.Unlock()
			<-ctx.Done()
		},
	}
	db := open(t, start(t, h, nil))
	if _, err := db.ExecContext(t.Context(), "WAIT"); err == nil {
		t.Fatal("no error from a killed session")
	}
	waitFor(t, "the session to close", func() bool { return h.closedSessions() == 1 })
}
