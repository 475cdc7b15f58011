// Command sqlcmd is a stand-in for /opt/mssql-tools18/bin/sqlcmd in the image of the
// simulated SQL Server, so that scripts and the probes of other operators run unchanged:
// the options that they use, GO, scripting variables, the output layout and the exit
// codes. It is a test tool and no part of the product.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
