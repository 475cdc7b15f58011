package chart_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests/chart"
)

// helmEnv is the path of a helm program; make chart-test sets it.
const helmEnv = "KUBECTL_MSSQL_HELM"

// helm runs the program without a cluster and without the user's own settings; values are
// its input.
func helm(t *testing.T, values string, args ...string) (stdout, stderr []byte, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), needsHelm(t), args...)
	home := t.TempDir()
	cmd.Env = []string{"HOME=" + home, "KUBECONFIG=" + filepath.Join(home, "none"), "PATH=" + os.Getenv("PATH")}
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(values), &out, &errOut
	err = cmd.Run()
	return out.Bytes(), errOut.Bytes(), err
}

// helmTemplate renders the archive as for a cluster of that version.
func helmTemplate(t *testing.T, archive, namespace, kubernetes, values string) (stdout, stderr []byte, err error) {
	t.Helper()
	return helm(t, values, "template", "operator", archive, "--namespace", namespace, "--kube-version", kubernetes, "--values", "-")
}

// packed is the released archive; without a helm program nobody needs it.
func packed(t *testing.T) string {
	t.Helper()
	needsHelm(t)
	b, err := chart.Package()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "chart.tgz")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func needsHelm(t *testing.T) string {
	t.Helper()
	program := os.Getenv(helmEnv)
	if program == "" {
		t.Skip(helmEnv + " names no helm program; make chart-test does")
	}
	return program
}

func TestHelm_RendersTheReleasedChartAsTheTestsDo(t *testing.T) {
	t.Parallel()
	archive := packed(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := manifests.Default()
			c.options(&o)
			out, errOut, err := helmTemplate(t, archive, o.Namespace, "1.36.0", c.values)
			if err != nil {
				t.Fatalf("%v\n%s", err, errOut)
			}
			objects, err := manifests.Parse(out)
			if err != nil {
				t.Fatal(err)
			}
			want, got := map[string]any{}, map[string]any{}
			for _, u := range render(t, o.Namespace, c.values) {
				want[u.GetKind()+" "+u.GetNamespace()+"/"+u.GetName()] = u.Object
			}
			for _, u := range objects {
				got[u.GetKind()+" "+u.GetNamespace()+"/"+u.GetName()] = u.Object
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Helm (+) renders something else than the test's functions (-):\n%s", diff)
			}
		})
	}
}

func TestHelm_RefusesValuesThatInstallWouldRefuse(t *testing.T) {
	t.Parallel()
	archive := packed(t)
	for values, complaint := range map[string]string{
		"replica: 3":                     "'replica'",
		"replicas: 0":                    "'/replicas'",
		"replicas: 10":                   "'/replicas'",
		"replicas: 2.5":                  "'/replicas'",
		"logLevel: trace":                "'/logLevel'",
		"image: {pullPolicy: Usually}":   "'/image/pullPolicy'",
		`image: {tag: "a b"}`:            "'/image/tag'",
		"image: {digest: abc}":           "'/image/digest'",
		`image: {repository: ""}`:        "'/image/repository'",
		"watchNamespaces: [2024]":        "'/watchNamespaces/0'",
		"watchNamespaces: [Sales]":       "'/watchNamespaces/0'",
		"imagePullSecrets: [mirror]":     "'/imagePullSecrets/0'",
		"networkPolicy: enabled":         "'/networkPolicy'",
		"tolerations: [dedicated]":       "'/tolerations/0'",
		"nodeSelector: {pool: 1}":        "'/nodeSelector/pool'",
		"tolerations: [{effect: Never}]": "'/tolerations/0/effect'",
	} {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			_, errOut, err := helmTemplate(t, archive, manifests.DefaultNamespace, "1.36.0", values)
			if err == nil || !strings.Contains(string(errOut), complaint) {
				t.Errorf("%v: %s", err, errOut)
			}
		})
	}
}

func TestHelm_RefusesAClusterThatCheckRefuses(t *testing.T) {
	t.Parallel()
	archive := packed(t)
	if _, errOut, err := helmTemplate(t, archive, "any", "1.29.9", ""); err == nil || !strings.Contains(string(errOut), "kubeVersion") {
		t.Errorf("%v: %s", err, errOut)
	}
	if _, errOut, err := helmTemplate(t, archive, "any", "1.30.0", ""); err != nil {
		t.Errorf("%v: %s", err, errOut)
	}
}

func TestHelm_LintFindsNothing(t *testing.T) {
	t.Parallel()
	out, errOut, err := helm(t, "", "lint", "--strict", packed(t))
	if err != nil {
		t.Errorf("%v\n%s%s", err, out, errOut)
	}
}

func TestPackage_IsTheSameEveryTime(t *testing.T) {
	t.Parallel()
	a, err := chart.Package()
	if err != nil {
		t.Fatal(err)
	}
	b, err := chart.Package()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Error("two archives of the same chart differ")
	}
}
