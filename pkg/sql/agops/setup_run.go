package agops

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/tsql"
)

const (
	// createTimeout: CREATE and JOIN were seen to take far less (FG 4.6).
	createTimeout = 30 * time.Second
	// databaseTimeout covers CREATE DATABASE and the first backup of an empty one.
	databaseTimeout = 60 * time.Second
	// creationDeadline of the operation in the record; whoever comes goes on with it.
	creationDeadline = 10 * time.Minute
)

// Reasons of events, as api/v1alpha1 spells them.
const (
	eventCreated  = "AvailabilityGroupCreated"
	eventJoined   = "ReplicaJoined"
	eventDatabase = "DatabaseAdded"
	eventGranted  = "LeaseGranted"
)

func told(reason, format string, args ...any) []ag.Event {
	return []ag.Event{{Type: "Normal", Reason: reason, Message: fmt.Sprintf(format, args...)}}
}

func asSetupError(err error) *ag.Error {
	if err == nil {
		return nil
	}
	e := mssql.AsError(err)
	if e.Kind == ag.ErrUnknown {
		return asSwapError(err)
	}
	return e
}

// recordStep is a step that only changes the record.
func (s *Setup) recordStep(ctx context.Context, store Store, r *Report, step SetupStep) (SetupResult, error) {
	result := SetupResult{}
	if step.next != nil {
		next := step.next.Clone()
		if op := next.Operation; op != nil && op.StartedAt.IsZero() {
			op.StartedAt = s.Clock.Now().UTC()
			op.Deadline = op.StartedAt.Add(creationDeadline)
		}
		made, err := swapAbove(ctx, store, r, r.Authority, ag.Swap{Next: next, Why: step.String()})
		if err != nil {
			return result, err
		}
		result.Authority = &made
	}
	switch step.kind {
	case stepGrant:
		result.Events = told(eventGranted, "%s is granted the lease to make group %s", step.replica, r.Policy.Group)
	case stepConfirm:
		result.Initialized = true
		result.Change = &ag.RoleChange{Kind: "bootstrap", To: step.replica, Cause: "the group was made", Epoch: step.next.Epoch, Result: "done"}
		result.Events = told(eventCreated, "group %s is made, %s is PRIMARY", r.Policy.Group, step.replica)
	case stepAdopt:
		result.Initialized = true
		result.Change = &ag.RoleChange{Kind: "bootstrap", To: step.replica, Cause: "the group was there and is adopted", Epoch: step.next.Epoch, Result: "done"}
		result.Events = told(eventCreated, "group %s was there and is adopted, %s is PRIMARY", r.Policy.Group, step.replica)
	case stepInitialized:
		result.Initialized = true
		if len(r.Memory.History) == 0 {
			result.Change = &ag.RoleChange{Kind: "bootstrap", To: step.replica, Cause: "the group is there", Epoch: r.Authority.Epoch, Result: "done"}
		}
	default:
	}
	return result, nil
}

