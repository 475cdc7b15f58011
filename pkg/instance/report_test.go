//go:build linux

package instance

import (
	"encoding/json"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

func askReport(t *testing.T, b *bench) managerapi.Report {
	t.Helper()
	w := httptest.NewRecorder()
	b.m.serveReport(w, httptest.NewRequestWithContext(t.Context(), "GET", managerapi.PathReport, nil))
	var r managerapi.Report
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestReport_OfAPrimaryIsFreshAndNeverInventsANumber(t *testing.T) {
	t.Parallel()
	inBench(t, func(t *testing.T, b *bench) {
		b.run(10 * time.Second) // no reading of the loop's own yet
		r := askReport(t, b)
		if r.MeasuredAgoSeconds == nil || *r.MeasuredAgoSeconds > copiesFresh.Seconds() {
			t.Fatalf("the reading is not fresh: %+v", r)
		}
		if r.Role != ag.RolePrimary || !r.Holder || r.Epoch != 5 || r.RequiredToCommit == nil || *r.RequiredToCommit != 1 {
			t.Errorf("got %+v", r)
		}
		if lag, known := r.Lag("ag1-1"); lag != 7 || !known {
			t.Errorf("lag of ag1-1: %d, %v", lag, known)
		}
		if _, known := r.Lag("ag1-2"); known {
			t.Error("a lag that the server did not tell is known")
		}
		three, two, seven := int64(3<<10), int64(2<<10), int64(7)
		want := []managerapi.Copy{{
			Replica: "ag1-1", Database: "db", Sync: ag.SyncSynchronizing, Suspended: true, SuspendReason: "SUSPEND_FROM_USER",
			SendQueue: &three, RedoQueue: &two, LagSeconds: &seven, LogReuse: "AVAILABILITY_REPLICA",
		}}
		if diff := cmp.Diff(want, r.CopiesOf("ag1-1")); diff != "" {
			t.Error(diff)
		}
		if c := r.CopiesOf("ag1-2")[0]; c.SendQueue != nil || c.RedoQueue != nil || c.LagSeconds != nil {
			t.Errorf("a value that was not measured has a number: %+v", c)
		}
		if len(r.Seeding) != 1 || r.Seeding[0].Attempts != 2 || r.Seeding[0].TransferredBytes == nil || *r.Seeding[0].TransferredBytes != 610 {
			t.Errorf("seeding: %+v", r.Seeding)
		}
	})
}

func TestReport_SaysWhyItHasNoNumbers(t *testing.T) {
	t.Parallel()
	inBench(t, func(t *testing.T, b *bench) {
		b.run(10 * time.Second)
		b.m.view.with(func(v *view) { v.accepted, v.loginProblem = false, "still recovering" })
		r := askReport(t, b)
		if r.MeasuredAgoSeconds != nil || r.MeasureProblem != "still recovering" || len(r.Copies) != 0 {
			t.Errorf("got %+v", r)
		}
	})
}
