package manifests

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func find(t *testing.T, objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	t.Helper()
	for _, u := range objects {
		if u.GetKind() == kind && u.GetName() == name {
			return u
		}
	}
	t.Fatalf("there is no %s %s", kind, name)
	return nil
}

func TestSettings_BringEveryOptionBack(t *testing.T) {
	t.Parallel()
	o := Default()
	o.Namespace, o.Image, o.Replicas, o.LogLevel = "ops", "registry.example.com/m/kubectl-mssql:1.2.3", 3, "debug"
	o.WatchNamespaces, o.ImagePullSecrets = []string{"sales"}, []string{"mirror"}
	o.NodeSelector = map[string]string{"pool": "infra"}
	o.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "infra", Effect: corev1.TaintEffectNoSchedule}}
	o.NetworkPolicy, o.Monitoring = true, true
	o.Patches = []string{"apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: " + Name + "\n"}
	var cm corev1.ConfigMap
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(find(t, mustRender(t, o), "ConfigMap", SettingsName).Object, &cm); err != nil {
		t.Fatal(err)
	}
	s, err := ReadSettings(&cm)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(o, s.Options); diff != "" {
		t.Error(diff)
	}
	if s.RequestAPI != RequestAPI || s.Version == "" {
		t.Errorf("version %q, request API %d", s.Version, s.RequestAPI)
	}
}

func TestSettings_OfAnotherHandAreRefused(t *testing.T) {
	t.Parallel()
	for name, data := range map[string]map[string]string{
		"no settings":              {"version": "1.0.0"},
		"an unknown field":         {settingsKey: "namespace: a\nfuture: true\n"},
		"a request API in words":   {settingsKey: "namespace: a\n", requestAPIKey: "one"},
		"something that is no map": {settingsKey: "- a\n"},
	} {
		if _, err := ReadSettings(&corev1.ConfigMap{Data: data}); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestRender_PatchesChangeWhatTheyName(t *testing.T) {
	t.Parallel()
	o := Default()
	o.Patches = []string{`
apiVersion: apps/v1
kind: Deployment
metadata: {name: kubectl-mssql-controller}
spec:
  template:
    spec:
      containers:
      - name: controller
        resources: {limits: {memory: 1Gi}}
`}
	u := find(t, mustRender(t, o), "Deployment", Name)
	containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
	if len(containers) != 1 {
		t.Fatalf("the list of containers was replaced, not merged: %v", containers)
	}
	c := containers[0].(map[string]any) //nolint:forcetypeassert // a test
	if got, _, _ := unstructured.NestedString(c, "resources", "limits", "memory"); got != "1Gi" {
		t.Errorf("memory limit %q", got)
	}
	if c["image"] != o.Image {
		t.Errorf("the image was lost: %v", c["image"])
	}
}

func TestRender_RefusesPatchesThatMeetNothing(t *testing.T) {
	t.Parallel()
	for name, patch := range map[string]string{
		"another name":        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: other}\n",
		"another namespace":   "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: kubectl-mssql-controller, namespace: other}\n",
		"no name":             "apiVersion: apps/v1\nkind: Deployment\n",
		"no YAML":             "\t{",
		"a misspelt field":    "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: kubectl-mssql-controller}\nspec: {replica: 1}\n",
		"a type that is none": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: kubectl-mssql-controller}\nspec: {template: 1}\n",
	} {
		o := Default()
		o.Patches = []string{patch}
		if _, err := Render(o); err == nil || !strings.Contains(err.Error(), "patch") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRender_TwoInstallationsShareNothingButDefinitions(t *testing.T) {
	t.Parallel()
	a, b := Default(), Default()
	a.WatchNamespaces, b.WatchNamespaces = []string{"x"}, []string{"x"}
	b.Namespace = "second"
	seen := map[string]bool{}
	for _, u := range mustRender(t, a) {
		seen[Describe(u)] = true
	}
	for _, u := range mustRender(t, b) {
		if u.GetKind() != "CustomResourceDefinition" && seen[Describe(u)] {
			t.Errorf("both have %s: one installation would overwrite the other", Describe(u))
		}
	}
}

func TestRender_EverythingOfOneInstallationCarriesItsLabel(t *testing.T) {
	t.Parallel()
	o := Default()
	o.WatchNamespaces, o.NetworkPolicy = []string{"x"}, true
	for _, u := range mustRender(t, o) {
		label := u.GetLabels()[LabelInstallation]
		switch u.GetKind() {
		case "CustomResourceDefinition", "Namespace":
			if label != "" {
				t.Errorf("%s would be pruned with the installation", Describe(u))
			}
		default:
			if label != o.Namespace {
				t.Errorf("%s has label %q", Describe(u), label)
			}
		}
	}
}

func TestSetRegistry_KeepsNameTagAndDigest(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{
		"ghcr.io/kubectl-mssql/kubectl-mssql:0.1.0": "mirror.example.com/m/kubectl-mssql:0.1.0",
		"kubectl-mssql:0.1.0":                       "mirror.example.com/m/kubectl-mssql:0.1.0",
		"a.b:5000/kubectl-mssql@sha256:00":          "mirror.example.com/m/kubectl-mssql@sha256:00",
	} {
		o := Options{Image: image}
		o.SetRegistry("mirror.example.com/m/")
		if o.Image != want {
			t.Errorf("%s: %s", image, o.Image)
		}
	}
}

func TestImageVersion_IsTheTagOnly(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{
		"a/b:1.2.3": "1.2.3", "a/b:v1.2.3": "1.2.3", "a.b:5000/c": "", "a/b@sha256:00": "", "a/b:1@sha256:00": "1",
	} {
		if got := ImageVersion(image); got != want {
			t.Errorf("%s: %q", image, got)
		}
	}
}

func TestParse_ReadsWhatYAMLWrites(t *testing.T) {
	t.Parallel()
	objects := mustRender(t, Default())
	text, err := YAML(objects)
	if err != nil {
		t.Fatal(err)
	}
	back, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	again, err := YAML(back)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(text), string(again)); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse_NeverPanics(f *testing.F) {
	f.Add([]byte("a: 1\n---\n- b\n"))
	f.Fuzz(func(_ *testing.T, text []byte) {
		_, _ = Parse(text)
		_, _ = SplitPatches(text)
	})
}
