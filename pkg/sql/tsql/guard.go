package tsql

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// Guard is what must hold at the instant at which the server executes a batch.
// A guarded batch that does not run its statements answers one row with one column,
// [RefusedColumn]; a batch that ran them answers no rows at all.
type Guard struct {
	// Group whose local replica is tested.
	Group string
	// Until is the expiry in the server's own time (R5): read with [ServerTime] in
	// the same session, plus what the caller allows. Zero means no expiry, and is
	// only for statements that change neither a role nor a lease.
	Until time.Time
	// Roles that the local replica may have; empty means any. ag.RoleNone means
	// that the server has no replica of the group.
	Roles []ag.Role
	// Sequence that the local configuration must have; 0 means any.
	Sequence int64
}

// RefusedColumn names the column of a refusal; its value is one of the two below.
const (
	RefusedColumn  = "refused"
	RefusedExpired = "expired"
	RefusedGuard   = "guard"
)

// ServerTimeColumn names the column of [ServerTime].
const ServerTimeColumn = "server_time"

// ServerTime reads the server's clock, UTC, as datetime2(7).
func ServerTime() string {
	return "SELECT SYSUTCDATETIME() AS " + ServerTimeColumn + ";"
}

// Wrap puts statements behind the guard. The expiry is tested first and last: what
// stands between is two catalog reads.
func (g Guard) Wrap(statements ...string) string {
	var b strings.Builder
	b.WriteString("SET NOCOUNT ON;\n")
	if c := g.condition(); c != "" {
		fmt.Fprintf(&b, "IF NOT (%s)\nBEGIN\n  SELECT N'%s' AS %s;\n  RETURN;\nEND;\n", c, RefusedGuard, RefusedColumn)
	}
	if !g.Until.IsZero() {
		fmt.Fprintf(&b, "IF SYSUTCDATETIME() >= %s\nBEGIN\n  SELECT N'%s' AS %s;\n  RETURN;\nEND;\n", Time(g.Until), RefusedExpired, RefusedColumn)
	}
	b.WriteString(batch(statements...))
	return b.String()
}

func (g Guard) condition() string {
	var tests []string
	none := false
	var roles []string
	for _, r := range g.Roles {
		if r == ag.RoleNone {
			none = true
			continue
		}
		roles = append(roles, Literal(string(r)))
	}
	if len(roles) > 0 {
		tests = append(tests, "EXISTS (SELECT 1 FROM sys.availability_groups AS g"+
			" JOIN sys.dm_hadr_availability_replica_states AS rs ON rs.group_id = g.group_id"+
			" WHERE g.name = "+Literal(g.Group)+" AND rs.is_local = 1 AND rs.role_desc IN ("+strings.Join(roles, ", ")+"))")
	}
	if none {
		tests = append(tests, "NOT EXISTS (SELECT 1 FROM sys.availability_groups AS g WHERE g.name = "+Literal(g.Group)+")")
	}
	c := strings.Join(tests, " OR ")
	if g.Sequence != 0 {
		s := fmt.Sprintf("EXISTS (SELECT 1 FROM sys.availability_groups AS g WHERE g.name = %s AND g.sequence_number = %d)", Literal(g.Group), g.Sequence)
		switch {
		case c == "":
			c = s
		case len(tests) > 1:
			c = "(" + c + ") AND " + s
		default:
			c += " AND " + s
		}
	}
	return c
}
