package status

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/events"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/renewal"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

var update = flag.Bool("update", false, "rewrite golden files")

var now = time.Date(2026, 8, 22, 8, 15, 35, 0, time.UTC)

func before(d time.Duration) time.Time { return now.Add(-d) }

func ago(d time.Duration) metav1.Time { return metav1.NewTime(before(d)) }

func ptr(v int64) *int64 { return &v }

const day = 24 * time.Hour

// group is a healthy group of three; the cases change it.
func group() (*api.SQLServerAvailabilityGroup, Input) {
	g := &api.SQLServerAvailabilityGroup{}
	g.Namespace, g.Name = "prod", "sales"
	for range 3 {
		g.Spec.Replicas = append(g.Spec.Replicas, api.AGReplicaSpec{AvailabilityMode: api.SynchronousCommit, FailoverMode: api.FailoverAutomatic, ReadableSecondary: true})
	}
	for _, n := range []string{"audit", "crm", "hr", "orders"} {
		g.Spec.Databases = append(g.Spec.Databases, api.DatabaseSpec{Name: n})
	}
	g.Spec.MSSQLConf = map[string]string{"memory.memorylimitmb": "8192"}
	st := &g.Status
	st.Phase, st.PrimaryReplica, st.InitializationComplete, st.Version = api.PhaseHealthy, "sales-0", true, "16.0.4195.2"
	for i, node := range []string{"node-a", "node-b", "node-c"} {
		r := api.ReplicaStatus{
			Name: g.ReplicaName(i), Role: "SECONDARY", AvailabilityMode: api.SynchronousCommit, SynchronizationState: "SYNCHRONIZED",
			Connected: true, Reachable: true, State: "synchronized", SequenceNumber: 25769803779, FailoverReady: true, Ready: true, Node: node,
		}
		if i == 0 {
			r.Role, r.State, r.FailoverReady, r.FailoverRefusal = "PRIMARY", "online", false, "it is the primary"
		}
		st.ReplicaStatuses = append(st.ReplicaStatuses, r)
	}
	st.CommitRule = &api.CommitRuleStatus{K: 1, Number: 3, Set: g.ReplicaNames()}
	st.Conditions = []metav1.Condition{{Type: api.ConditionAvailable, Status: metav1.ConditionTrue, Reason: api.ReasonAsExpected, LastTransitionTime: ago(12 * day)}}
	st.History = []api.RoleChange{{Kind: "planned", From: "sales-1", To: "sales-0", Result: "done", StartedAt: ago(12 * day), CompletedAt: ago(12 * day)}}
	in := Input{
		Group: g, Now: now, Plugin: "1.4.0", Self: "kubectl mssql", Pods: map[string]PodFacts{}, Reports: map[string]managerapi.Report{},
		Operator: &Operator{Namespace: "kubectl-mssql-system", Version: "1.4.0", Ready: 2, Replicas: 2},
		Lease: &LeaseFacts{Renewed: before(time.Second), Silent: time.Second, SilentKnown: true, Authority: ag.Authority{
			Exists: true, Holder: ag.Run{Replica: "sales-0", PodUID: "u"}, Epoch: 7, LastPrimary: "sales-0",
			Rule: ag.CommitRule{Number: 3, K: 1, Set: []ag.Member{{Replica: "sales-0"}, {Replica: "sales-1"}, {Replica: "sales-2"}}},
		}},
	}
	for i, name := range g.ReplicaNames() {
		in.Pods[name] = PodFacts{Created: before(41 * day), Node: st.ReplicaStatuses[i].Node, Ready: true, ReadySince: before(41 * day)}
		in.Reports[name] = report(name, i == 0)
	}
	return g, in
}

// report of a manager; only a primary speaks of all copies.
func report(name string, primary bool) managerapi.Report {
	fresh := 0.2
	expiry := now.Add(300 * day)
	r := managerapi.Report{
		Replica: name, Server: "running", Role: ag.RoleSecondary, Sequence: 25769803779, MeasuredAgoSeconds: &fresh,
		Endpoint: "STARTED", CertificateExpiry: &expiry,
	}
	if primary {
		r.Role, r.Holder = ag.RolePrimary, true
	}
	for _, db := range []string{"audit", "crm", "hr", "orders"} {
		for _, replica := range []string{"sales-0", "sales-1", "sales-2"} {
			c := managerapi.Copy{Replica: replica, Database: db, Sync: ag.SyncSynchronized}
			switch {
			case primary && replica == name:
				c.State, c.LogReuse = "ONLINE", "LOG_BACKUP"
			case primary:
				c.SendQueue, c.RedoQueue, c.LagSeconds = ptr(0), ptr(0), ptr(0)
				if replica == "sales-2" && db == "crm" {
					c.RedoQueue = ptr(12 << 10)
				}
			case replica == name:
				c.State, c.RedoQueue = "ONLINE", ptr(0)
			default:
				continue
			}
			r.Copies = append(r.Copies, c)
		}
	}
	return r
}

