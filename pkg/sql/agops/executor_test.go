package agops_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/agops"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql/mssqltest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/tsql"
)

// scripted is one Conn a replica, and what Kube and managers were asked.
type scripted struct {
	conns  map[string]*mssqltest.Conn
	refuse error // of Connect
	sealed map[string]error
	labels []string
}

func (s *scripted) Connect(_ context.Context, _ ag.Key, replica string, _ ag.Pod) (mssql.Conn, error) {
	if s.refuse != nil {
		return nil, s.refuse
	}
	return s.conns[replica], nil
}

func (s *scripted) Seal(_ context.Context, _ ag.Key, replica string, _ ag.Pod, _ agops.SealOrder) error {
	return s.sealed[replica]
}

func (s *scripted) SetRole(_ context.Context, _ ag.Key, replica, uid string, role ag.Role, readable bool) error {
	what := replica + "/" + uid + "=" + string(role)
	if readable {
		what += " readable"
	}
	s.labels = append(s.labels, what)
	return nil
}

// sent lists the batches of a replica without the questions for the server's time.
func (s *scripted) sent(replica string) []string {
	var out []string
	for _, b := range s.conns[replica].Sent() {
		if b != tsql.ServerTime() {
			out = append(out, b)
		}
	}
	return out
}

var (
	serverNow = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC) // the server's clock is not ours
	hereNow   = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
)

// rig makes an executor over scripted servers ag1-0 (PRIMARY) and ag1-1 (SECONDARY).
func rig(rules ...mssqltest.Rule) (*scripted, agops.SQLExecutor, agops.Pass, *clocktesting.FakeClock) {
	clk := clocktesting.NewFakeClock(hereNow)
	s := &scripted{conns: map[string]*mssqltest.Conn{}, sealed: map[string]error{}}
	pass := agops.Pass{Key: key, Policy: ag.Policy{Group: "ag1", UID: "uid-1", External: true, Timing: ag.Timing{Q: 2 * time.Second, L: 15 * time.Second}}}
	for i, name := range []string{"ag1-0", "ag1-1"} {
		all := append([]mssqltest.Rule{{Contains: tsql.ServerTime(), Answer: mssqltest.Answer{
			Results: []mssql.Result{mssqltest.Table([]string{tsql.ServerTimeColumn}, []any{serverNow})}}}}, rules...)
		s.conns[name] = mssqltest.New(all...)
		pass.Snapshot.Replicas = append(pass.Snapshot.Replicas, ag.Replica{
			Name: name, Ordinal: i, Readable: true, Pod: ag.Pod{Exists: true, UID: "pod-" + name, IP: "10.0.0.1"},
			Local: ag.Local{Reach: ag.ReachOK, EndpointName: "mirroring", Endpoint: ag.EndpointStarted},
		})
	}
	return s, agops.SQLExecutor{Servers: s, Managers: s, Kube: s, Clock: clk}, pass, clk
}

// promoting is the record after the swap that allows a FAILOVER on ag1-1.
func promoting() ag.Authority {
	return ag.Authority{Exists: true, Epoch: 7, Holder: ag.Run{Replica: "ag1-1", PodUID: "pod-ag1-1", Nonce: "n"},
		Operation: &ag.Operation{Phase: ag.PhasePromoting, Target: "ag1-1"}}
}

func kindOf(e *ag.Error) ag.ErrorKind {
	if e == nil {
		return "none"
	}
	return e.Kind
}

