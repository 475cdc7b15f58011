// Command mkimage writes the image archives of the product and of the simulated
// server, without an engine or a registry.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/image"
)

// ServerTag is the name of the simulated server's image.
const ServerTag = "mssqlsim:2022"

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("usage: mkimage product|oci|server|tag …")
	}
	fs := flag.NewFlagSet(args[0], flag.ContinueOnError)
	target := fs.String("o", "", "archive to write")
	switch args[0] {
	case "tag":
		if len(args) > 1 && args[1] == "server" {
			_, err := fmt.Fprintln(out, ServerTag)
			return err
		}
		_, err := fmt.Fprintln(out, manifests.Default().Image)
		return err
	case "product":
		binary := fs.String("binary", "", "the kubectl-mssql binary")
		if err := fs.Parse(args[1:]); err != nil {
			return err
		}
		return write(*target, image.Product(*binary, manifests.Default().Image))
	case "oci":
		binaries := map[string]*string{
			"amd64": fs.String("amd64", "", "the kubectl-mssql binary for linux/amd64"),
			"arm64": fs.String("arm64", "", "the kubectl-mssql binary for linux/arm64"),
		}
		if err := fs.Parse(args[1:]); err != nil {
			return err
		}
		var images []image.Options
		for _, arch := range []string{"amd64", "arm64"} {
			o := image.Product(*binaries[arch], manifests.Default().Image)
			o.Architecture = arch
			images = append(images, o)
		}
		return replace(*target, func(w io.Writer) error { return image.BuildOCI(w, images...) })
	case "server":
		var f image.SimulatorFiles
		fs.StringVar(&f.SQLServr, "sqlservr", "", "the simulated sqlservr")
		fs.StringVar(&f.SQLCmd, "sqlcmd", "", "the sqlcmd stand-in")
		fs.StringVar(&f.BusyBox, "busybox", "/bin/busybox", "a static busybox")
		if err := fs.Parse(args[1:]); err != nil {
			return err
		}
		return write(*target, image.Simulator(f, ServerTag))
	}
	return fmt.Errorf("unknown image %q", args[0])
}

func write(target string, o image.Options) error {
	return replace(target, func(w io.Writer) error { return image.Build(w, o) })
}

// replace changes the archive in one step, so that a reader never sees half of it.
func replace(target string, build func(io.Writer) error) error {
	if target == "" {
		return fmt.Errorf("-o is missing")
	}
	f, err := os.CreateTemp(filepath.Dir(target), filepath.Base(target)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	if err := build(f); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), target)
}
