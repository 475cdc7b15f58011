package change_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

const groups = "sqlserveravailabilitygroups"

var began = time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)

// sales is a healthy group of three, sales-0 primary, k = 1.
func sales(change ...func(*api.SQLServerAvailabilityGroup)) *api.SQLServerAvailabilityGroup {
	g := &api.SQLServerAvailabilityGroup{
		TypeMeta:   metav1.TypeMeta{APIVersion: api.GroupVersion.String(), Kind: "SQLServerAvailabilityGroup"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "sales", UID: "u1", Generation: 4},
	}
	g.Spec.Storage.DataVolumeSize = resource.MustParse("10Gi")
	g.Spec.RelaxAfterSeconds = 15
	g.Status.InitializationComplete, g.Status.ObservedGeneration = true, 4
	g.Status.PrimaryReplica, g.Status.Phase = "sales-0", api.PhaseHealthy
	g.Status.CommitRule = &api.CommitRuleStatus{K: 1, Set: []string{"sales-0", "sales-1", "sales-2"}}
	g.Status.Authority = &api.AuthorityStatus{Holder: "sales-0", Epoch: 3}
	g.Status.Conditions = []metav1.Condition{
		{Type: api.ConditionRollingChange, Status: metav1.ConditionFalse, Reason: api.ReasonRolloutComplete, ObservedGeneration: 4},
		{Type: api.ConditionStorageResizing, Status: metav1.ConditionFalse, Reason: api.ReasonResizeComplete, ObservedGeneration: 4},
	}
	for i := range 3 {
		g.Spec.Replicas = append(g.Spec.Replicas, api.AGReplicaSpec{AvailabilityMode: api.SynchronousCommit, FailoverMode: api.FailoverAutomatic})
		r := api.ReplicaStatus{Name: fmt.Sprintf("sales-%d", i), Role: "SECONDARY", AvailabilityMode: api.SynchronousCommit, State: "synchronized",
			SynchronizationState: "SYNCHRONIZED", Connected: true, Reachable: true, Ready: true, SequenceNumber: 77, FailoverReady: true,
			Volume: &api.VolumeStatus{Requested: "10Gi", Capacity: "10Gi"}}
		if i == 0 {
			r.Role, r.State, r.FailoverReady, r.FailoverRefusal = "PRIMARY", "online", false, "it is the primary"
		}
		g.Status.ReplicaStatuses = append(g.Status.ReplicaStatuses, r)
	}
	for _, c := range change {
		c(g)
	}
	return g
}

func replica(i int, change func(*api.ReplicaStatus)) func(*api.SQLServerAvailabilityGroup) {
	return func(g *api.SQLServerAvailabilityGroup) { change(&g.Status.ReplicaStatuses[i]) }
}

func refused(why string) func(*api.ReplicaStatus) {
	return func(r *api.ReplicaStatus) { r.FailoverReady, r.FailoverRefusal = false, why }
}

func order(q api.Request) func(*api.SQLServerAvailabilityGroup) {
	return func(g *api.SQLServerAvailabilityGroup) {
		g.Annotations = map[string]string{api.AnnotationRequest: q.String()}
	}
}

// paused by a person, and the operator has seen it.
func paused(g *api.SQLServerAvailabilityGroup) {
	g.Annotations = map[string]string{api.AnnotationPaused: "true", api.AnnotationPauseNote: `{"by":"alice","reason":"disk"}`}
	g.Status.Phase = api.PhasePaused
}

// terminal is a run of the plugin: what is typed, whether anybody is there to type it.
type terminal struct {
	in  io.Reader
	tty bool
	ctx context.Context
}

type outcome struct {
	code        exit.Code
	out, errOut string
}

func (r outcome) String() string {
	return fmt.Sprintf("exit %d\nstdout:\n%sstderr:\n%s", r.code, r.out, r.errOut)
}

func (x terminal) run(t *testing.T, a *clitest.API, args ...string) outcome {
	t.Helper()
	s, _, out, errOut := iostreams.Test()
	s.ASCII = true
	if x.in != nil {
		s.In = x.in
	}
	s.StdinTTY, s.StderrTTY = x.tty, x.tty
	ctx := x.ctx
	if ctx == nil {
		ctx = t.Context()
	}
	root := cli.NewRoot("kubectl-mssql", s)
	args = append([]string{args[0], "--kubeconfig", a.Kubeconfig(t, t.TempDir(), "prod")}, args[1:]...)
	return outcome{cli.Execute(ctx, root, s, args), out.String(), errOut.String()}
}

func quiet(t *testing.T, a *clitest.API, args ...string) outcome {
	t.Helper()
	return terminal{}.run(t, a, args...)
}

// operator answers in the same instant all that is asked of the group.
func operator(t *testing.T, a *clitest.API) {
	a.React(func(_ string, u *unstructured.Unstructured) {
		if u.GetKind() != "SQLServerAvailabilityGroup" {
			return
		}
		var g api.SQLServerAvailabilityGroup
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &g); err != nil {
			t.Error(err)
			return
		}
		obey(&g)
		m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&g)
		if err != nil {
			t.Error(err)
			return
		}
		version := u.GetResourceVersion()
		u.Object = m
		u.SetResourceVersion(version)
	})
}

