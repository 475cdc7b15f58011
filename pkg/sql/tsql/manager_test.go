package tsql_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/tsql"
)

func TestServerName_IsRegisteredAnew(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, registered, want string }{
		{"with an old name", "it's", "EXEC sp_dropserver N'it''s';\nEXEC sp_addserver N'ag1-0', N'local';"},
		{"without one", "", "EXEC sp_addserver N'ag1-0', N'local';"},
	} {
		if diff := cmp.Diff(tt.want, tsql.RenameServer(tt.registered, "ag1-0")); diff != "" {
			t.Errorf("%s:\n%s", tt.name, diff)
		}
	}
}

func TestManagerState_AsksForItsSetsOfOneGroup(t *testing.T) {
	t.Parallel()
	text := tsql.ManagerState("a'g")
	if got := strings.Count(text, "SELECT ") - strings.Count(text, "(SELECT "); got != tsql.ManagerStateSets {
		t.Errorf("%d result sets, want %d", got, tsql.ManagerStateSets)
	}
	if got := strings.Count(text, "WHERE g.name = N'a''g'"); got != 3 {
		t.Errorf("the group is named %d times:\n%s", got, text)
	}
	if strings.Contains(text, "ALTER") || strings.Contains(text, "INSERT") {
		t.Error("reading changes something")
	}
}
