package live

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/agops"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql/mssqltest"
)

var now = time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)

// authority makes a self-signed certificate authority.
func authority(t *testing.T) (certPEM, keyPEM []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
}

func TestControllerShowsACertificateOfTheGroupsAuthority(t *testing.T) {
	t.Parallel()
	certPEM, keyPEM := authority(t)
	c, err := controllerCertificate(certPEM, keyPEM, now)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Error(err)
	}
	if leaf.Subject.CommonName != managerapi.ControllerName {
		t.Errorf("common name %q", leaf.Subject.CommonName)
	}
	if _, err := controllerCertificate(certPEM, []byte("no key"), now); err == nil {
		t.Error("a broken key was accepted")
	}
}

func TestSecretsAreReadAgainAfterARefusedLogin(t *testing.T) {
	t.Parallel()
	certPEM, keyPEM := authority(t)
	secret := func(name string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Data: data}
	}
	api := fake.NewClientBuilder().WithObjects(
		secret("ag1-ca", map[string][]byte{corev1.TLSCertKey: certPEM, corev1.TLSPrivateKeyKey: keyPEM}),
		secret("ag1-operator", map[string][]byte{"password": []byte("old")}),
	).Build()
	clk := clocktesting.NewFakeClock(now)
	c := &credentials{reader: api, clock: clk, cached: map[ag.Key]cachedMaterial{}}
	key := ag.Key{Namespace: "ns", Name: "ag1"}
	password := func() string {
		t.Helper()
		m, err := c.get(context.Background(), key)
		if err != nil {
			t.Fatal(err)
		}
		return m.password
	}
	if got := password(); got != "old" {
		t.Fatalf("password %q", got)
	}
	if err := api.Update(context.Background(), secret("ag1-operator", map[string][]byte{"password": []byte("new")})); err != nil {
		t.Fatal(err)
	}
	if got := password(); got != "old" {
		t.Errorf("read at each connection: %q", got)
	}
	c.forget(key)
	if got := password(); got != "new" {
		t.Errorf("after a refused login: %q", got)
	}
	if _, err := c.get(context.Background(), ag.Key{Namespace: "ns", Name: "other"}); err == nil {
		t.Error("a missing Secret is no error")
	}
}

func TestPoolKeepsOneGoodConnectionAPod(t *testing.T) {
	t.Parallel()
	clk := clocktesting.NewFakeClock(now)
	p := newPool(servers{}, clk)
	good, spare := mssqltest.New(), mssqltest.New()
	bad := mssqltest.New(mssqltest.Rule{Contains: "x", Answer: mssqltest.Answer{Err: errors.New("lost")}})
	use := func(c mssql.Conn, name string) {
		wrapped := &pooled{Conn: c, pool: p, name: name}
		_ = wrapped.Exec(context.Background(), "x y")
		_ = wrapped.Close()
	}
	use(good, "a")
	use(spare, "a")
	use(bad, "b")
	if good.Closed() || !spare.Closed() || !bad.Closed() {
		t.Errorf("closed: good %v, spare %v, bad %v", good.Closed(), spare.Closed(), bad.Closed())
	}
	if p.take("b") != nil || p.take("a") != mssql.Conn(good) || p.take("a") != nil {
		t.Error("the pool hands out what it should not")
	}
	use(mssqltest.New(), "a")
	gone := mssqltest.New()
	use(gone, "gone")
	clk.Step(idleFor + time.Second)
	p.take("a")
	if !gone.Closed() {
		t.Error("the connection of a pod that nobody asks for is kept")
	}
	p.close()
	late := mssqltest.New()
	use(late, "a")
	if !late.Closed() {
		t.Error("a closed pool keeps a connection")
	}
}

func TestDriveRepeatsFailedPassesUntilItIsDone(t *testing.T) {
	t.Parallel()
	clk := clocktesting.NewFakeClock(now)
	passes := 0
	step := func(context.Context, ag.Key) (agops.Report, error) {
		passes++
		clk.SetTime(clk.Now()) // wakes nobody; the pause begins after this pass
		if passes == 2 {
			return agops.Report{}, errors.New("the API server does not answer")
		}
		return agops.Report{Next: 2 * time.Second, Conflict: passes == 1}, nil
	}
	finished := make(chan error)
	go func() {
		_, err := drive(context.Background(), step, ag.Key{}, clk, func(agops.Report) bool { return passes == 4 })
		finished <- err
	}()
	for {
		select {
		case err := <-finished:
			if err != nil || passes != 4 {
				t.Errorf("%d passes, %v", passes, err)
			}
			return
		case <-time.After(time.Millisecond):
			if clk.HasWaiters() {
				clk.Step(2 * time.Second)
			}
		}
	}
}

func TestDriveTellsWhyItDidNotEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	refused := errors.New("forbidden")
	_, err := drive(ctx, func(context.Context, ag.Key) (agops.Report, error) { cancel(); return agops.Report{}, refused },
		ag.Key{}, clocktesting.NewFakeClock(now), func(agops.Report) bool { return false })
	if !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}
