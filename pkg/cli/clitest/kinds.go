package clitest

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// kind is one resource of the API.
type kind struct {
	group, version, resource, kind string
	namespaced                     bool
	subresources                   []string
}

func (k kind) gvk() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.group, Version: k.version, Kind: k.kind}
}

func kinds() []kind {
	return []kind{
		{"", "v1", "namespaces", "Namespace", false, []string{"status"}},
		{"", "v1", "nodes", "Node", false, []string{"status"}},
		{"", "v1", "persistentvolumes", "PersistentVolume", false, []string{"status"}},
		{"", "v1", "pods", "Pod", true, []string{"status", "log", "portforward", "exec", "proxy"}},
		{"", "v1", "services", "Service", true, []string{"status"}},
		{"", "v1", "endpoints", "Endpoints", true, nil},
		{"", "v1", "secrets", "Secret", true, nil},
		{"", "v1", "configmaps", "ConfigMap", true, nil},
		{"", "v1", "serviceaccounts", "ServiceAccount", true, nil},
		{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true, []string{"status"}},
		{"", "v1", "events", "Event", true, nil},
		{"events.k8s.io", "v1", "events", "Event", true, nil},
		{"apps", "v1", "deployments", "Deployment", true, []string{"status", "scale"}},
		{"apps", "v1", "replicasets", "ReplicaSet", true, []string{"status"}},
		{"apps", "v1", "statefulsets", "StatefulSet", true, []string{"status"}},
		{"policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true, []string{"status"}},
		{"coordination.k8s.io", "v1", "leases", "Lease", true, nil},
		{"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", true, nil},
		{"networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", true, nil},
		{"monitoring.coreos.com", "v1", "podmonitors", "PodMonitor", true, nil},
		{"monitoring.coreos.com", "v1", "prometheusrules", "PrometheusRule", true, nil},
		{"scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", false, nil},
		{"storage.k8s.io", "v1", "storageclasses", "StorageClass", false, nil},
		{"storage.k8s.io", "v1", "csidrivers", "CSIDriver", false, nil},
		{"rbac.authorization.k8s.io", "v1", "roles", "Role", true, nil},
		{"rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", true, nil},
		{"rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", false, nil},
		{"rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", false, nil},
		{"apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false, []string{"status"}},
		{"admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", false, nil},
		{"admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", false, nil},
		{"authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", false, nil},
		{"authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", false, nil},
		{"authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", false, nil},
		{"kubectl-mssql.io", "v1alpha1", "sqlserveravailabilitygroups", "SQLServerAvailabilityGroup", true, []string{"status"}},
		{"kubectl-mssql.io", "v1alpha1", "sqlserverinstances", "SQLServerInstance", true, []string{"status"}},
	}
}

func kindOf(gvk schema.GroupVersionKind) (kind, bool) {
	for _, k := range kinds() {
		if k.gvk() == gvk {
			return k, true
		}
	}
	return kind{}, false
}

func resourceOf(group, resource string) (kind, bool) {
	for _, k := range kinds() {
		if k.group == group && k.resource == resource {
			return k, true
		}
	}
	return kind{}, false
}

// resourceList is the discovery document of one group and version; nil when the
// server serves no such one.
func (a *API) resourceList(group, version string) *metav1.APIResourceList {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
		GroupVersion: schema.GroupVersion{Group: group, Version: version}.String(),
	}
	for _, k := range kinds() {
		if k.group != group || k.version != version || a.absent[k.resource] {
			continue
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: k.resource, Namespaced: k.namespaced, Kind: k.kind,
			Verbs: metav1.Verbs{"get", "list", "watch", "create", "update", "patch", "delete"}})
		for _, s := range k.subresources {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: k.resource + "/" + s, Namespaced: k.namespaced, Kind: k.kind,
				Verbs: metav1.Verbs{"get", "update", "patch", "create"}})
		}
	}
	if len(list.APIResources) == 0 {
		return nil
	}
	return list
}

func (a *API) groupList() *metav1.APIGroupList {
	out := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroupList"}}
	var seen []string
	for _, k := range kinds() {
		if k.group == "" || slices.Contains(seen, k.group) || a.resourceList(k.group, k.version) == nil {
			continue
		}
		seen = append(seen, k.group)
		out.Groups = append(out.Groups, apiGroup(k.group, k.version))
	}
	return out
}

func apiGroup(group, version string) metav1.APIGroup {
	v := metav1.GroupVersionForDiscovery{GroupVersion: group + "/" + version, Version: version}
	return metav1.APIGroup{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIGroup"}, Name: group,
		Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}
}

func uid(n int64) types.UID { return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", n)) }

// settle does what a cluster's own controllers do at once: resource definitions are
// served and deployments are up.
func settle(u *unstructured.Unstructured) {
	switch u.GetKind() {
	case "CustomResourceDefinition":
		_ = unstructured.SetNestedSlice(u.Object, []any{
			map[string]any{"type": "Established", "status": "True"},
			map[string]any{"type": "NamesAccepted", "status": "True"},
		}, "status", "conditions") // a map of JSON values can always be set
		names, _, _ := unstructured.NestedMap(u.Object, "spec", "names")
		_ = unstructured.SetNestedMap(u.Object, names, "status", "acceptedNames")
		if _, has, _ := unstructured.NestedStringSlice(u.Object, "status", "storedVersions"); !has {
			_ = unstructured.SetNestedStringSlice(u.Object, []string{"v1alpha1"}, "status", "storedVersions")
		}
	case "Deployment":
		if _, has, _ := unstructured.NestedMap(u.Object, "status"); has {
			return
		}
		n, found, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
		if f, isFloat, _ := unstructured.NestedFloat64(u.Object, "spec", "replicas"); isFloat {
			n, found = int64(f), true
		}
		if !found {
			n = 1
		}
		_ = unstructured.SetNestedMap(u.Object, map[string]any{
			"observedGeneration": int64(1 << 40), "replicas": n, "updatedReplicas": n, "readyReplicas": n, "availableReplicas": n,
			"conditions": []any{map[string]any{"type": "Available", "status": "True"}},
		}, "status")
	}
}
