package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

const goodPassword = "Very-Str0ng-Passw0rd"

// versions lists everything in a namespace with its version: what a write changes.
func (a apiServer) versions(t *testing.T, ns string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, list := range []client.ObjectList{
		&corev1.PodList{}, &corev1.PersistentVolumeClaimList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}, &corev1.ServiceList{},
		&corev1.ServiceAccountList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &policyv1.PodDisruptionBudgetList{},
		&v1alpha1.SQLServerAvailabilityGroupList{}, &v1alpha1.SQLServerInstanceList{},
	} {
		if err := a.cli.List(t.Context(), list, client.InNamespace(ns)); err != nil {
			t.Fatal(err)
		}
		items, err := extract(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range items {
			if strings.HasPrefix(o.GetName(), "kube-root-ca") || o.GetName() == "default" {
				continue
			}
			out[fmt.Sprintf("%T %s", o, o.GetName())] = o.GetResourceVersion()
		}
	}
	return out
}

func names(versions map[string]string) []string {
	var out []string
	for n := range versions {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

func pass(t *testing.T, r interface {
	Reconcile(context.Context, reconcileRequest) (reconcileResult, error)
}, ns, name string, times int) {
	t.Helper()
	for range times {
		if _, err := r.Reconcile(t.Context(), requestFor(ns, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAGroupGetsItsObjectsAndAtRestNothingIsWritten(t *testing.T) {
	t.Parallel()
	a := needAPIServer(t)
	ns := a.namespace(t)
	a.createGroup(t, ns, "shop", goodPassword)
	r, rec := groupReconciler(a.cli, a.cli, &fakeEngine{})
	pass(t, r, ns, "shop", 1)
	node := a.node(t, "boot-1", true)
	for i := range 3 {
		a.run(t, ns, fmt.Sprintf("shop-%d", i), node)
	}
	pass(t, r, ns, "shop", 3)
	want := []string{
		"*v1.ConfigMap shop-config",
		"*v1.PersistentVolumeClaim data-shop-0", "*v1.PersistentVolumeClaim data-shop-1", "*v1.PersistentVolumeClaim data-shop-2",
		"*v1.Pod shop-0", "*v1.Pod shop-1", "*v1.Pod shop-2", "*v1.PodDisruptionBudget shop",
		"*v1.Role shop-mssql", "*v1.RoleBinding shop-mssql",
		"*v1.Secret sa", "*v1.Secret shop-0-tls", "*v1.Secret shop-1-tls", "*v1.Secret shop-2-tls", "*v1.Secret shop-ca", "*v1.Secret shop-operator",
		"*v1.Service shop", "*v1.Service shop-ro", "*v1.Service shop-rw", "*v1.ServiceAccount shop-mssql",
		"*v1alpha1.SQLServerAvailabilityGroup shop",
	}
	before := a.versions(t, ns)
	if diff := cmp.Diff(want, names(before)); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
	told := len(rec.all())
	pass(t, r, ns, "shop", 5)
	if diff := cmp.Diff(before, a.versions(t, ns)); diff != "" {
		t.Errorf("written at rest (-before +after):\n%s", diff)
	}
	if now := rec.all(); len(now) != told {
		t.Errorf("told at rest: %q", now[told:])
	}
	g := a.group(t, ns, "shop")
	if g.Status.ReadyReplicas != "3/3" || g.Status.Phase != v1alpha1.PhaseBootstrapping || g.Status.ObservedGeneration != g.Generation {
		t.Errorf("%+v", g.Status)
	}
}

func TestWhatSomebodyElseChangesIsSetBackAndTheirOwnFieldsStay(t *testing.T) {
	t.Parallel()
	a := needAPIServer(t)
	ns := a.namespace(t)
	a.createGroup(t, ns, "shop", goodPassword)
	r, _ := groupReconciler(a.cli, a.cli, &fakeEngine{})
	pass(t, r, ns, "shop", 1)
	svc := &corev1.Service{}
	key := types.NamespacedName{Namespace: ns, Name: "shop-rw"}
	if err := a.cli.Get(t.Context(), key, svc); err != nil {
		t.Fatal(err)
	}
	svc.Spec.Selector[v1alpha1.LabelRole] = v1alpha1.RoleSecondary
	svc.Annotations["cloud.example.com/id"] = "42"
	if err := a.cli.Update(t.Context(), svc); err != nil {
		t.Fatal(err)
	}
	pass(t, r, ns, "shop", 1)
	if err := a.cli.Get(t.Context(), key, svc); err != nil {
		t.Fatal(err)
	}
	if svc.Spec.Selector[v1alpha1.LabelRole] != v1alpha1.RolePrimary || svc.Annotations["cloud.example.com/id"] != "42" {
		t.Errorf("%v %v", svc.Spec.Selector, svc.Annotations)
	}
}

func TestAnObjectOfSomebodyElseIsNotTakenOver(t *testing.T) {
	t.Parallel()
	a := needAPIServer(t)
	ns := a.namespace(t)
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "shop-rw"},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}, Selector: map[string]string{"app": "theirs"}}}
	if err := a.cli.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	a.createGroup(t, ns, "shop", goodPassword)
	r, _ := groupReconciler(a.cli, a.cli, &fakeEngine{})
	pass(t, r, ns, "shop", 1)
	c := findCondition(a.group(t, ns, "shop").Status.Conditions, v1alpha1.ConditionConfigured)
	if c.Reason != v1alpha1.ReasonNameTaken || !strings.Contains(c.Message, "shop-rw") {
		t.Errorf("%+v", c)
	}
	svc := &corev1.Service{}
	if err := a.cli.Get(t.Context(), client.ObjectKeyFromObject(foreign), svc); err != nil || svc.Spec.Selector["app"] != "theirs" {
		t.Errorf("%v %v", svc.Spec.Selector, err)
	}
}

func TestBadInputStartsNoPodAndSaysWhyOnce(t *testing.T) {
	t.Parallel()
	a := needAPIServer(t)
	for name, c := range map[string]struct {
		secret map[string]string
		reason string
	}{
		"no Secret":     {nil, v1alpha1.ReasonSecretMissing},
		"another key":   {map[string]string{"password": goodPassword}, v1alpha1.ReasonSecretKeyMissing},
		"weak password": {map[string]string{"SA_PASSWORD": "simple"}, v1alpha1.ReasonWeakPassword},
		"empty":         {map[string]string{"SA_PASSWORD": ""}, v1alpha1.ReasonWeakPassword},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := a.namespace(t)
			a.createGroup(t, ns, "shop", "")
			if c.secret != nil {
				a.createSecret(t, ns, "sa", c.secret)
			}
			r, rec := groupReconciler(a.cli, a.cli, &fakeEngine{})
			pass(t, r, ns, "shop", 3)
			g := a.group(t, ns, "shop")
			cond := findCondition(g.Status.Conditions, v1alpha1.ConditionConfigured)
			if cond.Status != metav1.ConditionFalse || cond.Reason != c.reason || g.Status.Phase != v1alpha1.PhasePending {
				t.Errorf("%+v, phase %s", cond, g.Status.Phase)
			}
			if pods := a.pods(t, ns); len(pods) != 0 {
				t.Errorf("%d pods", len(pods))
			}
			warnings := slices.DeleteFunc(rec.all(), func(l string) bool { return !strings.HasPrefix(l, "Warning "+c.reason) })
			if len(warnings) != 1 {
				t.Errorf("told %d times: %q", len(warnings), rec.all())
			}
			// The way back.
			if c.secret == nil {
				a.createSecret(t, ns, "sa", map[string]string{"SA_PASSWORD": goodPassword})
			} else {
				s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sa"}}
				patch := client.RawPatch(types.MergePatchType, []byte(`{"stringData":{"SA_PASSWORD":"`+goodPassword+`"}}`))
				if err := a.cli.Patch(t.Context(), s, patch); err != nil {
					t.Fatal(err)
				}
			}
			pass(t, r, ns, "shop", 1)
			if pods := a.pods(t, ns); len(pods) != 3 {
				t.Errorf("%d pods after the remedy", len(pods))
			}
			if cond := findCondition(a.group(t, ns, "shop").Status.Conditions, v1alpha1.ConditionConfigured); cond.Status != metav1.ConditionTrue {
				t.Errorf("%+v", cond)
			}
		})
	}
}

