// Package chart writes the Helm chart in deploy/chart from what manifests.Render
// gives. The options of an installation are rendered with marks for values, and each
// mark becomes an expression over the chart's values: an object, a rule or an argument
// that Render gains is in the chart with the next `make generate`.
package chart

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"text/template"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/version"
)

// Name of the chart.
const Name = "kubectl-mssql"

// files are the chart's own: values, schema, notes. What they tell of defaults stands
// between [[ and ]].
//
//go:embed all:files
var files embed.FS

// Files returns the chart, by path within its directory.
func Files() (map[string][]byte, error) {
	out := map[string][]byte{}
	d := manifests.Default()
	defaults := map[string]any{
		"Version":    version.Get().Version,
		"Repository": manifests.Repository,
		"Namespace":  manifests.DefaultNamespace,
		"Options":    d,
	}
	err := fs.WalkDir(files, "files", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		t, err := template.New(path).Delims("[[", "]]").Option("missingkey=error").Parse(string(text))
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := t.Execute(&b, defaults); err != nil {
			return err
		}
		out[strings.TrimPrefix(path, "files/")] = b.Bytes()
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("write the chart: %w", err)
	}
	templates, err := objectTemplates()
	if err != nil {
		return nil, fmt.Errorf("write the chart: %w", err)
	}
	for name, text := range templates {
		out["templates/"+name] = text
	}
	return out, nil
}
