package versioncmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/check"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/installation"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/skew"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/version"
)

// patience with a cluster: a version must not keep anybody waiting.
const patience = 5 * time.Second

// Document is the machine-readable output. Within v1 there are only additions.
type Document struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Plugin     version.Info `json:"plugin"`
	// Kubernetes is the API server's version; empty when it was not asked or did not answer.
	Kubernetes string `json:"kubernetes"`
	// Operators found in the cluster, by namespace.
	Operators []Operator `json:"operators"`
	// Definitions of our kinds with the versions in which objects are stored.
	Definitions []Definition `json:"definitions"`
	// Servers of all groups and instances that could be seen.
	Servers []Server `json:"servers"`
	// Errors that kept something from being seen.
	Errors []string `json:"errors"`
}

// Operator is one installation.
type Operator struct {
	Namespace string `json:"namespace"`
	Image     string `json:"image"`
	Version   string `json:"version"`
	Ready     int32  `json:"ready"`
	Replicas  int32  `json:"replicas"`
	// WatchNamespaces is empty when the operator looks at all.
	WatchNamespaces []string `json:"watchNamespaces"`
	// ManagedBy Helm, OLM, Argo CD or Flux; empty when by install.
	ManagedBy string `json:"managedBy"`
	// Skew is the sentence about a difference to the plugin that is not supported.
	Skew string `json:"skew"`
}

// Definition is one custom resource definition.
type Definition struct {
	Name           string   `json:"name"`
	Served         []string `json:"served"`
	StoredVersions []string `json:"storedVersions"`
}

// Server is one group or instance.
type Server struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// SQLServer is the build that the operator saw last, such as 16.0.4195.2.
	SQLServer string `json:"sqlServer"`
	// Managers are the versions of the instance managers, by replica.
	Managers []Manager `json:"managers"`
}

// Manager is one replica's instance manager.
type Manager struct {
	Replica string `json:"replica"`
	Version string `json:"version"`
}

func newDocument() *Document {
	return &Document{APIVersion: "cli.kubectl-mssql.io/v1", Kind: "Version", Plugin: version.Get(),
		Operators: []Operator{}, Definitions: []Definition{}, Servers: []Server{}, Errors: []string{}}
}

// Collect is the whole document about a cluster, for other verbs.
func Collect(ctx context.Context, c client.Client, ask func(context.Context) (check.Server, error), namespace string) *Document {
	d := newDocument()
	d.cluster(ctx, c, ask, namespace)
	return d
}

// cluster fills in what the cluster tells; every part that it does not is an error in the document.
func (d *Document) cluster(ctx context.Context, c client.Client, ask func(context.Context) (check.Server, error), namespace string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	server, err := ask(ctx)
	if err != nil {
		d.Errors = append(d.Errors, err.Error())
		return
	}
	d.Kubernetes = server.Version
	var wg sync.WaitGroup
	var operatorsErr, definitionsErr, serversErr error
	wg.Go(func() { d.Operators, operatorsErr = operators(ctx, c) })
	wg.Go(func() { d.Definitions, definitionsErr = definitions(ctx, c) })
	wg.Go(func() { d.Servers, serversErr = servers(ctx, c, namespace) })
	wg.Wait()
	for _, err := range []error{operatorsErr, definitionsErr, serversErr} {
		if err != nil {
			d.Errors = append(d.Errors, err.Error())
		}
	}
}

func operators(ctx context.Context, c client.Client) ([]Operator, error) {
	found, err := installation.Find(ctx, c)
	out := make([]Operator, 0, len(found))
	for _, i := range found {
		op := Operator{Namespace: i.Namespace, Image: i.Image, Version: i.Version, WatchNamespaces: i.WatchNamespaces()}
		op.Ready, op.Replicas = i.Replicas()
		if op.WatchNamespaces == nil {
			op.WatchNamespaces = []string{}
		}
		if i.Owner != nil {
			op.ManagedBy = i.Owner.Tool
		}
		if v := skew.Of(i); v.Level != skew.Fits {
			op.Skew = v.Message
		}
		out = append(out, op)
	}
	return out, err
}

func definitions(ctx context.Context, c client.Client) ([]Definition, error) {
	out := []Definition{}
	crds, err := manifests.CRDs()
	if err != nil {
		return out, err
	}
	for _, u := range crds {
		var crd apiextensionsv1.CustomResourceDefinition
		err := c.Get(ctx, client.ObjectKey{Name: u.GetName()}, &crd)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return out, fmt.Errorf("read the resource definitions: %w", err)
		}
		def := Definition{Name: crd.Name, Served: []string{}, StoredVersions: append([]string{}, crd.Status.StoredVersions...)}
		for _, v := range crd.Spec.Versions {
			if v.Served {
				def.Served = append(def.Served, v.Name)
			}
		}
		out = append(out, def)
	}
	return out, nil
}

// servers lists those of all namespaces, or of the present one where that is all one may see.
func servers(ctx context.Context, c client.Client, namespace string) ([]Server, error) {
	out := []Server{}
	var groups api.SQLServerAvailabilityGroupList
	var instances api.SQLServerInstanceList
	var pods corev1.PodList
	for _, list := range []client.ObjectList{&groups, &instances} {
		if err := listAnywhere(ctx, c, list, namespace); err != nil {
			if manifests.NoSuchKind(err) {
				return out, nil
			}
			return out, fmt.Errorf("list groups and instances: %w", err)
		}
	}
	podsErr := listAnywhere(ctx, c, &pods, namespace, client.MatchingLabels{api.LabelManagedBy: api.ManagedBy, api.LabelName: api.AppName})
	managers := map[string][]Manager{}
	for _, p := range pods.Items {
		owner := p.Namespace + "/" + p.Labels[api.LabelInstance]
		managers[owner] = append(managers[owner], Manager{p.Name, managerVersion(&p)})
	}
	add := func(kind string, o client.Object, build string) {
		m := managers[o.GetNamespace()+"/"+o.GetName()]
		slices.SortFunc(m, func(a, b Manager) int { return strings.Compare(a.Replica, b.Replica) })
		if m == nil {
			m = []Manager{}
		}
		out = append(out, Server{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), SQLServer: build, Managers: m})
	}
	for i := range groups.Items {
		add("SQLServerAvailabilityGroup", &groups.Items[i], groups.Items[i].Status.Version)
	}
	for i := range instances.Items {
		add("SQLServerInstance", &instances.Items[i], instances.Items[i].Status.Version)
	}
	if podsErr != nil {
		return out, fmt.Errorf("list pods for the versions of the instance managers: %w", podsErr)
	}
	return out, nil
}

func listAnywhere(ctx context.Context, c client.Client, list client.ObjectList, namespace string, opts ...client.ListOption) error {
	err := c.List(ctx, list, opts...)
	if apierrors.IsForbidden(err) && namespace != "" {
		return c.List(ctx, list, append(opts, client.InNamespace(namespace))...)
	}
	return err
}

// managerVersion is the tag of the image that the manager's program was taken from;
// the image itself when the tag is no version.
func managerVersion(p *corev1.Pod) string {
	for _, ic := range p.Spec.InitContainers {
		if ic.Name == api.InitContainerName {
			if v := manifests.ImageVersion(ic.Image); v != "" {
				return v
			}
			return ic.Image
		}
	}
	return ""
}
