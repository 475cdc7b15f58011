package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/controller/certs"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/controller/desired"
)

// certificatesAgain: certificates are looked at once a day at least, by the resync of the cache or by this.
const certificatesAgain = 24 * time.Hour

// phaseSecrets makes the passwords that nobody but the operator knows. One that is
// there is never changed here: the servers know it.
func (s *shared) phaseSecrets(ctx context.Context, sc *scope) error {
	if sc.server.Spec.SAPasswordSecretRef == nil {
		if err := s.ensurePassword(ctx, sc, v1alpha1.DefaultSAPasswordSecretName(sc.server.Name), v1alpha1.SAPasswordKey, sc.server.SASecret); err != nil {
			return err
		}
	}
	return s.ensurePassword(ctx, sc, v1alpha1.OperatorSecretName(sc.server.Name), desired.KeyPassword, sc.server.OperatorSecret)
}

func (s *shared) ensurePassword(ctx context.Context, sc *scope, name, key string, build func(string) *corev1.Secret) error {
	secret, err := s.secret(ctx, sc.server.Namespace, name)
	if err != nil {
		return err
	}
	if secret != nil {
		if len(secret.Data[key]) == 0 {
			sc.refuse(v1alpha1.ReasonSecretKeyMissing, fmt.Sprintf("Secret %s has no key %s: restore it, or delete the Secret so that a new password is made", name, key))
		}
		return nil
	}
	password, err := newPassword()
	if err != nil {
		return err
	}
	// Create, not apply: a Secret that the cache does not show yet must not be overwritten.
	if err := s.Create(ctx, build(password), client.FieldOwner(fieldManager)); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create Secret %s: %w", name, err)
	}
	return nil
}

// secret reads a Secret of ours; nil when it is not there. The cache holds those with
// our label only, so a miss is confirmed with the API server.
func (s *shared) secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	key := client.ObjectKey{Namespace: namespace, Name: name}
	err := s.Get(ctx, key, secret)
	if apierrors.IsNotFound(err) {
		err = s.Live.Get(ctx, key, secret)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", name, err)
	}
	return secret, nil
}

// phaseCertificates keeps the authority and every replica's certificates.
func (s *shared) phaseCertificates(ctx context.Context, sc *scope) error {
	sc.requeue(certificatesAgain)
	authority, err := s.authority(ctx, sc)
	if err != nil || authority == nil {
		return err
	}
	for _, replica := range sc.server.Replicas {
		if err := s.replicaCertificates(ctx, sc, authority, replica); err != nil {
			return err
		}
	}
	return nil
}

func (s *shared) authority(ctx context.Context, sc *scope) (*certs.Authority, error) {
	name := v1alpha1.CASecretName(sc.server.Name)
	secret, err := s.secret(ctx, sc.server.Namespace, name)
	if err != nil {
		return nil, err
	}
	if secret == nil {
		cert, key, err := certs.NewAuthority(fmt.Sprintf("kubectl-mssql %s/%s", sc.server.Namespace, sc.server.Name), s.Clock.Now())
		if err != nil {
			return nil, err
		}
		secret = sc.server.CASecret(cert, key)
		err = s.Create(ctx, secret, client.FieldOwner(fieldManager))
		if apierrors.IsAlreadyExists(err) {
			sc.requeue(time.Second)
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("create Secret %s: %w", name, err)
		}
	}
	a, err := certs.ParseAuthority(secret.Data[desired.KeyTLSCert], secret.Data[desired.KeyTLSKey])
	if err != nil {
		sc.refuse(v1alpha1.ReasonCertificateFailed, fmt.Sprintf(
			"Secret %s does not hold a usable certificate authority: %v. Restore it; deleting it makes a new one, which every server takes up at its next restart", name, err))
		return nil, nil
	}
	return a, nil
}

func (s *shared) replicaCertificates(ctx context.Context, sc *scope, authority *certs.Authority, replica string) error {
	name := v1alpha1.ReplicaTLSSecretName(replica)
	secret, err := s.secret(ctx, sc.server.Namespace, name)
	if err != nil {
		return err
	}
	var data map[string][]byte
	if secret != nil {
		data = secret.Data
	}
	now := s.Clock.Now()
	dns := sc.server.DNSNames(replica)
	server := certs.Leaf{CommonName: sc.server.HostName(replica), DNSNames: dns, Server: true, RSA: true, Validity: certs.ServerValidity}
	manager := certs.Leaf{CommonName: replica, DNSNames: dns, Server: true, Client: true, Validity: certs.ManagerValidity}
	tls := desired.ReplicaTLS{
		ServerCert: data[desired.KeyTLSCert], ServerKey: data[desired.KeyTLSKey],
		ManagerCert: data[desired.KeyManager], ManagerKey: data[desired.KeyManagerKey],
		CA: authority.PEM(),
	}
	whyServer := authority.WhyRenew(tls.ServerCert, tls.ServerKey, server, now)
	whyManager := authority.WhyRenew(tls.ManagerCert, tls.ManagerKey, manager, now)
	if whyServer == "" && whyManager == "" && string(data[desired.KeyCA]) == string(tls.CA) {
		return nil
	}
	if whyServer != "" {
		if tls.ServerCert, tls.ServerKey, err = authority.Issue(server, now); err != nil {
			return err
		}
	}
	if whyManager != "" {
		if tls.ManagerCert, tls.ManagerKey, err = authority.Issue(manager, now); err != nil {
			return err
		}
	}
	if _, err := s.apply(ctx, sc.server.ReplicaTLSSecret(replica, tls)); err != nil {
		return err
	}
	if secret != nil {
		s.event(sc.obj, corev1.EventTypeNormal, v1alpha1.EventCertificateIssued, "Renew", "certificates of %s were made anew: %s", replica, firstNonEmpty(whyServer, whyManager, "the authority has changed"))
	}
	return nil
}

func firstNonEmpty(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
