package lease

import (
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

func TestLearn(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*ag.Authority)
		want   Standing
	}{
		"this run holds it":                        {func(*ag.Authority) {}, StandingHolder},
		"another replica holds it":                 {func(a *ag.Authority) { a.Holder = other() }, StandingOther},
		"an earlier run of this pod holds it":      {func(a *ag.Authority) { a.Holder.Nonce = "n0" }, StandingOther},
		"nobody holds it":                          {func(a *ag.Authority) { a.Holder = ag.Run{} }, StandingOther},
		"it is missing":                            {func(a *ag.Authority) { a.Exists = false }, StandingNoProof},
		"it is of another custom resource":         {func(a *ag.Authority) { a.AGUID = "cr-0" }, StandingNoProof},
		"its epoch is older than what was seen":    {func(a *ag.Authority) { a.Epoch = 2 }, StandingNoProof},
		"its rule is older than what was seen":     {func(a *ag.Authority) { a.Rule.Number = 6 }, StandingNoProof},
		"it is of an earlier moment of the grant":  {func(a *ag.Authority) { a.Swaps = 19 }, StandingNoProof},
		"it was written by one who does not count": {func(a *ag.Authority) { a.Swaps = 0 }, StandingHolder},
		"a later epoch of another replica's run":   {func(a *ag.Authority) { a.Epoch, a.Holder = 4, other() }, StandingOther},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := holder()
			a := lease3()
			tt.change(&a)
			next, got := s.Learn(a, 12*time.Second)
			if got != tt.want {
				t.Fatalf("standing %s, want %s", got, tt.want)
			}
			if may := next.MayRenewLease(primary()); may.OK != (tt.want == StandingHolder) {
				t.Errorf("may renew: %+v under standing %s", may, got)
			}
			if got == StandingOther && next.Proof.Valid {
				t.Error("a run that does not hold the Lease kept its proof")
			}
		})
	}
}

func TestLearn_AnOvertakenAnswerChangesNothing(t *testing.T) {
	t.Parallel()
	s := holder()
	newer := lease3()
	newer.Epoch, newer.Holder = 4, other()
	s, _ = s.Learn(newer, 20*time.Second)
	late := newer
	late.Holder = self()
	if _, st := s.Learn(late, 15*time.Second); st != StandingOther {
		t.Errorf("an answer to an older question made it %s", st)
	}
}

func TestLearn_ANewEpochVoidsTheProofOfTheOld(t *testing.T) {
	t.Parallel()
	s := holder()
	a := lease3()
	a.Epoch = 5
	s, st := s.Learn(a, 12*time.Second)
	if st != StandingHolder || s.Proof.Valid {
		t.Fatalf("standing %s with proof %+v: a proof of epoch 3 is none in epoch 5", st, s.Proof)
	}
	if v := s.MayRenewWriteLease(primary(), 12*time.Second); v.OK {
		t.Error("the write lease may be renewed without a proof of this epoch")
	}
	s = s.Renewed(a, 13*time.Second)
	if v := s.MayRenewWriteLease(primary(), 14*time.Second); !v.OK {
		t.Errorf("a renewal of this epoch is a proof: %s", v.Why)
	}
}

func TestRestart_HasNoAuthority(t *testing.T) {
	t.Parallel()
	s := holder()
	run := self()
	run.Nonce = "n2"
	next := NewState(run, uid, timing(), at(0), s.Persisted)
	next, st := next.Learn(lease3(), time.Second)
	if st != StandingOther || next.MayRenewLease(primary()).OK || next.MayRenewWriteLease(primary(), time.Second).OK {
		t.Errorf("a restarted run has authority: %s", st)
	}
	if foreign := NewState(run, "cr-2", timing(), at(0), s.Persisted); foreign.Persisted.Epoch != 0 {
		t.Error("what was seen under another custom resource is believed")
	}
}

