package report

import (
	"archive/tar"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// The planted secrets: none of them may be anywhere in the archive, in any form.
const (
	plantedSA       = "Pl4nted&SA'secret"
	plantedUnknown  = "Pl4ntedNobodyKnows!"
	plantedToken    = "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJwbDRudGVkIn0.cGw0bnRlZHNpZw"
	plantedKeyLine  = "MHcCAQEEIPl4ntedKeyMaterial0123456789abcdefghij"
	plantedKey      = "-----BEGIN EC PRIVATE KEY-----\n" + plantedKeyLine + "\n-----END EC PRIVATE KEY-----\n"
	plantedOperator = "pl4ntedoperatorpassword"
)

func forbiddenForms() []string {
	var out []string
	for _, s := range []string{plantedSA, plantedUnknown, plantedToken, plantedKeyLine, plantedKey, plantedOperator} {
		out = append(out, s, base64.StdEncoding.EncodeToString([]byte(s)))
	}
	return append(out, `Pl4nted\u0026SA'secret`, "Pl4nted&SA''secret", "Pl4nted%26SA%27secret", "Pl4nted", "pl4nted")
}

func labels() map[string]string {
	return map[string]string{api.LabelInstance: "sales", api.LabelManagedBy: api.ManagedBy, api.LabelName: api.AppName}
}

// cluster has a group whose objects, logs and events are full of secrets.
func cluster(t *testing.T) *clitest.API {
	t.Helper()
	a := clitest.Start(t)
	objects, err := manifests.Render(manifests.Default())
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range objects {
		a.Add(t, u)
	}
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "prod", Name: name, Labels: labels(), Annotations: map[string]string{
			"kubectl.kubernetes.io/last-applied-configuration": `{"env":[{"name":"X","value":"` + plantedUnknown + `"}]}`,
			"example.com/note": "log in with " + plantedUnknown,
		}}
	}
	group := &api.SQLServerAvailabilityGroup{TypeMeta: metav1.TypeMeta{APIVersion: api.GroupVersion.String(), Kind: "SQLServerAvailabilityGroup"}, ObjectMeta: meta("sales")}
	group.Spec.Replicas = make([]api.AGReplicaSpec, 2)
	group.Spec.AdditionalEnvVars = []corev1.EnvVar{{Name: "PROXY", Value: "http://u:" + plantedUnknown + "@proxy"}, {Name: "PLAIN", Value: plantedUnknown}}
	group.Status = api.SQLServerAvailabilityGroupStatus{Phase: api.PhaseBlocked, Reason: "nobody answers", PrimaryReplica: "sales-0",
		History:    []api.RoleChange{{Kind: "automatic", From: "sales-1", To: "sales-0", Cause: "password=" + plantedUnknown, Result: "done"}},
		Conditions: []metav1.Condition{{Type: "Available", Status: metav1.ConditionFalse, Reason: "NoPrimary", Message: "login failed: Password=" + plantedUnknown + ";"}}}
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta("sales-0"),
		Spec: corev1.PodSpec{
			InitContainers: []corev1.Container{{Name: api.InitContainerName}},
			Containers:     []corev1.Container{{Name: api.ContainerName, Env: []corev1.EnvVar{{Name: "HARMLESS", Value: plantedUnknown}, {Name: "MSSQL_PID", Value: "Developer"}}, Args: []string{"--token=" + plantedUnknown}}},
		},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: api.ContainerName, RestartCount: 1, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}},
	}
	secret := func(name string, data map[string]string) *corev1.Secret {
		s := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: meta(name), Data: map[string][]byte{}}
		for k, v := range data {
			s.Data[k] = []byte(v)
		}
		return s
	}
	config := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: meta("sales-config"),
		Data: map[string]string{"mssql.conf": "[network]\ntcpport = 1433\n", "connection": "Server=x;User Id=sa;Password=" + plantedUnknown + ";Encrypt=true", "password": plantedUnknown + "\nand more " + plantedUnknown + "\n"}}
	event := &corev1.Event{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}, ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "e1"},
		Reason: "Failed", Message: "cannot use token " + plantedToken, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "sales-0"}}
	foreign := &corev1.Event{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}, ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "e2"},
		Reason: "Failed", Message: "somebody else", InvolvedObject: corev1.ObjectReference{Kind: "Pod", Name: "billing-0"}}
	for _, o := range []runtime.Object{group, pod, config, event, foreign,
		secret("sales-sa", map[string]string{"SA_PASSWORD": plantedSA}), secret("sales-operator", map[string]string{"password": plantedOperator}),
		secret("sales-0-tls", map[string]string{"tls.key": plantedKey})} {
		a.Add(t, o)
	}
	a.Log("sales-0", strings.Join([]string{
		`2026-08-22T08:15:17Z {"level":"info","msg":"up","password":"` + plantedUnknown + `"}`,
		"2026-08-22T08:15:18Z 2026-08-22 08:15:18.00 Logon Login failed for 'sa' with " + plantedSA,
		"2026-08-22T08:15:19Z CREATE LOGIN x WITH PASSWORD = N'" + plantedUnknown + "'",
		"2026-08-22T08:15:20Z base64 " + base64.StdEncoding.EncodeToString([]byte(plantedSA)), "2026-08-22T08:15:21Z " + plantedKeyLine,
		"2026-08-22T08:15:22Z operator " + plantedOperator, "2026-08-22T08:15:23Z Recovery is complete.",
	}, "\n"))
	return a
}

