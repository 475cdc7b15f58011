package engine

import "time"

// LoginSpec is CREATE LOGIN and ALTER LOGIN; nil means not given.
type LoginSpec struct {
	Name            string
	Password        *string
	OldPassword     *string
	SID             []byte // CREATE only
	CheckPolicy     *bool
	DefaultDatabase *string
	Certificate     *string // FROM CERTIFICATE, CREATE only
	Disabled        *bool
	NewName         *string
}

// CreateLogin is CREATE LOGIN: 15025 exists, 15118 policy.
func (in *Instance) CreateLogin(now time.Time, s SessionID, l LoginSpec) error {
	return unfinished("CREATE LOGIN")
}

// AlterLogin is ALTER LOGIN: 15151 unknown.
func (in *Instance) AlterLogin(now time.Time, s SessionID, l LoginSpec) error {
	return unfinished("ALTER LOGIN")
}

// DropLogin is DROP LOGIN: 15151, 15434 (logged in).
func (in *Instance) DropLogin(now time.Time, s SessionID, name string) error {
	return unfinished("DROP LOGIN")
}

// CreateUser is CREATE USER in the current database; login "" means WITHOUT LOGIN.
func (in *Instance) CreateUser(now time.Time, s SessionID, name, login string) error {
	return unfinished("CREATE USER")
}

// DropUser is DROP USER.
func (in *Instance) DropUser(now time.Time, s SessionID, name string) error {
	return unfinished("DROP USER")
}

// AlterRole adds or removes a member of a server role (server true) or of a role of the current
// database: ALTER [SERVER] ROLE … ADD|DROP MEMBER.
func (in *Instance) AlterRole(now time.Time, s SessionID, server bool, role, member string, add bool) error {
	return unfinished("ALTER ROLE")
}

// CreateRole makes a database or server role.
func (in *Instance) CreateRole(now time.Time, s SessionID, server bool, name string) error {
	return unfinished("CREATE ROLE")
}

// DropRole drops it.
func (in *Instance) DropRole(now time.Time, s SessionID, server bool, name string) error {
	return unfinished("DROP ROLE")
}

// GrantVerb is GRANT, DENY or REVOKE.
type GrantVerb uint8

// Grant verbs.
const (
	Grant GrantVerb = iota
	Deny
	Revoke
)

// SecurableClass is the kind of object that a permission is on.
type SecurableClass string

// Classes of securables; the text is what stands before ::.
const (
	ClassServer      SecurableClass = "SERVER"
	ClassDatabase    SecurableClass = "DATABASE"
	ClassEndpoint    SecurableClass = "ENDPOINT"
	ClassLogin       SecurableClass = "LOGIN"
	ClassGroup       SecurableClass = "AVAILABILITY GROUP"
	ClassCertificate SecurableClass = "CERTIFICATE"
	ClassObject      SecurableClass = "OBJECT"
	ClassSchema      SecurableClass = "SCHEMA"
)

// GrantSpec is GRANT, DENY or REVOKE. Class "" lets the engine choose SERVER or DATABASE by the
// permission's name, as the product does.
type GrantSpec struct {
	Verb            GrantVerb
	Permissions     []string // upper case, such as "VIEW SERVER STATE"
	Class           SecurableClass
	Object          string // name, "schema.name" for OBJECT
	To              []string
	WithGrantOption bool
}

// GrantPermission runs GRANT, DENY or REVOKE: 15151, 4621 (permission unknown to the class).
func (in *Instance) GrantPermission(now time.Time, s SessionID, g GrantSpec) error {
	return unfinished("GRANT")
}

// HasPermission is HAS_PERMS_BY_NAME for the session's login: class "" asks for the server.
func (in *Instance) HasPermission(s SessionID, class SecurableClass, object, permission string) bool {
	return false
}

// IsServerRoleMember is IS_SRVROLEMEMBER; ok is false for an unknown role.
func (in *Instance) IsServerRoleMember(s SessionID, role, login string) (member, ok bool) {
	return false, false
}

// CreateMasterKey is CREATE MASTER KEY: 15578 exists already.
func (in *Instance) CreateMasterKey(now time.Time, s SessionID, password string) error {
	return unfinished("CREATE MASTER KEY")
}

// AlterMasterKey is ALTER MASTER KEY REGENERATE.
func (in *Instance) AlterMasterKey(now time.Time, s SessionID, password string) error {
	return unfinished("ALTER MASTER KEY")
}

// DropMasterKey is DROP MASTER KEY: 15580 while private keys depend on it.
func (in *Instance) DropMasterKey(now time.Time, s SessionID) error {
	return unfinished("DROP MASTER KEY")
}

// CertificateSpec is CREATE CERTIFICATE (FG 2.1). DER empty means that a new one is made.
type CertificateSpec struct {
	Name          string
	Authorization string // owner, "" = caller
	Subject       string
	Start, Expiry *time.Time
	DER           []byte // FROM BINARY, or the content of FROM FILE
	PrivateKey    []byte // PVK
	Password      string // DECRYPTION BY PASSWORD
	EncryptBy     string // ENCRYPTION BY PASSWORD; "" = master key
}

// CreateCertificate is CREATE CERTIFICATE: 15232 exists, 15581 no master key, 15468 bad content.
func (in *Instance) CreateCertificate(now time.Time, s SessionID, c CertificateSpec) error {
	return unfinished("CREATE CERTIFICATE")
}

// DropCertificate is DROP CERTIFICATE: 15151, 15352 in use by an endpoint or login.
func (in *Instance) DropCertificate(now time.Time, s SessionID, name string) error {
	return unfinished("DROP CERTIFICATE")
}

// CertificateID is CERT_ID.
func (in *Instance) CertificateID(name string) (int, bool) { return 0, false }

// CertificateEncoded is CERTENCODED: nil without right or certificate.
func (in *Instance) CertificateEncoded(s SessionID, id int) []byte { return nil }

// CertificatePrivateKey is CERTPRIVATEKEY: the private key as PVK under password.
func (in *Instance) CertificatePrivateKey(now time.Time, s SessionID, id int, password string) []byte {
	return nil
}

// EndpointState as sys.endpoints.state.
type EndpointState uint8

// Endpoint states.
const (
	EndpointStarted EndpointState = iota
	EndpointStopped
	EndpointDisabled
)

// EndpointSpec is CREATE and ALTER ENDPOINT … FOR DATABASE_MIRRORING; nil means not given.
type EndpointSpec struct {
	Name        string
	State       *EndpointState
	Port        *int
	IP          *string // "" = ALL
	Role        *uint8  // 1 PARTNER, 2 WITNESS, 3 ALL
	Certificate *string
	Encryption  *bool
}

// CreateEndpoint is CREATE ENDPOINT: 15233 exists, 7862 second mirroring endpoint (FG 2.1).
func (in *Instance) CreateEndpoint(now time.Time, s SessionID, e EndpointSpec) error {
	return unfinished("CREATE ENDPOINT")
}

// AlterEndpoint is ALTER ENDPOINT.
func (in *Instance) AlterEndpoint(now time.Time, s SessionID, e EndpointSpec) error {
	return unfinished("ALTER ENDPOINT")
}

// DropEndpoint is DROP ENDPOINT.
func (in *Instance) DropEndpoint(now time.Time, s SessionID, name string) error {
	return unfinished("DROP ENDPOINT")
}

// Shutdown is SHUTDOWN [WITH NOWAIT]; it ends in an Exit effect.
func (in *Instance) Shutdown(now time.Time, s SessionID, nowait bool) error {
	return unfinished("SHUTDOWN")
}