func TestALostSecretDoesNotTouchRunningPods(t *testing.T) {
	t.Parallel()
	a := needAPIServer(t)
	ns := a.namespace(t)
	a.createGroup(t, ns, "shop", goodPassword)
	engine := &fakeEngine{}
	r, _ := groupReconciler(a.cli, a.cli, engine)
	pass(t, r, ns, "shop", 1)
	before := a.pods(t, ns)
	if err := a.cli.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "sa"}}); err != nil {
		t.Fatal(err)
	}
	steps := engine.count(ns, "shop")
	pass(t, r, ns, "shop", 2)
	after := a.pods(t, ns)
	if len(after) != 3 || after[0].UID != before[0].UID {
		t.Errorf("%d pods", len(after))
	}
	if engine.count(ns, "shop") != steps+2 {
		t.Error("the servers were not looked at while the Secret was missing")
	}
}

func TestAVanishedPodIsMadeAnewOnlyWhenItsEndIsProven(t *testing.T) {
	t.Parallel()
	a := needAPIServer(t)
	start := func(t *testing.T) (ns, node string, r *GroupReconciler, old types.UID) {
		t.Helper()
		ns = a.namespace(t)
		a.createGroup(t, ns, "shop", goodPassword)
		r, _ = groupReconciler(a.cli, a.cli, &fakeEngine{})
		pass(t, r, ns, "shop", 1)
		node = a.node(t, "boot-1", true)
		for i := range 3 {
			a.run(t, ns, fmt.Sprintf("shop-%d", i), node)
		}
		pass(t, r, ns, "shop", 2)
		return ns, node, r, a.pod(t, ns, "shop-1").UID
	}
	t.Run("removed by its kubelet", func(t *testing.T) {
		t.Parallel()
		ns, _, r, old := start(t)
		a.deletePod(t, ns, "shop-1", 30)
		pass(t, r, ns, "shop", 1)
		if p := a.pod(t, ns, "shop-1"); p == nil || p.UID != old {
			t.Fatal("a pod that is still ending was replaced")
		}
		a.end(t, ns, "shop-1")
		pass(t, r, ns, "shop", 1)
		a.deletePod(t, ns, "shop-1", 0)
		pass(t, r, ns, "shop", 1)
		p := a.pod(t, ns, "shop-1")
		if p == nil || p.UID == old {
			t.Fatal("not made anew")
		}
		if pinnedTo(p) != "" {
			t.Errorf("pinned to %s", pinnedTo(p))
		}
	})
	t.Run("deleted by force, its node alive", func(t *testing.T) {
		t.Parallel()
		ns, node, r, old := start(t)
		a.deletePod(t, ns, "shop-1", 0)
		pass(t, r, ns, "shop", 1)
		p := a.pod(t, ns, "shop-1")
		if p == nil || p.UID == old || pinnedTo(p) != node {
			t.Errorf("%v", p)
		}
	})
	t.Run("deleted by force, its node silent, later started anew", func(t *testing.T) {
		t.Parallel()
		ns, node, r, old := start(t)
		a.nodeStatus(t, node, "boot-1", false)
		a.deletePod(t, ns, "shop-1", 0)
		pass(t, r, ns, "shop", 3)
		if p := a.pod(t, ns, "shop-1"); p != nil {
			t.Fatal("a second pod on a volume that may be in use")
		}
		c := findCondition(a.group(t, ns, "shop").Status.Conditions, v1alpha1.ConditionConfigured)
		if c.Reason != v1alpha1.ReasonEndNotProven || !strings.Contains(c.Message, node) {
			t.Errorf("%+v", c)
		}
		a.nodeStatus(t, node, "boot-2", false)
		pass(t, r, ns, "shop", 1)
		if p := a.pod(t, ns, "shop-1"); p == nil || p.UID == old || pinnedTo(p) != "" {
			t.Errorf("%v", p)
		}
	})
	t.Run("deleted by force, a person vouches for it", func(t *testing.T) {
		t.Parallel()
		ns, node, r, _ := start(t)
		a.nodeStatus(t, node, "boot-1", false)
		a.deletePod(t, ns, "shop-1", 0)
		pass(t, r, ns, "shop", 1)
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "data-shop-1"}}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+v1alpha1.AnnotationLastPod+`":null}}}`))
		if err := a.cli.Patch(t.Context(), claim, patch); err != nil {
			t.Fatal(err)
		}
		pass(t, r, ns, "shop", 1)
		if a.pod(t, ns, "shop-1") == nil {
			t.Error("not made anew")
		}
	})
	t.Run("a pod whose claim is being deleted waits", func(t *testing.T) {
		t.Parallel()
		ns, _, r, _ := start(t)
		claim := &corev1.PersistentVolumeClaim{}
		key := types.NamespacedName{Namespace: ns, Name: "data-shop-1"}
		if err := a.cli.Get(t.Context(), key, claim); err != nil {
			t.Fatal(err)
		}
		claim.Finalizers = []string{"example.com/slow"}
		if err := errors.Join(a.cli.Update(t.Context(), claim), a.cli.Delete(t.Context(), claim)); err != nil {
			t.Fatal(err)
		}
		a.deletePod(t, ns, "shop-1", 0)
		pass(t, r, ns, "shop", 2)
		if a.pod(t, ns, "shop-1") != nil {
			t.Error("a pod was made on a claim that goes away")
		}
		if err := a.cli.Get(t.Context(), key, claim); err != nil {
			t.Fatal(err)
		}
		claim.Finalizers = nil
		if err := a.cli.Update(t.Context(), claim); err != nil {
			t.Fatal(err)
		}
		pass(t, r, ns, "shop", 1)
		if a.pod(t, ns, "shop-1") == nil {
			t.Error("no pod on the new claim")
		}
	})
}

