package state_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
)

var start = time.Date(2026, 5, 6, 7, 8, 9, 123456789, time.UTC)

func record(epoch int64) ag.Authority {
	return ag.Authority{
		AGUID: "uid-1", Epoch: epoch,
		Holder:    ag.Run{Replica: "ag1-0", PodUID: "p0", Nonce: "n0"},
		Operation: &ag.Operation{ID: "op", Kind: ag.OperationSwitchover, Phase: ag.PhaseDemoting, Target: "ag1-1", StartedAt: start, Deadline: start.Add(time.Minute)},
		Rule:      ag.CommitRule{Number: 3, K: 1, Set: []ag.Member{{Replica: "ag1-0", PVCUID: "v0"}, {Replica: "ag1-1", PVCUID: "v1"}}},
		Unfenced:  []ag.Grant{{Epoch: epoch - 1, Run: ag.Run{Replica: "ag1-1", PodUID: "p1", Nonce: "n1"}, TakenAt: start}},
		Stale:     []string{"ag1-2"}, LastPrimary: "ag1-0",
	}
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{coordinationv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

var owner = state.Owner{Key: ag.Key{Namespace: "ns", Name: "ag1"}, UID: "uid-1", Lease: 15 * time.Second}

func TestRecordSurvivesTheLease(t *testing.T) {
	t.Parallel()
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "ag1-primary", ResourceVersion: "7"}}
	want := record(4)
	if err := state.Encode(l, want, 15*time.Second); err != nil {
		t.Fatal(err)
	}
	if got := *l.Spec.HolderIdentity; got != "ag1-0/p0/n0" {
		t.Errorf("holderIdentity %q", got)
	}
	got, why := state.Decode(l, "uid-1")
	if !got.Exists || why != "" {
		t.Fatalf("no proof: %s", why)
	}
	want.Exists, want.Version = true, "7"
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("record (-written +read)\n%s", d)
	}
}

func TestLeaseThatIsNoProof(t *testing.T) {
	t.Parallel()
	edit := func(change func(*coordinationv1.Lease)) *coordinationv1.Lease {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "ag1-primary", ResourceVersion: "7"}}
		if err := state.Encode(l, record(4), time.Second); err != nil {
			panic(err)
		}
		change(l)
		return l
	}
	other, seven := "ag1-1/p1/n1", int32(7)
	for _, tt := range []struct {
		name string
		l    *coordinationv1.Lease
	}{
		{"missing", nil},
		{"of another resource", edit(func(l *coordinationv1.Lease) {
			a := record(4)
			a.AGUID = "uid-0"
			if err := state.Encode(l, a, time.Second); err != nil {
				panic(err)
			}
		})},
		{"without a record", edit(func(l *coordinationv1.Lease) { l.Annotations = nil })},
		{"with a broken record", edit(func(l *coordinationv1.Lease) { l.Annotations[state.AnnotationAuthority] = "{" })},
		{"with a holder set by hand", edit(func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = &other })},
		{"with an epoch set by hand", edit(func(l *coordinationv1.Lease) { l.Spec.LeaseTransitions = &seven })},
	} {
		a, why := state.Decode(tt.l, "uid-1")
		if a.Exists || why == "" {
			t.Errorf("%s: exists=%v, why=%q", tt.name, a.Exists, why)
		}
		if tt.l != nil && a.Version != "7" {
			t.Errorf("%s: version %q: it could not be replaced", tt.name, a.Version)
		}
	}
}

func TestOnlyTheHolderRenewsAndAGrantStartsWithoutRenewal(t *testing.T) {
	t.Parallel()
	l := &coordinationv1.Lease{}
	a := record(4)
	if err := state.Encode(l, a, time.Second); err != nil {
		t.Fatal(err)
	}
	if err := state.Renew(l, ag.Run{Replica: "ag1-1", PodUID: "p1", Nonce: "n1"}, start); err == nil {
		t.Error("another run renewed the Lease")
	}
	if err := state.Renew(l, a.Holder, start); err != nil {
		t.Fatal(err)
	}
	a.Stale = nil
	if err := state.Encode(l, a, time.Second); err != nil || l.Spec.RenewTime == nil {
		t.Errorf("a swap of the same grant dropped its renewal (%v)", err)
	}
	a.Epoch++
	if err := state.Encode(l, a, time.Second); err != nil || l.Spec.RenewTime != nil {
		t.Errorf("a new grant kept the old renewal (%v)", err)
	}
}

