package check

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/renewal"
)

const (
	// oldestKubernetes is the first version whose validation rules our resource definitions may use.
	oldestKubernetes = "1.30.0"
	// clockTolerance: the Date header has whole seconds, and a call takes time.
	clockTolerance = 3 * time.Second
	// leastMemory that SQL Server starts with (FG 7.1).
	leastMemory = "2000Mi"

	nodeLeases          = "kube-node-lease"
	defaultClass        = "storageclass.kubernetes.io/is-default-class"
	podSecurityEnforces = "pod-security.kubernetes.io/enforce"
)

// kubernetes is the fatal section: without an answer nothing else is asked.
func (ch *Checker) kubernetes(ctx context.Context) ([]Row, Server, bool) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s := &section{group: "Kubernetes"}
	server, err := ch.Server(ctx)
	if err != nil {
		s.fail(CodeUnreachable, "API server", err.Error(), "kubectl cluster-info must work with the same --context and --kubeconfig")
		return s.rows, server, false
	}
	if err := newEnough(server.Version); err != nil {
		s.fail(CodeOldKubernetes, "version", err.Error(), "upgrade the cluster to "+oldestKubernetes+" or newer")
	} else {
		s.ok("version", server.Version)
	}
	if !server.Date.IsZero() {
		off := server.Local.Sub(server.Date)
		if off > -clockTolerance && off < clockTolerance {
			s.ok("clock of this machine", "agrees with the API server")
		} else {
			s.warn(CodeLocalClock, "clock of this machine", "is "+ahead(off)+" the API server's", "set it by NTP")
		}
	}
	return s.rows, server, true
}

func newEnough(v string) error {
	got, err := version.ParseGeneric(v)
	if err != nil {
		return fmt.Errorf("the API server calls itself %q: %w", v, err)
	}
	if !got.AtLeast(version.MustParseGeneric(oldestKubernetes)) {
		return fmt.Errorf("%s is older than %s", v, oldestKubernetes)
	}
	return nil
}

func ahead(off time.Duration) string {
	if off < 0 {
		return fmt.Sprintf("%s behind", (-off).Round(time.Second))
	}
	return fmt.Sprintf("%s ahead of", off.Round(time.Second))
}

// nodes: is there one that can run SQL Server, and do their clocks agree?
func (ch *Checker) nodes(ctx context.Context, _ Server) []Row {
	s := &section{group: "Nodes"}
	var list corev1.NodeList
	if err := ch.Client.List(ctx, &list); err != nil {
		s.unseen("nodes", err)
		return s.rows
	}
	judgeNodes(s, list.Items)
	var leases coordinationv1.LeaseList
	if err := ch.Client.List(ctx, &leases, client.InNamespace(nodeLeases)); err != nil {
		s.unseen("clocks", err)
		return s.rows
	}
	judgeClocks(s, leases.Items)
	return s.rows
}

func judgeNodes(s *section, nodes []corev1.Node) {
	least := resource.MustParse(leastMemory)
	var fit, small, other []string
	for _, n := range nodes {
		switch {
		case !nodeReady(&n) || n.Spec.Unschedulable:
			continue
		case n.Status.NodeInfo.Architecture != "amd64" && n.Labels[corev1.LabelArchStable] != "amd64":
			other = append(other, n.Name)
		case n.Status.Allocatable.Memory().Cmp(least) < 0:
			small = append(small, n.Name)
		default:
			fit = append(fit, n.Name)
		}
	}
	switch {
	case len(fit) == 0 && len(small) > 0:
		s.fail(CodeLittleMemory, "memory", fmt.Sprintf("none of the amd64 nodes has %s of allocatable memory: %s", leastMemory, strings.Join(small, ", ")),
			"SQL Server does not start with less; add a larger node")
	case len(fit) == 0:
		s.fail(CodeNoNode, "architecture", fmt.Sprintf("no ready, schedulable amd64 node among %d", len(nodes)), "SQL Server has no other build; add an amd64 node")
	default:
		what := fmt.Sprintf("%d amd64 with at least %s of memory", len(fit), leastMemory)
		if n := len(small) + len(other); n > 0 {
			what += fmt.Sprintf("; %d others cannot run SQL Server", n)
		}
		s.ok("nodes", what)
	}
	if len(fit) == 1 {
		s.warn(CodeSpread, "spread", "only one node can run SQL Server: an availability group would not survive its loss", "add nodes before a group of several replicas is made")
	}
}

func nodeReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// judgeClocks compares, in each node's own Lease, the time that its kubelet wrote with
// the time at which the API server took it in.
func judgeClocks(s *section, leases []coordinationv1.Lease) {
	off := map[string]time.Duration{}
	seen := 0
	for i := range leases {
		l := &leases[i]
		written, ok := renewal.Written(l.ManagedFields)
		if !ok || l.Spec.RenewTime == nil {
			continue
		}
		seen++
		if d := l.Spec.RenewTime.Sub(written); d > clockTolerance || d < -clockTolerance {
			off[l.Name] = d
		}
	}
	names := make([]string, 0, len(off))
	for n := range off {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		s.warn(CodeNodeClock, "clock of "+n, "is "+ahead(off[n])+" the API server's", "set it by NTP")
	}
	if len(names) == 0 && seen > 0 {
		s.ok("clocks", fmt.Sprintf("%d nodes agree with the API server", seen))
	}
}

// storage: can volumes be made, and can they grow?
func (ch *Checker) storage(ctx context.Context) []Row {
	s := &section{group: "Storage"}
	var list storagev1.StorageClassList
	if err := ch.Client.List(ctx, &list); err != nil {
		s.unseen("classes", err)
		return s.rows
	}
	judgeClasses(s, list.Items)
	return s.rows
}

func judgeClasses(s *section, classes []storagev1.StorageClass) {
	if len(classes) == 0 {
		s.fail(CodeNoStorageClass, "classes", "the cluster has no StorageClass", "install a storage driver; data volumes cannot be made without one")
		return
	}
	var standard *storagev1.StorageClass
	names := make([]string, 0, len(classes))
	for i := range classes {
		names = append(names, classes[i].Name)
		// Among several defaults Kubernetes takes the newest.
		if classes[i].Annotations[defaultClass] == "true" &&
			(standard == nil || standard.CreationTimestamp.Before(&classes[i].CreationTimestamp)) {
			standard = &classes[i]
		}
	}
	if standard == nil {
		s.warn(CodeNoStorageClass, "default class", "none of "+strings.Join(names, ", ")+" is the default", "name one when a group is created: --storage-class")
		return
	}
	s.ok("default class", standard.Name)
	if standard.AllowVolumeExpansion == nil || !*standard.AllowVolumeExpansion {
		s.warn(CodeNoExpansion, "expansion", "volumes of class "+standard.Name+" cannot grow", "use a class with allowVolumeExpansion: true for data that grows")
	} else {
		s.ok("expansion", "volumes of class "+standard.Name+" can grow")
	}
}

// namespaces: those of the operator and of the groups.
func (ch *Checker) namespaces(ctx context.Context) []Row {
	s := &section{group: "Namespaces"}
	wanted := append([]string{}, ch.Render.WatchNamespaces...)
	if len(wanted) == 0 && ch.Namespace != "" {
		wanted = []string{ch.Namespace}
	}
	slices.Sort(wanted)
	wanted = slices.DeleteFunc(slices.Compact(wanted), func(n string) bool { return n == ch.Render.Namespace })
	for _, name := range append([]string{ch.Render.Namespace}, wanted...) {
		var ns corev1.Namespace
		err := ch.Client.Get(ctx, client.ObjectKey{Name: name}, &ns)
		switch {
		case apierrors.IsNotFound(err) && name == ch.Render.Namespace:
			s.ok(name, "will be created for the operator")
		case apierrors.IsNotFound(err):
			s.fail(CodeNamespaceGone, name, "does not exist", "kubectl create namespace "+name)
		case err != nil:
			s.unseen(name, err)
		case ns.DeletionTimestamp != nil:
			s.fail(CodeNamespaceGone, name, "is being deleted", "wait until it is gone")
		default:
			s.ok(name, "pod security level "+securityLevel(&ns)+": the pods fit every level")
		}
	}
	return s.rows
}

func securityLevel(ns *corev1.Namespace) string {
	if l := ns.Labels[podSecurityEnforces]; l != "" {
		return l
	}
	return "privileged (none is enforced)"
}
