package upgrade

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/version"
)

// released are the manifests of 0.1.0, the version that kept no settings yet.
func released(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile("testdata/install-0.1.0.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifests.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// cluster has the released version installed; Deployments come up by themselves.
func cluster(t *testing.T, change func(*unstructured.Unstructured)) *clitest.API {
	t.Helper()
	a := clitest.Start(t)
	for _, u := range released(t) {
		if change != nil {
			change(u)
		}
		a.Add(t, u)
	}
	return a
}

type result struct {
	code        exit.Code
	out, errOut string
	err         error
}

// call runs the command line.
func call(t *testing.T, a *clitest.API, args ...string) result {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(true)
	path := a.Kubeconfig(t, t.TempDir(), "default")
	flags.KubeConfig = &path
	s, _, out, errOut := iostreams.Test()
	cmd := New(factory.New(flags, "kubectl mssql"), s)
	flags.AddFlags(cmd.PersistentFlags())
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return result{exit.Of(err), out.String(), errOut.String(), err}
}

func TestUpgrade_FromTheReleasedVersionKeepsItsOptions(t *testing.T) {
	t.Parallel()
	a := cluster(t, func(u *unstructured.Unstructured) {
		if u.GetKind() != "Deployment" {
			return
		}
		containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
		c := containers[0].(map[string]any) //nolint:forcetypeassert // a test
		c["image"] = "registry.example.com/mirror/kubectl-mssql:v0.1.0"
		c["args"] = []any{"controller", "run", "--log-level=debug", "--watch-namespaces=sales,crm"}
		_ = unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers")
		_ = unstructured.SetNestedField(u.Object, int64(3), "spec", "replicas")
		_ = unstructured.SetNestedMap(u.Object, map[string]any{"pool": "infra"}, "spec", "template", "spec", "nodeSelector")
	})
	r := call(t, a)
	if r.err != nil {
		t.Fatalf("%v\n%s", r.err, r.errOut)
	}
	cm := a.Get("configmaps", manifests.DefaultNamespace, manifests.SettingsName)
	if cm == nil {
		t.Fatal("no settings were kept")
	}
	text, _, _ := unstructured.NestedString(cm.Object, "data", "settings.yaml")
	for _, want := range []string{"image: registry.example.com/mirror/kubectl-mssql:v" + version.Get().Version, "logLevel: debug", "replicas: 3", "pool: infra", "- crm", "- sales"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the settings:\n%s", want, text)
		}
	}
	// The ClusterRole of the cluster-wide installation is not rendered for two namespaces.
	if a.Get("clusterroles", "", manifests.Name) != nil || a.Get("clusterrolebindings", "", manifests.Name) != nil {
		t.Error("rights over the whole cluster were left over")
	}
	if a.Get("roles", "sales", manifests.Name) == nil {
		t.Error("the Role of a watched namespace is missing")
	}
	again := call(t, a)
	if again.err != nil || !strings.Contains(again.errOut, "unchanged") || strings.Contains(again.out, "configured") {
		t.Errorf("the second run: %v\n%s%s", again.err, again.out, again.errOut)
	}
}

func TestUpgrade_AFlagChangesOneOption(t *testing.T) {
	t.Parallel()
	a := cluster(t, nil)
	if r := call(t, a); r.err != nil {
		t.Fatal(r.err)
	}
	if r := call(t, a, "--log-level", "debug", "--network-policy"); r.err != nil {
		t.Fatal(r.err)
	}
	if a.Get("networkpolicies", manifests.DefaultNamespace, manifests.Name) == nil {
		t.Error("there is no network policy")
	}
	if r := call(t, a, "--network-policy=false"); r.err != nil {
		t.Fatal(r.err)
	}
	if a.Get("networkpolicies", manifests.DefaultNamespace, manifests.Name) != nil {
		t.Error("the network policy was left over")
	}
	text, _, _ := unstructured.NestedString(a.Get("configmaps", manifests.DefaultNamespace, manifests.SettingsName).Object, "data", "settings.yaml")
	if !strings.Contains(text, "logLevel: debug") {
		t.Errorf("an option of an earlier upgrade was forgotten:\n%s", text)
	}
}

func TestUpgrade_DryRunsPrintTheDifferenceAndWriteNothing(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"client", "server"} {
		a := cluster(t, nil)
		r := call(t, a, "--dry-run="+mode)
		if r.code != 1 || !exit.IsSilent(r.err) {
			t.Errorf("%s: exit code %d, %v", mode, r.code, r.err)
		}
		for _, want := range []string{"+++ ConfigMap mssql-system/kubectl-mssql-install (new)", "+    kubectl-mssql.io/installation: mssql-system"} {
			if !strings.Contains(r.out, want) {
				t.Errorf("%s: %q is not in\n%s", mode, want, r.out)
			}
		}
		if strings.Contains(r.out, "\n-spec") || len(a.Writes()) > 0 {
			t.Errorf("%s: wrote %v", mode, a.Writes())
		}
		if r := call(t, a); r.err != nil {
			t.Fatal(r.err)
		}
		a.Forget()
		if r := call(t, a, "--dry-run="+mode); r.code != 0 || r.out != "" || len(a.Writes()) > 0 {
			t.Errorf("%s after the upgrade: exit code %d, %v, %s", mode, r.code, r.err, r.out)
		}
		a.Forbid("get", "deployments")
		if r := call(t, a, "--dry-run="+mode); r.code < 2 {
			t.Errorf("%s: an error gives exit code %d, which says something else", mode, r.code)
		}
	}
}