func TestSwap(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	key := types.NamespacedName{Namespace: "ns", Name: "ag1-primary"}
	renew := func(c client.Client) error {
		var l coordinationv1.Lease
		if err := c.Get(ctx, key, &l); err != nil {
			return err
		}
		now := metav1.NewMicroTime(start.Add(time.Duration(len(l.ResourceVersion)) * time.Second))
		if l.Spec.RenewTime != nil {
			now = metav1.NewMicroTime(l.Spec.RenewTime.Add(time.Second))
		}
		l.Spec.RenewTime = &now
		return c.Update(ctx, &l)
	}
	setUp := func(t *testing.T) (client.Client, state.Leases, ag.Authority) {
		c := fake.NewClientBuilder().WithScheme(scheme(t)).Build()
		s := state.Leases{Reader: c, Writer: c}
		a, err := s.Swap(ctx, owner, ag.Authority{}, record(1), false)
		if err != nil {
			t.Fatal(err)
		}
		return c, s, a
	}

	t.Run("creates the Lease once and binds it to the resource", func(t *testing.T) {
		t.Parallel()
		c, s, a := setUp(t)
		if !a.Exists || a.Version == "" || a.Epoch != 1 {
			t.Errorf("created: %+v", a)
		}
		var l coordinationv1.Lease
		if err := c.Get(ctx, key, &l); err != nil || len(l.OwnerReferences) != 1 || string(l.OwnerReferences[0].UID) != "uid-1" {
			t.Errorf("owner references %v, %v", l.OwnerReferences, err)
		}
		if _, err := s.Swap(ctx, owner, ag.Authority{}, record(2), false); !errors.Is(err, state.ErrSwapLost) {
			t.Errorf("a second creation: %v", err)
		}
	})
	t.Run("raises the count, above what was seen elsewhere as well, and is written though nothing else changes", func(t *testing.T) {
		t.Parallel()
		_, s, a := setUp(t)
		b, err := s.Swap(ctx, owner, a, a, false)
		if err != nil || b.Swaps != a.Swaps+1 || b.Version == a.Version {
			t.Fatalf("a swap to the same: %v, count %d after %d, version %s", err, b.Swaps, a.Swaps, b.Version)
		}
		next := b.Clone()
		next.Swaps = 40
		c, err := s.Swap(ctx, owner, b, next, false)
		if err != nil || c.Swaps != 41 {
			t.Errorf("a swap above 40: %v, count %d", err, c.Swaps)
		}
	})
	t.Run("renewals do not count", func(t *testing.T) {
		t.Parallel()
		c, s, a := setUp(t)
		if err := renew(c); err != nil {
			t.Fatal(err)
		}
		if b, _, err := s.Read(ctx, owner); err != nil || b.Swaps != a.Swaps || b.Swaps == 0 {
			t.Errorf("%v, count %d after %d", err, b.Swaps, a.Swaps)
		}
	})
	t.Run("wins against renewals alone", func(t *testing.T) {
		t.Parallel()
		c, s, a := setUp(t)
		if err := renew(c); err != nil {
			t.Fatal(err)
		}
		next := a.Clone()
		next.Epoch = 2
		got, err := s.Swap(ctx, owner, a, next, false)
		if err != nil || got.Epoch != 2 {
			t.Errorf("epoch %d, %v", got.Epoch, err)
		}
	})
	t.Run("loses to a renewal when missing renewals were its reason", func(t *testing.T) {
		t.Parallel()
		c, s, a := setUp(t)
		if err := renew(c); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Swap(ctx, owner, a, a, true); !errors.Is(err, state.ErrSwapLost) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("loses to a change of the operation's phase", func(t *testing.T) {
		t.Parallel()
		_, s, a := setUp(t)
		other := a.Clone()
		other.Operation.Phase = ag.PhasePromoting
		if _, err := s.Swap(ctx, owner, a, other, false); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Swap(ctx, owner, a, a, false); !errors.Is(err, state.ErrSwapLost) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("writes even when nothing changes", func(t *testing.T) {
		t.Parallel()
		_, s, a := setUp(t)
		got, err := s.Swap(ctx, owner, a, a, false)
		if err != nil || got.Version == a.Version {
			t.Errorf("version %q after %q, %v", got.Version, a.Version, err)
		}
	})
	t.Run("does not write when the Lease is gone", func(t *testing.T) {
		t.Parallel()
		c, s, a := setUp(t)
		if err := c.Delete(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ag1-primary"}}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Swap(ctx, owner, a, a, false); !errors.Is(err, state.ErrSwapLost) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("takes over a Lease of a resource that is gone", func(t *testing.T) {
		t.Parallel()
		c, s, _ := setUp(t)
		later := owner
		later.UID = "uid-2"
		a, why, err := s.Read(ctx, later)
		if err != nil || a.Exists || why == "" {
			t.Fatalf("read: %+v, %q, %v", a, why, err)
		}
		got, err := s.Swap(ctx, later, a, record(9), false)
		if err != nil || got.AGUID != "uid-2" {
			t.Fatalf("%+v, %v", got, err)
		}
		var l coordinationv1.Lease
		if err := c.Get(ctx, key, &l); err != nil || string(l.OwnerReferences[0].UID) != "uid-2" {
			t.Errorf("still owned by %v", l.OwnerReferences)
		}
	})
	t.Run("an answer that never came is not a lost swap", func(t *testing.T) {
		t.Parallel()
		inner, s, a := setUp(t)
		s.Writer = interceptor.NewClient(inner.(client.WithWatch), interceptor.Funcs{
			Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
				if err := c.Update(ctx, o, opts...); err != nil {
					return err
				}
				return context.DeadlineExceeded
			}})
		if _, err := s.Swap(ctx, owner, a, a, false); err == nil || errors.Is(err, state.ErrSwapLost) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("renewals at every attempt end in a lost swap, not in a loop", func(t *testing.T) {
		t.Parallel()
		inner, s, a := setUp(t)
		conflicts := 0
		s.Writer = interceptor.NewClient(inner.(client.WithWatch), interceptor.Funcs{
			Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
				conflicts++
				if err := renew(inner); err != nil {
					return err
				}
				return apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "ag1-primary", fmt.Errorf("modified"))
			}})
		if _, err := s.Swap(ctx, owner, a, a, false); !errors.Is(err, state.ErrSwapLost) || conflicts < 2 {
			t.Errorf("%d conflicts, %v", conflicts, err)
		}
	})
}

func TestMemorySurvivesTheStatus(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		at := rapid.Custom(func(t *rapid.T) time.Time {
			n := rapid.Int64Range(0, 4e9).Draw(t, "at")
			if n == 0 {
				return time.Time{}
			}
			return time.Unix(n, 0).UTC()
		})
		some := rapid.StringMatching(`[a-z]{1,5}`)
		m := ag.Memory{
			HeadlessSince: at.Draw(rt, "headless"), BlockedSince: at.Draw(rt, "blocked"), LastRoleChangeAt: at.Draw(rt, "change"),
			HandledRequest: some.Draw(rt, "handled"), Initialized: rapid.Bool().Draw(rt, "initialized"),
		}
		if rapid.Bool().Draw(rt, "failure") {
			m.PrimaryFailure = &ag.Failure{Since: start.Truncate(time.Second), LastStrikeAt: start.Truncate(time.Second), Strikes: 2, Evidence: some.Draw(rt, "e"), Renewals: some.Draw(rt, "r")}
		}
		if rapid.Bool().Draw(rt, "setup") {
			m.Setup = []ag.SetupStep{{Step: some.Draw(rt, "step"), Attempts: 2, LastAttemptAt: start.Truncate(time.Second), LastError: some.Draw(rt, "le")}}
		}
		for range rapid.IntRange(0, 3).Draw(rt, "n") {
			m.Recoveries = append(m.Recoveries, ag.Recovery{Replica: some.Draw(rt, "rr"), Symptom: ag.SymptomResolving, Since: start.Truncate(time.Second), LastAttemptAt: at.Draw(rt, "la"), Rung: ag.RungBoth, Attempts: 3, LastMsg: 41104})
			m.Blocks = append(m.Blocks, ag.Block{Reason: some.Draw(rt, "br"), Rule: "R12", Replica: some.Draw(rt, "b"), Message: some.Draw(rt, "bm")})
			m.Refusals = append(m.Refusals, ag.Refusal{Replica: some.Draw(rt, "ref"), Epoch: 4, Sequence: 1 << 40, At: start.Truncate(time.Second)})
			m.History = append(m.History, ag.RoleChange{Kind: "planned", From: "a", To: "b", Cause: some.Draw(rt, "c"), Epoch: 3, StartedAt: start.Truncate(time.Second), CompletedAt: at.Draw(rt, "ca"), Result: "done",
				Timeline: []ag.Step{{At: start.Truncate(time.Second), What: some.Draw(rt, "w")}}})
		}
		if rapid.Bool().Draw(rt, "promotion") {
			m.Promotion = &ag.Promotion{Replica: "a", Epoch: 3, At: start.Truncate(time.Second), Accepted: true, Kind: ag.ErrMsg, Msg: 41142, Message: some.Draw(rt, "pm")}
			m.LastResult = &ag.Result{ID: some.Draw(rt, "id"), Kind: "failover", Target: "b", Result: "Done", Reason: "r", Message: "m", CompletedAt: at.Draw(rt, "rc")}
		}
		var s v1alpha1.SQLServerAvailabilityGroupStatus
		state.SetMemory(&s, m)
		if d := cmp.Diff(m, state.Memory(&s)); d != "" {
			rt.Fatalf("memory (-written +read)\n%s", d)
		}
	})
}

func TestPolicyRefusesAnUnreadableListOfFencedReplicas(t *testing.T) {
	t.Parallel()
	g := &v1alpha1.SQLServerAvailabilityGroup{}
	g.Annotations = map[string]string{v1alpha1.AnnotationFenced: "ag1-1"}
	if _, err := state.Policy(g); err == nil {
		t.Error("an unreadable annotation was taken for an empty list")
	}
}

func TestPolicyOfASpec(t *testing.T) {
	t.Parallel()
	two := int32(2)
	g := &v1alpha1.SQLServerAvailabilityGroup{}
	g.Namespace, g.Name, g.UID = "ns", "ag-1", "u"
	g.Annotations = map[string]string{v1alpha1.AnnotationFenced: `[{"replica":"ag-1-1","by":"ann","reason":"disk"}]`}
	g.Spec.EndpointPort = 5022
	g.Spec.RequiredSynchronizedSecondariesToCommit = &two
	g.Spec.Replicas = []v1alpha1.AGReplicaSpec{{}, {AvailabilityMode: v1alpha1.AsynchronousCommit, FailoverMode: v1alpha1.FailoverManual, ReadableSecondary: true}}
	p, err := state.Policy(g)
	if err != nil {
		t.Fatal(err)
	}
	if p.Group != "ag_1" || !p.External || p.K != 2 || !p.Required {
		t.Errorf("policy %+v", p)
	}
	want := []ag.ReplicaPolicy{
		{Name: "ag-1-0", Mode: ag.ModeSynchronous, Auto: true, URL: "TCP://ag-1-0.ag-1.ns.svc:5022"},
		{Name: "ag-1-1", Ordinal: 1, Mode: ag.ModeAsynchronous, Readable: true, Fenced: true, FencedWhy: "by ann: disk", URL: "TCP://ag-1-1.ag-1.ns.svc:5022"},
	}
	if d := cmp.Diff(want, p.Replicas); d != "" {
		t.Errorf("replicas (-want +got)\n%s", d)
	}
}

// A decoder that has read other Leases before reads each as one that reads it first.
func TestADecoderKeepsNothingThatTheLeaseDoesNotSay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var d state.Decoder
		for range rapid.IntRange(2, 8).Draw(t, "reads") {
			l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "ag1-primary", ResourceVersion: rapid.SampledFrom([]string{"1", "2"}).Draw(t, "version")}}
			if err := state.Encode(l, record(rapid.Int64Range(3, 4).Draw(t, "epoch")), time.Second); err != nil {
				t.Fatal(err)
			}
			switch rapid.IntRange(0, 7).Draw(t, "edit") {
			case 0:
				l.Annotations = nil
			case 1:
				l.Annotations[state.AnnotationAuthority] += "}"
			case 2:
				*l.Spec.HolderIdentity = "somebody"
			case 3:
				*l.Spec.LeaseTransitions++
			case 4:
				renewed := metav1.NewMicroTime(start)
				l.Spec.RenewTime = &renewed
			}
			uid := rapid.SampledFrom([]string{"uid-1", "uid-2", ""}).Draw(t, "uid")
			want, wantWhy := state.Decode(l, uid)
			got, why := d.Decode(l, uid)
			if diff := cmp.Diff(want, got); diff != "" || why != wantWhy {
				t.Fatalf("%q, want %q (-first +again)\n%s", why, wantWhy, diff)
			}
			// What a caller does to its answer is of no account for the next.
			if got.Exists {
				got.Operation.Phase, got.Rule.Set[0].Replica, got.Stale[0], got.Unfenced[0].Epoch = ag.PhasePromoting, "x", "x", 99
			}
		}
	})
}

