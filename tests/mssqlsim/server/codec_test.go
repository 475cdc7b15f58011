package server

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

// implementers lists the engine's types that have the marker method.
func implementers(t *testing.T, marker string) []string {
	t.Helper()
	files, err := filepath.Glob("../engine/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && fn.Name.Name == marker {
				if id, ok := fn.Recv.List[0].Type.(*ast.Ident); ok {
					names = append(names, id.Name)
				}
			}
		}
	}
	return names
}

func TestCodec_KnowsEveryTypeOfTheEngine(t *testing.T) {
	t.Parallel()
	for _, name := range implementers(t, "record") {
		if records.types[name] == nil {
			t.Errorf("record %s cannot be written", name)
		}
	}
	for _, name := range implementers(t, "message") {
		if messages.types[name] == nil {
			t.Errorf("message %s cannot be sent", name)
		}
	}
	if len(records.types) == 0 || len(messages.types) == 0 {
		t.Error("nothing was found")
	}
}

func TestCodec_ARecordSurvives(t *testing.T) {
	t.Parallel()
	wsfc := engine.ClusterWSFC
	want := []engine.Record{
		engine.AppendLog{DB: 5, Records: []*engine.LogRecord{{
			LSN: 37_000_000_000_800_001, Time: time.Unix(1, 2).UTC(), Bytes: 9,
			Changes: []engine.Change{{Op: engine.OpInsert, Object: 3, Row: 1, Values: engine.Row{sqltypes.NewInt(0), sqltypes.Null(sqltypes.TNVarCharMax), sqltypes.NewNVarChar("ä€")}}},
		}}},
		engine.PutGroup{State: &engine.GroupState{Config: &engine.Configuration{Name: "ag1", Sequence: 1 << 40, GroupID: engine.GUID{1, 2}}}},
	}
	b, err := encodeRecords(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeRecords(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b sqltypes.Value) bool { return a == b })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	m, err := encodeMessage(engine.JoinRequest{Group: "ag1", ClusterType: &wsfc})
	if err != nil {
		t.Fatal(err)
	}
	back, err := decodeMessage(m)
	if diff := cmp.Diff(engine.Message(engine.JoinRequest{Group: "ag1", ClusterType: &wsfc}), back); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func FuzzDecodeMessage(f *testing.F) {
	f.Add([]byte(`{"T":"Hello","V":{"Server":"a"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := decodeMessage(b); err == nil && m == nil {
			t.Error("neither a message nor an error")
		}
	})
}
