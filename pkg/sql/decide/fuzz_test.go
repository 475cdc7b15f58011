package decide

import (
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// reader turns bytes into choices; when they are used up every choice is 0.
type reader struct{ data []byte }

func (r *reader) pick(n int) int {
	if len(r.data) == 0 || n <= 0 {
		return 0
	}
	b := int(r.data[0])
	r.data = r.data[1:]
	return b % n
}

// FuzzDecide: whatever a snapshot and a record say, the decision is at most one
// disruptive step, FAILOVER stands behind its record, nothing panics, the same input
// gives the same decision in any order of replicas and after a JSON round trip, and an
// election without its answers names no winner.
func FuzzDecide(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16})
	f.Add([]byte{0, 0, 0, 2, 2, 2, 1, 1, 1, 9, 9, 9, 200, 100, 50, 25, 12, 6, 3, 1, 0, 255})
	f.Add([]byte("every synchronous replica says that it is not PRIMARY, and one of them is"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &reader{data}
		w := newWorld(3)
		w.now = time.Duration(10+r.pick(100)) * time.Second
		for _, s := range w.servers {
			r.server(s)
		}
		r.record(w)
		r.policy(w)
		in, ok := w.input()
		if !ok {
			t.Fatal("the model gave no input")
		}
		for i := range in.Snapshot.Replicas {
			r.replica(&in.Snapshot.Replicas[i])
		}
		r.memory(&in)
		in.Clock = ag.Clock{Began: w.now, Ended: w.now + time.Duration(r.pick(3))*time.Second}
		d := decide(in, knobs{})
		w.invariants(in, d)
		v := newView(in, knobs{})
		if b := v.elect(question{}); b.winner != "" && !b.enough {
			w.violation("%s wins without enough answers", b.winner)
		}
		for _, x := range w.violations {
			t.Error(x)
		}
	})
}

func (r *reader) server(s *server) {
	s.role = []ag.Role{ag.RolePrimary, ag.RoleSecondary, ag.RoleResolving, ag.RoleNone, ag.RoleUnknown}[r.pick(5)]
	s.cfg.seq = int64(r.pick(4))<<32 + int64(r.pick(3))
	s.cfg.k = int32(r.pick(3))
	s.up = r.pick(5) > 0
	s.gone = r.pick(9) == 8
	s.frozen = r.pick(9) == 8
	s.fenced = r.pick(9) == 8
	s.terminating = r.pick(9) == 8
	s.label = []ag.Role{ag.RoleUnknown, ag.RolePrimary, ag.RoleSecondary}[r.pick(3)]
	s.suspend = r.pick(9) == 8
	for range r.pick(4) {
		s.log = append(s.log, len(s.log)+1)
	}
	if r.pick(9) == 8 {
		s.pvc = "another"
	}
	if r.pick(6) == 5 {
		s.terminated, s.reason = s.containerID, []string{"Error", statusUnknown}[r.pick(2)]
	}
}

func (r *reader) run(w *world) ag.Run {
	if r.pick(4) == 3 {
		return ag.Run{}
	}
	run := w.run(w.servers[r.pick(len(w.servers))])
	if r.pick(5) == 4 {
		run.Nonce = "earlier"
	}
	return run
}

func (r *reader) names(w *world) []string {
	var out []string
	for _, s := range w.servers {
		if r.pick(3) == 2 {
			out = append(out, s.name)
		}
	}
	return out
}

func (r *reader) record(w *world) {
	a := &w.lease
	a.Exists = r.pick(12) > 0
	a.Holder = r.run(w)
	a.Epoch = int64(1 + r.pick(5))
	a.Rule.K = int32(r.pick(4))
	if r.pick(9) == 8 {
		a.Rule.Set = nil
	}
	a.Stale, a.MaybePrimary = r.names(w), r.names(w)
	a.LastPrimary = append(w.names(), "")[r.pick(4)]
	a.NoWriteLease = r.pick(9) == 8
	for i := range r.pick(3) {
		a.Unfenced = append(a.Unfenced, ag.Grant{Epoch: int64(i + 1), Run: r.run(w), Promoted: r.pick(2) == 1,
			Offline: r.pick(2) == 1, Proven: []ag.Proof{ag.ProofNone, ag.ProofDeath, ag.ProofTime}[r.pick(3)]})
	}
	if r.pick(2) == 1 {
		a.Operation = &ag.Operation{ID: "op", StartedAt: epochStart, Deadline: epochStart.Add(time.Duration(r.pick(90)) * time.Second),
			Kind:   []ag.OperationKind{ag.OperationSwitchover, ag.OperationFailover, ag.OperationForced, ag.OperationHandover, ag.OperationBootstrap}[r.pick(5)],
			Phase:  []ag.OperationPhase{ag.PhaseDemoting, ag.PhaseFencing, ag.PhasePromoting, ag.PhasePublishing, ag.PhaseAborting, ag.PhaseCreating, "?"}[r.pick(7)],
			Owner:  []string{"", "controller/1", "controller/2", "direct/x"}[r.pick(4)],
			Target: append(w.names(), "", "nobody")[r.pick(5)], From: append(w.names(), "")[r.pick(4)],
			Promises: ag.Promises{Epoch: a.Epoch - int64(r.pick(2)), Replicas: w.names()[:r.pick(len(w.names())+1)]}}
	}
	a.Swaps = int64(r.pick(3))
}

