package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// suspected: shop-0 is silent, and the engine waits for the suspicion against it.
func suspected(left time.Duration) groupFacts {
	f := threeInStep()
	f.Report.Now = testNow
	f.Report.Snapshot.Replicas[0].Local = ag.Local{Reach: ag.ReachTimeout}
	f.Report.Memory.PrimaryFailure = &ag.Failure{Strikes: 1}
	f.Report.Decision.Elected = "shop-1"
	f.Report.Decision.Findings = []ag.Finding{{Replica: "shop-0", Message: "it does not answer and its Lease is not renewed"}}
	f.Report.Decision.Wait = &ag.Wait{Until: testNow.Add(left), For: "the suspicion against shop-0"}
	return f
}

func TestWhatGoesOnIsInTheStatus(t *testing.T) {
	t.Parallel()
	got := statusOf(suspected(12 * time.Second))
	until := metav1.NewTime(testNow.Add(12 * time.Second))
	if diff := cmp.Diff(&v1alpha1.WaitStatus{For: "the suspicion against shop-0", Until: &until}, got.Waiting); diff != "" {
		t.Errorf("the wait:\n%s", diff)
	}
	want := []v1alpha1.FindingStatus{{Replica: "shop-0", Message: "it does not answer and its Lease is not renewed"}}
	if diff := cmp.Diff(want, got.Findings); diff != "" {
		t.Errorf("the findings:\n%s", diff)
	}
	if got.Elected != "shop-1" || got.Reason != "shop-0: it does not answer and its Lease is not renewed" {
		t.Errorf("elected %q, reason %q", got.Elected, got.Reason)
	}
}

func TestAWaitThatOnlyPassesWritesNothing(t *testing.T) {
	t.Parallel()
	f := suspected(12 * time.Second)
	first := statusOf(f)
	f.Group.Status = first
	f.Report.Now = testNow.Add(2 * time.Second)
	// The same end, computed two seconds later and rounded the other way.
	f.Report.Decision.Wait.Until = testNow.Add(13 * time.Second)
	if diff := cmp.Diff(first.Waiting, statusOf(f).Waiting); diff != "" {
		t.Errorf("the same wait is written anew:\n%s", diff)
	}
	f.Report.Decision.Wait.Until = testNow.Add(30 * time.Second)
	if got := statusOf(f).Waiting; got.Until.Time != testNow.Add(30*time.Second) {
		t.Errorf("a longer wait is not written: %+v", got)
	}
}

func TestAHealthyGroupWaitsForNothing(t *testing.T) {
	t.Parallel()
	f := threeInStep()
	f.Report.Now = testNow
	f.Report.Decision.Elected = "shop-1"
	f.Report.Decision.Wait = &ag.Wait{Until: testNow.Add(time.Hour), For: "primaryStabilityWindow"}
	f.Report.Decision.Findings = []ag.Finding{{Message: "all is well"}}
	got := statusOf(f)
	if got.Waiting != nil || got.Findings != nil || got.Elected != "shop-1" {
		t.Errorf("waiting %v, findings %v, elected %q", got.Waiting, got.Findings, got.Elected)
	}
}

func TestTheTargetOfAPromotionIsWhoIsElected(t *testing.T) {
	t.Parallel()
	f := suspected(time.Second)
	f.Report.Authority.Operation = &ag.Operation{Kind: ag.OperationFailover, Phase: ag.PhasePromoting, Target: "shop-2"}
	if got := statusOf(f); got.Elected != "shop-2" || got.Waiting == nil || got.Waiting.Until != nil {
		t.Errorf("elected %q, waiting %+v: a wait of one beat has no end that is worth a write", got.Elected, got.Waiting)
	}
}
