package server

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	mssql "github.com/microsoft/go-mssqldb"
)

// Replica is a server that takes part in MakeGroup, reached as a client reaches it.
type Replica struct {
	Name         string // @@SERVERNAME
	EndpointURL  string // as the peers dial it
	EndpointPort int
	DB           *sql.DB // sysadmin, database master
}

// Group says what MakeGroup makes.
type Group struct {
	Name      string   // default ag1
	Databases []string // made on the first replica and added
	// Options is the text inside CREATE … WITH (…); default EXTERNAL with DB_FAILOVER.
	Options string
	// Mode is the availability mode of replica i; default SYNCHRONOUS_COMMIT.
	Mode func(i int) string
}

const endpointName = "hadr_endpoint"

// MakeGroup makes an availability group out of fresh instances by T-SQL alone: master
// keys, certificates, logins and endpoints (field guide §2.1, a certificate per replica),
// the group on the first replica, and the others joined (§1.10). It returns when every
// database is SYNCHRONIZED on every synchronous replica.
func MakeGroup(ctx context.Context, replicas []Replica, g Group) error {
	if g.Name == "" {
		g.Name = "ag1"
	}
	if g.Options == "" {
		g.Options = "CLUSTER_TYPE = EXTERNAL, DB_FAILOVER = ON"
	}
	if g.Mode == nil {
		g.Mode = func(int) string { return "SYNCHRONOUS_COMMIT" }
	}
	if err := exchangeCertificates(ctx, replicas); err != nil {
		return err
	}
	if err := execute(ctx, replicas[0], createGroup(replicas, g)); err != nil {
		return err
	}
	grant := "ALTER AVAILABILITY GROUP " + bracket(g.Name) + " GRANT CREATE ANY DATABASE"
	for i, r := range replicas {
		if i > 0 {
			if err := execute(ctx, r, "ALTER AVAILABILITY GROUP "+bracket(g.Name)+" JOIN WITH (CLUSTER_TYPE = EXTERNAL)"); err != nil {
				return err
			}
		}
		if g.Mode(i) == "CONFIGURATION_ONLY" {
			continue
		}
		if err := execute(ctx, r, grant); err != nil {
			return err
		}
	}
	for _, d := range g.Databases {
		for _, statement := range []string{
			"CREATE DATABASE " + bracket(d),
			"ALTER DATABASE " + bracket(d) + " SET RECOVERY FULL",
			"BACKUP DATABASE " + bracket(d) + " TO DISK = 'NUL'",
			"ALTER AVAILABILITY GROUP " + bracket(g.Name) + " ADD DATABASE " + bracket(d),
		} {
			if err := execute(ctx, replicas[0], statement); err != nil {
				return err
			}
		}
	}
	if len(g.Databases) == 0 {
		return nil
	}
	return AwaitSynchronized(ctx, replicas[0].DB, g.Name)
}

func bracket(name string) string { return "[" + strings.ReplaceAll(name, "]", "]]") + "]" }

func execute(ctx context.Context, r Replica, statement string) error {
	if _, err := r.DB.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("%s on %s: %w", firstWords(statement), r.Name, err)
	}
	return nil
}

// firstWords names a statement without the secrets that may follow.
func firstWords(statement string) string {
	words := strings.Fields(statement)
	return strings.Join(words[:min(4, len(words))], " ")
}

