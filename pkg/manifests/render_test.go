package manifests

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func mustRender(t *testing.T, o Options) []*unstructured.Unstructured {
	t.Helper()
	objects, err := Render(o)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func TestRender_DefaultsAreWhatDeployHolds(t *testing.T) {
	t.Parallel()
	got, err := YAML(mustRender(t, Default()))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("../../deploy/install.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("deploy/install.yaml is not what Render gives; run make generate\n%s", cmp.Diff(string(want), string(got)))
	}
}

func TestRender_WatchedNamespacesGetRolesAndTheClusterRoleGoes(t *testing.T) {
	t.Parallel()
	o := Default()
	o.WatchNamespaces = []string{"b", "a", "a"}
	var roles []string
	for _, u := range mustRender(t, o) {
		if u.GetKind() == "Role" && u.GetName() == Name {
			roles = append(roles, u.GetNamespace())
		}
		if u.GetKind() == "ClusterRole" && u.GetName() == Name {
			t.Error("a ClusterRole over Secrets and pods is left although only namespaces are watched")
		}
	}
	if diff := cmp.Diff([]string{"a", "b"}, roles); diff != "" {
		t.Error(diff)
	}
}

func TestRender_RefusesWhatCannotRun(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Options){
		"no namespace":  func(o *Options) { o.Namespace = "" },
		"no image":      func(o *Options) { o.Image = "" },
		"zero replicas": func(o *Options) { o.Replicas = 0 },
	} {
		o := Default()
		change(&o)
		if _, err := Render(o); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestRender_NeverAsksForExecOrVolumeDeletion(t *testing.T) {
	t.Parallel()
	for _, r := range append(namespacedRules(), clusterRules()...) {
		for _, res := range r.resources {
			if res == "pods/exec" {
				t.Error("pods/exec is asked for")
			}
			if strings.HasPrefix(res, "persistentvolume") {
				for _, v := range r.verbs {
					if v == "delete" || v == "deletecollection" {
						t.Errorf("%s on %s is asked for: no automatic step deletes data", v, res)
					}
				}
			}
		}
		if r.why == "" {
			t.Errorf("a rule over %v has no reason", r.resources)
		}
	}
}
