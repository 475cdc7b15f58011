package controller

import (
	"context"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/agops"
)

// Engine makes one pass over one availability group: observe, decide, persist,
// execute, record. Between passes of one group it keeps what it has seen with its
// own clock.
type Engine interface {
	Step(ctx context.Context, key ag.Key) (agops.Report, error)
	// Forget drops what is kept of the resource with this UID, which is gone.
	Forget(uid string)
}

// Report is what one pass saw, decided and did.
type Report = agops.Report
