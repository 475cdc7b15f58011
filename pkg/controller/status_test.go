package controller

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/controller/desired"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

var testNow = time.Date(2026, 4, 5, 6, 7, 8, 0, time.UTC)

// threeInStep is a healthy group of three, shop-0 primary.
func threeInStep() groupFacts {
	g := &v1alpha1.SQLServerAvailabilityGroup{ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "sales", UID: "u", Generation: 3}}
	g.Spec.Replicas = make([]v1alpha1.AGReplicaSpec, 3)
	g.Status.InitializationComplete = true
	sc := newScope(desired.ForGroup(g), g)
	report := &Report{
		Authority: ag.Authority{Exists: true, Epoch: 4, Holder: ag.Run{Replica: "shop-0", PodUID: "p0", Nonce: "n"}, GroupID: "gid", Rule: ag.CommitRule{K: 1, Number: 2,
			Set: []ag.Member{{Replica: "shop-0"}, {Replica: "shop-1"}, {Replica: "shop-2"}}}},
		Memory: ag.Memory{Initialized: true},
	}
	for i := range 3 {
		name := g.ReplicaName(i)
		sc.pods[name] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{NodeName: "node-" + name},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}}
		r := ag.Replica{Name: name, Ordinal: i, Mode: ag.ModeSynchronous, Auto: true}
		r.Local = ag.Local{Reach: ag.ReachOK, Role: ag.RoleSecondary, Version: "16.0.1", GroupID: "gid", Sequence: 7}
		db := ag.Database{Name: "orders", State: ag.DatabaseOnline, Sync: ag.SyncSynchronized, Joined: true}
		if i == 0 {
			r.Local.Role = ag.RolePrimary
			r.Local.Databases = []ag.Database{db}
		} else {
			r.Remote = &ag.Remote{Connected: true, Role: ag.RoleSecondary, Databases: []ag.Database{db}}
			report.Decision.Readiness = append(report.Decision.Readiness, ag.Readiness{Replica: name, Ready: true})
		}
		report.Snapshot.Replicas = append(report.Snapshot.Replicas, r)
	}
	return groupFacts{Group: g, Scope: sc, Report: report, Now: testNow}
}

func statusOf(f groupFacts) v1alpha1.SQLServerAvailabilityGroupStatus {
	s := *f.Group.Status.DeepCopy()
	groupStatus(f, &s)
	return s
}

