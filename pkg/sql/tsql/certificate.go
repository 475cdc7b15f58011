package tsql

import (
	"fmt"
	"time"
)

// CreateMasterKey makes master's master key where there is none (FG 2.1). The
// password is only for moving the key to another server, which nobody does: the
// service master key opens it. The text contains the password: never log it.
func CreateMasterKey(password string) string {
	return when("NOT EXISTS (SELECT 1 FROM sys.symmetric_keys WHERE name = N'##MS_DatabaseMasterKey##')",
		"CREATE MASTER KEY ENCRYPTION BY PASSWORD = "+Literal(password)) + ";"
}

// CreateCertificate makes a server's own endpoint certificate where the name is
// free; its private key never leaves the server (FG 2.2, a certificate a replica).
func CreateCertificate(name, subject string, start, expiry time.Time) string {
	return when(noCertificate(name), fmt.Sprintf("CREATE CERTIFICATE %s WITH SUBJECT = %s, START_DATE = %s, EXPIRY_DATE = %s",
		Ident(name), Literal(subject), date(start), date(expiry))) + ";"
}

// ExportedColumn names the column of [ExportCertificate].
const ExportedColumn = "certificate"

// ExportCertificate reads the public part, DER; NULL when it is absent or not visible (FG 2.1).
func ExportCertificate(name string) string {
	return "SELECT CERTENCODED(CERT_ID(" + Literal(name) + ")) AS " + ExportedColumn + ";"
}

// TrustCertificate imports a peer's public certificate and makes the login of the
// same name from it, which may then connect to the endpoint. One login a
// certificate, so that old and new overlap during a rotation (FG 2.3).
func TrustCertificate(name string, der []byte, endpoint string) string {
	return batch(
		when(noCertificate(name), "CREATE CERTIFICATE "+Ident(name)+" FROM BINARY = "+Binary(der)),
		when("NOT EXISTS (SELECT 1 FROM sys.server_principals WHERE name = "+Literal(name)+")",
			"CREATE LOGIN "+Ident(name)+" FROM CERTIFICATE "+Ident(name)),
		fmt.Sprintf("GRANT CONNECT ON ENDPOINT::%s TO %s", Ident(endpoint), Ident(name)),
	)
}

// DropTrust removes a peer's login and certificate (FG 2.3 step 5).
func DropTrust(name string) string {
	return batch(
		when("EXISTS (SELECT 1 FROM sys.server_principals WHERE name = "+Literal(name)+")", "DROP LOGIN "+Ident(name)),
		when("EXISTS (SELECT 1 FROM sys.certificates WHERE name = "+Literal(name)+")", "DROP CERTIFICATE "+Ident(name)),
	)
}

func noCertificate(name string) string {
	return "NOT EXISTS (SELECT 1 FROM sys.certificates WHERE name = " + Literal(name) + ")"
}
