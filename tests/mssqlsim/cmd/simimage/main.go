// Command simimage builds the container image of the simulated SQL Server as a
// docker-archive: it compiles sqlservr and sqlcmd and puts them at the product's paths.
//
//	go run ./tests/mssqlsim/cmd/simimage -o mssqlsim.tar
//	ctr -n k8s.io images import mssqlsim.tar
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/image"
)

const packages = "github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/cmd/"

func main() {
	output := flag.String("o", "mssqlsim.tar", "archive to write")
	tag := flag.String("tag", "localhost/mssqlsim:2022", "name and tag of the image")
	busybox := flag.String("busybox", "/bin/busybox", "static busybox (Debian: busybox-static)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := build(ctx, *output, *tag, *busybox)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "simimage: %v\n", err)
		os.Exit(1)
	}
}

func build(ctx context.Context, output, tag, busybox string) error {
	dir, err := os.MkdirTemp("", "simimage-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	files := image.SimulatorFiles{SQLServr: filepath.Join(dir, "sqlservr"), SQLCmd: filepath.Join(dir, "sqlcmd"), BusyBox: busybox}
	for name, out := range map[string]string{"sqlservr": files.SQLServr, "sqlcmd": files.SQLCmd} {
		c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, packages+name)
		c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
		c.Stdout, c.Stderr = os.Stderr, os.Stderr
		if err := c.Run(); err != nil {
			return fmt.Errorf("build %s: %w", name, err)
		}
	}
	if err := image.BuildFile(output, image.Simulator(files, tag)); err != nil {
		return err
	}
	fmt.Println(output)
	return nil
}
