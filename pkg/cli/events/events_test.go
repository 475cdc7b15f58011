package events_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/events"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

func start(ctx context.Context, t *testing.T, a *clitest.API, args ...string) (out, errOut *clitest.Buffer, done chan error) {
	t.Helper()
	path := a.Kubeconfig(t, t.TempDir(), "prod")
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = &path
	out, errOut = &clitest.Buffer{}, &clitest.Buffer{}
	cmd := events.New(factory.New(flags, "kubectl mssql"), &iostreams.IOStreams{In: &bytes.Buffer{}, Out: out, ErrOut: errOut, Color: iostreams.ColorAuto})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	done = make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	return out, errOut, done
}

func run(t *testing.T, a *clitest.API, args ...string) (string, string, error) {
	t.Helper()
	out, errOut, done := start(t.Context(), t, a, args...)
	err := <-done
	return out.String(), errOut.String(), err
}

var noon = time.Date(2026, 8, 22, 12, 0, 0, 0, time.UTC)

func event(ns, name, kind, object, eventType, reason, message string, after time.Duration, count int32) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, InvolvedObject: corev1.ObjectReference{Kind: kind, Name: object, Namespace: ns},
		Type: eventType, Reason: reason, Message: message, Count: count, FirstTimestamp: metav1.NewTime(noon), LastTimestamp: metav1.NewTime(noon.Add(after)),
	}
}

func withEvents(t *testing.T) *clitest.API {
	t.Helper()
	a := clitest.Start(t)
	g := &api.SQLServerAvailabilityGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "sales"}}
	g.Spec.Replicas = make([]api.AGReplicaSpec, 2)
	a.Add(t, g,
		event("prod", "e1", "SQLServerAvailabilityGroup", "sales", "Warning", "NoSafeCandidate", "bring sales-0\nback", 3*time.Minute, 1),
		event("prod", "e2", "Pod", "sales-1", "Normal", "Scheduled", "to node-b", 0, 1),
		event("prod", "e3", "PersistentVolumeClaim", "data-sales-0", "Warning", "FailedMount", "no such device", 2*time.Minute, 7),
		event("prod", "e4", "Lease", "sales-primary", "Normal", "LeaseGranted", "to sales-1", time.Minute, 1),
		event("prod", "e5", "Pod", "sales-2", "Normal", "Scheduled", "of a group that is called sales-2", 0, 1),
		event("prod", "e6", "SQLServerAvailabilityGroup", "sales-1", "Normal", "PhaseChanged", "of another group", 0, 1),
		event("prod", "e7", "PersistentVolumeClaim", "data-sales-10", "Normal", "Bound", "of another group", 0, 1),
		&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "controller", Labels: map[string]string{manifests.LabelPart: manifests.LabelPartValue}}},
		event("system", "o1", "Pod", "controller-abc", "Warning", "BackOff", "restarting", 4*time.Minute, 2),
		event("system", "o2", "Pod", "something-else", "Normal", "Pulled", "an image", 4*time.Minute, 1),
	)
	return a
}

func TestEvents_AreThoseOfTheGroupInTimeOrder(t *testing.T) {
	t.Parallel()
	out, errOut, err := run(t, withEvents(t), "sales")
	if err != nil {
		t.Fatal(err, errOut)
	}
	want := `2026-08-22 12:00:00Z  Normal   pod/sales-1                   Scheduled: to node-b
2026-08-22 12:01:00Z  Normal   lease/sales-primary           LeaseGranted: to sales-1
2026-08-22 12:02:00Z  Warning  pvc/data-sales-0              FailedMount: no such device (7 times since 12:00:00Z)
2026-08-22 12:03:00Z  Warning  sqlag/sales                   NoSafeCandidate: bring sales-0 back [MSSQL2001]
2026-08-22 12:04:00Z  Warning  operator: pod/controller-abc  BackOff: restarting (2 times since 12:00:00Z)
`
	if out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}

func TestEvents_Filters(t *testing.T) {
	t.Parallel()
	a := withEvents(t)
	for args, want := range map[string]int{
		"sales --warnings": 3, "sales --no-operator": 4, "sales --since 1s": 0, "sales --warnings --no-operator": 2, "gone": 1,
	} {
		out, _, err := run(t, a, append(strings.Fields(args), "-o", "json")...)
		if err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		var d events.Document
		if err := json.Unmarshal([]byte(out), &d); err != nil {
			t.Fatal(err)
		}
		if len(d.Items) != want {
			t.Errorf("%s: %d events, want %d: %+v", args, len(d.Items), want, d.Items)
		}
	}
}

func TestEvents_WithoutTheRightToListThemIsForbidden(t *testing.T) {
	t.Parallel()
	a := withEvents(t)
	a.Forbid("list", "events")
	if _, _, err := run(t, a, "sales"); exit.Of(err) != exit.Forbidden {
		t.Errorf("got %v", err)
	}
	for _, args := range []string{"sales -o xml", "a b", "sales --timeout 3s", "sales -w --interval 1ms"} {
		if _, _, err := run(t, a, strings.Fields(args)...); exit.Of(err) != exit.Usage {
			t.Errorf("%s: got %v", args, err)
		}
	}
}

func TestWatch_PrintsWhatIsNew(t *testing.T) {
	t.Parallel()
	a := withEvents(t)
	ctx, cancel := context.WithCancel(t.Context())
	out, _, done := start(ctx, t, a, "sales", "-w", "--interval", "500ms", "--no-operator")
	await := func(text string) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); !strings.Contains(out.String(), text); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%q is not there:\n%s", text, out.String())
			}
		}
	}
	await("NoSafeCandidate")
	a.Add(t, event("prod", "e9", "Pod", "sales-0", "Normal", "Started", "the container", 5*time.Minute, 1))
	await("Started: the container")
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "NoSafeCandidate"); n != 1 {
		t.Errorf("an old event was printed %d times", n)
	}
}
