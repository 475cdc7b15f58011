// Package mssqltest is a scripted mssql.Conn for unit tests.
package mssqltest

import (
	"context"
	"strings"
	"sync"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/mssql"
)

// Answer is what the server says to one batch.
type Answer struct {
	Results []mssql.Result
	Err     error
}

// Rule answers the batches that contain Contains.
type Rule struct {
	Contains string
	Answer   Answer
	// Once: the rule is used up by its first match.
	Once bool
}

// Conn answers batches by the first rule that matches; a batch that no rule matches
// succeeds with no results. Every batch is recorded.
type Conn struct {
	mu     sync.Mutex
	rules  []Rule
	sent   []string
	closed bool
}

// New makes a Conn with these rules.
func New(rules ...Rule) *Conn { return &Conn{rules: rules} }

// Query implements mssql.Conn.
func (c *Conn) Query(ctx context.Context, batch string) ([]mssql.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return nil, &ag.Error{Kind: ag.ErrTimeout, Message: "no answer in time"}
	}
	c.sent = append(c.sent, batch)
	for i, r := range c.rules {
		if !strings.Contains(batch, r.Contains) {
			continue
		}
		if r.Once {
			c.rules = append(append([]Rule(nil), c.rules[:i]...), c.rules[i+1:]...)
		}
		return r.Answer.Results, r.Answer.Err
	}
	return nil, nil
}

// Exec implements mssql.Conn.
func (c *Conn) Exec(ctx context.Context, batch string) error {
	_, err := c.Query(ctx, batch)
	return err
}

// Close implements mssql.Conn.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return nil
}

// Sent lists the batches, oldest first.
func (c *Conn) Sent() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.sent...)
}

// Closed tells whether the session was closed.
func (c *Conn) Closed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// Table makes one result set.
func Table(columns []string, rows ...[]any) mssql.Result {
	return mssql.Result{Columns: columns, Rows: rows}
}

// Msg makes the error of one Msg number.
func Msg(number int32, text string) *ag.Error {
	return &ag.Error{Kind: ag.ErrMsg, Number: number, All: []int32{number}, Message: text}
}
