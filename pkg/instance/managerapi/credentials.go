package managerapi

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// Material is what one handshake needs: the own certificate and the authority
// that the other side's must come from.
type Material struct {
	Certificate tls.Certificate
	Roots       *x509.CertPool
}

// Credentials supply the material for each handshake, so that rotated
// certificates take effect without a restart.
type Credentials interface {
	Load() (Material, error)
}

// Load implements Credentials with the material itself.
func (m Material) Load() (Material, error) { return m, nil }

// Files are PEM files, read at every handshake.
type Files struct {
	Cert, Key, CA string
}

// Load implements Credentials.
func (f Files) Load() (Material, error) {
	cert, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return Material{}, fmt.Errorf("read the manager's certificate %s: %w", f.Cert, err)
	}
	pem, err := os.ReadFile(f.CA)
	if err != nil {
		return Material{}, fmt.Errorf("read the certificate authority: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return Material{}, fmt.Errorf("read the certificate authority: %s holds no certificate", f.CA)
	}
	return Material{Certificate: cert, Roots: roots}, nil
}

// serverConfig demands a client certificate of the same authority.
func serverConfig(creds Credentials) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			m, err := creds.Load()
			if err != nil {
				return nil, err
			}
			return &tls.Config{
				MinVersion:   tls.VersionTLS13,
				Certificates: []tls.Certificate{m.Certificate},
				ClientAuth:   tls.RequireAndVerifyClientCert,
				ClientCAs:    m.Roots,
			}, nil
		},
	}
}

// clientConfig trusts exactly one name of the same authority.
func clientConfig(creds Credentials, peer string) (*tls.Config, error) {
	m, err := creds.Load()
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{m.Certificate},
		// The chain is verified below against our own authority, and the name
		// against the common name: pod addresses are in no certificate.
		InsecureSkipVerify: true, //nolint:gosec // replaced by VerifyConnection
		VerifyConnection: func(s tls.ConnectionState) error {
			return verifyPeer(s, m.Roots, peer)
		},
	}, nil
}

func verifyPeer(s tls.ConnectionState, roots *x509.CertPool, peer string) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("the manager showed no certificate")
	}
	intermediates := x509.NewCertPool()
	for _, c := range s.PeerCertificates[1:] {
		intermediates.AddCert(c)
	}
	leaf := s.PeerCertificates[0]
	if _, err := leaf.Verify(x509.VerifyOptions{
		Roots:         roots,
		Intermediates: intermediates,
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}); err != nil {
		return fmt.Errorf("verify the manager's certificate: %w", err)
	}
	if leaf.Subject.CommonName != peer {
		return fmt.Errorf("the address belongs to %q, not to %q", leaf.Subject.CommonName, peer)
	}
	return nil
}
