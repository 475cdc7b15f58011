// Command csi-driver is the CSI driver of the test cluster; see the package csi.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/kubectl-mssql/kubectl-mssql/tests/cluster/csi"
)

func main() {
	var c csi.Config
	flag.StringVar(&c.Volumes, "volumes", "", "directory of the volumes")
	flag.StringVar(&c.Socket, "socket", "", "CSI socket to serve")
	flag.StringVar(&c.Node, "node", "", "node's name; empty for the controller service")
	flag.StringVar(&c.RegistrationDir, "registration-dir", "/var/lib/kubelet/plugins_registry", "the kubelet's plugin registry")
	flag.Parse()
	c.Version = "test"
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := csi.Run(ctx, c); err != nil {
		fmt.Fprintln(os.Stderr, "csi-driver:", err)
		os.Exit(1)
	}
}
