// Command gen writes deploy/install.yaml and the Helm chart in deploy/chart from
// manifests.Render. `gen package DIR` writes the chart as a release has it.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests/chart"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/version"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 2 && args[0] == "package" {
		return archive(args[1])
	}
	if len(args) > 0 {
		return fmt.Errorf("usage: gen, or gen package DIR")
	}
	objects, err := manifests.Render(manifests.Default())
	if err != nil {
		return err
	}
	text, err := manifests.YAML(objects)
	if err != nil {
		return err
	}
	if err := os.WriteFile("deploy/install.yaml", text, 0o644); err != nil {
		return err
	}
	return writeChart("deploy/chart")
}

// writeChart replaces the chart's directory, so that nothing of an older one is left.
func writeChart(dir string) error {
	files, err := chart.Files()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// archive leaves one archive in dir: a release takes whatever is there.
func archive(dir string) error {
	b, err := chart.Package()
	if err != nil {
		return err
	}
	older, err := filepath.Glob(filepath.Join(dir, chart.Name+"-*.tgz"))
	if err != nil {
		return err
	}
	for _, path := range older {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, chart.Name+"-"+version.Get().Version+".tgz"), b, 0o644)
}
