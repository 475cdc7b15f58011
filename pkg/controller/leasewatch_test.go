package controller

import (
	"context"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
)

type fakeWitness struct {
	mu        sync.Mutex
	sighted   []string
	looked    []ag.Key
	forgotten []string
}

func (f *fakeWitness) Sighted(a ag.Authority) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sighted = append(f.sighted, a.AGUID+" "+a.Renewals)
}

func (f *fakeWitness) Look(_ context.Context, key ag.Key) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looked = append(f.looked, key)
	return nil
}

func (f *fakeWitness) Forget(uid string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgotten = append(f.forgotten, uid)
}

func (f *fakeWitness) looks() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.looked)
}

func groupLease(t *testing.T, group, uid string, renewed time.Time) *coordinationv1.Lease {
	t.Helper()
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: v1alpha1.LeaseName(group), Labels: map[string]string{v1alpha1.LabelInstance: group}}}
	a := ag.Authority{AGUID: uid, Epoch: 1, Holder: ag.Run{Replica: group + "-0", PodUID: "p", Nonce: "n"}}
	if err := state.Encode(l, a, 15*time.Second); err != nil {
		t.Fatal(err)
	}
	if err := state.Renew(l, a.Holder, renewed); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestOnlyLeasesThatAreNotRenewedAreReadByAControllerThatWaits(t *testing.T) {
	t.Parallel()
	clk := clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	f, elected := &fakeWitness{}, make(chan struct{})
	w := newLeaseWatcher(nil, f, clk, elected)
	w.saw(groupLease(t, "quiet", "u1", clk.Now()))
	w.saw(groupLease(t, "busy", "u2", clk.Now()))
	foreign := groupLease(t, "other", "u3", clk.Now())
	foreign.Name = "other-leader"
	w.saw(foreign)
	if len(f.sighted) != 2 {
		t.Fatalf("sighted %q, want the renewals of two groups", f.sighted)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.lookUntilElected(t.Context())
	}()
	waitFor := func(what string, ok func() bool) {
		t.Helper()
		eventually(t, what, func(context.Context) (bool, string) { return ok(), what })
	}
	for range 4 {
		waitFor("a waiting ticker", clk.HasWaiters)
		w.saw(groupLease(t, "busy", "u2", clk.Now()))
		clk.Step(lookEvery)
	}
	waitFor("three readings", func() bool { return f.looks() >= 3 })
	for _, k := range f.looked {
		if k.Name != "quiet" {
			t.Errorf("%s was read, whose Lease is renewed", k.Name)
		}
	}
	close(elected)
	<-done
	w.gone(groupLease(t, "quiet", "u1", clk.Now()))
	if len(f.forgotten) != 1 || f.forgotten[0] != "u1" || len(w.silent()) > 1 {
		t.Errorf("after its Lease has gone: forgotten %q, silent %v", f.forgotten, w.silent())
	}
}

func TestTheLossOfTheActingControllerIsNoticedBeforeAPrimaryCanBeReplaced(t *testing.T) {
	t.Parallel()
	// client-go waits for the lock's duration and looks again after a jittered period.
	takeover := leaseDuration + time.Duration(1.2*float64(retryPeriod))
	for _, p := range []v1alpha1.TimingProfile{v1alpha1.TimingFast, v1alpha1.TimingBalanced, v1alpha1.TimingTolerant} {
		spec := v1alpha1.TimingSpec{Profile: p}
		e := spec.Effective()
		if takeover >= e.A+e.L {
			t.Errorf("%s: another controller acts after %s, later than A + L = %s", p, takeover, e.A+e.L)
		}
	}
	if renewDeadline >= leaseDuration || retryPeriod*6/5 >= renewDeadline {
		t.Errorf("the lock's numbers do not fit together: %s, %s, %s", leaseDuration, renewDeadline, retryPeriod)
	}
}
