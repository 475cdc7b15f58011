package agops

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/decide"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
)

// Engine runs passes. One engine serves many groups, one pass a group at a time.
type Engine struct {
	observer Observer
	store    Store
	executor Executor
	setup    *Setup
	clock    clock.PassiveClock
	identity string
	progress func(Done)
	omit     ag.Omit
	started  time.Time

	mu      sync.Mutex
	watches map[string]ag.Watch
	trust   map[string]*trusted
}

// Options make an engine.
type Options struct {
	Observer Observer
	Store    Store
	Executor Executor
	Setup    *Setup
	Clock    clock.PassiveClock
	// Identity is the owner of the operations that this process starts:
	// "controller/<pod>" or "direct/<user>@<host>".
	Identity string
	// Progress hears of every action once it was tried; nil for nobody.
	Progress func(Done)
	// Omit leaves rules out: empty but in proofs that a rule is needed.
	Omit ag.Omit
}

// Done is one thing that was tried.
type Done struct {
	Key  ag.Key
	What string
	Err  *ag.Error
	Took time.Duration
}

// NewEngine makes an engine.
func NewEngine(o Options) *Engine {
	return &Engine{
		observer: o.Observer, store: o.Store, executor: o.Executor, setup: o.Setup, clock: o.Clock,
		identity: o.Identity, progress: o.Progress, omit: o.Omit, started: o.Clock.Now(), watches: map[string]ag.Watch{}, trust: map[string]*trusted{},
	}
}

// Report is what one pass saw, decided and did.
type Report struct {
	Key       ag.Key
	Now       time.Time
	Policy    ag.Policy
	Authority ag.Authority
	// NoProof says why there is no record, when Authority.Exists is false.
	NoProof  string
	Snapshot ag.Snapshot
	// Decision of pkg/sql/decide; empty while the group is not made.
	Decision ag.Decision
	// Setup: what is missing of group, members and databases.
	Setup SetupReport
	// Memory after the pass, as saved.
	Memory   ag.Memory
	Outcomes []ag.Outcome
	// Events to be told, in order; what they say is true now.
	Events []ag.Event
	// Conflict: somebody else changed the record or the status; nothing after it was done.
	Conflict bool
	// Next is when to call again at the latest.
	Next time.Duration
}

// Intervals between passes.
const (
	// idleInterval is the pass period when all is well: failures that no event tells of are seen by it.
	idleInterval = 2 * time.Second
	// soon after an action: its effect is about to be seen.
	soon = time.Second
	// brisk is the pause while an operation makes progress: nobody can write meanwhile.
	brisk = 200 * time.Millisecond
	// afterConflict is short: the object that won is already there.
	afterConflict = 200 * time.Millisecond
	// recordTimeout for the last write of a pass whose own context has ended.
	recordTimeout = 5 * time.Second
)

// Step runs one pass. It fails only when the API server cannot be read or written,
// or the resource contradicts itself; everything else is in the report.
func (e *Engine) Step(ctx context.Context, key ag.Key) (Report, error) {
	began := e.clock.Since(e.started)
	loaded, err := e.store.Load(ctx, key)
	if err != nil {
		return Report{Key: key, Next: idleInterval}, err
	}
	r := Report{Key: key, Policy: loaded.Policy, Authority: loaded.Authority, NoProof: loaded.NoProof, Memory: loaded.Memory, Next: idleInterval}
	snapshot, err := e.observer.Observe(ctx, key, loaded.Policy, loaded.Authority.Holder.Replica)
	if err != nil {
		return r, err
	}
	r.Snapshot = snapshot
	ended := e.clock.Since(e.started)
	r.Now = e.clock.Now().UTC().Truncate(time.Second)

	if changed, err := e.overtaken(ctx, key, loaded.Authority, snapshot); changed || err != nil {
		r.Conflict, r.Next = changed, afterConflict
		return r, err
	}
	if rearmed(&loaded, r.Now) {
		if err := e.save(ctx, &r, loaded.Memory); err != nil {
			return r, conflict(&r, err)
		}
	}
	if !r.Memory.Initialized {
		return r, e.stepSetup(ctx, &r)
	}
	in := decide.Input{
		Now: r.Now, Clock: ag.Clock{Began: began, Ended: ended}, Observer: e.identity,
		Authority: loaded.Authority, Snapshot: snapshot, Policy: loaded.Policy, Memory: loaded.Memory,
		Watch: e.watch(loaded.Policy.UID), Request: loaded.Request, Omit: e.omit,
	}
	r.Decision = decide.Decide(in)
	e.keepWatch(loaded.Policy.UID, in.Watch, loaded.Authority, r.Decision.Watch)
	if err := e.save(ctx, &r, r.Decision.Memory); err != nil {
		return r, conflict(&r, err)
	}
	e.run(ctx, &r, r.Decision.Actions)
	after := decide.Record(r.Memory, r.Outcomes, r.Now)
	if err := e.saveLast(ctx, &r, after); err != nil {
		return r, conflict(&r, err)
	}
	if !r.Conflict {
		r.Events = append(r.Events, r.Decision.Events...)
	}
	if w := r.Decision.Wait; w != nil {
		r.Next = min(r.Next, max(w.Until.Sub(r.Now), soon))
	}
	if len(r.Outcomes) > 0 {
		r.Next = soon
	}
	if hurried(r) {
		r.Next = pace(r.Decision.Wait, e.clock.Since(e.started)-began)
	}
	switch {
	case r.Conflict:
		r.Next = afterConflict
	case quiet(r):
		return r, e.stepSetup(ctx, &r)
	}
	return r, nil
}

