package controller

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// apiServer is one real API server for all tests of the package that need one.
type apiServer struct {
	cfg *rest.Config
	cli client.Client
}

var startAPIServer = sync.OnceValues(func() (*envtest.Environment, error) {
	scheme, err := NewScheme()
	if err != nil {
		return nil, err
	}
	env := &envtest.Environment{
		CRDDirectoryPaths: []string{"../manifests/crd"}, ErrorIfCRDPathMissing: true, Scheme: scheme,
		ControlPlaneStopTimeout: 30 * time.Second,
	}
	// As on clusters where owners may only be set by who may change them.
	env.ControlPlane.GetAPIServer().Configure().Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	if _, err := env.Start(); err != nil {
		return env, errors.Join(err, env.Stop())
	}
	return env, nil
})

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	code := m.Run()
	if os.Getenv("KUBEBUILDER_ASSETS") != "" {
		if env, err := startAPIServer(); err == nil {
			if err := env.Stop(); err != nil {
				code = max(code, 1)
			}
		}
	}
	os.Exit(code)
}

// needAPIServer skips loudly where there is none, but never in CI.
func needAPIServer(t *testing.T) apiServer {
	t.Helper()
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		if os.Getenv("CI") != "" {
			t.Fatal("KUBEBUILDER_ASSETS is not set: these tests need etcd and kube-apiserver")
		}
		t.Skip("KUBEBUILDER_ASSETS is not set: no API server. Get one with: export KUBEBUILDER_ASSETS=$(go run ./tests/cluster/cmd/cluster assets)")
	}
	env, err := startAPIServer()
	if err != nil {
		t.Fatalf("start the API server: %v", err)
	}
	cli, err := client.New(env.Config, client.Options{Scheme: env.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return apiServer{cfg: env.Config, cli: cli}
}

// namespace makes one for this test.
func (a apiServer) namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := a.cli.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return ns.Name
}

// eventually polls until check says yes; what it says otherwise is the failure.
func eventually(t *testing.T, what string, check func(context.Context) (bool, string)) {
	t.Helper()
	const limit = 60 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	last := ""
	for {
		ok, why := check(ctx)
		if ok {
			return
		}
		if ctx.Err() == nil {
			last = why
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within %s; last: %s", what, limit, last)
		case <-tick.C:
		}
	}
}

func contains(err error, words ...string) bool {
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			return false
		}
	}
	return true
}
