package decide

import (
	"flag"
	"os"
	"testing"
)

// TestMain keeps the random schedules short unless a number of them is asked for:
// go test ./pkg/sql/decide -run TestRandomSchedules -rapid.checks=500
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("rapid.checks"); f != nil && f.Value.String() == f.DefValue {
		_ = f.Value.Set("12") // a number is always accepted
	}
	os.Exit(m.Run())
}
