package upgrade

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// change is one object as it is and as it would be.
type change struct {
	object        *unstructured.Unstructured
	result        manifests.Result
	before, after string
}

// local compares without asking the API server to apply anything: what is rendered is
// laid over what is there.
func local(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) ([]change, error) {
	var out []change
	for _, u := range objects {
		live := &unstructured.Unstructured{Object: map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind()}}
		err := c.Get(ctx, client.ObjectKeyFromObject(u), live)
		if apierrors.IsNotFound(err) {
			live = nil
		} else if err != nil {
			return nil, fmt.Errorf("read %s: %w", manifests.Describe(u), err)
		}
		after := manifests.Bare(u)
		if live != nil {
			merged, _ := overlay(manifests.Bare(live).Object, after.Object).(map[string]any)
			after = &unstructured.Unstructured{Object: merged}
		}
		ch, err := compareObjects(u, live, after)
		if err != nil {
			return nil, err
		}
		out = append(out, ch)
	}
	return out, nil
}

// remote has the API server apply without storing.
func remote(ctx context.Context, c client.Client, objects []*unstructured.Unstructured, force bool) ([]change, error) {
	applied, err := manifests.Apply(ctx, c, objects, manifests.ApplyOptions{DryRun: true, ForceConflicts: force})
	if err != nil {
		return nil, err
	}
	out := make([]change, 0, len(applied))
	for _, a := range applied {
		ch, err := compareObjects(a.Object, a.Before, manifests.Bare(a.Object))
		if err != nil {
			return nil, err
		}
		out = append(out, ch)
	}
	return out, nil
}

func compareObjects(u, live, after *unstructured.Unstructured) (change, error) {
	ch := change{object: u, result: manifests.Created}
	text, err := yaml.Marshal(after.Object)
	if err != nil {
		return ch, fmt.Errorf("write %s: %w", manifests.Describe(u), err)
	}
	ch.after = string(text)
	if live == nil {
		return ch, nil
	}
	if text, err = yaml.Marshal(manifests.Bare(live).Object); err != nil {
		return ch, fmt.Errorf("write %s: %w", manifests.Describe(u), err)
	}
	ch.before, ch.result = string(text), manifests.Configured
	if ch.before == ch.after {
		ch.result = manifests.Unchanged
	}
	return ch, nil
}

// overlay lays b over a. Lists of named things are matched by name, in b's order, so
// that defaults of the API server inside them survive; other lists are replaced.
func overlay(a, b any) any {
	switch y := b.(type) {
	case map[string]any:
		x, ok := a.(map[string]any)
		if !ok {
			return b
		}
		out := make(map[string]any, len(x))
		for k, v := range x {
			out[k] = v
		}
		for k, v := range y {
			if old, ok := x[k]; ok {
				out[k] = overlay(old, v)
			} else {
				out[k] = v
			}
		}
		return out
	case []any:
		x, ok := a.([]any)
		if !ok {
			return b
		}
		named := map[string]any{}
		for _, v := range x {
			if n, ok := nameOf(v); ok {
				named[n] = v
			}
		}
		out := make([]any, len(y))
		for i, v := range y {
			out[i] = v
			if n, ok := nameOf(v); ok && named[n] != nil {
				out[i] = overlay(named[n], v)
			} else if !ok && len(x) == len(y) {
				out[i] = overlay(x[i], v)
			}
		}
		return out
	}
	return normal(a, b)
}

// normal keeps the old value when both are the same number in different Go types.
func normal(a, b any) any {
	if fmt.Sprint(a) == fmt.Sprint(b) {
		return a
	}
	return b
}

func nameOf(v any) (string, bool) {
	m, ok := v.(map[string]any)
	if !ok {
		return "", false
	}
	n, ok := m["name"].(string)
	return n, ok
}
