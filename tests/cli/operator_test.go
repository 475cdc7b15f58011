package cli_test

import (
	"encoding/json"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
)

// operator makes the API server answer requests as an operator does: `done`,
// `refused TEXT`, `failed TEXT`, `running`; and `healthy` brings up what is created.
func operator(ts *testscript.TestScript, a *clitest.API, how, message string) {
	switch how {
	case "healthy":
		a.React(func(verb string, u *unstructured.Unstructured) {
			phase := map[string]api.Phase{"SQLServerAvailabilityGroup": api.PhaseHealthy, "SQLServerInstance": api.PhaseRunning}[u.GetKind()]
			if phase != "" && verb == "create" {
				_ = unstructured.SetNestedField(u.Object, string(phase), "status", "phase") // a map of JSON can be set
			}
		})
	case "done", "refused", "failed", "running":
		result := map[string]string{"done": api.RequestDone, "refused": api.RequestRefused, "failed": api.RequestFailed, "running": api.RequestRunning}[how]
		a.React(func(_ string, u *unstructured.Unstructured) { answerRequest(u, result, message) })
	default:
		ts.Fatalf("unknown: api operator %s", how)
	}
}

func answerRequest(u *unstructured.Unstructured, result, message string) {
	text, has := u.GetAnnotations()[api.AnnotationRequest]
	if !has {
		return
	}
	req, err := api.ParseRequest(text)
	if err != nil || req == nil {
		return
	}
	last := map[string]any{"id": req.ID, "kind": string(req.Kind), "target": req.Target, "result": result, "message": message}
	_ = unstructured.SetNestedMap(u.Object, last, "status", "lastRequest") // a map of JSON can be set
	if result == api.RequestDone && req.Target != "" {
		_ = unstructured.SetNestedField(u.Object, req.Target, "status", "primaryReplica")
	}
}

// set changes one field of a stored object: set RESOURCE NS/NAME a.b.c VALUE (YAML).
func set(ts *testscript.TestScript, a *clitest.API, args []string) {
	ns, name, _ := strings.Cut(args[1], "/")
	var value any
	ts.Check(yaml.Unmarshal([]byte(args[3]), &value))
	ok := a.Change(args[0], ns, name, func(u *unstructured.Unstructured) {
		path := strings.Split(args[2], ".")
		if list, ok := value.([]any); ok {
			b, err := json.Marshal(list)
			ts.Check(err)
			var plain []any
			ts.Check(json.Unmarshal(b, &plain))
			value = plain
		}
		ts.Check(unstructured.SetNestedField(u.Object, value, path...))
	})
	if !ok {
		ts.Fatalf("there is no %s %s", args[0], args[1])
	}
}
