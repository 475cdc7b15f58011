// Package tunnel reaches a port of a pod through the API server, inside this
// process: no kubectl child, no client on the machine.
package tunnel

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/httpstream" //nolint:staticcheck // client-go's port-forward still speaks this one
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
)

// Tunnel forwards one loopback port to one port of a pod until it is closed.
type Tunnel struct {
	addr  string
	stop  chan struct{}
	close sync.Once
}

// Open starts the forwarding and returns when it is ready.
func Open(ctx context.Context, config *rest.Config, namespace, pod string, port int32) (*Tunnel, error) {
	cs, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("forward to pod %s: %w", pod, err)
	}
	target := cs.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	dialer, err := newDialer(config, target)
	if err != nil {
		return nil, fmt.Errorf("forward to pod %s: %w", pod, err)
	}
	t := &Tunnel{stop: make(chan struct{})}
	ready := make(chan struct{})
	var problems strings.Builder
	fw, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, t.stop, ready, io.Discard, &problems)
	if err != nil {
		return nil, fmt.Errorf("forward to pod %s: %w", pod, err)
	}
	done := make(chan error, 1)
	go func() { done <- fw.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-done:
		return nil, fmt.Errorf("forward to port %d of pod %s: %w", port, pod, err)
	case <-ctx.Done():
		// The dialling itself knows no deadline: it is left to end by itself. The way to a pod
		// on a dead node hangs, and whoever asks must not.
		t.Close()
		return nil, fmt.Errorf("forward to port %d of pod %s: %w", port, pod, ctx.Err())
	}
	ports, err := fw.GetPorts()
	if err != nil || len(ports) == 0 {
		t.Close()
		return nil, fmt.Errorf("forward to pod %s: no local port: %w", pod, err)
	}
	t.addr = net.JoinHostPort("127.0.0.1", fmt.Sprint(ports[0].Local))
	return t, nil
}

func newDialer(config *rest.Config, target *url.URL) (dialer httpstream.Dialer, err error) {
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	return spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, target), nil
}

// Addr is the loopback address to dial.
func (t *Tunnel) Addr() string { return t.addr }

// Close ends the forwarding and does not wait for it. It may be called more than once: a
// connection and the driver above it close in their own order.
func (t *Tunnel) Close() { t.close.Do(func() { close(t.stop) }) }

// Dialer reaches any port of any pod, a tunnel for each connection; it ends with the
// connection. The pod's address is not needed.
func Dialer(config *rest.Config) func(ctx context.Context, namespace, pod, ip string, port int32) (net.Conn, error) {
	return func(ctx context.Context, namespace, pod, _ string, port int32) (net.Conn, error) {
		t, err := Open(ctx, config, namespace, pod, port)
		if err != nil {
			return nil, err
		}
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", t.Addr())
		if err != nil {
			t.Close()
			return nil, fmt.Errorf("connect to port %d of pod %s: %w", port, pod, err)
		}
		return &conn{Conn: c, tunnel: t}, nil
	}
}

// conn closes its tunnel with it.
type conn struct {
	net.Conn
	tunnel *Tunnel
}

// Close implements net.Conn.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.tunnel.Close()
	return err
}
