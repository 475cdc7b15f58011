package lease

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// Steps of the keeper.
const (
	// StepRecord: swap the record in the Lease to Rule, from a fresh read, and count it only
	// when that swap was answered with success (R18). It is made also when it changes nothing.
	StepRecord StepKind = "Record"
	// StepAlter: ALTER … SET (REQUIRED_SYNCHRONIZED_SECONDARIES_TO_COMMIT = K) on the own server.
	StepAlter StepKind = "Alter"
)

// StepKind is one kind of step of the keeper.
type StepKind string

// RuleStep is one step of the keeper. Steps of a plan run in order; the first that fails
// ends the plan, and the next plan is made from fresh readings.
type RuleStep struct {
	Kind StepKind
	Rule ag.CommitRule
	K    int32
	Why  string
}

// String is one line for logs.
func (s RuleStep) String() string {
	if s.Kind == StepAlter {
		return fmt.Sprintf("alter k=%d: %s", s.K, s.Why)
	}
	return fmt.Sprintf("record k=%d of [%s]: %s", s.Rule.K, strings.Join(s.Rule.Names(), " "), s.Why)
}

// RuleWant is the spec's side of the commit rule.
type RuleWant struct {
	// Required never lowers k; K is the explicit number, or −1.
	Required   bool
	K          int32
	RelaxAfter time.Duration
	// Omit leaves rules out: empty but in proofs that a rule is needed.
	Omit ag.Omit
}

// RuleSeen is what the primary's manager sees, all of it read in this very round: the
// record from the Lease, the rest from its own server.
type RuleSeen struct {
	Record ag.CommitRule
	// ServerK is the value in force.
	ServerK int32
	// Configured are the replicas that the server lists; Synchronized the synchronous
	// secondaries whose every database is SYNCHRONIZED in the primary's own view.
	Self         string
	Configured   []ag.ConfiguredReplica
	Synchronized []string
	// PromotedAt is when this server became PRIMARY, by the manager's monotonic clock;
	// PromotedKnown is false when that was before this run.
	PromotedAt    time.Duration
	PromotedKnown bool
}

// Keeper is what the keeper remembers between rounds.
type Keeper struct {
	// Short is since when fewer were SYNCHRONIZED than k asks for; Counting tells whether it runs.
	Counting bool
	Short    time.Duration
	// Leaving are the recorded members that the server does not list, LeavingSince when
	// just these were seen first.
	Leaving      string
	LeavingSince time.Duration
}

const (
	// afterPromotion is relaxAfter for a shortage that a promotion left behind: the others
	// take 44–139 s to come back (FG 4.6).
	afterPromotion = 60 * time.Second
	// firstRound is how long the first round of the rejoin ladder lasts; afterPromotion counts from its end.
	firstRound = 45 * time.Second
	// leaveAfter: a replica is recorded before it is added (R16), by the controller. One
	// that is recorded and not listed is on its way for so long; after that it has left.
	leaveAfter = 60 * time.Second
)

// TargetK is k when all is well: the explicit number, else max(1, floor(Ns/2)); never
// more than Ns − 1.
func TargetK(want RuleWant, ns int) int32 {
	most := int32(max(ns-1, 0))
	if want.K >= 0 {
		return min(want.K, most)
	}
	return min(max(1, int32(ns/2)), most)
}