func TestMayRenewLease(t *testing.T) {
	t.Parallel()
	op := &ag.Operation{Kind: ag.OperationFailover}
	tests := map[string]struct {
		server Server
		op     *ag.Operation
		want   bool
	}{
		"a PRIMARY renews":                                      {primary(), nil, true},
		"a server that is RESOLVING stops renewing":             {Server{Running: true, Role: ag.RoleResolving}, nil, false},
		"a RESOLVING target of an operation renews":             {Server{Running: true, Role: ag.RoleResolving}, op, true},
		"a server that does not answer goes on renewing":        {Server{Running: true, LastRole: ag.RolePrimary}, nil, true},
		"a server that does not run stops renewing":             {Server{}, nil, false},
		"a SECONDARY stops renewing while no operation is seen": {Server{Running: true, Role: ag.RoleSecondary}, nil, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := lease3()
			a.Operation = tt.op
			s := holder().Renewed(a, 11*time.Second)
			if v := s.MayRenewLease(tt.server); v.OK != tt.want {
				t.Errorf("%+v, want %v", v, tt.want)
			}
		})
	}
}

// Where a renewal revives a server whose lease has run out, a nominee's must not come before the
// fence; from phase promoting on it keeps the lease that the FAILOVER's batch has begun.
func TestMayRenewWriteLease_OfANomineeNotBeforeItsPromotion(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		role  ag.Role
		phase ag.OperationPhase
		want  bool
	}{
		"a RESOLVING nominee while the earlier holders are fenced": {ag.RoleResolving, ag.PhaseFencing, false},
		"a SECONDARY nominee":                          {ag.RoleSecondary, ag.PhaseFencing, false},
		"a nominee that does not answer":               {ag.RoleUnknown, ag.PhaseFencing, false},
		"a nominee of a move that is being given up":   {ag.RoleResolving, ag.PhaseAborting, false},
		"a nominee that is PRIMARY already":            {ag.RolePrimary, ag.PhaseFencing, true},
		"a target that is being promoted":              {ag.RoleResolving, ag.PhasePromoting, true},
		"a target whose databases are not ONLINE yet":  {ag.RolePrimary, ag.PhasePublishing, true},
		"an old primary that a planned move has taken": {ag.RoleResolving, ag.PhaseDemoting, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := lease3()
			a.Operation = &ag.Operation{Kind: ag.OperationFailover, Phase: tt.phase}
			s := holder().Renewed(a, 11*time.Second)
			v := s.MayRenewWriteLease(Server{Running: true, Role: tt.role}, 12*time.Second)
			if v.OK != tt.want || v.OK == v.Expected {
				t.Errorf("%+v, want %v", v, tt.want)
			}
			if l := s.MayRenewLease(Server{Running: true, Role: ag.RoleResolving}); !l.OK {
				t.Errorf("the Lease itself is not renewed: %s", l.Why)
			}
		})
	}
}

func TestMayRenewWriteLease_CountsFromWhenTheProofWasSent(t *testing.T) {
	t.Parallel()
	s := holder() // proof sent at 10 s
	for _, tt := range []struct {
		now  time.Duration
		want bool
	}{{10 * time.Second, true}, {15 * time.Second, true}, {15*time.Second + 1, false}, {time.Minute, false}} {
		v := s.MayRenewWriteLease(primary(), tt.now)
		if v.OK != tt.want {
			t.Errorf("at %s: %+v, want %v", tt.now, v, tt.want)
		}
		if v.OK && v.NotAfter != 15*time.Second {
			t.Errorf("at %s it may be used until %s, want 15s", tt.now, v.NotAfter)
		}
	}
	// An older answer that arrives late does not make the proof older.
	if late := s.Renewed(lease3(), 8*time.Second); late.Proof.Sent != 10*time.Second {
		t.Errorf("a late answer moved the proof to %s", late.Proof.Sent)
	}
	if v := s.MayRenewWriteLease(Server{Running: true, Role: ag.RoleResolving}, 11*time.Second); v.OK {
		t.Error("a RESOLVING server's write lease is renewed while no operation runs")
	}
	if v := s.MayRenewWriteLease(Server{Running: true, Role: ag.RolePrimary, NoWriteLease: true}, 11*time.Second); v.OK {
		t.Error("a write lease that is not there is renewed")
	}
}

