// Command kubectl-mssql is the plugin, the operator and the instance manager.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/klog/v2"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/controller"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance"
)

func main() {
	os.Exit(run())
}

func run() int {
	// Libraries log through klog, for example that a port-forward was cut; verbs tell what
	// matters themselves. The operator sets its own logger.
	klog.SetLogger(logr.Discard())
	streams := iostreams.System()
	root := cli.NewRoot(os.Args[0], streams)
	std := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	root.AddCommand(instance.NewCommand(std), controller.NewCommand(std))
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// The first Ctrl-C ends the watching in good order; a second one ends the process at once.
	go func() {
		<-ctx.Done()
		stop()
	}()
	return int(cli.Execute(ctx, root, streams, cli.Args(os.Args)))
}