func TestPromotionIsGuarded(t *testing.T) {
	t.Parallel()
	promote := ag.Promote{Replica: "ag1-1", Epoch: 7, Lease: 15 * time.Second, Guard: ag.Guard{PodUID: "pod-ag1-1", Role: ag.RoleSecondary, Sequence: 42}}
	for _, tt := range []struct {
		name   string
		change func(*agops.Pass, *ag.Promote, *clocktesting.FakeClock)
		rules  []mssqltest.Rule
		kind   ag.ErrorKind
		sent   int
	}{
		{"sent within q after its swap", func(*agops.Pass, *ag.Promote, *clocktesting.FakeClock) {}, nil, "none", 1},
		{"no swap in this pass", func(p *agops.Pass, _ *ag.Promote, _ *clocktesting.FakeClock) { p.Swapped = time.Time{} }, nil, ag.ErrGuard, 0},
		{"the swap is older than q", func(_ *agops.Pass, _ *ag.Promote, c *clocktesting.FakeClock) { c.Step(2 * time.Second) }, nil, ag.ErrExpired, 0},
		{"the record is in another phase", func(p *agops.Pass, _ *ag.Promote, _ *clocktesting.FakeClock) {
			p.Authority.Operation.Phase = ag.PhaseFencing
		}, nil, ag.ErrGuard, 0},
		{"the record names another target", func(p *agops.Pass, _ *ag.Promote, _ *clocktesting.FakeClock) { p.Authority.Operation.Target = "ag1-0" }, nil, ag.ErrGuard, 0},
		{"the record has another holder", func(p *agops.Pass, _ *ag.Promote, _ *clocktesting.FakeClock) { p.Authority.Holder.Replica = "ag1-0" }, nil, ag.ErrGuard, 0},
		{"the record has another epoch", func(p *agops.Pass, _ *ag.Promote, _ *clocktesting.FakeClock) { p.Authority.Epoch = 8 }, nil, ag.ErrGuard, 0},
		{"another pod has taken the name", func(p *agops.Pass, _ *ag.Promote, _ *clocktesting.FakeClock) {
			p.Snapshot.Replicas[1].Pod.UID = "other"
		}, nil, ag.ErrGuard, 0},
		{"the group has no lease", func(*agops.Pass, *ag.Promote, *clocktesting.FakeClock) {},
			[]mssqltest.Rule{{Contains: "FAILOVER", Answer: mssqltest.Answer{Err: mssqltest.Msg(47116, "no lease")}}}, "none", 1},
		{"not synchronized behind a longer lease", func(*agops.Pass, *ag.Promote, *clocktesting.FakeClock) {},
			[]mssqltest.Rule{{Contains: "FAILOVER", Answer: mssqltest.Answer{Err: &ag.Error{Kind: ag.ErrMsg, Number: 41142, All: []int32{47119, 41142}}}}}, ag.ErrMsg, 1},
		{"it reached the server too late", func(*agops.Pass, *ag.Promote, *clocktesting.FakeClock) {},
			[]mssqltest.Rule{{Contains: "FAILOVER", Answer: mssqltest.Answer{Results: []mssql.Result{mssqltest.Table([]string{tsql.RefusedColumn}, []any{tsql.RefusedExpired})}}}}, ag.ErrExpired, 1},
		{"the role has changed", func(*agops.Pass, *ag.Promote, *clocktesting.FakeClock) {},
			[]mssqltest.Rule{{Contains: "FAILOVER", Answer: mssqltest.Answer{Results: []mssql.Result{mssqltest.Table([]string{tsql.RefusedColumn}, []any{tsql.RefusedGuard})}}}}, ag.ErrGuard, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, x, pass, clk := rig(tt.rules...)
			pass.Authority, pass.Swapped = promoting(), clk.Now()
			clk.Step(500 * time.Millisecond)
			action := promote
			tt.change(&pass, &action, clk)
			e := x.Execute(context.Background(), pass, action)
			if kindOf(e) != tt.kind {
				t.Errorf("got %v", e)
			}
			sent := s.sent("ag1-1")
			if len(sent) != tt.sent {
				t.Fatalf("sent %q", sent)
			}
			if tt.sent == 0 {
				return
			}
			// 0.5 s of q are gone: the server may execute it for another 1.5 s of its own time.
			for _, want := range []string{tsql.Time(serverNow.Add(1500 * time.Millisecond)), "N'SECONDARY')", "sequence_number = 42", "external_cluster", "WRITE_LEASE_VALIDITY = 15"} {
				if !strings.Contains(sent[0], want) {
					t.Errorf("%q is not in\n%s", want, sent[0])
				}
			}
		})
	}
}

func TestRoleChangesCarryExpiryAndGuard(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		action ag.Action
		want   []string
		not    []string
	}{
		{"OFFLINE of a primary", ag.TakeOffline{Replica: "ag1-1", Guard: ag.Guard{Role: ag.RolePrimary}}, []string{"OFFLINE", "(N'PRIMARY')"}, nil},
		{"re-seat", ag.Reseat{Replica: "ag1-1"}, []string{"ROLE = SECONDARY"}, []string{"N'PRIMARY'"}},
		{"rejoin", ag.Rejoin{Replica: "ag1-1"}, []string{"OFFLINE", "DROP", "JOIN", "GRANT"}, []string{"N'PRIMARY'"}},
		{"re-seed", ag.Reseed{Replica: "ag1-1", Databases: []string{"app"}}, []string{"OFFLINE", "DROP AVAILABILITY GROUP", "DROP DATABASE [app]", "JOIN", "GRANT"}, []string{"N'PRIMARY'"}},
		{"promise", ag.Promise{Replicas: []string{"ag1-1"}}, []string{"OFFLINE"}, []string{"N'PRIMARY'"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, x, pass, _ := rig()
			if e := x.Execute(context.Background(), pass, tt.action); e != nil {
				t.Fatal(e)
			}
			sent := s.sent("ag1-1")
			if len(sent) != 1 {
				t.Fatalf("sent %q", sent)
			}
			for _, want := range append(tt.want, tsql.Time(serverNow.Add(2*time.Second))) {
				if !strings.Contains(sent[0], want) {
					t.Errorf("%q is not in\n%s", want, sent[0])
				}
			}
			for _, not := range tt.not {
				if strings.Contains(sent[0], not) {
					t.Errorf("%q is in\n%s", not, sent[0])
				}
			}
			if !s.conns["ag1-1"].Closed() {
				t.Error("the connection was left open")
			}
		})
	}
}

