package certs

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"time"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func authority(t *testing.T) *Authority {
	t.Helper()
	cert, key, err := NewAuthority("shop", start)
	if err != nil {
		t.Fatal(err)
	}
	a, err := ParseAuthority(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAnIssuedCertificateIsAcceptedForItsNamesByWhoTrustsTheAuthority(t *testing.T) {
	t.Parallel()
	a := authority(t)
	for _, rsa := range []bool{true, false} {
		l := Leaf{CommonName: "shop-0", DNSNames: []string{"shop-0.shop.sales.svc"}, Server: true, Client: true, RSA: rsa, Validity: ServerValidity}
		cert, key, err := a.Issue(l, start)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tls.X509KeyPair(cert, key); err != nil {
			t.Fatal(err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(a.PEM()) {
			t.Fatal("the authority's PEM holds no certificate")
		}
		parsed, err := ParseCertificate(cert)
		if err != nil {
			t.Fatal(err)
		}
		opts := x509.VerifyOptions{DNSName: "shop-0.shop.sales.svc", Roots: roots, CurrentTime: start}
		if _, err := parsed.Verify(opts); err != nil {
			t.Error(err)
		}
		opts.DNSName = "shop-1.shop.sales.svc"
		if _, err := parsed.Verify(opts); err == nil {
			t.Error("accepted for a name that it does not carry")
		}
	}
}

func TestACertificateIsRenewedBeforeItEndsAndWhenItsNamesOrItsAuthorityChange(t *testing.T) {
	t.Parallel()
	a, other := authority(t), authority(t)
	l := Leaf{CommonName: "shop-0", DNSNames: []string{"b", "a"}, Server: true, Validity: ManagerValidity}
	cert, key, err := a.Issue(l, start)
	if err != nil {
		t.Fatal(err)
	}
	renamed := l
	renamed.DNSNames = []string{"a", "c"}
	reordered := l
	reordered.DNSNames = []string{"a", "b"}
	for name, c := range map[string]struct {
		a    *Authority
		cert []byte
		l    Leaf
		at   time.Time
		want string
	}{
		"fresh":                {a, cert, l, start, ""},
		"names in other order": {a, cert, reordered, start, ""},
		"eight months later":   {a, cert, l, start.Add(240 * day), ""},
		"nine months later":    {a, cert, l, start.Add(260 * day), "it ends on"},
		"after its end":        {a, cert, l, start.Add(400 * day), "it ends on"},
		"other names":          {a, cert, renamed, start, "names"},
		"other authority":      {other, cert, l, start, "not signed"},
		"none":                 {a, nil, l, start, "none yet"},
		"not a certificate":    {a, []byte("x"), l, start, "not PEM"},
	} {
		got := c.a.WhyRenew(c.cert, key, c.l, c.at)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestACertificateNeverOutlivesItsAuthority(t *testing.T) {
	t.Parallel()
	a := authority(t)
	cert, _, err := a.Issue(Leaf{CommonName: "x", Validity: ServerValidity}, start.Add(9*365*day))
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := ParseCertificate(cert)
	if err != nil {
		t.Fatal(err)
	}
	if parsed.NotAfter.After(a.NotAfter()) {
		t.Errorf("ends %s, the authority %s", parsed.NotAfter, a.NotAfter())
	}
}

func TestAnAuthorityWhoseKeyIsNotItsOwnIsRefused(t *testing.T) {
	t.Parallel()
	cert, _, err := NewAuthority("a", start)
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := NewAuthority("b", start)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseAuthority(cert, key); err == nil {
		t.Error("accepted")
	}
}
