package agops

import (
	"slices"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/decide"
)

// creationGrace is how long a group that was just created may still be RESOLVING on
// its first replica (FG 4.1) before a restart of the server is taken to be the reason.
const creationGrace = 30 * time.Second

// planGroup plans until the group is made, or found and adopted.
func planGroup(d *draftPlan, p ag.Policy, m ag.Memory, snap ag.Snapshot, auth ag.Authority, now time.Time) {
	var members, primaries []*ag.Replica
	for i := range snap.Replicas {
		r := &snap.Replicas[i]
		if r.Local.Reach != ag.ReachOK || r.Local.Role == ag.RoleNone {
			continue
		}
		members = append(members, r)
		if r.Local.Role == ag.RolePrimary {
			primaries = append(primaries, r)
		}
	}
	switch {
	case len(members) == 0:
		planCreation(d, p, snap, auth)
	case len(primaries) == 1:
		planConfirmation(d, p, snap, auth, primaries[0])
	case auth.Exists && !creating(auth):
		// The record says that the group was made; only the status has forgotten it.
		d.steps = append(d.steps, SetupStep{kind: stepInitialized, replica: members[0].Name})
	case len(primaries) > 1:
		d.block(reasonNoPrimary, "", "%s say PRIMARY of group %s and there is no record of which one it is: take all but one offline", names(primaries), p.Group)
	case auth.Exists && createdLongAgo(m, auth, members[0].Name, now):
		// The first primary restarted before anybody saw it PRIMARY: it is the last
		// primary by the record, and the decision promotes it again.
		next := finished(auth, auth.Holder.Replica, members[0].Local.GroupID)
		d.steps = append(d.steps, SetupStep{kind: stepConfirm, replica: auth.Holder.Replica, next: &next})
	case auth.Exists:
		d.wait("%s is coming up as the primary of the new group", auth.Holder.Replica)
	default:
		if missing := notAMember(p, snap, members); missing != "" {
			d.block(reasonNoPrimary, members[0].Name, "group %s exists on %s, nobody is PRIMARY and there is no record of who was; it is adopted when all answer, but %s: or promote the right replica by hand", p.Group, names(members), missing)
			return
		}
		// Nobody is PRIMARY, and all who may have been say so: the record is made anew for
		// nobody, and an election among all of them follows (R4).
		d.steps = append(d.steps, SetupStep{kind: stepInitialized, replica: members[0].Name})
	}
}

// notAMember says which replica of the group does not tell what it is, or is in another group:
// of the spec's, and of those that the members know.
func notAMember(p ag.Policy, snap ag.Snapshot, members []*ag.Replica) string {
	for _, pol := range p.Replicas {
		r := snap.Find(pol.Name)
		switch {
		case pol.Mode == ag.ModeAsynchronous:
		case r == nil || r.Local.Reach != ag.ReachOK || r.Local.Role == ag.RoleUnknown:
			return pol.Name + " does not answer"
		case r.Local.Role == ag.RoleNone:
			return pol.Name + " has no replica of it"
		case r.Local.GroupID != members[0].Local.GroupID:
			return pol.Name + " has another group of that name"
		}
	}
	for _, m := range members {
		for _, c := range m.Local.Configured {
			if c.Mode == ag.ModeSynchronous && !slices.ContainsFunc(p.Replicas, func(r ag.ReplicaPolicy) bool {
				return strings.EqualFold(r.Name, c.Server) && r.Mode == ag.ModeSynchronous
			}) {
				return c.Server + ", which is synchronous by the configuration of " + m.Name + ", is not so in the spec"
			}
		}
	}
	return ""
}

func names(replicas []*ag.Replica) string {
	list := make([]string, len(replicas))
	for i, r := range replicas {
		list[i] = r.Name
	}
	return strings.Join(list, ", ")
}

func creating(auth ag.Authority) bool {
	return auth.Operation != nil && auth.Operation.Kind == ag.OperationBootstrap
}

func createdLongAgo(m ag.Memory, auth ag.Authority, member string, now time.Time) bool {
	if auth.Holder.Replica != member {
		return false
	}
	for _, t := range m.Setup {
		if t.Step == (SetupStep{kind: stepCreate, replica: member}).String() {
			return now.Sub(t.LastAttemptAt) >= creationGrace
		}
	}
	return true
}