func TestDecisionThatIsTooOldIsNotSent(t *testing.T) {
	t.Parallel()
	s, x, pass, clk := rig()
	action := ag.TakeOffline{Replica: "ag1-0", Guard: ag.Guard{NotAfter: hereNow.Add(time.Second)}}
	clk.Step(2 * time.Second)
	if e := x.Execute(context.Background(), pass, action); kindOf(e) != ag.ErrExpired || len(s.sent("ag1-0")) != 0 {
		t.Errorf("%v, sent %q", e, s.sent("ag1-0"))
	}
}

func TestWhatWasNeverSentIsNotInDoubt(t *testing.T) {
	t.Parallel()
	s, x, pass, _ := rig(mssqltest.Rule{Contains: "never", Answer: mssqltest.Answer{}})
	s.refuse = &ag.Error{Kind: ag.ErrTimeout, Message: "login timed out"}
	if e := x.Execute(context.Background(), pass, ag.Reseat{Replica: "ag1-1"}); kindOf(e) != ag.ErrUnreachable {
		t.Errorf("a login that timed out: %v", e)
	}
	s.refuse = nil
	pass.Snapshot.Replicas[1].Pod.IP = ""
	if e := x.Execute(context.Background(), pass, ag.Reseat{Replica: "ag1-1"}); kindOf(e) != ag.ErrUnreachable {
		t.Errorf("no address: %v", e)
	}
}

func TestSealNeedsItsMinimum(t *testing.T) {
	t.Parallel()
	s, x, pass, _ := rig()
	s.sealed["ag1-0"] = errors.New("refused: another group")
	if e := x.Execute(context.Background(), pass, ag.Seal{Replicas: []string{"ag1-0", "ag1-1"}, Need: 1, Epoch: 8}); e != nil {
		t.Errorf("one of one needed: %v", e)
	}
	e := x.Execute(context.Background(), pass, ag.Seal{Replicas: []string{"ag1-0", "ag1-1"}, Need: 2, Epoch: 8})
	if e == nil || !strings.Contains(e.Message, "ag1-0") {
		t.Errorf("one of two needed: %v", e)
	}
}

func TestEndpointsAreStartedAgainWhateverHappens(t *testing.T) {
	t.Parallel()
	s, x, pass, clk := rig()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan *ag.Error)
	go func() { done <- x.Execute(ctx, pass, ag.RestartEndpoints{Replicas: []string{"ag1-1"}}) }()
	for !clk.HasWaiters() { // it pauses between STOPPED and STARTED
		select {
		case e := <-done:
			t.Fatalf("no pause: %v", e)
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if e := <-done; e != nil {
		t.Fatal(e)
	}
	sent := s.sent("ag1-1")
	if len(sent) != 2 || sent[0] != tsql.StopEndpoint("mirroring") || sent[1] != tsql.StartEndpoint("mirroring") {
		t.Errorf("sent %q", sent)
	}
}

func TestLabelsNameTheRoleAndTheReaders(t *testing.T) {
	t.Parallel()
	s, x, pass, _ := rig()
	for _, a := range []ag.Action{
		ag.SetRoleLabel{Replica: "ag1-0", Role: ag.RoleUnknown},
		ag.SetRoleLabel{Replica: "ag1-1", Role: ag.RolePrimary},
		ag.SetRoleLabel{Replica: "ag1-0", Role: ag.RoleSecondary},
	} {
		if e := x.Execute(context.Background(), pass, a); e != nil {
			t.Fatal(e)
		}
	}
	if got := strings.Join(s.labels, ", "); got != "ag1-0/pod-ag1-0=, ag1-1/pod-ag1-1=PRIMARY, ag1-0/pod-ag1-0=SECONDARY readable" {
		t.Error(got)
	}
}