func (r *reader) policy(w *world) {
	w.policy.External = r.pick(9) > 0
	w.policy.AutoFailover = r.pick(9) > 0
	w.policy.AllowDataLoss, w.policy.ForceAfter = r.pick(4) == 3, time.Duration(r.pick(60))*time.Second
	w.policy.Preferred = append(w.names(), "")[r.pick(4)]
	w.policy.Threshold = time.Duration(r.pick(3)) * 10 * time.Second
	if r.pick(3) == 2 {
		w.request = &ag.Request{ID: "r", Kind: requestFailover, Target: append(w.names(), "", "nobody")[r.pick(5)],
			AllowDataLoss: r.pick(2) == 1, MaxLossSeconds: r.pick(3), ExpectedPrimary: append(w.names(), "")[r.pick(4)]}
	}
}

func (r *reader) replica(x *ag.Replica) {
	x.Manager.LastFailsafeAgo = []time.Duration{-1, 0, 3 * time.Second, time.Hour}[r.pick(4)]
	x.Manager.GrantedAgo = []time.Duration{0, time.Second, time.Minute}[r.pick(3)]
	x.Manager.SealedEpoch = int64(r.pick(6))
	x.Manager.HighestEpoch = int64(r.pick(3))
	x.Manager.HighestRule = int64(r.pick(2))
	x.Manager.HighestSwaps = int64(r.pick(2))
	if r.pick(6) == 5 {
		x.Manager.Reach = ag.ReachTimeout
	}
	if r.pick(6) == 5 {
		x.Local.Reach = []ag.Reach{ag.ReachTimeout, ag.ReachRefused, ag.ReachForbidden, ag.ReachLoginFailed}[r.pick(4)]
	}
	x.Local.Endpoint = []ag.EndpointState{ag.EndpointStarted, ag.EndpointStopped, ag.EndpointMissing}[r.pick(3)]
	if x.Remote == nil && r.pick(2) == 1 {
		x.Remote = &ag.Remote{Connected: r.pick(2) == 1, Seeding: r.pick(8) == 7}
	}
}

func (r *reader) memory(in *Input) {
	at := func() time.Time { return epochStart.Add(time.Duration(r.pick(120)) * time.Second) }
	if r.pick(2) == 1 {
		in.Memory.PrimaryFailure = &ag.Failure{Since: at(), LastStrikeAt: at(), Strikes: int32(r.pick(5)), Renewals: []string{"0", "1"}[r.pick(2)]}
	}
	if r.pick(3) == 2 {
		in.Memory.BlockedSince = at()
	}
	if r.pick(3) == 2 {
		in.Memory.LastRoleChangeAt = at()
	}
	if r.pick(3) == 2 {
		in.Memory.Promotion = &ag.Promotion{Replica: "mssql-1", Epoch: in.Authority.Epoch, At: at(), Accepted: r.pick(2) == 1, Msg: []int32{0, ag.MsgNotSynchronized, 41104}[r.pick(3)]}
	}
	for _, s := range in.Snapshot.Replicas {
		if r.pick(4) == 3 {
			in.Memory.Recoveries = append(in.Memory.Recoveries, ag.Recovery{Replica: s.Name, Symptom: ag.SymptomResolving, Since: at(), LastAttemptAt: at(), Attempts: int32(r.pick(30))})
		}
	}
	if r.pick(2) == 1 {
		in.Watch.Epoch, in.Watch.Renewals = in.Authority.Epoch, in.Authority.Renewals
		in.Watch.Seen = time.Duration(r.pick(60)) * time.Second
		in.Watch.Reads = ag.Reads{From: time.Duration(r.pick(60)) * time.Second, Last: time.Duration(r.pick(60)) * time.Second,
			Counted: int32(r.pick(5)), CountedAt: time.Duration(r.pick(60)) * time.Second}
	}
	for _, g := range in.Authority.Unfenced {
		in.Watch.Unfenced = append(in.Watch.Unfenced, ag.Sighting{Epoch: g.Epoch, Seen: time.Duration(r.pick(60)) * time.Second, From: time.Duration(r.pick(60)) * time.Second})
	}
	if op := in.Authority.Operation; op != nil {
		in.Watch.Operation = op.ID + "/" + string(op.Phase) + "/1"
		in.Watch.OperationSeen = time.Duration(r.pick(60)) * time.Second
	}
}
