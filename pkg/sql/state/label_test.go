package state_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
)

// After an outage of the API server a cache may be a minute old: its watch waits before it
// asks again. The labels that clients follow do not.
func TestALabelDoesNotRestOnAnOldCache(t *testing.T) {
	t.Parallel()
	s := scheme(t)
	if err := corev1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ag1-1", UID: "u1"}}
	api := fake.NewClientBuilder().WithScheme(s).WithObjects(pod).Build()
	key := client.ObjectKeyFromObject(pod)
	var old corev1.Pod
	if err := api.Get(t.Context(), key, &old); err != nil {
		t.Fatal(err)
	}
	changed := old.DeepCopy()
	changed.Annotations = map[string]string{"kubelet": "was here"}
	if err := api.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	stale := fake.NewClientBuilder().WithScheme(s).WithObjects(&old).Build()
	for _, c := range []struct {
		name string
		kube state.Kube
		ok   bool
	}{
		{"with a reader past the cache it is set", state.Kube{Client: writesTo{stale, api}, Reader: api}, true},
		{"with the cache alone it is refused", state.Kube{Client: writesTo{stale, api}}, false},
	} {
		err := c.kube.SetRole(t.Context(), ag.Key{Namespace: "ns", Name: "ag1"}, "ag1-1", "u1", ag.RolePrimary, false)
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	var got corev1.Pod
	if err := api.Get(t.Context(), key, &got); err != nil {
		t.Fatal(err)
	}
	if got.Labels[v1alpha1.LabelRole] != v1alpha1.RolePrimary {
		t.Errorf("labels %v", got.Labels)
	}
}

// writesTo reads from one client and writes to another, as a client over a cache does.
type writesTo struct {
	client.Client
	to client.Client
}

func (w writesTo) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	return w.to.Patch(ctx, o, p, opts...)
}