// overtaken: a manager has seen a later record than the one that this pass began with. Where
// the Lease has it by now this pass is out of date; else the Lease is a restored one (R4).
func (e *Engine) overtaken(ctx context.Context, key ag.Key, read ag.Authority, s ag.Snapshot) (bool, error) {
	if read.Swaps <= 0 || s.HighestSwaps() <= read.Swaps {
		return false, nil
	}
	again, err := e.store.Load(ctx, key)
	return err == nil && again.Authority.Swaps != read.Swaps, err
}

// hurried: a role change is under way, and nothing that it waits for is missing.
func hurried(r Report) bool {
	op := r.Authority.Operation
	return op != nil && op.Phase != ag.PhaseCreating && len(r.Decision.Blocks) == 0
}

// pace is the pause before the next pass of a hurried operation, after one that took so
// long: short, but when the wait ends before a pass like this one would have ended, until
// that very moment.
func pace(w *ag.Wait, took time.Duration) time.Duration {
	if w == nil || w.Left <= 0 {
		return brisk
	}
	if left := w.Left - took; left > 0 && left < brisk+took {
		return left
	}
	return brisk
}

// quiet: the pass has neither cut a connection nor failed, and nobody suspects the
// primary. Then there is time for a step of the setup, which may take seconds.
func quiet(r Report) bool {
	for _, o := range r.Outcomes {
		if o.Err != nil || o.Action.Disruptive() {
			return false
		}
	}
	return r.Memory.PrimaryFailure == nil
}

// stepSetup makes one step towards the group, its members and its databases.
func (e *Engine) stepSetup(ctx context.Context, r *Report) error {
	if e.setup == nil {
		return nil
	}
	plan := e.setup.Plan(r.Policy, r.Memory, r.Snapshot, r.Authority, r.Now)
	r.Setup = plan.Report
	if err := e.save(ctx, r, plan.Memory); err != nil { // attempts are counted before they are made
		return conflict(r, err)
	}
	if plan.Step == nil {
		e.renewTrust(ctx, r)
		return nil
	}
	started := e.clock.Now()
	result, err := e.setup.Run(ctx, e.store, r, *plan.Step)
	r.Setup.Err = mssql.AsError(err)
	e.tell(Done{Key: r.Key, What: plan.Step.String(), Err: r.Setup.Err, Took: e.clock.Since(started)})
	r.Next = soon
	if errors.Is(err, ErrChanged) {
		r.Conflict, r.Next = true, afterConflict
	}
	if err == nil {
		r.Events = append(r.Events, result.Events...)
		if result.Authority != nil {
			r.Authority = *result.Authority
		}
	}
	return conflict(r, e.saveLast(ctx, r, e.setup.Record(r.Memory, *plan.Step, result, err, r.Now)))
}

// run carries out the actions in order and stops at the first error; promises that were
// given are recorded although others were not.
func (e *Engine) run(ctx context.Context, r *Report, actions []ag.Action) {
	pass := Pass{Key: r.Key, Policy: r.Policy, Snapshot: r.Snapshot, Authority: r.Authority}
	var asked, answered []string
	for _, action := range actions {
		started := e.clock.Now()
		var failed *ag.Error
		if swap, ok := action.(ag.Swap); ok {
			swap = swap.Promised(asked, answered)
			action = swap
			next, err := swapAbove(ctx, e.store, r, pass.Authority, swap)
			if failed = asSwapError(err); failed == nil {
				pass.Authority, r.Authority = next, next
				pass.Swapped = started
			}
		} else {
			failed = e.executor.Execute(ctx, pass, action)
		}
		o := ag.Outcome{Action: action, Err: failed, StartedAt: started, Took: e.clock.Since(started)}
		r.Outcomes = append(r.Outcomes, o)
		e.tell(Done{Key: r.Key, What: action.String(), Err: failed, Took: o.Took})
		if p, ok := action.(ag.Promise); ok {
			if asked, answered = p.Replicas, p.Answered(failed); len(answered) > 0 {
				continue
			}
		}
		if failed != nil {
			r.Conflict = failed.Kind == ag.ErrConflict
			return
		}
	}
}

func (e *Engine) tell(d Done) {
	if e.progress != nil {
		e.progress(d)
	}
}

