package check

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/reasons"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
)

var update = flag.Bool("update", false, "rewrite golden files")

var now = time.Date(2026, 8, 22, 8, 15, 17, 0, time.UTC)

// say gives the rows in one line each, to be compared.
func say(s *section) []string {
	out := []string{}
	for _, r := range s.rows {
		out = append(out, strings.TrimSpace(string(r.Status)+" "+r.Code+" "+r.Name+": "+r.Message))
	}
	return out
}

func node(name, arch, memory string, ready bool) corev1.Node {
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.NodeInfo.Architecture = arch
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
	if ready {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	}
	return n
}

func TestNodes_MustBeAbleToRunSQLServer(t *testing.T) {
	t.Parallel()
	cordoned := node("c", "amd64", "8Gi", true)
	cordoned.Spec.Unschedulable = true
	for name, tc := range map[string]struct {
		nodes []corev1.Node
		codes []string
	}{
		"two that can":              {[]corev1.Node{node("a", "amd64", "4Gi", true), node("b", "amd64", "4Gi", true)}, []string{""}},
		"only one":                  {[]corev1.Node{node("a", "amd64", "4Gi", true)}, []string{"", CodeSpread}},
		"only arm64":                {[]corev1.Node{node("a", "arm64", "4Gi", true)}, []string{CodeNoNode}},
		"none that is ready":        {[]corev1.Node{node("a", "amd64", "4Gi", false)}, []string{CodeNoNode}},
		"a cordoned one":            {[]corev1.Node{cordoned}, []string{CodeNoNode}},
		"too little memory":         {[]corev1.Node{node("a", "amd64", "1999Mi", true)}, []string{CodeLittleMemory}},
		"just enough memory, twice": {[]corev1.Node{node("a", "amd64", "2000Mi", true), node("b", "amd64", "2000Mi", true)}, []string{""}},
		"no node":                   {nil, []string{CodeNoNode}},
	} {
		s := &section{}
		judgeNodes(s, tc.nodes)
		var codes []string
		for _, r := range s.rows {
			codes = append(codes, r.Code)
		}
		if diff := cmp.Diff(tc.codes, codes); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func written(at time.Time) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{Manager: "x", Time: ptr.To(metav1.NewTime(at))}}
}

func TestClocks_AreComparedWithinOneObject(t *testing.T) {
	t.Parallel()
	lease := func(name string, off time.Duration) coordinationv1.Lease {
		return coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name, ManagedFields: written(now)},
			Spec:       coordinationv1.LeaseSpec{RenewTime: ptr.To(metav1.NewMicroTime(now.Add(off)))},
		}
	}
	s := &section{}
	judgeClocks(s, []coordinationv1.Lease{lease("behind", -time.Minute), lease("fine", 900*time.Millisecond), lease("ahead", 10*time.Second), {ObjectMeta: metav1.ObjectMeta{Name: "silent"}}})
	want := []string{
		"warn MSSQL5004 clock of ahead: is 10s ahead of the API server's",
		"warn MSSQL5004 clock of behind: is 1m0s behind the API server's",
	}
	if diff := cmp.Diff(want, say(s)); diff != "" {
		t.Error(diff)
	}
	s = &section{}
	judgeClocks(s, []coordinationv1.Lease{lease("fine", -2*time.Second)})
	if diff := cmp.Diff([]string{"ok  clocks: 1 nodes agree with the API server"}, say(s)); diff != "" {
		t.Error(diff)
	}
}

