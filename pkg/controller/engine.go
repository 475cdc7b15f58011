package controller

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/agops"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/live"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/tsql"
)

// versionLimit is the deadline of asking a standalone server for its version.
const versionLimit = 10 * time.Second

// versionFunc asks the server in a pod of a standalone instance for its product version.
type versionFunc func(ctx context.Context, key ag.Key, pod string, address ag.Pod) (string, error)

// newSystem wires the engine to the manager's clients.
func newSystem(mgr ctrl.Manager, o Options, clk clock.Clock) *live.System {
	log := mgr.GetLogger().WithName("engine")
	return live.New(live.Options{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Clock: clk,
		Identity: "controller/" + o.Identity,
		Progress: func(d agops.Done) { logDone(log, d) },
	})
}

// logDone writes one line for everything that was tried.
func logDone(log logr.Logger, d agops.Done) {
	log = log.WithValues("namespace", d.Key.Namespace, "group", d.Key.Name, "took", d.Took.Round(time.Millisecond).String())
	if d.Err != nil {
		log.Info("failed: "+d.What, "error", d.Err.Error())
		return
	}
	log.Info(d.What)
}

// versions asks by the operator's own login.
func versions(s agops.Servers) versionFunc {
	return func(ctx context.Context, key ag.Key, pod string, address ag.Pod) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, versionLimit)
		defer cancel()
		conn, err := s.Connect(ctx, key, pod, address)
		if err != nil {
			return "", fmt.Errorf("ask %s for its version: %w", pod, err)
		}
		defer func() { _ = conn.Close() }()
		results, err := conn.Query(ctx, tsql.ProductVersion())
		if err != nil {
			return "", fmt.Errorf("ask %s for its version: %w", pod, err)
		}
		for _, r := range results {
			for _, row := range r.All() {
				if v := row.Text("product_version"); v != "" {
					return v, nil
				}
			}
		}
		return "", fmt.Errorf("ask %s for its version: the answer is empty", pod)
	}
}
