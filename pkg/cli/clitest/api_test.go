package clitest_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/tunnel"
)

func newClient(t *testing.T, a *clitest.API) client.Client {
	t.Helper()
	s, err := factory.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.NewWithWatch(a.Config(), client.Options{Scheme: s})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAPI_StoresPatchesAndDeletes(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	c := newClient(t, a)
	ctx := t.Context()
	g := &api.SQLServerAvailabilityGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "demo", Labels: map[string]string{"a": "1"}}}
	if err := c.Create(ctx, g); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(ctx, g.DeepCopy()); !apierrors.IsAlreadyExists(err) && err == nil {
		t.Errorf("a second create: %v", err)
	}
	stale := g.DeepCopy()
	base := client.MergeFrom(g.DeepCopy())
	g.Annotations = map[string]string{"k": "v"}
	if err := c.Patch(ctx, g, base); err != nil {
		t.Fatal(err)
	}
	if err := c.Update(ctx, stale); !apierrors.IsConflict(err) {
		t.Errorf("an update over a stale version: %v", err)
	}
	g.Status.PrimaryReplica = "demo-0"
	if err := c.Status().Update(ctx, g); err != nil {
		t.Fatal(err)
	}
	var back api.SQLServerAvailabilityGroup
	if err := c.Get(ctx, client.ObjectKeyFromObject(g), &back); err != nil {
		t.Fatal(err)
	}
	if back.Annotations["k"] != "v" || back.Status.PrimaryReplica != "demo-0" {
		t.Errorf("read back %+v", back)
	}
	var list api.SQLServerAvailabilityGroupList
	if err := c.List(ctx, &list, client.MatchingLabels{"a": "2"}); err != nil || len(list.Items) != 0 {
		t.Errorf("a selector that matches nothing gave %d, %v", len(list.Items), err)
	}
	if err := c.Delete(ctx, g); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(g), &back); !apierrors.IsNotFound(err) {
		t.Errorf("after delete: %v", err)
	}
	var verbs []string
	for _, r := range a.Writes() {
		verbs = append(verbs, r.Verb)
	}
	if diff := cmp.Diff([]string{"create", "create", "patch", "update", "update", "delete"}, verbs); diff != "" {
		t.Error(diff)
	}
}

func TestAPI_ApplyCreatesThenChangesNothing(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	c := newClient(t, a)
	u := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": "a", "namespace": "b"}, "data": map[string]any{"k": "v"}}}
	}
	first, second := u(), u()
	for _, o := range []*unstructured.Unstructured{first, second} {
		if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("t")); err != nil {
			t.Fatal(err)
		}
	}
	if first.GetResourceVersion() == "" || first.GetResourceVersion() != second.GetResourceVersion() {
		t.Errorf("versions %q and %q", first.GetResourceVersion(), second.GetResourceVersion())
	}
	dry := u()
	dry.SetName("dry")
	if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(dry), client.FieldOwner("t"), client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if a.Get("configmaps", "b", "dry") != nil {
		t.Error("a dry run stored an object")
	}
	if n := len(a.Writes()); n != 2 {
		t.Errorf("%d writes counted, a dry run is none", n)
	}
}

func TestAPI_RefusesOnOrder(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	a.Forbid("list", "pods")
	a.Remove("sqlserverinstances")
	c := newClient(t, a)
	if err := c.List(t.Context(), &corev1.PodList{}); !apierrors.IsForbidden(err) {
		t.Errorf("a forbidden list: %v", err)
	}
	if err := c.List(t.Context(), &api.SQLServerInstanceList{}); err == nil {
		t.Error("an absent kind was listed")
	}
}

func TestAPI_WatchesTellOfChanges(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	c, ok := newClient(t, a).(client.WithWatch)
	if !ok {
		t.Fatal("no watching client")
	}
	w, err := c.Watch(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("n"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	a.Add(t, &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x"}})
	select {
	case e := <-w.ResultChan():
		if e.Type != "ADDED" {
			t.Errorf("event %s", e.Type)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("no event")
	}
}

func TestAPI_ForwardsAPort(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.Copy(conn, conn)
	}()
	a := clitest.Start(t)
	a.Forward("p-0", l.Addr().String())
	tun, err := tunnel.Open(t.Context(), a.Config(), "n", "p-0", 1433)
	if err != nil {
		t.Fatal(err)
	}
	defer tun.Close()
	conn, err := net.Dial("tcp", tun.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	b := make([]byte, 5)
	if _, err := io.ReadFull(conn, b); err != nil || string(b) != "hello" {
		t.Errorf("echo %q, %v", b, err)
	}
	if len(a.Writes()) != 0 {
		t.Errorf("a port-forward counts as a write: %v", a.Writes())
	}
}
