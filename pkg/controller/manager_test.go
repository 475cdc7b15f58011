package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// startController runs a whole controller, with caches and watches, until the test
// ends or stop is called.
func startController(t *testing.T, cfg *rest.Config, o Options, engine Engine) (stop func()) {
	t.Helper()
	return startControllerThen(t, cfg, o, engine, nil)
}

// startControllerThen closes synced when the caches are filled.
func startControllerThen(t *testing.T, cfg *rest.Config, o Options, engine Engine, synced chan struct{}) (stop func()) {
	t.Helper()
	o.MetricsAddress, o.HealthAddress, o.severalInProcess = "0", "0", true
	o.OperatorImage, o.OperatorPullPolicy = "example.com/operator:1", "IfNotPresent"
	mgr, err := NewManager(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	if err := setup(mgr, o, clock.RealClock{}, m, engine, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	if synced != nil {
		go func() {
			if _, err := mgr.GetCache().GetInformer(ctx, &corev1.Pod{}); err == nil && mgr.GetCache().WaitForCacheSync(ctx) {
				close(synced)
			}
		}()
	}
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("the controller ended with: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// runAll plays scheduler and kubelet for the pods of a group until all are ready.
func (a apiServer) runAll(t *testing.T, ns, node string) {
	t.Helper()
	eventually(t, "three pods", func(context.Context) (bool, string) {
		n := len(a.pods(t, ns))
		return n == 3, fmt.Sprintf("%d pods", n)
	})
	for _, p := range a.pods(t, ns) {
		a.run(t, ns, p.Name, node)
	}
}

func TestTwoControllersAtOnceDoNotDisturbEachOtherAndComeToRest(t *testing.T) {
	t.Parallel()
	a := needAPIServer(t)
	ns := a.namespace(t)
	engine := &fakeEngine{}
	for range 2 {
		startController(t, a.cfg, Options{Namespaces: []string{ns}}, engine)
	}
	a.createGroup(t, ns, "shop", goodPassword)
	a.runAll(t, ns, a.node(t, "boot-1", true))
	eventually(t, "all replicas ready", func(context.Context) (bool, string) {
		s := a.group(t, ns, "shop").Status
		return s.ReadyReplicas == "3/3", s.ReadyReplicas + " " + s.Reason
	})
	// At rest: many passes of both, and not one write.
	passes := func(n int) {
		from := engine.count(ns, "shop")
		eventually(t, "more passes", func(context.Context) (bool, string) {
			now := engine.count(ns, "shop")
			return now >= from+n, fmt.Sprintf("%d passes", now-from)
		})
	}
	passes(10)
	before := a.versions(t, ns)
	passes(20)
	if diff := cmp.Diff(before, a.versions(t, ns)); diff != "" {
		t.Errorf("written at rest (-before +after):\n%s", diff)
	}
}

func TestAControllerSeesByItsWatchesWhatChanges(t *testing.T) {
	t.Parallel()
	a := needAPIServer(t)
	ns := a.namespace(t)
	startController(t, a.cfg, Options{Namespaces: []string{ns}}, &fakeEngine{})
	a.createGroup(t, ns, "shop", goodPassword)
	node := a.node(t, "boot-1", true)
	a.runAll(t, ns, node)
	eventually(t, "the claim remembers where the pod runs", func(ctx context.Context) (bool, string) {
		claim := &corev1.PersistentVolumeClaim{}
		if err := a.cli.Get(ctx, types.NamespacedName{Namespace: ns, Name: "data-shop-2"}, claim); err != nil {
			return false, err.Error()
		}
		l, err := parseLastPod(claim)
		return err == nil && l.Node == node && l.BootID == "boot-1", l.String()
	})
	// A pod that its kubelet removes in order, and one object of each kind that somebody deletes.
	old := a.pod(t, ns, "shop-2").UID
	a.deletePod(t, ns, "shop-2", 30)
	a.end(t, ns, "shop-2")
	a.deletePod(t, ns, "shop-2", 0)
	eventually(t, "a new pod, free to go to any node", func(context.Context) (bool, string) {
		p := a.pod(t, ns, "shop-2")
		return p != nil && p.UID != old && pinnedTo(p) == "", fmt.Sprint(p != nil)
	})
	for _, o := range []client.Object{
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "shop-rw"}}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "shop-config"}},
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "shop-mssql"}}, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "shop-1-tls"}},
	} {
		o.SetNamespace(ns)
		if err := a.cli.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		eventually(t, o.GetName()+" is back", func(ctx context.Context) (bool, string) {
			err := a.cli.Get(ctx, client.ObjectKeyFromObject(o), o)
			return err == nil && o.GetDeletionTimestamp() == nil, fmt.Sprint(err)
		})
	}
}