func TestClockJump(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		jump time.Duration
		want bool
	}{
		"no jump":                      {0, false},
		"a tenth back":                 {-100 * time.Millisecond, false},
		"half a second back":           {-500 * time.Millisecond, false},
		"more than half a second back": {-501 * time.Millisecond, true},
		"one second forward":           {time.Second, false},
		"more than a second forward":   {1001 * time.Millisecond, true},
		"an hour back":                 {-time.Hour, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := holder()
			s.Last = at(10 * time.Second)
			now := at(11 * time.Second)
			now.Wall = now.Wall.Add(tt.jump)
			next, jumped := s.Tick(now)
			if jumped != tt.want || next.Proof.Valid == tt.want {
				t.Fatalf("jumped %v, proof %+v; want jumped %v", jumped, next.Proof, tt.want)
			}
			if !jumped {
				return
			}
			// What was asked before the jump is no proof, what is asked after it is.
			if s := next.Renewed(lease3(), 10500*time.Millisecond); s.Proof.Valid {
				t.Error("a renewal sent before the jump counts")
			}
			after := next.Renewed(lease3(), 12*time.Second)
			if !after.Proof.Valid || after.MayRenewWriteLease(primary(), 12*time.Second).OK {
				t.Error("after a jump the remaining write lease is to be read before it is renewed")
			}
			if v := after.Kill(KillInput{Now: 12 * time.Second, Server: primary(), RemainingKnown: true, Remaining: 16 * time.Second}); !v.OK {
				t.Error("R6: a remaining lease above L survives a jump")
			}
			ok := after.JumpChecked(14*time.Second, 12*time.Second)
			if !ok.MayRenewWriteLease(primary(), 12*time.Second).OK || ok.Kill(KillInput{Now: 12 * time.Second, Server: primary(), RemainingKnown: true, Remaining: 16 * time.Second}).OK {
				t.Error("a remaining lease in order ends the alarm")
			}
		})
	}
}

func TestKill(t *testing.T) {
	t.Parallel()
	base := holder().WriteLeaseSent(20 * time.Second) // may last until 20 + q + L = 37 s; with m over after 38.5 s
	frozen := Server{Running: true, LastRole: ag.RolePrimary}
	tests := map[string]struct {
		in   KillInput
		want bool
	}{
		"PRIMARY within its lease":                      {KillInput{Now: 30 * time.Second, Server: primary()}, false},
		"PRIMARY at the lease's last moment":            {KillInput{Now: 38500 * time.Millisecond, Server: primary()}, false},
		"PRIMARY after the lease must have ended":       {KillInput{Now: 39 * time.Second, Server: primary()}, true},
		"frozen PRIMARY after the lease":                {KillInput{Now: 39 * time.Second, Server: frozen}, true},
		"RESOLVING after the lease":                     {KillInput{Now: 39 * time.Second, Server: Server{Running: true, Role: ag.RoleResolving, LastRole: ag.RolePrimary}}, false},
		"a group without a write lease":                 {KillInput{Now: time.Hour, Server: Server{Running: true, Role: ag.RolePrimary, NoWriteLease: true}}, false},
		"a server that is gone":                         {KillInput{Now: time.Hour, Server: Server{}}, false},
		"one bad answer of the diagnostics":             {KillInput{Now: 30 * time.Second, Server: primary(), BadDiagnostics: 1, MaxBadDiagnostics: 2}, false},
		"two bad answers of the diagnostics":            {KillInput{Now: 30 * time.Second, Server: primary(), BadDiagnostics: 2, MaxBadDiagnostics: 2}, true},
		"a secondary beyond saving is killed as well":   {KillInput{Now: 30 * time.Second, Server: Server{Running: true, Role: ag.RoleSecondary}, BadDiagnostics: 2, MaxBadDiagnostics: 2}, true},
		"a long lease without a clock jump is no alarm": {KillInput{Now: 30 * time.Second, Server: primary(), RemainingKnown: true, Remaining: time.Hour}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if v := base.Kill(tt.in); v.OK != tt.want {
				t.Errorf("%+v, want %v", v, tt.want)
			}
		})
	}
}

