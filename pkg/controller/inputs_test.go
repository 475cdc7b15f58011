package controller

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

func TestPasswordsAreMeasuredAgainstTheServersPolicy(t *testing.T) {
	t.Parallel()
	for password, want := range map[string]string{
		"YourStrong!Passw0rd": "", "Abcdefg1": "", "abcdefg1!": "", "ABCDEFG1!": "", "Abcdefgh!": "",
		"-$@'\"{}[]a1B":           "",
		strings.Repeat("aB1", 42): "",
		"":                        "empty", "aB1!": "fewer than 8", "abcdefgh": "fewer than three", "abcdefg1": "fewer than three",
		strings.Repeat("aB1", 43): "more than 128", "Abcdefg1\n!": "control character", "Abcdefg1\xff": "UTF-8",
		"Пароль123": "",
	} {
		got := passwordWeakness(password)
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", password, got, want)
		}
	}
	if got := trimPassword([]byte("Abcdefg1\r\n")); got != "Abcdefg1" {
		t.Errorf("one line end is not taken away: %q", got)
	}
	if got := trimPassword([]byte("Abcdefg1\n\n")); got != "Abcdefg1\n" {
		t.Errorf("more than one line end was taken away: %q", got)
	}
}

func FuzzPasswordWeaknessNeverTellsThePassword(f *testing.F) {
	f.Add("aB1!")
	f.Add("hunter2hunter2")
	f.Fuzz(func(t *testing.T, password string) {
		if len(password) > 10 && strings.Contains(passwordWeakness(password), password) {
			t.Errorf("the explanation contains %q", password)
		}
	})
}

func TestGeneratedPasswordsAreAcceptedAndDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 20 {
		p, err := newPassword()
		if err != nil {
			t.Fatal(err)
		}
		if why := passwordWeakness(p); why != "" || seen[p] {
			t.Errorf("%s, seen %v", why, seen[p])
		}
		seen[p] = true
	}
}

func TestAWeakPasswordIsRefusedWithCauseAndRemedyAndWithoutBeingTold(t *testing.T) {
	t.Parallel()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "shop-secret"}, Data: map[string][]byte{"SA_PASSWORD": []byte("geheim")}}
	sc := &scope{}
	checkPasswordSecret(secret, "SA_PASSWORD", sc)
	if !sc.fatal || len(sc.problems) != 1 || sc.problems[0].Reason != v1alpha1.ReasonWeakPassword {
		t.Fatalf("%+v", sc.problems)
	}
	m := sc.problems[0].Message
	if strings.Contains(m, "geheim") || !strings.Contains(m, "shop-secret") || !strings.Contains(m, "8 to 128") {
		t.Error(m)
	}
	sc = &scope{}
	checkPasswordSecret(secret, "password", sc)
	if !sc.fatal || sc.problems[0].Reason != v1alpha1.ReasonSecretKeyMissing {
		t.Errorf("%+v", sc.problems)
	}
}

func TestPodsThatDoNotComeUpAreExplained(t *testing.T) {
	t.Parallel()
	waitingFor := func(container, reason, message string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.NodeName = "n"
			p.Spec.Containers = []corev1.Container{{Name: "mssql", Image: "example.com/mssql:nope"}}
			p.Spec.InitContainers = []corev1.Container{{Name: "controller", Image: "example.com/operator:nope"}}
			c := corev1.ContainerStatus{Name: container, RestartCount: 4, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
			if container == "mssql" {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{c}
			} else {
				p.Status.InitContainerStatuses = []corev1.ContainerStatus{c}
			}
		}
	}
	lastEnd := func(text string, exit int32, reason string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: exit, Reason: reason, Message: text}
		}
	}
	for name, c := range map[string]struct {
		pod    *corev1.Pod
		reason string
		words  []string
	}{
		"all is well":          {testPod("a", "n", running), "", nil},
		"waits for its volume": {testPod("a", ""), "", nil},
		"no node": {testPod("a", "", func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/2 nodes are available: 2 Insufficient memory."}}
		}), v1alpha1.ReasonUnschedulable, []string{"Insufficient memory", "resources"}},
		"image missing":            {testPod("a", "n", waitingFor("mssql", "ImagePullBackOff", "not found")), v1alpha1.ReasonImagePullFailed, []string{"example.com/mssql:nope", "spec.image"}},
		"operator's image missing": {testPod("a", "n", waitingFor("controller", "ErrImagePull", "not found")), v1alpha1.ReasonImagePullFailed, []string{"example.com/operator:nope", "--operator-image"}},
		"configuration":            {testPod("a", "n", waitingFor("mssql", "CreateContainerConfigError", `secret "x" not found`)), v1alpha1.ReasonContainerConfigError, []string{`secret "x" not found`}},
		"server ends": {testPod("a", "n", waitingFor("mssql", "CrashLoopBackOff", "back-off"), lastEnd("line 1\nsqlservr: This program requires a machine with at least 2000 megabytes of memory.\n", 1, "Error")),
			v1alpha1.ReasonServerDoesNotStart, []string{"at least 2000 megabytes", "4 times", "exit code 1"}},
		"killed for memory": {testPod("a", "n", waitingFor("mssql", "CrashLoopBackOff", "back-off"), lastEnd("", 137, "OOMKilled")),
			v1alpha1.ReasonServerDoesNotStart, []string{"resources.limits.memory"}},
	} {
		p := diagnosePod(c.pod)
		if c.reason == "" {
			if p != nil {
				t.Errorf("%s: %+v", name, p)
			}
			continue
		}
		if p == nil || p.Reason != c.reason {
			t.Errorf("%s: %+v", name, p)
			continue
		}
		for _, w := range c.words {
			if !strings.Contains(p.Message, w) {
				t.Errorf("%s: %q is missing in %q", name, w, p.Message)
			}
		}
	}
}

func TestLastWordsAreShortHoweverLongTheLog(t *testing.T) {
	t.Parallel()
	if got := lastWords(strings.Repeat("a long line ü\n", 1000)); len(got) > 420 {
		t.Errorf("%d bytes", len(got))
	}
}
