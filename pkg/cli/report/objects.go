package report

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/check"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/status"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/versioncmd"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// addObjects writes objects as one YAML stream.
func (g *gatherer) addObjects(path, about string, objects []*unstructured.Unstructured) {
	if len(objects) == 0 {
		return
	}
	var b bytes.Buffer
	for _, u := range objects {
		clean := u.DeepCopy()
		g.archive.redact.Object(clean)
		text, err := yaml.Marshal(clean.Object)
		if err != nil {
			g.archive.Fail(manifests.Describe(u), err)
			continue
		}
		b.WriteString("---\n")
		b.Write(text)
	}
	g.archive.Add(path, about, b.Bytes())
}

func (g *gatherer) addJSON(path, about string, v any) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		g.archive.Fail(path, err)
		return
	}
	g.archive.Add(path, about, append(text, '\n'))
}

// objects of the group or instance in its namespace.
func (g *gatherer) objects(ctx context.Context) {
	for _, o := range []struct {
		object client.Object
		kind   string
	}{{g.facts.group, "SQLServerAvailabilityGroup"}, {g.facts.instance, "SQLServerInstance"}} {
		if g.facts.group == nil && o.kind == "SQLServerAvailabilityGroup" || g.facts.instance == nil && o.kind == "SQLServerInstance" {
			continue
		}
		m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o.object)
		if err != nil {
			g.archive.Fail(o.kind, err)
			continue
		}
		u := &unstructured.Unstructured{Object: m}
		u.SetAPIVersion(api.GroupVersion.String())
		u.SetKind(o.kind)
		g.addObjects("resources/resource.yaml", "the resource with its spec and status", []*unstructured.Unstructured{u})
	}
	lease := &unstructured.Unstructured{}
	lease.SetAPIVersion("coordination.k8s.io/v1")
	lease.SetKind("Lease")
	if g.facts.group != nil {
		if err := g.client.Get(ctx, client.ObjectKey{Namespace: g.namespace, Name: api.LeaseName(g.o.Name)}, lease); err != nil {
			g.archive.Fail("Lease "+api.LeaseName(g.o.Name), err)
		} else {
			g.addObjects("resources/lease.yaml", "who may write: holder, epoch, operation, commit rule", []*unstructured.Unstructured{lease})
		}
	}
	for _, k := range []struct{ apiVersion, kind, file, about string }{
		{"v1", "Pod", "pods", "the pods"},
		{"v1", "PersistentVolumeClaim", "persistentvolumeclaims", "the claims of the data volumes"},
		{"v1", "Service", "services", "the Services"},
		{"discovery.k8s.io/v1", "EndpointSlice", "endpointslices", "where the Services lead"},
		{"v1", "ConfigMap", "configmaps", "mssql.conf and the instance managers' settings"},
		{"v1", "ServiceAccount", "serviceaccounts", "the account of the pods"},
		{"rbac.authorization.k8s.io/v1", "Role", "roles", "what the pods may do"},
		{"rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", ""},
		{"policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", "the disruption budget"},
		{"networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", ""},
	} {
		opts := []client.ListOption{client.InNamespace(g.namespace), g.labels()}
		if k.kind == "NetworkPolicy" { // those of other people cut connections, too
			opts = opts[:1]
		}
		list, err := g.list(ctx, k.apiVersion, k.kind, opts...)
		if err != nil {
			g.archive.Fail(k.file, err)
			continue
		}
		g.addObjects("resources/"+k.file+".yaml", k.about, list)
		if k.kind == "PersistentVolumeClaim" {
			g.volumes(ctx, list)
		}
	}
}

func (g *gatherer) volumes(ctx context.Context, claims []*unstructured.Unstructured) {
	var volumes []*unstructured.Unstructured
	for _, c := range claims {
		name, _, _ := unstructured.NestedString(c.Object, "spec", "volumeName")
		if name == "" {
			continue
		}
		u := &unstructured.Unstructured{}
		u.SetAPIVersion("v1")
		u.SetKind("PersistentVolume")
		if err := g.client.Get(ctx, client.ObjectKey{Name: name}, u); err != nil {
			g.archive.Fail("PersistentVolume "+name, err)
			continue
		}
		volumes = append(volumes, u)
	}
	g.addObjects("resources/persistentvolumes.yaml", "the volumes", volumes)
}