func TestKill_AfterAClockJump(t *testing.T) {
	t.Parallel()
	jumped := holder().WriteLeaseSent(20 * time.Second) // may last until 20 + q + L = 37 s
	jumped.JumpUnchecked = true
	unknown := jumped
	unknown.WriteLease = WriteLease{}
	tests := map[string]struct {
		s         State
		remaining time.Duration
		want      bool
	}{
		"a lease that ends when a renewal can make it end":    {jumped, 7 * time.Second, false},
		"a lease within L that no renewal makes last so long": {jumped, 7100 * time.Millisecond, true},
		"a lease above L": {jumped, 15100 * time.Millisecond, true},
		"a lease within L, of whose renewals nothing is known":     {unknown, 15 * time.Second, false},
		"a lease above L, of whose renewals nothing is known":      {unknown, 15100 * time.Millisecond, true},
		"a lease that has ended, as a clock set forward leaves it": {jumped, 0, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := KillInput{Now: 30 * time.Second, Server: primary(), RemainingKnown: true, Remaining: tt.remaining}
			if v := tt.s.Kill(in); v.OK != tt.want {
				t.Errorf("%+v, want %v", v, tt.want)
			}
		})
	}
}

func TestDiagnosticsBad(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		d    ag.Diagnostics
		t    Threshold
		want bool
	}{
		"all clean":                                {ag.Diagnostics{System: 1, Resource: 1, QueryProcessing: 1}, ThresholdQueryProcessing, false},
		"system warning":                           {ag.Diagnostics{System: 2}, ThresholdSystem, false},
		"system error":                             {ag.Diagnostics{System: 3}, ThresholdSystem, true},
		"resource error under threshold system":    {ag.Diagnostics{Resource: 3}, ThresholdSystem, false},
		"resource error under threshold resource":  {ag.Diagnostics{Resource: 3}, ThresholdResource, true},
		"query error under threshold resource":     {ag.Diagnostics{QueryProcessing: 3}, ThresholdResource, false},
		"query error under threshold query":        {ag.Diagnostics{QueryProcessing: 3}, ThresholdQueryProcessing, true},
		"no answer counts under every threshold":   {ag.Diagnostics{Error: "time-out"}, ThresholdSystem, true},
		"resource error under threshold query":     {ag.Diagnostics{Resource: 3}, ThresholdQueryProcessing, true},
		"unknown state 0 is no failure by its own": {ag.Diagnostics{}, ThresholdQueryProcessing, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := DiagnosticsBad(tt.d, tt.t); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

func TestPendingCommit(t *testing.T) {
	t.Parallel()
	s := holder()
	for _, tt := range []struct {
		pending, now time.Duration
		want         Pending
	}{
		{time.Minute, 11 * time.Second, PendingNothing},
		{61 * time.Second, 11 * time.Second, PendingCondition},
		{61 * time.Second, 16 * time.Second, PendingTakeOffline},
	} {
		if got := s.PendingCommit(tt.pending, tt.now); got != tt.want {
			t.Errorf("pending %s at %s: %q, want %q", tt.pending, tt.now, got, tt.want)
		}
	}
}

// The end of a container proves the end of a grant only when the two can be told to
// belong together: by when each began.
func TestAManagerSaysWhenItBegan(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 1, 12, 0, 5, 280_000_000, time.FixedZone("CET", 3600))
	s := NewState(ag.Run{Replica: "a", PodUID: "pod", Nonce: "run"}, "uid", ag.Timing{}, Instant{Mono: time.Second, Wall: began}, Persisted{})
	m := s.Manager(11 * time.Second)
	if !m.StartedAt.Equal(began) || m.StartedAgo != 10*time.Second {
		t.Errorf("it says that it began at %s, %s ago; want %s, 10s ago", m.StartedAt, m.StartedAgo, began)
	}
}
