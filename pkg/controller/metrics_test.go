package controller

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// sample reads one value of a registry; false when it is not there.
func sample(t *testing.T, r *prometheus.Registry, name string, labels map[string]string) (float64, bool) {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
	metrics:
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if want, ok := labels[l.GetName()]; ok && want != l.GetValue() {
					continue metrics
				}
			}
			if c := m.GetCounter(); c != nil {
				return c.GetValue(), true
			}
			return m.GetGauge().GetValue(), true
		}
	}
	return 0, false
}

func TestMetricsFollowTheGroupAndGoWithIt(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	const prefix = "kubectl_mssql_controller_"
	f := threeInStep()
	f.Report.Memory.History = []ag.RoleChange{{Kind: "bootstrap", Result: "done", CompletedAt: testNow}}
	m.observe(f, time.Second)
	for name, labels := range map[string]map[string]string{
		"group_phase": {"phase": "Healthy"}, "group_primary": {"replica": "shop-0"},
	} {
		if v, ok := sample(t, registry, prefix+name, labels); !ok || v != 1 {
			t.Errorf("%s%v: %v %v", name, labels, v, ok)
		}
	}
	if v, _ := sample(t, registry, prefix+"group_safe_targets", nil); v != 2 {
		t.Errorf("safe targets %v", v)
	}
	if v, ok := sample(t, registry, prefix+"role_changes_total", nil); ok {
		t.Errorf("a role change of before this process was counted: %v", v)
	}
	f.Report.Memory.History = append([]ag.RoleChange{{Kind: "automatic", Result: "done", CompletedAt: testNow.Add(time.Hour)}}, f.Report.Memory.History...)
	f.Report.Authority.Operation = &ag.Operation{Kind: ag.OperationFailover, Target: "shop-1"}
	m.observe(f, time.Second)
	m.observe(f, time.Second)
	if v, _ := sample(t, registry, prefix+"role_changes_total", map[string]string{"kind": "automatic"}); v != 1 {
		t.Errorf("the role change was counted %v times", v)
	}
	if _, ok := sample(t, registry, prefix+"group_phase", map[string]string{"phase": "Healthy"}); ok {
		t.Error("the old phase is still told")
	}
	m.forget(types.NamespacedName{Namespace: "sales", Name: "shop"})
	if _, ok := sample(t, registry, prefix+"group_phase", nil); ok {
		t.Error("a group that is gone is still told of")
	}
}
