package sqlcmd

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
)

func col(name, typ string) mssql.Column { return mssql.Column{Name: name, Type: typ} }

// answer feeds two result sets, a print, a count and an error, as a server would.
func answer(t *testing.T, w writer) {
	t.Helper()
	at := time.Date(2026, 8, 22, 8, 15, 35, 120_000_000, time.FixedZone("", 2*3600))
	sets := []struct {
		columns []mssql.Column
		rows    [][]any
	}{
		{[]mssql.Column{col("name", "NVARCHAR"), col("name", "NVARCHAR"), col("", "VARBINARY"), col("price", "DECIMAL"), col("on", "BIT")},
			[][]any{{"NULL", nil, []byte{0x0a, 0xff}, json.Number("1.50"), true}, {"a,\"b\"\nc", "", nil, nil, false}}},
		{[]mssql.Column{col("d", "DATE"), col("t", "TIME"), col("dt", "DATETIME2"), col("dto", "DATETIMEOFFSET")}, [][]any{{at, at, at, at}}},
		{[]mssql.Column{col("nothing", "INT")}, nil},
	}
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range sets {
		check(w.Columns(s.columns))
		for _, r := range s.rows {
			check(w.Row(r))
		}
		check(w.End())
	}
	check(w.Notice(mssql.Notice{Number: 5701, Class: 0, Text: "Changed database context to 'x'."}))
	check(w.Notice(mssql.Notice{Text: "hello"}))
	check(w.Affected(1))
	check(w.Notice(mssql.Notice{Number: 208, Class: 16, State: 1, Line: 3, Text: "Invalid object name 'x'."}))
	check(w.Close())
}

func TestWriters_ShowNullsDatesBinariesAndSeveralSets(t *testing.T) {
	t.Parallel()
	const failed = "Msg 208, Level 16, State 1, Line 3: Invalid object name 'x'.\n"
	for f, want := range map[format][2]string{
		formatText: {`name     name          price  on
-------  ----  ------  -----  --
NULL     NULL  0x0AFF  1.50   1
a,"b" c        NULL    NULL   0
(2 rows)
d           t            dt                      dto
----------  -----------  ----------------------  ----------------------------
2026-08-22  08:15:35.12  2026-08-22 08:15:35.12  2026-08-22 08:15:35.12+02:00
(1 row)
nothing
-------
(0 rows)
hello
(1 row affected)
`, failed},
		formatCSV: {`name,name,"",price,on
NULL,,0x0AFF,1.50,1
"a,""b""
c","",,,0

d,t,dt,dto
2026-08-22,08:15:35.12,2026-08-22 08:15:35.12,2026-08-22 08:15:35.12+02:00

nothing
`, "hello\n" + failed},
		formatJSON: {`{"apiVersion":"cli.kubectl-mssql.io/v1","kind":"QueryResult","results":[` +
			`{"columns":[{"name":"name","type":"nvarchar"},{"name":"name_2","type":"nvarchar"},{"name":"column3","type":"varbinary"},{"name":"price","type":"decimal"},{"name":"on","type":"bit"}],"rows":[
{"name":"NULL","name_2":null,"column3":"0x0AFF","price":1.50,"on":true},
{"name":"a,\"b\"\nc","name_2":"","column3":null,"price":null,"on":false}]},` +
			`{"columns":[{"name":"d","type":"date"},{"name":"t","type":"time"},{"name":"dt","type":"datetime2"},{"name":"dto","type":"datetimeoffset"}],"rows":[
{"d":"2026-08-22","t":"08:15:35.12","dt":"2026-08-22T08:15:35.12","dto":"2026-08-22T08:15:35.12+02:00"}]},` +
			`{"columns":[{"name":"nothing","type":"int"}],"rows":[]}]}
`, "hello\n" + failed},
	} {
		s, _, out, errOut := iostreams.Test()
		answer(t, newWriter(f, s))
		if diff := cmp.Diff(want[0], out.String()); diff != "" {
			t.Errorf("%s, standard output:\n%s", f, diff)
		}
		if diff := cmp.Diff(want[1], errOut.String()); diff != "" {
			t.Errorf("%s, standard error:\n%s", f, diff)
		}
	}
}

func TestJSON_StaysADocumentWhenASetIsCutShort(t *testing.T) {
	t.Parallel()
	for name, feed := range map[string]func(writer) error{
		"nothing at all": func(writer) error { return nil },
		"an error after one row": func(w writer) error {
			if err := w.Columns([]mssql.Column{col("a", "INT")}); err != nil {
				return err
			}
			return w.Row([]any{int64(1)})
		},
		"a set after one that was cut short": func(w writer) error {
			for range 2 {
				if err := w.Columns([]mssql.Column{col("a", "INT")}); err != nil {
					return err
				}
				if err := w.Row([]any{int64(1)}); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		s, _, out, _ := iostreams.Test()
		w := newWriter(formatJSON, s)
		if err := feed(w); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if !json.Valid(out.Bytes()) {
			t.Errorf("%s: %s", name, out)
		}
	}
}

func TestText_ManyRowsStreamWithTheWidthsOfTheFirst(t *testing.T) {
	t.Parallel()
	s, _, out, _ := iostreams.Test()
	w := newWriter(formatText, s)
	if err := w.Columns([]mssql.Column{col("n", "INT"), col("m", "INT")}); err != nil {
		t.Fatal(err)
	}
	for i := range looked + 5 {
		if err := w.Row([]any{int64(i), int64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.End(); err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, b := range out.Bytes() {
		if b == '\n' {
			lines++
		}
	}
	if lines != looked+5+3 {
		t.Errorf("%d lines", lines)
	}
}
