package foreign_test

import (
	"context"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/tds"
)

// echo is a server whose statements test the protocol alone.
type echo struct{ transaction uint64 }

func (echo) Login(_ context.Context, _ *tds.Conn, l tds.Login) (tds.Session, tds.LoginResult, error) {
	if l.Password != "Pässwörd1{}" {
		return nil, tds.LoginResult{}, &tds.LoginError{Messages: []tds.Message{{Number: 18456, Class: 14, State: 1, Line: 1, Text: "Login failed for user '" + l.User + "'."}}}
	}
	return &echo{}, tds.LoginResult{Database: "master", Language: "us_english", Messages: []tds.Message{
		{Number: 5701, State: 2, Line: 1, Text: "Changed database context to 'master'."},
	}}, nil
}

func (e *echo) State() tds.SessionState {
	return tds.SessionState{Database: "master", Transaction: e.transaction}
}
func (e *echo) Reset(context.Context, bool) { e.transaction = 0 }
func (e *echo) Close()                      {}

var at = time.Date(2026, 11, 29, 23, 5, 7, 123_000_000, time.UTC)

func everyType() ([]tds.Column, []sqltypes.Value, []any) {
	lsn, _ := sqltypes.NewDecimal(sqltypes.TLSN, new(big.Int).SetUint64(37_000_000_008_000_001))
	long := strings.Repeat("ä€", 9000)
	rows := []struct {
		name string
		typ  sqltypes.Type
		v    sqltypes.Value
		want any
	}{
		{"bit", sqltypes.TBit, sqltypes.NewBit(true), true},
		{"tinyint", sqltypes.TTinyInt, sqltypes.NewTinyInt(9), 9.0},
		{"smallint", sqltypes.TSmallInt, sqltypes.NewSmallInt(-9), -9.0},
		{"int", sqltypes.TInt, sqltypes.NewInt(-70000), -70000.0},
		{"bigint", sqltypes.TBigInt, sqltypes.NewBigInt(1 << 40), "1099511627776"},
		{"float", sqltypes.TFloat, sqltypes.NewFloat(1.5), 1.5},
		{"numeric", sqltypes.TNumeric(9, 2), mustDecimal(-1234), -12.34},
		{"lsn", sqltypes.TLSN, lsn, 37_000_000_008_000_001.0},
		{"nvarchar", sqltypes.TNVarChar(60), sqltypes.NewNVarChar("NOT SYNCHRONIZING ä"), "NOT SYNCHRONIZING ä"},
		{"varchar", sqltypes.TVarChar(60), sqltypes.NewVarChar("ä€"), "ä€"},
		{"max", sqltypes.TNVarCharMax, sqltypes.NewNVarChar(long), long},
		{"xml", sqltypes.TXML, sqltypes.NewText(sqltypes.TXML, "<a/>"), "<a/>"},
		{"varbinary", sqltypes.TVarBinary(4), sqltypes.NewBinary([]byte{0, 255}), "0x00ff"},
		{"guid", sqltypes.TGUID, sqltypes.NewGUID([16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}), "01020304-0506-0708-090A-0B0C0D0E0F10"},
		{"datetime", sqltypes.TDateTime, sqltypes.NewDateTime(at), "2026-11-29T23:05:07.123Z"},
		{"datetime2", sqltypes.TDateTime2, sqltypes.NewDateTime2(at), "2026-11-29T23:05:07.123Z"},
		{"date", sqltypes.TDate, sqltypes.NewTime(sqltypes.TDate, at), "2026-11-29T00:00:00.000Z"},
		{"datetimeoffset", sqltypes.TDateTimeOffset, sqltypes.NewTime(sqltypes.TDateTimeOffset, at.In(time.FixedZone("", 3600))), "2026-11-29T23:05:07.123Z"},
		{"variant of text", sqltypes.TVariant, sqltypes.NewNVarChar("Developer").AsVariant(), "Developer"},
		{"variant of int", sqltypes.TVariant, sqltypes.NewInt(1).AsVariant(), 1.0},
		{"null", sqltypes.TNVarChar(9), sqltypes.Null(sqltypes.TNVarChar(9)), nil},
		{"null of max", sqltypes.TNVarCharMax, sqltypes.Null(sqltypes.TNVarCharMax), nil},
		{"null variant", sqltypes.TVariant, sqltypes.Null(sqltypes.TVariant), nil},
	}
	var columns []tds.Column
	var values []sqltypes.Value
	var want []any
	for _, r := range rows {
		columns = append(columns, tds.Column{Name: r.name, Type: r.typ, Nullable: true})
		values = append(values, r.v)
		want = append(want, r.want)
	}
	return columns, values, want
}

func mustDecimal(n int64) sqltypes.Value {
	v, err := sqltypes.NewDecimal(sqltypes.TNumeric(9, 2), big.NewInt(n))
	if err != nil {
		panic(err) // the test's own constant
	}
	return v
}

