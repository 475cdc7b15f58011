package engine_test

import (
	"testing"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// A copy goes on only from a point that is in the primary's log still. What both agree on ends
// where their branches part.
func TestWhetherTheLogOfAPrimaryReachesBackToACopy(t *testing.T) {
	t.Parallel()
	first, second, third := engine.Fork{ID: engine.GUID{1}}, engine.Fork{ID: engine.GUID{2}, Start: 31, Before: 30}, engine.Fork{ID: engine.GUID{3}, Start: 26, Before: 25}
	volume := func(image engine.LSN, end engine.LSN, forks ...engine.Fork) *engine.Disk {
		return &engine.Disk{Databases: []*engine.DiskDatabase{{State: &engine.DatabaseState{ID: 5, Name: "db"},
			Image: &engine.Image{LSN: image, Forks: forks}, Log: []*engine.LogRecord{{LSN: end}}}}}
	}
	for name, tt := range map[string]struct {
		primary, copied *engine.Disk
		want            bool
	}{
		"a copy that is merely behind":                           {volume(20, 40, first, second), volume(10, 30, first), true},
		"a copy that ends before the primary's log begins":       {volume(35, 40, first, second), volume(10, 30, first), false},
		"a copy on another branch, parted within the log":        {volume(20, 40, first, second), volume(10, 50, first, third), true},
		"a copy on another branch, parted before the log begins": {volume(28, 40, first, second), volume(10, 50, first, third), false},
		"a copy of another database":                             {volume(20, 40, first), volume(10, 50, third), false},
		"a blank volume":                                         {volume(20, 40, first), engine.NewDisk(), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tt.primary.LogReaches("db", tt.copied); got != tt.want {
				t.Errorf("the log reaches back: %v, want %v", got, tt.want)
			}
		})
	}
}
