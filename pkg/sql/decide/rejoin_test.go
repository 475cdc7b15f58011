package decide

import (
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// What a forced failover has lost may be on the former primary alone: until it has caught
// up no step of the ladder may cost its copy, whatever role changes came since.
func TestACopyThatMayHoldMoreIsNotGivenUp(t *testing.T) {
	t.Parallel()
	forced := ag.RoleChange{Kind: "forced", From: "mssql-0", To: "mssql-1", Result: "done"}
	planned := ag.RoleChange{Kind: "planned", From: "mssql-1", To: "mssql-2", Result: "done"}
	onto := ag.RoleChange{Kind: "forced", From: "mssql-1", To: "mssql-1", Result: "done"}
	for name, tt := range map[string]struct {
		history []ag.RoleChange
		stale   []string
		want    bool
	}{
		"the former primary after FORCE":                  {[]ag.RoleChange{forced}, []string{"mssql-0"}, false},
		"the same after another, planned move":            {[]ag.RoleChange{planned, forced}, []string{"mssql-0"}, false},
		"once it has caught up":                           {[]ag.RoleChange{forced}, nil, true},
		"after FORCE of the last primary onto itself":     {[]ag.RoleChange{onto}, []string{"mssql-0"}, true},
		"a stale replica where nothing was forced":        {[]ag.RoleChange{planned}, []string{"mssql-0"}, true},
		"a group whose roles never changed has lost none": {nil, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(3)
			w.policy.AllowReseed = true
			w.runQuietly(5 * time.Second)
			in, ok := w.input()
			if !ok {
				t.Fatal("the controller cannot read the Lease")
			}
			in.Memory.History, in.Authority.Stale = tt.history, tt.stale
			v := newView(in, knobs{})
			r, p := v.snap.Find("mssql-0"), v.snap.Find("mssql-1")
			r.Remote = &ag.Remote{Connected: true}
			for what, x := range map[string]refusal{"rejoined": v.mayRejoin(r, p), "seeded anew": v.mayReseed(r, p)} {
				if x.none() != tt.want {
					t.Errorf("may be %s: %v (%s), want %v", what, x.none(), x.why, tt.want)
				}
			}
		})
	}
}

// A configuration ahead of the primary's, which no promotion of the record explains, is given up
// only where fewer than its k can have followed it. The primary cannot: its own promotion
// would be a later one.
func TestAConfigurationAheadIsGivenUpWhenNothingWasAcknowledgedInIt(t *testing.T) {
	t.Parallel()
	number := func(promotion, change int64) int64 { return promotion<<32 | change }
	for name, tt := range map[string]struct {
		k                     int32
		ahead, other, primary int64
		want                  bool
	}{
		"two would have had to follow, and one may have":             {2, number(4, 2), number(4, 1), number(4, 0), true},
		"one would have had to follow, and one may have":             {1, number(4, 2), number(4, 1), number(4, 0), false},
		"one would have had to follow, and the other is of before":   {1, number(4, 2), number(3, 9), number(4, 0), true},
		"nobody had to follow":                                       {0, number(4, 2), number(3, 9), number(4, 0), false},
		"numbers that do not tell promotions apart: all may have":    {1, 23, 22, 22, false},
		"the same, and the primary itself would have had to":         {2, 23, 22, 22, true},
		"the primary is of an earlier promotion, the other followed": {2, number(5, 2), number(5, 1), number(4, 7), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := settledInput(t)
			in.Authority.Sequences = nil
			v := newView(in, knobs{})
			r, other, p := v.snap.Find("mssql-0"), v.snap.Find("mssql-1"), v.snap.Find("mssql-2")
			r.Local.Sequence, other.Local.Sequence, p.Local.Sequence = tt.ahead, tt.other, tt.primary
			r.Local.RequiredToCommit = tt.k
			if got := v.wroteNothing(r, p); got != tt.want {
				t.Errorf("nothing was acknowledged: %v, want %v", got, tt.want)
			}
		})
	}
}

// A witness that is ahead was not the primary of its configuration: one of the others was, which
// does not count as its own follower.
func TestAWitnessAheadIsRejoinedWhenNobodyCanHaveFollowedItsPrimary(t *testing.T) {
	t.Parallel()
	number := func(promotion, change int64) int64 { return promotion<<32 | change }
	for name, tt := range map[string]struct {
		k    int32
		sync int
		// away is a synchronous replica that does not count as an answer.
		away []string
		want bool
	}{
		"two replicas, the other one was primary, and the primary did not follow": {1, 2, []string{"mssql-0"}, true},
		"the same where nobody had to follow":                                     {0, 2, []string{"mssql-0"}, false},
		"three replicas, one may have followed the other":                         {1, 3, []string{"mssql-0", "mssql-1"}, false},
		"three replicas, one has answered: the other may have followed it":        {1, 3, []string{"mssql-0"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(tt.sync, withWitness)
			w.runQuietly(5 * time.Second)
			in, ok := w.input()
			if !ok {
				t.Fatal("the controller cannot read the Lease")
			}
			in.Authority.Sequences = nil
			v := newView(in, knobs{})
			for _, name := range tt.away {
				v.snap.Find(name).Local = ag.Local{Reach: ag.ReachTimeout}
			}
			r, p := v.witness(), v.snap.Find(v.auth.Rule.Names()[tt.sync-1])
			for i := range v.snap.Replicas {
				if x := &v.snap.Replicas[i]; reached(x) {
					x.Local.Sequence = number(3, 9)
				}
			}
			r.Local.Sequence, p.Local.Sequence = number(5, 0), number(4, 0)
			r.Local.RequiredToCommit = tt.k
			if got := v.wroteNothing(r, p); got != tt.want {
				t.Errorf("nothing was acknowledged: %v, want %v", got, tt.want)
			}
		})
	}
}

// A person's choice keeps the primary from being promoted onto itself as long as it may be ahead.
func TestAPersonsChoiceIsOpenAsLongAsItMayBeAhead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(x *ag.Replica)
		want   bool
	}{
		"it has the primary's configuration":  {func(x *ag.Replica) { x.Local.Role = ag.RoleResolving }, false},
		"it does not answer":                  {func(x *ag.Replica) { x.Local = ag.Local{Reach: ag.ReachTimeout} }, true},
		"it says PRIMARY":                     {func(x *ag.Replica) { x.Local.Role = ag.RolePrimary }, true},
		"its configuration is later":          {func(x *ag.Replica) { x.Local.Role, x.Local.Sequence = ag.RoleResolving, x.Local.Sequence+1 }, true},
		"its configuration is an earlier one": {func(x *ag.Replica) { x.Local.Role, x.Local.Sequence = ag.RoleResolving, x.Local.Sequence-1 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := settledInput(t)
			in.Authority.ByHand = []ag.ByHand{{Replica: "mssql-1"}}
			v := newView(in, knobs{})
			tt.change(v.snap.Find("mssql-1"))
			if got := v.openByHand(); got != tt.want {
				t.Errorf("open: %v, want %v", got, tt.want)
			}
		})
	}
}

// settledInput is what a controller sees of three replicas five seconds after all is well.
func settledInput(t *testing.T) Input {
	t.Helper()
	w := newWorld(3)
	w.runQuietly(5 * time.Second)
	in, ok := w.input()
	if !ok {
		t.Fatal("the controller cannot read the Lease")
	}
	return in
}
