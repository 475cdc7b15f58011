package lease

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// peer is the manager of mssql-1, which has seen epoch 3 of mssql-0.
func peer() State {
	s := NewState(other(), uid, timing(), at(0), Persisted{})
	s, _ = s.Learn(lease3(), time.Second)
	return s
}

func TestAnswerFailsafe(t *testing.T) {
	t.Parallel()
	sealed, answer := peer().TakeSeal(Seal{AGUID: uid, Epoch: 4, Version: "v10"}, 2*time.Second)
	if !answer.OK {
		t.Fatalf("the seal was refused: %s", answer.Why)
	}
	q := Question{AGUID: uid, GroupID: "g1", Epoch: 3, Holder: self()}
	tests := map[string]struct {
		state State
		ask   func(*Question)
		own   Follows
		want  bool
	}{
		"the holder of the newest epoch":            {peer(), func(*Question) {}, Follows{Role: ag.RoleSecondary, GroupID: "G1"}, true},
		"a later epoch than this one has seen":      {peer(), func(q *Question) { q.Epoch = 4 }, Follows{}, true},
		"another custom resource":                   {peer(), func(q *Question) { q.AGUID = "x" }, Follows{}, false},
		"another group":                             {peer(), func(*Question) {}, Follows{GroupID: "g2"}, false},
		"an older epoch":                            {peer(), func(q *Question) { q.Epoch = 2 }, Follows{}, false},
		"not the holder of that epoch":              {peer(), func(q *Question) { q.Holder = ag.Run{Replica: "mssql-2", PodUID: "p", Nonce: "n"} }, Follows{}, false},
		"an earlier run of the holder's pod":        {peer(), func(q *Question) { q.Holder.Nonce = "n0" }, Follows{}, false},
		"nobody":                                    {peer(), func(q *Question) { q.Holder = ag.Run{}; q.Epoch = 9 }, Follows{}, false},
		"its own server follows another primary":    {peer(), func(*Question) {}, Follows{Primary: "mssql-2"}, false},
		"its own server follows the asking one":     {peer(), func(*Question) {}, Follows{Primary: "MSSQL-0"}, true},
		"its own server is PRIMARY":                 {peer(), func(*Question) {}, Follows{Role: ag.RolePrimary}, false},
		"sealed below the epoch that comes":         {sealed, func(*Question) {}, Follows{}, false},
		"sealed, and the question is of that epoch": {sealed, func(q *Question) { q.Epoch = 4 }, Follows{}, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ask := q
			tt.ask(&ask)
			next, got := tt.state.AnswerFailsafe(ask, tt.own, 9*time.Second)
			if got.OK != tt.want {
				t.Fatalf("%+v, want %v", got, tt.want)
			}
			if m := next.Manager(11 * time.Second); tt.want && m.LastFailsafeAgo != 2*time.Second || !tt.want && m.LastFailsafeAgo != -1 {
				t.Errorf("last answer %s ago", m.LastFailsafeAgo)
			}
		})
	}
}

func TestSeal(t *testing.T) {
	t.Parallel()
	seal := Seal{AGUID: uid, Epoch: 4, Version: "v10"}
	s, _ := peer().TakeSeal(seal, 2*time.Second)
	lost := lease3()
	lost.Version = "v11"
	t.Run("stays while the version is the one it names", func(t *testing.T) {
		t.Parallel()
		if next, _ := s.Learn(lease3(), 3*time.Second); next.Persisted.Seal == nil {
			t.Error("it fell")
		}
	})
	t.Run("falls when a later version has a lower epoch", func(t *testing.T) {
		t.Parallel()
		if next, _ := s.Learn(lost, 3*time.Second); next.Persisted.Seal != nil {
			t.Error("it stayed: the swap that it belongs to has lost")
		}
	})
	t.Run("stays when that version was read before it was taken", func(t *testing.T) {
		t.Parallel()
		if next, _ := s.Learn(lost, 1500*time.Millisecond); next.Persisted.Seal == nil {
			t.Error("it fell by an answer to an older question")
		}
	})
	t.Run("survives a restart", func(t *testing.T) {
		t.Parallel()
		next := NewState(other(), uid, timing(), at(0), s.Persisted)
		if _, a := next.AnswerFailsafe(Question{AGUID: uid, Epoch: 3, Holder: self()}, Follows{}, time.Second); a.OK {
			t.Error("a restarted manager answers against its seal")
		}
	})
	t.Run("is refused below what was seen, and for another resource", func(t *testing.T) {
		t.Parallel()
		if _, a := peer().TakeSeal(Seal{AGUID: uid, Epoch: 2}, 0); a.OK {
			t.Error("a seal below the seen epoch was taken")
		}
		if _, a := peer().TakeSeal(Seal{AGUID: "x", Epoch: 9}, 0); a.OK {
			t.Error("a seal of another resource was taken")
		}
		if _, a := s.TakeSeal(Seal{AGUID: uid, Epoch: 3}, 0); !a.OK {
			t.Error("a seal for the epoch that is here already is implied")
		}
	})
}