func TestRecordsOfGroupsAreApart(t *testing.T) {
	t.Parallel()
	leaseOf := func(name string, epoch int64) *coordinationv1.Lease {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name + "-primary"}}
		if err := state.Encode(l, record(epoch), time.Second); err != nil {
			t.Fatal(err)
		}
		return l
	}
	c := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(leaseOf("ag1", 4), leaseOf("ag2", 7)).Build()
	s := state.Leases{Reader: c, Writer: c, Records: &state.Records{}}
	for _, want := range []struct {
		name  string
		epoch int64
	}{{"ag1", 4}, {"ag2", 7}, {"ag1", 4}} {
		a, why, err := s.Read(context.Background(), state.Owner{Key: ag.Key{Namespace: "ns", Name: want.name}, UID: "uid-1"})
		if err != nil || why != "" || a.Epoch != want.epoch {
			t.Errorf("%s: epoch %d, %q, %v, want %d", want.name, a.Epoch, why, err, want.epoch)
		}
	}
	if a, _, err := s.Read(context.Background(), owner); err != nil || a.Epoch != 4 {
		t.Fatal(a.Epoch, err)
	}
	now, _, err := s.Read(context.Background(), owner)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Swap(context.Background(), owner, now, record(5), false); err != nil {
		t.Fatal(err)
	}
	if a, _, err := s.Read(context.Background(), owner); err != nil || a.Epoch != 5 {
		t.Errorf("after a swap the epoch is %d (%v), want 5", a.Epoch, err)
	}
}

