package cluster

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"sigs.k8s.io/yaml"
)

// certValidity is longer than any cluster of tests lives.
const certValidity = 10 * 365 * 24 * time.Hour

// pki is a certificate authority whose files lie in one directory.
type pki struct {
	dir  string
	cert *x509.Certificate
	key  crypto.Signer
	now  time.Time
}

// openPKI reads the authority of the directory or makes it.
func openPKI(dir string, now time.Time) (*pki, error) {
	p := &pki{dir: dir, now: now}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the certificate authority: %w", err)
	}
	cert, key, err := p.read("ca")
	if err == nil {
		p.cert, p.key = cert, key
		return p, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "kubectl-mssql test cluster"},
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageCRLSign,
	}
	if p.cert, p.key, err = p.make("ca", template); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *pki) certFile(name string) string { return filepath.Join(p.dir, name+".crt") }
func (p *pki) keyFile(name string) string  { return filepath.Join(p.dir, name+".key") }

// issue makes the certificate and key files of one identity, unless they exist.
// Organisations are groups to the API server, the common name is the user.
func (p *pki) issue(name, commonName string, organisations []string, hosts ...string) error {
	if _, _, err := p.read(name); err == nil {
		return nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: commonName, Organization: organisations},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	_, _, err := p.make(name, template)
	return err
}

// signingKey makes the key that signs service account tokens.
func (p *pki) signingKey(name string) error {
	if _, err := os.Stat(p.keyFile(name)); err == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("make the key %s: %w", name, err)
	}
	return p.writeKey(name, key)
}

func (p *pki) make(name string, template *x509.Certificate) (*x509.Certificate, crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make the key of %s: %w", name, err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, nil, fmt.Errorf("make the certificate of %s: %w", name, err)
	}
	template.SerialNumber = serial
	// An hour back, for a machine whose clock is set while the cluster runs.
	template.NotBefore, template.NotAfter = p.now.Add(-time.Hour), p.now.Add(certValidity)
	parent, signer := p.cert, p.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, nil, fmt.Errorf("sign the certificate of %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, fmt.Errorf("read back the certificate of %s: %w", name, err)
	}
	// The certificate last: read takes its presence for a finished pair.
	if err := p.writeKey(name, key); err != nil {
		return nil, nil, err
	}
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := writeFileAtomic(p.certFile(name), data, 0o644); err != nil {
		return nil, nil, err
	}
	return cert, key, nil
}

func (p *pki) writeKey(name string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode the key of %s: %w", name, err)
	}
	return writeFileAtomic(p.keyFile(name), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}

func (p *pki) read(name string) (*x509.Certificate, crypto.Signer, error) {
	certPEM, err := os.ReadFile(p.certFile(name))
	if err != nil {
		return nil, nil, fmt.Errorf("read the certificate of %s: %w", name, err)
	}
	keyPEM, err := os.ReadFile(p.keyFile(name))
	if err != nil {
		return nil, nil, fmt.Errorf("read the key of %s: %w", name, err)
	}
	cb, _ := pem.Decode(certPEM)
	kb, _ := pem.Decode(keyPEM)
	if cb == nil || kb == nil {
		return nil, nil, fmt.Errorf("read the certificate and key of %s in %s: not PEM", name, p.dir)
	}
	cert, err := x509.ParseCertificate(cb.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("parse the certificate of %s: %w", name, err)
	}
	key, err := x509.ParseECPrivateKey(kb.Bytes)
	if err != nil {
		return nil, nil, fmt.Errorf("parse the key of %s: %w", name, err)
	}
	return cert, key, nil
}

// kubeconfig writes a kubeconfig with the named certificate inside.
func (p *pki) kubeconfig(path, name, server string) error {
	var parts [3][]byte
	for i, f := range []string{p.certFile("ca"), p.certFile(name), p.keyFile(name)} {
		data, err := os.ReadFile(f)
		if err != nil {
			return fmt.Errorf("write the kubeconfig of %s: %w", name, err)
		}
		parts[i] = data
	}
	named := func(kind string, value any) []map[string]any {
		return []map[string]any{{"name": contextName, kind: value}}
	}
	data, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": contextName,
		"clusters": named("cluster", map[string]any{"server": server, "certificate-authority-data": parts[0]}),
		"users":    named("user", map[string]any{"client-certificate-data": parts[1], "client-key-data": parts[2]}),
		"contexts": named("context", map[string]any{"cluster": contextName, "user": contextName}),
	})
	if err != nil {
		return fmt.Errorf("write the kubeconfig of %s: %w", name, err)
	}
	// Unchanged files stay untouched: coredns and others watch them.
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return writeFileAtomic(path, data, 0o600)
}

// contextName is the context of every kubeconfig that the package writes.
const contextName = "kubectl-mssql-local"
