package live

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// credentials are what the API server's Secrets hold for one group: the authority
// that signs its certificates, and the password of the operator's login.
type credentials struct {
	reader client.Reader
	clock  clock.PassiveClock

	mu     sync.Mutex
	cached map[ag.Key]cachedMaterial
}

type cachedMaterial struct {
	material
	at time.Time
}

type material struct {
	roots    *x509.CertPool
	manager  tls.Certificate
	password string
}

// keep is how long Secrets are not read again; a refused login reads them at once.
const keep = 30 * time.Second

const (
	certValidity = 24 * time.Hour
	backdate     = time.Hour
)

func (c *credentials) get(ctx context.Context, key ag.Key) (material, error) {
	c.mu.Lock()
	m, ok := c.cached[key]
	c.mu.Unlock()
	if ok && c.clock.Since(m.at) < keep {
		return m.material, nil
	}
	fresh, err := c.read(ctx, key)
	if err != nil {
		return material{}, err
	}
	c.mu.Lock()
	c.cached[key] = cachedMaterial{material: fresh, at: c.clock.Now()}
	c.mu.Unlock()
	return fresh, nil
}

// forget makes the next get read the Secrets.
func (c *credentials) forget(key ag.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.cached, key)
}

func (c *credentials) read(ctx context.Context, key ag.Key) (material, error) {
	ca, err := c.secret(ctx, key, v1alpha1.CASecretName(key.Name))
	if err != nil {
		return material{}, err
	}
	operator, err := c.secret(ctx, key, v1alpha1.OperatorSecretName(key.Name))
	if err != nil {
		return material{}, err
	}
	m := material{roots: x509.NewCertPool(), password: string(operator.Data["password"])}
	if m.password == "" {
		return material{}, fmt.Errorf("secret %s/%s has no key password", key.Namespace, operator.Name)
	}
	if !m.roots.AppendCertsFromPEM(ca.Data[corev1.TLSCertKey]) {
		return material{}, fmt.Errorf("secret %s/%s holds no certificate", key.Namespace, ca.Name)
	}
	m.manager, err = controllerCertificate(ca.Data[corev1.TLSCertKey], ca.Data[corev1.TLSPrivateKeyKey], c.clock.Now())
	if err != nil {
		return material{}, fmt.Errorf("secret %s/%s: %w", key.Namespace, ca.Name, err)
	}
	return m, nil
}

func (c *credentials) secret(ctx context.Context, key ag.Key, name string) (*corev1.Secret, error) {
	var s corev1.Secret
	if err := c.reader.Get(ctx, types.NamespacedName{Namespace: key.Namespace, Name: name}, &s); err != nil {
		return nil, fmt.Errorf("read secret %s/%s: %w", key.Namespace, name, err)
	}
	return &s, nil
}

// controllerCertificate signs, in memory, the client certificate with which the
// controller shows itself to instance managers. Its key is never written anywhere.
func controllerCertificate(certPEM, keyPEM []byte, now time.Time) (tls.Certificate, error) {
	authority, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read the authority: %w", err)
	}
	parent, err := x509.ParseCertificate(authority.Certificate[0])
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("read the authority: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a serial number: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: managerapi.ControllerName},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(certValidity),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, parent, key.Public(), authority.PrivateKey)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("sign the controller's certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