func (a apiServer) pod(t *testing.T, ns, name string) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{}
	err := a.cli.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: name}, p)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestAPassThatIsCutShortAnywhereIsMadeUpByTheNext ends the process before each of
// its writes in turn, and after it, and lets a new one go on.
func TestAPassThatIsCutShortAnywhereIsMadeUpByTheNext(t *testing.T) {
	t.Parallel()
	a := needAPIServer(t)
	errDead := errors.New("the process has ended")
	// mortal lets n writes through and then fails everything.
	mortal := func(n int, writes *int) client.Client {
		die := func() error {
			if *writes >= n {
				return errDead
			}
			*writes++
			return nil
		}
		return interceptor.NewClient(mustWatch(t, a), interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if err := die(); err != nil {
					return err
				}
				return c.Create(ctx, o, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				if err := die(); err != nil {
					return err
				}
				return c.Patch(ctx, o, p, opts...)
			},
			Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
				if err := die(); err != nil {
					return err
				}
				return c.Apply(ctx, o, opts...)
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
				if err := die(); err != nil {
					return err
				}
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			},
		})
	}
	var want []string
	ns := a.namespace(t)
	a.createGroup(t, ns, "shop", goodPassword)
	all := 0
	r, _ := groupReconciler(mortal(1000, &all), a.cli, &fakeEngine{})
	pass(t, r, ns, "shop", 1)
	want = names(a.versions(t, ns))
	if all < 20 {
		t.Fatalf("only %d writes in a first pass", all)
	}
	for n := range all {
		ns := a.namespace(t)
		a.createGroup(t, ns, "shop", goodPassword)
		done := 0
		dying, _ := groupReconciler(mortal(n, &done), a.cli, &fakeEngine{})
		if _, err := dying.Reconcile(t.Context(), requestFor(ns, "shop")); err == nil {
			t.Errorf("write %d: the end of the process went unnoticed", n)
		}
		next, _ := groupReconciler(a.cli, a.cli, &fakeEngine{})
		pass(t, next, ns, "shop", 2)
		if diff := cmp.Diff(want, names(a.versions(t, ns))); diff != "" {
			t.Errorf("after an end before write %d (-want +got):\n%s", n, diff)
		}
	}
}

