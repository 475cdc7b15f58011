package server

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"fmt"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// rsaBits is the key length of certificates that CREATE CERTIFICATE makes.
const rsaBits = 2048

// rsaKeys makes RSA keys as the product does, so that CERTENCODED and CERTPRIVATEKEY give
// what its clients expect.
type rsaKeys struct{}

// Make implements engine.KeyMaker; the seed is not used.
func (rsaKeys) Make(t engine.CertTemplate, _ [32]byte) (engine.KeyPair, error) {
	key, err := rsa.GenerateKey(rand.Reader, rsaBits)
	if err != nil {
		return engine.KeyPair{}, fmt.Errorf("make a key for %q: %w", t.Subject, err)
	}
	template := t.X509()
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return engine.KeyPair{}, fmt.Errorf("make a certificate for %q: %w", t.Subject, err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return engine.KeyPair{}, fmt.Errorf("encode the key of %q: %w", t.Subject, err)
	}
	return engine.KeyPair{DER: der, PKCS8: private}, nil
}
