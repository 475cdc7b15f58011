package controller

import (
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
)

func TestTheReferenceNamesEveryConditionFlagAndMetric(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../docs/reference/controller.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	f := threeInStep()
	for _, c := range statusOf(f).Conditions {
		if !strings.Contains(text, "| `"+c.Type+"`") {
			t.Errorf("condition %s is missing", c.Type)
		}
	}
	o, flags := Options{}, pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		if !strings.Contains(text, "`--"+f.Name+"`") {
			t.Errorf("flag --%s is missing", f.Name)
		}
	})
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	m.observe(f, 0)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if name := strings.TrimPrefix(family.GetName(), "kubectl_mssql_controller_"); !strings.Contains(text, "`"+name+"`") {
			t.Errorf("metric %s is missing", name)
		}
	}
}

func TestOptionsThatCannotWorkAreRefusedTogether(t *testing.T) {
	t.Parallel()
	none := func(string) string { return "" }
	o := DefaultOptions(none)
	o.LogLevel, o.OperatorPullPolicy, o.LogFormat, o.Namespaces = "loud", "Sometimes", "xml", []string{"a", " "}
	err := o.Validate()
	if !contains(err, "--operator-image", "--operator-image-pull-policy", "--log-level", "--log-format", "--leader-election-namespace", "--watch-namespaces") {
		t.Errorf("%v", err)
	}
	good := DefaultOptions(func(k string) string { return map[string]string{"OPERATOR_IMAGE": "x", "POD_NAMESPACE": "y"}[k] })
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
}