func TestThePhaseIsOneWordForWhatIsSeen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*groupFacts)
		phase  v1alpha1.Phase
		reason string
	}{
		"all is well": {func(*groupFacts) {}, v1alpha1.PhaseHealthy, "shop-0 is primary, all 3 replicas are in step"},
		"all are in step and nobody could take over": {func(f *groupFacts) {
			for i := range f.Group.Spec.Replicas {
				f.Group.Spec.Replicas[i].AvailabilityMode = v1alpha1.SynchronousCommit
			}
			f.Report.Decision.Readiness = nil
		}, v1alpha1.PhaseDegraded, "all replicas are in step, but there is no other replica that could be promoted"},
		"a secondary is behind": {func(f *groupFacts) {
			f.Report.Snapshot.Replicas[2].Remote.Databases[0].Sync = ag.SyncNotSynchronizing
		}, v1alpha1.PhaseDegraded, "shop-2 database orders is NOT SYNCHRONIZING"},
		"a declared database is not there yet": {func(f *groupFacts) {
			f.Group.Spec.Databases = []v1alpha1.DatabaseSpec{{Name: "orders"}, {Name: "invoices"}}
		}, v1alpha1.PhaseDegraded, "invoices on shop-0"},
		"a secondary's pod is gone": {func(f *groupFacts) {
			delete(f.Scope.pods, "shop-1")
			f.Report.Snapshot.Replicas[1].Local = ag.Local{Reach: ag.ReachNoPod}
		}, v1alpha1.PhaseDegraded, "shop-1 has no pod"},
		"one look at the primary failed": {func(f *groupFacts) {
			f.Report.Snapshot.Replicas[0].Local = ag.Local{Reach: ag.ReachTimeout}
		}, v1alpha1.PhaseDegraded, "did not answer"},
		"the primary is suspected": {func(f *groupFacts) {
			f.Report.Snapshot.Replicas[0].Local = ag.Local{Reach: ag.ReachTimeout}
			f.Report.Memory.PrimaryFailure = &ag.Failure{Strikes: 1}
		}, v1alpha1.PhaseFailingOver, "does not answer"},
		"the primary has ended and nobody may be promoted": {func(f *groupFacts) {
			f.Report.Snapshot.Replicas[0].Local = ag.Local{Reach: ag.ReachRefused}
			f.Report.Memory.HeadlessSince = testNow
			f.Report.Decision.Blocks = []ag.Block{{Reason: v1alpha1.ReasonNotEnoughAnswers, Rule: "R13", Message: "1 of 2 answers"}}
		}, v1alpha1.PhaseBlocked, "1 of 2 answers (R13)"},
		"nobody may be promoted": {func(f *groupFacts) {
			f.Report.Snapshot.Replicas[0].Local.Role = ag.RoleResolving
			f.Report.Decision.Blocks = []ag.Block{{Reason: v1alpha1.ReasonNotEnoughAnswers, Rule: "R13", Message: "1 of 2 answers"}}
		}, v1alpha1.PhaseBlocked, "1 of 2 answers (R13)"},
		"the primary is up and its commits wait for ever": {func(f *groupFacts) {
			f.Report.Decision.Blocks = []ag.Block{{Reason: ag.ReasonCommitPending, Replica: "shop-0", Message: "nothing is acknowledged until enough of shop-1 follow it again"}}
		}, v1alpha1.PhaseBlocked, "nothing is acknowledged until"},
		"a planned move": {func(f *groupFacts) {
			f.Report.Authority.Operation = &ag.Operation{Kind: ag.OperationSwitchover, Phase: ag.PhaseDemoting, Target: "shop-1"}
		}, v1alpha1.PhaseSwitchingOver, "switchover to shop-1: demoting"},
		"an automatic move": {func(f *groupFacts) {
			f.Report.Authority.Operation = &ag.Operation{Kind: ag.OperationFailover, Phase: ag.PhaseFencing, Target: "shop-1"}
		}, v1alpha1.PhaseFailingOver, "failover to shop-1: fencing"},
		"a database of the primary is lost": {func(f *groupFacts) {
			f.Report.Snapshot.Replicas[0].Local.Databases[0].State = ag.DatabaseSuspect
		}, v1alpha1.PhaseFailingOver, "orders on primary shop-0 is SUSPECT"},
		"paused": {func(f *groupFacts) { f.Scope.paused = true }, v1alpha1.PhasePaused, "stops every change"},
		"no input": {func(f *groupFacts) {
			f.Group.Status.InitializationComplete, f.Report, f.Scope.pods = false, nil, nil
			f.Scope.refuse(v1alpha1.ReasonSecretMissing, "Secret x is not there")
		}, v1alpha1.PhasePending, "Secret x is not there"},
		"the server does not start": {func(f *groupFacts) {
			f.Group.Status.InitializationComplete, f.Report = false, nil
			f.Scope.problem(Problem{Reason: v1alpha1.ReasonServerDoesNotStart, Replica: "shop-0", Message: "it ends"})
		}, v1alpha1.PhaseFailed, "shop-0: it ends"},
		"servers are starting": {func(f *groupFacts) {
			f.Group.Status.InitializationComplete, f.Report = false, nil
			delete(f.Scope.pods, "shop-2")
		}, v1alpha1.PhaseStarting, "2 of 3 servers accept logins"},
		"one server has not come for long": {func(f *groupFacts) {
			f.Group.Status.InitializationComplete, f.Report.Memory.Initialized = false, false
			f.Group.CreationTimestamp = metav1.NewTime(f.Now.Add(-longStart))
			f.Report.Setup.Waiting = []string{"shop-2 does not answer yet (Timeout)"}
			delete(f.Scope.pods, "shop-2")
		}, v1alpha1.PhaseStarting, "2 of 3 servers accept logins; it waits: shop-2 does not answer yet"},
		"the group is being made": {func(f *groupFacts) {
			f.Group.Status.InitializationComplete, f.Report.Memory.Initialized = false, false
		}, v1alpha1.PhaseBootstrapping, "being made"},
		"the bootstrap has failed": {func(f *groupFacts) {
			f.Group.Status.InitializationComplete, f.Report.Memory.Initialized = false, false
			f.Report.Memory.Setup = []ag.SetupStep{{Step: "create group", Attempts: bootstrapLimit, LastError: "Msg 35237"}}
		}, v1alpha1.PhaseFailed, "Msg 35237"},
	} {
		f := threeInStep()
		c.change(&f)
		s := statusOf(f)
		if s.Phase != c.phase || !strings.Contains(s.Reason, c.reason) {
			t.Errorf("%s: %s (%s)", name, s.Phase, s.Reason)
		}
	}
}

func TestAStatusWithoutNewsIsTheSameStatus(t *testing.T) {
	t.Parallel()
	f := threeInStep()
	first := statusOf(f)
	f.Group.Status = first
	f.Now = f.Now.Add(time.Hour)
	// What changes all the time on a busy server must not show.
	for i := range f.Report.Snapshot.Replicas {
		r := &f.Report.Snapshot.Replicas[i]
		r.Local.LeaseRemaining, r.Manager.StartedAgo = time.Duration(i)*time.Second, time.Minute
		if r.Remote != nil {
			r.Remote.Databases[0].HardenedLSN, r.Remote.Databases[0].SendQueueKB = "123", 42
		}
	}
	f.Report.Authority.Renewals, f.Report.Authority.Version = "later", "99"
	second := statusOf(f)
	if !equality.Semantic.DeepEqual(first, second) {
		t.Error(cmp.Diff(first, second))
	}
}

