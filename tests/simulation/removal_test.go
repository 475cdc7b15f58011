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
)

// finding is what came of leaving a rule out.
type finding struct {
	seed      uint64
	tries     int
	violation string
	faults    []fault
}

// search runs the removal's schedules until one violates a promise that it keeps with the rule in force.
func (m removal) search(t *testing.T, first uint64, tries int) finding {
	t.Helper()
	o := passwords(t)
	for n := range tries {
		p := m.shaped(first + uint64(n)) //nolint:gosec // small
		off := p
		off.without = m.left()
		bad := simulate(t, off, o, false)
		if !bad.failed() {
			continue
		}
		p.without = m.locks
		if good := simulate(t, p, o, false); good.failed() {
			t.Logf("%s: seed %d is violated with the rule too: %s", m.rule, p.seed, good.violations[0])
			continue
		}
		return finding{seed: p.seed, tries: n + 1, violation: bad.violations[0], faults: p.faults}
	}
	return finding{tries: tries}
}

// TestRuleRemoval leaves rules out (SIM_RULES: all, or names joined by semicolons) and writes what it found.
func TestRuleRemoval(t *testing.T) {
	which := os.Getenv("SIM_RULES")
	if which == "" {
		t.Skip("SIM_RULES is not set: make safety-rules")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	tries, err := strconv.Atoi(os.Getenv("SIM_TRIES"))
	if err != nil {
		tries = 200
	}
	first, err := strconv.ParseUint(os.Getenv("SIM_FIRST"), 10, 64)
	if err != nil {
		first = 1
	}
	var list []removal
	for _, m := range removals() {
		if which == "all" || strings.Contains(";"+which+";", ";"+m.rule+";") {
			list = append(list, m)
		}
	}
	found := make([]finding, len(list))
	var next atomic.Int64
	var mu sync.Mutex
	t.Run("rules", func(t *testing.T) {
		for i := range runtime.GOMAXPROCS(0) {
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				for {
					n := int(next.Add(1)) - 1
					if n >= len(list) {
						return
					}
					if list[n].omit == nil {
						continue
					}
					found[n] = list[n].search(t, first, tries)
					mu.Lock()
					writeRules(t, map[string]finding{list[n].rule: found[n]})
					fmt.Printf("%-20s %-50s seed %d after %d schedules: %s\n", list[n].rule, list[n].what, found[n].seed, found[n].tries, found[n].violation)
					mu.Unlock()
				}
			})
		}
	})
}

// TestRuleSurvey counts, for the rules of SIM_SURVEY, how many of SIM_TRIES schedules are violated
// without the rule, and which with it and its own lock, or with all rules in force: the first
// tells how strong the schedules are, the second that a lock is not what it should be, the third
// that the design has a hole.
func TestRuleSurvey(t *testing.T) {
	which := os.Getenv("SIM_SURVEY")
	if which == "" {
		t.Skip("SIM_SURVEY is not set")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	tries, err := strconv.ParseUint(os.Getenv("SIM_TRIES"), 10, 64)
	if err != nil {
		tries = 10
	}
	first, err := strconv.ParseUint(os.Getenv("SIM_FIRST"), 10, 64)
	if err != nil {
		first = 1
	}
	o := passwords(t)
	for _, m := range removals() {
		if which != "all" && !strings.Contains(";"+which+";", ";"+m.rule+";") {
			continue
		}
		without, with := 0, ""
		for seed := first; seed < first+tries; seed++ {
			p := m.shaped(seed)
			p.without = m.left()
			if simulate(t, p, o, false).failed() {
				without++
			}
			p.without = m.locks
			if r := simulate(t, p, o, false); r.failed() {
				with += fmt.Sprintf("\n    with it, seed %d: %s", seed, r.violations[0])
			}
			if p.without = nil; len(m.locks) == 0 {
				continue
			}
			if r := simulate(t, p, o, false); r.failed() {
				with += fmt.Sprintf("\n    with all rules, seed %d: %s", seed, r.violations[0])
			}
		}
		fmt.Printf("%-20s %3d of %d violated without it%s\n", m.rule, without, tries, with)
	}
}

// TestOneRemoval traces one schedule of a removal: SIM_RULES names the rule, SIM_SEEDS the seed.
func TestOneRemoval(t *testing.T) {
	which, seed := os.Getenv("SIM_RULE"), os.Getenv("SIM_SEEDS")
	if which == "" {
		t.Skip("SIM_RULE is not set")
	}
	n, err := strconv.ParseUint(seed, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range removals() {
		if m.rule == which {
			p := m.shaped(n)
			p.without = append([]string(nil), m.locks...)
			if os.Getenv("SIM_WITH") == "" {
				p.without = append(p.without, m.omit...)
			}
			fmt.Print(simulate(t, p, passwords(t), true).text())
		}
	}
}
