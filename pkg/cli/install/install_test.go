package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

type result struct {
	code        exit.Code
	out, errOut string
	err         error
}

func call(t *testing.T, a *clitest.API, args ...string) result {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(true)
	path := filepath.Join(t.TempDir(), "none")
	if a != nil {
		path = a.Kubeconfig(t, t.TempDir(), "default")
	}
	flags.KubeConfig = &path
	s, _, out, errOut := iostreams.Test()
	cmd := New(factory.New(flags, "kubectl mssql"), s)
	flags.AddFlags(cmd.PersistentFlags())
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return result{exit.Of(err), out.String(), errOut.String(), err}
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func cluster(t *testing.T) *clitest.API {
	t.Helper()
	a := clitest.Start(t)
	a.Add(t, namespace("default"))
	return a
}

func TestInstall_PrintsDeployInstallYAMLWithoutACluster(t *testing.T) {
	t.Parallel()
	r := call(t, nil, "--dry-run=client", "-o", "yaml")
	if r.err != nil {
		t.Fatal(r.err)
	}
	want, err := os.ReadFile("../../../deploy/install.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), r.out); diff != "" {
		t.Error(diff)
	}
	if r.errOut != "" {
		t.Errorf("something on standard error: %s", r.errOut)
	}
}

func TestInstall_TheSecondRunChangesNothingAndSaysSo(t *testing.T) {
	t.Parallel()
	a := cluster(t)
	record := filepath.Join(t.TempDir(), "applied.yaml")
	r := call(t, a, "--record", record)
	if r.err != nil || !strings.Contains(r.out, "deployment/"+manifests.Name+" -n mssql-system created") {
		t.Fatalf("%v\n%s%s", r.err, r.out, r.errOut)
	}
	text, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	if want := call(t, nil, "--dry-run=client").out; string(text) != want {
		t.Error("the record is not what was applied")
	}
	r = call(t, a)
	if r.err != nil || strings.Contains(r.out, "created") || strings.Contains(r.out, "configured") || !strings.Contains(r.errOut, "unchanged") {
		t.Errorf("%v\n%s%s", r.err, r.out, r.errOut)
	}
}

func TestInstall_ServerDryRunWritesNothing(t *testing.T) {
	t.Parallel()
	a := cluster(t)
	r := call(t, a, "--dry-run=server")
	if r.err != nil || len(a.Writes()) > 0 {
		t.Errorf("%v, wrote %v", r.err, a.Writes())
	}
	if !strings.Contains(r.errOut, "nothing was changed") || !strings.Contains(r.out, "created") {
		t.Errorf("%s%s", r.out, r.errOut)
	}
}

func TestInstall_OptionsReachTheManifests(t *testing.T) {
	t.Parallel()
	patch := filepath.Join(t.TempDir(), "patch.yaml")
	if err := os.WriteFile(patch, []byte("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: kubectl-mssql-controller, annotations: {team: data}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := call(t, nil, "--dry-run=client", "-n", "ops", "--registry", "mirror.example.com", "--image-pull-secret", "mirror", "--replicas", "1",
		"--watch-namespaces", "b,a", "--node-selector", "pool=infra", "--tolerations", "dedicated=infra:NoSchedule", "--log-level", "debug", "--network-policy", "--monitoring", "--patch", patch)
	if r.err != nil {
		t.Fatal(r.err)
	}
	for _, want := range []string{
		"image: mirror.example.com/kubectl-mssql:", "- name: mirror", "replicas: 1", "--watch-namespaces=a,b", "pool: infra", "value: infra",
		"--log-level=debug", "kind: NetworkPolicy", "kind: PodMonitor", "kind: PrometheusRule", "team: data", "namespace: ops", "name: kubectl-mssql-controller-ops",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is not in the manifests", want)
		}
	}
}

func TestInstall_MonitoringNeedsThePrometheusOperator(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	a.Remove("podmonitors")
	r := call(t, a, "--monitoring", "--preflight=false", "--wait=false")
	if exit.Of(r.err) != exit.Refused || !strings.Contains(r.err.Error(), "PodMonitor") || len(a.Writes()) > 0 {
		t.Errorf("%v, wrote %v", r.err, a.Writes())
	}
}

func TestInstall_RefusalsComeBeforeAnyWrite(t *testing.T) {
	t.Parallel()
	installed := func(edit func(*unstructured.Unstructured), ns string) func(*testing.T, *clitest.API) {
		return func(t *testing.T, a *clitest.API) {
			o := manifests.Default()
			o.Namespace = ns
			objects, err := manifests.Render(o)
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range objects {
				if u.GetKind() == "Deployment" && edit != nil {
					edit(u)
				}
				a.Add(t, u)
			}
		}
	}
	argo := func(u *unstructured.Unstructured) {
		u.SetAnnotations(map[string]string{"argocd.argoproj.io/tracking-id": "sql:x"})
	}
	for name, tc := range map[string]struct {
		prepare func(*testing.T, *clitest.API)
		args    []string
		code    exit.Code
		want    string
	}{
		"Argo CD manages it":               {installed(argo, manifests.DefaultNamespace), nil, exit.Refused, "Argo CD (Application sql)"},
		"another operator watches all":     {installed(nil, "other"), nil, exit.Refused, "other"},
		"a right is missing":               {func(_ *testing.T, a *clitest.API) { a.Forbid("create", "clusterroles") }, nil, exit.Forbidden, "create clusterroles"},
		"a watched namespace is not there": {nil, []string{"--watch-namespaces", "nowhere"}, exit.Refused, "nowhere"},
		"an unknown dry run":               {nil, []string{"--dry-run=maybe"}, exit.Usage, "unknown dry run"},
		"no controller":                    {nil, []string{"--replicas", "0"}, exit.Usage, "0 controllers"},
		"a toleration that is none":        {nil, []string{"--tolerations", "a:Never"}, exit.Usage, "toleration"},
		"a patch that meets nothing":       {nil, []string{"--patch", "install.go"}, exit.Usage, "patch"},
		"a namespace that is none":         {nil, []string{"-n", "No_Namespace"}, exit.Usage, "no namespace"},
		"a record of a dry run":            {nil, []string{"--record", "x", "--dry-run=server"}, exit.Usage, "--record"},
		"-o without a dry run":             {nil, []string{"-o", "yaml"}, exit.Usage, "--dry-run=client"},
		"a scheme in the registry":         {nil, []string{"--registry", "https://x"}, exit.Usage, "registry"},
	} {
		a := cluster(t)
		if tc.prepare != nil {
			tc.prepare(t, a)
		}
		r := call(t, a, tc.args...)
		if r.code != tc.code || r.err == nil || !strings.Contains(r.err.Error(), tc.want) {
			t.Errorf("%s: exit code %d, %v", name, r.code, r.err)
		}
		if w := a.Writes(); len(w) > 0 {
			t.Errorf("%s: wrote %v", name, w)
		}
	}
}

func TestInstall_TimeOutSaysWhatThePodsWaitFor(t *testing.T) {
	t.Parallel()
	a := cluster(t)
	a.React(func(_ string, u *unstructured.Unstructured) {
		if u.GetKind() == "Deployment" {
			u.Object["status"] = map[string]any{"observedGeneration": u.GetGeneration(), "replicas": int64(2)}
		}
	})
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: manifests.DefaultNamespace, Name: "c-1", Labels: map[string]string{manifests.LabelPart: manifests.LabelPartValue}},
		Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such host"}}}}},
	}
	event := &corev1.Event{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta: metav1.ObjectMeta{Namespace: manifests.DefaultNamespace, Name: "e"}, Type: corev1.EventTypeWarning, Reason: "Failed",
		InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "c-1"}, Message: "Error: ErrImagePull",
	}
	a.Add(t, pod, event)
	r := call(t, a, "--timeout", "600ms")
	if r.code != exit.Timeout {
		t.Fatalf("exit code %d, %v", r.code, r.err)
	}
	for _, want := range []string{"c-1: ErrImagePull: no such host", "last event: Failed on Pod c-1: Error: ErrImagePull", "0 of 2 controllers are up"} {
		if !strings.Contains(r.err.Error(), want) {
			t.Errorf("%q is not in %q", want, r.err)
		}
	}
	if a.Get("deployments", manifests.DefaultNamespace, manifests.Name) == nil {
		t.Error("the evidence was taken away")
	}
}
