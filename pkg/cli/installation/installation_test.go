package installation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

func newClient(t *testing.T, a *clitest.API) client.Client {
	t.Helper()
	scheme, err := factory.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(a.Config(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func render(t *testing.T, o manifests.Options) []*unstructured.Unstructured {
	t.Helper()
	objects, err := manifests.Render(o)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func install(t *testing.T, a *clitest.API, o manifests.Options) {
	t.Helper()
	for _, u := range render(t, o) {
		a.Add(t, u)
	}
}

func TestOwnerOf_KnowsTheToolsByTheirMarks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		labels, annotations map[string]string
		want                string
	}{
		"nobody":            {nil, nil, ""},
		"install itself":    {map[string]string{"app.kubernetes.io/managed-by": "kubectl-mssql"}, nil, ""},
		"Helm":              {map[string]string{"app.kubernetes.io/managed-by": "Helm"}, map[string]string{"meta.helm.sh/release-name": "sql", "meta.helm.sh/release-namespace": "ops"}, "Helm (release ops/sql)"},
		"a HelmRelease":     {map[string]string{"app.kubernetes.io/managed-by": "Helm", "helm.toolkit.fluxcd.io/name": "sql", "helm.toolkit.fluxcd.io/namespace": "flux"}, nil, "Flux (HelmRelease flux/sql)"},
		"a Kustomization":   {map[string]string{"kustomize.toolkit.fluxcd.io/name": "infra", "kustomize.toolkit.fluxcd.io/namespace": "flux"}, nil, "Flux (Kustomization flux/infra)"},
		"Argo CD by label":  {map[string]string{"argocd.argoproj.io/instance": "sql"}, nil, "Argo CD (Application sql)"},
		"Argo CD by ID":     {nil, map[string]string{"argocd.argoproj.io/tracking-id": "sql:apps/Deployment:ns/x"}, "Argo CD (Application sql)"},
		"OLM":               {map[string]string{"olm.owner": "mssql.v1", "olm.owner.kind": "ClusterServiceVersion"}, nil, "OLM (ClusterServiceVersion mssql.v1)"},
		"OLM by its prefix": {map[string]string{"operators.coreos.com/mssql.ops": ""}, nil, "OLM"},
	} {
		got := ""
		if o := OwnerOf(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels, Annotations: tc.annotations}}); o != nil {
			got = o.String()
			if o.Upgrade == "" {
				t.Errorf("%s: no hint how to upgrade", name)
			}
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestFind_TellsVersionNamespacesAndSettings(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	o := manifests.Default()
	o.Image, o.WatchNamespaces = "registry.example.com/kubectl-mssql:v1.4.0", []string{"b", "a"}
	install(t, a, o)
	second := manifests.Default()
	second.Namespace, second.Image, second.WatchNamespaces = "second", "mine/kubectl-mssql:dev", []string{"c"}
	install(t, a, second)
	found, err := Find(t.Context(), newClient(t, a))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 {
		t.Fatalf("found %d operators", len(found))
	}
	i := found[0]
	if i.Version != "1.4.0" || i.Settings == nil || !i.Watches("a") || i.Watches("c") {
		t.Errorf("%+v", i)
	}
	if found[1].Version != found[1].Settings.Version {
		t.Errorf("a tag that is no version: got %q, want the settings' %q", found[1].Version, found[1].Settings.Version)
	}
	for name, tc := range map[string]struct {
		watch []string
		want  bool
	}{"the same namespace": {[]string{"a"}, true}, "all": {nil, true}, "another one": {[]string{"z"}, false}} {
		if got := i.Overlaps(tc.watch) != ""; got != tc.want {
			t.Errorf("%s: overlaps %v", name, got)
		}
	}
}

func TestFind_LooksInTheUsualNamespaceWhenItMayNotList(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	install(t, a, manifests.Default())
	a.Forbid("list", "deployments")
	found, err := Find(t.Context(), newClient(t, a))
	if err != nil || len(found) != 1 {
		t.Errorf("found %d, %v", len(found), err)
	}
	a.Forbid("get", "deployments")
	if _, err := Find(t.Context(), newClient(t, a)); !apierrors.IsForbidden(err) {
		t.Errorf("got %v, want the refusal", err)
	}
}

func TestLeftovers_AreWhatIsNotRenderedAnyMore(t *testing.T) {
	t.Parallel()
	before, after := manifests.Default(), manifests.Default()
	after.WatchNamespaces = []string{"a"}
	for name, tc := range map[string]struct {
		unlabelled bool
	}{
		"with the label of the installation":              {},
		"of a version that did not know the label of old": {unlabelled: true},
	} {
		a := clitest.Start(t)
		for _, u := range render(t, before) {
			if tc.unlabelled {
				l := u.GetLabels()
				delete(l, manifests.LabelInstallation)
				u.SetLabels(l)
			}
			a.Add(t, u)
		}
		other := manifests.Default()
		other.Namespace = "other"
		install(t, a, other)
		left, skipped, err := Leftovers(t.Context(), newClient(t, a), after.Namespace, render(t, after))
		if err != nil || len(skipped) > 0 {
			t.Fatalf("%s: %v, skipped %v", name, err, skipped)
		}
		var got []string
		for _, u := range left {
			got = append(got, manifests.Describe(u))
		}
		want := []string{"ClusterRoleBinding " + manifests.Name, "ClusterRole " + manifests.Name}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestLeftovers_NeverAreDataOrWhatOthersManage(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	install(t, a, manifests.Default())
	a.Add(t, &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: manifests.DefaultNamespace, Name: "of-helm",
		Labels:      map[string]string{manifests.LabelPart: manifests.LabelPartValue, manifests.LabelInstallation: manifests.DefaultNamespace},
		Annotations: map[string]string{"meta.helm.sh/release-name": "x"}}})
	left, _, err := Leftovers(t.Context(), newClient(t, a), manifests.DefaultNamespace, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) < 8 {
		t.Errorf("only %d objects are known as ours", len(left))
	}
	for _, u := range left {
		switch u.GetKind() {
		case "Namespace", "CustomResourceDefinition", "Secret", "PersistentVolumeClaim", "Lease":
			t.Errorf("%s would be removed", manifests.Describe(u))
		}
		if u.GetName() == "of-helm" {
			t.Error("what Helm manages would be removed")
		}
	}
}

func TestLeftovers_OfKindsThatMayNotBeListedAreSkippedAndTold(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	install(t, a, manifests.Default())
	a.Forbid("list", "networkpolicies")
	left, skipped, err := Leftovers(t.Context(), newClient(t, a), manifests.DefaultNamespace, render(t, manifests.Default()))
	if err != nil || len(left) != 0 || len(skipped) != 1 || !strings.Contains(skipped[0], "NetworkPolicy") {
		t.Errorf("left %d, skipped %v, %v", len(left), skipped, err)
	}
}

func TestParseToleration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]corev1.Toleration{
		"dedicated":                   {Key: "dedicated", Operator: corev1.TolerationOpExists},
		"dedicated=infra":             {Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "infra"},
		"dedicated:NoExecute":         {Key: "dedicated", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
		"a.example/b=c:NoSchedule":    {Key: "a.example/b", Operator: corev1.TolerationOpEqual, Value: "c", Effect: corev1.TaintEffectNoSchedule},
		"*":                           {Operator: corev1.TolerationOpExists},
		"*:NoSchedule":                {Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
		"dedicated=:PreferNoSchedule": {Key: "dedicated", Operator: corev1.TolerationOpEqual, Effect: corev1.TaintEffectPreferNoSchedule},
	} {
		got, err := ParseToleration(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	for _, text := range []string{"", "=x", ":NoSchedule", "a:Sometimes", "a b", "a=b c", "*=x"} {
		if _, err := ParseToleration(text); exit.Of(err) != exit.Usage {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzParseToleration_NeverPanics(f *testing.F) {
	f.Add("a=b:NoSchedule")
	f.Fuzz(func(t *testing.T, text string) {
		if got, err := ParseToleration(text); err == nil && got.Key == "" && got.Operator != corev1.TolerationOpExists {
			t.Errorf("%q: %+v", text, got)
		}
	})
}

func TestExplain_NamesTheOtherOwnersOfAConflict(t *testing.T) {
	t.Parallel()
	conflict := apierrors.NewApplyConflict([]metav1.StatusCause{
		{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "helm" using apps/v1`, Field: ".spec.replicas"},
		{Type: metav1.CauseTypeFieldManagerConflict, Message: `conflict with "alice"`, Field: ".metadata.labels.x"},
	}, "Apply failed with 2 conflicts")
	err := Explain(fmt.Errorf("apply Deployment a/b: %w", conflict))
	if exit.Of(err) != exit.Conflict {
		t.Errorf("exit code %d", exit.Of(err))
	}
	for _, want := range []string{"apply Deployment a/b", "helm (spec.replicas)", "alice (metadata.labels.x)"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
}

func TestPodWaits_QuotesTheKubeletAndTheScheduler(t *testing.T) {
	t.Parallel()
	waiting := func(reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
	}
	for name, tc := range map[string]struct {
		status corev1.PodStatus
		want   string
	}{
		"it only starts":         {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("ContainerCreating", "")}}, ""},
		"no image":               {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{waiting("ImagePullBackOff", "no such image")}}, "ImagePullBackOff: no such image"},
		"an init container":      {corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{waiting("CrashLoopBackOff", "")}}, "CrashLoopBackOff"},
		"not schedulable":        {corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes"}}}, "0/3 nodes"},
		"nothing is known of it": {corev1.PodStatus{}, ""},
	} {
		if got := PodWaits(&corev1.Pod{Status: tc.status}); got != tc.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestReplicas_CountOneWhenTheFieldIsLeftOut(t *testing.T) {
	t.Parallel()
	if _, wanted := (Installation{Deployment: appsv1.Deployment{}}).Replicas(); wanted != 1 {
		t.Errorf("wanted %d", wanted)
	}
}