func (e *echo) Execute(ctx context.Context, r tds.Request, out *tds.Response) {
	text := strings.TrimSpace(r.SQL + r.Proc)
	switch {
	case text == "SELECT types":
		columns, values, _ := everyType()
		_ = out.Columns(columns)
		_ = out.Row(values)
		_ = out.Row(values)
		_ = out.Done(tds.Done{Count: 2, Counted: true, Command: 0xC1})
	case strings.HasPrefix(text, "SELECT params"):
		var columns []tds.Column
		var values []sqltypes.Value
		for _, p := range r.Params {
			columns = append(columns, tds.Column{Name: p.Name, Type: p.Type, Nullable: true})
			values = append(values, p.Value)
		}
		_ = out.Columns(columns)
		_ = out.Row(values)
		_ = out.Done(tds.Done{Count: 1, Counted: true, Command: 0xC1})
	case text == "sp_out":
		_ = out.Done(tds.Done{})
		_ = out.ReturnStatus(0)
		_ = out.ReturnValue(tds.Param{Name: "@o", Type: sqltypes.TInt, Value: sqltypes.NewInt(42)})
	case strings.Contains(text, "BEGIN TRAN"):
		e.transaction = 7
	case strings.Contains(text, "COMMIT"), strings.Contains(text, "ROLLBACK"):
		e.transaction = 0
	case text == "SELECT transaction":
		_ = out.Columns([]tds.Column{{Name: "n", Type: sqltypes.TInt}})
		_ = out.Row([]sqltypes.Value{sqltypes.NewInt(int32(e.transaction))})
		_ = out.Done(tds.Done{Count: 1, Counted: true, Command: 0xC1})
	case text == "WAIT":
		<-ctx.Done()
	case strings.HasPrefix(text, "set "): // tedious sets its options after the login
		_ = out.Done(tds.Done{})
	default:
		_ = out.Message(tds.Message{Number: 41145, Class: 10, State: 1, Line: 1, Text: "informational"})
		_ = out.Message(tds.Message{Number: 102, Class: 15, State: 1, Line: 1, Text: "Incorrect syntax near '" + text + "'."})
		_ = out.Done(tds.Done{})
	}
}

func startEcho(t *testing.T) target {
	t.Helper()
	cert, err := tds.SelfSigned(time.Now(), "localhost", "127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- tds.NewServer(echo{}, tds.Config{Certificate: cert, ServerName: func() string { return "mssql-0" }, Version: [4]byte{16, 0, 0x10, 0x45}, Log: func(s string) { t.Log(s) }}).Serve(ctx, l)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return targetOf(t, l.Addr().String(), "sa", "Pässwörd1{}")
}

func TestTedious_Protocol(t *testing.T) {
	t.Parallel()
	to := startEcho(t)
	answers := node(t, to,
		step{How: "batch", SQL: "SELECT types"},
		step{SQL: "SELECT params", Params: []param{{"a", "Int", 7, false}, {"b", "NVarChar", "ä€", false}, {"c", "Bit", true, false}, {"d", "Float", 2.5, false},
			{"e", "DateTime2", "2026-11-29T23:05:07.123Z", false}, {"f", "VarChar", nil, false}, {"g", "UniqueIdentifier", "01020304-0506-0708-090A-0B0C0D0E0F10", false}}},
		step{How: "prepared", SQL: "SELECT params", Params: []param{{"a", "Int", 8, false}}},
		step{How: "proc", Proc: "sp_out", Params: []param{{"o", "Int", nil, true}}},
		step{How: "begin"},
		step{SQL: "SELECT transaction"},
		step{How: "commit"},
		step{SQL: "SELECT transaction"},
		step{How: "begin"},
		step{How: "reset"},
		step{SQL: "SELECT transaction"},
		step{How: "batch", SQL: "nonsense"},
		step{How: "cancel", SQL: "WAIT"},
		step{How: "batch", SQL: "SELECT transaction"},
	)
	_, _, want := everyType()
	if diff := cmp.Diff([][]any{want, want}, answers[0].Rows); diff != "" {
		t.Errorf("types (-want +got):\n%.2000s", diff)
	}
	if diff := cmp.Diff([]any{7.0, "ä€", true, 2.5, "2026-11-29T23:05:07.123Z", nil, "01020304-0506-0708-090A-0B0C0D0E0F10"}, answers[1].Rows[0]); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]any{{8.0}}, answers[2].Rows); diff != "" {
		t.Errorf("prepared (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"o": 42.0}, answers[3].Outputs); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
	for i, want := range map[int]float64{5: 7, 7: 0, 10: 0, 13: 0} {
		if diff := cmp.Diff([][]any{{want}}, answers[i].Rows); diff != "" {
			t.Errorf("transaction at step %d (-want +got):\n%s", i, diff)
		}
	}
	if e := answers[11]; len(e.Errors) != 1 || e.Errors[0].Number != 102 || e.Errors[0].Class != 15 || len(e.Infos) != 1 || e.Infos[0].Number != 41145 {
		t.Errorf("errors %+v, infos %+v", e.Errors, e.Infos)
	}
	if e := answers[12]; len(e.Errors) != 1 || e.Errors[0].Code != "ECANCEL" {
		t.Errorf("a cancelled request ended in %+v", e.Errors)
	}
}

func TestFreeTDS_Protocol(t *testing.T) {
	t.Parallel()
	for _, encrypt := range []bool{true, false} {
		name := "plain"
		if encrypt {
			name = "over TLS"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to := startEcho(t)
			to.Encrypt = encrypt
			out := tsql(t, to, "SELECT types\nGO\nnonsense\nGO\nSELECT transaction\nGO\n")
			for _, want := range []string{
				"1\t9\t-9\t-70000\t1099511627776\t1.5\t-12.34\t37000000008000001\tNOT SYNCHRONIZING ä\tä€\t", "01020304-0506-0708-090A-0B0C0D0E0F10",
				"Developer\t1\tNULL\tNULL\tNULL", "Msg 102 (severity 15, state 1) from mssql-0 Line 1:", "Incorrect syntax near 'nonsense'.",
			} {
				if !strings.Contains(out, want) {
					t.Errorf("%q is missing from the output:\n%.3000s", want, out)
				}
			}
		})
	}
}