func call(t *testing.T, a *clitest.API, args ...string) (string, error) {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(true)
	path := a.Kubeconfig(t, t.TempDir(), "prod")
	flags.KubeConfig = &path
	s, _, out, errOut := iostreams.Test()
	cmd := New(factory.New(flags, "kubectl mssql"), s)
	flags.AddFlags(cmd.PersistentFlags())
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	for _, bad := range forbiddenForms() {
		if strings.Contains(out.String()+errOut.String(), bad) {
			t.Errorf("%q is on the screen", bad)
		}
	}
	return strings.TrimSpace(out.String()), err
}

// files of an archive, without its root.
func files(t *testing.T, path string) map[string]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		_, name, _ := strings.Cut(h.Name, "/")
		out[name] = string(text)
	}
}

func TestReport_HoldsNoPlantedSecretInAnyForm(t *testing.T) {
	t.Parallel()
	// Without the right to read Secrets a line that says nothing of what it holds cannot be
	// known for a secret; everything that looks like one is taken out all the same.
	looks := []string{plantedUnknown, plantedToken, plantedKey}
	for name, tc := range map[string]struct {
		prepare   func(*clitest.API)
		forbidden []string
	}{
		"with the right to read Secrets": {func(*clitest.API) {}, forbiddenForms()},
		"without it":                     {func(a *clitest.API) { a.Forbid("list", "secrets"); a.Forbid("get", "secrets") }, looks},
	} {
		a := cluster(t)
		tc.prepare(a)
		path, err := call(t, a, "sales", "-f", filepath.Join(t.TempDir(), "r.tar.gz"), "--errorlog", "--timeout", "30s")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all := files(t, path)
		for file, text := range all {
			for _, bad := range tc.forbidden {
				if strings.Contains(text, bad) {
					t.Errorf("%s: %s holds %q", name, file, bad)
				}
			}
		}
		for _, want := range []string{"README.txt", "errors.txt", "history.txt", "events.txt", "status.json", "versions.json", "checks.json", "cluster/nodes.txt",
			"resources/resource.yaml", "resources/pods.yaml", "resources/configmaps.yaml", "logs/sales-0/mssql.log", "operator/mssql-system/deployment.yaml"} {
			if _, has := all[want]; !has {
				t.Errorf("%s: %s is missing", name, want)
			}
		}
		if strings.Contains(all["events.txt"], "somebody else") {
			t.Errorf("%s: events of others are in it", name)
		}
		if !strings.Contains(all["resources/pods.yaml"], "Developer") || !strings.Contains(all["logs/sales-0/mssql.log"], "Recovery is complete.") {
			t.Errorf("%s: too much was taken out", name)
		}
		if w := a.Writes(); len(w) > 0 {
			t.Errorf("%s: wrote %v", name, w)
		}
	}
}

func TestReport_TellsKeysAndSizesOfSecretsButNotTheirContents(t *testing.T) {
	t.Parallel()
	path, err := call(t, cluster(t), "sales", "-f", filepath.Join(t.TempDir(), "r.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	text := files(t, path)["resources/secrets.txt"]
	if !strings.Contains(text, "sales-sa") || !strings.Contains(text, "SA_PASSWORD  17 bytes") {
		t.Errorf("got %q", text)
	}
}

func TestReport_WhatCannotBeGatheredIsALineAndNeverAnAbort(t *testing.T) {
	t.Parallel()
	a := cluster(t)
	for _, r := range []string{"pods/log", "events", "nodes", "storageclasses", "secrets", "configmaps", "leases", "persistentvolumeclaims"} {
		a.Forbid("list", r)
		a.Forbid("get", r)
	}
	path, err := call(t, a, "sales", "-f", filepath.Join(t.TempDir(), "r.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	all := files(t, path)
	for _, want := range []string{"log of sales-0/mssql:", "previous log of sales-0/mssql:", "events of namespace prod:", "nodes:", "storage classes:", "configmaps:", "Secrets of namespace prod"} {
		if !strings.Contains(all["errors.txt"], want) {
			t.Errorf("%q is not in errors.txt:\n%s", want, all["errors.txt"])
		}
	}
	if !strings.Contains(all["README.txt"], "errors.txt says which and why") {
		t.Error("the README does not name errors.txt")
	}
	a = cluster(t)
	a.Forbid("get", "sqlserveravailabilitygroups")
	a.Forbid("get", "sqlserverinstances")
	if _, err := call(t, a, "sales", "-f", filepath.Join(t.TempDir(), "r.tar.gz")); err != nil {
		t.Errorf("without the right to read the resource: %v", err)
	}
}

func TestReport_CanBeReadWithoutUs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, err := call(t, cluster(t), "sales", "-o", dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(path, "README.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Report of prod/sales", "phase Blocked: nobody answers", "Available=False", "pod sales-0:", "1 restarts", "operator in mssql-system:", "resources/resource.yaml", "logs/POD/CONTAINER.log"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in the README:\n%s", want, text)
		}
	}
	err = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err == nil && p != dir && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("others may read %s", p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, cluster(t), "sales", "-o", dir, "-f", "x"); exit.Of(err) != exit.Usage {
		t.Errorf("-o and -f: %v", err)
	}
}

func TestReport_OfNothingIsNotFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := call(t, cluster(t), "other", "-f", filepath.Join(dir, "r.tar.gz")); exit.Of(err) != exit.NotFound {
		t.Errorf("%v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("something was written: %v", left)
	}
}

func TestArchive_NamesFromTheClusterStayInside(t *testing.T) {
	t.Parallel()
	a := newArchive("r", &Redactor{}, metav1.Now().Time)
	a.Add("logs/../../../etc/passwd", "", []byte("x"))
	a.Add(`logs\..\x`, "", []byte("x"))
	for _, p := range a.Paths() {
		if slices.Contains(strings.Split(p, "/"), "..") || strings.Contains(p, `\`) {
			t.Errorf("%q leads out", p)
		}
	}
}
