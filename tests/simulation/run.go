//go:build linux

package simulation

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance"
)

// result is what came of one run.
type result struct {
	seed       uint64
	plan       plan
	violations []string
	trace      []string
	digest     uint64
	commits    int
	promotions int
	gap        time.Duration
	simulated  time.Duration
	took       time.Duration
}

func (r result) failed() bool { return len(r.violations) > 0 }

// passwords writes the file that managers read.
func passwords(t testing.TB) instance.Options {
	t.Helper()
	o := instance.DefaultOptions()
	o.OperatorPasswordFile = filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(o.OperatorPasswordFile, []byte(operatorPassword), 0o600); err != nil {
		t.Fatal(err)
	}
	return o
}

// simulate runs a plan in a bubble of its own.
func simulate(t *testing.T, p plan, o instance.Options, tracing bool) result {
	t.Helper()
	r := result{seed: p.seed, plan: p}
	began := time.Now()
	synctest.Test(t, func(*testing.T) {
		w := newWorld(p.seed, tracing)
		c := newCluster(w, p, o)
		w.wg.Add(1)
		go func() {
			defer w.wg.Done()
			w.run()
		}()
		select {
		case <-c.stopped:
		case <-time.After(p.limit + time.Minute):
		}
		w.mu.Lock()
		r.simulated = w.now()
		r.violations = c.check.violations
		r.commits, r.promotions, r.gap, r.digest = c.check.commits, c.check.promotions, c.check.gap, w.digest
		c.kill()
		w.mu.Unlock()
		w.stop()
		r.trace = w.lines
	})
	r.took = time.Since(began)
	return r
}

// text is the whole trace with its schedule.
func (r result) text() string {
	var b strings.Builder
	for _, l := range r.trace {
		b.WriteString(l + "\n")
	}
	fmt.Fprintf(&b, "schedule of seed %d, %s:\n", r.seed, r.plan.topology.name)
	for _, f := range r.plan.faults {
		fmt.Fprintf(&b, "  %s\n", f)
	}
	fmt.Fprintf(&b, "%d promotions, %d commits, %s simulated in %s, digest %016x\n", r.promotions, r.commits, r.simulated.Round(time.Second), r.took.Round(time.Millisecond), r.digest)
	for _, v := range r.violations {
		fmt.Fprintf(&b, "VIOLATED %s\n", v)
	}
	return b.String()
}