// lose takes a replica away: no answer, its pod not ready.
func lose(in Input, name string, since time.Duration, waiting string) {
	delete(in.Reports, name)
	p := in.Pods[name]
	p.Ready, p.ReadySince, p.Waiting = false, before(since), waiting
	in.Pods[name] = p
	in.Errors = append(in.Errors, Unseen{"MSSQL6001", name + ": no answer in time", "manager/" + name})
}

// edit changes the copies of one replica in a report.
func edit(in Input, reporter, replica string, change func(*managerapi.Copy)) {
	r := in.Reports[reporter]
	for i := range r.Copies {
		if r.Copies[i].Replica == replica {
			change(&r.Copies[i])
		}
	}
	in.Reports[reporter] = r
}

func screens() map[string]Input {
	return map[string]Input{
		"healthy": healthyScreen(), "failing-over": failingOverScreen(), "suspecting": suspectingScreen(), "led-elsewhere": ledElsewhereScreen(), "fencing": fencingScreen(), "blocked": blockedScreen(),
		"seeding": seedingScreen(), "fenced": fencedScreen(), "new": newScreen(), "async": asyncScreen(),
		"operator-down": operatorDownScreen(), "all-down": allDownScreen(), "few-rights": fewRightsScreen(), "one-unreachable": oneUnreachableScreen(),
		"paused": pausedScreen(), "operator-silent": operatorSilentScreen(), "primary-silent": primarySilentScreen(), "primary-denies": primaryDeniesScreen(),
		"nobody-asked": nobodyAskedScreen(), "moves-already": movesAlreadyScreen(),
		"unschedulable": unschedulableScreen(true), "unschedulable-unread": unschedulableScreen(false),
	}
}

func healthyScreen() Input {
	_, in := group()
	in.Budget = &Budget{Name: "sales", Allowed: 1, Healthy: 3, Wanted: 2}
	for i := range shownEvents + 2 {
		in.Events = append(in.Events, events.Event{Time: before(time.Duration(30-i) * time.Minute), Count: 1, Type: "Normal", Object: "pod/sales-0", Reason: "Pulled", Message: fmt.Sprintf("image %d", i)})
	}
	in.Events = append(in.Events, events.Event{Time: before(time.Minute), Count: 3, Type: "Warning", Object: "sqlag/sales", Reason: "ReplicaInTrouble", Message: "sales-1 did not\nanswer"})
	return in
}

func failingOverScreen() Input {
	g, in := group()
	st := &g.Status
	st.Phase, st.TargetPrimary, st.PrimaryReplica = api.PhaseFailingOver, "sales-1", ""
	st.Conditions[0].Status, st.Conditions[0].LastTransitionTime = metav1.ConditionFalse, ago(31*time.Second)
	a := &in.Lease.Authority
	a.Holder, a.Epoch = ag.Run{Replica: "sales-1", PodUID: "v"}, 8
	a.Operation = &ag.Operation{
		ID: "fo-7c1d", Kind: ag.OperationFailover, Phase: ag.PhasePromoting, From: "sales-0", Target: "sales-1", Owner: "the operator",
		Cause: "sales-0 lost (its container ended, exit code 137)", StartedAt: before(18 * time.Second), Deadline: before(18*time.Second - 2*time.Minute),
		Steps: []ag.Step{
			{At: before(18 * time.Second), What: "primary declared lost: its container ended (exit code 137)"},
			{At: before(17 * time.Second), What: "sales-1 chosen: sequence 25769803779, 2 of 2 needed answers"},
			{At: before(16 * time.Second), What: "old primary fenced: proof of death"},
		},
	}
	st.ReplicaStatuses[0] = api.ReplicaStatus{Name: "sales-0", State: "lost", Node: "node-a", AvailabilityMode: api.SynchronousCommit, FailoverRefusal: "R9: it lost the Lease", ForceRefusal: "R12: it does not answer"}
	st.ReplicaStatuses[1].Role, st.ReplicaStatuses[1].State, st.ReplicaStatuses[1].Ready = "RESOLVING", "promoting", false
	st.ReplicaStatuses[2].State, st.ReplicaStatuses[2].Connected = "disconnected", false
	lose(in, "sales-0", 31*time.Second, "container ended: Error, exit code 137")
	in.Errors = append(in.Errors, Unseen{"MSSQL6001", "sales-0: no answer in time", "manager/sales-0"})
	r := in.Reports["sales-1"]
	r.Role = ag.RoleResolving
	in.Reports["sales-1"] = r
	edit(in, "sales-1", "sales-1", func(c *managerapi.Copy) {
		if c.Database == "orders" {
			c.State, c.RedoQueue = "RECOVERING", ptr(1288490189)
		}
	})
	return in
}

