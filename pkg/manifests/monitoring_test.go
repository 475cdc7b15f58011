package manifests

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func monitored(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	o := Default()
	o.Monitoring = true
	return mustRender(t, o)
}

func TestMonitoring_IsThereOnlyWhenItIsAskedFor(t *testing.T) {
	t.Parallel()
	for _, u := range mustRender(t, Default()) {
		if u.GroupVersionKind().Group == monitoringGroup {
			t.Errorf("%s is rendered unasked", Describe(u))
		}
	}
	objects := monitored(t)
	for _, name := range []string{Name, Name + "-instances"} {
		find(t, objects, "PodMonitor", name)
	}
	find(t, objects, "PrometheusRule", Name)
}

func TestMonitoring_AlertsUseMetricsOfTheReference(t *testing.T) {
	t.Parallel()
	var reference string
	for _, page := range []string{"controller.md", "instance-manager.md"} {
		b, err := os.ReadFile("../../docs/reference/" + page)
		if err != nil {
			t.Fatal(err)
		}
		reference += string(b)
	}
	metric := regexp.MustCompile(`(?:kubectl_)?mssql_[a-z_]+`)
	seen := 0
	for _, a := range alerts(Default()) {
		for _, name := range metric.FindAllString(a.expr, -1) {
			seen++
			if short := strings.TrimPrefix(name, "kubectl_mssql_controller_"); !strings.Contains(reference, "`"+short+"`") {
				t.Errorf("%s: the reference names no metric %s", a.name, short)
			}
		}
		if a.summary == "" || !strings.Contains(a.look, "kubectl ") {
			t.Errorf("%s says %q and %q", a.name, a.summary, a.look)
		}
	}
	if seen < 8 {
		t.Errorf("only %d metrics were seen", seen)
	}
}

func TestMonitoring_ReachesInstanceManagersByEitherFamilyOfAddresses(t *testing.T) {
	t.Parallel()
	u := find(t, monitored(t), "PodMonitor", Name+"-instances")
	endpoints, _, err := unstructured.NestedSlice(u.Object, "spec", "podMetricsEndpoints")
	if err != nil || len(endpoints) != 1 {
		t.Fatalf("%v, %d endpoints", err, len(endpoints))
	}
	list, _, err := unstructured.NestedSlice(endpoints[0].(map[string]any), "relabelings")
	if err != nil {
		t.Fatal(err)
	}
	for ip, want := range map[string]string{"10.1.2.3": "10.1.2.3:8080", "fd00::7": "[fd00::7]:8080"} {
		got := ip + ":1433"
		for _, r := range list {
			rule := r.(map[string]any)
			// Prometheus anchors its expressions.
			if re := regexp.MustCompile("^(?:" + rule["regex"].(string) + ")$"); re.MatchString(ip) {
				got = re.ReplaceAllString(ip, rule["replacement"].(string))
			}
		}
		if got != want {
			t.Errorf("%s is asked at %s, want %s", ip, got, want)
		}
	}
}
