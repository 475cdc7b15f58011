package decide

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"
)

// TestMain keeps the random schedules short, and others in every run; the seed is printed.
// More of them, or the same again, are asked for:
// go test ./pkg/sql/decide -run TestRandomSchedules -rapid.seed=7 -rapid.checks=500
func TestMain(m *testing.M) {
	flag.Parse()
	seed := strconv.FormatInt(time.Now().UnixNano()%1_000_000_000, 10)
	for name, value := range map[string]string{"rapid.checks": "12", "rapid.seed": seed} {
		if f := flag.Lookup(name); f != nil && f.Value.String() == f.DefValue {
			_ = f.Value.Set(value) // a number is always accepted
		}
	}
	if f := flag.Lookup("rapid.seed"); f != nil {
		fmt.Println("random schedules: -rapid.seed=" + f.Value.String())
	}
	os.Exit(m.Run())
}
