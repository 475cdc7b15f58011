package tds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
)

// underway is a request from its arrival to the end of its execution. An attention that
// arrives in between is meant for it, whether it has begun or not ([MS-TDS] 2.2.1.7, 3.3.5.7).
type underway struct {
	ctx       context.Context
	cancel    context.CancelCauseFunc
	attention bool // the client cancelled it; guarded by Conn.mu
}

// arrival is a message, and for a request what tells it of an attention.
type arrival struct {
	message
	request *underway
}

// requests runs the connection after login: one goroutine reads, so that an attention
// reaches a running request; this one executes.
func (c *Conn) requests(ctx context.Context) error {
	messages := make(chan arrival)
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

func (c *Conn) readRequests(ctx context.Context, messages chan<- arrival) error {
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
		a := arrival{message: m}
		if m.kind != typeAttention && !m.ignored {
			a.request = c.arrived(ctx)
		}
		select {
		case messages <- a:
		case <-ctx.Done():
			return nil
		}
	}
}

// arrived notes a request. One that a client sends before the last was answered waits
// for that, and the reader with it: there is never an attention for it until then.
func (c *Conn) arrived(ctx context.Context) *underway {
	r := &underway{}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.request = r
	return r
}

// executed ends what arrived began, and tells whether an attention was meant for it.
func (c *Conn) executed(r *underway) (attention bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.request == r {
		c.request = nil
	}
	r.cancel(nil)
	return r.attention
}

// interrupt cancels the request that is under way; false means that there is none.
func (c *Conn) interrupt() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.request == nil {
		return false
	}
	c.request.attention = true
	c.request.cancel(ErrAttention)
	return true
}

func (c *Conn) endRequest(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.request != nil {
		c.request.cancel(cause)
	}
}

// handle answers one message. goOn is false when the connection shall end.
func (c *Conn) handle(ctx context.Context, m arrival) (goOn bool, err error) {
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
	run, err := c.plan(m.message, r)
	if err != nil {
		c.executed(m.request)
		return false, err
	}
	run(m.request.ctx)
	attention := c.executed(m.request)

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
