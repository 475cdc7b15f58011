package tsql

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// Group describes an availability group at its creation (FG 1.1).
type Group struct {
	Name string
	// External: CLUSTER_TYPE = EXTERNAL, else NONE.
	External bool
	// Lease is WRITE_LEASE_VALIDITY, whole seconds; 0 leaves the option out. It
	// cannot be added later (47116).
	Lease time.Duration
	// First is the only replica that CREATE lists, and the local server; the others
	// are added with [AddReplica] (FG 1.2 reference form, 1.10).
	First Replica
}

// CreateGroup is CREATE AVAILABILITY GROUP with one replica and k = 0, where the
// server has no group of that name, until the guard's expiry. CREATE is reported not
// to work inside BEGIN … END (FG 1.3): it follows its guard and stands in no block.
func CreateGroup(g Group, until time.Time) string {
	options := []string{"CLUSTER_TYPE = " + clusterType(g.External), "DB_FAILOVER = ON", "REQUIRED_SYNCHRONIZED_SECONDARIES_TO_COMMIT = 0"}
	if g.External && g.Lease > 0 {
		options = append(options, fmt.Sprintf("WRITE_LEASE_VALIDITY = %d", wholeSeconds(g.Lease)))
	}
	return Guard{Group: g.Name, Until: until, Roles: []ag.Role{ag.RoleNone}}.Wrap(
		fmt.Sprintf("CREATE AVAILABILITY GROUP %s\nWITH (%s)\nFOR REPLICA ON %s", Ident(g.Name), strings.Join(options, ", "), replicaSpec(g.First, g.External)))
}

// DropGroup removes the group's local metadata where it is there (FG 1.7). It runs
// on every replica, secondaries first.
func DropGroup(group string) string {
	return when("EXISTS (SELECT 1 FROM sys.availability_groups WHERE name = "+Literal(group)+")", dropGroup(group)) + ";"
}

// Join makes this server a replica of a group whose primary already lists it, and
// lets seeding create its databases (FG 1.5, 1.6), a witness excepted (47111). It is
// refused where a replica exists (41106). JOIN waits for the configuration: 47106
// when it does not come.
func Join(group string, external, witness bool) string {
	statements := []string{join(group, external)}
	if !witness {
		statements = append(statements, grantCreateAnyDatabase(group))
	}
	return Guard{Group: group, Roles: []ag.Role{ag.RoleNone}}.Wrap(statements...)
}

// GrantCreateAnyDatabase lets automatic seeding create databases for the group (FG
// 1.6); idempotent; 47111 on a configuration-only replica.
func GrantCreateAnyDatabase(group string) string {
	return batch(grantCreateAnyDatabase(group))
}

// SetRoleSecondary re-seats a RESOLVING replica; it returns before the role has
// changed (FG 1.3); 41104 is the latch of FG 4.7.
func SetRoleSecondary(guard Guard) string {
	return guard.Wrap(alter(guard.Group, "SET (ROLE = SECONDARY)"))
}

// Offline takes the local replica to RESOLVING (FG 4.1); it needs no session key.
func Offline(guard Guard) string {
	return guard.Wrap(alter(guard.Group, "OFFLINE"))
}

// Failover promotes the local replica: write lease, session key and FAILOVER in one
// batch and one session (FG 1.4, 5.2 steps 5–6). A refusal of the lease update by
// 47116 (no lease) or 47119 (longer one in force) is tolerated and still reported
// by the driver: see [LeaseTolerated]. Any other ends the batch before FAILOVER.
// Force sends FORCE_FAILOVER_ALLOW_DATA_LOSS.
func Failover(guard Guard, lease time.Duration, force bool) string {
	verb := "FAILOVER"
	if force {
		verb = "FORCE_FAILOVER_ALLOW_DATA_LOSS"
	}
	var update, check string
	if lease > 0 {
		update = setWriteLease(guard.Group, lease)
		check = fmt.Sprintf("IF @@ERROR NOT IN (0, %d, %d) RETURN", ag.MsgLeaseNotEnabled, ag.MsgLeaseShorter)
	}
	return guard.Wrap(
		update,
		check,
		"EXEC sp_set_session_context @key = N'external_cluster', @value = N'yes'",
		alter(guard.Group, verb),
	)
}

// LeaseTolerated tells whether every Msg number of an answer to [Failover] is one
// that the lease update may give: then FAILOVER itself was accepted.
func LeaseTolerated(numbers []int32) bool {
	for _, n := range numbers {
		if n != ag.MsgLeaseNotEnabled && n != ag.MsgLeaseShorter {
			return false
		}
	}
	return len(numbers) > 0
}

// RenewWriteLease makes writes valid for lease from now (FG 5.5); harmless 47119
// when the one in force is longer; 47116 when the group was made without.
func RenewWriteLease(guard Guard, lease time.Duration) string {
	return guard.Wrap(setWriteLease(guard.Group, lease))
}

// SetCommitRule sets REQUIRED_SYNCHRONIZED_SECONDARIES_TO_COMMIT (FG 5.3) on the
// primary; it blocks without a configuration quorum; 41140 elsewhere.
func SetCommitRule(guard Guard, k int32) string {
	return guard.Wrap(alter(guard.Group, fmt.Sprintf("SET (REQUIRED_SYNCHRONIZED_SECONDARIES_TO_COMMIT = %d)", k)))
}

// Rejoin resets latched state without re-seeding where the log chain allows:
// OFFLINE, DROP, JOIN, GRANT (FG 1.7, 4.7). A configuration-only replica takes no GRANT (47111).
func Rejoin(guard Guard, external bool, mode ag.Mode) string {
	return rejoin(guard, external, mode, nil)
}

// Reseed is [Rejoin] that drops these databases before JOIN, so that automatic seeding
// finds their names free (FG 4.10): only copies that DROP of the group has left RESTORING.
func Reseed(guard Guard, external bool, databases []string) string {
	return rejoin(guard, external, ag.ModeSynchronous, databases)
}

func rejoin(guard Guard, external bool, mode ag.Mode, drop []string) string {
	statements := []string{alter(guard.Group, "OFFLINE"), dropGroup(guard.Group)}
	for _, name := range drop {
		statements = append(statements, when("EXISTS (SELECT 1 FROM sys.databases WHERE name = "+Literal(name)+
			" AND state_desc = N'RESTORING' AND replica_id IS NULL)", "DROP DATABASE "+Ident(name)))
	}
	statements = append(statements, join(guard.Group, external))
	if mode != ag.ModeConfigurationOnly {
		statements = append(statements, grantCreateAnyDatabase(guard.Group))
	}
	return guard.Wrap(statements...)
}

func alter(group, verb string) string { return "ALTER AVAILABILITY GROUP " + Ident(group) + " " + verb }

func dropGroup(group string) string { return "DROP AVAILABILITY GROUP " + Ident(group) }

func join(group string, external bool) string {
	return alter(group, "JOIN WITH (CLUSTER_TYPE = "+clusterType(external)+")")
}

func grantCreateAnyDatabase(group string) string { return alter(group, "GRANT CREATE ANY DATABASE") }

func setWriteLease(group string, lease time.Duration) string {
	return alter(group, fmt.Sprintf("SET (WRITE_LEASE_VALIDITY = %d)", wholeSeconds(lease)))
}

func clusterType(external bool) string {
	if external {
		return "EXTERNAL"
	}
	return "NONE"
}

// wholeSeconds rounds down: a write lease must never be longer than what the fence waits for. At least 1.
func wholeSeconds(d time.Duration) int64 {
	return max(1, int64(d/time.Second))
}
