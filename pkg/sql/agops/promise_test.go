package agops

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// swaps is a store that takes every swap.
type swaps struct {
	Store
	made []ag.Authority
}

func (s *swaps) Swap(_ context.Context, _ ag.Key, _ ag.Authority, swap ag.Swap) (ag.Authority, error) {
	s.made = append(s.made, swap.Next)
	return swap.Next, nil
}

// deaf are replicas that do not answer OFFLINE.
type deaf []string

func (d deaf) Execute(_ context.Context, _ Pass, _ ag.Action) *ag.Error {
	if len(d) == 0 {
		return nil
	}
	return &ag.Error{Kind: ag.ErrTimeout, Message: "no answer", Failed: d}
}

func TestPromisesThatWereGivenAreRecordedAlthoughOthersWereNot(t *testing.T) {
	t.Parallel()
	asked := []string{"ag1-1", "ag1-2"}
	for _, c := range []struct {
		name string
		deaf deaf
		want [][]string
	}{
		{"both answer", nil, [][]string{{"ag1-1", "ag1-2"}}},
		{"one does not", deaf{"ag1-1"}, [][]string{{"ag1-2"}}},
		{"none does, and nothing is recorded", deaf(asked), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &swaps{}
			e := NewEngine(Options{Store: s, Executor: c.deaf, Clock: clocktesting.NewFakeClock(time.Unix(1, 0))})
			r := Report{}
			e.run(context.Background(), &r, []ag.Action{ag.Promise{Replicas: asked}, ag.Swap{Next: ag.Authority{
				Operation: &ag.Operation{Promises: ag.Promises{Epoch: 2, Replicas: asked}}}}})
			var got [][]string
			for _, a := range s.made {
				got = append(got, a.Operation.Promises.Replicas)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if failed := r.Outcomes[0].Err != nil; failed != (len(c.deaf) > 0) {
				t.Errorf("the outcome of the promise: %v", r.Outcomes[0].Err)
			}
		})
	}
}
