package failover

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/change"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/clitest"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/output"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/agops"
)

// fastClock advances with each tick that is waited for.
type fastClock struct {
	*clocktesting.FakeClock
	tick func(time.Time)
}

func (c fastClock) NewTicker(d time.Duration) clock.Ticker { return fastTicker{c, d} }

type fastTicker struct {
	clock fastClock
	every time.Duration
}

func (t fastTicker) C() <-chan time.Time {
	t.clock.Step(t.every)
	if t.clock.tick != nil {
		t.clock.tick(t.clock.Now())
	}
	ch := make(chan time.Time, 1)
	ch <- t.clock.Now()
	return ch
}

func (fastTicker) Stop() {}

// testFactory reaches an API server in memory.
type testFactory struct {
	a   *clitest.API
	clk clock.WithTicker
}

func (f testFactory) Namespace() (string, bool, error)  { return "prod", true, nil }
func (f testFactory) RESTConfig() (*rest.Config, error) { return f.a.Config(), nil }
func (f testFactory) Clock() clock.WithTicker           { return f.clk }
func (f testFactory) ServerTime() (time.Time, bool)     { return f.clk.Now(), true }
func (f testFactory) Name() string                      { return "kubectl mssql" }
func (f testFactory) Client() (client.Client, error) {
	s, err := factory.Scheme()
	if err != nil {
		return nil, err
	}
	return client.New(f.a.Config(), client.Options{Scheme: s})
}

// fakeEngine plays passes.
type fakeEngine struct {
	look     agops.Report
	passes   func(id string) []agops.Report
	request  func() string
	progress func(agops.Done)
	driven   int
	closed   bool
	released bool
	err      error
}

func (e *fakeEngine) Look(context.Context, ag.Key, clock.Clock) (agops.Report, error) {
	return e.look, e.err
}

func (e *fakeEngine) Drive(ctx context.Context, _ ag.Key, _ clock.Clock, done func(agops.Report) bool) (agops.Report, error) {
	var last agops.Report
	for _, p := range e.passes(e.request()) {
		e.driven++
		e.progress(agops.Done{What: fmt.Sprintf("pass %d", e.driven)})
		last = p
		if done(p) {
			return p, nil
		}
	}
	if err := ctx.Err(); err != nil {
		return last, err
	}
	return last, errors.New("the API server does not answer")
}

func (e *fakeEngine) Release(ctx context.Context, _ ag.Key) (bool, error) {
	e.released = ctx.Err() == nil
	return true, nil
}

func (e *fakeEngine) Close() { e.closed = true }

func seen(primary string, roles ...ag.Role) agops.Report {
	r := agops.Report{Memory: ag.Memory{Initialized: true}, Authority: ag.Authority{Exists: true, Holder: ag.Run{Replica: primary}}}
	for i, role := range roles {
		x := ag.Replica{Name: fmt.Sprintf("sales-%d", i)}
		x.Local.Reach, x.Local.Role, x.Local.Sequence = ag.ReachOK, role, 9
		r.Snapshot.Replicas = append(r.Snapshot.Replicas, x)
		if x.Name != primary {
			r.Decision.Readiness = append(r.Decision.Readiness, ag.Readiness{Replica: x.Name, Ready: true})
		}
	}
	return r
}

func answered(r agops.Report, id, result, message string) agops.Report {
	r.Memory.LastResult = &ag.Result{ID: id, Kind: "failover", Target: "sales-1", Result: result, Message: message}
	return r
}

type directCase struct {
	engine  *fakeEngine
	options *Options
	api     *clitest.API
	errOut  fmt.Stringer
}

