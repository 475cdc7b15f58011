package mssql

import (
	"context"
	"database/sql"
	"encoding/json"
	"time"

	"github.com/golang-sql/sqlexp"
	driver "github.com/microsoft/go-mssqldb"
)

// Column of a result set. Type is the server's name of it, upper case: "DATETIME2".
type Column struct {
	Name string
	Type string
}

// Notice is what the server says beside the results: PRINT, and errors, which are
// those of severity 11 and more.
type Notice struct {
	Number int32
	Class  uint8
	State  uint8
	Line   int32
	Text   string
}

// Sink takes the answer to a batch in the server's order. An error that it returns
// ends the reading.
type Sink interface {
	// Columns begins a result set.
	Columns([]Column) error
	// Row of the result set: nil, bool, int64, float64, string, []byte, time.Time,
	// json.Number for exact decimals and money.
	Row([]any) error
	// End of the result set.
	End() error
	// Affected rows of a statement without a result set.
	Affected(rows int64) error
	// Notice of the server.
	Notice(Notice) error
}

// Streamer is a Conn that hands an answer over while it arrives. All sessions of
// [Dialer] are.
type Streamer interface {
	// Stream runs one batch. Errors of the server go to the sink in their place, and
	// are returned at the end as one *ag.Error.
	Stream(ctx context.Context, batch string, into Sink) error
}

// Stream implements Streamer. When the context ends the server is told to stop
// (an attention), and the session stays of use if it answers that in time.
func (s *session) Stream(ctx context.Context, batch string, into Sink) error {
	over := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), streamHangUp)
		defer cancel()
		select {
		case <-over:
		case <-patience.Done():
			s.link.cut()
		}
	})
	defer stop()
	defer close(over)
	err := s.stream(ctx, batch, into)
	if err != nil {
		return statementError(s.address, err, ctx.Err())
	}
	return nil
}

// streamHangUp is how long a person's query may take to be cancelled politely: through
// a port-forward an answer takes longer than beside the server.
const streamHangUp = 10 * time.Second

func (s *session) stream(ctx context.Context, batch string, into Sink) error {
	var messages sqlexp.ReturnMessage
	rows, err := s.conn.QueryContext(ctx, batch, &messages)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	var failed *driver.Error
	counted := false // the next count is that of a result set
	for active := true; active; {
		switch m := messages.Message(ctx).(type) {
		case sqlexp.MsgNext:
			has, err := s.result(rows, into)
			if err != nil {
				return err
			}
			counted = has
		case sqlexp.MsgRowsAffected:
			if !counted {
				if err := into.Affected(m.Count); err != nil {
					return err
				}
			}
			counted = false
		case sqlexp.MsgNotice:
			n := Notice{Text: m.Message.String()}
			if e, ok := m.Message.(driver.Error); ok {
				n = notice(e)
			}
			if err := into.Notice(n); err != nil {
				return err
			}
		case sqlexp.MsgError:
			e, ok := m.Error.(driver.Error) //nolint:errorlint // the driver hands over its own type, not a chain
			if !ok {
				return m.Error
			}
			if failed == nil {
				failed = &driver.Error{}
			}
			all := append(failed.All, e)
			*failed = e
			failed.All = all
			if err := into.Notice(notice(e)); err != nil {
				return err
			}
		case sqlexp.MsgNextResultSet:
			active = rows.NextResultSet()
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := rows.Err(); err != nil && failed == nil {
		return err
	}
	if failed != nil {
		return *failed
	}
	return nil
}

func notice(e driver.Error) Notice {
	return Notice{Number: e.Number, Class: e.Class, State: e.State, Line: e.LineNo, Text: e.Message}
}

func (s *session) result(rows *sql.Rows, into Sink) (bool, error) {
	types, err := rows.ColumnTypes()
	if err != nil || len(types) == 0 {
		return false, err
	}
	columns := make([]Column, 0, len(types))
	for _, t := range types {
		columns = append(columns, Column{Name: t.Name(), Type: t.DatabaseTypeName()})
	}
	if err := into.Columns(columns); err != nil {
		return true, err
	}
	values, refs := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		refs[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(refs...); err != nil {
			return true, err
		}
		row := make([]any, len(columns))
		for i, v := range values {
			row[i] = plain(v, columns[i].Type)
		}
		if err := into.Row(row); err != nil {
			return true, err
		}
	}
	if err := rows.Err(); err != nil {
		return true, err
	}
	return true, into.End()
}

// plain turns what the driver gives for a type into what people mean by it.
func plain(v any, typ string) any {
	b, ok := v.([]byte)
	if !ok {
		return v
	}
	switch typ {
	case "DECIMAL", "NUMERIC", "MONEY", "SMALLMONEY":
		return json.Number(b)
	case "UNIQUEIDENTIFIER":
		var id driver.UniqueIdentifier
		if id.Scan(b) == nil {
			return id.String()
		}
	}
	return append([]byte(nil), b...)
}
