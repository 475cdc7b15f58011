//go:build linux

package simulation

import (
	"context"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/tsql"
)

// writer is a client that writes unique values to one replica whenever that says it is the primary:
// it trusts nobody's label.
type writer struct {
	c     *cluster
	node  *node
	kick  chan struct{}
	conn  *conn
	count int64
	busy  time.Duration // writes come quickly until then; mu
}

// Pace of the writes.
const (
	idlePace  = 1500 * time.Millisecond
	busyPace  = 120 * time.Millisecond
	busyFor   = 4 * time.Second
	writeWait = 8 * time.Second
)

// wake makes the writer write at once, and quickly for a while: something has changed. mu is held.
func (wr *writer) wake() {
	wr.busy = wr.c.w.now() + busyFor
	select {
	case wr.kick <- struct{}{}:
	default:
	}
}

func (wr *writer) write(ctx context.Context) {
	w, p := wr.c.w, wr.c.clients
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		w.mu.Lock()
		pace := idlePace
		if w.now() < wr.busy {
			pace = busyPace
		}
		pace += within(w.draw(counter{p.station, wr.node.index, kindOther}), 0, pace/4)
		s := wr.node.server
		primary := s != nil && !s.dead && s.role == "PRIMARY"
		if !primary {
			pace = 2 * idlePace // a promotion wakes it
		}
		if wr.conn != nil && (wr.conn.closed || wr.conn.server != s) {
			wr.conn = nil
		}
		w.mu.Unlock()
		if primary {
			wr.one(ctx)
		}
		timer.Reset(pace)
		select {
		case <-timer.C:
		case <-wr.kick:
			// Everybody was woken in the same instant; each goes on in one of its own.
			if !p.sleep(time.Duration(wr.node.index+1) * 50 * time.Microsecond) {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// one writes one value.
func (wr *writer) one(ctx context.Context) {
	w := wr.c.w
	ctx, cancel := context.WithTimeout(ctx, writeWait)
	defer cancel()
	if wr.conn == nil {
		c, err := wr.node.connect(ctx, wr.c.clients, "sa", saPassword)
		if err != nil {
			return
		}
		wr.conn = c
	}
	w.mu.Lock()
	made := wr.c.check.tableMade
	wr.count++
	v := int64(wr.node.index+1)*1_000_000 + wr.count
	w.mu.Unlock()
	r := tsql.Request{SQL: "INSERT INTO app.dbo.t (v) VALUES (@v)", Declaration: "@v bigint", Params: []tsql.Param{{Name: "@v", Value: sqltypes.NewBigInt(v)}}}
	if !made {
		r = tsql.Request{SQL: "CREATE TABLE app.dbo.t (v bigint NOT NULL PRIMARY KEY)"}
	}
	results, err := wr.conn.do(ctx, r)
	if err == nil && results != nil {
		if e := results.failure(); e != nil {
			err = e
		}
	}
	if err != nil {
		w.say("client", "%s: write %d: %v", wr.node.name, v, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil && results != nil && made:
		wr.c.check.acknowledged(wr.node, v)
	case err == nil && results != nil:
		wr.c.check.tableMade = true
	default:
		if e := results.failure(); e == nil || e.Number == 2714 {
			wr.c.check.tableMade = wr.c.check.tableMade || e != nil && e.Number == 2714
		}
		if ctx.Err() != nil {
			_ = closeLater(wr)
		}
	}
}

// closeLater forgets a session that did not answer; the server may still carry out what it was told.
func closeLater(wr *writer) error {
	wr.conn = nil
	return nil
}
