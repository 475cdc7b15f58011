package tds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
)

// requests runs the connection after login: one goroutine reads, so that an attention
// reaches a running request; this one executes.
func (c *Conn) requests(ctx context.Context) error {
	messages := make(chan message)
	readErr := make(chan error, 1)
	go func() {
		defer close(messages)
		readErr <- c.readRequests(ctx, messages)
	}()
	defer func() { // the reader leaves once the socket is closed
		c.cancel(net.ErrClosed)
		_ = c.raw.Close()
		for range messages {
			continue
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case m, open := <-messages:
			if !open {
				return <-readErr
			}
			goOn, err := c.handle(ctx, m)
			if err != nil || !goOn {
				return err
			}
		}
	}
}

func (c *Conn) readRequests(ctx context.Context, messages chan<- message) error {
	for {
		m, err := readMessage(c.stream, c.server.MaxMessage)
		if err != nil {
			// A client that goes away ends its running statement.
			c.endRequest(net.ErrClosed)
			if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return err
		}
		if m.kind == typeAttention && c.interrupt() {
			continue
		}
		select {
		case messages <- m:
		case <-ctx.Done():
			return nil
		}
	}
}

// interrupt cancels the running request; false means that none runs.
func (c *Conn) interrupt() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.request == nil {
		return false
	}
	c.attention = true
	c.request(ErrAttention)
	return true
}

func (c *Conn) endRequest(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.request != nil {
		c.request(cause)
	}
}

// handle answers one message. goOn is false when the connection shall end.
func (c *Conn) handle(ctx context.Context, m message) (goOn bool, err error) {
	r := &Response{
		conn: c,
		out:  newPacketWriter(c.stream, typeReply, c.spid, c.packetSize),
	}
	switch {
	case m.kind == typeAttention:
		return true, r.acknowledge(c.session.State())
	case m.ignored:
		r.failed = true
		return true, r.finish(c.session.State())
	}
	r.before = c.session.State()
	if m.status&(statusReset|statusResetKeepingTxn) != 0 {
		c.session.Reset(ctx, m.status&statusResetKeepingTxn != 0)
		c.prepared.clear()
		now := c.session.State()
		r.stateChanges(now)
		r.buf = appendEnvBytes(r.buf, envReset, nil, nil)
	}
	run, err := c.plan(m, r)
	if err != nil {
		return false, err
	}

	requestCtx, cancel := context.WithCancelCause(ctx)
	c.mu.Lock()
	c.request, c.attention = cancel, false
	c.mu.Unlock()
	run(requestCtx)
	c.mu.Lock()
	attention := c.attention
	c.request = nil
	c.mu.Unlock()
	cancel(nil)

	now := c.session.State()
	if err := r.finish(now); err != nil {
		return false, fmt.Errorf("send reply: %w", err)
	}
	if attention {
		if err := r.acknowledge(now); err != nil {
			return false, fmt.Errorf("acknowledge attention: %w", err)
		}
	}
	return !r.fatal, nil
}

// plan parses a request and returns what executes it.
func (c *Conn) plan(m message, r *Response) (func(context.Context), error) {
	switch m.kind {
	case typeBatch:
		body, err := stripHeaders(m.payload)
		if err != nil {
			return nil, err
		}
		sql := decodeUCS2(body)
		return func(ctx context.Context) { c.session.Execute(ctx, Request{SQL: sql}, r) }, nil
	case typeTransaction:
		body, err := stripHeaders(m.payload)
		if err != nil {
			return nil, err
		}
		sql, err := parseTransaction(body)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) { c.session.Execute(ctx, Request{SQL: sql}, r) }, nil
	case typeRPC:
		body, err := stripHeaders(m.payload)
		if err != nil {
			return nil, err
		}
		calls, err := parseRPC(body)
		if err != nil {
			return nil, err
		}
		r.inProc = true
		return func(ctx context.Context) {
			for i, call := range calls {
				if i > 0 {
					r.endProc(doneMore)
				}
				c.call(ctx, call, r)
				if ctx.Err() != nil {
					return
				}
			}
		}, nil
	case typeBulk:
		return nil, errors.New("bulk load is not supported")
	default:
		return nil, fmt.Errorf("packet type 0x%02x is not a request", m.kind)
	}
}