func TestUpgrade_Refusals(t *testing.T) {
	t.Parallel()
	deployment := func(edit func(*unstructured.Unstructured)) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			if u.GetKind() == "Deployment" {
				edit(u)
			}
		}
	}
	image := func(tag string) func(*unstructured.Unstructured) {
		return deployment(func(u *unstructured.Unstructured) {
			containers, _, _ := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
			containers[0].(map[string]any)["image"] = "x/kubectl-mssql:" + tag //nolint:forcetypeassert // a test
			_ = unstructured.SetNestedSlice(u.Object, containers, "spec", "template", "spec", "containers")
		})
	}
	for name, tc := range map[string]struct {
		change func(*unstructured.Unstructured)
		args   []string
		code   exit.Code
		want   string
	}{
		"nothing is installed there":  {nil, []string{"-n", "elsewhere"}, exit.NotFound, "no operator is installed"},
		"an unknown dry run":          {nil, []string{"--dry-run=maybe"}, exit.Usage, "unknown dry run"},
		"it would be a step back":     {image("9.0.0"), nil, exit.Refused, "step back"},
		"a minor version is left out": {nil, []string{"--image", "x/kubectl-mssql:0.3.0"}, exit.Refused, "leaves a minor version out"},
		"Helm manages it": {deployment(func(u *unstructured.Unstructured) {
			l := u.GetLabels()
			l["app.kubernetes.io/managed-by"] = "Helm"
			u.SetLabels(l)
		}), nil, exit.Refused, "Helm"},
		"stored objects would be lost": {func(u *unstructured.Unstructured) {
			if u.GetKind() == "CustomResourceDefinition" {
				_ = unstructured.SetNestedStringSlice(u.Object, []string{"v1alpha0", "v1alpha1"}, "status", "storedVersions")
			}
		}, nil, exit.Refused, "stored as v1alpha0"},
		"a log level that is none": {nil, []string{"--log-level", "loud"}, exit.Usage, "log level"},
	} {
		a := cluster(t, tc.change)
		r := call(t, a, tc.args...)
		if r.code != tc.code || r.err == nil || !strings.Contains(r.err.Error(), tc.want) {
			t.Errorf("%s: exit code %d, %v", name, r.code, r.err)
		}
		if w := a.Writes(); len(w) > 0 {
			t.Errorf("%s: wrote %v", name, w)
		}
	}
}

func TestUpgrade_RemovesLeftoversOnlyAfterTheNewControllersAreUp(t *testing.T) {
	t.Parallel()
	a := cluster(t, nil)
	a.React(func(_ string, u *unstructured.Unstructured) {
		if u.GetKind() == "Deployment" {
			u.Object["status"] = map[string]any{"observedGeneration": u.GetGeneration(), "replicas": int64(2), "updatedReplicas": int64(1), "availableReplicas": int64(1)}
		}
	})
	r := call(t, a, "--watch-namespaces", "sales", "--timeout", "1s")
	if r.code != exit.Timeout || !strings.Contains(r.err.Error(), "not up after 1s") {
		t.Errorf("exit code %d, %v", r.code, r.err)
	}
	if a.Get("clusterroles", "", manifests.Name) == nil {
		t.Error("the old controllers lost their role while they still ran")
	}
	for _, w := range a.Writes() {
		if w.Verb == "delete" {
			t.Errorf("removed %s", w)
		}
	}
}

