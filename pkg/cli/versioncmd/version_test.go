package versioncmd

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/version"
)

func call(t *testing.T, kubeconfig string, args ...string) (out, errOut string) {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = &kubeconfig
	s, _, o, e := iostreams.Test()
	cmd := New(factory.New(flags, "kubectl mssql"), s)
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return o.String(), e.String()
}

func TestVersion_NeverFailsWithoutACluster(t *testing.T) {
	t.Parallel()
	none := filepath.Join(t.TempDir(), "none")
	a := clitest.Start(t)
	gone := a.Kubeconfig(t, t.TempDir(), "default")
	forbidden := clitest.Start(t)
	forbidden.Forbid("*", "*")
	for name, path := range map[string]string{"no kubeconfig": none, "no rights": forbidden.Kubeconfig(t, t.TempDir(), "default")} {
		out, errOut := call(t, path)
		if !strings.Contains(out, "plugin      "+version.Get().Version) || !strings.Contains(errOut, "not seen") {
			t.Errorf("%s: %s%s", name, out, errOut)
		}
		var doc Document
		out, _ = call(t, path, "-o", "json")
		if err := json.Unmarshal([]byte(out), &doc); err != nil || len(doc.Errors) == 0 || doc.Operators == nil || doc.Servers == nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	if out, errOut := call(t, gone, "--client"); errOut != "" || strings.Count(out, "\n") != 1 {
		t.Errorf("--client: %s%s", out, errOut)
	}
	if out, _ := call(t, none, "--short"); out != "plugin "+version.Get().Version+"\n" {
		t.Errorf("--short: %q", out)
	}
	if len(a.Requests()) > 0 {
		t.Errorf("--client asked %v", a.Requests())
	}
}

func TestVersion_TellsEveryPart(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	o := manifests.Default()
	o.Image, o.WatchNamespaces = "x/kubectl-mssql:9.1.0", []string{"prod"}
	objects, err := manifests.Render(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range objects {
		a.Add(t, u)
	}
	g := &api.SQLServerAvailabilityGroup{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.GroupVersion.String(), Kind: "SQLServerAvailabilityGroup"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "sales"},
		Status:     api.SQLServerAvailabilityGroupStatus{Version: "16.0.4195.2"},
	}
	a.Add(t, g)
	for i, tag := range []string{"0.1.0", "0.2.0"} {
		a.Add(t, &corev1.Pod{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: []string{"sales-0", "sales-1"}[i],
				Labels: map[string]string{api.LabelInstance: "sales", api.LabelManagedBy: api.ManagedBy, api.LabelName: api.AppName}},
			Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: api.InitContainerName, Image: "x/kubectl-mssql:" + tag}}},
		})
	}
	out, errOut := call(t, a.Kubeconfig(t, t.TempDir(), "prod"))
	for _, want := range []string{
		"kubernetes  ", "operator    9.1.0  2/2 ready in namespace mssql-system, watches prod",
		"definition  sqlserveravailabilitygroups.kubectl-mssql.io  served v1alpha1, stored v1alpha1",
		"server      prod/sales  SQL Server 16.0.4195.2  managers sales-0 0.1.0, sales-1 0.2.0",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if !strings.Contains(errOut, "another major version") {
		t.Errorf("the skew is not told: %s", errOut)
	}
	if w := a.Writes(); len(w) > 0 {
		t.Errorf("wrote %v", w)
	}
}
