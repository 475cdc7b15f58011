package change_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
)

func reports() *api.SQLServerInstance {
	i := &api.SQLServerInstance{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.GroupVersion.String(), Kind: "SQLServerInstance"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "reports", UID: "i1", Generation: 2},
	}
	i.Spec.Storage.DataVolumeSize = resource.MustParse("10Gi")
	i.Spec.MSSQLConf = map[string]string{"memory.memorylimitmb": "1500"}
	i.Status.ObservedGeneration, i.Status.Phase = 2, api.PhaseRunning
	i.Status.Volume = &api.VolumeStatus{Requested: "10Gi", Capacity: "10Gi"}
	i.Status.Conditions = []metav1.Condition{
		{Type: api.ConditionRollingChange, Status: metav1.ConditionFalse, ObservedGeneration: 2},
		{Type: api.ConditionAvailable, Status: metav1.ConditionTrue, ObservedGeneration: 2},
	}
	return i
}

// instanceOperator answers in the same instant what is asked of an instance.
func instanceOperator(t *testing.T, a *clitest.API) {
	a.React(func(_ string, u *unstructured.Unstructured) {
		if u.GetKind() != "SQLServerInstance" {
			return
		}
		var i api.SQLServerInstance
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &i); err != nil {
			t.Error(err)
			return
		}
		if q, err := api.ParseRequest(i.Annotations[api.AnnotationRequest]); err == nil && q != nil {
			i.Status.LastRequest = &api.LastRequestStatus{ID: q.ID, Result: api.RequestDone}
		}
		meta.SetStatusCondition(&i.Status.Conditions, metav1.Condition{Type: api.ConditionAvailable, Reason: "Test",
			Status: map[bool]metav1.ConditionStatus{true: metav1.ConditionFalse, false: metav1.ConditionTrue}[i.Annotations[api.AnnotationFenced] != ""]})
		if _, held := api.Paused(i.Annotations); held {
			i.Status.Phase = api.PhasePaused
		}
		i.Status.Volume = &api.VolumeStatus{Requested: i.Spec.Storage.DataVolumeSize.String(), Capacity: i.Spec.Storage.DataVolumeSize.String()}
		m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&i)
		if err != nil {
			t.Error(err)
			return
		}
		u.Object = m
	})
}

func TestAnInstanceIsResizedAndRestartedToo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args string
		code exit.Code
		says string
	}{
		"restart, not asked":         {"restart reports", exit.NotConfirmed, "there is no other replica"},
		"restart":                    {"restart reports --yes", exit.OK, "restarted       reports-0"},
		"restart, its server named":  {"restart reports reports-0 --yes", exit.OK, "restarted       reports-0"},
		"restart of another server":  {"restart reports reports-1 --yes", exit.NotFound, "its only server is reports-0"},
		"larger volume":              {"resize reports --storage 20Gi --yes", exit.OK, "its data volume grows from 10Gi to 20Gi"},
		"smaller volume":             {"resize reports --storage 2Gi --yes", exit.Refused, "cannot make a volume smaller"},
		"memory that the spec fixes": {"resize reports --memory 4Gi --yes", exit.OK, "takes up to 1500 MB, which spec.mssqlConf fixes"},
		"so already":                 {"resize reports --storage 10Gi", exit.OK, "has that already"},
		"fence, not asked":           {"fence on reports reports-0", exit.NotConfirmed, "nobody can use reports"},
		"fence":                      {"fence on reports reports-0 --yes", exit.OK, "the server of reports-0 is stopped"},
		"fence of another server":    {"fence on reports reports-1 --yes", exit.NotFound, "its only server is reports-0"},
		"no fence":                   {"fence off reports reports-0", exit.OK, "not fenced"},
		"maintenance":                {"maintenance on reports --reason disk", exit.OK, "the operator leaves reports alone"},
		"no such name":               {"resize other --storage 20Gi --yes", exit.NotFound, "no availability group or instance other"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := clitest.Start(t)
			a.Add(t, reports())
			instanceOperator(t, a)
			got := quiet(t, a, strings.Fields(c.args)...)
			if got.code != c.code || !strings.Contains(strings.Join(strings.Fields(got.errOut), " "), strings.Join(strings.Fields(c.says), " ")) {
				t.Errorf("want exit %d and %q\n%s", c.code, c.says, got)
			}
			if wrote := len(a.Writes()) > 0; wrote != (c.code == exit.OK && name != "so already" && name != "no fence") {
				t.Errorf("writes: %v", a.Writes())
			}
		})
	}
}
