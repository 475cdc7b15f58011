package change_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
)

func TestAnOrderIsTakenBackWhereItCanStillBeStopped(t *testing.T) {
	t.Parallel()
	restart := order(api.Request{ID: "r1", Kind: api.RequestRestart, By: "ann"})
	move := order(api.Request{ID: "r1", Kind: api.RequestFailover, Target: "sales-1"})
	answer := func(kind api.RequestKind, result string) func(*api.SQLServerAvailabilityGroup) {
		return func(g *api.SQLServerAvailabilityGroup) {
			g.Status.LastRequest = &api.LastRequestStatus{ID: "r1", Kind: string(kind), Result: result, Message: "still to restart: sales-0"}
		}
	}
	cancelled := map[string]any{"id": "r1", "kind": "restart", "result": api.RequestCancelled, "message": "taken back"}
	begun := map[string]any{"id": "r1", "kind": "failover", "result": api.RequestRunning}
	for name, c := range map[string]struct {
		group []func(*api.SQLServerAvailabilityGroup)
		// reply of the operator, once the order is gone.
		reply map[string]any
		args  string
		code  exit.Code
		says  string
		gone  bool
	}{
		"a restart that was not begun":     {[]func(*api.SQLServerAvailabilityGroup){restart}, cancelled, "cancel r1", exit.OK, "the operator has not begun", true},
		"a restart under way":              {[]func(*api.SQLServerAvailabilityGroup){restart, answer(api.RequestRestart, api.RequestRunning)}, cancelled, "cancel r1", exit.OK, "those that are left are not touched", true},
		"a move that was not begun":        {[]func(*api.SQLServerAvailabilityGroup){move}, nil, "cancel r1 --wait=false", exit.OK, "taken back r1", true},
		"a move that begins in the moment": {[]func(*api.SQLServerAvailabilityGroup){move}, begun, "cancel r1", exit.Conflict, "it goes on", true},
		"a move under way":                 {[]func(*api.SQLServerAvailabilityGroup){move, answer(api.RequestFailover, api.RequestRunning)}, nil, "cancel r1", exit.Refused, "not stopped half-way", false},
		"an order that is over":            {[]func(*api.SQLServerAvailabilityGroup){restart, answer(api.RequestRestart, api.RequestDone)}, nil, "cancel r1", exit.OK, "r1 is over: Done", false},
		"another id":                       {[]func(*api.SQLServerAvailabilityGroup){restart}, nil, "cancel r2", exit.NotFound, "no group or instance in namespace prod has an order r2", false},
		"no order at all":                  {nil, nil, "cancel r1", exit.NotFound, "has an order r1", false},
		"a trial":                          {[]func(*api.SQLServerAvailabilityGroup){restart}, nil, "cancel r1 --dry-run=client", exit.OK, "", false},
		"no id":                            {nil, nil, "cancel", exit.Usage, "the id of one order", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := clitest.Start(t)
			a.Add(t, sales(c.group...))
			a.React(func(_ string, u *unstructured.Unstructured) {
				if _, ordered := u.GetAnnotations()[api.AnnotationRequest]; !ordered && c.reply != nil {
					_ = unstructured.SetNestedMap(u.Object, c.reply, "status", "lastRequest") // a map of JSON can be set
				}
			})
			had := annotations(a)[api.AnnotationRequest] != ""
			got := quiet(t, a, strings.Fields(c.args)...)
			if got.code != c.code || !strings.Contains(strings.Join(strings.Fields(got.errOut), " "), c.says) {
				t.Errorf("want exit %d and %q\n%s", c.code, c.says, got)
			}
			if gone := had && annotations(a)[api.AnnotationRequest] == ""; gone != c.gone {
				t.Errorf("the order is gone: %v, want %v", gone, c.gone)
			}
		})
	}
}

func TestAnOrderOfAnInstanceIsTakenBack(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	i := reports()
	i.Annotations = map[string]string{api.AnnotationRequest: api.Request{ID: "r9", Kind: api.RequestRestart}.String()}
	a.Add(t, i)
	if got := quiet(t, a, "cancel", "r9", "--wait=false"); got.code != exit.OK {
		t.Error(got)
	}
	if text := a.Get("sqlserverinstances", "prod", "reports").GetAnnotations()[api.AnnotationRequest]; text != "" {
		t.Errorf("the order stands: %s", text)
	}
}
