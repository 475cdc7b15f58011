package observe

import (
	"slices"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
)

// remoteView is what one server says about the other replicas of its configuration.
type remoteView struct {
	servers []string
	remotes []ag.Remote
}

func (v remoteView) about(server string) (ag.Remote, bool) {
	for i, s := range v.servers {
		if equalServer(s, server) {
			return v.remotes[i], true
		}
	}
	return ag.Remote{}, false
}

// noLease is what write_lease_remaining_ticks shows without an external lease (FG 3.4).
const noLease = 1<<63 - 1

// parse reads the result sets of tsql.Observe.
func parse(results []mssql.Result, self string) (ag.Local, remoteView) {
	l := ag.Local{Reach: ag.ReachOK, Role: ag.RoleNone, Endpoint: ag.EndpointMissing}
	hidden := false
	for _, row := range results[0].All() {
		l.ServerName = row.Text("server_name")
		l.Version = row.Text("product_version")
		l.HADR = row.Bool("hadr_enabled")
		l.Express = row.Int("engine_edition") == 4
		hidden = row.Int("hidden") > 0
	}
	for _, row := range results[1].All() {
		l.GroupID = row.Text("group_id")
		l.ReplicaID = row.Text("replica_id")
		l.External = row.Text("cluster_type_desc") == "EXTERNAL"
		l.Role = role(row.Text("role_desc"))
		l.OperationalState = row.Text("operational_state_desc")
		l.PrimaryName = row.Text("primary_replica")
		l.Sequence = row.Int("sequence_number")
		l.RequiredToCommit = int32(row.Int("required_to_commit"))
		if ticks := row.Int("lease_ticks"); !row.Null("lease_ticks") && ticks != noLease {
			l.LeaseEnabled = true
			l.LeaseRemaining = time.Duration(max(ticks, 0)) * time.Millisecond // FG 11 no. 5
		}
		if !row.Null("commit_pending_seconds") {
			// A commit that began in this very second is pending too.
			l.CommitPendingFor = max(time.Duration(row.Int("commit_pending_seconds"))*time.Second, time.Millisecond)
		}
	}
	if l.Role == ag.RoleNone && hidden {
		l.Reach = ag.ReachForbidden
		l.Role = ag.RoleUnknown
		l.Err = &ag.Error{Kind: ag.ErrLogin, Message: "the login may not see the availability group: it needs VIEW ANY DEFINITION"}
	}
	v := replicas(results[2], &l)
	copies(results[3], self, &l, &v)
	forks := userDatabases(results[4], &l)
	for i := range l.Databases {
		d := &l.Databases[i]
		for _, f := range forks {
			if f.name == d.Name {
				d.RecoveryFork = f.fork
				if d.State == ag.DatabaseUnknown {
					d.State = f.state
				}
			}
		}
	}
	for _, row := range results[5].All() {
		l.EndpointName = row.Text("name")
		l.Endpoint = ag.EndpointState(row.Text("state_desc"))
		l.EndpointCertificate = row.Text("certificate")
		l.EndpointCertExpiry = row.Time("expiry_date")
	}
	seeding(results[6], &v)
	return l, v
}

func role(desc string) ag.Role {
	switch r := ag.Role(desc); r {
	case ag.RolePrimary, ag.RoleSecondary, ag.RoleResolving:
		return r
	case ag.RoleUnknown, ag.RoleNone:
	}
	return ag.RoleUnknown
}

func replicas(r mssql.Result, l *ag.Local) remoteView {
	var v remoteView
	for _, row := range r.All() {
		server := row.Text("replica_server_name")
		l.Configured = append(l.Configured, ag.ConfiguredReplica{
			Server: server, Mode: ag.Mode(row.Text("availability_mode_desc")),
			URL: row.Text("endpoint_url"), Readable: row.Text("secondary_allow") == "ALL",
		})
		if row.Bool("is_local") {
			continue
		}
		v.servers = append(v.servers, server)
		v.remotes = append(v.remotes, ag.Remote{
			Connected:        row.Text("connected_state_desc") == "CONNECTED",
			Role:             role(row.Text("role_desc")),
			Health:           row.Text("synchronization_health_desc"),
			LastConnectError: int32(row.Int("last_connect_error_number")),
			LastConnectText:  row.Text("last_connect_error_description"),
		})
	}
	return v
}

func copies(r mssql.Result, self string, l *ag.Local, v *remoteView) {
	for _, row := range r.All() {
		d := ag.Database{
			Name:          row.Text("database_name"),
			State:         ag.DatabaseState(row.Text("database_state_desc")),
			Sync:          ag.SyncState(row.Text("synchronization_state_desc")),
			Joined:        row.Bool("is_database_joined"),
			FailoverReady: row.Bool("is_failover_ready"),
			Suspended:     row.Bool("is_suspended"),
			SuspendReason: row.Text("suspend_reason_desc"),
			HardenedLSN:   row.Text("hardened_lsn"),
			SendQueueKB:   row.Int("log_send_queue_size"),
			RedoQueueKB:   row.Int("redo_queue_size"),
			LagSeconds:    row.Int("secondary_lag_seconds"),
			LagUnknown:    row.Null("secondary_lag_seconds"),
		}
		server := row.Text("replica_server_name")
		// The local replica's own rows; is_local is NULL where a copy has no state yet.
		if row.Bool("is_local") || equalServer(server, l.ServerName) || equalServer(server, self) {
			d.LagUnknown = false // of itself a server tells no lag
			l.Databases = append(l.Databases, d)
			continue
		}
		for i, s := range v.servers {
			if equalServer(s, server) {
				v.remotes[i].Databases = append(v.remotes[i].Databases, d)
			}
		}
	}
}

type fork struct {
	name, fork string
	state      ag.DatabaseState
}

func userDatabases(r mssql.Result, l *ag.Local) []fork {
	var forks []fork
	for _, row := range r.All() {
		state := ag.DatabaseState(row.Text("state_desc"))
		l.UserDatabases = append(l.UserDatabases, ag.UserDatabase{
			Name: row.Text("name"), State: state,
			Full:     row.Text("recovery_model_desc") == "FULL",
			LogChain: row.Bool("log_chain"),
			Grouped:  !row.Null("replica_id"),
		})
		forks = append(forks, fork{name: row.Text("name"), fork: row.Text("recovery_fork"), state: state})
	}
	return forks
}

// seeding marks replicas that are being seeded, and databases whose newest seeding
// has failed; the rows come newest first.
func seeding(r mssql.Result, v *remoteView) {
	type pair struct{ server, database string }
	var seen []pair
	for _, row := range r.All() {
		p := pair{row.Text("replica_server_name"), row.Text("database_name")}
		if p.server == "" || slices.Contains(seen, p) {
			continue
		}
		seen = append(seen, p)
		for i, s := range v.servers {
			if !equalServer(s, p.server) {
				continue
			}
			switch {
			case row.Null("completion_time"):
				v.remotes[i].Seeding = true
			case row.Text("current_state") == "FAILED" && p.database != "":
				v.remotes[i].SeedingFailed = append(v.remotes[i].SeedingFailed, p.database)
			}
		}
	}
}