// suspectingScreen: nobody can write and no move has begun.
func suspectingScreen() Input {
	in := failingOverScreen()
	st := &in.Group.Status
	st.Reason = "primary sales-0 does not answer (timeout)"
	st.Elected, st.Waiting = "sales-1", &api.WaitStatus{For: "the suspicion against sales-0", Until: new(ago(-12 * time.Second))}
	st.Findings = []api.FindingStatus{{Replica: "sales-0", Message: "it does not answer (timeout) and its Lease is not renewed: suspected since 08:15:27"}}
	st.ReplicaStatuses[1].Role, st.ReplicaStatuses[1].State = "SECONDARY", "synchronized"
	st.ReplicaStatuses[2].FailoverReady, st.ReplicaStatuses[2].FailoverRefusal = false, "R12: sales-1 would win"
	in.Lease.Authority.Operation = nil
	in.Lease.Authority.Holder = ag.Run{Replica: "sales-0", PodUID: "u"}
	r := report("sales-1", false)
	in.Reports["sales-1"] = r
	return in
}

// ledElsewhereScreen: all is well but where Kubernetes leads clients.
func ledElsewhereScreen() Input {
	_, in := group()
	in.WritesLeadTo, in.LeadsKnown = []string{"sales-1"}, true
	return in
}

// fencingScreen: the move waits until the old primary can no longer write.
func fencingScreen() Input {
	in := failingOverScreen()
	st := &in.Group.Status
	in.Lease.Authority.Operation.Phase = ag.PhaseFencing
	in.Lease.Authority.Operation.Cause = "sales-0: it does not answer (timeout) and its Lease is not renewed"
	in.Lease.Authority.Operation.Steps = []ag.Step{{At: before(18 * time.Second), What: "sales-1 nominated"}}
	st.Elected, st.Waiting = "sales-1", &api.WaitStatus{For: "the write lease of sales-0 to end", Until: new(ago(-3 * time.Second))}
	st.Findings = []api.FindingStatus{{Replica: "sales-0", Message: "R9: sales-0 lost the Lease and is not fenced yet: the full wait of 24s is not over"}}
	return in
}

func blockedScreen() Input {
	g, in := group()
	st := &g.Status
	st.Phase, st.Reason, st.PrimaryReplica = api.PhaseBlocked, "sales-1: the last primary sales-0 does not answer (R13)", ""
	st.Conditions[0].Status, st.Conditions[0].LastTransitionTime = metav1.ConditionFalse, ago(6*time.Minute+12*time.Second)
	st.Conditions = append(st.Conditions, metav1.Condition{
		Type: api.ConditionFailoverBlocked, Status: metav1.ConditionTrue, Reason: api.ReasonNoSafeCandidate,
		Message: "bring sales-0 back", LastTransitionTime: ago(5 * time.Minute),
	})
	st.CommitRule.K, in.Lease.Authority.Rule.K = 0, 0
	st.ReplicaStatuses[0] = api.ReplicaStatus{Name: "sales-0", State: "lost", Node: "node-a", AvailabilityMode: api.SynchronousCommit, FailoverRefusal: "R13: no answer", ForceRefusal: "R12: it does not answer"}
	r1 := &st.ReplicaStatuses[1]
	r1.FailoverReady, r1.FailoverRefusal, r1.State = false, "R13: the last primary does not answer, and commits waited for nobody", "disconnected"
	r2 := &st.ReplicaStatuses[2]
	r2.FailoverReady, r2.FailoverRefusal, r2.ForceRefusal, r2.State = false, "R12: 2 of 4 databases are not joined", "R12: database crm is INITIALIZING", "disconnected"
	st.Memory = &api.MemoryStatus{Blocks: []api.BlockStatus{
		{Reason: api.ReasonNoSafeCandidate, Rule: "R13", Replica: "sales-1", Message: "the last primary does not answer, and commits waited for nobody"},
		{Reason: api.ReasonNoSafeCandidate, Rule: "R12", Replica: "sales-2", Message: "2 of 4 databases are not joined"},
	}}
	lose(in, "sales-0", 6*time.Minute+12*time.Second, "pod Pending: volume data-sales-0 still attached to node-a")
	return in
}

