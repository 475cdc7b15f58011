package agops

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// Setup makes the group, brings its members in and its databases up. Every step is
// planned from what is observed and recorded, never from what was done before: it
// goes on after a crash at any point, and it adopts a group that is there. It never
// drops a group.
type Setup struct {
	Servers Servers
	Clock   clock.PassiveClock
	// Random fills passwords that nobody needs to know; crypto/rand outside tests.
	Random func([]byte) error
	// Omit leaves rules out: empty but in proofs that a rule is needed.
	Omit ag.Omit
}

// SetupReport says what is missing.
type SetupReport struct {
	// Done: the group is made, every replica of the spec is a member, and every
	// database is in the group and on every data replica.
	Done bool
	// Step that was tried in this pass, and its error; empty when none was.
	Step string
	Err  *ag.Error
	// Waiting says what is waited for, one sentence each.
	Waiting []string
	// Blocks are what only a person can solve.
	Blocks []ag.Block
	// Joined are the replicas that are members, Seeding those whose copies are on their way.
	Joined  []string
	Seeding []string
}

// Attempts at one step. After the last one the first making of the group stops, for
// the request "rebootstrap" to arm it again; later steps are tried again at leisure.
const (
	maxAttempts = 3
	firstDelay  = 5 * time.Second
	retryAfter  = 10 * time.Minute
)

// stepKind is what a step does.
type stepKind string

const (
	stepEndpoints   stepKind = "make endpoints"
	stepGrant       stepKind = "grant the lease to"
	stepCreate      stepKind = "create group on"
	stepConfirm     stepKind = "confirm the group on"
	stepAdopt       stepKind = "adopt the group on"
	stepAddReplica  stepKind = "add replica"
	stepJoin        stepKind = "join"
	stepMode        stepKind = "change availability mode of"
	stepLeave       stepKind = "take out of the commit rule"
	stepReadable    stepKind = "change readability of"
	stepDatabase    stepKind = "add database"
	stepSeed        stepKind = "seed again to"
	stepCommitRule  stepKind = "set commit rule on"
	stepInitialized stepKind = "recognise the group on"
)

// SetupStep is one step.
type SetupStep struct {
	kind     stepKind
	replica  string
	database string
	// next is the record of a step that swaps; nil for the others.
	next *ag.Authority
	k    int32
	mode ag.Mode
}

// String is one line; it is also the step's name in the memory.
func (s SetupStep) String() string {
	parts := []string{string(s.kind)}
	if s.database != "" {
		parts = append(parts, s.database)
	}
	if s.replica != "" && s.kind != stepDatabase {
		parts = append(parts, s.replica)
	}
	return strings.Join(parts, " ")
}

// counted tells whether attempts are counted: those of steps that speak SQL.
func (s SetupStep) counted() bool {
	switch s.kind {
	case stepGrant, stepConfirm, stepAdopt, stepInitialized, stepLeave:
		return false
	case stepEndpoints, stepCreate, stepAddReplica, stepJoin, stepMode, stepReadable, stepDatabase, stepSeed, stepCommitRule:
	}
	return true
}

// SetupPlan is what to do next.
type SetupPlan struct {
	Report SetupReport
	// Memory with the attempt counted.
	Memory ag.Memory
	Step   *SetupStep
}

// draftPlan collects steps in the order in which they are wanted.
type draftPlan struct {
	report SetupReport
	steps  []SetupStep
	omit   ag.Omit
}

func (d *draftPlan) wait(format string, args ...any) {
	d.report.Waiting = append(d.report.Waiting, fmt.Sprintf(format, args...))
}

func (d *draftPlan) block(reason, replica, format string, args ...any) {
	d.report.Blocks = append(d.report.Blocks, ag.Block{Reason: reason, Replica: replica, Message: fmt.Sprintf(format, args...)})
}

// Plan chooses the next step. It is pure.
func (s *Setup) Plan(p ag.Policy, m ag.Memory, snap ag.Snapshot, auth ag.Authority, now time.Time) SetupPlan {
	d := &draftPlan{omit: s.Omit}
	switch {
	case p.Paused:
		d.wait("the group is paused")
	case !m.Initialized:
		planGroup(d, p, m, snap, auth, now)
	default:
		planMembers(d, p, snap, auth)
	}
	plan := SetupPlan{Report: d.report, Memory: m}
	plan.Report.Done = m.Initialized && !p.Paused && len(d.steps) == 0 && len(d.report.Waiting) == 0 && len(d.report.Blocks) == 0
	plan.Memory.Setup = wanted(m.Setup, d.steps)
	for i := range d.steps {
		step := d.steps[i]
		if ok, why := mayTry(plan.Memory.Setup, step, now, m.Initialized); !ok {
			if why.Reason != "" {
				plan.Report.Blocks = append(plan.Report.Blocks, why)
			} else {
				plan.Report.Waiting = append(plan.Report.Waiting, why.Message)
			}
			if !m.Initialized {
				break // the making of the group is one sequence
			}
			continue
		}
		plan.Report.Step = step.String()
		plan.Step = &step
		if step.counted() {
			plan.Memory.Setup = count(plan.Memory.Setup, step, now)
		}
		break
	}
	return plan
}