func obey(g *api.SQLServerAvailabilityGroup) {
	if q, err := api.ParseRequest(g.Annotations[api.AnnotationRequest]); err == nil && q != nil {
		g.Status.LastRequest = &api.LastRequestStatus{ID: q.ID, Kind: string(q.Kind), Target: q.Target, Result: api.RequestDone}
		if q.Kind == api.RequestFailover {
			to := q.Target
			if to == "" {
				to = "sales-1"
			}
			g.Status.LastRequest.Target, g.Status.PrimaryReplica = to, to
			g.Status.History = []api.RoleChange{{Kind: "planned", From: "sales-0", To: to, RequestID: q.ID, Result: "done",
				StartedAt: metav1.NewTime(began), CompletedAt: metav1.NewTime(began.Add(4 * time.Second)),
				Timeline: []api.TimelineEntry{{At: metav1.NewTime(began), What: "sales-0 is offline"}}}}
		}
	}
	g.Status.Phase = api.PhaseHealthy
	if _, held := api.Paused(g.Annotations); held {
		g.Status.Phase = api.PhasePaused
	}
	fenced, err := api.ParseFenced(g.Annotations[api.AnnotationFenced])
	if err != nil {
		return
	}
	for i := range g.Status.ReplicaStatuses {
		r := &g.Status.ReplicaStatuses[i]
		was := r.Fenced
		r.Fenced, r.Fence = false, nil
		for _, f := range fenced {
			if f.Replica == r.Name {
				r.Fenced, r.Fence = true, &api.FenceStatus{By: f.By, Reason: f.Reason, Since: f.Since}
			}
		}
		switch {
		case r.Fenced:
			r.State, r.Reachable, r.Ready, r.FailoverReady = "fenced", false, false, false
			if g.Status.PrimaryReplica == r.Name {
				g.Status.PrimaryReplica = "sales-1"
			}
		case was:
			r.State, r.Role, r.Reachable, r.Ready = "synchronized", "SECONDARY", true, true
		}
		r.Volume = &api.VolumeStatus{Requested: g.Spec.Storage.DataVolumeSize.String(), Capacity: g.Spec.Storage.DataVolumeSize.String()}
	}
	g.Status.ObservedGeneration = g.Generation
	for i := range g.Status.Conditions {
		g.Status.Conditions[i].ObservedGeneration = g.Generation
	}
}

func annotations(a *clitest.API) map[string]string {
	return a.Get(groups, "prod", "sales").GetAnnotations()
}

