package logs_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/logs"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

func start(ctx context.Context, t *testing.T, a *clitest.API, color iostreams.ColorMode, args ...string) (out, errOut *clitest.Buffer, done chan error) {
	t.Helper()
	path := a.Kubeconfig(t, t.TempDir(), "prod")
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = &path
	out, errOut = &clitest.Buffer{}, &clitest.Buffer{}
	cmd := logs.New(factory.New(flags, "kubectl mssql"), &iostreams.IOStreams{In: &bytes.Buffer{}, Out: out, ErrOut: errOut, Color: color})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	done = make(chan error, 1)
	go func() { done <- cmd.ExecuteContext(ctx) }()
	return out, errOut, done
}

func run(t *testing.T, a *clitest.API, args ...string) (string, string, error) {
	t.Helper()
	out, errOut, done := start(t.Context(), t, a, iostreams.ColorNever, args...)
	err := <-done
	return out.String(), errOut.String(), err
}

func pod(name, container string, init ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: name, Labels: map[string]string{api.LabelInstance: "demo", api.LabelManagedBy: api.ManagedBy}}}
	p.Spec.Containers = []corev1.Container{{Name: container}}
	for _, n := range init {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: n})
	}
	return p
}

func withLogs(t *testing.T) *clitest.API {
	t.Helper()
	a := clitest.Start(t)
	op := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "controller-1", Labels: map[string]string{manifests.LabelPart: manifests.LabelPartValue}}}
	op.Spec.Containers = []corev1.Container{{Name: "controller"}}
	a.Add(t, pod("demo-0", "mssql", "controller"), pod("demo-1", "mssql"), op)
	a.Log("demo-0/controller", "2026-08-22T08:00:00.1Z {\"msg\":\"installed\",\"level\":\"info\"}\n")
	a.Log("demo-0/mssql", "2026-08-22T08:00:02Z 2026-08-22 08:00:02.00 spid9s      Error: 9002, Severity: 17, State: 9.\n"+
		"2026-08-22T08:00:02.001Z 2026-08-22 08:00:02.00 spid9s      The log of crm is full.\n"+
		"2026-08-22T08:00:05Z {\"msg\":\"Lease was renewed\",\"level\":\"debug\"}\n")
	a.Log("demo-1", "2026-08-22T08:00:01Z {\"msg\":\"renewal failed\",\"level\":\"ERROR\",\"attempt\":2}\n2026-08-22T08:00:03Z {\"msg\":\"slow\",\"level\":\"WARN\"}\n")
	a.Log("controller-1", "2026-08-22T08:00:04Z {\"msg\":\"promoted\",\"level\":\"info\",\"replica\":\"demo-1\"}\n2026-08-22T08:00:04Z {\"msg\":\"promoted\",\"level\":\"info\",\"replica\":\"other-1\"}\n")
	return a
}

func TestLogs_OfAllContainersAreMergedInTimeOrder(t *testing.T) {
	t.Parallel()
	out, errOut, err := run(t, withLogs(t), "demo")
	if err != nil {
		t.Fatal(err, errOut)
	}
	want := `2026-08-22 08:00:00.100Z  demo-0/controller  installed
2026-08-22 08:00:01.000Z  demo-1             renewal failed attempt=2
2026-08-22 08:00:02.000Z  demo-0             spid9s      Error: 9002, Severity: 17, State: 9.
2026-08-22 08:00:02.001Z  demo-0             spid9s      The log of crm is full.
2026-08-22 08:00:03.000Z  demo-1             slow
2026-08-22 08:00:04.000Z  operator           promoted replica=demo-1
`
	if out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}

func TestLogs_Filters(t *testing.T) {
	t.Parallel()
	a := withLogs(t)
	for args, want := range map[string]string{
		"demo --level error":        "renewal failed|Error: 9002|is full",
		"demo --level warn":         "renewal failed|Error: 9002|is full|slow",
		"demo --level debug":        "installed|renewal failed|Error: 9002|is full|slow|promoted|Lease was renewed",
		"demo --errorlog":           "Error: 9002|is full",
		"demo demo-1":               "renewal failed|slow",
		"demo --no-operator":        "installed|renewal failed|Error: 9002|is full|slow",
		"demo --timestamps=false":   "installed|renewal failed|Error: 9002|is full|slow|promoted",
		"demo demo-0 --level=error": "Error: 9002|is full",
	} {
		out, _, err := run(t, a, strings.Fields(args)...)
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		parts := strings.Split(want, "|")
		if n := strings.Count(out, "\n"); n != len(parts) {
			t.Errorf("%s: %d lines, want %d\n%s", args, n, len(parts), out)
		}
		for _, p := range parts {
			if !strings.Contains(out, p) {
				t.Errorf("%s: %q is missing\n%s", args, p, out)
			}
		}
	}
}

func TestLogs_ColourTheReplicas(t *testing.T) {
	t.Parallel()
	out, _, done := start(t.Context(), t, withLogs(t), iostreams.ColorAlways, "demo")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	colors := map[string]bool{}
	for _, l := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		_, rest, _ := strings.Cut(l, "  ")
		code, _, _ := strings.Cut(rest, "m")
		colors[code] = true
	}
	if len(colors) != 4 {
		t.Errorf("%d colours for four sources:\n%q", len(colors), out.String())
	}
}

func TestLogs_ErrorsHaveTheirCodes(t *testing.T) {
	t.Parallel()
	a := withLogs(t)
	for args, want := range map[string]exit.Code{
		"nobody": exit.NotFound, "demo demo-9": exit.NotFound, "demo --level loud": exit.Usage, "demo -f --previous": exit.Usage, "": exit.Usage, "demo --since -1s": exit.Usage,
	} {
		if _, _, err := run(t, a, strings.Fields(args)...); exit.Of(err) != want {
			t.Errorf("%q: got %v, want %d", args, err, want)
		}
	}
	a.Forbid("get", "pods/log")
	if _, _, err := run(t, a, "demo", "--no-operator"); exit.Of(err) != exit.Forbidden {
		t.Errorf("without pods/log: %v", err)
	}
}

func TestFollow_GoesOnThroughRunsAndWithNewPodsAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	a := withLogs(t)
	ctx, cancel := context.WithCancel(t.Context())
	out, _, done := start(ctx, t, a, iostreams.ColorNever, "demo", "-f")
	await := func(text string) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); !strings.Contains(out.String(), text); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%q is not there:\n%s", text, out.String())
			}
		}
	}
	await("promoted replica=demo-1")
	// The log ends with each answer of this server, as it does when a container ends.
	a.Log("demo-1", "2026-08-22T08:00:03Z {\"msg\":\"slow\",\"level\":\"WARN\"}\n2026-08-22T08:01:00Z {\"msg\":\"started anew\",\"level\":\"info\"}\n")
	await("started anew")
	a.Add(t, pod("demo-2", "mssql"))
	a.Log("demo-2", time.Now().Add(time.Hour).UTC().Format(time.RFC3339)+" {\"msg\":\"third replica\",\"level\":\"info\"}\n")
	await("third replica")
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"renewal failed", "slow", "started anew", "third replica", "is full"} {
		if n := strings.Count(out.String(), text); n != 1 {
			t.Errorf("%q was printed %d times\n%s", text, n, out.String())
		}
	}
}