func TestAnInstanceComesUp(t *testing.T) {
	t.Parallel()
	a := needAPIServer(t)
	ns := a.namespace(t)
	if err := a.cli.Create(t.Context(), object(t, "kind: SQLServerInstance\nmetadata: {name: mssql-standalone}\nspec: {acceptEula: \"Y\"}", ns)); err != nil {
		t.Fatal(err)
	}
	r, rec := instanceReconciler(a.cli, a.cli)
	r.Version = func(context.Context, ag.Key, string, ag.Pod) (string, error) { return "16.0.4195.2", nil }
	pass(t, r, ns, "mssql-standalone", 2)
	pod := a.pod(t, ns, "mssql-standalone-0")
	if pod == nil || len(pod.Spec.Hostname) > v1alpha1.MaxHostName {
		t.Fatalf("%v", pod)
	}
	i := &v1alpha1.SQLServerInstance{}
	key := types.NamespacedName{Namespace: ns, Name: "mssql-standalone"}
	if err := a.cli.Get(t.Context(), key, i); err != nil || i.Status.Phase != v1alpha1.PhaseStarting {
		t.Errorf("%s %v", i.Status.Phase, err)
	}
	a.run(t, ns, pod.Name, a.node(t, "boot-1", true))
	running := a.pod(t, ns, pod.Name)
	a.podStatus(t, running, func(s *corev1.PodStatus) { s.PodIP, s.PodIPs = "10.0.0.1", []corev1.PodIP{{IP: "10.0.0.1"}} })
	pass(t, r, ns, "mssql-standalone", 2)
	if err := a.cli.Get(t.Context(), key, i); err != nil {
		t.Fatal(err)
	}
	if i.Status.Phase != v1alpha1.PhaseRunning || i.Status.Version != "16.0.4195.2" || i.Status.Endpoint != "mssql-standalone-client."+ns+".svc:1433" {
		t.Errorf("%+v", i.Status)
	}
	if c := findCondition(i.Status.Conditions, v1alpha1.ConditionAvailable); c.Status != metav1.ConditionTrue {
		t.Errorf("%+v", c)
	}
	before, told := a.versions(t, ns), len(rec.all())
	pass(t, r, ns, "mssql-standalone", 3)
	if diff := cmp.Diff(before, a.versions(t, ns)); diff != "" || len(rec.all()) != told {
		t.Errorf("written at rest:\n%s\n%q", diff, rec.all()[told:])
	}
}

