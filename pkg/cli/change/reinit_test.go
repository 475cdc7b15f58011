package change_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
)

func claim(uid types.UID) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "data-sales-2", UID: uid, Labels: map[string]string{
			api.LabelInstance: "sales", api.LabelReplica: "sales-2",
		}},
	}
}

func podOnNode(uid types.UID) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "sales-2", UID: uid},
		Spec:       corev1.PodSpec{NodeName: "node-c"},
	}
}

// remakes answers as an operator does once claim and pod are gone.
func remakes(t *testing.T, a *clitest.API) (done <-chan struct{}) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if a.Await(20*time.Second, func(r clitest.Request) bool { return r.Verb == "delete" && r.Resource == "pods" }) {
			a.Add(t, claim("new"))
		}
	}()
	return ended
}

func TestAReplicaIsFilledAnewItsVolumeBeforeItsPod(t *testing.T) {
	t.Parallel()
	begun := `[{"replica":"sales-2","by":"ann","reason":"reinit of volume old: disk"}]`
	for name, c := range map[string]struct {
		group []func(*api.SQLServerAvailabilityGroup)
		args  string
	}{
		"from the beginning": {nil, "reinit sales sales-2 --yes --confirm=sales-2 --reason disk"},
		"where another call was interrupted": {[]func(*api.SQLServerAvailabilityGroup){func(g *api.SQLServerAvailabilityGroup) {
			g.Annotations = map[string]string{api.AnnotationFenced: begun}
			obey(g)
		}}, "reinit sales sales-2 --yes --confirm=sales-2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := clitest.Start(t)
			a.Add(t, sales(c.group...), claim("old"), podOnNode("p"))
			operator(t, a)
			done := remakes(t, a)
			got := quiet(t, a, strings.Fields(c.args)...)
			<-done
			if got.code != exit.OK || !strings.Contains(got.errOut, "filled          sales-2 is synchronized") {
				t.Fatal(got)
			}
			var order []string
			for _, w := range a.Writes() {
				if w.Verb == "delete" {
					order = append(order, w.Resource+"/"+w.Name)
				}
			}
			if want := []string{"persistentvolumeclaims/data-sales-2", "pods/sales-2"}; !slices.Equal(order, want) {
				t.Errorf("deleted %v, want %v", order, want)
			}
			if text := annotations(a)[api.AnnotationFenced]; text != "" {
				t.Errorf("the fence stands: %s", text)
			}
			if u := a.Get("persistentvolumeclaims", "prod", "data-sales-2"); u == nil || u.GetUID() != "new" {
				t.Errorf("the new claim was touched: %v", u)
			}
		})
	}
}

