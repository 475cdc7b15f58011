package controller

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

func testPod(uid, node string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "shop-0", UID: types.UID(uid)}, Spec: corev1.PodSpec{NodeName: node}}
	for _, c := range change {
		c(p)
	}
	return p
}

func deleting(p *corev1.Pod) { now := metav1.Now(); p.DeletionTimestamp = &now }

func running(p *corev1.Pod) {
	p.Status.Phase = corev1.PodRunning
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "mssql", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
}

func terminated(reason string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "mssql", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Reason: reason}}}}
	}
}

func inPhase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func waiting(p *corev1.Pod) {
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "mssql", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}}
}

func TestAPodHasEndedOnlyWhenItsKubeletSaysSoOfEveryContainer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"never given to a node":                      {testPod("a", ""), true},
		"given to a node that reported nothing":      {testPod("a", "n", deleting), false},
		"running":                                    {testPod("a", "n", running), false},
		"running and told to stop":                   {testPod("a", "n", running, deleting), false},
		"terminated and told to stop":                {testPod("a", "n", terminated("Completed"), deleting), true},
		"terminated, and about to be started again":  {testPod("a", "n", terminated("Error")), false},
		"terminated, status unknown":                 {testPod("a", "n", terminated(reasonStatusUnknown), deleting), false},
		"evicted":                                    {testPod("a", "n", terminated("Error"), inPhase(corev1.PodFailed)), true},
		"failed, but a container is said to run":     {testPod("a", "n", running, inPhase(corev1.PodFailed)), false},
		"between two starts and told to stop":        {testPod("a", "n", waiting, deleting), false},
		"between two starts, phase final":            {testPod("a", "n", waiting, deleting, inPhase(corev1.PodFailed)), true},
		"rejected by its node before anything began": {testPod("a", "n", inPhase(corev1.PodFailed)), true},
	} {
		if got := podEnded(c.pod); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestAPodIsMadeOnlyAfterTheEndOfThePreviousOneIsProven(t *testing.T) {
	t.Parallel()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-shop-0"}}
	gone := claim.DeepCopy()
	now := metav1.Now()
	gone.DeletionTimestamp = &now
	last := lastPod{UID: "a", Node: "n", BootID: "b1"}
	ready := nodeView{Exists: true, Ready: true, BootID: "b1"}
	silent := nodeView{Exists: true, BootID: "b1"}
	rebooted := nodeView{Exists: true, BootID: "b2"}
	outOfService := nodeView{Exists: true, BootID: "b1", OutOfService: true}
	for name, c := range map[string]struct {
		facts  podFacts
		create bool
		node   string
		reason string
		ended  string
	}{
		"no claim":                             {facts: podFacts{}, reason: v1alpha1.ReasonVolumePending},
		"the claim is being deleted":           {facts: podFacts{Claim: gone}, reason: v1alpha1.ReasonVolumePending},
		"a new volume":                         {facts: podFacts{Claim: claim}, create: true},
		"the end was recorded":                 {facts: podFacts{Claim: claim, Last: lastPod{UID: "a", Node: "n", Ended: "seen"}, Node: silent}, create: true},
		"never given to a node":                {facts: podFacts{Claim: claim, Last: lastPod{UID: "a"}}, create: true, ended: "it was never given to a node"},
		"removed gracefully":                   {facts: podFacts{Claim: claim, Last: last, Node: ready, SeenEnd: true}, create: true, ended: "its node reported the end of its containers"},
		"deleted by force, node alive":         {facts: podFacts{Claim: claim, Last: last, Node: ready}, create: true, node: "n"},
		"deleted by force, node silent":        {facts: podFacts{Claim: claim, Last: last, Node: silent}, reason: v1alpha1.ReasonEndNotProven},
		"deleted by force, node object gone":   {facts: podFacts{Claim: claim, Last: last}, reason: v1alpha1.ReasonEndNotProven},
		"the node was started anew":            {facts: podFacts{Claim: claim, Last: last, Node: rebooted}, create: true, ended: "its node has been started anew since"},
		"the node is out of service":           {facts: podFacts{Claim: claim, Last: last, Node: outOfService}, create: true, ended: "its node is marked out of service"},
		"input not usable":                     {facts: podFacts{Claim: claim, Hold: true}},
		"input not usable, end still recorded": {facts: podFacts{Claim: claim, Last: last, Node: ready, SeenEnd: true, Hold: true}, ended: "its node reported the end of its containers"},
		"boot id never seen, node has another": {facts: podFacts{Claim: claim, Last: lastPod{UID: "a", Node: "n"}, Node: nodeView{Exists: true, BootID: "b9"}}, reason: v1alpha1.ReasonEndNotProven},
	} {
		c.facts.Replica = "shop-0"
		plan := planPod(c.facts)
		var reason, ended string
		if plan.Problem != nil {
			reason = plan.Problem.Reason
		}
		if plan.Record != nil {
			ended = plan.Record.Ended
		}
		if plan.Create != c.create || plan.Node != c.node || reason != c.reason || ended != c.ended {
			t.Errorf("%s: create=%v on %q, problem %q, recorded %q", name, plan.Create, plan.Node, reason, ended)
		}
	}
}

func TestTheClaimRemembersThePodThatUsesIt(t *testing.T) {
	t.Parallel()
	claim := &corev1.PersistentVolumeClaim{}
	node := nodeView{Exists: true, Ready: true, BootID: "b2"}
	for name, c := range map[string]struct {
		last lastPod
		pod  *corev1.Pod
		want *lastPod
	}{
		"a new pod":                               {lastPod{}, testPod("a", ""), &lastPod{UID: "a"}},
		"it was given to a node":                  {lastPod{UID: "a"}, testPod("a", "n"), &lastPod{UID: "a", Node: "n"}},
		"it runs there":                           {lastPod{UID: "a", Node: "n"}, testPod("a", "n", running), &lastPod{UID: "a", Node: "n", BootID: "b2"}},
		"nothing new":                             {lastPod{UID: "a", Node: "n", BootID: "b2"}, testPod("a", "n", running), nil},
		"it went on after a restart of its node":  {lastPod{UID: "a", Node: "n", BootID: "b1"}, testPod("a", "n", running), &lastPod{UID: "a", Node: "n", BootID: "b2"}},
		"it is ending and still runs":             {lastPod{UID: "a", Node: "n", BootID: "b2"}, testPod("a", "n", running, deleting), nil},
		"a container that only starts again":      {lastPod{UID: "a", Node: "n", BootID: "b2"}, testPod("a", "n", terminated("Error")), nil},
		"it has ended":                            {lastPod{UID: "a", Node: "n", BootID: "b2"}, testPod("a", "n", terminated("Error"), deleting), &lastPod{UID: "a", Node: "n", BootID: "b2", Ended: "its node reported the end of its containers"}},
		"another pod than the one that had ended": {lastPod{UID: "z", Node: "m", BootID: "b0", Ended: "yes"}, testPod("a", "n"), &lastPod{UID: "a", Node: "n"}},
	} {
		plan := planPod(podFacts{Replica: "shop-0", Claim: claim, Last: c.last, Pod: c.pod, Node: node})
		if diff := cmp.Diff(c.want, plan.Record); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if plan.Create {
			t.Errorf("%s: a second pod would be made", name)
		}
	}
}

func TestAPodGoesToTheSchedulerWhenItsClaimRemembersIt(t *testing.T) {
	t.Parallel()
	claim := &corev1.PersistentVolumeClaim{}
	held := func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gate}} }
	for name, c := range map[string]struct {
		facts podFacts
		want  bool
	}{
		"just made, and written down in this pass": {podFacts{Claim: claim, Pod: testPod("a", "", held)}, true},
		"written down before":                      {podFacts{Claim: claim, Pod: testPod("a", "", held), Last: lastPod{UID: "a"}}, true},
		"there is no claim to write it down on":    {podFacts{Pod: testPod("a", "", held)}, false},
		"told to stop":                             {podFacts{Claim: claim, Pod: testPod("a", "", held, deleting), Last: lastPod{UID: "a"}}, false},
		"released already":                         {podFacts{Claim: claim, Pod: testPod("a", ""), Last: lastPod{UID: "a"}}, false},
		"held back by somebody else":               {podFacts{Claim: claim, Pod: testPod("a", "", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/x"}} }), Last: lastPod{UID: "a"}}, false},
	} {
		if got := planPod(c.facts).Release; got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestAnEvictedPodIsTakenAwayOnceItHasEnded(t *testing.T) {
	t.Parallel()
	claim := &corev1.PersistentVolumeClaim{}
	evicted := testPod("a", "n", terminated("Error"), inPhase(corev1.PodFailed))
	if !planPod(podFacts{Claim: claim, Pod: evicted}).Remove {
		t.Error("it stays in the way")
	}
	if planPod(podFacts{Claim: claim, Pod: testPod("a", "n", running, inPhase(corev1.PodFailed))}).Remove {
		t.Error("taken away although a container may run")
	}
	if planPod(podFacts{Claim: claim, Pod: testPod("a", "n", running)}).Remove {
		t.Error("a running pod is taken away")
	}
}

func TestTheProblemTellsWhatToDoWhenAMachineIsOff(t *testing.T) {
	t.Parallel()
	plan := planPod(podFacts{Replica: "shop-0", Claim: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data-shop-0"}},
		Last: lastPod{UID: "a", Node: "worker-3", BootID: "b"}})
	if plan.Problem == nil {
		t.Fatal("no problem")
	}
	for _, want := range []string{"worker-3", "kubectl annotate pvc data-shop-0 " + v1alpha1.AnnotationLastPod + "-", corev1.TaintNodeOutOfService} {
		if !strings.Contains(plan.Problem.Message, want) {
			t.Errorf("the message does not say %q: %s", want, plan.Problem.Message)
		}
	}
}

func TestARecordSurvivesTheClaim(t *testing.T) {
	t.Parallel()
	want := lastPod{UID: "a", Node: "n", BootID: "b", Ended: "x"}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationLastPod: want.String()}}}
	got, err := parseLastPod(claim)
	if err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	claim.Annotations[v1alpha1.AnnotationLastPod] = "{"
	if _, err := parseLastPod(claim); err == nil {
		t.Error("a broken record was taken for none")
	}
}
