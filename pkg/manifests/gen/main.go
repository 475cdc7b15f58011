// Command gen writes deploy/install.yaml from manifests.Render with the default options.
package main

import (
	"fmt"
	"os"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	objects, err := manifests.Render(manifests.Default())
	if err != nil {
		return err
	}
	text, err := manifests.YAML(objects)
	if err != nil {
		return err
	}
	return os.WriteFile("deploy/install.yaml", text, 0o644)
}