// cluster: nodes in short, and storage classes.
func (g *gatherer) cluster(ctx context.Context) {
	if list, err := g.list(ctx, "storage.k8s.io/v1", "StorageClass"); err != nil {
		g.archive.Fail("storage classes", err)
	} else {
		g.addObjects("cluster/storageclasses.yaml", "the storage classes", list)
	}
	var nodes corev1.NodeList
	if err := g.client.List(ctx, &nodes); err != nil {
		g.archive.Fail("nodes", err)
		return
	}
	var b strings.Builder
	for _, n := range nodes.Items {
		i := n.Status.NodeInfo
		fmt.Fprintf(&b, "%s\n  %s, kubelet %s, kernel %s, %s, boot %s\n", n.Name, i.Architecture, i.KubeletVersion, i.KernelVersion, i.ContainerRuntimeVersion, i.BootID)
		fmt.Fprintf(&b, "  allocatable cpu %s, memory %s; zone %s; unschedulable %v\n", n.Status.Allocatable.Cpu(), n.Status.Allocatable.Memory(), n.Labels[corev1.LabelTopologyZone], n.Spec.Unschedulable)
		for _, t := range n.Spec.Taints {
			fmt.Fprintf(&b, "  taint %s\n", t.ToString())
		}
		for _, c := range n.Status.Conditions {
			fmt.Fprintf(&b, "  %s=%s since %s %s %s\n", c.Type, c.Status, c.LastTransitionTime.UTC().Format(time.RFC3339), c.Reason, c.Message)
		}
	}
	g.archive.Add("cluster/nodes.txt", "the nodes in short", []byte(b.String()))
}

// events of the namespace that are about the resource or its objects, oldest first.
func (g *gatherer) events(ctx context.Context) {
	g.eventsOf(ctx, g.namespace, "events.txt", "events about the resource and its objects, oldest first", func(name string) bool {
		return name == g.o.Name || strings.HasPrefix(name, g.o.Name+"-") || strings.HasPrefix(name, "data-"+g.o.Name+"-")
	})
}

func (g *gatherer) eventsOf(ctx context.Context, namespace, path, about string, match func(string) bool) {
	var list corev1.EventList
	if err := g.client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		g.archive.Fail("events of namespace "+namespace, err)
		return
	}
	events := slices.DeleteFunc(list.Items, func(e corev1.Event) bool { return !match(e.InvolvedObject.Name) })
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return eventTime(&a).Compare(eventTime(&b)) })
	var b strings.Builder
	for i := range events {
		e := &events[i]
		times := ""
		if e.Count > 1 {
			times = fmt.Sprintf(" (%d times since %s)", e.Count, e.FirstTimestamp.UTC().Format(time.RFC3339))
		}
		from := e.Source.Component
		if from == "" {
			from = e.ReportingController
		}
		fmt.Fprintf(&b, "%s %-7s %-24s %s/%s: %s [%s]%s\n", eventTime(e).UTC().Format(time.RFC3339), e.Type, e.Reason,
			e.InvolvedObject.Kind, e.InvolvedObject.Name, strings.Join(strings.Fields(e.Message), " "), from, times)
	}
	g.archive.Add(path, about, []byte(b.String()))
}

func eventTime(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return e.Series.LastObservedTime.Time
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.CreationTimestamp.Time
}

// overview: status, versions and checks, as the verbs of those names show them.
func (g *gatherer) overview(ctx context.Context) {
	c, err := status.NewCollector(g.o.Factory)
	if err == nil {
		var seen status.Seen
		if seen, err = c.Look(ctx, g.o.Name); err == nil {
			var doc any = seen.Group
			if seen.Instance != nil {
				doc = seen.Instance
			}
			g.addJSON("status.json", "what status shows", doc)
		}
	}
	if err != nil {
		g.archive.Fail("status", err)
	}
	ask := check.AskServer(g.config, g.o.Factory.Clock())
	g.addJSON("versions.json", "every version there is", versioncmd.Collect(ctx, g.client, ask, g.namespace))
	render := manifests.Default()
	checker := check.Checker{Client: g.client, Server: ask, Namespace: g.namespace, Self: g.o.Factory.Name(), Render: render}
	g.addJSON("checks.json", "what check finds", checker.Installed(ctx, g.namespace, g.o.Name))
}
