//go:build linux

package simulation

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// seedsOf reads SEEDS: numbers and ranges, such as "7", "1..500" or "3,9,100..120".
func seedsOf(text string) ([]uint64, error) {
	var seeds []uint64
	for _, part := range strings.Split(text, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "..")
		a, err := strconv.ParseUint(from, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("seeds %q: %w", text, err)
		}
		b := a
		if isRange {
			if b, err = strconv.ParseUint(to, 10, 64); err != nil {
				return nil, fmt.Errorf("seeds %q: %w", text, err)
			}
		}
		for ; a <= b; a++ {
			seeds = append(seeds, a)
		}
	}
	return seeds, nil
}

// The seeds of an ordinary test run, and those that once were dead ends.
const usualSeeds = "1..510,675,705,800,1040,1213,1225,1229,1367,3386,3778,4026,4684,5534,6398,7403,8250,8514,9072,9227,9289,9486"

// garbage is how much is left to lie for each schedule that runs.
const garbage = 128 << 20

// TestSeeds runs the seeds of SIM_SEEDS, one bubble for each, as many at once as there are cores.
func TestSeeds(t *testing.T) {
	text := os.Getenv("SIM_SEEDS")
	if text == "" {
		text = usualSeeds
	}
	seeds, err := seedsOf(text)
	if err != nil {
		t.Fatal(err)
	}
	if testing.Short() {
		seeds = seeds[:min(len(seeds), 8)]
	}
	// Each schedule makes little that lives, and much that does not: it is collected when there is
	// much of it.
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(garbage * int64(1+runtime.GOMAXPROCS(0))))
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	o := passwords(t)
	tracing := os.Getenv("SIM_TRACE") != ""
	digests := os.Getenv("SIM_DIGESTS") != ""
	shrinking := os.Getenv("SIM_SHRINK") != ""
	keep, err := keptFaults(os.Getenv("SIM_KEEP"))
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var next atomic.Int64
	var mu sync.Mutex
	var simulated time.Duration
	commits, promotions, failed := 0, 0, 0
	t.Run("schedules", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				for {
					n := int(next.Add(1)) - 1
					if n >= len(seeds) {
						return
					}
					p := newPlan(seeds[n]).only(keep)
					r := simulate(t, p, o, tracing)
					if r.failed() && shrinking {
						r = shrink(t, r, o)
					}
					mu.Lock()
					simulated += r.simulated
					commits += r.commits
					promotions += r.promotions
					if tracing {
						fmt.Print(r.text())
					}
					if digests { // to compare schedules before and after a change that must not alter them
						fmt.Printf("seed %d: digest %016x, %d commits, %d promotions\n", r.seed, r.digest, r.commits, r.promotions)
					}
					if r.failed() {
						failed++
						fmt.Printf("seed %d: %s\n", r.seed, r.violations[0]) // at once: a long run is watched
						t.Errorf("seed %d (%s): %s\n\tto see it: make simulate SEEDS=%d%s TRACE=1", r.seed, r.plan.topology.name, strings.Join(r.violations, "; "), r.seed, r.plan.keeping())
						if shrinking {
							for _, f := range r.plan.faults {
								fmt.Println("  ", f)
							}
						}
					}
					mu.Unlock()
				}
			})
		}
	})
	took := time.Since(began)
	fmt.Printf("seeds %s: %d schedules, %d failed, %d promotions, %d acknowledged commits, %s simulated in %s (%.1f schedules a second)\n",
		text, len(seeds), failed, promotions, commits, simulated.Round(time.Minute), took.Round(100*time.Millisecond), float64(len(seeds))/took.Seconds())
}

// A seed replays exactly: the same trace, to the nanosecond.
func TestASeedReplaysExactly(t *testing.T) {
	t.Parallel()
	o := passwords(t)
	for _, seed := range []uint64{3, 11, 14} {
		a, b := simulate(t, newPlan(seed), o, false), simulate(t, newPlan(seed), o, false)
		if a.digest != b.digest || a.commits != b.commits {
			t.Errorf("seed %d: digests %x and %x, %d and %d commits", seed, a.digest, b.digest, a.commits, b.commits)
		}
	}
}