// directOptions is a call with --direct on a group whose status nobody has kept up to
// date: it still shows sales-2 as primary.
func directOptions(t *testing.T, tick func(a *clitest.API)) directCase {
	t.Helper()
	a := clitest.Start(t)
	g := &api.SQLServerAvailabilityGroup{TypeMeta: metav1.TypeMeta{APIVersion: api.GroupVersion.String(), Kind: "SQLServerAvailabilityGroup"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "sales", UID: "u"}}
	g.Spec.Replicas = make([]api.AGReplicaSpec, 3)
	g.Status.PrimaryReplica = "sales-2"
	a.Add(t, g)
	s, _, _, errOut := iostreams.Test()
	s.ASCII = true
	clk := fastClock{FakeClock: clocktesting.NewFakeClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
	if tick != nil {
		clk.tick = func(time.Time) { tick(a) }
	}
	c := directCase{api: a, errOut: errOut, engine: &fakeEngine{look: seen("sales-0", ag.RolePrimary, ag.RoleSecondary, ag.RoleSecondary)}}
	c.engine.request = func() string {
		q, err := api.ParseRequest(a.Get("sqlserveravailabilitygroups", "prod", "sales").GetAnnotations()[api.AnnotationRequest])
		if err != nil || q == nil {
			t.Errorf("no order stands in the group: %v", err)
			return ""
		}
		if q.ExpectedPrimary != "sales-0" || q.ExpectedSequence != 9 {
			t.Errorf("the order carries what a stale status says: %+v", q)
		}
		return q.ID
	}
	c.options = &Options{
		Call: change.Call{Flags: change.Flags{Yes: true, Wait: true, Timeout: time.Minute, Output: output.New()},
			Factory: testFactory{a, clk}, Streams: s, Verb: "failover", Name: "sales"},
		To: "sales-1", Direct: true, OperatorNamespace: "mssql-system",
		NewID: func() (string, error) { return "fo-1", nil },
		Engine: func(_ *rest.Config, _ client.Client, _ clock.Clock, identity string, progress func(agops.Done)) Engine {
			if !strings.HasPrefix(identity, "direct/") {
				t.Errorf("identity %q", identity)
			}
			c.engine.progress = progress
			return c.engine
		},
	}
	return c
}

func lock(holder string, version int) *coordinationv1.Lease {
	seconds := int32(15)
	renewed := metav1.NewMicroTime(time.Date(2020, 1, 1, 0, 0, version, 0, time.UTC))
	return &coordinationv1.Lease{TypeMeta: metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "mssql-system", Name: manifests.Name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &renewed}}
}

func TestDirectMovesThePrimaryUnderTheLeaseAndPrintsWhatItDoes(t *testing.T) {
	t.Parallel()
	c := directOptions(t, nil)
	c.engine.passes = func(id string) []agops.Report {
		moving := seen("sales-0", ag.RolePrimary, ag.RoleSecondary, ag.RoleSecondary)
		moving.Authority.Operation = &ag.Operation{ID: "o", Phase: ag.PhaseDemoting, From: "sales-0", Target: "sales-1"}
		moved := answered(seen("sales-1", ag.RoleResolving, ag.RolePrimary, ag.RoleSecondary), id, api.RequestDone, "")
		return []agops.Report{moving, moved, answered(seen("sales-1", ag.RoleSecondary, ag.RolePrimary, ag.RoleSecondary), id, api.RequestDone, "")}
	}
	if err := c.options.Run(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, c.errOut)
	}
	if c.engine.driven != 3 || !c.engine.closed {
		t.Errorf("%d passes, closed %v: it must stay until the old primary is back", c.engine.driven, c.engine.closed)
	}
	for _, want := range []string{"sales-0 -> sales-1", "pass 1", "demoting: sales-0 -> sales-1", "switched over   sales-1 is primary"} {
		if !strings.Contains(c.errOut.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, c.errOut)
		}
	}
}

func TestDirectIsRefusedWhileAnOperatorActs(t *testing.T) {
	t.Parallel()
	n := 0
	c := directOptions(t, func(a *clitest.API) {
		n++
		a.Add(t, lock("mssql-7_x", n))
	})
	c.api.Add(t, lock("mssql-7_x", 0))
	err := c.options.Run(t.Context())
	if exit.Of(err) != exit.Refused || !strings.Contains(err.Error(), "mssql-7_x acts") || c.engine.driven > 0 || len(c.api.Writes()) > 0 {
		t.Errorf("%v, %d passes, writes %v", err, c.engine.driven, c.api.Writes())
	}
}

