package decide

import (
	"flag"
	"os"
	"testing"
)

// TestMain keeps the random schedules short, and the same in every run, so that a
// failure is a regression. Others, and more of them, are asked for:
// go test ./pkg/sql/decide -run TestRandomSchedules -rapid.seed=7 -rapid.checks=500
func TestMain(m *testing.M) {
	flag.Parse()
	for name, value := range map[string]string{"rapid.checks": "12", "rapid.seed": "2026"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() == f.DefValue {
			_ = f.Value.Set(value) // a number is always accepted
		}
	}
	os.Exit(m.Run())
}