// wanted forgets the attempts at steps that are not wanted any more.
func wanted(tried []ag.SetupStep, steps []SetupStep) []ag.SetupStep {
	var kept []ag.SetupStep
	for _, t := range tried {
		for _, s := range steps {
			if s.String() == t.Step {
				kept = append(kept, t)
				break
			}
		}
	}
	return kept
}

// mayTry applies back-off and cap.
func mayTry(tried []ag.SetupStep, step SetupStep, now time.Time, initialized bool) (bool, ag.Block) {
	for _, t := range tried {
		if t.Step != step.String() {
			continue
		}
		delay := firstDelay << max(t.Attempts-1, 0)
		if t.Attempts >= maxAttempts {
			if !initialized {
				return false, ag.Block{Reason: reasonBootstrapUsedUp, Replica: step.replica,
					Message: fmt.Sprintf("%s failed %d times, last with: %s", step, t.Attempts, orUnknown(t.LastError))}
			}
			delay = retryAfter
		}
		elapsed := max(now.Sub(t.LastAttemptAt), 0)
		switch {
		case elapsed >= delay:
			return true, ag.Block{}
		case t.Attempts >= maxAttempts:
			return false, ag.Block{Reason: reasonAttemptsUsedUp, Replica: step.replica,
				Message: fmt.Sprintf("%s failed %d times, last with: %s; tried again in %s", step, t.Attempts, orUnknown(t.LastError), (delay - elapsed).Round(time.Minute))}
		default:
			return false, ag.Block{Message: fmt.Sprintf("%s: attempt %d failed (%s), the next one in %s", step, t.Attempts, orUnknown(t.LastError), delay-elapsed)}
		}
	}
	return true, ag.Block{}
}

// Reasons, as api/v1alpha1 spells them.
const (
	reasonBootstrapUsedUp = "BootstrapAttemptsUsedUp"
	reasonAttemptsUsedUp  = "AttemptsUsedUp"
	reasonNameMismatch    = "ServerNameMismatch"
	reasonLoginFailed     = "LoginFailed"
	reasonNotStarted      = "ServerDoesNotStart"
	reasonNoPrimary       = "NoPrimary"
	reasonNotInitialized  = "NotInitialized"
)

func orUnknown(s string) string {
	if s == "" {
		return "no answer was recorded"
	}
	return s
}

// count adds one attempt, before it is made.
func count(tried []ag.SetupStep, step SetupStep, now time.Time) []ag.SetupStep {
	out := append([]ag.SetupStep(nil), tried...)
	for i := range out {
		if out[i].Step == step.String() {
			out[i].Attempts++
			out[i].LastAttemptAt = now
			return out
		}
	}
	return append(out, ag.SetupStep{Step: step.String(), Attempts: 1, LastAttemptAt: now})
}

// SetupResult is what a step has achieved.
type SetupResult struct {
	Events      []ag.Event
	Authority   *ag.Authority
	Initialized bool
	Change      *ag.RoleChange
}

// Record enters the end of a step into the memory.
func (s *Setup) Record(m ag.Memory, step SetupStep, result SetupResult, err error, now time.Time) ag.Memory {
	m.Setup = append([]ag.SetupStep(nil), m.Setup...)
	for i := range m.Setup {
		if m.Setup[i].Step != step.String() {
			continue
		}
		switch e := asSetupError(err); {
		case e == nil:
			m.Setup = append(m.Setup[:i], m.Setup[i+1:]...)
		case e.Kind == ag.ErrUnreachable || e.Kind == ag.ErrConflict:
			// Nothing was sent: no attempt was made.
			m.Setup[i].Attempts = max(m.Setup[i].Attempts-1, 0)
			m.Setup[i].LastError = e.Error()
		default:
			m.Setup[i].LastError = e.Error()
		}
		break
	}
	if err == nil && result.Initialized {
		m.Initialized = true
		if result.Change != nil {
			c := *result.Change
			c.StartedAt, c.CompletedAt = now, now
			m.History = append([]ag.RoleChange{c}, m.History...)
		}
	}
	return m
}

// Run carries out one step.
func (s *Setup) Run(ctx context.Context, store Store, r *Report, step SetupStep) (SetupResult, error) {
	switch step.kind {
	case stepGrant, stepAdopt, stepConfirm, stepInitialized, stepLeave:
		return s.recordStep(ctx, store, r, step)
	case stepEndpoints:
		return SetupResult{}, s.makeEndpoints(ctx, r)
	case stepCreate:
		return s.createGroup(ctx, r, step)
	case stepAddReplica, stepMode:
		return s.changeMember(ctx, store, r, step)
	case stepReadable:
		return SetupResult{}, s.setReadable(ctx, r, step)
	case stepJoin:
		return s.join(ctx, store, r, step)
	case stepDatabase:
		return s.addDatabase(ctx, r, step)
	case stepSeed:
		return SetupResult{}, s.seedAgain(ctx, r, step)
	case stepCommitRule:
		return SetupResult{}, s.setCommitRule(ctx, r, step)
	}
	return SetupResult{}, &ag.Error{Kind: ag.ErrUnknown, Message: "no procedure for " + step.String()}
}
