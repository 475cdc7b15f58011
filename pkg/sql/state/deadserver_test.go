package state_test

import (
	"context"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
)

// switchboard forwards connections until it falls silent: then nothing passes on those
// that are there, and nothing is closed.
type switchboard struct {
	net.Listener
	to string

	mu   sync.Mutex
	cut  chan struct{}
	made int
}

func (s *switchboard) serve() {
	for {
		in, err := s.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", s.to)
		if err != nil {
			_ = in.Close()
			return
		}
		s.mu.Lock()
		cut := s.cut
		s.made++
		s.mu.Unlock()
		for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
			go func() {
				b := make([]byte, 4096)
				for {
					n, err := pair[0].Read(b)
					if err != nil {
						return
					}
					select {
					case <-cut:
					default:
						_, _ = pair[1].Write(b[:n])
					}
				}
			}()
		}
	}
}

func (s *switchboard) silence() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.cut)
	s.cut = make(chan struct{})
}

// Not parallel: it changes the environment of the process.
func TestASilentAPIServerIsGivenUpWithinSeconds(t *testing.T) {
	t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "")
	t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "")
	if err := state.NoticeDeadAPIServer(); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	board := &switchboard{Listener: l, to: server.Listener.Addr().String(), cut: make(chan struct{})}
	defer func() { _ = l.Close() }()
	go board.serve()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	client, err := rest.UnversionedRESTClientFor(&rest.Config{
		Host: "https://" + l.Addr().String(), TLSClientConfig: rest.TLSClientConfig{CAData: ca, ServerName: "example.com"},
		ContentConfig: rest.ContentConfig{NegotiatedSerializer: clientgoscheme.Codecs.WithoutConversion()},
	})
	if err != nil {
		t.Fatal(err)
	}
	call := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return client.Get().AbsPath("/").Do(ctx).Error()
	}
	if err := call(); err != nil {
		t.Fatal(err)
	}
	board.silence()
	began := time.Now()
	for call() != nil {
		if time.Since(began) > 15*time.Second {
			t.Fatal("no new connection was made in 15 s")
		}
	}
	if took := time.Since(began); took > 8*time.Second || board.made < 2 {
		t.Errorf("it took %s and %d connections to reach the API server again", took, board.made)
	}
}
