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