// planCreation: no server has the group. All must say so themselves, because a
// replica that was not asked may hold the group and its data.
func planCreation(d *draftPlan, p ag.Policy, snap ag.Snapshot, auth ag.Authority) {
	ready := true
	for i := range snap.Replicas {
		if !serverReady(d, &snap.Replicas[i]) {
			ready = false
		}
	}
	if !ready || len(snap.Replicas) == 0 {
		return
	}
	first := &snap.Replicas[0]
	if slices.ContainsFunc(snap.Replicas, func(r ag.Replica) bool { return r.Local.Endpoint == ag.EndpointMissing }) {
		d.steps = append(d.steps, SetupStep{kind: stepEndpoints})
		return
	}
	run, ok := runOf(first)
	if !ok {
		d.wait("the instance manager of %s does not answer: %s", first.Name, orUnknown(first.Manager.Error))
		return
	}
	if !auth.Exists || !auth.Holder.Same(run) || !creating(auth) {
		next := firstGrant(p, snap, auth, run)
		d.steps = append(d.steps, SetupStep{kind: stepGrant, replica: first.Name, next: &next})
		return
	}
	d.steps = append(d.steps, SetupStep{kind: stepCreate, replica: first.Name})
}

// serverReady tells whether a server can become a member now, and why not.
func serverReady(d *draftPlan, r *ag.Replica) bool {
	l := r.Local
	switch {
	case l.Reach == ag.ReachForbidden:
		d.block(reasonLoginFailed, r.Name, "the operator's login may not see availability groups on %s", r.Name)
	case l.Reach == ag.ReachLoginFailed:
		d.wait("the operator cannot log in to %s yet: %s", r.Name, l.Err.Error())
	case l.Reach != ag.ReachOK:
		d.wait("%s does not answer yet (%s)", r.Name, orNoAnswer(l.Reach))
	case !strings.EqualFold(l.ServerName, r.Name):
		d.block(reasonNameMismatch, r.Name, "the server of %s calls itself %q: a group lists servers by their own name", r.Name, l.ServerName)
	case !l.HADR:
		d.block(reasonNotStarted, r.Name, "Always On is not enabled on %s", r.Name)
	default:
		return true
	}
	return false
}

func orNoAnswer(r ag.Reach) string {
	if r == ag.ReachUnknown {
		return "no answer"
	}
	return string(r)
}

// runOf is the run of the manager that answers for this pod.
func runOf(r *ag.Replica) (ag.Run, bool) {
	run := decide.RunOf(r)
	return run, !run.Zero()
}

// firstGrant is the record before the group is made: the first replica alone, k = 0.
func firstGrant(p ag.Policy, snap ag.Snapshot, auth ag.Authority, run ag.Run) ag.Authority {
	epoch, rule := aboveAll(snap, auth)
	return ag.Authority{
		Exists: true, AGUID: p.UID, Holder: run, Epoch: epoch,
		Operation: &ag.Operation{ID: p.UID + "/create", Kind: ag.OperationBootstrap, Phase: ag.PhaseCreating, Target: run.Replica},
		Rule:      ag.CommitRule{Number: rule, Set: []ag.Member{member(snap, run.Replica)}},
	}
}

// aboveAll is an epoch and a rule number above all that any manager or the record has seen (R4).
func aboveAll(snap ag.Snapshot, auth ag.Authority) (epoch, rule int64) {
	epoch, rule = auth.Epoch, auth.Rule.Number
	for _, r := range snap.Replicas {
		epoch, rule = max(epoch, r.Manager.HighestEpoch), max(rule, r.Manager.HighestRule)
	}
	return epoch + 1, rule + 1
}

func member(snap ag.Snapshot, replica string) ag.Member {
	m := ag.Member{Replica: replica}
	if r := snap.Find(replica); r != nil {
		m.PVCUID = r.Pod.PVCUID
	}
	return m
}

// planConfirmation: exactly one server says PRIMARY.
func planConfirmation(d *draftPlan, p ag.Policy, snap ag.Snapshot, auth ag.Authority, primary *ag.Replica) {
	switch {
	case p.External != primary.Local.External:
		d.block(reasonNotInitialized, primary.Name, "group %s exists on %s with another cluster type than the spec's: it cannot be changed", p.Group, primary.Name)
	case auth.Exists && creating(auth):
		next := finished(auth, primary.Name, primary.Local.GroupID)
		d.steps = append(d.steps, SetupStep{kind: stepConfirm, replica: primary.Name, next: &next})
	case auth.Exists:
		d.steps = append(d.steps, SetupStep{kind: stepInitialized, replica: primary.Name})
	default:
		run, ok := runOf(primary)
		if !ok {
			d.wait("the instance manager of %s does not answer: %s", primary.Name, orUnknown(primary.Manager.Error))
			return
		}
		next := adopted(p, snap, auth, primary, run)
		d.steps = append(d.steps, SetupStep{kind: stepAdopt, replica: primary.Name, next: &next})
	}
}

