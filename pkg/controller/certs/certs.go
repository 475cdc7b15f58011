// Package certs is the certificate authority of one availability group or
// instance: it signs the servers' TDS certificates and the instance managers'.
// The time is always a parameter.
package certs

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

const day = 24 * time.Hour

const (
	// AuthorityValidity of the authority itself.
	AuthorityValidity = 3650 * day
	// ServerValidity is long, because a server takes up a new TDS certificate only when it restarts.
	ServerValidity = 1825 * day
	// ManagerValidity is short: managers read their certificate at every handshake.
	ManagerValidity = 365 * day
	// backdate tolerates clocks that are behind.
	backdate = time.Hour
)

// Authority signs.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer
	pem  []byte
}

// Leaf is a certificate to be signed.
type Leaf struct {
	CommonName string
	DNSNames   []string
	IPs        []net.IP
	Server     bool
	Client     bool
	Validity   time.Duration
	// RSA makes an RSA key, which SQL Server's TDS end needs; otherwise the key is ECDSA P-256.
	RSA bool
}

// NewAuthority makes a self-signed authority and returns certificate and key as PEM.
func NewAuthority(commonName string, now time.Time) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make the authority's key: %w", err)
	}
	serial, err := newSerial()
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: commonName},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(AuthorityValidity),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, nil, fmt.Errorf("sign the authority: %w", err)
	}
	return encode(der, key)
}

// ParseAuthority reads what NewAuthority made.
func ParseAuthority(certPEM, keyPEM []byte) (*Authority, error) {
	cert, err := ParseCertificate(certPEM)
	if err != nil {
		return nil, fmt.Errorf("authority: %w", err)
	}
	block, _ := pem.Decode(keyPEM)
	if block == nil {
		return nil, errors.New("authority: the key is not PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("authority: read the key: %w", err)
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("authority: a key of type %T cannot sign", parsed)
	}
	type comparable interface{ Equal(crypto.PublicKey) bool }
	if pub, ok := cert.PublicKey.(comparable); !ok || !pub.Equal(key.Public()) {
		return nil, errors.New("authority: certificate and key do not belong together")
	}
	if !cert.IsCA {
		return nil, errors.New("authority: the certificate is not an authority's")
	}
	return &Authority{cert: cert, key: key, pem: bytes.TrimSpace(certPEM)}, nil
}

// PEM is the authority's certificate.
func (a *Authority) PEM() []byte { return append(slices.Clone(a.pem), '\n') }

// NotAfter is the end of the authority.
func (a *Authority) NotAfter() time.Time { return a.cert.NotAfter }

// Issue makes a key and signs its certificate; both as PEM, the key as PKCS #8.
func (a *Authority) Issue(l Leaf, now time.Time) (certPEM, keyPEM []byte, err error) {
	var key crypto.Signer
	if l.RSA {
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	} else {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("make a key for %s: %w", l.CommonName, err)
	}
	serial, err := newSerial()
	if err != nil {
		return nil, nil, err
	}
	end := now.Add(l.Validity)
	if end.After(a.cert.NotAfter) {
		end = a.cert.NotAfter
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: l.CommonName},
		NotBefore: now.Add(-backdate), NotAfter: end,
		DNSNames: l.DNSNames, IPAddresses: l.IPs,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: l.usages(),
	}
	if l.RSA {
		template.KeyUsage |= x509.KeyUsageKeyEncipherment
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, nil, fmt.Errorf("sign the certificate of %s: %w", l.CommonName, err)
	}
	return encode(der, key)
}

func (l Leaf) usages() []x509.ExtKeyUsage {
	var u []x509.ExtKeyUsage
	if l.Server {
		u = append(u, x509.ExtKeyUsageServerAuth)
	}
	if l.Client {
		u = append(u, x509.ExtKeyUsageClientAuth)
	}
	return u
}

// WhyRenew says in words why a certificate must be made anew; empty when it need not.
func (a *Authority) WhyRenew(certPEM, keyPEM []byte, l Leaf, now time.Time) string {
	if len(certPEM) == 0 || len(keyPEM) == 0 {
		return "there is none yet"
	}
	cert, err := ParseCertificate(certPEM)
	if err != nil {
		return err.Error()
	}
	if err := cert.CheckSignatureFrom(a.cert); err != nil {
		return "it is not signed by the present authority"
	}
	if remaining := cert.NotAfter.Sub(now); remaining < cert.NotAfter.Sub(cert.NotBefore)/3 {
		return fmt.Sprintf("it ends on %s", cert.NotAfter.UTC().Format(time.DateOnly))
	}
	if cert.Subject.CommonName != l.CommonName {
		return "it names somebody else"
	}
	have, want := slices.Clone(cert.DNSNames), slices.Clone(l.DNSNames)
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		return "the names of the replica have changed"
	}
	return ""
}

// ParseCertificate reads the first certificate.
func ParseCertificate(certPEM []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(certPEM)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("the certificate is not PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	return cert, nil
}

func encode(der []byte, key crypto.Signer) (certPEM, keyPEM []byte, err error) {
	k, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: k}), nil
}

func newSerial() (*big.Int, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	return serial, nil
}