func TestEachStepOfTheLadderAsksForWhatItRisks(t *testing.T) {
	t.Parallel()
	lastCandidate := []func(*api.SQLServerAvailabilityGroup){
		replica(1, refused("R12: it is AsynchronousCommit: it may lack commits")),
	}
	for name, c := range map[string]struct {
		group []func(*api.SQLServerAvailabilityGroup)
		term  terminal
		args  string
		code  exit.Code
		// says must stand on standard error.
		says string
	}{
		"a restart without a terminal":              {nil, terminal{}, "restart sales", exit.NotConfirmed, "--yes"},
		"a piped y is never read":                   {nil, terminal{in: strings.NewReader("y\n")}, "restart sales", exit.NotConfirmed, "no terminal"},
		"a restart, declined":                       {nil, terminal{in: strings.NewReader("n\n"), tty: true}, "restart sales", exit.NotConfirmed, "nothing was changed"},
		"a restart, the input ends":                 {nil, terminal{in: strings.NewReader(""), tty: true}, "restart sales", exit.NotConfirmed, "nothing was changed"},
		"a restart, agreed to":                      {nil, terminal{in: strings.NewReader("y\n"), tty: true}, "restart sales", exit.OK, "sales-2, then sales-1; the primary moves away, then sales-0"},
		"a restart with --yes":                      {nil, terminal{}, "restart sales --yes", exit.OK, "restarted"},
		"a restart of the primary":                  {nil, terminal{}, "restart sales sales-0", exit.NotConfirmed, "one switchover"},
		"a restart of a secondary is not asked for": {nil, terminal{}, "restart sales sales-2", exit.OK, "writes go on"},
		"a restart of a secondary that writes wait for": {append(lastCandidate, replica(1, func(r *api.ReplicaStatus) {
			r.AvailabilityMode, r.SynchronizationState = api.AsynchronousCommit, "SYNCHRONIZING"
		})), terminal{}, "restart sales sales-2", exit.NotConfirmed, "writes wait up to 15 s"},
		"a fence of a spare secondary":              {nil, terminal{}, "fence on sales sales-2", exit.OK, "fence off sales sales-2"},
		"a fence of the primary":                    {nil, terminal{}, "fence on sales sales-0", exit.NotConfirmed, "the primary moves away first"},
		"a fence of the primary with --yes":         {nil, terminal{}, "fence on sales sales-0 --yes", exit.OK, "sales-1 is primary"},
		"a fence of the last candidate":             {lastCandidate, terminal{}, "fence on sales sales-2 --yes", exit.NotConfirmed, "--yes --confirm=sales-2"},
		"a fence of the last candidate, wrong name": {lastCandidate, terminal{}, "fence on sales sales-2 --yes --confirm=sales-1", exit.NotConfirmed, "it must be"},
		"a fence of the last candidate, named":      {lastCandidate, terminal{}, "fence on sales sales-2 --yes --confirm=sales-2", exit.OK, "nobody could take over"},
		"a fence of the last candidate, only named": {lastCandidate, terminal{}, "fence on sales sales-2 --confirm=sales-2", exit.NotConfirmed, "--yes"},
		"a fence of the last candidate, typed":      {lastCandidate, terminal{in: strings.NewReader("sales-2\n"), tty: true}, "fence on sales sales-2", exit.OK, "Type sales-2"},
		"a fence while nobody is primary": {[]func(*api.SQLServerAvailabilityGroup){func(g *api.SQLServerAvailabilityGroup) { g.Status.PrimaryReplica = "" }},
			terminal{}, "fence on sales sales-2 --yes", exit.NotConfirmed, "a failover may stay blocked"},
		"a planned move":                             {nil, terminal{}, "failover sales --to sales-1", exit.NotConfirmed, "loss     none"},
		"a planned move with --yes":                  {nil, terminal{}, "failover sales --to sales-1 --yes", exit.OK, "switched over   sales-1 is primary, the move took 4 s"},
		"a planned move by its other name":           {nil, terminal{}, "switchover sales --yes", exit.OK, "sales-0 is offline"},
		"a forced move with --yes alone":             {nil, terminal{}, "failover sales --to sales-1 --allow-data-loss --yes", exit.NotConfirmed, "--confirm=sales"},
		"a forced move, the name typed":              {nil, terminal{in: strings.NewReader("sales\n"), tty: true}, "failover sales --to sales-1 --allow-data-loss", exit.OK, "unknown number of acknowledged commits"},
		"a forced move, the replica typed":           {nil, terminal{in: strings.NewReader("sales-1\n"), tty: true}, "failover sales --to sales-1 --allow-data-loss", exit.NotConfirmed, "nothing was changed"},
		"a forced move with a bound, the name given": {nil, terminal{}, "failover sales --to sales-1 --allow-data-loss=30 --confirm=sales", exit.OK, "up to 30 s"},
		"larger volumes":                             {nil, terminal{}, "resize sales --storage 20Gi", exit.NotConfirmed, "grows from 10Gi to 20Gi"},
		"larger volumes with --yes":                  {nil, terminal{}, "resize sales --storage 20Gi --yes", exit.OK, "every replica has storage 20Gi"},
		"more memory with --yes":                     {nil, terminal{}, "resize sales --memory 4Gi --yes", exit.OK, "SQL Server itself takes up to 3276 MB"},
		"maintenance":                                {nil, terminal{}, "maintenance on sales --reason disk", exit.OK, "undo kubectl mssql maintenance off sales"},
		"the end of a maintenance":                   {[]func(*api.SQLServerAvailabilityGroup){paused}, terminal{}, "maintenance off sales", exit.OK, "was paused by alice (\"disk\")"},
		"cpu and memory, agreed to":                  {nil, terminal{in: strings.NewReader("yes\n"), tty: true}, "resize sales --memory 4Gi --cpu 2", exit.OK, "one switchover"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := clitest.Start(t)
			a.Add(t, sales(c.group...))
			operator(t, a)
			got := c.term.run(t, a, strings.Fields(c.args)...)
			if got.code != c.code || !strings.Contains(strings.Join(strings.Fields(got.errOut), " "), strings.Join(strings.Fields(c.says), " ")) {
				t.Errorf("want exit %d and %q\n%s", c.code, c.says, got)
			}
			if wrote := len(a.Writes()) > 0; wrote != (c.code == exit.OK) {
				t.Errorf("writes: %v", a.Writes())
			}
			if got.out != "" {
				t.Errorf("standard output holds %q", got.out)
			}
		})
	}
}

func TestWhatWouldHarmIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	t.Parallel()
	none := []func(*api.SQLServerAvailabilityGroup){replica(1, refused("R13: no answer")), replica(2, refused("R12: behind"))}
	witness := func(g *api.SQLServerAvailabilityGroup) {
		g.Spec.Replicas[2].AvailabilityMode = api.ConfigurationOnly
		r := &g.Status.ReplicaStatuses[2]
		r.AvailabilityMode, r.SynchronizationState, r.FailoverReady, r.State = api.ConfigurationOnly, "", false, "witness"
	}
	away := replica(1, func(r *api.ReplicaStatus) {
		r.Connected, r.SynchronizationState, r.FailoverReady = false, "NOT SYNCHRONIZING", false
	})
	class := func(name string, allow bool) *storagev1.StorageClass {
		return &storagev1.StorageClass{TypeMeta: metav1.TypeMeta{APIVersion: "storage.k8s.io/v1", Kind: "StorageClass"},
			ObjectMeta: metav1.ObjectMeta{Name: name}, AllowVolumeExpansion: &allow}
	}
	for name, c := range map[string]struct {
		group []func(*api.SQLServerAvailabilityGroup)
		more  runtime.Object
		args  string
		code  exit.Code
		says  string
	}{
		"no such group":           {nil, nil, "restart other --yes", exit.NotFound, "no availability group or instance other"},
		"no such replica":         {nil, nil, "fence on sales sales-7", exit.NotFound, "sales-0, sales-1, sales-2"},
		"no such target":          {nil, nil, "failover sales --to sales-7 --yes", exit.NotFound, "no replica sales-7"},
		"nobody could take over":  {none, nil, "fence on sales sales-0 --yes", exit.Refused, "nobody could write"},
		"restart without anybody": {none, nil, "restart sales --yes", exit.Refused, "sales-1: R13: no answer"},
		"writes that must not wait": {[]func(*api.SQLServerAvailabilityGroup){away, func(g *api.SQLServerAvailabilityGroup) { g.Spec.Durability = api.DurabilityRequired }}, nil,
			"fence on sales sales-2 --yes --confirm=sales-2", exit.Refused, "1 of 3 voters"},
		"durability is Required": {[]func(*api.SQLServerAvailabilityGroup){
			replica(1, func(r *api.ReplicaStatus) { r.SynchronizationState = "NOT SYNCHRONIZING" }),
			func(g *api.SQLServerAvailabilityGroup) { g.Spec.Durability = api.DurabilityRequired },
		}, nil, "fence on sales sales-2 --yes --confirm=sales-2", exit.Refused, "durability is Required"},
		"a witness that is needed": {[]func(*api.SQLServerAvailabilityGroup){witness, away}, nil, "fence on sales sales-2 --yes", exit.Refused, "1 of 3 voters would be left"},
		"a group that was not made": {[]func(*api.SQLServerAvailabilityGroup){func(g *api.SQLServerAvailabilityGroup) { g.Status.InitializationComplete = false }}, nil,
			"restart sales --yes", exit.Refused, "was not made yet"},
		"a restart of a fenced one": {[]func(*api.SQLServerAvailabilityGroup){replica(2, func(r *api.ReplicaStatus) { r.Fenced = true })}, nil,
			"restart sales sales-2", exit.Refused, "fence off sales sales-2"},
		"smaller volumes":   {nil, nil, "resize sales --storage 5Gi --yes", exit.Refused, "cannot make a volume smaller"},
		"too little memory": {nil, nil, "resize sales --memory 1Gi --yes", exit.Refused, "2000 MB"},
		"no quantity":       {nil, nil, "resize sales --memory lots --yes", exit.Usage, "no quantity"},
		"nothing to resize": {nil, nil, "resize sales --yes", exit.Usage, "--storage, --cpu or --memory"},
		"a class that cannot grow": {[]func(*api.SQLServerAvailabilityGroup){func(g *api.SQLServerAvailabilityGroup) { n := "thick"; g.Spec.Storage.StorageClassName = &n }}, class("thick", false),
			"resize sales --storage 20Gi --yes", exit.Refused, "allowVolumeExpansion"},
		"a class that is gone": {[]func(*api.SQLServerAvailabilityGroup){func(g *api.SQLServerAvailabilityGroup) { n := "gone"; g.Spec.Storage.StorageClassName = &n }}, nil,
			"resize sales --storage 20Gi --yes", exit.Refused, "is not there"},
		"a forced move without a target": {nil, nil, "failover sales --allow-data-loss --confirm=sales", exit.Usage, "--to"},
		"a loss that is no number":       {nil, nil, "failover sales --to sales-1 --allow-data-loss=much", exit.Usage, "no number of seconds"},
		"an unknown dry run":             {nil, nil, "restart sales --dry-run=maybe", exit.Usage, "client or"},
		"an unknown format":              {nil, nil, "restart sales -o xml", exit.Usage, "unknown output format"},
		"three names":                    {nil, nil, "restart sales a b", exit.Usage, "3 arguments"},
		"another order is pending": {[]func(*api.SQLServerAvailabilityGroup){order(api.Request{ID: "x", Kind: api.RequestRestart, Target: "sales-1", By: "ann"})}, nil,
			"failover sales --yes", exit.Conflict, "a restart of sales-1, ordered by ann, is not done yet"},
		"restart while nobody is primary": {[]func(*api.SQLServerAvailabilityGroup){func(g *api.SQLServerAvailabilityGroup) { g.Status.PrimaryReplica = "" }}, nil,
			"restart sales --yes", exit.Refused, "nobody is primary"},
		"a move is under way": {[]func(*api.SQLServerAvailabilityGroup){func(g *api.SQLServerAvailabilityGroup) {
			g.Status.Authority.Operation = &api.OperationStatus{ID: "op", Kind: "switchover", From: "sales-0", Target: "sales-2"}
		}}, nil, "fence on sales sales-1", exit.Conflict, "switchover from sales-0 to sales-2"},
		"another move is under way": {[]func(*api.SQLServerAvailabilityGroup){func(g *api.SQLServerAvailabilityGroup) {
			g.Status.Authority.Operation = &api.OperationStatus{ID: "op", Kind: "switchover", From: "sales-0", Target: "sales-2"}
		}}, nil, "failover sales --to sales-1 --yes", exit.Conflict, "switchover from sales-0 to sales-2"},
		"a rolling change is under way": {[]func(*api.SQLServerAvailabilityGroup){func(g *api.SQLServerAvailabilityGroup) { g.Status.Conditions[0].Status = metav1.ConditionTrue }}, nil,
			"restart sales --yes", exit.Conflict, "rolling change"},
		"a move of a paused group":         {[]func(*api.SQLServerAvailabilityGroup){paused}, nil, "failover sales --yes", exit.Refused, `sales is paused by alice ("disk")`},
		"a trial of one of a paused group": {[]func(*api.SQLServerAvailabilityGroup){paused}, nil, "failover sales --dry-run=client", exit.Refused, "maintenance off sales"},
		"a restart of a paused group":      {[]func(*api.SQLServerAvailabilityGroup){paused}, nil, "restart sales sales-2", exit.Refused, "maintenance off sales"},
		"a fence in a paused group":        {[]func(*api.SQLServerAvailabilityGroup){paused}, nil, "fence on sales sales-2", exit.Refused, "maintenance off sales"},
		"other sizes of a paused group":    {[]func(*api.SQLServerAvailabilityGroup){paused}, nil, "resize sales --memory 4Gi --yes", exit.Refused, "maintenance off sales"},
		"maintenance while a move goes on": {[]func(*api.SQLServerAvailabilityGroup){func(g *api.SQLServerAvailabilityGroup) {
			g.Status.Authority.Operation = &api.OperationStatus{ID: "op", Kind: "switchover", From: "sales-0", Target: "sales-2"}
		}}, nil, "maintenance on sales", exit.Conflict, "switchover from sales-0 to sales-2"},
		"a word that is no verb": {nil, nil, "maintenance maybe sales", exit.Usage, "on or off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := clitest.Start(t)
			a.Add(t, sales(c.group...))
			if c.more != nil {
				a.Add(t, c.more)
			}
			operator(t, a)
			got := quiet(t, a, strings.Fields(c.args)...)
			if got.code != c.code || !strings.Contains(got.errOut, c.says) {
				t.Errorf("want exit %d and %q\n%s", c.code, c.says, got)
			}
			if w := a.Writes(); len(w) > 0 {
				t.Errorf("written: %v", w)
			}
		})
	}
}

