package live

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

func TestOnlyTheOwnOperationIsGivenAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		owner string
		given bool
		after string
	}{
		"its own":          {"direct/ann@laptop", true, ""},
		"of a controller":  {"controller/mssql-7", false, "controller/mssql-7"},
		"of nobody":        {"", false, ""},
		"of somebody else": {"direct/bob@laptop", false, "direct/bob@laptop"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			g := &v1alpha1.SQLServerAvailabilityGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ag1", UID: types.UID("u")}}
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(g).Build()
			s := New(Options{Client: api, Reader: api, Clock: clocktesting.NewFakeClock(now), Identity: "direct/ann@laptop"})
			defer s.Close()
			key := ag.Key{Namespace: "ns", Name: "ag1"}
			record := ag.Authority{Epoch: 1, Holder: ag.Run{Replica: "ag1-0", PodUID: "p", Nonce: "n"}, LastPrimary: "ag1-0",
				Operation: &ag.Operation{ID: "o", Kind: ag.OperationSwitchover, Phase: ag.PhaseDemoting, Target: "ag1-1", Owner: c.owner, StartedAt: now, Deadline: now}}
			if _, err := s.Store.Swap(context.Background(), key, ag.Authority{}, ag.Swap{Next: record}); err != nil {
				t.Fatal(err)
			}
			given, err := s.Release(context.Background(), key)
			if err != nil || given != c.given {
				t.Fatalf("%v, %v", given, err)
			}
			loaded, err := s.Store.Load(context.Background(), key)
			if err != nil || loaded.Authority.Operation == nil {
				t.Fatalf("%+v, %v", loaded.Authority, err)
			}
			if op := loaded.Authority.Operation; op.Owner != c.after || op.ID != "o" || op.Phase != ag.PhaseDemoting || loaded.Authority.Epoch != 1 {
				t.Errorf("%+v", op)
			}
		})
	}
}
