package check

import (
	"context"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// Checker looks at a cluster. Its methods never fail: what cannot be seen is a row.
type Checker struct {
	Client client.Client
	// Server asks the API server for its version and clock.
	Server func(context.Context) (Server, error)
	// Namespace that groups are to be made in, or are checked in.
	Namespace string
	// Self is how the user calls us.
	Self string
	// Render are the options of the installation that is checked for.
	Render manifests.Options
}

// patience is how long one section may take.
const patience = 15 * time.Second

// Pre tells whether the operator can be installed and SQL Server can run.
func (ch *Checker) Pre(ctx context.Context) []Row {
	rows, server, ok := ch.kubernetes(ctx)
	if !ok {
		return rows
	}
	return append(rows, together(ctx,
		func(ctx context.Context) []Row { return ch.nodes(ctx, server) },
		ch.storage,
		ch.permissions,
		ch.namespaces,
		ch.existing,
	)...)
}

// Installed tells whether the operators and the groups of a namespace (all when it is
// empty) are in order; a name limits it to one group or instance.
func (ch *Checker) Installed(ctx context.Context, namespace, name string) []Row {
	rows, server, ok := ch.kubernetes(ctx)
	if !ok {
		return rows
	}
	return append(rows, together(ctx,
		func(ctx context.Context) []Row { return ch.definitions(ctx) },
		func(ctx context.Context) []Row { return ch.operators(ctx, server) },
		func(ctx context.Context) []Row { return ch.resources(ctx, server, namespace, name) },
	)...)
}

// together runs sections side by side, each with its own deadline, and keeps their order.
func together(ctx context.Context, sections ...func(context.Context) []Row) []Row {
	results := make([][]Row, len(sections))
	var wg sync.WaitGroup
	for i, f := range sections {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			results[i] = f(ctx)
		})
	}
	wg.Wait()
	return slices.Concat(results...)
}
