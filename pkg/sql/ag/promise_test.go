package ag_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

func TestOnlyWhoHasAnsweredIsRecorded(t *testing.T) {
	t.Parallel()
	asked := ag.Promise{Replicas: []string{"ag1-1", "ag1-2"}}
	for _, c := range []struct {
		name string
		err  *ag.Error
		want []string
	}{
		{"all have answered", nil, []string{"ag1-0", "ag1-1", "ag1-2"}},
		{"one has not", &ag.Error{Kind: ag.ErrTimeout, Failed: []string{"ag1-1"}}, []string{"ag1-0", "ag1-2"}},
		{"an error that names nobody is no answer of anybody", &ag.Error{Kind: ag.ErrUnknown}, []string{"ag1-0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			next := ag.Authority{Operation: &ag.Operation{Promises: ag.Promises{Epoch: 7, Replicas: []string{"ag1-0", "ag1-1", "ag1-2"}}}}
			swap := ag.Swap{Next: next}.Promised(asked.Replicas, asked.Answered(c.err))
			if diff := cmp.Diff(c.want, swap.Next.Operation.Promises.Replicas); diff != "" {
				t.Error(diff)
			}
			if len(next.Operation.Promises.Replicas) != 3 {
				t.Error("the decision's own record was changed")
			}
		})
	}
}

func TestAPromiseCountsInTheEpochInWhichItWasGiven(t *testing.T) {
	t.Parallel()
	p := ag.Promises{Epoch: 7, Replicas: []string{"ag1-1"}}
	if !p.Has("ag1-1", 7) || p.Has("ag1-1", 8) || p.Has("ag1-2", 7) {
		t.Error("counted in another epoch, or for another replica")
	}
}
