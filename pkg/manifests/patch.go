package manifests

import (
	"encoding/json"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// applyPatches changes the rendered objects in place. A patch that meets no object,
// or changes who the object is, is an error: a silent miss would be found out in production.
func applyPatches(objects []*unstructured.Unstructured, patches []string) error {
	if len(patches) == 0 {
		return nil
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("register kinds: %w", err)
		}
	}
	for i, text := range patches {
		if err := applyPatch(scheme, objects, text); err != nil {
			return fmt.Errorf("patch %d: %w", i+1, err)
		}
	}
	return nil
}

func applyPatch(scheme *runtime.Scheme, objects []*unstructured.Unstructured, text string) error {
	patch := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &patch.Object); err != nil {
		return fmt.Errorf("it is no YAML object: %w", err)
	}
	if patch.GetKind() == "" || patch.GetAPIVersion() == "" || patch.GetName() == "" {
		return fmt.Errorf("it needs apiVersion, kind and metadata.name of the object that it changes")
	}
	for _, u := range objects {
		if u.GroupVersionKind() != patch.GroupVersionKind() || u.GetName() != patch.GetName() ||
			(patch.GetNamespace() != "" && patch.GetNamespace() != u.GetNamespace()) {
			continue
		}
		return mergePatch(scheme, u, patch)
	}
	return fmt.Errorf("the installation has no %s %s", patch.GetKind(), patch.GetName())
}

func mergePatch(scheme *runtime.Scheme, u, patch *unstructured.Unstructured) error {
	typed, err := scheme.New(u.GroupVersionKind())
	if err != nil {
		return fmt.Errorf("patch %s: %w", Describe(u), err)
	}
	before, err := json.Marshal(u.Object)
	if err != nil {
		return fmt.Errorf("patch %s: %w", Describe(u), err)
	}
	change, err := json.Marshal(patch.Object)
	if err != nil {
		return fmt.Errorf("patch %s: %w", Describe(u), err)
	}
	after, err := strategicpatch.StrategicMergePatch(before, change, typed)
	if err != nil {
		return fmt.Errorf("patch %s: %w", Describe(u), err)
	}
	var out map[string]any
	if err := json.Unmarshal(after, &out); err != nil {
		return fmt.Errorf("patch %s: %w", Describe(u), err)
	}
	// A misspelt field would be refused by the API server, or dropped: say it here.
	checked, err := scheme.New(u.GroupVersionKind())
	if err != nil {
		return fmt.Errorf("patch %s: %w", Describe(u), err)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(out, checked, true); err != nil {
		return fmt.Errorf("patch %s: the result is no valid %s: %w", Describe(u), u.GetKind(), err)
	}
	u.Object = out
	return nil
}

// SplitPatches cuts a YAML stream into patches.
func SplitPatches(text []byte) ([]string, error) {
	docs, err := splitYAML(text)
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, len(docs))
	for _, d := range docs {
		u := map[string]any{}
		if err := yaml.Unmarshal(d, &u); err != nil {
			return nil, fmt.Errorf("read the patches: %w", err)
		}
		if len(u) == 0 {
			continue
		}
		normal, err := yaml.Marshal(u)
		if err != nil {
			return nil, fmt.Errorf("read the patches: %w", err)
		}
		out = append(out, string(normal))
	}
	return out, nil
}
