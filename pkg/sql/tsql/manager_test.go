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

func TestManagersReadings_AskForTheirSetsOfOneGroup(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text    string
		sets, ofGroup int
	}{
		{"state", tsql.ManagerState("a'g"), tsql.ManagerStateSets, 3},
		{"copies", tsql.ManagerCopies("a'g"), tsql.ManagerCopiesSets, 2},
	} {
		if got := strings.Count(tt.text, "SELECT ") - strings.Count(tt.text, "(SELECT "); got != tt.sets {
			t.Errorf("%s: %d result sets, want %d", tt.name, got, tt.sets)
		}
		if got := strings.Count(tt.text, "WHERE g.name = N'a''g'"); got != tt.ofGroup {
			t.Errorf("%s: the group is named %d times:\n%s", tt.name, got, tt.text)
		}
		if strings.Contains(tt.text, "ALTER") || strings.Contains(tt.text, "INSERT") {
			t.Errorf("%s: reading changes something", tt.name)
		}
	}
}
