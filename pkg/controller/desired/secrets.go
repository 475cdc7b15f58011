package desired

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// Keys in Secrets.
const (
	KeyPassword   = "password"
	KeyTLSCert    = corev1.TLSCertKey       // tls.crt
	KeyTLSKey     = corev1.TLSPrivateKeyKey // tls.key
	KeyCA         = "ca.crt"
	KeyManager    = "manager.crt"
	KeyManagerKey = "manager.key"
)

// OperatorSecret holds the password of the login kubectl_mssql.
func (s Server) OperatorSecret(password string) *corev1.Secret {
	return s.secret(v1alpha1.OperatorSecretName(s.Name), s.Labels(), map[string][]byte{KeyPassword: []byte(password)})
}

// SASecret holds a generated password of sa, for a spec that names no Secret. It
// has no owner: a volume that outlives the resource is of little use without it.
func (s Server) SASecret(password string) *corev1.Secret {
	secret := s.secret(v1alpha1.DefaultSAPasswordSecretName(s.Name), s.Labels(),
		map[string][]byte{v1alpha1.SAPasswordKey: []byte(password)})
	secret.OwnerReferences = nil
	return secret
}

// CASecret holds the certificate authority.
func (s Server) CASecret(cert, key []byte) *corev1.Secret {
	return s.secret(v1alpha1.CASecretName(s.Name), s.Labels(), map[string][]byte{KeyTLSCert: cert, KeyTLSKey: key})
}

// ReplicaTLS is one replica's certificates, all of it PEM.
type ReplicaTLS struct {
	ServerCert, ServerKey   []byte
	ManagerCert, ManagerKey []byte
	CA                      []byte
}

// ReplicaTLSSecret holds them.
func (s Server) ReplicaTLSSecret(replica string, t ReplicaTLS) *corev1.Secret {
	return s.secret(v1alpha1.ReplicaTLSSecretName(replica), s.ReplicaLabels(replica), map[string][]byte{
		KeyTLSCert: t.ServerCert, KeyTLSKey: t.ServerKey,
		KeyManager: t.ManagerCert, KeyManagerKey: t.ManagerKey,
		KeyCA: t.CA,
	})
}

func (s Server) secret(name string, labels map[string]string, data map[string][]byte) *corev1.Secret {
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: s.meta(name), Type: corev1.SecretTypeOpaque, Data: data,
	}
	secret.Labels = labels
	return secret
}