func seedingScreen() Input {
	g, in := group()
	st := &g.Status
	st.Phase, st.Reason = api.PhaseDegraded, "sales-2 database audit is NOT SYNCHRONIZING"
	r := &st.ReplicaStatuses[2]
	r.State, r.FailoverReady, r.Ready, r.SynchronizationState = "seeding", false, false, "NOT SYNCHRONIZING"
	r.FailoverRefusal, r.ForceRefusal = "R12: 2 of 4 databases are not joined", "R12: database crm is INITIALIZING"
	p := in.Pods["sales-2"]
	p.Created, p.Ready = before(35*time.Minute), false
	in.Pods["sales-2"] = p
	edit(in, "sales-0", "sales-2", func(c *managerapi.Copy) {
		if c.Database == "crm" || c.Database == "audit" {
			c.Sync, c.SendQueue, c.RedoQueue, c.LagSeconds = ag.SyncNotSynchronizing, nil, nil, nil
		}
	})
	edit(in, "sales-0", "sales-0", func(c *managerapi.Copy) {
		if c.Database == "crm" {
			c.LogReuse = "AVAILABILITY_REPLICA"
		}
	})
	const gb = 1 << 30
	start := before(35*time.Minute + 33*time.Second)
	rep := in.Reports["sales-0"]
	rep.Seeding = []managerapi.Seeding{
		{Replica: "sales-2", Database: "crm", Source: true, State: "SEEDING", Attempts: 1, StartedAt: &start, TransferredBytes: ptr(1126 * gb), SizeBytes: ptr(1843 * gb), BytesPerSecond: ptr(310 << 20)},
		{Replica: "sales-2", Database: "audit", Source: true, State: "CHECK_IF_SEEDING_NEEDED", Attempts: 2, StartedAt: &start, Failure: "Seeding Check Message Timeout"},
		{Replica: "sales-2", Database: "orders", Source: true, State: "COMPLETED", Attempts: 1, StartedAt: &start, CompletedAt: &start},
	}
	in.Reports["sales-0"] = rep
	return in
}

func fencedScreen() Input {
	g, in := group()
	st := &g.Status
	st.Phase, st.Reason = api.PhaseDegraded, "sales-2 is not ready"
	since := ago(3 * time.Hour)
	r := &st.ReplicaStatuses[2]
	r.Role, r.State, r.Fenced, r.FailoverReady, r.Ready, r.Reachable = "", "fenced", true, false, false, false
	r.Fence = &api.FenceStatus{By: "alice@example.com", Reason: "disk latency on node-c, ticket 4711", Since: &since}
	r.FailoverRefusal, r.ForceRefusal = "R12: it is fenced", "R12: it is fenced"
	rep := in.Reports["sales-2"]
	rep.Server, rep.Role, rep.Copies, rep.MeasuredAgoSeconds, rep.Problem = "fenced", ag.RoleUnknown, nil, nil, "this replica is fenced"
	in.Reports["sales-2"] = rep
	edit(in, "sales-0", "sales-2", func(c *managerapi.Copy) {
		c.Sync, c.RedoQueue, c.LagSeconds = ag.SyncNotSynchronizing, nil, ptr(3*3600)
		c.SendQueue = ptr(0)
		if c.Database == "orders" {
			c.SendQueue = ptr(38 << 30)
		}
	})
	edit(in, "sales-0", "sales-0", func(c *managerapi.Copy) {
		if c.Database == "orders" {
			c.LogReuse = "AVAILABILITY_REPLICA"
		}
	})
	return in
}

// pausedScreen: a person told the operator to leave the group alone.
func pausedScreen() Input {
	g, in := group()
	g.Annotations = map[string]string{
		api.AnnotationPaused:    "true",
		api.AnnotationPauseNote: `{"by":"alice@example.com","reason":"storage is moved, ticket 4711","since":"2026-08-22T05:15:35Z"}`,
	}
	g.Status.Phase, g.Status.Reason = api.PhasePaused, "the annotation stops every change; the servers keep running"
	return in
}

func newScreen() Input {
	g, in := group()
	g.Status = api.SQLServerAvailabilityGroupStatus{}
	in.Pods, in.Reports, in.Lease = nil, nil, nil
	return in
}

// asyncScreen: one replica far away, and a witness.
func asyncScreen() Input {
	g, in := group()
	g.Spec.Replicas[2].AvailabilityMode = api.AsynchronousCommit
	g.Spec.Replicas = append(g.Spec.Replicas, api.AGReplicaSpec{AvailabilityMode: api.ConfigurationOnly})
	g.Status.ReplicaStatuses[2].AvailabilityMode = api.AsynchronousCommit
	r := &g.Status.ReplicaStatuses[2]
	r.FailoverReady, r.FailoverRefusal, r.State, r.SynchronizationState = false, "R12: asynchronous", "synchronizing", "SYNCHRONIZING"
	g.Status.ReplicaStatuses = append(g.Status.ReplicaStatuses, api.ReplicaStatus{
		Name: "sales-3", Role: "SECONDARY", AvailabilityMode: api.ConfigurationOnly, State: "witness", Ready: true, Reachable: true, Connected: true,
		Node: "node-with-a-very-long-name.europe-west1-b.internal", SequenceNumber: 25769803779,
	})
	in.Pods["sales-3"] = PodFacts{Created: before(day), Ready: true}
	in.Reports["sales-3"] = managerapi.Report{Replica: "sales-3", Server: "running", Role: ag.RoleSecondary, Sequence: 25769803779}
	edit(in, "sales-0", "sales-2", func(c *managerapi.Copy) {
		c.Sync, c.LagSeconds, c.SendQueue = ag.SyncSynchronizing, ptr(42), ptr(3<<20)
	})
	return in
}