func TestClasses_NeedADefaultThatCanGrow(t *testing.T) {
	t.Parallel()
	class := func(name string, standard, grows bool, age time.Duration) storagev1.StorageClass {
		c := storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now.Add(-age))}, AllowVolumeExpansion: &grows}
		if standard {
			c.Annotations = map[string]string{defaultClass: "true"}
		}
		return c
	}
	for name, tc := range map[string]struct {
		classes []storagev1.StorageClass
		want    []string
	}{
		"none":       {nil, []string{"fail MSSQL5007 classes: the cluster has no StorageClass"}},
		"no default": {[]storagev1.StorageClass{class("a", false, true, 0)}, []string{"warn MSSQL5007 default class: none of a is the default"}},
		"all well":   {[]storagev1.StorageClass{class("a", true, true, 0)}, []string{"ok  default class: a", "ok  expansion: volumes of class a can grow"}},
		"of two defaults the newest, which cannot grow": {
			[]storagev1.StorageClass{class("old", true, true, time.Hour), class("new", true, false, time.Minute)},
			[]string{"ok  default class: new", "warn MSSQL5008 expansion: volumes of class new cannot grow"},
		},
	} {
		s := &section{}
		judgeClasses(s, tc.classes)
		if diff := cmp.Diff(tc.want, say(s)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestVersion_OldOnesAndUnreadableOnesFail(t *testing.T) {
	t.Parallel()
	for v, good := range map[string]bool{"v1.30.0": true, "v1.36.3+k3s1": true, "v1.29.9": false, "latest": false, "v2.0.0": true} {
		if err := newEnough(v); (err == nil) != good {
			t.Errorf("%s: %v", v, err)
		}
	}
}

func TestDefinition_StoredVersionsMustBeDefined(t *testing.T) {
	t.Parallel()
	established := []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
	crd := func(stored ...string) *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{
			Spec:   apiextensionsv1.CustomResourceDefinitionSpec{Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1"}, {Name: "v1beta1", Deprecated: true}}},
			Status: apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: stored, Conditions: established},
		}
	}
	for name, tc := range map[string]struct {
		crd  *apiextensionsv1.CustomResourceDefinition
		want string
	}{
		"all well":       {crd("v1"), "ok  x: served, stored as v1; deprecated: v1beta1"},
		"a lost version": {crd("v1alpha1", "v1"), "fail MSSQL5104 x: stored as v1alpha1, which is not defined"},
		"not served":     {&apiextensionsv1.CustomResourceDefinition{}, "fail MSSQL5103 x: the API server does not serve it"},
	} {
		s := &section{}
		judgeDefinition(s, "x", tc.crd)
		if diff := cmp.Diff([]string{tc.want}, say(s)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestLacking_ReadsWildcardsAndNamedResources(t *testing.T) {
	t.Parallel()
	want := []rbacv1.PolicyRule{{APIGroups: []string{"", "apps"}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}}}
	for name, tc := range map[string]struct {
		have []rbacv1.PolicyRule
		gaps int
	}{
		"the same":              {want, 0},
		"everything":            {[]rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}}, 0},
		"in two rules":          {[]rbacv1.PolicyRule{{APIGroups: []string{"", "apps"}, Resources: []string{"pods"}, Verbs: []string{"get"}}, {APIGroups: []string{"*"}, Resources: []string{"pods"}, Verbs: []string{"list"}}}, 0},
		"a verb is missing":     {[]rbacv1.PolicyRule{{APIGroups: []string{"", "apps"}, Resources: []string{"pods"}, Verbs: []string{"get"}}}, 2},
		"only for one name":     {[]rbacv1.PolicyRule{{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}, ResourceNames: []string{"a"}}}, 4},
		"nothing":               {nil, 4},
		"another group's rules": {[]rbacv1.PolicyRule{{APIGroups: []string{"batch"}, Resources: []string{"pods"}, Verbs: []string{"*"}}}, 4},
	} {
		if got := lacking(want, tc.have); len(got) != tc.gaps {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func group(phase api.Phase) *api.SQLServerAvailabilityGroup {
	g := &api.SQLServerAvailabilityGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "sales", UID: "u1"}}
	g.Spec.Replicas = make([]api.AGReplicaSpec, 3)
	g.Status = api.SQLServerAvailabilityGroupStatus{Phase: phase, PrimaryReplica: "sales-0", InitializationComplete: true, ReplicaStatuses: []api.ReplicaStatus{
		{Name: "sales-0", Role: "PRIMARY"}, {Name: "sales-1", FailoverReady: true}, {Name: "sales-2", FailoverRefusal: "R12: behind"},
	}}
	return g
}

func TestGroup_VerdictAndTakeOver(t *testing.T) {
	t.Parallel()
	blocked := group(api.PhaseBlocked)
	blocked.Status.Reason = "nobody answers"
	blocked.Status.ReplicaStatuses[1] = api.ReplicaStatus{Name: "sales-1", FailoverRefusal: "R13: too few answers"}
	blocked.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "argocd", APIVersion: api.Group + "/v1alpha0"}, {Manager: "kubectl", APIVersion: api.GroupVersion.String()}}
	for name, tc := range map[string]struct {
		g    *api.SQLServerAvailabilityGroup
		want []string
	}{
		"healthy": {group(api.PhaseHealthy), []string{"ok  verdict: Healthy", "ok  take-over: sales-1 could take over without loss"}},
		"blocked, written in an old version": {blocked, []string{
			"fail MSSQL5201 verdict: Blocked: nobody answers",
			"warn MSSQL5202 take-over: no replica could take over without loss: sales-1 R13: too few answers; sales-2 R12: behind",
			"warn MSSQL5109 API version: written in another version than kubectl-mssql.io/v1alpha1 by argocd (kubectl-mssql.io/v1alpha0)",
		}},
		"degraded": {group(api.PhaseDegraded), []string{"warn MSSQL5201 verdict: Degraded", "ok  take-over: sales-1 could take over without loss"}},
	} {
		s := &section{}
		judgeGroup(s, tc.g, "kubectl mssql")
		if diff := cmp.Diff(tc.want, say(s)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestLease_RenewalIsMeasuredByTheAPIServersClockAlone(t *testing.T) {
	t.Parallel()
	lease := func(t *testing.T, a ag.Authority, age time.Duration) *coordinationv1.Lease {
		t.Helper()
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "sales-primary"}}
		if err := state.Encode(l, a, 15*time.Second); err != nil {
			t.Fatal(err)
		}
		// The holder's own clock is a day off: it must not matter.
		l.Spec.RenewTime = ptr.To(metav1.NewMicroTime(now.Add(24 * time.Hour)))
		l.ManagedFields = written(now.Add(-age))
		return l
	}
	held := ag.Authority{Exists: true, AGUID: "u1", Epoch: 7, Holder: ag.Run{Replica: "sales-0", PodUID: "p", Nonce: "n"}}
	foreign, nobody, without := held, held, held
	foreign.AGUID, nobody.Holder, without.NoWriteLease = "u2", ag.Run{}, true
	for name, tc := range map[string]struct {
		a     ag.Authority
		age   time.Duration
		codes []string
	}{
		"renewed":                       {held, time.Second, []string{"", ""}},
		"silent for longer than D":      {held, time.Minute, []string{CodeNotRenewed, ""}},
		"of another resource":           {foreign, 0, []string{CodeNoLease}},
		"held by nobody":                {nobody, 0, []string{CodeNotRenewed, ""}},
		"without a working write lease": {without, 0, []string{"", CodeNoWriteLease}},
	} {
		s := &section{}
		judgeLease(s, lease(t, tc.a, tc.age), group(api.PhaseHealthy), now, "kubectl mssql")
		var codes []string
		for _, r := range s.rows {
			codes = append(codes, r.Code)
		}
		if diff := cmp.Diff(tc.codes, codes); diff != "" {
			t.Errorf("%s: %s\n%v", name, diff, say(s))
		}
	}
}

