//go:build linux

package simulation

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const rulesPage = "../../docs/contributing/safety-rules.md"

// foundSeed is the seed in a line of the page.
var foundSeed = regexp.MustCompile(`\| seed (\d+), schedule no`)

const rulesHead = `# What each safety rule prevents

Written by ` + "`make safety-rules`" + `; do not edit. Each rule of the safety design is left out of the product, with its own
lock as the only one left (R9 is the lock of time, R11 the lock of the commit rule), and the
[simulation](simulation.md) looks for a schedule that breaks a promise without the rule and none with it.
` + "`make safety-rules RULES=\"R9;R20\" TRIES=500`" + ` repeats some of them; rules that were not run keep their line.

The schedules are drawn by a generator for each rule (` + "`tests/simulation/ingredients.go`" + `): it brings about what the rule is
there for, and leaves timing, length, order, who and the fitting topology to the seed. The ordinary tests run the seed of
each line again, without the rule and with it. A line that says *not found* would be no proof that the rule is redundant.

In these runs the checker also looks at single statements and labels: a seeding that SET ROLE cancels, an endpoint that is
stopped again and again, a label that comes before its time, and the last copy of what a person's FORCE has left behind (I4).
The last column names tests that show the rule by a schedule written for it.

| Rule | What it says | Locks left out as well | Found | Violated without it | Also shown by |
| --- | --- | --- | --- | --- | --- |
`

// ruleLines reads the page's lines by rule.
func ruleLines() map[string]string {
	lines := map[string]string{}
	b, err := os.ReadFile(rulesPage)
	if err != nil {
		return lines
	}
	for _, l := range strings.Split(string(b), "\n") {
		if cells := strings.Split(l, "|"); len(cells) > 6 {
			lines[strings.TrimSpace(cells[1])] = l
		}
	}
	return lines
}

// line is the page's line of a rule.
func (m removal) line(f finding) string {
	found := fmt.Sprintf("*not found* in %d schedules", f.tries)
	if f.violation != "" {
		found = fmt.Sprintf("seed %d, schedule no. %d", f.seed, f.tries)
	}
	if f.tries == 0 {
		found = "not run"
	}
	if m.omit == nil {
		found = "no schedule of this world reaches it"
	}
	what, _, _ := strings.Cut(f.violation, ";") // the rest names every replica's state
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |", m.rule, m.what, strings.Join(m.locks, ", "), found, what, m.elsewhere)
}

// writeRules updates the page with what was found.
func writeRules(t *testing.T, found map[string]finding) {
	t.Helper()
	old := ruleLines()
	var b strings.Builder
	b.WriteString(rulesHead)
	for _, m := range removals() {
		f, ran := found[m.rule]
		l := old[m.rule]
		if ran || l == "" || m.omit == nil {
			l = m.line(f)
		}
		b.WriteString(l + "\n")
	}
	if err := os.WriteFile(rulesPage, []byte(b.String()), 0o644); err != nil { //nolint:gosec // a page of the documentation
		t.Fatal(err)
	}
}

// Every rule that can be left out has its line on the page.
func TestTheRulesPageIsComplete(t *testing.T) {
	t.Parallel()
	lines := ruleLines()
	for _, m := range removals() {
		if lines[m.rule] == "" {
			t.Errorf("%s has no line on %s: run make safety-rules", m.rule, rulesPage)
		}
	}
}

// replays is how many seeds from the page's own on are tried: a change of the product may move a
// schedule by the instant that matters.
const replays = 8

// What the page says is still so: without the rule its schedule breaks a promise, with it none.
func TestEveryRuleOnThePageIsNeeded(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("half a minute of schedules")
	}
	lines := ruleLines()
	for _, m := range removals() {
		t.Run(m.rule, func(t *testing.T) {
			t.Parallel()
			found := foundSeed.FindStringSubmatch(lines[m.rule])
			if found == nil {
				t.Fatalf("the page names no schedule that shows %s: run make safety-rules RULES=%q", m.rule, m.rule)
			}
			seed, err := strconv.ParseUint(found[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			if f := m.search(t, seed, replays); f.violation == "" {
				t.Errorf("none of %d schedules from seed %d on shows any more what %s prevents (%s): run make safety-rules RULES=%q", replays, seed, m.rule, m.what, m.rule)
			}
		})
	}
}
