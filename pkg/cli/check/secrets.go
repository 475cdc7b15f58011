package check

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// soonEnds: certificates are renewed in the last third of their life, the shortest of
// which is a year. One with less than this left was not.
const soonEnds = 30 * 24 * time.Hour

// secrets: are those there that exist nowhere else, and how long do certificates last?
// Only certificates are looked at; keys and passwords are never read out of the object.
func (ch *Checker) secrets(ctx context.Context, s *section, owner client.Object, spec *api.ServerSpec, replicas []string, now time.Time) {
	sa, saKey := spec.SAPasswordSecret(owner.GetName())
	ns := owner.GetNamespace()
	var missing, present []string
	var ends []ending
	look := func(name string, keys ...string) bool {
		var secret corev1.Secret
		err := ch.Client.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, &secret)
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, name)
			return true
		case err != nil:
			s.unseen("Secrets", err)
			return false
		}
		for _, k := range keys {
			if len(secret.Data[k]) == 0 {
				missing = append(missing, name+" (key "+k+")")
				return true
			}
		}
		present = append(present, name)
		for _, k := range []string{corev1.TLSCertKey, "manager.crt"} {
			if at, ok := endOf(secret.Data[k]); ok {
				ends = append(ends, ending{name + "/" + k, at})
			}
		}
		return true
	}
	if !look(api.CASecretName(owner.GetName()), corev1.TLSCertKey, corev1.TLSPrivateKeyKey) ||
		!look(api.OperatorSecretName(owner.GetName()), "password") || !look(sa, saKey) {
		return
	}
	if len(missing) > 0 {
		s.fail(CodeSecretMissing, "Secrets", "missing: "+strings.Join(missing, ", "), "restore them from a backup of the cluster")
	} else {
		s.ok("Secrets", "a backup of the cluster must contain "+strings.Join(present, ", "))
	}
	for _, r := range replicas {
		if !look(api.ReplicaTLSSecretName(r)) {
			return
		}
	}
	judgeCertificates(s, ends, now)
}

type ending struct {
	name string
	at   time.Time
}

func endOf(text []byte) (time.Time, bool) {
	block, _ := pem.Decode(text)
	if block == nil {
		return time.Time{}, false
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}, false
	}
	return c.NotAfter, true
}

func judgeCertificates(s *section, ends []ending, now time.Time) {
	if len(ends) == 0 {
		return
	}
	first := ends[0]
	for _, e := range ends {
		if e.at.Before(first.at) {
			first = e
		}
	}
	left := first.at.Sub(now)
	days := int(left / (24 * time.Hour))
	text := fmt.Sprintf("%s ends in %d days (%s)", first.name, days, first.at.UTC().Format(time.DateOnly))
	switch {
	case left <= 0:
		s.fail(CodeCertificate, "certificates", fmt.Sprintf("%s has ended on %s", first.name, first.at.UTC().Format(time.DateOnly)), "delete that Secret: the operator makes it anew; then restart the replica")
	case left < soonEnds:
		s.warn(CodeCertificate, "certificates", text, "it should have been renewed already; see the operator's logs")
	default:
		s.ok("certificates", fmt.Sprintf("%d of them; the first, %s", len(ends), text))
	}
}
