package upgrade

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// TestMain sets the libraries' loggers before any test runs: they are the process's.
func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// realCluster is a real API server with the released version applied.
func realCluster(t *testing.T) (client.Client, func(args ...string) result) {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("KUBEBUILDER_ASSETS is not set: this test needs etcd and kube-apiserver")
		}
		t.Skip("KUBEBUILDER_ASSETS is not set: no API server. Get one with: export KUBEBUILDER_ASSETS=$(go run ./tests/cluster/cmd/cluster assets)")
	}
	env := &envtest.Environment{ControlPlaneStopTimeout: 30 * time.Second}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	cfg, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	user, err := env.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	text, err := user.KubeConfig()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = &path
	f := factory.New(flags, "kubectl mssql")
	c, err := f.Client()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := manifests.Apply(t.Context(), c, released(t), manifests.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	return c, func(args ...string) result {
		s, _, out, errOut := iostreams.Test()
		cmd := New(f, s)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(args)
		err := cmd.ExecuteContext(t.Context())
		return result{exit.Of(err), out.String(), errOut.String(), err}
	}
}

func TestUpgrade_OnARealAPIServer(t *testing.T) {
	t.Parallel()
	c, call := realCluster(t)
	for _, mode := range []string{"client", "server"} {
		r := call("--dry-run=" + mode)
		if r.code != 1 || !strings.Contains(r.out, "kubectl-mssql-install") {
			t.Errorf("dry run %s: %d %v\n%s", mode, r.code, r.err, r.out)
		}
		if strings.Contains(r.out, "\n-") && !strings.Contains(r.out, "\n---") {
			t.Errorf("dry run %s takes something away:\n%s", mode, r.out)
		}
	}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: manifests.DefaultNamespace, Name: manifests.SettingsName}, settings()); client.IgnoreNotFound(err) != nil || err == nil {
		t.Fatalf("a dry run has written: %v", err)
	}
	if r := call("--wait=false"); r.err != nil {
		t.Fatalf("%v\n%s", r.err, r.errOut)
	}
	// What the API server defaults is no difference, neither here nor there.
	for _, mode := range []string{"client", "server"} {
		if r := call("--dry-run=" + mode); r.code != 0 || r.out != "" {
			t.Errorf("dry run %s after the upgrade: %d %v\n%s", mode, r.code, r.err, r.out)
		}
	}
	r := call("--wait=false")
	if r.err != nil || strings.Contains(r.out, "configured") || strings.Contains(r.out, "created") {
		t.Errorf("the second run: %v\n%s", r.err, r.out)
	}
	conflicts(t, c, call)
}

// conflicts: another tool takes a field over.
func conflicts(t *testing.T, c client.Client, call func(...string) result) {
	t.Helper()
	theirs := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"namespace": manifests.DefaultNamespace, "name": manifests.Name},
		"spec":     map[string]any{"replicas": int64(5)},
	}}
	if err := c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(theirs), client.FieldOwner("autoscaler"), client.ForceOwnership); err != nil {
		t.Fatal(err)
	}
	r := call("--wait=false")
	if r.code != exit.Conflict || !strings.Contains(r.err.Error(), "autoscaler (spec.replicas)") {
		t.Errorf("a conflict: %d %v", r.code, r.err)
	}
	if r := call("--wait=false", "--force-conflicts"); r.err != nil {
		t.Error(r.err)
	}
	var d appsv1.Deployment
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: manifests.DefaultNamespace, Name: manifests.Name}, &d); err != nil || *d.Spec.Replicas != 2 {
		t.Errorf("%v, %d replicas", err, *d.Spec.Replicas)
	}
}

func settings() client.Object {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("ConfigMap"))
	u.SetAPIVersion("v1")
	return u
}
