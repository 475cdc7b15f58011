// Package factory gives commands what they need from the outside, lazily: a
// command that needs no cluster never touches a kubeconfig.
package factory

import (
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/version"
)

// Factory makes clients from the kubeconfig flags.
type Factory interface {
	// Namespace from -n, else from the context, else "default"; explicit tells whether -n was given.
	Namespace() (ns string, explicit bool, err error)
	RESTConfig() (*rest.Config, error)
	Client() (client.Client, error)
	Clock() clock.WithTicker
	// ServerTime is the API server's clock, as its newest answer told it to a second; not ok
	// before one came. What the cluster wrote is compared with it, never with this machine's.
	ServerTime() (now time.Time, ok bool)
	// Name is how the user calls us: "kubectl mssql", or the file's name.
	Name() string
}

// Kube is the Factory of the real command line.
type Kube struct {
	flags *genericclioptions.ConfigFlags
	name  string
	serverClock

	mu     sync.Mutex
	config *rest.Config
	client client.Client
}

// New makes a Factory over the kubeconfig flags.
func New(flags *genericclioptions.ConfigFlags, name string) *Kube {
	return &Kube{flags: flags, name: name}
}

// Name implements Factory.
func (k *Kube) Name() string { return k.name }

// Clock implements Factory.
func (k *Kube) Clock() clock.WithTicker { return clock.RealClock{} }

// Namespace implements Factory.
func (k *Kube) Namespace() (string, bool, error) {
	ns, explicit, err := k.flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", false, noCluster(err)
	}
	return ns, explicit, nil
}

// RESTConfig implements Factory.
func (k *Kube) RESTConfig() (*rest.Config, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.restConfig()
}

func (k *Kube) restConfig() (*rest.Config, error) {
	if k.config != nil {
		return k.config, nil
	}
	c, err := k.flags.ToRESTConfig()
	if err != nil {
		return nil, noCluster(err)
	}
	if c.Host == "http://localhost:8080" && k.namesNoCluster() {
		return nil, noCluster(errors.New("neither --kubeconfig, KUBECONFIG nor ~/.kube/config names one"))
	}
	c.UserAgent = "kubectl-mssql/v" + version.Get().Version
	// One person's command is no load that the client should hold back; the API server
	// has its own fairness. A limiter would turn a time-out into its own error.
	c.QPS = -1
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}
	c.Wrap(k.listen)
	k.config = c
	return c, nil
}

// namesNoCluster tells whether the address is the library's guess and nobody's wish.
func (k *Kube) namesNoCluster() bool {
	raw, err := k.flags.ToRawKubeConfigLoader().RawConfig()
	return err == nil && len(raw.Clusters) == 0 && (k.flags.APIServer == nil || *k.flags.APIServer == "")
}

// Client implements Factory.
func (k *Kube) Client() (client.Client, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.client != nil {
		return k.client, nil
	}
	c, err := k.restConfig()
	if err != nil {
		return nil, err
	}
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	mapper, err := restMapper(c)
	if err != nil {
		return nil, noCluster(err)
	}
	cl, err := client.New(c, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, noCluster(err)
	}
	k.client = startingClient{Client: cl, starting: func() bool {
		h, err := rest.HTTPClientFor(c)
		return err == nil && starting(c, h)
	}}
	return k.client, nil
}

// restMapper knows Kubernetes' own kinds without asking; each group that it had to look up
// would cost round trips. Our kinds are asked for: that is how one sees that the operator
// is not installed.
func restMapper(c *rest.Config) (meta.RESTMapper, error) {
	h, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, err
	}
	dynamic, err := apiutil.NewDynamicRESTMapper(c, h)
	if err != nil {
		return nil, err
	}
	known := meta.NewDefaultRESTMapper(nil)
	for scope, kinds := range map[meta.RESTScope][]schema.GroupVersionKind{
		meta.RESTScopeNamespace: {
			corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithKind("Event"), corev1.SchemeGroupVersion.WithKind("Secret"),
			corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithKind("Service"),
			corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), coordinationv1.SchemeGroupVersion.WithKind("Lease"),
			appsv1.SchemeGroupVersion.WithKind("Deployment"),
		},
		meta.RESTScopeRoot: {corev1.SchemeGroupVersion.WithKind("Namespace"), corev1.SchemeGroupVersion.WithKind("Node")},
	} {
		for _, k := range kinds {
			known.Add(k, scope)
		}
	}
	return presetMapper{RESTMapper: dynamic, known: known, starting: func() bool { return starting(c, h) }}, nil
}

// presetMapper answers for the known kinds, and leaves all others to the server, whose
// errors must not be mixed with "no match": a server that does not answer is not one
// that lacks our kinds.
type presetMapper struct {
	meta.RESTMapper
	known *meta.DefaultRESTMapper
	// starting tells that the API server does not serve everything yet.
	starting func() bool
}

// RESTMapping implements meta.RESTMapper.
func (m presetMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if got, err := m.known.RESTMapping(gk, versions...); err == nil {
		return got, nil
	}
	got, err := m.RESTMapper.RESTMapping(gk, versions...)
	if meta.IsNoMatchError(err) && m.starting() {
		return nil, startingError()
	}
	return got, err
}

// Scheme knows Kubernetes' kinds, CRDs and ours.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, api.AddToScheme} {
		if err := add(s); err != nil {
			return nil, fmt.Errorf("register kinds: %w", err)
		}
	}
	return s, nil
}

func noCluster(err error) error {
	return exit.With(exit.Unexpected,
		"check --kubeconfig and --context; `kubectl cluster-info` must work with the same flags",
		fmt.Errorf("cannot reach a cluster: %w", err))
}
