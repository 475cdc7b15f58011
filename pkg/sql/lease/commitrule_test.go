package lease

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

func rule(k int32, names ...string) ag.CommitRule {
	r := ag.CommitRule{Number: 7, K: k}
	for _, n := range names {
		r.Set = append(r.Set, ag.Member{Replica: n, PVCUID: "pvc-" + n})
	}
	return r
}

var all3 = []string{"mssql-0", "mssql-1", "mssql-2"}

func TestTargetK(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		k    int32
		ns   int
		want int32
	}{{-1, 0, 0}, {-1, 1, 0}, {-1, 2, 1}, {-1, 3, 1}, {-1, 4, 2}, {-1, 5, 2}, {0, 3, 0}, {2, 3, 2}, {9, 3, 2}, {1, 1, 0}} {
		if got := TargetK(RuleWant{K: tt.k}, tt.ns); got != tt.want {
			t.Errorf("explicit %d of %d replicas: %d, want %d", tt.k, tt.ns, got, tt.want)
		}
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	preferred := RuleWant{K: -1, RelaxAfter: 15 * time.Second}
	required := RuleWant{K: -1, Required: true, RelaxAfter: 15 * time.Second}
	long := Keeper{Counting: true, Short: 0}
	two := three()[:2]
	tests := map[string]struct {
		keeper Keeper
		want   RuleWant
		seen   RuleSeen
		plan   []string
	}{
		"all in order": {Keeper{}, preferred,
			RuleSeen{Record: rule(1, all3...), ServerK: 1, Configured: three(), Synchronized: []string{"MSSQL-1", "MSSQL-2"}}, nil},
		"a secondary is lost: not yet": {Keeper{}, preferred,
			RuleSeen{Record: rule(1, all3...), ServerK: 1, Configured: three()}, nil},
		"R14: lowered after relaxAfter, recorded first": {long, preferred,
			RuleSeen{Record: rule(1, all3...), ServerK: 1, Configured: three()},
			[]string{"record k=0 of [mssql-0 mssql-1 mssql-2]: R14: about to lower", "alter k=0: 0 of 1 SYNCHRONIZED"}},
		"R18: recorded again in the same step although it is recorded": {long, preferred,
			RuleSeen{Record: rule(0, all3...), ServerK: 1, Configured: three()},
			[]string{"record k=0 of [mssql-0 mssql-1 mssql-2]: R14: about to lower", "alter k=0: 0 of 1 SYNCHRONIZED"}},
		"Required never lowers": {long, required,
			RuleSeen{Record: rule(1, all3...), ServerK: 1, Configured: three()}, nil},
		"R15: ALTER first": {Keeper{}, preferred,
			RuleSeen{Record: rule(0, all3...), ServerK: 0, Configured: three(), Synchronized: []string{"MSSQL-1"}},
			[]string{"alter k=1: R15: 1 SYNCHRONIZED"}},
		"R15: recorded when it is in force and met": {Keeper{}, preferred,
			RuleSeen{Record: rule(0, all3...), ServerK: 1, Configured: three(), Synchronized: []string{"MSSQL-1"}},
			[]string{"record k=1 of [mssql-0 mssql-1 mssql-2]: R15: in force and met"}},
		"R15: not recorded when it is in force and not met": {Keeper{}, preferred,
			RuleSeen{Record: rule(0, all3...), ServerK: 1, Configured: three()}, nil},
		"R16: a replica that joined is recorded before anything else": {Keeper{}, preferred,
			RuleSeen{Record: rule(1, "mssql-0", "mssql-1"), ServerK: 1, Configured: three(), Synchronized: []string{"MSSQL-1", "MSSQL-2"}},
			[]string{"record k=1 of [mssql-0 mssql-1 mssql-2]: R16: a synchronous replica joined"}},
		"R17: one that left is recorded when the rest meets k": {Keeper{Leaving: "mssql-2", LeavingSince: 50 * time.Second}, preferred,
			RuleSeen{Record: rule(1, all3...), ServerK: 1, Configured: two, Synchronized: []string{"MSSQL-1"}},
			[]string{"record k=1 of [mssql-0 mssql-1]: R17: a replica left"}},
		"R17: one that is recorded and not listed may be on its way": {Keeper{Leaving: "mssql-2", LeavingSince: 51 * time.Second}, preferred,
			RuleSeen{Record: rule(1, all3...), ServerK: 1, Configured: two, Synchronized: []string{"MSSQL-1"}}, nil},
		"R17: not while the rest does not": {Keeper{Leaving: "mssql-2"}, preferred,
			RuleSeen{Record: rule(1, all3...), ServerK: 1, Configured: two}, nil},
		"R19: a value below the record lowers the record first": {Keeper{}, preferred,
			RuleSeen{Record: rule(1, all3...), ServerK: 0, Configured: three(), Synchronized: []string{"MSSQL-1"}},
			[]string{"record k=0 of [mssql-0 mssql-1 mssql-2]: R19: the server's value is below the record"}},
		"an explicit 0 is kept": {Keeper{}, RuleWant{K: 0},
			RuleSeen{Record: rule(0, all3...), ServerK: 0, Configured: three(), Synchronized: []string{"MSSQL-1"}}, nil},
		"a promotion is given time: the others come back slowly": {Keeper{Counting: true, Short: 85 * time.Second}, preferred,
			RuleSeen{Record: rule(1, all3...), ServerK: 1, Configured: three(), PromotedKnown: true, PromotedAt: 80 * time.Second}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.seen.Self = "mssql-0"
			_, steps := tt.keeper.Plan(tt.want, tt.seen, 110*time.Second)
			var got []string
			for _, s := range steps {
				got = append(got, s.String())
				// A new number only for what is new: a record that is repeated every round must
				// not make every other swap lose (R1).
				want := int64(8)
				if s.Rule.K == tt.seen.Record.K && cmp.Equal(s.Rule.Set, tt.seen.Record.Set) {
					want = 7
				}
				if s.Kind == StepRecord && s.Rule.Number != want {
					t.Errorf("rule number %d, want %d", s.Rule.Number, want)
				}
			}
			if diff := cmp.Diff(tt.plan, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPlan_AShortageIsForgottenWhenItEnds(t *testing.T) {
	t.Parallel()
	want := RuleWant{K: -1, RelaxAfter: 15 * time.Second}
	seen := RuleSeen{Self: "mssql-0", Record: rule(1, all3...), ServerK: 1, Configured: three()}
	k, _ := Keeper{}.Plan(want, seen, 0)
	full := seen
	full.Synchronized = []string{"mssql-1"}
	k, _ = k.Plan(want, full, 14*time.Second)
	k, _ = k.Plan(want, seen, 15*time.Second)
	if _, steps := k.Plan(want, seen, 29*time.Second); len(steps) != 0 {
		t.Errorf("14 s after the second shortage began: %v", steps)
	}
	if _, steps := k.Plan(want, seen, 30*time.Second); len(steps) != 2 {
		t.Errorf("15 s after it began: %v", steps)
	}
}

// TestKeeperHoldsTheRecord: whatever happens to secondaries, ALTERs and swaps, the record
// never claims more than what is in force, and a raise is recorded only when it is met.
func TestKeeperHoldsTheRecord(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := RuleWant{K: -1, Required: rapid.Bool().Draw(t, "required"), RelaxAfter: 5 * time.Second}
		seen := RuleSeen{Self: "mssql-0", Record: rule(1, all3...), ServerK: 1, Configured: three()}
		keeper := Keeper{}
		var story []string
		for i := range rapid.IntRange(1, 40).Draw(t, "rounds") {
			seen.Synchronized = nil
			for _, n := range all3[1:] {
				if rapid.Bool().Draw(t, n) {
					seen.Synchronized = append(seen.Synchronized, n)
				}
			}
			if rapid.IntRange(0, 9).Draw(t, "hand") == 0 {
				seen.ServerK = rapid.Int32Range(0, 2).Draw(t, "k")
				// The window between a hand's ALTER and the next round is the hand's.
			}
			handed := seen.ServerK < seen.Record.K
			var steps []RuleStep
			keeper, steps = keeper.Plan(want, seen, time.Duration(i)*3*time.Second)
			for _, s := range steps {
				story = append(story, s.String())
				if s.Kind == StepRecord {
					if s.Rule.K > seen.Record.K && (s.Rule.K > seen.ServerK || len(seen.Synchronized) < int(s.Rule.K)) {
						t.Fatalf("raised record that is not in force or not met: %s\n%s", s, strings.Join(story, "\n"))
					}
				}
				if s.Kind == StepAlter && s.K < seen.Record.K {
					t.Fatalf("lowered before it was recorded: %s\n%s", s, strings.Join(story, "\n"))
				}
				if rapid.IntRange(0, 3).Draw(t, "fails") == 0 {
					break
				}
				if s.Kind == StepRecord {
					seen.Record = s.Rule
				} else {
					seen.ServerK = s.K
				}
			}
			if seen.Record.K > seen.ServerK && !handed {
				t.Fatalf("the record claims k=%d, in force is %d\n%s", seen.Record.K, seen.ServerK, strings.Join(story, "\n"))
			}
		}
	})
}
