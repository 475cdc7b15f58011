package controller

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

func growingClaim(capacity, requested string, conditions ...corev1.PersistentVolumeClaimCondition) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-shop-1"}}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(requested)}
	c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(capacity)}
	c.Status.Conditions = conditions
	return c
}

func TestAVolumeIsMountedAnewOnceForEachSizeAndOnlyWhenItsNodeHadTime(t *testing.T) {
	t.Parallel()
	pending := func(ago time.Duration) corev1.PersistentVolumeClaimCondition {
		return corev1.PersistentVolumeClaimCondition{Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(testNow.Add(-ago))}
	}
	pod := func(size string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationVolumeSize: size}}}
	}
	for name, c := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		pod   *corev1.Pod
		want  bool
		again time.Duration
	}{
		"no claim":                         {nil, pod("10Gi"), false, 0},
		"no pod":                           {growingClaim("10Gi", "20Gi", pending(time.Hour)), nil, false, 0},
		"grown":                            {growingClaim("20Gi", "20Gi"), pod("10Gi"), false, 0},
		"the driver has not begun":         {growingClaim("10Gi", "20Gi"), pod("10Gi"), false, 0},
		"its node has time left":           {growingClaim("10Gi", "20Gi", pending(time.Minute)), pod("10Gi"), false, 2 * time.Minute},
		"its node had its time":            {growingClaim("10Gi", "20Gi", pending(4*time.Minute)), pod("10Gi"), true, 0},
		"the pod was made for that size":   {growingClaim("10Gi", "20Gi", pending(time.Hour)), pod("20Gi"), false, 0},
		"a pod of an operator before this": {growingClaim("10Gi", "20Gi", pending(time.Hour)), &corev1.Pod{}, true, 0},
	} {
		if got, again := needsRemount(c.claim, c.pod, testNow); got != c.want || again != c.again {
			t.Errorf("%s: %v, again in %s", name, got, again)
		}
	}
}

func TestTheStatusTellsForWhatAGrowingVolumeWaits(t *testing.T) {
	t.Parallel()
	condition := func(t corev1.PersistentVolumeClaimConditionType, message string) corev1.PersistentVolumeClaimCondition {
		return corev1.PersistentVolumeClaimCondition{Type: t, Status: corev1.ConditionTrue, Message: message}
	}
	for name, c := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		want  string
	}{
		"asked for":               {growingClaim("10Gi", "20Gi"), "from 10Gi to 20Gi: waits for the storage driver"},
		"the driver is at it":     {growingClaim("10Gi", "20Gi", condition(corev1.PersistentVolumeClaimResizing, "")), "from 10Gi to 20Gi: the storage driver is at it"},
		"the node has to grow it": {growingClaim("10Gi", "20Gi", condition(corev1.PersistentVolumeClaimFileSystemResizePending, "")), "from 10Gi to 20Gi: the volume has grown, its node grows the file system"},
		"it failed":               {growingClaim("10Gi", "20Gi", condition(corev1.PersistentVolumeClaimControllerResizeError, "quota")), "from 10Gi to 20Gi: the last try failed"},
	} {
		if got := growth(c.claim); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	f := threeInStep()
	f.Scope.claims["shop-1"] = growingClaim("10Gi", "20Gi", condition(corev1.PersistentVolumeClaimNodeResizeError, "no space"))
	f.Scope.grows("shop-1", growth(f.Scope.claims["shop-1"]))
	s := statusOf(f)
	if v := s.ReplicaStatuses[1].Volume; v == nil || v.Requested != "20Gi" || v.Capacity != "10Gi" || !strings.HasSuffix(v.Message, "no space") {
		t.Errorf("%+v", v)
	}
	if c := findCondition(s.Conditions, v1alpha1.ConditionStorageResizing); c.Status != metav1.ConditionTrue || !strings.Contains(c.Message, "shop-1 from 10Gi to 20Gi") {
		t.Errorf("%+v", c)
	}
	if s.ReplicaStatuses[0].Volume != nil {
		t.Error("a replica without a claim has a volume")
	}
}