func FuzzLeaseThatSomebodyEdited(f *testing.F) {
	good := &coordinationv1.Lease{}
	if err := state.Encode(good, record(4), time.Second); err != nil {
		f.Fatal(err)
	}
	f.Add(good.Annotations[state.AnnotationAuthority], *good.Spec.HolderIdentity, int32(4))
	f.Add("{}", "", int32(0))
	f.Add(`{"agUID":"uid-1","epoch":-1}`, "", int32(0))
	f.Add(`{"agUID":"uid-1","epoch":99999999999}`, "", int32(2147483647))
	f.Fuzz(func(t *testing.T, text, holder string, epoch int32) {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}}
		l.Annotations = map[string]string{state.AnnotationAuthority: text}
		l.Spec.HolderIdentity, l.Spec.LeaseTransitions = &holder, &epoch
		a, why := state.Decode(l, "uid-1")
		if a.Exists != (why == "") || a.Version != "7" {
			t.Fatalf("exists %v, why %q, version %q", a.Exists, why, a.Version)
		}
		if !a.Exists {
			return
		}
		again := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "7"}}
		if err := state.Encode(again, a, time.Second); err != nil {
			t.Fatal(err)
		}
		b, why := state.Decode(again, "uid-1")
		if why != "" || !state.SameButRenewed(a, b) {
			t.Fatalf("%q: written as %+v, read as %+v", why, a, b)
		}
	})
}
