//go:build linux

package simulation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance"
)

// keptFaults reads a list of faults by their place in the seed's schedule; empty keeps all.
func keptFaults(text string) ([]int, error) {
	if text == "" {
		return nil, nil
	}
	var keep []int
	for _, part := range strings.Split(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("faults to keep %q: %w", text, err)
		}
		keep = append(keep, n)
	}
	return keep, nil
}

// only is the plan with these faults alone; nil keeps all.
func (p plan) only(keep []int) plan {
	if keep == nil {
		return p
	}
	p.kept = keep
	all := p.faults
	p.faults = nil
	for i, f := range all {
		if slices.Contains(keep, i) {
			p.faults = append(p.faults, f)
		}
	}
	return p
}

// keeping is the argument that repeats a shortened plan.
func (p plan) keeping() string {
	if p.kept == nil {
		return ""
	}
	s := make([]string, len(p.kept))
	for i, n := range p.kept {
		s[i] = strconv.Itoa(n)
	}
	return " KEEP=" + strings.Join(s, ",")
}

// shrink drops faults one by one as long as the run still violates the same promise.
func shrink(t *testing.T, r result, o instance.Options) result {
	t.Helper()
	kind, _, _ := strings.Cut(r.violations[0], ":")
	full := newPlan(r.seed)
	full.without = r.plan.without
	keep := r.plan.kept
	if keep == nil {
		for i := range full.faults {
			keep = append(keep, i)
		}
	}
	for changed := true; changed; {
		changed = false
		for i := len(keep) - 1; i >= 0; i-- {
			fewer := slices.Delete(slices.Clone(keep), i, i+1)
			if len(fewer) == 0 {
				continue
			}
			x := simulate(t, full.only(fewer), o, false)
			if x.failed() && strings.HasPrefix(x.violations[0], kind+":") {
				keep, r, changed = fewer, x, true
			}
		}
	}
	return r
}
