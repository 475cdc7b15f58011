//go:build linux

package instance

import (
	"context"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/tsql"
)

// operatorLogin is the login of the controller, the plugin and this manager; sa only makes it.
const operatorLogin = "kubectl_mssql"

// saLogin is used over loopback only.
const saLogin = "sa"

// dialFunc opens a session with the server in this container.
type dialFunc func(ctx context.Context, user, password string) (mssql.Conn, error)

// loopback dials 127.0.0.1. The certificate is not verified: nobody else can listen
// on the container's own loopback while sqlservr does.
func loopback(port int32) dialFunc {
	d := &mssql.Dialer{AppName: "kubectl-mssql instance"}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port)))
	return func(ctx context.Context, user, password string) (mssql.Conn, error) {
		return d.Dial(ctx, address, mssql.Login{
			User: user, Password: func(context.Context) (string, error) { return password, nil },
		})
	}
}

// localState is what the own server said of itself in one answer.
type localState struct {
	// serverTime was read by the server before the answer arrived at received.
	serverTime time.Time
	received   time.Duration
	// role is RoleNone when the server has no replica of the group.
	role     ag.Role
	groupID  string
	sequence int64
	k        int32
	// lease is the remaining write lease; leaseOff when the group has none.
	lease      time.Duration
	leaseKnown bool
	leaseOff   bool
	// pending is the age of a configuration commit in flight.
	pending time.Duration
	// primary is whom the server says to follow: for people and for failsafe, never proof.
	primary      string
	configured   []ag.ConfiguredReplica
	connected    map[string]bool
	synchronized []string
	// sick lists local databases of the group that cannot be used, as "name: STATE".
	sick      []string
	databases int
}

// readLocal asks on an open session; batch is tsql.ManagerState of the group.
func readLocal(ctx context.Context, c mssql.Conn, batch string, clock clocks) (localState, error) {
	results, err := c.Query(ctx, batch)
	received := clock.now().Mono
	if err != nil {
		return localState{}, err
	}
	if len(results) != tsql.ManagerStateSets || len(results[0].Rows) != 1 {
		return localState{}, &ag.Error{Kind: ag.ErrUnknown, Message: fmt.Sprintf(
			"the server answered %d result sets where %d were asked for", len(results), tsql.ManagerStateSets)}
	}
	s := localState{received: received, role: ag.RoleNone, connected: map[string]bool{}}
	s.serverTime = results[0].Row(0).Time(tsql.ServerTimeColumn)
	if s.serverTime.IsZero() {
		return localState{}, &ag.Error{Kind: ag.ErrUnknown, Message: "the server did not tell its time"}
	}
	if len(results[1].Rows) == 0 {
		return s, nil
	}
	s.readGroup(results[1].Row(0))
	s.readReplicas(results[2])
	s.readDatabases(results[3])
	return s, nil
}

func (s *localState) readGroup(row mssql.Row) {
	s.groupID = row.Text("group_id")
	s.sequence = row.Int("sequence_number")
	s.k = int32(row.Int("required_to_commit")) //nolint:gosec // at most eight
	s.role = ag.Role(row.Text("role_desc"))
	s.primary = row.Text("primary_replica")
	s.pending = time.Duration(row.Int("commit_pending_seconds")) * time.Second
	if row.Null("lease_ticks") {
		return
	}
	ticks := row.Int("lease_ticks")
	if ticks == math.MaxInt64 { // what a group without an external lease shows (FG 3.4)
		s.leaseOff = true
		return
	}
	s.leaseKnown = true
	s.lease = time.Duration(max(0, min(ticks, int64(time.Hour/time.Millisecond)*24))) * time.Millisecond
}

func (s *localState) readReplicas(r mssql.Result) {
	for _, row := range r.All() {
		name := row.Text("replica_server_name")
		s.configured = append(s.configured, ag.ConfiguredReplica{
			Server: name, Mode: ag.Mode(row.Text("availability_mode_desc")),
		})
		s.connected[strings.ToLower(name)] = row.Text("connected_state_desc") == "CONNECTED"
	}
}

// readDatabases finds the replicas whose every database is SYNCHRONIZED in this server's view.
func (s *localState) readDatabases(r mssql.Result) {
	behind, seen := map[string]bool{}, map[string]bool{}
	for _, row := range r.All() {
		name := strings.ToLower(row.Text("replica_server_name"))
		seen[name] = true
		if ag.SyncState(row.Text("synchronization_state_desc")) != ag.SyncSynchronized {
			behind[name] = true
		}
		if !row.Bool("is_local") {
			continue
		}
		s.databases++
		switch state := ag.DatabaseState(row.Text("database_state_desc")); state {
		case ag.DatabaseSuspect, ag.DatabaseRecoveryPending, ag.DatabaseOffline, ag.DatabaseEmergency:
			s.sick = append(s.sick, row.Text("database_name")+": "+string(state))
		case ag.DatabaseUnknown, ag.DatabaseOnline, ag.DatabaseRestoring, ag.DatabaseRecovering:
		}
	}
	for _, c := range s.configured {
		name := strings.ToLower(c.Server)
		// A group without databases has nothing to lag behind with: connected is enough (FG 0.3 no. 11).
		ok := seen[name] && !behind[name] || len(seen) == 0 && s.connected[name]
		if c.Mode == ag.ModeSynchronous && ok {
			s.synchronized = append(s.synchronized, c.Server)
		}
	}
}

// expiry is when a statement that is sent at now, and may be under way for q, must no
// longer be executed, in the server's own time (R5). The server's clock was at least
// serverTime when the answer arrived, so that the expiry is never later than q from now.
func (s localState) expiry(now, q time.Duration) time.Time {
	return s.serverTime.Add(now - s.received + q)
}
