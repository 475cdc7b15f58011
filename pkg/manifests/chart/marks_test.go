package chart

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestMarked_MarksEveryOption(t *testing.T) {
	t.Parallel()
	o := reflect.ValueOf(marked())
	for i := range o.NumField() {
		// Patches change what they like: no value can stand for them.
		if name := o.Type().Field(i).Name; name != "Patches" && o.Field(i).IsZero() {
			t.Errorf("option %s has no mark: the chart would not render it", name)
		}
	}
}

func TestObjectTemplate_ReplacesOrRefusesEveryMark(t *testing.T) {
	t.Parallel()
	object := func(value any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}, "data": map[string]any{"key": value},
		}}
	}
	for name, c := range map[string]struct {
		value any
		want  string // empty: an error
	}{
		"a whole value is quoted":                  {markNamespace, `key: {{ $.Release.Namespace | quote }}`},
		"within a value it is not":                 {"--in=" + markNamespace + ".svc", `key: --in={{ $.Release.Namespace }}.svc`},
		"a number":                                 {int64(markReplicas), `key: {{ $.Values.replicas }}`},
		"braces of a description stay as they are": {"see {{ x }}", `key: see {{ "{{" }} x }}`},
		"a list under a key that nobody knows":     {[]any{markPullSecret}, ""},
		"a node label under another key":           {map[string]any{markNodeLabel: "true"}, ""},
	} {
		got, err := objectTemplate(object(c.value))
		switch {
		case c.want == "" && err == nil:
			t.Errorf("%s: it was taken:\n%s", name, got)
		case c.want != "" && (err != nil || !strings.Contains(got, "  "+c.want+"\n")):
			t.Errorf("%s: %v, want %s in\n%s", name, err, c.want, got)
		}
	}
}
