package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

func (a apiServer) instance(t *testing.T, ns, name string) *v1alpha1.SQLServerInstance {
	t.Helper()
	i := &v1alpha1.SQLServerInstance{}
	if err := a.cli.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: name}, i); err != nil {
		t.Fatal(err)
	}
	return i
}

// replaced ends the pod that is told to stop, and runs the one that is made after it.
func (a apiServer) replaced(t *testing.T, r *InstanceReconciler, ns, name, node string) {
	t.Helper()
	old := a.pod(t, ns, name)
	if old == nil || old.DeletionTimestamp == nil {
		t.Fatalf("%s is not replaced", name)
	}
	a.end(t, ns, name)
	pass(t, r, ns, "db", 1)
	a.deletePod(t, ns, name, 0)
	pass(t, r, ns, "db", 1)
	if p := a.pod(t, ns, name); p == nil || p.UID == old.UID {
		t.Fatalf("%s was not made anew", name)
	}
	a.run(t, ns, name, node)
	pass(t, r, ns, "db", 1)
}

func TestAnInstanceIsRestartedOnceForEachOrder(t *testing.T) {
	t.Parallel()
	a := needAPIServer(t)
	ns := a.namespace(t)
	if err := a.cli.Create(t.Context(), object(t, "kind: SQLServerInstance\nmetadata: {name: db}\nspec: {acceptEula: \"Y\"}", ns)); err != nil {
		t.Fatal(err)
	}
	r, _ := instanceReconciler(a.cli, a.cli)
	pass(t, r, ns, "db", 1)
	node := a.node(t, "boot-1", true)
	a.run(t, ns, "db-0", node)
	pass(t, r, ns, "db", 2)
	order := func(q v1alpha1.Request) {
		t.Helper()
		i := a.instance(t, ns, "db")
		before := i.DeepCopy()
		metav1.SetMetaDataAnnotation(&i.ObjectMeta, v1alpha1.AnnotationRequest, q.String())
		if err := a.cli.Patch(t.Context(), i, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
		pass(t, r, ns, "db", 2)
	}
	answer := func() v1alpha1.LastRequestStatus {
		t.Helper()
		if last := a.instance(t, ns, "db").Status.LastRequest; last != nil {
			return *last
		}
		return v1alpha1.LastRequestStatus{}
	}
	order(v1alpha1.Request{ID: "r1", Kind: v1alpha1.RequestRestart, By: "ann"})
	if got := answer(); got.ID != "r1" || got.Result != v1alpha1.RequestRunning {
		t.Errorf("%+v", got)
	}
	if c := findCondition(a.instance(t, ns, "db").Status.Conditions, v1alpha1.ConditionRollingChange); c.Status != metav1.ConditionTrue {
		t.Errorf("%+v", c)
	}
	a.replaced(t, r, ns, "db-0", node)
	if got := answer(); got.ID != "r1" || got.Result != v1alpha1.RequestDone || got.CompletedAt == nil {
		t.Errorf("%+v", got)
	}
	if c := findCondition(a.instance(t, ns, "db").Status.Conditions, v1alpha1.ConditionRollingChange); c.Status != metav1.ConditionFalse {
		t.Errorf("%+v", c)
	}
	pass(t, r, ns, "db", 3)
	if p := a.pod(t, ns, "db-0"); p.DeletionTimestamp != nil {
		t.Error("it is restarted again for the same order")
	}
	order(v1alpha1.Request{ID: "r2", Kind: v1alpha1.RequestFailover})
	if got := answer(); got.ID != "r2" || got.Result != v1alpha1.RequestRefused {
		t.Errorf("%+v", got)
	}
	order(v1alpha1.Request{ID: "r3", Kind: v1alpha1.RequestRestart, Target: "db-1"})
	if got := answer(); got.ID != "r3" || got.Result != v1alpha1.RequestRefused {
		t.Errorf("%+v", got)
	}
}

func TestAVolumeWhoseFileSystemGrowsOnlyAtMountHasItsPodReplacedOnce(t *testing.T) {
	t.Parallel()
	a := needAPIServer(t)
	ns := a.namespace(t)
	class := a.storageClass(t, true)
	text := "kind: SQLServerInstance\nmetadata: {name: db}\nspec: {acceptEula: \"Y\", storage: {storageClassName: " + class + "}}"
	if err := a.cli.Create(t.Context(), object(t, text, ns)); err != nil {
		t.Fatal(err)
	}
	r, _ := instanceReconciler(a.cli, a.cli)
	pass(t, r, ns, "db", 1)
	a.bind(t, ns, "data-db-0")
	node := a.node(t, "boot-1", true)
	a.run(t, ns, "db-0", node)
	pass(t, r, ns, "db", 1)
	i := a.instance(t, ns, "db")
	if err := a.cli.Patch(t.Context(), i, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"storage":{"dataVolumeSize":"20Gi"}}}`))); err != nil {
		t.Fatal(err)
	}
	pass(t, r, ns, "db", 1)
	pending := func(since time.Duration) {
		t.Helper()
		claim := &corev1.PersistentVolumeClaim{}
		if err := a.cli.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "data-db-0"}, claim); err != nil {
			t.Fatal(err)
		}
		before := claim.DeepCopy()
		claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimFileSystemResizePending,
			Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now().Add(-since))}}
		if err := a.cli.Status().Patch(t.Context(), claim, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
		pass(t, r, ns, "db", 2)
	}
	pending(time.Minute)
	if p := a.pod(t, ns, "db-0"); p.DeletionTimestamp != nil {
		t.Fatal("its node had no time to grow the file system")
	}
	if v := a.instance(t, ns, "db").Status.Volume; v == nil || v.Requested != "20Gi" || v.Capacity != "10Gi" || v.Message == "" {
		t.Errorf("%+v", v)
	}
	pending(2 * remountAfter)
	a.replaced(t, r, ns, "db-0", node)
	pass(t, r, ns, "db", 3)
	if p := a.pod(t, ns, "db-0"); p.DeletionTimestamp != nil {
		t.Error("it is replaced again for the same size")
	}
	claim := &corev1.PersistentVolumeClaim{}
	if err := a.cli.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "data-db-0"}, claim); err != nil {
		t.Fatal(err)
	}
	before := claim.DeepCopy()
	claim.Status.Conditions, claim.Status.Capacity = nil, corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("20Gi")}
	if err := a.cli.Status().Patch(t.Context(), claim, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	pass(t, r, ns, "db", 2)
	if c := findCondition(a.instance(t, ns, "db").Status.Conditions, v1alpha1.ConditionStorageResizing); c.Reason != v1alpha1.ReasonResizeComplete {
		t.Errorf("%+v", c)
	}
}