func TestWhatIsSoAlreadyIsDone(t *testing.T) {
	t.Parallel()
	fenced := func(g *api.SQLServerAvailabilityGroup) {
		g.Annotations = map[string]string{api.AnnotationFenced: `[{"replica":"sales-2","by":"ann","reason":"disk","since":"2026-05-06T07:08:09Z"}]`}
		obey(g)
	}
	for name, c := range map[string]struct {
		group func(*api.SQLServerAvailabilityGroup)
		args  string
		says  string
	}{
		"it is primary":     {func(*api.SQLServerAvailabilityGroup) {}, "failover sales --to sales-0", "sales-0 is primary already"},
		"it is fenced":      {fenced, "fence on sales sales-2", "fenced by ann at 2026-05-06T07:08:09Z: disk"},
		"it is not fenced":  {func(*api.SQLServerAvailabilityGroup) {}, "fence off sales sales-2", "not fenced"},
		"it has that size":  {func(*api.SQLServerAvailabilityGroup) {}, "resize sales --storage 10Gi", "has that already"},
		"it is paused":      {paused, "maintenance on sales", `paused by alice ("disk")`},
		"it is not paused":  {func(*api.SQLServerAvailabilityGroup) {}, "maintenance off sales", "not paused"},
		"the same in bytes": {func(*api.SQLServerAvailabilityGroup) {}, "resize sales --storage 10240Mi", "has that already"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := clitest.Start(t)
			a.Add(t, sales(c.group))
			got := quiet(t, a, strings.Fields(c.args)...)
			if got.code != exit.OK || !strings.Contains(got.errOut, c.says) || len(a.Writes()) > 0 {
				t.Errorf("want %q, writes %v\n%s", c.says, a.Writes(), got)
			}
		})
	}
}

// asked changes the group in the moment in which the user is asked, and then agrees.
type asked struct {
	do func()
	io.Reader
}

func (r *asked) Read(p []byte) (int, error) {
	if r.do != nil {
		r.do()
		r.do = nil
	}
	return r.Reader.Read(p)
}