func TestACopyIsNotGivenUpWhereItMayBeNeeded(t *testing.T) {
	t.Parallel()
	set := func(change func(*api.SQLServerAvailabilityGroup)) []func(*api.SQLServerAvailabilityGroup) {
		return []func(*api.SQLServerAvailabilityGroup){change}
	}
	for name, c := range map[string]struct {
		group []func(*api.SQLServerAvailabilityGroup)
		args  string
		code  exit.Code
		says  string
	}{
		"not asked":         {nil, "reinit sales sales-2 --yes", exit.NotConfirmed, "--yes --confirm=sales-2"},
		"another name":      {nil, "reinit sales sales-2 --yes --confirm=sales", exit.NotConfirmed, "it must be"},
		"the primary":       {nil, "reinit sales sales-0 --yes --confirm=sales-0", exit.Refused, "the others are filled from it"},
		"nobody is primary": {set(func(g *api.SQLServerAvailabilityGroup) { g.Status.PrimaryReplica = "" }), "reinit sales sales-2 --yes --confirm=sales-2", exit.Refused, "no copy is given up"},
		"a paused group":    {set(paused), "reinit sales sales-2 --yes --confirm=sales-2", exit.Refused, "maintenance off sales"},
		"fenced by a person": {set(func(g *api.SQLServerAvailabilityGroup) {
			g.Annotations = map[string]string{api.AnnotationFenced: `[{"replica":"sales-2","reason":"disk"}]`}
		}), "reinit sales sales-2 --yes --confirm=sales-2", exit.Refused, "fence off sales sales-2"},
		"it was primary once": {set(func(g *api.SQLServerAvailabilityGroup) { g.Status.Authority.Stale = []string{"sales-2"} }), "reinit sales sales-2 --yes --confirm=sales-2", exit.NotConfirmed, "--confirm=sales"},
		"the last candidate":  {set(replica(1, refused("R12: behind"))), "reinit sales sales-2 --yes --confirm=sales-2", exit.NotConfirmed, "nobody could take over"},
		"begun, and asked again": {set(func(g *api.SQLServerAvailabilityGroup) {
			g.Annotations = map[string]string{api.AnnotationFenced: `[{"replica":"sales-2","reason":"reinit of volume old"}]`}
			obey(g)
		}), "reinit sales sales-2 --yes", exit.NotConfirmed, "--yes --confirm=sales-2"},
		"begun, and the others fell away": {set(func(g *api.SQLServerAvailabilityGroup) {
			g.Annotations = map[string]string{api.AnnotationFenced: `[{"replica":"sales-2","reason":"reinit of volume old"}]`}
			obey(g)
			g.Status.ReplicaStatuses[1].SynchronizationState = "SYNCHRONIZING"
		}), "reinit sales sales-2 --yes --confirm=sales-2", exit.NotConfirmed, "nobody could take over"},
		"no such replica": {nil, "reinit sales sales-9 --yes --confirm=sales-9", exit.NotFound, "no replica sales-9"},
		"a trial":         {nil, "reinit sales sales-2 --dry-run=client", exit.OK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := clitest.Start(t)
			a.Add(t, sales(c.group...), claim("old"), podOnNode("p"))
			got := quiet(t, a, strings.Fields(c.args)...)
			if got.code != c.code || !strings.Contains(strings.Join(strings.Fields(got.errOut), " "), c.says) {
				t.Errorf("want exit %d and %q\n%s", c.code, c.says, got)
			}
			if w := a.Writes(); len(w) > 0 {
				t.Errorf("written: %v", w)
			}
		})
	}
	a := clitest.Start(t)
	a.Add(t, reports())
	if got := quiet(t, a, "reinit", "reports", "reports-0", "--yes", "--confirm=reports-0"); got.code != exit.Refused || !strings.Contains(got.errOut, "no other copy") {
		t.Errorf("an instance: %s", got)
	}
}

func TestNothingIsDeletedWhileNobodyIsPrimary(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	a.Add(t, sales(), claim("old"), podOnNode("p"))
	a.React(func(_ string, u *unstructured.Unstructured) { // the primary is lost in the moment of the fence
		if u.GetAnnotations()[api.AnnotationFenced] == "" {
			return
		}
		var g api.SQLServerAvailabilityGroup
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &g); err != nil {
			t.Error(err)
			return
		}
		obey(&g)
		g.Status.PrimaryReplica = ""
		m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&g)
		if err != nil {
			t.Error(err)
			return
		}
		u.Object = m
	})
	got := quiet(t, a, "reinit", "sales", "sales-2", "--yes", "--confirm=sales-2", "--timeout=1200ms")
	if got.code != exit.Refused || !strings.Contains(got.errOut, "nobody is primary") || !strings.Contains(got.errOut, "nothing was deleted; sales-2 stays fenced") {
		t.Error(got)
	}
	for _, w := range a.Writes() {
		if w.Verb == "delete" {
			t.Errorf("deleted: %v", w)
		}
	}
}

func TestAFillingThatIsInterruptedSaysThatTheFenceStays(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	a.Add(t, sales(), claim("old"), podOnNode("p"))
	got := quiet(t, a, "reinit", "sales", "sales-2", "--yes", "--confirm=sales-2", "--timeout=600ms") // nobody answers
	if got.code != exit.Timeout || !strings.Contains(got.errOut, "sales-2 stays fenced") || !strings.Contains(annotations(a)[api.AnnotationFenced], "reinit of volume old") {
		t.Errorf("%s\n%v", got, annotations(a))
	}
	for _, w := range a.Writes() {
		if w.Verb == "delete" {
			t.Errorf("deleted before the server was stopped: %v", w)
		}
	}
}