// Plan is one round of the keeper of the commit rule (R14–R19). It is made only by the
// manager of the PRIMARY that holds the Lease. An empty plan means that all is in order.
func (k Keeper) Plan(want RuleWant, seen RuleSeen, now time.Duration) (Keeper, []RuleStep) {
	set, left := seen.sets()
	ns := len(seen.synchronous())
	target := TargetK(want, ns)
	synced := int32(len(seen.syncedOf(seen.synchronous())))
	k = k.count(synced < max(target, seen.ServerK), now).leave(left, now)

	// R16, late: the server has a synchronous replica that the record lacks.
	if len(set) > len(seen.Record.Set) && !want.Omit.Has("R16") {
		return k, []RuleStep{record(seen.Record, min(seen.Record.K, seen.ServerK), set, "R16: a synchronous replica joined")}
	}
	// R19: a hand, or an old configuration, made the server's value lower than the record.
	if seen.ServerK < seen.Record.K && !want.Omit.Has("R19") {
		return k, []RuleStep{record(seen.Record, seen.ServerK, seen.Record.Set, "R19: the server's value is below the record")}
	}
	desired := target
	if !want.Required && want.K < 0 && synced < target {
		if k.relaxed(want, seen, now) {
			desired = synced
		} else {
			desired = max(min(seen.ServerK, target), synced)
		}
	}
	// A value above what the group can ever meet is lowered whatever the durability.
	switch {
	case seen.ServerK > desired && want.Omit.Has("R14"):
		return k, []RuleStep{{Kind: StepAlter, K: desired, Why: "not recorded first"}}
	case seen.ServerK > desired: // R14, R18
		return k, []RuleStep{
			record(seen.Record, min(seen.Record.K, desired), seen.Record.Set, "R14: about to lower"),
			{Kind: StepAlter, K: desired, Why: fmt.Sprintf("%d of %d SYNCHRONIZED", synced, target)},
		}
	case seen.ServerK < desired && synced >= desired && want.Omit.Has("R15"):
		return k, []RuleStep{
			record(seen.Record, desired, seen.Record.Set, "before it is in force"),
			{Kind: StepAlter, K: desired, Why: "recorded before"},
		}
	case seen.ServerK < desired && synced >= desired: // R15, first half
		return k, []RuleStep{{Kind: StepAlter, K: desired, Why: fmt.Sprintf("R15: %d SYNCHRONIZED", synced)}}
	case seen.Record.K < seen.ServerK && synced >= seen.ServerK: // R15, second half: in force and met
		return k, []RuleStep{record(seen.Record, seen.ServerK, seen.Record.Set, "R15: in force and met")}
	case len(left) > 0 && now-k.LeavingSince >= leaveAfter: // R17
		remaining := seen.synchronous()
		if int32(len(seen.syncedOf(remaining))) >= seen.Record.K || want.Omit.Has("R17") {
			return k, []RuleStep{record(seen.Record, seen.Record.K, without(seen.Record.Set, left), "R17: a replica left")}
		}
	}
	return k, nil
}

func (k Keeper) count(short bool, now time.Duration) Keeper {
	switch {
	case !short:
		k.Counting, k.Short = false, 0
	case !k.Counting:
		k.Counting, k.Short = true, now
	}
	return k
}

// leave notes since when just these recorded members are missing on the server.
func (k Keeper) leave(left []string, now time.Duration) Keeper {
	if names := strings.Join(left, " "); names != k.Leaving {
		k.Leaving, k.LeavingSince = names, now
	}
	return k
}

// relaxed tells whether a shortage has lasted long enough to lower k.
func (k Keeper) relaxed(want RuleWant, seen RuleSeen, now time.Duration) bool {
	if !k.Counting {
		return false
	}
	from, after := k.Short, want.RelaxAfter
	if seen.PromotedKnown && k.Short < seen.PromotedAt+firstRound+afterPromotion {
		from, after = max(from, seen.PromotedAt+firstRound), max(after, afterPromotion)
	}
	return now-from >= after
}

// record is a step that makes the record say so. It gets the next number when it says
// something new; a step that is repeated because its ALTER hangs is written under the old
// one, so that it is answered (R18) and yet differs from the record by nothing: a new
// number every round would make every other swap of the record lose for ever (R1).
func record(old ag.CommitRule, k int32, set []ag.Member, why string) RuleStep {
	next := ag.CommitRule{Number: old.Number, K: max(k, 0), Set: append([]ag.Member(nil), set...)}
	if next.K != old.K || !slices.Equal(next.Set, old.Set) {
		next.Number++
	}
	return RuleStep{Kind: StepRecord, Why: why, Rule: next}
}

// synchronous lists the synchronous replicas of the server's configuration, the primary itself included.
func (s RuleSeen) synchronous() []string {
	var names []string
	for _, c := range s.Configured {
		if c.Mode == ag.ModeSynchronous {
			names = append(names, c.Server)
		}
	}
	return names
}

// syncedOf lists those of the names that are SYNCHRONIZED secondaries.
func (s RuleSeen) syncedOf(names []string) []string {
	var out []string
	for _, n := range names {
		if strings.EqualFold(n, s.Self) {
			continue
		}
		if slices.ContainsFunc(s.Synchronized, func(x string) bool { return strings.EqualFold(x, n) }) {
			out = append(out, n)
		}
	}
	return out
}

// sets is the recorded set with those that joined, and those in it that the server no longer has.
func (s RuleSeen) sets() (union []ag.Member, left []string) {
	union = append(union, s.Record.Set...)
	sync := s.synchronous()
	for _, n := range sync {
		if !slices.ContainsFunc(union, func(m ag.Member) bool { return strings.EqualFold(m.Replica, n) }) {
			union = append(union, ag.Member{Replica: strings.ToLower(n)})
		}
	}
	for _, m := range s.Record.Set {
		if !slices.ContainsFunc(sync, func(n string) bool { return strings.EqualFold(m.Replica, n) }) {
			left = append(left, m.Replica)
		}
	}
	return union, left
}

func without(set []ag.Member, names []string) []ag.Member {
	var out []ag.Member
	for _, m := range set {
		if !slices.Contains(names, m.Replica) {
			out = append(out, m)
		}
	}
	return out
}