func TestCertificates_TheFirstToEndCounts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		left time.Duration
		code string
	}{
		"a year":  {365 * 24 * time.Hour, ""},
		"a month": {30*24*time.Hour + time.Second, ""},
		"a week":  {7 * 24 * time.Hour, CodeCertificate},
		"over":    {-time.Second, CodeCertificate},
	} {
		s := &section{}
		judgeCertificates(s, []ending{{"b/tls.crt", now.Add(10 * 365 * 24 * time.Hour)}, {"a/tls.crt", now.Add(tc.left)}}, now)
		if len(s.rows) != 1 || s.rows[0].Code != tc.code || !strings.Contains(s.rows[0].Message, "a/tls.crt") {
			t.Errorf("%s: %v", name, say(s))
		}
		if (tc.left <= 0) != (s.rows[0].Status == Fail) {
			t.Errorf("%s: %s", name, s.rows[0].Status)
		}
	}
}

func TestPods_SharedNodesAreNamed(t *testing.T) {
	t.Parallel()
	pod := func(name, node string, ready bool) corev1.Pod {
		p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "prod"}, Spec: corev1.PodSpec{NodeName: node}}
		if ready {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
		}
		return p
	}
	s := &section{}
	judgePods(s, []corev1.Pod{pod("sales-1", "a", true), pod("sales-0", "a", true), pod("sales-2", "b", false)}, []string{"sales-0", "sales-1", "sales-2"})
	want := []string{"warn MSSQL5105 replicas: 2 of 3 ready", "warn MSSQL5209 spread: sales-0 and sales-1 on a"}
	if diff := cmp.Diff(want, say(s)); diff != "" {
		t.Error(diff)
	}
	s = &section{}
	judgePods(s, []corev1.Pod{pod("one-0", "a", true)}, []string{"one-0"})
	if diff := cmp.Diff([]string{"ok  replicas: 1 of 1 ready"}, say(s)); diff != "" {
		t.Error(diff)
	}
}

