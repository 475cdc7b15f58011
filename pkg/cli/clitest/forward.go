package clitest

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"
)

// serveForward is the kubelet's end of a port-forward: a pair of streams, one for
// data and one for an error text, for each connection.
func (a *API) serveForward(w http.ResponseWriter, r *http.Request, c call) {
	a.mu.Lock()
	address, ok := a.forwards[c.Name]
	a.mu.Unlock()
	if !ok {
		fail(w, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, c.Name))
		return
	}
	if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
		return // Handshake has answered
	}
	var mu sync.Mutex
	failures := map[string]httpstream.Stream{}
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		id := s.Headers().Get(corev1.PortForwardRequestIDHeader)
		mu.Lock()
		defer mu.Unlock()
		if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeError {
			failures[id] = s
			return nil
		}
		go relay(address, s, failures[id])
		return nil
	})
	if conn == nil {
		return
	}
	defer conn.Close()
	select {
	case <-conn.CloseChan():
	case <-r.Context().Done():
	}
}

// relay copies both ways until either end is closed.
func relay(address string, data, failure httpstream.Stream) {
	defer data.Close()
	if failure != nil {
		defer failure.Close()
	}
	target, err := net.Dial("tcp", address)
	if err != nil {
		if failure != nil {
			fmt.Fprintf(failure, "dial %s: %v", address, err)
		}
		return
	}
	defer target.Close()
	go func() {
		_, _ = io.Copy(target, data) // the other direction reports the end
		_ = target.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(data, target)
}