// with opens a session with one server of the snapshot.
func (s *Setup) with(ctx context.Context, r *Report, replica string, timeout time.Duration, do func(context.Context, mssql.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	seen := r.Snapshot.Find(replica)
	if seen == nil || seen.Pod.IP == "" {
		return &ag.Error{Kind: ag.ErrUnreachable, Message: replica + " has no pod with an address: nothing was sent"}
	}
	c, err := s.Servers.Connect(ctx, r.Key, replica, seen.Pod)
	if err != nil {
		return neverSent(err)
	}
	defer func() { _ = c.Close() }()
	return do(ctx, c)
}

// primary is the server that says PRIMARY; the plan has made sure that there is one.
func (s *Setup) primary(r *Report) string {
	if p := r.Snapshot.Primaries(); len(p) == 1 {
		return p[0]
	}
	return ""
}

func (s *Setup) onPrimary(ctx context.Context, r *Report, batch string) error {
	return s.with(ctx, r, s.primary(r), statementTimeout, func(ctx context.Context, c mssql.Conn) error { return c.Exec(ctx, batch) })
}

func (s *Setup) createGroup(ctx context.Context, r *Report, step SetupStep) (SetupResult, error) {
	if err := s.exchangeTrust(ctx, r); err != nil {
		return SetupResult{}, err
	}
	return SetupResult{}, s.with(ctx, r, step.replica, createTimeout, func(ctx context.Context, c mssql.Conn) error {
		now, err := serverTime(ctx, c)
		if err != nil {
			return err
		}
		return mssql.ExecGuarded(ctx, c, tsql.CreateGroup(tsql.Group{
			Name: r.Policy.Group, External: r.Policy.External, Lease: r.Policy.Timing.L,
			First: replicaOf(r.Policy, step.replica),
		}, now.Add(r.Policy.Timing.Q)))
	})
}

func replicaOf(p ag.Policy, name string) tsql.Replica {
	for _, r := range p.Replicas {
		if r.Name == name {
			return tsql.Replica{Server: r.Name, URL: r.URL, Mode: r.Mode, Readable: r.Readable}
		}
	}
	return tsql.Replica{Server: name}
}

// changeMember adds a replica to the primary's configuration or changes its mode. A
// synchronous one enters the record first (R16), by a swap of this very step (R18).
func (s *Setup) changeMember(ctx context.Context, store Store, r *Report, step SetupStep) (SetupResult, error) {
	if err := s.exchangeTrust(ctx, r); err != nil {
		return SetupResult{}, err
	}
	result := SetupResult{}
	if step.mode == ag.ModeSynchronous && !s.Omit.Has("R16") {
		made, err := s.enter(ctx, store, r, step, false)
		if err != nil {
			return result, err
		}
		result.Authority = &made
	}
	return result, s.with(ctx, r, s.primary(r), statementTimeout, func(ctx context.Context, c mssql.Conn) error {
		now, err := serverTime(ctx, c)
		if err != nil {
			return err
		}
		// Late, the keeper of the rule may have taken the member for one that has left.
		guard := tsql.Guard{Group: r.Policy.Group, Until: now.Add(r.Policy.Timing.Q), Roles: []ag.Role{ag.RolePrimary}}
		if step.kind == stepAddReplica {
			return mssql.ExecGuarded(ctx, c, tsql.AddReplica(guard, r.Policy.External, replicaOf(r.Policy, step.replica)))
		}
		return mssql.ExecGuarded(ctx, c, tsql.ModifyReplicaMode(guard, step.replica, step.mode))
	})
}

// enter records a member with its present volume. stale keeps it from being elected
// until a primary has seen it SYNCHRONIZED.
func (s *Setup) enter(ctx context.Context, store Store, r *Report, step SetupStep, stale bool) (ag.Authority, error) {
	next := r.Authority.Clone()
	next.Rule.Number++
	m := member(r.Snapshot, step.replica)
	if i := slices.IndexFunc(next.Rule.Set, func(x ag.Member) bool { return x.Replica == m.Replica }); i >= 0 {
		next.Rule.Set[i] = m
	} else {
		next.Rule.Set = append(next.Rule.Set, m)
	}
	if stale && !slices.Contains(next.Stale, step.replica) {
		next.Stale = append(next.Stale, step.replica)
	}
	made, err := swapAbove(ctx, store, r, r.Authority, ag.Swap{Next: next, Why: step.String()})
	if err == nil {
		r.Authority = made
	}
	return made, err
}

// join makes a server a member. One that comes with another data volume than the
// record's has lost its copy: it enters the record anew, as stale.
func (s *Setup) join(ctx context.Context, store Store, r *Report, step SetupStep) (SetupResult, error) {
	if err := s.exchangeTrust(ctx, r); err != nil {
		return SetupResult{}, err
	}
	result := SetupResult{}
	if step.mode == ag.ModeSynchronous {
		now := member(r.Snapshot, step.replica)
		recorded := slices.ContainsFunc(r.Authority.Rule.Set, func(m ag.Member) bool { return m == now })
		if !recorded {
			made, err := s.enter(ctx, store, r, step, r.Authority.Rule.Has(step.replica))
			if err != nil {
				return result, err
			}
			result.Authority = &made
		}
	}
	err := s.with(ctx, r, step.replica, joinTimeout, func(ctx context.Context, c mssql.Conn) error {
		return mssql.ExecGuarded(ctx, c, tsql.Join(r.Policy.Group, r.Policy.External, step.mode == ag.ModeConfigurationOnly))
	})
	if err == nil {
		result.Events = told(eventJoined, "%s has joined group %s", step.replica, r.Policy.Group)
	}
	return result, err
}

func (s *Setup) setReadable(ctx context.Context, r *Report, step SetupStep) error {
	return s.onPrimary(ctx, r, tsql.ModifyReplicaReadable(r.Policy.Group, step.replica, replicaOf(r.Policy, step.replica).Readable))
}

func (s *Setup) seedAgain(ctx context.Context, r *Report, step SetupStep) error {
	return s.onPrimary(ctx, r, tsql.RetrySeeding(r.Policy.Group, step.replica))
}

func (s *Setup) setCommitRule(ctx context.Context, r *Report, step SetupStep) error {
	return s.onPrimary(ctx, r, tsql.SetCommitRule(tsql.Guard{Group: r.Policy.Group, Roles: []ag.Role{ag.RolePrimary}}, step.k))
}

// addDatabase creates the database where it is missing and adds it to the group. The
// backup to NUL is made only where no log chain exists: it can break none.
func (s *Setup) addDatabase(ctx context.Context, r *Report, step SetupStep) (SetupResult, error) {
	var have *ag.UserDatabase
	local := &r.Snapshot.Find(step.replica).Local
	for i, d := range local.UserDatabases {
		if d.Name == step.database {
			have = &local.UserDatabases[i]
		}
	}
	var batches []string
	switch {
	case have == nil:
		batches = tsql.CreateDatabase(step.database)
	default:
		if !have.Full {
			batches = append(batches, tsql.SetRecoveryFull(step.database))
		}
		if !have.LogChain || !have.Full {
			batches = append(batches, tsql.BackupToNull(step.database))
		}
	}
	batches = append(batches, tsql.AddDatabase(r.Policy.Group, step.database))
	err := s.with(ctx, r, step.replica, databaseTimeout, func(ctx context.Context, c mssql.Conn) error {
		for _, batch := range batches {
			if err := c.Exec(ctx, batch); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return SetupResult{}, err
	}
	return SetupResult{Events: told(eventDatabase, "database %s is in group %s", step.database, r.Policy.Group)}, nil
}

// certificatePrefix of the servers' own endpoint certificates, and of the logins
// that their peers make from them.
const certificatePrefix = "kubectl_mssql_"

// certificateName is new at each making: a server that lost its volume makes another
// one, and its peers trust it beside the old one.
func certificateName(server string, now time.Time) string {
	return fmt.Sprintf("%s%s_%d", certificatePrefix, server, now.Unix())
}

// ownCertificate finds a certificate with a private key that a crash left without an endpoint.
func ownCertificate(f trustFacts, server string) string {
	for _, c := range f.certificates {
		if c.private && strings.HasPrefix(strings.ToLower(c.name), strings.ToLower(certificatePrefix+server+"_")) {
			return c.name
		}
	}
	return ""
}