func rows() []Row {
	s := &section{group: "Kubernetes"}
	s.ok("version", "v1.36.3")
	s.warn(CodeLocalClock, "clock of this machine", "is 12s ahead of the API server's", "set it by NTP")
	b := &section{group: "Storage"}
	b.fail(CodeNoStorageClass, "classes", "the cluster has\nno StorageClass", "install a storage driver")
	b.unseen("expansion", errors.New("forbidden: storageclasses"))
	return append(s.rows, b.rows...)
}

func TestScreens(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		file, format string
		rows         []Row
		color, ascii bool
	}{
		{"mixed.txt", formatText, rows(), false, false},
		{"mixed-ascii.txt", formatText, rows(), false, true},
		{"mixed-color.txt", formatText, rows(), true, false},
		{"fine.txt", formatText, rows()[:1], false, false},
		{"short.txt", formatShort, rows(), false, false},
		{"mixed.json", formatJSON, rows(), false, false},
		{"none.json", formatJSON, nil, false, false},
	} {
		s, _, out, errOut := iostreams.Test()
		s.ASCII = tc.ascii
		if tc.color {
			s.Color = iostreams.ColorAlways
		}
		if err := write(s, tc.format, summarize(tc.rows), "kubectl mssql"); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", tc.file)
		if *update {
			if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil { //nolint:gosec // a golden file
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), out.String()); diff != "" {
			t.Errorf("%s: %s", tc.file, diff)
		}
		if errOut.Len() > 0 {
			t.Errorf("%s: something on standard error: %s", tc.file, errOut)
		}
		if tc.format == formatJSON && !json.Valid(out.Bytes()) {
			t.Errorf("%s is no JSON", tc.file)
		}
	}
}

func TestCodes_AreAllExplained(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("codes.go")
	if err != nil {
		t.Fatal(err)
	}
	known := reasons.All()
	seen := 0
	for _, word := range strings.Fields(string(text)) {
		code := strings.Trim(word, `"`)
		if !strings.HasPrefix(code, "MSSQL5") {
			continue
		}
		seen++
		if !slices.ContainsFunc(known, func(e reasons.Entry) bool { return e.Code == code }) {
			t.Errorf("%s is not in pkg/reasons", code)
		}
	}
	if seen < 30 {
		t.Errorf("only %d codes were found", seen)
	}
}
