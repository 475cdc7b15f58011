package history_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/history"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

func run(t *testing.T, a *clitest.API, width int, args ...string) (string, string, error) {
	t.Helper()
	path := a.Kubeconfig(t, t.TempDir(), "prod")
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = &path
	s, _, out, errOut := iostreams.Test()
	s.Width = width
	cmd := history.New(factory.New(flags, "kubectl mssql"), s)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), errOut.String(), err
}

func withHistory(t *testing.T) *clitest.API {
	t.Helper()
	start := time.Date(2026, 8, 22, 8, 15, 17, 0, time.UTC)
	at := func(d time.Duration) metav1.Time { return metav1.NewTime(start.Add(d)) }
	g := &api.SQLServerAvailabilityGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "sales"}}
	g.Status.PrimaryReplica = "sales-1"
	g.Status.History = []api.RoleChange{
		{
			Kind: "forced", From: "sales-2", To: "sales-1", Cause: "requested by alice@example.com: node-c burnt", Epoch: 9, Result: "done",
			StartedAt: at(time.Hour), CompletedAt: at(time.Hour + 31*time.Second),
		},
		{
			Kind: "automatic", From: "sales-0", To: "sales-2", Cause: "its container ended (exit code 137)", Epoch: 8, Result: "done", StartedAt: at(0), CompletedAt: at(4 * time.Second),
			Timeline: []api.TimelineEntry{{At: at(0), What: "sales-2 wins: nominated"}, {At: at(2 * time.Second), What: "promote sales-2; fenced by death"}, {At: at(4 * time.Second), What: "sales-2 is PRIMARY"}},
		},
		{Kind: "planned", From: "sales-0", To: "sales-1", Cause: "requested", Epoch: 7, Result: "aborted", StartedAt: at(-time.Hour)},
	}
	a := clitest.Start(t)
	a.Add(t, g, &api.SQLServerAvailabilityGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "fresh"}})
	return a
}

func TestTable_HasTheNewestLast(t *testing.T) {
	t.Parallel()
	out, _, err := run(t, withHistory(t), 0, "sales")
	if err != nil {
		t.Fatal(err)
	}
	want := `  WHEN                  KIND       FROM     TO       TOOK  LOSS      RESULT   WHY
  2026-08-22 07:15:17Z  planned    sales-0  sales-1     ?  none      aborted  requested
  2026-08-22 08:15:17Z  automatic  sales-0  sales-2    4s  none      done     its container ended (exit code 137)
  2026-08-22 09:15:17Z  forced     sales-2  sales-1   31s  accepted  done     requested by alice@example.com: node-c burnt
`
	if out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}

func TestTable_FitsTheTerminal(t *testing.T) {
	t.Parallel()
	out, _, err := run(t, withHistory(t), 100, "sales")
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range strings.Split(out, "\n") {
		if n := len([]rune(l)); n > 100 {
			t.Errorf("%d columns: %q", n, l)
		}
	}
}

func TestVerbose_ShowsTheSteps(t *testing.T) {
	t.Parallel()
	out, _, err := run(t, withHistory(t), 0, "sales", "-v")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"2026-08-22 08:15:17Z  automatic failover  sales-0 -> sales-2  done\n  why   its container ended (exit code 137)\n  took  4s · loss none · epoch 8\n  ✔    +0s  sales-2 wins: nominated\n",
		"✔    +4s  sales-2 is PRIMARY", "took  31s · loss accepted",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
}

func TestJSON_KnowsWhoAndNeverInventsATime(t *testing.T) {
	t.Parallel()
	out, _, err := run(t, withHistory(t), 0, "sales", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var d history.Document
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	if d.Items[0].By != "alice@example.com" || *d.Items[1].TookSeconds != 4 || d.Items[2].TookSeconds != nil || len(d.Items[1].Steps) != 3 {
		t.Errorf("got %+v", d.Items)
	}
	if strings.Contains(out, `"steps": null`) {
		t.Error("a list is null")
	}
}

func TestErrors_HaveTheirCodes(t *testing.T) {
	t.Parallel()
	a := withHistory(t)
	for args, want := range map[string]exit.Code{"nobody": exit.NotFound, "sales -o xml": exit.Usage, "": exit.Usage, "fresh": exit.OK} {
		if _, _, err := run(t, a, 0, strings.Fields(args)...); exit.Of(err) != want {
			t.Errorf("%q: got %v, want code %d", args, err, want)
		}
	}
	if _, errOut, _ := run(t, a, 0, "fresh"); !strings.Contains(errOut, "No role change of fresh is recorded") {
		t.Errorf("an empty history says %q", errOut)
	}
}