// operatorDownScreen: the resource is old, the servers moved on by hand.
func operatorDownScreen() Input {
	_, in := group()
	in.Operator = &Operator{Namespace: "kubectl-mssql-system", Version: "1.4.0", Replicas: 2}
	in.Reports["sales-0"], in.Reports["sales-1"] = report("sales-0", false), report("sales-1", true)
	return in
}

// allDownScreen: neither the operator nor any server answers.
func allDownScreen() Input {
	in := operatorDownScreen()
	in.Reports = map[string]managerapi.Report{}
	for _, name := range []string{"sales-0", "sales-1", "sales-2"} {
		lose(in, name, time.Minute, "")
		in.Errors = append(in.Errors, Unseen{"MSSQL6001", name + ": no answer in time", "manager/" + name})
	}
	return in
}

// fewRightsScreen: the user may get the resource and nothing else.
func fewRightsScreen() Input {
	_, in := group()
	in.Pods, in.Reports, in.Lease, in.Operator = nil, nil, nil, nil
	in.Errors = []Unseen{
		{"MSSQL6002", "pods: you may not list pods in namespace prod", "pods"},
		{"MSSQL6002", "queues, lag and seeding: you may neither get pods/proxy nor create pods/portforward in namespace prod", "managers"},
	}
	return in
}

// oneUnreachableScreen: the primary's manager does not answer though its pod is ready.
func oneUnreachableScreen() Input {
	_, in := group()
	delete(in.Reports, "sales-0")
	in.Errors = append(in.Errors, Unseen{"MSSQL6001", "sales-0: the API server cannot reach its instance manager", "manager/sales-0"})
	return in
}

// silentLock is that of an operator that was not heard of for so long.
func silentLock(in Input, d time.Duration) {
	in.Operator.lock = renewal.Lock{Age: d, Known: true, Limit: 12 * time.Second}
	in.Operator.Silent = inSeconds(d)
}

// operatorSilentScreen: the API server is back, its last word is that all is well, and the
// primary is dead. The operator has not looked yet.
func operatorSilentScreen() Input {
	_, in := group()
	silentLock(in, 41*time.Second)
	in.Lease.Silent = 33 * time.Second
	lose(in, "sales-0", 30*time.Second, "container ended: Error, exit code 137")
	return in
}

// primarySilentScreen: an operator acts, and has not said yet that the primary is gone.
func primarySilentScreen() Input {
	_, in := group()
	silentLock(in, time.Second)
	in.Lease.Silent = 12 * time.Second
	lose(in, "sales-0", 12*time.Second, "")
	return in
}

// primaryDeniesScreen: somebody has moved the primary by hand, and the old one's manager
// has stopped renewing.
func primaryDeniesScreen() Input {
	_, in := group()
	in.Lease.Silent = 7 * time.Second
	in.Reports["sales-0"], in.Reports["sales-1"] = report("sales-0", false), report("sales-1", true)
	return in
}

// movesAlreadyScreen: a move has begun, and the operator ended before it could say so.
func movesAlreadyScreen() Input {
	_, in := group()
	in.Lease.Authority.Operation = &ag.Operation{
		ID: "fo-1a2b", Kind: ag.OperationSwitchover, Phase: ag.PhaseDemoting, From: "sales-0", Target: "sales-1", Owner: "the operator",
		Cause: "requested by alice", StartedAt: before(2 * time.Second), Deadline: before(2*time.Second - time.Minute),
	}
	return in
}

