package progress

import (
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

func TestInALogEveryChangeIsOneLineWithItsTime(t *testing.T) {
	t.Parallel()
	s, _, out, errOut := iostreams.Test()
	s.ASCII = true
	clk := clocktesting.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	r := New(s, clk, false)
	r.Step("waiting for %s", "a")
	r.Step("waiting for %s", "a")
	clk.SetTime(clk.Now().Add(2 * time.Second))
	r.Step("waiting for b")
	r.Done("done")
	r.Warn("careful")
	r.Fail("broken")
	r.Stop()
	want := "03:04:05 > waiting for a\n03:04:07 > waiting for b\n03:04:07 [ok] done\n03:04:07 [!!] careful\n03:04:07 [XX] broken\n"
	if errOut.String() != want || out.Len() > 0 {
		t.Errorf("standard error:\n%sstandard output: %q", errOut, out)
	}
}

func TestQuietTellsOnlyWhatNeedsAttention(t *testing.T) {
	t.Parallel()
	s, _, _, errOut := iostreams.Test()
	r := New(s, clocktesting.NewFakePassiveClock(time.Time{}), true)
	r.Step("a")
	r.Done("b")
	r.Warn("c")
	r.Fail("d")
	if got := errOut.String(); strings.Contains(got, "a") || strings.Contains(got, "b") || !strings.Contains(got, "c") || !strings.Contains(got, "d") {
		t.Errorf("%q", got)
	}
}

func TestOnATerminalNothingIsStamped(t *testing.T) {
	t.Parallel()
	s, _, _, errOut := iostreams.Test()
	s.StderrTTY, s.ASCII, s.NoColor = true, true, true
	r := New(s, clocktesting.NewFakePassiveClock(time.Time{}), false)
	r.Step("going on")
	r.Step("going on further")
	r.Done("done")
	r.Stop()
	if !strings.HasSuffix(errOut.String(), "[ok] done\n") || strings.Contains(errOut.String(), "00:00:00") {
		t.Errorf("%q", errOut)
	}
}

func TestTheTimeOfAStepIsShownOnceItIsLong(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{0: "", 1900 * time.Millisecond: "", 2 * time.Second: "  2s", 61500 * time.Millisecond: "  1m1s"} {
		if got := elapsed(d); got != want {
			t.Errorf("%s: %q", d, got)
		}
	}
}
