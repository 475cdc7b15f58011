package tsql

import (
	"fmt"
	"strings"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// Replica is one replica's specification (FG 1.2).
type Replica struct {
	// Server is the replica's @@SERVERNAME.
	Server string
	// URL of its mirroring endpoint: TCP://host:port.
	URL  string
	Mode ag.Mode
	// Readable: clients may read while it is a secondary (ALLOW_CONNECTIONS = ALL).
	Readable bool
}

// AddReplica is ADD REPLICA, on the primary; nothing when the configuration lists it (35282).
func AddReplica(guard Guard, external bool, r Replica) string {
	return guard.Wrap(when("NOT EXISTS ("+configuredReplica(guard.Group, r.Server)+")",
		alter(guard.Group, "ADD REPLICA ON "+replicaSpec(r, external))))
}

// RemoveReplica is REMOVE REPLICA, on the primary; nothing when it is not listed
// (35283). The removed copies become RESTORING (FG 1.3).
func RemoveReplica(group, server string) string {
	return when("EXISTS ("+configuredReplica(group, server)+")",
		alter(group, "REMOVE REPLICA ON "+Literal(server))) + ";"
}

// The MODIFY REPLICA statements set one option each, as the grammar wants (FG 1.3);
// all run on the primary.

// ModifyReplicaURL moves a replica to another endpoint address.
func ModifyReplicaURL(group, server, url string) string {
	return modifyReplica(group, server, "ENDPOINT_URL = "+Literal(url))
}

// ModifyReplicaMode changes the availability mode; not from or to CONFIGURATION_ONLY (47112).
func ModifyReplicaMode(guard Guard, server string, mode ag.Mode) string {
	return guard.Wrap(alter(guard.Group, "MODIFY REPLICA ON "+Literal(server)+" WITH (AVAILABILITY_MODE = "+string(mode)+")"))
}

// ModifyReplicaReadable opens or closes a secondary for readers.
func ModifyReplicaReadable(group, server string, readable bool) string {
	return modifyReplica(group, server, secondaryRole(readable))
}

// RetrySeeding triggers automatic seeding anew after a final failure (FG 4.10, 19495).
func RetrySeeding(group, server string) string {
	return modifyReplica(group, server, "SEEDING_MODE = AUTOMATIC")
}

func modifyReplica(group, server, option string) string {
	return batch(alter(group, "MODIFY REPLICA ON "+Literal(server)+" WITH ("+option+")"))
}

func configuredReplica(group, server string) string {
	return "SELECT 1 FROM sys.availability_replicas AS r JOIN sys.availability_groups AS g ON g.group_id = r.group_id" +
		" WHERE g.name = " + Literal(group) + " AND r.replica_server_name = " + Literal(server)
}

func replicaSpec(r Replica, external bool) string {
	options := []string{"ENDPOINT_URL = " + Literal(r.URL), "AVAILABILITY_MODE = " + string(r.Mode)}
	if r.Mode != ag.ModeConfigurationOnly { // any other option there is 47112
		failover := "MANUAL"
		if external {
			failover = "EXTERNAL"
		}
		options = append(options, "FAILOVER_MODE = "+failover, "SEEDING_MODE = AUTOMATIC", secondaryRole(r.Readable))
	}
	return fmt.Sprintf("%s WITH (%s)", Literal(r.Server), strings.Join(options, ", "))
}

func secondaryRole(readable bool) string {
	allow := "NO"
	if readable {
		allow = "ALL"
	}
	return "SECONDARY_ROLE (ALLOW_CONNECTIONS = " + allow + ")"
}
