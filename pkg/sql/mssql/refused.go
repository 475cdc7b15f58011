package mssql

import (
	"context"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/tsql"
)

// ServerTime reads the server's clock in this session. The instant lies between
// call and return: an expiry of ServerTime + q has passed at the latest q after the
// return (R5).
func ServerTime(ctx context.Context, c Conn) (time.Time, error) {
	results, err := c.Query(ctx, tsql.ServerTime())
	if err != nil {
		return time.Time{}, err
	}
	if len(results) != 1 || len(results[0].Rows) != 1 || results[0].Row(0).Time(tsql.ServerTimeColumn).IsZero() {
		return time.Time{}, &ag.Error{Kind: ag.ErrUnknown, Message: "the server did not tell its time"}
	}
	return results[0].Row(0).Time(tsql.ServerTimeColumn), nil
}

// ExecGuarded runs a batch made by tsql.Guard.Wrap and turns its refusal into an
// error of kind Expired or Guard: nothing was done.
func ExecGuarded(ctx context.Context, c Conn, batch string) error {
	results, err := c.Query(ctx, batch)
	if err != nil {
		return err
	}
	for _, r := range results {
		if len(r.Columns) != 1 || r.Columns[0] != tsql.RefusedColumn || len(r.Rows) == 0 {
			continue
		}
		if r.Row(0).Text(tsql.RefusedColumn) == tsql.RefusedExpired {
			return &ag.Error{Kind: ag.ErrExpired, Message: "the statement reached the server after its expiry: nothing was done"}
		}
		return &ag.Error{Kind: ag.ErrGuard, Message: "the replica has changed since it was observed: nothing was done"}
	}
	return nil
}
