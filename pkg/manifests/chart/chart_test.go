package chart_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/installation"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests/chart"
)

// once: the definitions make the chart large. Nobody changes the files.
var once = sync.OnceValues(chart.Files)

func chartFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := once()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestFiles_AreWhatDeployHolds(t *testing.T) {
	t.Parallel()
	onDisk := map[string]string{}
	const dir = "../../../deploy/chart"
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		onDisk[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	generated := map[string]string{}
	for name, text := range chartFiles(t) {
		generated[name] = string(text)
	}
	if diff := cmp.Diff(onDisk, generated); diff != "" {
		t.Errorf("deploy/chart is not what the source gives; run make generate\n%s", diff)
	}
}

// cases are sets of values with the options of install that mean the same.
var cases = map[string]struct {
	values  string
	options func(*manifests.Options)
}{
	"the defaults": {"{}", func(*manifests.Options) {}},
	"a mirror, nodes of their own and a network policy": {`
image: {repository: "registry.example.com:5000/mirror/kubectl-mssql", tag: 1.2.3, pullPolicy: Always}
imagePullSecrets: [{name: mirror}, {name: second}]
nodeSelector: {pool: infra, "example.com/zone": "1"}
tolerations:
- {key: dedicated, operator: Equal, value: infra, effect: NoSchedule}
- {operator: Exists}
networkPolicy: true
monitoring: true
replicas: 3
logLevel: debug
`, func(o *manifests.Options) {
		o.Image, o.ImagePullPolicy = "registry.example.com:5000/mirror/kubectl-mssql:1.2.3", corev1.PullAlways
		o.ImagePullSecrets = []string{"mirror", "second"}
		o.NodeSelector = map[string]string{"pool": "infra", "example.com/zone": "1"}
		o.Tolerations = []corev1.Toleration{
			{Key: "dedicated", Operator: corev1.TolerationOpEqual, Value: "infra", Effect: corev1.TaintEffectNoSchedule},
			{Operator: corev1.TolerationOpExists},
		}
		o.NetworkPolicy, o.Monitoring, o.Replicas, o.LogLevel = true, true, 3, "debug"
	}},
	"watched namespaces, one of digits and one given twice, beside another installation": {`
watchNamespaces: [sales, "2024", sales, crm]
replicas: 1
`, func(o *manifests.Options) {
		o.Namespace = "mssql-sales"
		o.WatchNamespaces = []string{"sales", "2024", "sales", "crm"}
		o.Replicas = 1
	}},
	"an image by digest in a namespace of digits": {`
image: {digest: "sha256:` + digest + `", pullPolicy: Never}
logLevel: error
`, func(o *manifests.Options) {
		o.Namespace, o.LogLevel = "42", "error"
		o.Image, o.ImagePullPolicy = manifests.Repository+"@sha256:"+digest, corev1.PullNever
	}},
	"an image by tag and digest": {`
image: {tag: "0.9.0", digest: "sha256:` + digest + `"}
`, func(o *manifests.Options) { o.Image = manifests.Repository + ":0.9.0@sha256:" + digest }},
}

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestChart_RendersWhatInstallApplies(t *testing.T) {
	t.Parallel()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := manifests.Default()
			c.options(&o)
			if err := installation.Validate(&o); err != nil {
				t.Fatalf("install refuses these options: %v", err)
			}
			objects, err := manifests.Render(o)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]any{}
			for _, u := range objects {
				if u.GetKind() != "Namespace" { // helm --create-namespace
					want[u.GetKind()+" "+u.GetNamespace()+"/"+u.GetName()] = comparable(t, u)
				}
			}
			got := map[string]any{}
			for _, u := range render(t, o.Namespace, c.values) {
				key := u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
				if got[key] != nil {
					t.Errorf("%s is there twice", key)
				}
				got[key] = comparable(t, withoutHelm(t, u))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the chart (+) is not what install applies (-):\n%s", diff)
			}
		})
	}
}

// comparable is an object with the options of the settings as a map: their text may be
// quoted in another way.
func comparable(t *testing.T, u *unstructured.Unstructured) map[string]any {
	t.Helper()
	text, err := yaml.Marshal(u.Object)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := yaml.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	if u.GetName() != manifests.SettingsName {
		return out
	}
	var cm corev1.ConfigMap
	if err := yaml.UnmarshalStrict(text, &cm); err != nil {
		t.Fatal(err)
	}
	settings, err := manifests.ReadSettings(&cm)
	if err != nil {
		t.Fatal(err)
	}
	out["data"] = settings
	return out
}

