package cli_test

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// maxSize of the stripped binary: plugin, operator and instance manager in one.
const maxSize = 90_000_000

// maxHelp is how long a person may wait for the help.
const maxHelp = 100 * time.Millisecond

func TestBinary_IsNotTooBig(t *testing.T) {
	t.Parallel()
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f MB", float64(info.Size())/1e6)
	if info.Size() > maxSize {
		t.Errorf("the binary has %d bytes, at most %d are wanted", info.Size(), maxSize)
	}
}

// BenchmarkHelp starts the real program; `make bench` fails when it is too slow or too big.
func BenchmarkHelp(b *testing.B) {
	fastest := time.Hour
	for b.Loop() {
		begin := time.Now()
		if out, err := exec.CommandContext(b.Context(), binary, "--help").CombinedOutput(); err != nil {
			b.Fatalf("%v\n%s", err, out)
		}
		fastest = min(fastest, time.Since(begin))
	}
	b.ReportMetric(float64(fastest.Microseconds())/1000, "ms-fastest")
	info, err := os.Stat(binary)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(info.Size())/1e6, "MB-stripped")
	if info.Size() > maxSize {
		b.Errorf("the binary has %d bytes, at most %d are wanted", info.Size(), maxSize)
	}
	if fastest > maxHelp {
		b.Errorf("--help takes %s at best, at most %s are wanted", fastest, maxHelp)
	}
}