// unschedulableScreen: a new group whose pods no node takes, all for the same reason.
func unschedulableScreen(read bool) Input {
	g, in := group()
	const scheduler = "0/3 nodes are available: 3 node(s) had untolerated taint(s). no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
	cause := "no node fits: " + strings.TrimSuffix(scheduler, ".") + ". Add nodes, or change resources, nodeSelector, tolerations or affinity"
	st := api.SQLServerAvailabilityGroupStatus{Phase: api.PhasePending, Reason: "sales-0, sales-1 and sales-2: " + cause}
	st.Conditions = []metav1.Condition{{Type: api.ConditionConfigured, Status: metav1.ConditionFalse, Reason: api.ReasonUnschedulable, Message: st.Reason, LastTransitionTime: ago(time.Minute)}}
	for _, name := range g.ReplicaNames() {
		st.ReplicaStatuses = append(st.ReplicaStatuses, api.ReplicaStatus{Name: name, AvailabilityMode: api.SynchronousCommit, State: "pending", Message: cause})
		in.Pods[name] = PodFacts{Created: before(time.Minute), Waiting: pendingPod + scheduler}
		in.Errors = append(in.Errors, Unseen{"MSSQL6001", name + ": the API server cannot reach its instance manager", "manager/" + name})
	}
	g.Status, in.Reports, in.Lease = st, map[string]managerapi.Report{}, nil
	in.Taints = &Taints{}
	if read {
		db := corev1.Taint{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}
		node := func(name string, taints ...corev1.Taint) corev1.Node {
			return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Taints: taints}}
		}
		in.Taints = &Taints{Read: true, Kept: kept([]corev1.Node{
			node("node-a", corev1.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}), node("node-b", db), node("node-c", db),
			node("node-d", corev1.Taint{Key: "old", Effect: corev1.TaintEffectNoExecute}, corev1.Taint{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}),
		}, []corev1.Toleration{{Key: "old", Operator: corev1.TolerationOpExists}, {Key: "dedicated", Value: "web"}})}
	}
	return in
}

// nobodyAskedScreen: the user may see that no operator looks, and may not ask the servers.
func nobodyAskedScreen() Input {
	in := fewRightsScreen()
	in.Operator = &Operator{Namespace: "kubectl-mssql-system", Version: "1.4.0", Ready: 2, Replicas: 2}
	silentLock(in, 5*time.Minute)
	return in
}

func TestScreens_Golden(t *testing.T) {
	t.Parallel()
	for name, in := range screens() {
		for _, form := range []struct {
			suffix  string
			width   int
			color   bool
			verbose int
		}{{"0", 0, false, 0}, {"100", 100, false, 0}, {"80", 80, false, 0}, {"60", 60, false, 0}, {"100-color", 100, true, 0}, {"100-vv", 100, false, 2}} {
			if form.verbose > 0 && name != "healthy" && name != "seeding" {
				continue
			}
			file := name + "-" + form.suffix
			t.Run(file, func(t *testing.T) {
				t.Parallel()
				s, _, out, _ := iostreams.Test()
				err := WriteText(out, s, Build(in), TextOptions{Width: form.width, Color: form.color, Now: now, Self: "kubectl mssql", Verbose: form.verbose})
				if err != nil {
					t.Fatal(err)
				}
				if form.width >= 72 && !form.color {
					for _, l := range strings.Split(out.String(), "\n") {
						if n := utf8.RuneCountInString(l); n > form.width {
							t.Errorf("%d columns in a terminal of %d: %q", n, form.width, l)
						}
					}
				}
				golden(t, file+".golden", out.Bytes())
			})
		}
	}
}

// instances are the screens of a standalone server.
func instances() map[string]InstanceInput {
	one := func(phase api.Phase, reason string) InstanceInput {
		i := &api.SQLServerInstance{}
		i.Namespace, i.Name = "prod", "one"
		i.Status.Phase, i.Status.Reason, i.Status.Version, i.Status.Endpoint = phase, reason, "16.0.4195.2", "one-client:1433"
		return InstanceInput{
			Instance: i, PodsRead: true, Now: now, Plugin: "1.4.0", Self: "kubectl mssql", NS: " -n prod",
			Operator: &Operator{Namespace: "kubectl-mssql-system", Version: "1.4.0", Ready: 1, Replicas: 1},
			Pods:     map[string]PodFacts{"one-0": {Created: before(41 * day), Node: "node-a", Ready: true}},
			Reports:  map[string]managerapi.Report{"one-0": {Replica: "one-0", Server: "running"}},
		}
	}
	running := one(api.PhaseRunning, "the server accepts logins")
	failed := one(api.PhaseFailed, "sqlservr ends by itself: exit code 1")
	failed.Instance.Status.Conditions = []metav1.Condition{{
		Type: api.ConditionConfigured, Status: metav1.ConditionFalse, Reason: api.ReasonServerDoesNotStart, Message: "one-0: sqlservr ends by itself: exit code 1",
	}}
	failed.Pods["one-0"] = PodFacts{Created: before(time.Hour), Node: "node-a", Waiting: "CrashLoopBackOff: back-off 40s restarting failed container"}
	failed.Reports = nil
	alone := one(api.PhaseRunning, "the server accepts logins")
	alone.Operator = &Operator{Namespace: "kubectl-mssql-system", Replicas: 1}
	fenced := one(api.PhaseStarting, "one-0 is not ready")
	fenced.Instance.Annotations = map[string]string{api.AnnotationFenced: `[{"replica":"one-0","by":"alice@example.com","reason":"disk"}]`}
	fenced.Pods["one-0"] = PodFacts{Created: before(time.Hour), Node: "node-a"}
	fenced.Reports = map[string]managerapi.Report{"one-0": {Replica: "one-0", Server: "fenced"}}
	paused := one(api.PhasePaused, "the annotation stops every change; the server keeps running")
	paused.Instance.Annotations = map[string]string{api.AnnotationPaused: "true"}
	unknown := one(api.PhaseRunning, "the server accepts logins")
	unknown.Operator.lock = renewal.Lock{Age: 41 * time.Second, Known: true, Limit: 12 * time.Second}
	unknown.Reports = map[string]managerapi.Report{"one-0": {Replica: "one-0", Server: "starting", Problem: "the server does not accept logins yet"}}
	return map[string]InstanceInput{"instance-unknown": unknown, "instance-paused": paused, "instance-running": running, "instance-failed": failed, "instance-operator-down": alone, "instance-fenced": fenced}
}