// withoutHelm checks and takes off what only Helm's objects carry.
func withoutHelm(t *testing.T, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	u = u.DeepCopy()
	labels, annotations := u.GetLabels(), u.GetAnnotations()
	if !strings.HasPrefix(labels["helm.sh/chart"], chart.Name+"-") {
		t.Errorf("%s %s does not name its chart", u.GetKind(), u.GetName())
	}
	delete(labels, "helm.sh/chart")
	if u.GetKind() == "CustomResourceDefinition" {
		if annotations["helm.sh/resource-policy"] != "keep" {
			t.Errorf("helm uninstall would delete %s and every object of that kind", u.GetName())
		}
		delete(annotations, "helm.sh/resource-policy")
		u.SetAnnotations(annotations)
	} else if owner := installation.OwnerOf(u); owner == nil || owner.Tool != "Helm" {
		t.Errorf("install and check would not see that %s %s is Helm's, but %v", u.GetKind(), u.GetName(), owner)
	}
	if labels["app.kubernetes.io/managed-by"] == "Helm" {
		labels["app.kubernetes.io/managed-by"] = manifests.FieldManager
	}
	u.SetLabels(labels)
	path := []string{"spec", "template", "metadata", "labels", "app.kubernetes.io/managed-by"}
	if v, found, _ := unstructured.NestedString(u.Object, path...); found && v == "Helm" {
		if err := unstructured.SetNestedField(u.Object, manifests.FieldManager, path...); err != nil {
			t.Fatal(err)
		}
	}
	return u
}

func TestChart_LeavesTheDefinitionsToAnotherInstallation(t *testing.T) {
	t.Parallel()
	for _, u := range render(t, "elsewhere", "crds: false") {
		if u.GetKind() == "CustomResourceDefinition" {
			t.Errorf("%s is rendered although crds is false", u.GetName())
		}
	}
}

func TestChart_HasAValueForEveryOptionOfInstall(t *testing.T) {
	t.Parallel()
	// Where an option has another name in the chart; "" is none, and says so in the README.
	names := map[string]string{"namespace": "", "patches": "", "imagePullPolicy": "image"}
	values := load(t, string(chartFiles(t)["values.yaml"]))
	for f := range reflect.TypeFor[manifests.Options]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if other, ok := names[name]; ok {
			name = other
		}
		if _, ok := values[name]; name != "" && !ok {
			t.Errorf("the chart has no value for the option %s", f.Name)
		}
	}
}

func load(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return out
}

// merge lays values over the chart's own as Helm does: maps are merged, the rest replaced.
func merge(base, over map[string]any) map[string]any {
	for k, v := range over {
		a, isMap := base[k].(map[string]any)
		b, bothMaps := v.(map[string]any)
		if isMap && bothMaps {
			v = merge(a, b)
		}
		base[k] = v
	}
	return base
}

// render is the part of Helm that the chart needs: text/template with a few functions of
// the same names. make chart-test compares it with Helm itself.
func render(t *testing.T, namespace, values string) []*unstructured.Unstructured {
	t.Helper()
	files := chartFiles(t)
	meta := load(t, string(files["Chart.yaml"]))
	context := map[string]any{
		"Values":  merge(load(t, string(files["values.yaml"])), load(t, values)),
		"Release": map[string]any{"Name": "operator", "Namespace": namespace, "Service": "Helm"},
		"Chart":   map[string]any{"Name": meta["name"], "Version": meta["version"], "AppVersion": meta["appVersion"]},
	}
	root := template.New("chart").Option("missingkey=error")
	root.Funcs(functions(root))
	names := make([]string, 0, len(files))
	for name, text := range files {
		if strings.HasPrefix(name, "templates/") {
			template.Must(root.New(name).Parse(string(text)))
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out []*unstructured.Unstructured
	for _, name := range names {
		var b bytes.Buffer
		if err := root.ExecuteTemplate(&b, name, context); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "NOTES.txt") {
			if !strings.Contains(b.String(), "namespace "+namespace) {
				t.Errorf("the notes do not name the namespace:\n%s", b.String())
			}
			continue
		}
		objects, err := manifests.Parse(b.Bytes())
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, b.String())
		}
		out = append(out, objects...)
	}
	return out
}

func functions(root *template.Template) template.FuncMap {
	text := func(v any) string { s, _ := v.(string); return s }
	list := func(v any) (out []string) {
		switch l := v.(type) {
		case []string:
			return slices.Clone(l)
		case []any:
			for _, item := range l {
				out = append(out, text(item))
			}
		}
		return out
	}
	return template.FuncMap{
		"include": func(name string, data any) (string, error) {
			var b strings.Builder
			err := root.ExecuteTemplate(&b, name, data)
			return b.String(), err
		},
		"toYaml": func(v any) (string, error) {
			b, err := yaml.Marshal(v)
			return strings.TrimSuffix(string(b), "\n"), err
		},
		"nindent": func(n int, s string) string {
			pad := strings.Repeat(" ", n)
			return "\n" + pad + strings.ReplaceAll(s, "\n", "\n"+pad)
		},
		"quote": func(v any) string { return `"` + text(v) + `"` },
		"default": func(d, v any) any {
			if text(v) == "" {
				return d
			}
			return v
		},
		"replace":   func(old, new, s string) string { return strings.ReplaceAll(s, old, new) },
		"join":      func(sep string, v any) string { return strings.Join(list(v), sep) },
		"sortAlpha": func(v any) []string { l := list(v); slices.Sort(l); return l },
		"uniq":      func(v any) []string { return slices.Compact(list(v)) },
	}
}