// finished ends the creation in the record.
func finished(auth ag.Authority, primary, groupID string) ag.Authority {
	next := auth.Clone()
	next.Operation = nil
	next.LastPrimary = primary
	next.GroupID = groupID
	return next
}

// adopted is the record of a group that was there before us (R4): the PRIMARY as it
// is, k = 0 over all synchronous replicas, everybody but the PRIMARY stale.
func adopted(p ag.Policy, snap ag.Snapshot, auth ag.Authority, primary *ag.Replica, run ag.Run) ag.Authority {
	epoch, rule := aboveAll(snap, auth)
	next := ag.Authority{
		Exists: true, AGUID: p.UID, Holder: run, Epoch: epoch, Rule: ag.CommitRule{Number: rule},
		LastPrimary: primary.Name, GroupID: primary.Local.GroupID, NoWriteLease: !primary.Local.LeaseEnabled,
	}
	for _, c := range primary.Local.Configured {
		if c.Mode != ag.ModeSynchronous {
			continue
		}
		name := c.Server
		for _, r := range p.Replicas {
			if strings.EqualFold(r.Name, c.Server) {
				name = r.Name
			}
		}
		next.Rule.Set = append(next.Rule.Set, member(snap, name))
		if name != primary.Name {
			next.Stale = append(next.Stale, name)
		}
	}
	return next
}

// planMembers plans what is missing of members and databases. It acts only beside an
// undisputed primary that holds the record, and never while an operation runs.
func planMembers(d *draftPlan, p ag.Policy, snap ag.Snapshot, auth ag.Authority) {
	primary := undisputed(snap, auth)
	if primary == nil {
		d.wait("there is no undisputed primary now")
		return
	}
	for i := range snap.Replicas {
		r := &snap.Replicas[i]
		if r.Name != primary.Name {
			planMember(d, primary, r)
		}
		planLeave(d, snap, auth, primary, r)
	}
	if c := configuredAs(primary, primary.Name); c != nil && c.Readable != primary.Readable {
		d.steps = append(d.steps, SetupStep{kind: stepReadable, replica: primary.Name})
	}
	planDatabases(d, p, snap, primary)
	if !p.External && p.K >= 0 && primary.Local.RequiredToCommit != p.K && synchronized(snap, primary.Name) >= int(p.K) {
		d.steps = append(d.steps, SetupStep{kind: stepCommitRule, replica: primary.Name, k: p.K})
	}
}

// undisputed is the one replica that says PRIMARY, when the record agrees and is at rest.
func undisputed(snap ag.Snapshot, auth ag.Authority) *ag.Replica {
	primaries := snap.Primaries()
	if len(primaries) != 1 {
		return nil
	}
	primary := snap.Find(primaries[0])
	if run, ok := runOf(primary); !ok || !auth.Exists || auth.Operation != nil || !auth.Holder.Same(run) {
		return nil
	}
	return primary
}

func planMember(d *draftPlan, primary, r *ag.Replica) {
	configured := configuredAs(primary, r.Name)
	switch {
	case configured == nil && !serverReady(d, r):
	case configured == nil && r.Local.Endpoint == ag.EndpointMissing:
		d.steps = append(d.steps, SetupStep{kind: stepEndpoints})
	case configured == nil && r.Local.Role != ag.RoleNone && r.Local.GroupID != primary.Local.GroupID:
		d.block(reasonNotInitialized, r.Name, "%s holds a replica of another group with this name (group id %s): drop it there when nothing in it is needed", r.Name, r.Local.GroupID)
	case configured == nil:
		d.steps = append(d.steps, SetupStep{kind: stepAddReplica, replica: r.Name, mode: r.Mode})
	case configured.Mode != r.Mode && (configured.Mode == ag.ModeConfigurationOnly || r.Mode == ag.ModeConfigurationOnly):
		d.block(reasonNotInitialized, r.Name, "%s is %s and cannot become %s in place (Msg 47112)", r.Name, configured.Mode, r.Mode)
	case configured.Mode != r.Mode:
		d.steps = append(d.steps, SetupStep{kind: stepMode, replica: r.Name, mode: r.Mode})
	case r.Local.Reach == ag.ReachOK && r.Local.Role == ag.RoleNone:
		if !serverReady(d, r) {
			return
		}
		if r.Local.Endpoint == ag.EndpointMissing {
			d.steps = append(d.steps, SetupStep{kind: stepEndpoints})
			return
		}
		d.steps = append(d.steps, SetupStep{kind: stepJoin, replica: r.Name, mode: r.Mode})
	case r.Local.Reach != ag.ReachOK && (r.Remote == nil || !r.Remote.Connected):
		d.wait("%s does not answer (%s)", r.Name, orNoAnswer(r.Local.Reach))
	case r.Mode != ag.ModeConfigurationOnly && configured.Readable != r.Readable:
		d.steps = append(d.steps, SetupStep{kind: stepReadable, replica: r.Name})
	default:
		d.report.Joined = append(d.report.Joined, r.Name)
	}
}

