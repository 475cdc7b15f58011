package skew

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

func TestCompare_OneMinorApartFits(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		plugin, operator string
		api              int
		want             Level
	}{
		"the same":                             {"1.4.0", "1.4.2", 1, Fits},
		"the operator is one behind":           {"1.4.0", "1.3.9", 1, Fits},
		"the plugin is one behind":             {"1.3.0", "1.4.0", 1, Fits},
		"the operator is two behind":           {"1.4.0", "1.2.0", 1, Apart},
		"the plugin is two behind":             {"1.2.0", "1.4.0", 1, Apart},
		"another major version":                {"2.0.0", "1.9.0", 1, Incompatible},
		"a tag that is no version":             {"1.4.0", "dev", 1, Fits},
		"a build that has no version":          {"", "1.4.0", 1, Fits},
		"an operator that says nothing of API": {"1.4.0", "1.4.0", 0, Fits},
		"a pre-release":                        {"1.4.0-rc.1", "1.3.0", 1, Fits},
		"orders that it cannot read":           {"1.4.0", "1.4.0", manifests.RequestAPI - 1, Incompatible},
	} {
		want := tc.want
		if tc.api == 0 {
			want = Fits // nothing is said: nothing is refused
		}
		v := Compare(tc.plugin, tc.operator, tc.api)
		if v.Level != want {
			t.Errorf("%s: %+v", name, v)
		}
		if v.Level != Fits && (v.Message == "" || v.Hint == "") {
			t.Errorf("%s: no message or hint", name)
		}
	}
}

func TestGate_LooksAtTheOperatorOfTheNamespaceOnly(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		image, namespace string
		prepare          func(*clitest.API)
		code             exit.Code
		warning          string
	}{
		"it fits":                        {"x/kubectl-mssql:0.1.5", "sales", nil, exit.OK, ""},
		"it is far ahead":                {"x/kubectl-mssql:0.9.0", "sales", nil, exit.OK, "more than one minor"},
		"it is of another major version": {"x/kubectl-mssql:2.0.0", "sales", nil, exit.Incompatible, ""},
		"that of another namespace":      {"x/kubectl-mssql:2.0.0", "elsewhere", nil, exit.OK, ""},
		"it may not be seen": {"x/kubectl-mssql:2.0.0", "sales", func(a *clitest.API) {
			a.Forbid("list", "deployments")
			a.Forbid("get", "deployments")
		}, exit.OK, ""},
	} {
		a := clitest.Start(t)
		o := manifests.Default()
		o.Image, o.WatchNamespaces = tc.image, []string{"sales"}
		objects, err := manifests.Render(o)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range objects {
			a.Add(t, u)
		}
		if tc.prepare != nil {
			tc.prepare(a)
		}
		scheme, err := factory.Scheme()
		if err != nil {
			t.Fatal(err)
		}
		c, err := client.New(a.Config(), client.Options{Scheme: scheme})
		if err != nil {
			t.Fatal(err)
		}
		s, _, _, errOut := iostreams.Test()
		if got := exit.Of(gate(t.Context(), c, tc.namespace, s)); got != tc.code {
			t.Errorf("%s: exit code %d, want %d", name, got, tc.code)
		}
		if text := errOut.String(); (tc.warning == "") != (text == "") || !strings.Contains(text, tc.warning) {
			t.Errorf("%s: warned %q", name, text)
		}
		if w := a.Writes(); len(w) > 0 {
			t.Errorf("%s: wrote %v", name, w)
		}
	}
}