func exchangeCertificates(ctx context.Context, replicas []Replica) error {
	public := make([][]byte, len(replicas))
	for i, r := range replicas {
		cert := r.Name + "_cert"
		for _, statement := range []string{
			"CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'Mast3r;Key'",
			"CREATE CERTIFICATE " + bracket(cert) + " WITH SUBJECT = 'CN=" + r.Name + "', EXPIRY_DATE = '20990101'",
		} {
			if err := execute(ctx, r, statement); err != nil {
				return err
			}
		}
		if err := r.DB.QueryRowContext(ctx, "SELECT CERTENCODED(CERT_ID('"+cert+"'))").Scan(&public[i]); err != nil {
			return fmt.Errorf("export the certificate of %s: %w", r.Name, err)
		}
	}
	for i, r := range replicas {
		var statements []string
		for j, peer := range replicas {
			if j == i {
				continue
			}
			statements = append(statements,
				"CREATE LOGIN "+bracket(peer.Name+"_login")+" WITH PASSWORD = 'P33r;Login'",
				"CREATE USER "+bracket(peer.Name+"_user")+" FOR LOGIN "+bracket(peer.Name+"_login"),
				"CREATE CERTIFICATE "+bracket(peer.Name+"_cert")+" AUTHORIZATION "+bracket(peer.Name+"_user")+" FROM BINARY = 0x"+hex.EncodeToString(public[j]))
		}
		statements = append(statements, fmt.Sprintf(
			"CREATE ENDPOINT %s STATE = STARTED AS TCP (LISTENER_PORT = %d, LISTENER_IP = ALL) "+
				"FOR DATABASE_MIRRORING (ROLE = ALL, AUTHENTICATION = CERTIFICATE %s, ENCRYPTION = REQUIRED ALGORITHM AES)",
			endpointName, r.EndpointPort, bracket(r.Name+"_cert")))
		for j, peer := range replicas {
			if j != i {
				statements = append(statements, "GRANT CONNECT ON ENDPOINT::"+endpointName+" TO "+bracket(peer.Name+"_login"))
			}
		}
		for _, statement := range statements {
			if err := execute(ctx, r, statement); err != nil {
				return err
			}
		}
	}
	return nil
}

func createGroup(replicas []Replica, g Group) string {
	var b strings.Builder
	fmt.Fprintf(&b, "CREATE AVAILABILITY GROUP %s WITH (%s) FOR REPLICA ON", bracket(g.Name), g.Options)
	for i, r := range replicas {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " N'%s' WITH (ENDPOINT_URL = N'%s', AVAILABILITY_MODE = %s", r.Name, r.EndpointURL, g.Mode(i))
		if g.Mode(i) != "CONFIGURATION_ONLY" {
			b.WriteString(", FAILOVER_MODE = EXTERNAL, SEEDING_MODE = AUTOMATIC, SECONDARY_ROLE (ALLOW_CONNECTIONS = ALL)")
		}
		b.WriteByte(')')
	}
	return b.String()
}

// AwaitSynchronized waits, by asking the primary, until every database of the group is
// SYNCHRONIZED on every synchronous data replica.
func AwaitSynchronized(ctx context.Context, primary *sql.DB, group string) error {
	const query = `SELECT COUNT(*) FROM sys.availability_groups g
		JOIN sys.availability_replicas r ON r.group_id = g.group_id AND r.availability_mode = 1
		JOIN sys.availability_databases_cluster d ON d.group_id = g.group_id
		LEFT JOIN sys.dm_hadr_database_replica_states s ON s.replica_id = r.replica_id AND s.group_database_id = d.group_database_id
		WHERE g.name = '%s' AND (s.synchronization_state IS NULL OR s.synchronization_state <> 2)`
	return Poll(ctx, "every database is SYNCHRONIZED", func(ctx context.Context) (bool, error) {
		var left int
		err := primary.QueryRowContext(ctx, fmt.Sprintf(query, strings.ReplaceAll(group, "'", "''"))).Scan(&left)
		return left == 0, err
	})
}

// AwaitRole waits until the instance has the role in the group, such as PRIMARY.
func AwaitRole(ctx context.Context, db *sql.DB, role string) error {
	return Poll(ctx, "the role is "+role, func(ctx context.Context) (bool, error) {
		var got string
		err := db.QueryRowContext(ctx, "SELECT role_desc FROM sys.dm_hadr_availability_replica_states WHERE is_local = 1").Scan(&got)
		if errors.Is(err, sql.ErrNoRows) {
			err = nil
		}
		return got == role, err
	})
}

// Failover runs FAILOVER with the key of the external cluster on the target.
func Failover(ctx context.Context, target *sql.DB, group string) error {
	_, err := target.ExecContext(ctx, "EXEC sp_set_session_context @key = N'external_cluster', @value = N'yes' ALTER AVAILABILITY GROUP "+bracket(group)+" FAILOVER")
	return err
}

// Poll asks until the answer is yes or ctx ends. Errors of the server count as "not yet"
// and show in the error at the end.
func Poll(ctx context.Context, what string, ask func(context.Context) (bool, error)) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		ok, err := ask(ctx)
		if err == nil && ok {
			return nil
		}
		if err != nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w (last error: %w)", what, ctx.Err(), orNone(last))
		case <-tick.C:
		}
	}
}

func orNone(err error) error {
	if err == nil {
		return errors.New("none")
	}
	return err
}

// Number is the number of the last server message inside err, 0 if there is none.
func Number(err error) int32 {
	var e mssql.Error
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}
