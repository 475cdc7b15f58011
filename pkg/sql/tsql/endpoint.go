package tsql

import (
	"fmt"
)

// Endpoint is the database mirroring endpoint of one server (FG 2.1).
type Endpoint struct {
	Name        string
	Port        int32
	Certificate string
	// Witness: ROLE = WITNESS, the only one that Express may create; else ALL.
	Witness bool
}

// CreateEndpoint creates and starts the endpoint where the server has none: there is one a server.
func CreateEndpoint(e Endpoint) string {
	role := "ALL"
	if e.Witness {
		role = "WITNESS"
	}
	return when("NOT EXISTS (SELECT 1 FROM sys.database_mirroring_endpoints)",
		fmt.Sprintf("CREATE ENDPOINT %s STATE = STARTED AS TCP (LISTENER_PORT = %d)"+
			" FOR DATABASE_MIRRORING (ROLE = %s, AUTHENTICATION = CERTIFICATE %s, ENCRYPTION = REQUIRED ALGORITHM AES)",
			Ident(e.Name), e.Port, role, Ident(e.Certificate))) + ";"
}

// StartEndpoint and StopEndpoint change the endpoint's state. Stopped, the replica
// keeps its role and its peers lose it (FG 2.1); the state survives a restart.
func StartEndpoint(name string) string {
	return batch("ALTER ENDPOINT " + Ident(name) + " STATE = STARTED")
}

// StopEndpoint: see [StartEndpoint].
func StopEndpoint(name string) string {
	return batch("ALTER ENDPOINT " + Ident(name) + " STATE = STOPPED")
}

// SetEndpointCertificate makes the endpoint offer another certificate (FG 2.3 step 3).
func SetEndpointCertificate(endpoint, certificate string) string {
	return batch(fmt.Sprintf("ALTER ENDPOINT %s FOR DATABASE_MIRRORING (AUTHENTICATION = CERTIFICATE %s)", Ident(endpoint), Ident(certificate)))
}

// GrantConnect lets the owner of a peer's certificate connect to the endpoint; idempotent.
func GrantConnect(endpoint, login string) string {
	return batch(fmt.Sprintf("GRANT CONNECT ON ENDPOINT::%s TO %s", Ident(endpoint), Ident(login)))
}
