package engine

import (
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"strings"
	"time"
)

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

// SeededKeys makes Ed25519 keys from the seed alone: fast and the same in every run, but not what
// the product makes. Hosts that want RSA give a KeyMaker of their own.
type SeededKeys struct{}

// Make implements KeyMaker.
func (SeededKeys) Make(t CertTemplate, seed [32]byte) (KeyPair, error) {
	key := ed25519.NewKeyFromSeed(seed[:])
	tmpl := t.X509()
	der, err := x509.CreateCertificate(nil, tmpl, tmpl, key.Public(), key)
	if err != nil {
		return KeyPair{}, fmt.Errorf("make a certificate for %q: %w", t.Subject, err)
	}
	p8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return KeyPair{}, fmt.Errorf("encode the key of %q: %w", t.Subject, err)
	}
	return KeyPair{DER: der, PKCS8: p8}, nil
}

// X509 is the template for crypto/x509.
func (t CertTemplate) X509() *x509.Certificate {
	name := pkix.Name{}
	for _, part := range strings.Split(t.Subject, ",") {
		k, v, ok := strings.Cut(strings.TrimSpace(part), "=")
		switch {
		case !ok:
			name.CommonName = part
		case strings.EqualFold(k, "CN"):
			name.CommonName = v
		case strings.EqualFold(k, "O"):
			name.Organization = append(name.Organization, v)
		case strings.EqualFold(k, "OU"):
			name.OrganizationalUnit = append(name.OrganizationalUnit, v)
		case strings.EqualFold(k, "C"):
			name.Country = append(name.Country, v)
		default:
			name.CommonName = t.Subject
		}
	}
	serial := new(big.Int).SetBytes(t.Serial[:])
	serial.SetBit(serial, 127, 0)
	return &x509.Certificate{SerialNumber: serial, Subject: name, NotBefore: t.Start, NotAfter: t.End,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
}