func TestStep(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		from, to string
		good     bool
	}{
		"a patch":                        {"1.2.3", "1.2.4", true},
		"the same":                       {"1.2.3", "1.2.3", true},
		"the next minor":                 {"1.2.3", "1.3.0", true},
		"two minors":                     {"1.2.3", "1.4.0", false},
		"back":                           {"1.2.3", "1.2.2", false},
		"the next major":                 {"1.9.0", "2.0.1", true},
		"beyond the next major":          {"1.9.0", "2.1.0", false},
		"two majors":                     {"1.9.0", "3.0.0", false},
		"from a tag that is no version":  {"dev", "3.0.0", true},
		"from a release candidate":       {"1.3.0-rc.1", "1.3.0", true},
		"back to a release candidate":    {"1.3.0", "1.3.0-rc.1", false},
		"to a tag that is no version":    {"1.3.0", "dev", true},
		"from a pre-release of two back": {"1.1.0-rc.1", "1.3.0", false},
	} {
		if err := step(tc.from, tc.to); (err == nil) != tc.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNewImage_KeepsTheRegistryAndPeoplesOwnBuilds(t *testing.T) {
	t.Parallel()
	v := version.Get().Version
	for image, want := range map[string]string{
		"ghcr.io/a/b:0.0.9": "ghcr.io/a/b:" + v, "r:5000/b:v0.0.9": "r:5000/b:v" + v,
		"r/b:dev": "r/b:dev", "r:5000/b": "r:5000/b", "r/b@sha256:00": "r/b@sha256:00", "r/b:0.1.0@sha256:00": "r/b:0.1.0@sha256:00",
	} {
		if got, kept := newImage(image); got != want || kept != (got == image && got != "ghcr.io/a/b:"+v) {
			t.Errorf("%s: %s, kept %v", image, got, kept)
		}
	}
}

func TestUnified_ShowsChangesWithTheirSurroundings(t *testing.T) {
	t.Parallel()
	before := "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\n"
	after := "a\nB\nc\nd\ne\nf\ng\nh\ni\nj\nk\nm\nn\n"
	want := `--- x (in the cluster)
+++ x (new)
@@ -1,5 +1,5 @@
 a
-b
+B
 c
 d
 e
@@ -9,5 +9,5 @@
 i
 j
 k
-l
 m
+n
`
	if diff := cmp.Diff(want, unified("x", before, after)); diff != "" {
		t.Error(diff)
	}
	if unified("x", before, before) != "" {
		t.Error("equal texts differ")
	}
	if got := unified("x", "", "a\n"); !strings.Contains(got, "+a") {
		t.Errorf("a new object: %q", got)
	}
}

func FuzzUnified_TellsBothTexts(f *testing.F) {
	f.Add("a\nb\nc", "a\nc\nd")
	f.Fuzz(func(t *testing.T, before, after string) {
		if len(before) > 2000 || len(after) > 2000 {
			t.Skip()
		}
		var a, b []string
		for _, o := range compare(lines(before), lines(after)) {
			if o.kind != '+' {
				a = append(a, o.text)
			}
			if o.kind != '-' {
				b = append(b, o.text)
			}
		}
		if diff := cmp.Diff(lines(before), a); diff != "" {
			t.Errorf("the old text: %s", diff)
		}
		if diff := cmp.Diff(lines(after), b); diff != "" {
			t.Errorf("the new text: %s", diff)
		}
	})
}

func TestOverlay_KeepsDefaultsInsideNamedLists(t *testing.T) {
	t.Parallel()
	live := map[string]any{"replicas": int64(2), "containers": []any{map[string]any{"name": "c", "image": "old", "defaulted": true}}, "args": []any{"a", "b"}}
	next := map[string]any{"replicas": float64(2), "containers": []any{map[string]any{"name": "c", "image": "new"}}, "args": []any{"a"}}
	want := map[string]any{"replicas": int64(2), "containers": []any{map[string]any{"name": "c", "image": "new", "defaulted": true}}, "args": []any{"a"}}
	if diff := cmp.Diff(want, overlay(live, next)); diff != "" {
		t.Error(diff)
	}
}