func asSwapError(err error) *ag.Error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrChanged):
		return &ag.Error{Kind: ag.ErrConflict, Message: err.Error()}
	}
	return &ag.Error{Kind: ag.ErrAPI, Message: err.Error()}
}

// swapAbove swaps the record to one whose count of swaps is above all that was seen (R4): a
// record of a release that did not count begins again where the count has stopped.
func swapAbove(ctx context.Context, s Store, r *Report, before ag.Authority, swap ag.Swap) (ag.Authority, error) {
	swap.Next.Swaps = max(swap.Next.Swaps, r.Snapshot.HighestSwaps(), r.Memory.Swaps)
	return s.Swap(ctx, r.Key, before, swap)
}

// save writes the memory when it differs, with the highest count of swaps in it; the report
// carries what is saved.
func (e *Engine) save(ctx context.Context, r *Report, after ag.Memory) error {
	after.Swaps = max(after.Swaps, r.Memory.Swaps, r.Authority.Swaps)
	if reflect.DeepEqual(normal(r.Memory), normal(after)) {
		r.Memory = after
		return nil
	}
	if err := e.store.Save(ctx, r.Key, r.Memory, after); err != nil {
		return fmt.Errorf("save the memory of %s/%s: %w", r.Key.Namespace, r.Key.Name, err)
	}
	r.Memory = after
	return nil
}

// saveLast saves even when the pass' own time is over: what was done must be known.
func (e *Engine) saveLast(ctx context.Context, r *Report, after ag.Memory) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	return e.save(ctx, r, after)
}

// conflict turns a lost race into data.
func conflict(r *Report, err error) error {
	if err != nil && errors.Is(err, ErrChanged) {
		r.Conflict, r.Next = true, afterConflict
		return nil
	}
	return err
}

// normal makes empty and nil lists equal.
func normal(m ag.Memory) ag.Memory {
	if len(m.Recoveries) == 0 {
		m.Recoveries = nil
	}
	if len(m.Blocks) == 0 {
		m.Blocks = nil
	}
	if len(m.History) == 0 {
		m.History = nil
	}
	if len(m.Refusals) == 0 {
		m.Refusals = nil
	}
	if len(m.Setup) == 0 {
		m.Setup = nil
	}
	return m
}

// Look reads the record of one group and does no more: for a process that does not
// act, but shall not start from nothing when it does. What it has seen counts in its
// first pass.
func (e *Engine) Look(ctx context.Context, key ag.Key) error {
	began := e.clock.Since(e.started)
	loaded, err := e.store.Load(ctx, key)
	if err != nil {
		return err
	}
	ended := e.clock.Since(e.started)
	e.mu.Lock()
	defer e.mu.Unlock()
	uid := loaded.Policy.UID
	e.watches[uid] = decide.Look(e.watches[uid], loaded.Authority, ag.Clock{Began: began, Ended: ended}, loaded.Policy.Timing.Renew)
	return nil
}

// Sighted takes in a record that was not asked for: an event of the Lease. It may be late,
// which only makes what it shows count from later on.
func (e *Engine) Sighted(a ag.Authority) {
	if !a.Exists || a.AGUID == "" {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now, old := e.clock.Since(e.started), e.watches[a.AGUID]
	if a.Epoch < old.Epoch {
		return // of a grant that is known to be over
	}
	e.watches[a.AGUID] = decide.Look(old, a, ag.Clock{Began: now, Ended: now}, 0)
}

func (e *Engine) watch(uid string) ag.Watch {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.watches[uid]
}

// keepWatch keeps what a pass has seen, which began with what was seen before. When an event
// has shown another renewal while the pass was under way, that one is the newer, and was
// first seen when the event came.
func (e *Engine) keepWatch(uid string, before ag.Watch, read ag.Authority, w ag.Watch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.watches[uid]
	if event := now.Renewals != before.Renewals; event && now.Epoch == read.Epoch && now.Renewals != read.Renewals && now.Renewals != "" {
		w.Renewals, w.Seen, w.Reads = now.Renewals, now.Seen, now.Reads
	}
	e.watches[uid] = w
}

// Forget drops what this process has seen of a resource that is gone.
func (e *Engine) Forget(uid string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.watches, uid)
	delete(e.trust, uid)
}

// rearmed answers the request that closes the setup's circuit breaker again.
func rearmed(l *Loaded, now time.Time) bool {
	if l.Request == nil || l.Request.Kind != requestRebootstrap {
		return false
	}
	request := *l.Request
	l.Request = nil
	if l.Memory.HandledRequest == request.ID {
		return false
	}
	l.Memory.Setup = nil
	l.Memory.HandledRequest = request.ID
	l.Memory.LastResult = &ag.Result{ID: request.ID, Kind: request.Kind, Result: decide.ResultDone,
		Message: "attempts are counted from zero again", CompletedAt: now}
	return true
}

const requestRebootstrap = "rebootstrap"
