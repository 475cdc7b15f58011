// Command kubectl-mssql is the plugin, the operator and the instance manager.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	_ "k8s.io/client-go/plugin/pkg/client/auth"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

func main() {
	os.Exit(run())
}

func run() int {
	streams := iostreams.System()
	root := cli.NewRoot(os.Args[0], streams)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return int(cli.Execute(ctx, root, streams, cli.Args(os.Args)))
}
