package uninstall

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

func install(t *testing.T, a *clitest.API, change func(*manifests.Options), edit func(*unstructured.Unstructured)) {
	t.Helper()
	o := manifests.Default()
	if change != nil {
		change(&o)
	}
	objects, err := manifests.Render(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range objects {
		if edit != nil {
			edit(u)
		}
		a.Add(t, u)
	}
}

func call(t *testing.T, a *clitest.API, args ...string) (err error, text string) {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(true)
	path := a.Kubeconfig(t, t.TempDir(), "default")
	flags.KubeConfig = &path
	s, _, out, errOut := iostreams.Test()
	cmd := New(factory.New(flags, "kubectl mssql"), s)
	flags.AddFlags(cmd.PersistentFlags())
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	return cmd.ExecuteContext(t.Context()), out.String() + errOut.String()
}

func group() *api.SQLServerAvailabilityGroup {
	return &api.SQLServerAvailabilityGroup{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.GroupVersion.String(), Kind: "SQLServerAvailabilityGroup"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "sales"},
	}
}

func TestUninstall_LeavesWhatBelongsToTheUser(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	install(t, a, func(o *manifests.Options) {
		o.WatchNamespaces, o.NetworkPolicy, o.Monitoring = []string{"prod"}, true, true
	}, nil)
	a.Add(t, group())
	err, text := call(t, a, "--yes")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range a.Writes() {
		if w.Verb != "delete" || slices.Contains([]string{"namespaces", "customresourcedefinitions", "secrets", "persistentvolumeclaims", "sqlserveravailabilitygroups"}, w.Resource) {
			t.Errorf("did %s", w)
		}
	}
	for _, gone := range []struct{ resource, ns, name string }{
		{"deployments", manifests.DefaultNamespace, manifests.Name}, {"roles", "prod", manifests.Name}, {"networkpolicies", manifests.DefaultNamespace, manifests.Name},
		{"podmonitors", manifests.DefaultNamespace, manifests.Name}, {"prometheusrules", manifests.DefaultNamespace, manifests.Name},
		{"configmaps", manifests.DefaultNamespace, manifests.SettingsName}, {"clusterroles", "", manifests.Name + "-cluster"},
	} {
		if a.Get(gone.resource, gone.ns, gone.name) != nil {
			t.Errorf("%s %s/%s is left", gone.resource, gone.ns, gone.name)
		}
	}
	if !strings.Contains(text, "sqlag/prod/sales") || !strings.Contains(text, "without automatic failover") {
		t.Errorf("it is not said what runs on:\n%s", text)
	}
}

func TestUninstall_Refusals(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		group, helm, second bool
		args                []string
		code                exit.Code
	}{
		"the definitions are in use":                    {group: true, args: []string{"--delete-crds", "--yes", "--confirm", manifests.DefaultNamespace}, code: exit.Refused},
		"another operator uses them":                    {second: true, args: []string{"--delete-crds", "--yes", "--confirm", manifests.DefaultNamespace}, code: exit.Refused},
		"nobody was asked":                              {code: exit.NotConfirmed},
		"--yes alone is not enough for definitions":     {args: []string{"--delete-crds", "--yes"}, code: exit.NotConfirmed},
		"another word than the namespace was typed":     {args: []string{"--delete-crds", "--yes", "--confirm", "x"}, code: exit.NotConfirmed},
		"Helm manages it":                               {helm: true, args: []string{"--yes"}, code: exit.Refused},
		"nothing is wrong, but it is only a dry run":    {args: []string{"--dry-run"}, code: exit.OK},
		"a dry run with a group that keeps definitions": {group: true, args: []string{"--dry-run"}, code: exit.OK},
	} {
		a := clitest.Start(t)
		install(t, a, func(o *manifests.Options) { o.WatchNamespaces = []string{"prod"} }, func(u *unstructured.Unstructured) {
			if tc.helm && u.GetKind() == "Deployment" {
				u.SetAnnotations(map[string]string{"meta.helm.sh/release-name": "sql"})
			}
		})
		if tc.second {
			install(t, a, func(o *manifests.Options) { o.Namespace, o.WatchNamespaces = "second", []string{"dev"} }, nil)
		}
		if tc.group {
			a.Add(t, group())
		}
		err, _ := call(t, a, tc.args...)
		if exit.Of(err) != tc.code {
			t.Errorf("%s: exit code %d, %v", name, exit.Of(err), err)
		}
		if w := a.Writes(); len(w) > 0 {
			t.Errorf("%s: wrote %v", name, w)
		}
	}
}

func TestUninstall_DefinitionsGoLastAndOnlyWhenConfirmed(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	install(t, a, nil, nil)
	if err, text := call(t, a, "--delete-crds", "--yes", "--confirm", manifests.DefaultNamespace); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	w := a.Writes()
	crds := 0
	for i, r := range w {
		if r.Resource == "customresourcedefinitions" {
			crds++
			if i < len(w)-2 {
				t.Error("definitions went before the operator")
			}
		}
	}
	if crds != 2 {
		t.Errorf("%d definitions were removed", crds)
	}
}