func TestAnOrderIsRefusedWhenTheGroupIsNotWhatItsAuthorSaw(t *testing.T) {
	t.Parallel()
	set := func(value any, path ...string) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) { _ = unstructured.SetNestedField(u.Object, value, path...) }
	}
	for name, c := range map[string]struct {
		change func(*unstructured.Unstructured)
		code   exit.Code
		says   string
	}{
		"nothing that was shown has changed": {set("another word", "status", "reason"), exit.OK, "restarted"},
		"the primary has moved":              {set("sales-1", "status", "primaryReplica"), exit.Refused, "the primary is sales-1 now"},
		"the spec has changed":               {set(int64(5), "metadata", "generation"), exit.Refused, "its spec was changed"},
		"somebody ordered something else":    {set(`{"id":"y","kind":"failover"}`, "metadata", "annotations", api.AnnotationRequest), exit.Refused, "another order was given"},
		"somebody fenced a replica":          {set(`[{"replica":"sales-2"}]`, "metadata", "annotations", api.AnnotationFenced), exit.Refused, "the fenced replicas are others"},
		"somebody paused it":                 {set("true", "metadata", "annotations", api.AnnotationPaused), exit.Refused, "it was paused"},
		"it was made anew":                   {set("u2", "metadata", "uid"), exit.Refused, "made anew"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := clitest.Start(t)
			a.Add(t, sales())
			in := &asked{Reader: strings.NewReader("y\n"), do: func() { a.Change(groups, "prod", "sales", c.change) }}
			operator(t, a)
			got := terminal{in: in, tty: true}.run(t, a, "restart", "sales")
			if got.code != c.code || !strings.Contains(got.errOut, c.says) {
				t.Errorf("want exit %d and %q\n%s", c.code, c.says, got)
			}
		})
	}
}

func TestAnOrderCarriesWhatItsAuthorSaw(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	a.Add(t, sales())
	operator(t, a)
	if got := quiet(t, a, "failover", "sales", "--to", "sales-2", "--yes", "--reason", "patch day"); got.code != exit.OK {
		t.Fatal(got)
	}
	q, err := api.ParseRequest(annotations(a)[api.AnnotationRequest])
	if err != nil {
		t.Fatal(err)
	}
	if q.ExpectedPrimary != "sales-0" || q.ExpectedSequence != 77 || q.ResourceVersion == "" || q.Reason != "patch day" || q.At == nil || q.Target != "sales-2" || q.AllowDataLoss {
		t.Errorf("%+v", q)
	}
}

func TestTheSameCommandAgainFollowsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ args, kind, target string }{
		"a restart of all": {"restart sales", "restart", ""},
		"a restart of one": {"restart sales sales-1", "restart", "sales-1"},
		"a move":           {"failover sales --to sales-1", "failover", "sales-1"},
		"a move to any":    {"failover sales", "failover", "sales-2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := clitest.Start(t)
			q := api.Request{ID: "first", Kind: api.RequestKind(c.kind), Target: c.target}
			a.Add(t, sales(order(q), func(g *api.SQLServerAvailabilityGroup) {
				g.Status.LastRequest = &api.LastRequestStatus{ID: "first", Kind: c.kind, Target: c.target, Result: api.RequestRunning}
			}))
			go func() {
				a.Await(10*time.Second, func(r clitest.Request) bool { return r.Verb == "get" && r.Resource == groups })
				a.Change(groups, "prod", "sales", func(u *unstructured.Unstructured) {
					_ = unstructured.SetNestedField(u.Object, api.RequestDone, "status", "lastRequest", "result")
				})
			}()
			got := quiet(t, a, strings.Fields(c.args)...)
			if got.code != exit.OK || !strings.Contains(got.errOut, "first") || len(a.Writes()) > 0 {
				t.Errorf("writes %v\n%s", a.Writes(), got)
			}
		})
	}
}

func TestWatchingThatEndsSaysThatTheOperatorGoesOn(t *testing.T) {
	t.Parallel()
	canceled, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	for name, c := range map[string]struct {
		ctx  context.Context
		args string
		code exit.Code
	}{
		"time-out of a restart": {nil, "restart sales --yes --timeout 700ms", exit.Timeout},
		"time-out of a move":    {nil, "failover sales --yes --timeout 700ms", exit.Timeout},
		"time-out of a fence":   {nil, "fence on sales sales-2 --timeout 700ms", exit.Timeout},
		"time-out of a resize":  {nil, "resize sales --cpu 2 --yes --timeout 700ms", exit.Timeout},
		"Ctrl-C of a restart":   {canceled, "restart sales --yes", exit.Interrupted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := clitest.Start(t)
			a.Add(t, sales())
			a.React(func(_ string, u *unstructured.Unstructured) {
				if u.GetKind() == "SQLServerAvailabilityGroup" {
					u.SetGeneration(u.GetGeneration() + 1) // nobody observes it
				}
			})
			if c.ctx != nil {
				go func() {
					ordered := false // the first request after the order is the first look at its answer
					a.Await(10*time.Second, func(r clitest.Request) bool {
						was := ordered
						ordered = ordered || r.Verb == "patch"
						return was && r.Verb == "get"
					})
					cancel()
				}()
			}
			got := terminal{ctx: c.ctx}.run(t, a, strings.Fields(c.args)...)
			if got.code != c.code || !strings.Contains(got.errOut, "the operator goes on; watch with: kubectl mssql status sales -w") || strings.Contains(got.errOut, "failed") {
				t.Errorf("want exit %d\n%s", c.code, got)
			}
		})
	}
}

func TestAMissingPermissionIsNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ verb, args string }{
		"reading":           {"get", "restart sales --yes"},
		"ordering":          {"patch", "restart sales --yes"},
		"fencing":           {"patch", "fence on sales sales-2"},
		"taking it back":    {"patch", "fence off sales sales-1"},
		"resizing":          {"patch", "resize sales --storage 20Gi --yes"},
		"moving":            {"patch", "failover sales --yes"},
		"judged by the API": {"patch", "failover sales --dry-run=server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := clitest.Start(t)
			a.Add(t, sales(func(g *api.SQLServerAvailabilityGroup) {
				g.Annotations = map[string]string{api.AnnotationFenced: `[{"replica":"sales-1"}]`}
			}))
			a.Forbid(c.verb, groups)
			got := quiet(t, a, strings.Fields(c.args)...)
			if got.code != exit.Forbidden || !strings.Contains(got.errOut, "the verb "+c.verb+" on "+groups) {
				t.Errorf("want exit 7 and the verb %s\n%s", c.verb, got)
			}
		})
	}
}

func TestADryRunShowsThePlanAndWritesNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args  string
		code  exit.Code
		says  []string
		asked bool // the API server was asked for its verdict
	}{
		"restart":               {"restart sales --dry-run", exit.OK, []string{"one switchover", "sales-2, then sales-1; the primary moves away, then sales-0", `"kind":"restart"`, "nothing was changed"}, false},
		"restart on the server": {"restart sales --dry-run=server", exit.OK, []string{"one switchover", "nothing was changed"}, true},
		"resize":                {"resize sales --memory 4Gi --storage 20Gi --dry-run=client", exit.OK, []string{"grows from 10Gi to 20Gi", "3276 MB", "one switchover", `"memory":"4Gi"`}, false},
		"resize on the server":  {"resize sales --memory 4Gi --dry-run=server", exit.OK, []string{"order", "writes stop"}, true},
		"fence":                 {"fence on sales sales-0 --dry-run=server", exit.OK, []string{"moves away first", "a y, or --yes"}, true},
		"fence, client":         {"fence on sales sales-2 --dry-run", exit.OK, []string{"nothing would be asked", `"replica":"sales-2"`}, false},
		"move":                  {"failover sales --dry-run", exit.OK, []string{"sales-1", "could be promoted without loss", "would promote sales-1", `"kind":"failover"`}, false},
		"move on the server":    {"failover sales --to sales-2 --dry-run=server", exit.OK, []string{"would promote sales-2"}, true},
		"a shrink":              {"resize sales --storage 1Gi --dry-run", exit.Refused, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := clitest.Start(t)
			a.Add(t, sales())
			got := quiet(t, a, strings.Fields(c.args)...)
			if got.code != c.code || len(a.Writes()) > 0 {
				t.Errorf("writes %v\n%s", a.Writes(), got)
			}
			for _, w := range c.says {
				if !strings.Contains(got.out, w) {
					t.Errorf("standard output does not say %q\n%s", w, got)
				}
			}
			dry := false
			for _, r := range a.Requests() {
				dry = dry || r.DryRun
			}
			if dry != c.asked {
				t.Errorf("asked the API server: %v", dry)
			}
		})
	}
}

func TestEveryRunWritesOneDocumentWhateverCameOfIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args   string
		code   exit.Code
		result string
	}{
		"done":          {"restart sales --yes -o json", exit.OK, "Done"},
		"not confirmed": {"restart sales -o json", exit.NotConfirmed, "NotConfirmed"},
		"refused":       {"resize sales --storage 1Gi --yes -o json", exit.Refused, "Refused"},
		"so already":    {"failover sales --to sales-0 -o json", exit.OK, "AlreadySo"},
		"moved":         {"failover sales --to sales-1 --yes -o json", exit.OK, "Done"},
		"fenced":        {"fence on sales sales-2 -o json", exit.OK, "Done"},
		"dry run":       {"resize sales --memory 4Gi --dry-run -o json", exit.OK, "DryRun"},
		"not found":     {"restart other --yes -o json", exit.NotFound, "Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := clitest.Start(t)
			a.Add(t, sales())
			operator(t, a)
			got := quiet(t, a, strings.Fields(c.args)...)
			var doc map[string]any
			dec := json.NewDecoder(bytes.NewBufferString(got.out))
			if err := dec.Decode(&doc); err != nil || dec.More() {
				t.Fatalf("%v, more %v\n%s", err, dec.More(), got)
			}
			if got.code != c.code || doc["exitCode"] != float64(c.code) || doc["result"] != c.result || doc["kind"] != "OperationResult" {
				t.Errorf("want exit %d, %s\n%s", c.code, c.result, got)
			}
			for _, key := range []string{"plan", "order", "steps", "replicas"} {
				if _, ok := doc[key].([]any); !ok {
					t.Errorf("%s is %v, not a list", key, doc[key])
				}
			}
			for _, key := range []string{"verb", "name", "namespace", "requestID", "from", "to", "reason", "message", "writesDownSeconds", "request"} {
				if _, ok := doc[key]; !ok {
					t.Errorf("%s is missing", key)
				}
			}
		})
	}
}

