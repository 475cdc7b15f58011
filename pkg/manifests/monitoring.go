package manifests

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// The kinds of the Prometheus operator that monitoring is made of.
const (
	monitoringGroup = "monitoring.coreos.com"
	monitoringAPI   = monitoringGroup + "/v1"
)

// MonitoringKinds are the kinds that a cluster must know for Options.Monitoring.
func MonitoringKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		{Group: monitoringGroup, Version: "v1", Kind: "PodMonitor"},
		{Group: monitoringGroup, Version: "v1", Kind: "PrometheusRule"},
	}
}

// instancePort of the instance managers' metrics (docs/reference/instance-manager.md). Their
// pods do not declare it, so that it is written over the address of the port they declare.
const instancePort = 8080

// monitoring lets Prometheus gather from controllers and instance managers, and warns.
func monitoring(o Options) []*unstructured.Unstructured {
	controllers := map[string]any{}
	for k, v := range selector() {
		controllers[k] = v
	}
	controller := monitor(o, Name, map[string]any{"matchLabels": controllers}, map[string]any{
		"port": "metrics", "path": "/metrics", "interval": "15s",
		// Its series carry the group's namespace, which must not become that of the pod.
		"honorLabels": true,
	})
	servers := map[string]any{
		"matchLabels":      map[string]any{v1alpha1.LabelName: v1alpha1.AppName},
		"matchExpressions": []any{map[string]any{"key": v1alpha1.LabelReplica, "operator": "Exists"}},
	}
	instances := monitor(o, Name+"-instances", servers, map[string]any{
		"port": "tds", "path": "/metrics", "interval": "15s",
		"relabelings": []any{
			relabel("([^:]+)", fmt.Sprintf("${1}:%d", instancePort)),
			relabel("(.*:.*)", fmt.Sprintf("[${1}]:%d", instancePort)),
		},
	})
	spec, _ := instances.Object["spec"].(map[string]any)
	spec["namespaceSelector"] = map[string]any{"any": true}
	return []*unstructured.Unstructured{controller, instances, rules(o)}
}

func relabel(regex, replacement string) map[string]any {
	return map[string]any{
		"action": "replace", "sourceLabels": []any{"__meta_kubernetes_pod_ip"}, "regex": regex,
		"targetLabel": "__address__", "replacement": replacement,
	}
}

func monitoringObject(o Options, kind, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": monitoringAPI, "kind": kind, "spec": spec}}
	u.SetName(name)
	u.SetNamespace(o.Namespace)
	u.SetLabels(owned(o))
	return u
}

func monitor(o Options, name string, of, endpoint map[string]any) *unstructured.Unstructured {
	return monitoringObject(o, "PodMonitor", name, map[string]any{"selector": of, "podMetricsEndpoints": []any{endpoint}})
}

// alert is one rule: what is wrong, since when, and the next command.
type alert struct {
	name, expr, wait, severity, summary, look string
}

// alerts use the metrics of docs/reference/controller.md and instance-manager.md.
func alerts(o Options) []alert {
	const group = "{{ $labels.namespace }}/{{ $labels.group }}"
	const server = "{{ $labels.namespace }}/{{ $labels.pod }}"
	status := "kubectl mssql status -n {{ $labels.namespace }} {{ $labels.group }}"
	logs := "kubectl logs -n {{ $labels.namespace }} {{ $labels.pod }}"
	return []alert{
		{
			"MSSQLFailoverBlocked", "kubectl_mssql_controller_group_failover_blocked == 1", "1m", "critical",
			"nobody can write to " + group + " and nobody may be promoted", status,
		},
		{
			"MSSQLNoSafeTarget", "kubectl_mssql_controller_group_safe_targets == 0 and on (namespace, group) kubectl_mssql_controller_group_ready_replicas > 1", "10m", "warning",
			"no replica of " + group + " could take over without loss", status,
		},
		{
			"MSSQLGroupDegraded", `kubectl_mssql_controller_group_phase{phase="Degraded"} == 1`, "15m", "warning",
			group + " is degraded", status,
		},
		{
			"MSSQLMaintenanceForgotten", `kubectl_mssql_controller_group_phase{phase="Paused"} == 1`, "12h", "warning",
			group + " is paused: nothing is failed over or repaired", "kubectl mssql maintenance off -n {{ $labels.namespace }} {{ $labels.group }}",
		},
		{
			"MSSQLServerDown", "mssql_up == 0", "5m", "warning",
			"the server of " + server + " does not answer", logs,
		},
		{
			"MSSQLDatabaseUnusable", "mssql_databases_unusable > 0", "5m", "critical",
			"{{ $value }} databases of " + server + " cannot be used", logs,
		},
		{
			"MSSQLWriteLeaseMissing", "mssql_write_lease_missing == 1", "10m", "warning",
			"the group of " + server + " has no write lease: after the loss of its primary no wait proves anything", "kubectl mssql explain NoWriteLease",
		},
		{
			"MSSQLEndpointCertificateExpires", "mssql_endpoint_certificate_expiry_timestamp_seconds - time() < 14 * 24 * 3600", "1h", "warning",
			"the endpoint certificate of " + server + " expires within 14 days", "kubectl mssql check -n {{ $labels.namespace }}",
		},
		{
			"MSSQLOperatorGone", `absent(up{job="` + o.Namespace + "/" + Name + `"} == 1)`, "5m", "critical",
			"no controller answers: nothing is failed over", "kubectl -n " + o.Namespace + " get pods",
		},
	}
}

func rules(o Options) *unstructured.Unstructured {
	var list []any
	for _, a := range alerts(o) {
		list = append(list, map[string]any{
			"alert": a.name, "expr": a.expr, "for": a.wait,
			"labels":      map[string]any{"severity": a.severity},
			"annotations": map[string]any{"summary": a.summary, "command": a.look},
		})
	}
	return monitoringObject(o, "PrometheusRule", Name, map[string]any{
		"groups": []any{map[string]any{"name": "kubectl-mssql", "rules": list}},
	})
}
