package engine

import "time"

// CertTemplate is what CREATE CERTIFICATE says about a certificate to be made.
type CertTemplate struct {
	Subject    string // X.500 text such as "CN=a" or free text
	Start, End time.Time
	Serial     [16]byte
}

// KeyPair is a certificate with its private key.
type KeyPair struct {
	DER   []byte // X.509
	PKCS8 []byte // private key
}

// KeyMaker makes the key pair of a self-signed certificate. seed is unique to the certificate; a
// deterministic maker uses nothing else.
type KeyMaker interface {
	Make(t CertTemplate, seed [32]byte) (KeyPair, error)
}