func TestProgressIsOneStampedLineForEachStep(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	a.Add(t, sales())
	operator(t, a)
	got := quiet(t, a, "restart", "sales", "--yes")
	seen := map[string]int{}
	for _, l := range strings.Split(got.errOut, "\n") {
		if _, step, ok := strings.Cut(l, " [ok] "); ok {
			if _, err := time.Parse("15:04:05", strings.Fields(l)[0]); err != nil {
				t.Errorf("no time on %q", l)
			}
			seen[step]++
		}
	}
	for _, want := range []string{"in step         sales-2, with its new pod", "restarted       sales-2, sales-1, sales-0"} {
		if seen[want] != 1 {
			t.Errorf("%q was told %d times\n%s", want, seen[want], got)
		}
	}
	if got := quiet(t, a, "restart", "sales", "--yes", "-q"); strings.Contains(got.errOut, "[ok]") {
		t.Errorf("quiet is not quiet\n%s", got)
	}
}

func TestAFenceIsWrittenDownAndTakenBack(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	a.Add(t, sales())
	operator(t, a)
	if got := quiet(t, a, "fence", "on", "sales", "sales-2", "--reason", "disk is failing"); got.code != exit.OK {
		t.Fatal(got)
	}
	list, err := api.ParseFenced(annotations(a)[api.AnnotationFenced])
	if err != nil || len(list) != 1 || list[0].Replica != "sales-2" || list[0].Reason != "disk is failing" || list[0].Since == nil {
		t.Fatalf("%+v, %v", list, err)
	}
	listed := quiet(t, a, "fence", "list")
	if !strings.Contains(listed.out, "prod/sales") || !strings.Contains(listed.out, "disk is failing") || !strings.Contains(listed.out, "fenced") {
		t.Error(listed)
	}
	if got := quiet(t, a, "fence", "list", "-A", "-o", "name"); strings.TrimSpace(got.out) != "replica/sales-2" {
		t.Error(got)
	}
	if got := quiet(t, a, "fence", "off", "sales", "sales-2"); got.code != exit.OK || !strings.Contains(got.errOut, "back            sales-2 is synchronized") {
		t.Fatal(got)
	}
	if text, ok := annotations(a)[api.AnnotationFenced]; ok {
		t.Errorf("the annotation stays: %q", text)
	}
	if got := quiet(t, a, "fence", "list"); got.code != exit.OK || !strings.Contains(got.errOut, "No replica is fenced") || got.out != "" {
		t.Error(got)
	}
}

// notRenewed is a Lease that the API server has not taken a renewal of for so long,
// whatever the clock of who renews it says.
func notRenewed(namespace, name string, d time.Duration) *coordinationv1.Lease {
	written := metav1.NewTime(time.Now().Add(-d))
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x", Time: &written}}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("x"), LeaseDurationSeconds: new(int32(7)), RenewTime: &metav1.MicroTime{Time: time.Now().Add(time.Hour)}},
	}
}

func TestADryRunSaysThatItsFactsAreOld(t *testing.T) {
	t.Parallel()
	moving := func(g *api.SQLServerAvailabilityGroup) { g.Status.TargetPrimary = "sales-1" }
	for name, c := range map[string]struct {
		group            func(*api.SQLServerAvailabilityGroup)
		operator, holder time.Duration
		says             string
	}{
		"nobody looks":                            {nil, 41 * time.Second, 0, "outdated: the operator has not looked for 4"},
		"the primary does not renew":              {nil, 0, 41 * time.Second, "outdated: primary sales-0 has not renewed its Lease for 4"},
		"the operator is about it":                {moving, 0, 41 * time.Second, ""},
		"all is well":                             {nil, time.Second, 2 * time.Second, ""},
		"another controller may yet take over":    {nil, 9 * time.Second, 0, ""},
		"a renewal or two are late, and no cause": {nil, 0, 8 * time.Second, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := clitest.Start(t)
			g := sales()
			if c.group != nil {
				c.group(g)
			}
			a.Add(t, g, notRenewed(manifests.DefaultNamespace, manifests.Name, c.operator), notRenewed("prod", api.LeaseName("sales"), c.holder))
			got := quiet(t, a, "failover", "sales", "--dry-run")
			if strings.Contains(got.out, "outdated:") != (c.says != "") || !strings.Contains(got.out, c.says) || got.code != exit.OK {
				t.Errorf("want %q\n%s", c.says, got)
			}
		})
	}
}

func TestAFenceOfThePrimaryNeedsAnOperatorThatMovesIt(t *testing.T) {
	t.Parallel()
	a := clitest.Start(t)
	a.Add(t, sales())
	a.Add(t, notRenewed(manifests.DefaultNamespace, manifests.Name, 10*time.Minute))
	got := quiet(t, a, "fence", "on", "sales", "sales-0", "--yes")
	if got.code != exit.Refused || !strings.Contains(got.errOut, "failover sales --direct") || len(a.Writes()) > 0 {
		t.Errorf("writes %v\n%s", a.Writes(), got)
	}
}