func TestInstanceScreens_Golden(t *testing.T) {
	t.Parallel()
	for name, in := range instances() {
		for _, width := range []int{0, 80} {
			file := fmt.Sprintf("%s-%d", name, width)
			t.Run(file, func(t *testing.T) {
				t.Parallel()
				s, _, out, _ := iostreams.Test()
				if err := WriteInstanceText(out, s, BuildInstance(in), TextOptions{Width: width, Now: now, Self: "kubectl mssql"}); err != nil {
					t.Fatal(err)
				}
				golden(t, file+".golden", out.Bytes())
			})
		}
	}
	for name, want := range map[string]int{"instance-running": 0, "instance-failed": 9, "instance-operator-down": 8, "instance-fenced": 9, "instance-unknown": 9} {
		if got := BuildInstance(instances()[name]).ExitCode; got != want {
			t.Errorf("%s: exit code %d, want %d", name, got, want)
		}
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs; run make golden and read the diff\n%s", name, cmp.Diff(string(want), string(got)))
	}
}

func TestASCII_HasNothingElse(t *testing.T) {
	t.Parallel()
	for name, in := range screens() {
		for _, width := range []int{0, 80} {
			s, _, out, _ := iostreams.Test()
			s.ASCII = true
			if err := WriteText(out, s, Build(in), TextOptions{Now: now, Self: "kubectl mssql", Width: width, Verbose: 2}); err != nil {
				t.Fatal(err)
			}
			for _, r := range out.String() {
				if r > 127 {
					t.Errorf("%s: %q is outside ASCII", name, r)
				}
			}
		}
	}
}

func TestColour_IsNeverAloneWithTheNews(t *testing.T) {
	t.Parallel()
	for name, in := range screens() {
		plain, colored := &bytes.Buffer{}, &bytes.Buffer{}
		s, _, _, _ := iostreams.Test()
		for w, on := range map[*bytes.Buffer]bool{plain: false, colored: true} {
			if err := WriteText(w, s, Build(in), TextOptions{Now: now, Self: "kubectl mssql", Width: 100, Color: on}); err != nil {
				t.Fatal(err)
			}
		}
		if !strings.Contains(colored.String(), "\x1b[") {
			t.Errorf("%s has no colour", name)
		}
		if got := stripped(colored.String()); got != plain.String() {
			t.Errorf("%s: without its colours the screen differs\n%s", name, cmp.Diff(plain.String(), got))
		}
	}
}