// userWith makes a user with the roles that an installation gives the controller.
func (a apiServer) userWith(t *testing.T, o manifests.Options) *rest.Config {
	t.Helper()
	env, err := startAPIServer()
	if err != nil {
		t.Fatal(err)
	}
	name := "controller-" + o.Namespace
	user, err := env.AddUser(envtest.User{Name: name, Groups: []string{"system:authenticated"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifests.Render(o)
	if err != nil {
		t.Fatal(err)
	}
	subject := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}}
	for _, u := range objects {
		var obj client.Object
		switch u.GetKind() {
		case "ClusterRole":
			obj = &rbacv1.ClusterRole{}
		case "Role":
			obj = &rbacv1.Role{}
		case "ClusterRoleBinding":
			obj = &rbacv1.ClusterRoleBinding{}
		case "RoleBinding":
			obj = &rbacv1.RoleBinding{}
		default:
			continue
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, obj); err != nil {
			t.Fatal(err)
		}
		// Several installations in one API server: cluster-wide names are made unique.
		suffix := "-" + o.Namespace
		switch b := obj.(type) {
		case *rbacv1.ClusterRole:
			b.Name += suffix
		case *rbacv1.ClusterRoleBinding:
			b.Name, b.RoleRef.Name, b.Subjects = b.Name+suffix, b.RoleRef.Name+suffix, subject
		case *rbacv1.RoleBinding:
			b.Subjects = subject
		}
		if err := a.cli.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	return user.Config()
}

func TestAPodThatEndsWhileTheLeadershipChangesHandsHasEndedAllTheSame(t *testing.T) {
	t.Parallel()
	a := needAPIServer(t)
	ns, system := a.namespace(t), a.namespace(t)
	o := Options{Namespaces: []string{ns}, LeaderElect: true, LeaderNamespace: system}
	stop := startController(t, a.cfg, o, &fakeEngine{})
	a.createGroup(t, ns, "shop", goodPassword)
	node := a.node(t, "boot-1", true)
	a.runAll(t, ns, node)
	eventually(t, "the claim remembers where the pod runs", func(ctx context.Context) (bool, string) {
		claim := &corev1.PersistentVolumeClaim{}
		if err := a.cli.Get(ctx, types.NamespacedName{Namespace: ns, Name: "data-shop-2"}, claim); err != nil {
			return false, err.Error()
		}
		l, err := parseLastPod(claim)
		return err == nil && l.BootID == "boot-1", l.String()
	})
	// The second one waits for the leadership; the first one ends when its caches are filled.
	synced := make(chan struct{})
	startControllerThen(t, a.cfg, o, &fakeEngine{}, synced)
	<-synced
	stop()
	old := a.pod(t, ns, "shop-2").UID
	a.deletePod(t, ns, "shop-2", 30)
	a.end(t, ns, "shop-2")
	a.deletePod(t, ns, "shop-2", 0)
	eventually(t, "a new pod, free to go to any node", func(context.Context) (bool, string) {
		p := a.pod(t, ns, "shop-2")
		return p != nil && p.UID != old && pinnedTo(p) == "", fmt.Sprint(p != nil)
	})
}

func TestPodsAreAdmittedWhereTheNamespaceIsRestricted(t *testing.T) {
	t.Parallel()
	a := needAPIServer(t)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "restricted-", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}
	if err := a.cli.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	a.createGroup(t, ns.Name, "shop", goodPassword)
	r, _ := groupReconciler(a.cli, a.cli, &fakeEngine{})
	pass(t, r, ns.Name, "shop", 1)
	if n := len(a.pods(t, ns.Name)); n != 3 {
		t.Errorf("%d pods: %s", n, a.group(t, ns.Name, "shop").Status.Reason)
	}
}

func TestTheRightsOfAnInstallationAreEnough(t *testing.T) {
	t.Parallel()
	a := needAPIServer(t)
	system, watched, other := a.namespace(t), a.namespace(t), a.namespace(t)
	o := manifests.Default()
	o.Namespace, o.WatchNamespaces = system, []string{watched}
	engine := &fakeEngine{}
	stop := startController(t, a.userWith(t, o), Options{
		Namespaces: []string{watched}, LeaderElect: true, LeaderNamespace: system, Identity: "one",
	}, engine)
	a.createGroup(t, other, "shop", goodPassword)
	a.createGroup(t, watched, "shop", goodPassword)
	if err := a.cli.Create(t.Context(), object(t, "kind: SQLServerInstance\nmetadata: {name: db}\nspec: {acceptEula: \"Y\"}", watched)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "group and instance are there, and nothing is wrong", func(ctx context.Context) (bool, string) {
		g := a.group(t, watched, "shop")
		i := &v1alpha1.SQLServerInstance{}
		if err := a.cli.Get(ctx, types.NamespacedName{Namespace: watched, Name: "db"}, i); err != nil {
			return false, err.Error()
		}
		ok := len(a.pods(t, watched)) == 4 && g.Status.Phase == v1alpha1.PhaseStarting && i.Status.Phase == v1alpha1.PhaseStarting
		return ok, fmt.Sprintf("%s: %s; %s: %s", g.Status.Phase, g.Status.Reason, i.Status.Phase, i.Status.Reason)
	})
	if pods := a.pods(t, other); len(pods) != 0 {
		t.Errorf("%d pods in a namespace that is not watched", len(pods))
	}
	stop()
	lease := &coordinationv1.Lease{}
	if err := a.cli.Get(t.Context(), types.NamespacedName{Namespace: system, Name: leaderLock}, lease); err != nil {
		t.Fatal(err)
	}
	if h := lease.Spec.HolderIdentity; h != nil && *h != "" {
		t.Errorf("the leadership was not given up on exit: %s", *h)
	}
}

func TestAPodMayReadItsOwnGroupRenewItsOwnLeaseAndNothingElse(t *testing.T) {
	t.Parallel()
	a := needAPIServer(t)
	ns := a.namespace(t)
	a.createGroup(t, ns, "shop", goodPassword)
	a.createGroup2(t, ns, "bank")
	r, _ := groupReconciler(a.cli, a.cli, &fakeEngine{})
	pass(t, r, ns, "shop", 1)
	for _, name := range []string{"shop-primary", "bank-primary"} {
		if err := a.cli.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	cfg := rest.CopyConfig(a.cfg)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + ns + ":shop-mssql"}
	pod, err := client.New(cfg, client.Options{Scheme: a.cli.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	lease := func(name string) *coordinationv1.Lease {
		l := &coordinationv1.Lease{}
		if err := a.cli.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: name}, l); err != nil {
			t.Fatal(err)
		}
		now := metav1.NowMicro()
		l.Spec.RenewTime = &now
		return l
	}
	key := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: ns, Name: name} }
	g := a.group(t, ns, "shop")
	for what, c := range map[string]struct {
		err     error
		allowed bool
	}{
		"read its group":          {pod.Get(t.Context(), key("shop"), &v1alpha1.SQLServerAvailabilityGroup{}), true},
		"renew its Lease":         {pod.Update(t.Context(), lease("shop-primary")), true},
		"read another group":      {pod.Get(t.Context(), key("bank"), &v1alpha1.SQLServerAvailabilityGroup{}), false},
		"renew another Lease":     {pod.Update(t.Context(), lease("bank-primary")), false},
		"delete its Lease":        {pod.Delete(t.Context(), lease("shop-primary")), false},
		"change its group":        {pod.Update(t.Context(), g.DeepCopy()), false},
		"change its status":       {pod.Status().Update(t.Context(), g.DeepCopy()), false},
		"read its own Secret":     {pod.Get(t.Context(), key("shop-ca"), &corev1.Secret{}), false},
		"label a pod":             {pod.Patch(t.Context(), a.pod(t, ns, "shop-1"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))), false},
		"list groups":             {pod.List(t.Context(), &v1alpha1.SQLServerAvailabilityGroupList{}, client.InNamespace(ns)), false},
		"make a Lease of its own": {pod.Create(t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "x"}}), false},
	} {
		if c.allowed && c.err != nil || !c.allowed && !apierrors.IsForbidden(c.err) {
			t.Errorf("%s: %v", what, c.err)
		}
	}
}

func (a apiServer) createGroup2(t *testing.T, ns, name string) {
	t.Helper()
	if err := a.cli.Create(t.Context(), object(t, "kind: SQLServerAvailabilityGroup\nmetadata: {name: "+name+"}\nspec: {acceptEula: \"Y\", replicas: [{}]}", ns)); err != nil {
		t.Fatal(err)
	}
}