func TestPeers(t *testing.T) {
	t.Parallel()
	witness := append(three()[:2:2], ag.ConfiguredReplica{Server: "MSSQL-2", Mode: ag.ModeConfigurationOnly})
	async := append(three()[:1:1], ag.ConfiguredReplica{Server: "MSSQL-1", Mode: ag.ModeAsynchronous})
	tests := map[string]struct {
		configured []ag.ConfiguredReplica
		k          int32
		ask        []string
		need       int
	}{
		"three synchronous, k=1: one of two":       {three(), 1, []string{"MSSQL-1", "MSSQL-2"}, 1},
		"three synchronous, k=2: both":             {three(), 2, []string{"MSSQL-1", "MSSQL-2"}, 2},
		"three synchronous, k=0: all":              {three(), 0, []string{"MSSQL-1", "MSSQL-2"}, 2},
		"with a witness, k=0: it too":              {witness, 0, []string{"MSSQL-1", "MSSQL-2"}, 2},
		"with a witness, k=1: the synchronous one": {witness, 1, []string{"MSSQL-1"}, 1},
		"an asynchronous one need not be asked":    {async, 0, nil, 0},
		"a single replica never demotes itself":    {three()[:1], 0, nil, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ask, need := Peers("mssql-0", tt.configured, tt.k)
			if diff := cmp.Diff(tt.ask, ask); diff != "" || need != tt.need {
				t.Errorf("need %d of %v, want %d of %v", need, ask, tt.need, tt.ask)
			}
		})
	}
}

func TestFailsafeProven(t *testing.T) {
	t.Parallel()
	s := holder()
	q, ok := s.Ask("g1")
	if !ok {
		t.Fatal("the holder may not ask")
	}
	ask := []string{"mssql-1", "mssql-2"}
	yes := []Answer{{Replica: "MSSQL-1", OK: true}}
	if next, ok := s.FailsafeProven(q, 20*time.Second, ask, 1, yes); !ok || !next.Proof.Failsafe || next.Proof.Sent != 20*time.Second {
		t.Errorf("one of one: %v %+v", ok, next.Proof)
	}
	twice := []Answer{{Replica: "mssql-1", OK: true}, {Replica: "mssql-1", OK: true}, {Replica: "mssql-7", OK: true}, {Replica: "mssql-2"}}
	if _, ok := s.FailsafeProven(q, 20*time.Second, ask, 2, twice); ok {
		t.Error("the same one twice, a stranger and a no made two")
	}
	granted := lease3()
	granted.Epoch, granted.Holder = 4, other()
	moved, _ := s.Learn(granted, 19*time.Second)
	if _, ok := moved.FailsafeProven(q, 20*time.Second, ask, 1, yes); ok {
		t.Error("answers to a question of an epoch that is over are a proof")
	}
	if _, ok := peer().Ask("g1"); ok {
		t.Error("a run that does not hold the Lease may ask")
	}
}

func TestHear(t *testing.T) {
	t.Parallel()
	s := peer().Hear(Tell{AGUID: uid, Epoch: 5, Rule: 9, Holder: self()})
	if s.Persisted.Epoch != 5 || s.Persisted.Rule != 9 {
		t.Errorf("not remembered: %+v", s.Persisted)
	}
	if _, st := s.Learn(lease3(), 9*time.Second); st != StandingNoProof {
		t.Errorf("an older Lease is %s", st)
	}
	moment := peer().Hear(Tell{AGUID: uid, Epoch: 3, Rule: 7, Swaps: 21})
	if _, st := moment.Learn(lease3(), 9*time.Second); st != StandingNoProof || moment.Tell().Swaps != 21 {
		t.Errorf("a Lease of an earlier moment is %s; passed on as %+v", st, moment.Tell())
	}
	if f := peer().Hear(Tell{AGUID: "x", Epoch: 50, Rule: 90}); f.Persisted.Epoch != 3 {
		t.Error("another resource's numbers were remembered")
	}
	if l := s.Hear(Tell{AGUID: uid, Epoch: 4, Rule: 8}); l.Persisted.Epoch != 5 || l.Persisted.Rule != 9 {
		t.Error("the highest numbers went back")
	}
}
