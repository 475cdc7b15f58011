package check

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// call runs the command line; without an API server the kubeconfig leads nowhere.
func call(t *testing.T, a *clitest.API, args ...string) (string, error) {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(true)
	path := filepath.Join(t.TempDir(), "none")
	if a != nil {
		path = a.Kubeconfig(t, t.TempDir(), "default")
	}
	flags.KubeConfig = &path
	s, _, out, _ := iostreams.Test()
	cmd := New(factory.New(flags, "kubectl mssql"), s)
	flags.AddFlags(cmd.PersistentFlags())
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

const nodeAndClass = `
apiVersion: v1
kind: Node
metadata: {name: a}
status:
  allocatable: {memory: 8Gi}
  nodeInfo: {architecture: amd64}
  conditions: [{type: Ready, status: "True"}]
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
allowVolumeExpansion: true
provisioner: x
---
apiVersion: v1
kind: Namespace
metadata: {name: default}
`

func TestCheck_ExitCodes(t *testing.T) {
	t.Parallel()
	installed := func(t *testing.T, a *clitest.API) {
		t.Helper()
		objects, err := manifests.Render(manifests.Default())
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range objects {
			a.Add(t, u)
		}
		a.Add(t, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
			"metadata": map[string]any{"namespace": manifests.DefaultNamespace, "name": manifests.Name}, "spec": map[string]any{"holderIdentity": "c-1"}}})
	}
	for name, tc := range map[string]struct {
		prepare func(*testing.T, *clitest.API)
		args    []string
		code    exit.Code
		want    string
	}{
		"before: one node is a warning":            {nil, []string{"--pre"}, exit.OK, CodeSpread},
		"before, strict":                           {nil, []string{"--pre", "--strict"}, exit.Warnings, CodeSpread},
		"before: a missing right fails":            {func(_ *testing.T, a *clitest.API) { a.Forbid("create", "deployments") }, []string{"--pre"}, exit.Unexpected, "create deployments.apps"},
		"before: what may not be seen is no error": {func(_ *testing.T, a *clitest.API) { a.Forbid("list", "nodes"); a.Forbid("list", "storageclasses") }, []string{"--pre"}, exit.OK, CodeUnseen},
		"nothing is installed":                     {nil, nil, exit.Unexpected, CodeNotInstalled},
		"all well":                                 {installed, []string{"--strict"}, exit.OK, "all "},
		"a role was cut": {func(t *testing.T, a *clitest.API) {
			installed(t, a)
			a.Change("clusterroles", "", manifests.Name, func(u *unstructured.Unstructured) { u.Object["rules"] = []any{} })
		}, nil, exit.Unexpected, CodeOperatorRules},
		"nobody leads": {func(t *testing.T, a *clitest.API) {
			installed(t, a)
			a.Change("leases", manifests.DefaultNamespace, manifests.Name, func(u *unstructured.Unstructured) { u.Object["spec"] = map[string]any{} })
		}, nil, exit.Unexpected, CodeLeaderLock},
		"a name that nobody has":   {installed, []string{"other"}, exit.Unexpected, "no availability group or instance of that name"},
		"--pre with a name":        {nil, []string{"--pre", "x"}, exit.Usage, ""},
		"an unknown output format": {nil, []string{"-o", "xml"}, exit.Usage, ""},
	} {
		a := clitest.Start(t)
		if err := a.AddYAML(nodeAndClass); err != nil {
			t.Fatal(err)
		}
		if tc.prepare != nil {
			tc.prepare(t, a)
		}
		out, err := call(t, a, tc.args...)
		if exit.Of(err) != tc.code || !strings.Contains(out, tc.want) {
			t.Errorf("%s: exit code %d, %v\n%s", name, exit.Of(err), err, out)
		}
		if w := a.Writes(); len(w) > 0 {
			t.Errorf("%s: wrote %v", name, w)
		}
	}
}

func TestCheck_JSONIsWholeWhenSomethingFailed(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	out, err := call(t, a, "-o", "json")
	var r Report
	if jerr := json.Unmarshal([]byte(out), &r); jerr != nil {
		t.Fatalf("%v\n%s", jerr, out)
	}
	if exit.Of(err) != exit.Unexpected || r.ExitCode != 1 || r.Status != Fail || r.Failed == 0 || r.Kind != "CheckReport" {
		t.Errorf("%v, %+v", err, r)
	}
	for _, row := range r.Rows {
		if (row.Status == OK) != (row.Code == "") {
			t.Errorf("%s: status %s, code %q", row.Name, row.Status, row.Code)
		}
	}
}
