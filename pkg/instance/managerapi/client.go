package managerapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// Client asks managers. Every call needs a context with a deadline. A connection
// serves one call: the cost is a handshake, the gain that no stale connection to a
// dead pod is ever waited for.
type Client struct {
	// Credentials show who asks.
	Credentials Credentials
	// Dial connects; nil is a plain TCP dial. The plugin puts a port-forward here.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// StatusError is an answer that is not 200: the manager was reached and said no.
type StatusError struct {
	Status  int
	Message string
}

// Error implements error.
func (e *StatusError) Error() string {
	return fmt.Sprintf("the manager refused (%d %s): %s", e.Status, http.StatusText(e.Status), e.Message)
}

// Status asks how the manager is. On failure the value still carries Reach and Error,
// so that it can go into a snapshot as it is.
func (c *Client) Status(ctx context.Context, peer Peer) (ag.Manager, error) {
	var m ag.Manager
	if err := c.call(ctx, peer, http.MethodGet, PathStatus, nil, &m); err != nil {
		return ag.Manager{Reach: reachOf(err), Error: err.Error()}, err
	}
	m.Reach, m.Error = ag.ReachOK, ""
	return m, nil
}

// Seal asks for a seal. An answer with Sealed false is not an error.
func (c *Client) Seal(ctx context.Context, peer Peer, r SealRequest) (SealAnswer, error) {
	var a SealAnswer
	err := c.call(ctx, peer, http.MethodPost, PathSeal, r, &a)
	return a, err
}

// Failsafe asks for one piece of proof. An answer with Granted false is not an error.
func (c *Client) Failsafe(ctx context.Context, peer Peer, r FailsafeRequest) (FailsafeAnswer, error) {
	var a FailsafeAnswer
	err := c.call(ctx, peer, http.MethodPost, PathFailsafe, r, &a)
	return a, err
}

// Tell passes on the highest epoch and rule number (R4).
func (c *Client) Tell(ctx context.Context, peer Peer, s Seen) error {
	return c.call(ctx, peer, http.MethodPost, PathSeen, s, &struct{}{})
}

func (c *Client) call(ctx context.Context, peer Peer, method, path string, body, into any) error {
	if err := c.roundTrip(ctx, peer, method, path, body, into); err != nil {
		return fmt.Errorf("ask the manager of %s (%s): %w", peer.Name, path, err)
	}
	return nil
}

func (c *Client) roundTrip(ctx context.Context, peer Peer, method, path string, body, into any) error {
	var payload []byte
	if body != nil {
		var err error
		if payload, err = json.Marshal(body); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "https://"+peer.Name+path, bytes.NewReader(payload))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{
		DisableKeepAlives: true,
		Proxy:             nil,
		DialTLSContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return c.dialTLS(ctx, network, peer)
		},
	}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := readAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		var r refusal
		if json.Unmarshal(b, &r) != nil || r.Error == "" {
			r.Error = "no reason given"
		}
		return &StatusError{Status: resp.StatusCode, Message: r.Error}
	}
	if err := json.Unmarshal(b, into); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	return nil
}

func (c *Client) dialTLS(ctx context.Context, network string, peer Peer) (net.Conn, error) {
	cfg, err := clientConfig(c.Credentials, peer.Name)
	if err != nil {
		return nil, err
	}
	dial := c.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	raw, err := dial(ctx, network, peer.Address)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, cfg)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return conn, nil
}

// reachOf sorts a failure for the snapshot.
func reachOf(err error) ag.Reach {
	var status *StatusError
	var op *net.OpError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &status) && status.Status == http.StatusForbidden:
		return ag.ReachForbidden
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return ag.ReachTimeout
	case errors.As(err, &op) && op.Op == "dial":
		return ag.ReachRefused
	}
	return ag.ReachError
}