// planLeave takes a replica that is not synchronous any more out of the recorded set,
// once at least k of those that remain are SYNCHRONIZED (R17).
func planLeave(d *draftPlan, snap ag.Snapshot, auth ag.Authority, primary, r *ag.Replica) {
	c := configuredAs(primary, r.Name)
	if c == nil || c.Mode == ag.ModeSynchronous || !auth.Rule.Has(r.Name) {
		return
	}
	inStep := 0
	for _, m := range auth.Rule.Set {
		if other := snap.Find(m.Replica); m.Replica != r.Name && m.Replica != primary.Name && other != nil && inStepWithPrimary(other) {
			inStep++
		}
	}
	if inStep < int(auth.Rule.K) && !d.omit.Has("R17") {
		d.wait("%s stays in the commit rule until %d of the others are SYNCHRONIZED (R17)", r.Name, auth.Rule.K)
		return
	}
	next := auth.Clone()
	next.Rule.Number++
	next.Rule.Set = slices.DeleteFunc(next.Rule.Set, func(m ag.Member) bool { return m.Replica == r.Name })
	d.steps = append(d.steps, SetupStep{kind: stepLeave, replica: r.Name, next: &next})
}

func configuredAs(primary *ag.Replica, server string) *ag.ConfiguredReplica {
	for i, c := range primary.Local.Configured {
		if strings.EqualFold(c.Server, server) {
			return &primary.Local.Configured[i]
		}
	}
	return nil
}

func planDatabases(d *draftPlan, p ag.Policy, snap ag.Snapshot, primary *ag.Replica) {
	for _, name := range p.Databases {
		if !slices.ContainsFunc(primary.Local.Databases, func(x ag.Database) bool { return x.Name == name }) {
			d.steps = append(d.steps, SetupStep{kind: stepDatabase, replica: primary.Name, database: name})
			continue
		}
		for i := range snap.Replicas {
			r := &snap.Replicas[i]
			if r.Name == primary.Name || r.Mode == ag.ModeConfigurationOnly || r.Remote == nil {
				continue
			}
			switch {
			case slices.ContainsFunc(r.Remote.Databases, func(x ag.Database) bool { return x.Name == name && x.Joined }):
			case slices.Contains(r.Remote.SeedingFailed, name) && !r.Remote.Seeding:
				d.steps = append(d.steps, SetupStep{kind: stepSeed, replica: r.Name, database: name})
			default:
				if !slices.Contains(d.report.Seeding, r.Name) {
					d.report.Seeding = append(d.report.Seeding, r.Name)
				}
				d.wait("database %s is on its way to %s", name, r.Name)
			}
		}
	}
}

// synchronized counts the secondaries all of whose databases are SYNCHRONIZED.
func synchronized(snap ag.Snapshot, primary string) int {
	n := 0
	for i := range snap.Replicas {
		if r := &snap.Replicas[i]; r.Name != primary && r.Mode == ag.ModeSynchronous && inStepWithPrimary(r) {
			n++
		}
	}
	return n
}

// inStepWithPrimary: the primary sees every copy there SYNCHRONIZED.
func inStepWithPrimary(r *ag.Replica) bool {
	if r.Remote == nil || !r.Remote.Connected || len(r.Remote.Databases) == 0 {
		return false
	}
	return !slices.ContainsFunc(r.Remote.Databases, func(x ag.Database) bool { return x.Sync != ag.SyncSynchronized })
}