func TestAPausedResourceIsLookedAtAndNotChanged(t *testing.T) {
	t.Parallel()
	a := needAPIServer(t)
	ns := a.namespace(t)
	g := a.createGroup(t, ns, "shop", goodPassword)
	g.Annotations = map[string]string{v1alpha1.AnnotationPaused: "true"}
	if err := a.cli.Update(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	r, _ := groupReconciler(a.cli, a.cli, &fakeEngine{})
	pass(t, r, ns, "shop", 2)
	if n := names(a.versions(t, ns)); len(n) != 2 {
		t.Errorf("made while paused: %q", n)
	}
	if g := a.group(t, ns, "shop"); g.Status.Phase != v1alpha1.PhasePaused {
		t.Errorf("phase %s", g.Status.Phase)
	}
}

func TestVolumesGrowOnlyWhereTheirClassAllowsIt(t *testing.T) {
	t.Parallel()
	a := needAPIServer(t)
	for name, c := range map[string]struct {
		allow  bool
		status metav1.ConditionStatus
		reason string
		size   string
	}{
		"allowed":     {true, metav1.ConditionTrue, v1alpha1.ReasonResizeInProgress, "20Gi"},
		"not allowed": {false, metav1.ConditionFalse, v1alpha1.ReasonExpansionUnsupported, "10Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := a.namespace(t)
			class := a.storageClass(t, c.allow)
			text := "kind: SQLServerInstance\nmetadata: {name: db}\nspec: {acceptEula: \"Y\", storage: {storageClassName: " + class + "}}"
			if err := a.cli.Create(t.Context(), object(t, text, ns)); err != nil {
				t.Fatal(err)
			}
			r, _ := instanceReconciler(a.cli, a.cli)
			pass(t, r, ns, "db", 1)
			a.bind(t, ns, "data-db-0")
			i := &v1alpha1.SQLServerInstance{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "db"}}
			if err := a.cli.Patch(t.Context(), i, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"storage":{"dataVolumeSize":"20Gi"}}}`))); err != nil {
				t.Fatal(err)
			}
			pass(t, r, ns, "db", 1)
			if err := a.cli.Get(t.Context(), client.ObjectKeyFromObject(i), i); err != nil {
				t.Fatal(err)
			}
			cond := findCondition(i.Status.Conditions, v1alpha1.ConditionStorageResizing)
			if cond.Status != c.status || cond.Reason != c.reason {
				t.Errorf("%+v", cond)
			}
			claim := &corev1.PersistentVolumeClaim{}
			if err := a.cli.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "data-db-0"}, claim); err != nil {
				t.Fatal(err)
			}
			if got := claim.Spec.Resources.Requests.Storage().String(); got != c.size {
				t.Errorf("the claim asks for %s", got)
			}
			volume := &corev1.PersistentVolume{}
			if err := a.cli.Get(t.Context(), types.NamespacedName{Name: claim.Spec.VolumeName}, volume); err != nil {
				t.Fatal(err)
			}
			if volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
				t.Errorf("reclaim policy %s", volume.Spec.PersistentVolumeReclaimPolicy)
			}
		})
	}
}
