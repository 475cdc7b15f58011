package chart

import (
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// Marks are values that nothing else has. They start alike, so that one that was
// forgotten is found.
const (
	markPrefix     = "chart-mark-"
	markNamespace  = markPrefix + "namespace"
	markImage      = markPrefix + "image"
	markPullPolicy = markPrefix + "pull-policy"
	markPullSecret = markPrefix + "pull-secret"
	markLogLevel   = markPrefix + "log-level"
	markWatched    = markPrefix + "watched"
	markNodeLabel  = markPrefix + "node-label"
	markTaint      = markPrefix + "taint"
	markChart      = markPrefix + "chart"
	markVersion    = markPrefix + "version"
	markService    = markPrefix + "service"
	markReplicas   = 918273645
)

// marked are the options with a mark for every value.
func marked() manifests.Options {
	return manifests.Options{
		Namespace: markNamespace, Image: markImage, ImagePullPolicy: markPullPolicy,
		ImagePullSecrets: []string{markPullSecret}, Replicas: markReplicas,
		WatchNamespaces: []string{markWatched}, LogLevel: markLogLevel,
		NodeSelector:  map[string]string{markNodeLabel: "true"},
		Tolerations:   []corev1.Toleration{{Key: markTaint, Operator: corev1.TolerationOpExists}},
		NetworkPolicy: true, Monitoring: true,
	}
}

// scalar is a mark within a line. An expression that is a whole value is quoted: a
// namespace may consist of digits.
type scalar struct{ mark, expression, quoted string }

// scalars in the order in which they are replaced: the ends of names of cluster-wide
// objects come before the namespace that they hold.
var scalars = []scalar{
	{"-" + markNamespace, `include "kubectl-mssql.suffix" $`, ""},
	{markNamespace, "$.Release.Namespace", " | quote"},
	{markWatched, "$namespace", " | quote"},
	{markImage, `include "kubectl-mssql.image" $`, " | quote"},
	{markPullPolicy, "$.Values.image.pullPolicy", ""},
	{markLogLevel, "$.Values.logLevel", ""},
	{markChart, `include "kubectl-mssql.chart" $`, " | quote"},
	{markService, "$.Release.Service", ""},
	{markVersion, "$.Chart.AppVersion", " | quote"},
	{fmt.Sprint(markReplicas), "$.Values.replicas", ""},
}

// block is a key with a list, a map or a condition as its value; without the value the
// key is left out, as Render leaves it out.
type block struct {
	key   string
	value any
	mark  string
	// write gives the lines of the key at an indentation.
	write func(indent string) string
}

var blocks = []block{
	asValue("imagePullSecrets", []any{map[string]any{"name": markPullSecret}}),
	asValue("nodeSelector", map[string]any{markNodeLabel: "true"}),
	asValue("tolerations", []any{map[string]any{"key": markTaint, "operator": "Exists"}}),
	asValue("watchNamespaces", []any{markWatched}),
	{"imagePullSecrets", []any{markPullSecret}, markPrefix + "pull-secret-names", func(indent string) string {
		return "{{- with $.Values.imagePullSecrets }}\n" + indent + "imagePullSecrets:\n" +
			"{{- range . }}\n" + indent + "- {{ .name | quote }}\n{{- end }}\n{{- end }}\n"
	}},
	{"networkPolicy", true, markPrefix + "network-policy", func(indent string) string {
		return "{{- if $.Values.networkPolicy }}\n" + indent + "networkPolicy: true\n{{- end }}\n"
	}},
	{"monitoring", true, markPrefix + "monitoring", func(indent string) string {
		return "{{- if $.Values.monitoring }}\n" + indent + "monitoring: true\n{{- end }}\n"
	}},
}

// asValue is a key whose value the chart's value of the same name has the form of.
func asValue(key string, value any) block {
	return block{key, value, markPrefix + "value-of-" + key, func(indent string) string {
		return fmt.Sprintf("{{- with $.Values.%[1]s }}\n%[2]s%[1]s:\n%[2]s  {{- toYaml . | nindent %[3]d }}\n{{- end }}\n", key, indent, len(indent)+2)
	}}
}

// labelManagedBy says Helm in a release, which is how install and check know whose it is.
const labelManagedBy = "app.kubernetes.io/managed-by"

// markBlocks puts the mark of a block in place of its value, wherever it stands.
func markBlocks(node any) any {
	switch n := node.(type) {
	case map[string]any:
		out := make(map[string]any, len(n))
		for k, v := range n {
			out[k] = markBlocks(v)
			if k == labelManagedBy && v == manifests.FieldManager {
				out[k] = markService
			}
			for _, b := range blocks {
				if b.key == k && reflect.DeepEqual(b.value, v) {
					out[k] = b.mark
				}
			}
		}
		return out
	case []any:
		out := make([]any, len(n))
		for i, v := range n {
			out[i] = markBlocks(v)
		}
		return out
	}
	return node
}