func TestDirectGoesOnWhenTheLockIsNotRenewedAnyMoreOrNotThere(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(directCase){
		"never renewed again": func(c directCase) { c.api.Add(t, lock("mssql-7_x", 0)) },
		"given up":            func(c directCase) { c.api.Add(t, lock("", 0)) },
		"not there":           func(directCase) {},
		"not to be read":      func(c directCase) { c.api.Forbid("get", "leases") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := directOptions(t, nil)
			prepare(c)
			c.engine.passes = func(id string) []agops.Report {
				return []agops.Report{answered(seen("sales-1", ag.RoleSecondary, ag.RolePrimary, ag.RoleSecondary), id, api.RequestDone, "")}
			}
			if err := c.options.Run(t.Context()); err != nil || c.engine.driven != 1 {
				t.Errorf("%v, %d passes\n%s", err, c.engine.driven, c.errOut)
			}
		})
	}
}

func TestDirectThatEndsInTheMiddleSaysThatNobodyGoesOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cancel bool
		result string
		code   exit.Code
		says   string
	}{
		"Ctrl-C":                 {true, api.RequestRunning, exit.Interrupted, "nobody goes on with it"},
		"the API server is gone": {false, api.RequestRunning, exit.Unexpected, "does not answer"},
		"the rules refuse it":    {false, api.RequestRefused, exit.Refused, "R12: behind"},
		"it was given up":        {false, api.RequestFailed, exit.Unexpected, "R12: behind"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := directOptions(t, nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			d.engine.passes = func(id string) []agops.Report {
				if c.cancel {
					cancel()
				}
				return []agops.Report{answered(seen("sales-0", ag.RolePrimary, ag.RoleSecondary, ag.RoleSecondary), id, c.result, "sales-1: R12: behind")}
			}
			err := d.options.Run(ctx)
			if exit.Of(err) != c.code || !strings.Contains(err.Error(), c.says) {
				t.Errorf("exit %d: %v", exit.Of(err), err)
			}
			if d.engine.released != (c.result == api.RequestRunning) {
				t.Errorf("what was begun was given away: %v", d.engine.released)
			}
			var e *exit.Error
			if c.result == api.RequestRunning && (!errors.As(err, &e) || !strings.Contains(e.Hint, "failover sales --direct")) {
				t.Errorf("it does not say how to go on: %+v", e)
			}
		})
	}
}

func TestDirectLooksForItselfAndNotAtTheStatus(t *testing.T) {
	t.Parallel()
	c := directOptions(t, nil)
	c.options.To = "sales-0" // the status says sales-2 is primary
	if err := c.options.Run(t.Context()); err != nil || c.engine.driven > 0 || !strings.Contains(c.errOut.String(), "sales-0 is primary already") {
		t.Errorf("%v\n%s", err, c.errOut)
	}
	c = directOptions(t, nil)
	c.engine.err = errors.New("secrets is forbidden")
	if err := c.options.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "secrets is forbidden") || !c.engine.closed {
		t.Errorf("%v", err)
	}
}

func TestDirectFinishesWhatSomebodyElseBegan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		to   string
		code exit.Code
		runs int
	}{
		"its target":     {"sales-1", exit.OK, 2},
		"whatever it is": {"", exit.OK, 2},
		"another target": {"sales-2", exit.Conflict, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := directOptions(t, nil)
			d.options.To = c.to
			moving := seen("sales-1", ag.RoleResolving, ag.RoleSecondary, ag.RoleSecondary)
			moving.Authority.Operation = &ag.Operation{ID: "o", Kind: ag.OperationFailover, Phase: ag.PhaseFencing, From: "sales-0", Target: "sales-1"}
			d.engine.look = moving
			d.engine.request = func() string { return "" }
			d.engine.passes = func(string) []agops.Report {
				return []agops.Report{moving, seen("sales-1", ag.RoleSecondary, ag.RolePrimary, ag.RoleSecondary)}
			}
			err := d.options.Run(t.Context())
			if exit.Of(err) != c.code || d.engine.driven != c.runs || len(d.api.Writes()) > 0 {
				t.Errorf("exit %d (%v), %d passes, writes %v\n%s", exit.Of(err), err, d.engine.driven, d.api.Writes(), d.errOut)
			}
		})
	}
}
