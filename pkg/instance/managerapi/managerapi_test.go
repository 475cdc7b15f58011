package managerapi_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// authority signs certificates for tests.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &authority{t: t, cert: cert, key: key}
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *authority) material(name string) managerapi.Material {
	a.t.Helper()
	key := newKey(a.t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	return managerapi.Material{
		Certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		Roots:       roots,
	}
}

type fakeManager struct{ sealed, told chan struct{} }

func (fakeManager) Status(context.Context) ag.Manager {
	return ag.Manager{Nonce: "n1", PodUID: "u1", HighestEpoch: 7, Server: "running", LastFailsafeAgo: -1}
}

func (fakeManager) Seal(_ context.Context, r managerapi.SealRequest) (managerapi.SealAnswer, error) {
	return managerapi.SealAnswer{Sealed: r.Epoch > 7, Manager: ag.Manager{SealedEpoch: r.Epoch}}, nil
}

func (fakeManager) Failsafe(_ context.Context, r managerapi.FailsafeRequest) (managerapi.FailsafeAnswer, error) {
	if r.Epoch < 7 {
		return managerapi.FailsafeAnswer{Reason: "epoch below the seal"}, nil
	}
	return managerapi.FailsafeAnswer{Granted: true, Nonce: "n1"}, nil
}

func (fakeManager) Seen(context.Context, managerapi.Seen) error { return errors.New("disk full") }

// serve starts a manager called ag-0 and returns how to reach it.
func serve(t *testing.T, a *authority) managerapi.Peer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	s := &managerapi.Server{
		Handler: fakeManager{}, Credentials: a.material("ag-0"),
		Replicas: []string{"ag-0", "ag-1"}, Log: slog.New(slog.DiscardHandler),
	}
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return managerapi.Peer{Name: "ag-0", Address: l.Addr().String()}
}

func TestServer_AnswersOnlyThoseWhoMayAsk(t *testing.T) {
	t.Parallel()
	a, stranger := newAuthority(t), newAuthority(t)
	peer := serve(t, a)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel) // after the parallel subtests
	run1 := ag.Run{Replica: "ag-1", PodUID: "u", Nonce: "n"}
	status := func(c *managerapi.Client) error { _, err := c.Status(ctx, peer); return err }
	seal := func(c *managerapi.Client) error {
		_, err := c.Seal(ctx, peer, managerapi.SealRequest{AGUID: "g", Epoch: 8, Version: "1"})
		return err
	}
	failsafe := func(c *managerapi.Client) error {
		_, err := c.Failsafe(ctx, peer, managerapi.FailsafeRequest{AGUID: "g", Epoch: 8, Holder: run1})
		return err
	}
	tests := []struct {
		name string
		who  managerapi.Material
		call func(*managerapi.Client) error
		want string // part of the error; empty for success
	}{
		{"the controller asks for the status", a.material(managerapi.ControllerName), status, ""},
		{"a replica asks for the status", a.material("ag-1"), status, ""},
		{"a name that is no replica is refused", a.material("ag-9"), status, "neither the controller nor a replica"},
		{"a certificate of another authority is refused", stranger.material("ag-1"), status, "certificate"},
		{"the controller seals", a.material(managerapi.ControllerName), seal, ""},
		{"a replica may not seal", a.material("ag-1"), seal, "only kubectl-mssql-controller may seal"},
		{"a holder asks for itself", a.material("ag-1"), failsafe, ""},
		{"a replica may not ask for another", a.material("ag-0"), failsafe, "ag-0 may not ask for ag-1"},
		{"the handler's error is told", a.material("ag-1"), func(c *managerapi.Client) error {
			return c.Tell(ctx, peer, managerapi.Seen{AGUID: "g", Epoch: 1})
		}, "disk full"},
		{"a request without an epoch is refused", a.material(managerapi.ControllerName), func(c *managerapi.Client) error {
			_, err := c.Seal(ctx, peer, managerapi.SealRequest{AGUID: "g", Version: "1"})
			return err
		}, "epoch 0 is not above zero"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := tt.call(&managerapi.Client{Credentials: tt.who})
			switch {
			case tt.want == "" && err != nil:
				t.Fatalf("got error %v, want none", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Fatalf("got error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestClient_RefusesAManagerOfAnotherName(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	peer := serve(t, a)
	peer.Name = "ag-1" // its address now belongs to ag-0, as after a reused pod IP
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	m, err := (&managerapi.Client{Credentials: a.material("ag-0")}).Status(ctx, peer)
	if err == nil || !strings.Contains(err.Error(), `belongs to "ag-0", not to "ag-1"`) {
		t.Fatalf("got %v", err)
	}
	if m.Reach != ag.ReachError || m.Error == "" {
		t.Errorf("the snapshot's value does not tell the failure: %+v", m)
	}
}

func TestClient_TellsHowTheAttemptEnded(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	client := &managerapi.Client{Credentials: a.material(managerapi.ControllerName)}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts in the kernel, never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	tests := []struct {
		name    string
		address string
		within  time.Duration
		want    ag.Reach
	}{
		{"a closed port is refused", closed.Addr().String(), 10 * time.Second, ag.ReachRefused},
		{"a frozen manager is a time-out", silent.Addr().String(), 50 * time.Millisecond, ag.ReachTimeout},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), tt.within)
			defer cancel()
			m, err := client.Status(ctx, managerapi.Peer{Name: "ag-0", Address: tt.address})
			if err == nil || m.Reach != tt.want {
				t.Errorf("got reach %q (%v), want %q", m.Reach, err, tt.want)
			}
		})
	}
}

func TestStatus_IsWhatTheManagerSays(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	peer := serve(t, a)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	got, err := (&managerapi.Client{Credentials: a.material(managerapi.ControllerName)}).Status(ctx, peer)
	if err != nil {
		t.Fatal(err)
	}
	want := fakeManager{}.Status(ctx)
	want.Reach = ag.ReachOK
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFiles_TakeEffectWhenTheyChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	files := managerapi.Files{
		Cert: filepath.Join(dir, "manager.crt"), Key: filepath.Join(dir, "manager.key"), CA: filepath.Join(dir, "ca.crt"),
	}
	a := newAuthority(t)
	for _, name := range []string{"ag-0", "ag-1"} {
		writeFiles(t, files, a, a.material(name))
		m, err := files.Load()
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(m.Certificate.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		if leaf.Subject.CommonName != name {
			t.Errorf("loaded %q, want %q", leaf.Subject.CommonName, name)
		}
	}
	if err := os.WriteFile(files.CA, []byte("not PEM"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := files.Load(); err == nil || !strings.Contains(err.Error(), "holds no certificate") {
		t.Errorf("a broken authority: got %v", err)
	}
}

func writeFiles(t *testing.T, f managerapi.Files, a *authority, m managerapi.Material) {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(m.Certificate.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{
		f.Cert: {Type: "CERTIFICATE", Bytes: m.Certificate.Certificate[0]},
		f.Key:  {Type: "PRIVATE KEY", Bytes: key},
		f.CA:   {Type: "CERTIFICATE", Bytes: a.cert.Raw},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