func TestEveryConditionHasAWayBack(t *testing.T) {
	t.Parallel()
	f := threeInStep()
	sick := func(f *groupFacts) {
		f.Report.Snapshot.Replicas[0].Local.Role = ag.RoleResolving
		f.Report.Snapshot.Replicas[2].Local.Role, f.Report.Snapshot.Replicas[2].Local.CommitPendingFor = ag.RolePrimary, 2*time.Minute
		f.Report.Decision.Blocks = []ag.Block{{Reason: v1alpha1.ConditionPrimaryCutOff, Message: "alive"}}
		f.Report.Decision.Readiness = nil
		f.Report.Memory.Recoveries = []ag.Recovery{{Replica: "shop-1", Rung: ag.RungBlocked}}
		f.Scope.problem(Problem{Reason: v1alpha1.ReasonUnschedulable, Message: "x"})
		f.Scope.growing = []string{"data-shop-0"}
		f.Group.Spec.Databases = []v1alpha1.DatabaseSpec{{Name: "missing"}}
	}
	want := statusOf(f)
	sickF := threeInStep()
	sick(&sickF)
	sickF.Group.Status = want
	turned := statusOf(sickF)
	changed := 0
	for _, c := range turned.Conditions {
		if findCondition(want.Conditions, c.Type).Status != c.Status {
			changed++
		}
	}
	if changed < 8 {
		t.Errorf("only %d conditions turned", changed)
	}
	back := threeInStep()
	back.Group.Status = turned
	healed := statusOf(back)
	for _, c := range healed.Conditions {
		w := findCondition(want.Conditions, c.Type)
		if c.Status != w.Status || c.Reason != w.Reason || c.Message != w.Message {
			t.Errorf("%s stayed %s/%s", c.Type, c.Status, c.Reason)
		}
		if c.ObservedGeneration != 3 {
			t.Errorf("%s: observedGeneration %d", c.Type, c.ObservedGeneration)
		}
	}
}

func TestWhatWasNotSeenIsEmptyAndNotOld(t *testing.T) {
	t.Parallel()
	f := threeInStep()
	f.Group.Status = statusOf(f)
	f.Report.Snapshot.Replicas[1].Local = ag.Local{Reach: ag.ReachTimeout}
	f.Report.Snapshot.Replicas[1].Remote = nil
	s := statusOf(f)
	r := s.ReplicaStatuses[1]
	if r.Role != "" || r.SynchronizationState != "" || r.Connected || r.Reachable || r.State != "unreachable" {
		t.Errorf("%+v", r)
	}
	if s.PrimaryReplica != "shop-0" || s.ReadyReplicas != "3/3" || s.SafeTargets != "2" || s.AGID != "gid" {
		t.Errorf("%+v", s)
	}
}

func TestEachTransitionIsToldOnce(t *testing.T) {
	t.Parallel()
	f := threeInStep()
	healthy := statusOf(f)
	f.Group.Status = healthy
	f.Scope.problem(Problem{Reason: v1alpha1.ReasonImagePullFailed, Replica: "shop-2", Message: "cannot be pulled"})
	sick := statusOf(f)
	events := transitions(healthy.Conditions, sick.Conditions, healthy.Phase, sick.Phase, sick.Reason)
	if len(events) != 1 || events[0].kind != corev1.EventTypeWarning || events[0].reason != v1alpha1.ReasonImagePullFailed {
		t.Errorf("%+v", events)
	}
	if again := transitions(sick.Conditions, sick.Conditions, sick.Phase, sick.Phase, sick.Reason); len(again) != 0 {
		t.Errorf("told again: %+v", again)
	}
	back := transitions(sick.Conditions, healthy.Conditions, sick.Phase, healthy.Phase, healthy.Reason)
	if len(back) != 1 || back[0].kind != corev1.EventTypeNormal {
		t.Errorf("%+v", back)
	}
}

func TestTheStatusLeavesTheEnginesFieldsAlone(t *testing.T) {
	t.Parallel()
	f := threeInStep()
	f.Group.Status.History = []v1alpha1.RoleChange{{Kind: "planned", To: "shop-0"}}
	f.Group.Status.Memory = &v1alpha1.MemoryStatus{HandledRequest: "r1"}
	f.Group.Status.LastRequest = &v1alpha1.LastRequestStatus{ID: "r1"}
	f.Group.Status.BootstrapAttempts = 2
	s := statusOf(f)
	text := func(x v1alpha1.SQLServerAvailabilityGroupStatus) string {
		b, err := json.Marshal([]any{x.History, x.Memory, x.LastRequest, x.BootstrapAttempts, x.InitializationComplete})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if text(s) != text(f.Group.Status) {
		t.Errorf("%s became %s", text(f.Group.Status), text(s))
	}
}