func stripped(s string) string {
	var b strings.Builder
	esc := false
	for _, r := range s {
		switch {
		case r == '\x1b':
			esc = true
		case esc:
			esc = r != 'm'
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func TestVerdict_IsOneLineOfTheTerminal(t *testing.T) {
	t.Parallel()
	for name, in := range screens() {
		for _, width := range []int{80, 100} {
			s, _, out, _ := iostreams.Test()
			if err := WriteText(out, s, Build(in), TextOptions{Now: now, Self: "kubectl mssql", Width: width}); err != nil {
				t.Fatal(err)
			}
			if lines := strings.SplitN(out.String(), "\n", 3); lines[1] != "" {
				t.Errorf("%s at %d: the verdict goes on: %q", name, width, lines[1])
			}
		}
	}
}

func TestJSON_KeepsEveryKeyAndNeverInventsAValue(t *testing.T) {
	t.Parallel()
	keys := map[string]bool{}
	for name, in := range screens() {
		b, err := json.Marshal(Build(in))
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(b, &m); err != nil {
			t.Fatal(err)
		}
		for k, v := range m {
			switch k {
			case "replicas", "problems", "errors", "databases", "conditions", "refusals", "seeding", "advice":
				if _, ok := v.([]any); !ok {
					t.Errorf("%s: %s is %v, want a list", name, k, v)
				}
			}
			keys[k] = true
		}
		if len(m) != len(keys) {
			t.Errorf("%s: %d keys, another document has %d", name, len(m), len(keys))
		}
		for _, line := range listsOfNull(m, name) {
			t.Error(line)
		}
	}
	d := Build(failingOverScreen())
	if d.Replicas[0].Lag != nil || d.Replicas[0].SendQueue != nil {
		t.Error("a value that was not measured has a number")
	}
}

// listsOfNull finds nulls below keys that are lists elsewhere.
func listsOfNull(v any, path string) []string {
	var out []string
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if x == nil && (k == "fix" || k == "steps" || k == "next" || k == "set" || k == "unfenced" || k == "stale" || k == "details" || k == "commands") {
				out = append(out, fmt.Sprintf("%s.%s is null, want a list", path, k))
			}
			out = append(out, listsOfNull(x, path+"."+k)...)
		}
	case []any:
		for i, x := range v {
			out = append(out, listsOfNull(x, fmt.Sprintf("%s[%d]", path, i))...)
		}
	}
	return out
}

func TestExitCode_TellsWritesDownFromDegraded(t *testing.T) {
	t.Parallel()
	cases := screens()
	for name, want := range map[string]int{
		"healthy": 0, "failing-over": 9, "suspecting": 9, "fencing": 9, "led-elsewhere": 8, "blocked": 9, "seeding": 8, "fenced": 8, "new": 9, "operator-down": 8, "all-down": 9, "few-rights": 0,
		"one-unreachable": 0, "operator-silent": 9, "primary-silent": 9, "primary-denies": 8, "nobody-asked": 8, "moves-already": 8, "unschedulable": 9,
	} {
		if got := Build(cases[name]).ExitCode; got != want {
			t.Errorf("%s: exit code %d, want %d", name, got, want)
		}
	}
}

func TestDoubt_NeedsMoreThanOneSign(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Input)
		want   string
	}{
		"it renews, and its last reading is from before its promotion": {func(in *Input) {
			r := in.Reports["sales-0"]
			r.Role = ag.RoleResolving
			in.Reports["sales-0"] = r
		}, ""},
		"it renews, and no login works": {func(in *Input) {
			r := in.Reports["sales-0"]
			r.Role, r.Problem = ag.RoleUnknown, "the login timed out"
			in.Reports["sales-0"] = r
		}, "sales-0: the login timed out"},
		"its Lease may not be read, and it says that it is none": {func(in *Input) {
			in.Lease, in.Reports["sales-0"] = nil, report("sales-0", false)
		}, "sales-0 says that it is SECONDARY and not PRIMARY"},
		"its Lease may not be read, and nobody answers": {func(in *Input) {
			in.Lease, in.Reports = nil, map[string]managerapi.Report{}
		}, ""},
		"its Lease may not be read, and only it does not answer": {func(in *Input) {
			in.Lease = nil
			delete(in.Reports, "sales-0")
		}, "sales-0 does not answer, and others do"},
		"it has not renewed, and nobody can be asked": {func(in *Input) {
			in.Lease.Silent, in.Reports = 9*time.Second, map[string]managerapi.Report{}
		}, ""},
		"it has not renewed for long, and nobody can be asked": {func(in *Input) {
			in.Lease.Silent, in.Reports = 12*time.Second, map[string]managerapi.Report{}
		}, "sales-0 has not renewed its Lease for 12s"},
		"the Lease is on its way to another one": {func(in *Input) {
			in.Lease.Silent = time.Minute
			in.Lease.Authority.Operation = &ag.Operation{Kind: ag.OperationFailover, Phase: ag.PhaseFencing, From: "sales-0", Target: "sales-1"}
		}, ""},
	} {
		_, in := group()
		c.change(&in)
		got := ""
		if d := Build(in); d.Doubt != nil {
			got = d.Doubt.Message
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestOperatorDown_RowsAreWhatTheServersSay(t *testing.T) {
	t.Parallel()
	d := Build(operatorDownScreen())
	if d.Primary != "sales-1" || !d.Writable || d.Replicas[1].Role != "PRIMARY" || d.Replicas[0].Role != "secondary" {
		t.Errorf("primary %q, writable %v, rows %+v", d.Primary, d.Writable, d.Replicas)
	}
	for _, r := range d.Replicas {
		if r.IfPromoted == "no loss" || r.IfPromoted == "never" {
			t.Errorf("%s: %q although nobody decides", r.Name, r.IfPromoted)
		}
	}
}
