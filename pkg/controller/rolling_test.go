package controller

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// healthyReport is what the engine says of a group of three whose primary is holder.
func healthyReport(holder string) Report {
	f := threeInStep()
	r := *f.Report
	r.Authority.Holder.Replica = holder
	r.Decision.Readiness = nil
	for i := range r.Snapshot.Replicas {
		x := &r.Snapshot.Replicas[i]
		x.Local.Role = ag.RoleSecondary
		x.Remote = &ag.Remote{Connected: true, Databases: []ag.Database{{Name: "orders", State: ag.DatabaseOnline, Sync: ag.SyncSynchronized}}}
		if x.Name == holder {
			x.Local.Role, x.Remote = ag.RolePrimary, nil
			x.Local.Databases = []ag.Database{{Name: "orders", State: ag.DatabaseOnline, Sync: ag.SyncSynchronized}}
			continue
		}
		r.Decision.Readiness = append(r.Decision.Readiness, ag.Readiness{Replica: x.Name, Ready: true})
	}
	r.Next = 100 * time.Millisecond
	return r
}

func TestANewImageIsRolledOutSecondariesFirstAndTheOldPrimaryLast(t *testing.T) {
	t.Parallel()
	a := needAPIServer(t)
	ns := a.namespace(t)
	a.createGroup(t, ns, "shop", goodPassword)
	holder := "shop-1"
	engine := &fakeEngine{answer: func(ag.Key) (Report, error) { return healthyReport(holder), nil }}
	r, _ := groupReconciler(a.cli, a.cli, engine)
	pass(t, r, ns, "shop", 1)
	node := a.node(t, "boot-1", true)
	for i := range 3 {
		a.run(t, ns, fmt.Sprintf("shop-%d", i), node)
	}
	pass(t, r, ns, "shop", 2)
	if s := a.group(t, ns, "shop").Status; s.Phase != v1alpha1.PhaseHealthy {
		t.Fatalf("%s: %s", s.Phase, s.Reason)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"image":"example.com/mssql:new"}}`))
	if err := a.cli.Patch(t.Context(), a.group(t, ns, "shop"), patch); err != nil {
		t.Fatal(err)
	}
	var order []string
	for range 3 {
		pass(t, r, ns, "shop", 3)
		ending := ""
		for _, p := range a.pods(t, ns) {
			if p.DeletionTimestamp != nil {
				if ending != "" {
					t.Fatalf("%s and %s end at the same time", ending, p.Name)
				}
				ending = p.Name
			}
		}
		if ending == "" {
			t.Fatalf("nothing is replaced after %v", order)
		}
		order = append(order, ending)
		if ending == holder {
			holder = "shop-0"
		}
		a.end(t, ns, ending)
		pass(t, r, ns, "shop", 1)
		a.deletePod(t, ns, ending, 0)
		pass(t, r, ns, "shop", 1)
		if p := a.pod(t, ns, ending); p == nil || p.Spec.Containers[0].Image != "example.com/mssql:new" {
			t.Fatalf("%s was not made from the new image", ending)
		}
		a.run(t, ns, ending, node)
	}
	if fmt.Sprint(order) != "[shop-2 shop-0 shop-1]" {
		t.Errorf("order %v", order)
	}
	pass(t, r, ns, "shop", 3)
	for _, p := range a.pods(t, ns) {
		if p.DeletionTimestamp != nil {
			t.Errorf("%s is replaced although it is new", p.Name)
		}
	}
}
