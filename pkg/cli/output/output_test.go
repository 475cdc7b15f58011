package output

import (
	"bytes"
	"errors"
	"testing"

	"github.com/spf13/cobra"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
)

type doc struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Name       string   `json:"name"`
	Errors     []string `json:"errors"`
}

func TestFormats_AreThoseOfKubectl(t *testing.T) {
	t.Parallel()
	d := doc{APIVersion, "Test", "a<b", []string{}}
	for format, want := range map[string]string{
		"json":                      "{\"apiVersion\":\"cli.kubectl-mssql.io/v1\",\"kind\":\"Test\",\"name\":\"a<b\",\"errors\":[]}\n",
		"yaml":                      "---\napiVersion: cli.kubectl-mssql.io/v1\nerrors: []\nkind: Test\nname: a<b\n",
		"name":                      "test/a\n",
		"jsonpath={.name}":          "a<b\n",
		"go-template={{.kind}}":     "Test\n",
		"jsonpath={.errors}":        "[]\n",
		"go-template={{len .kind}}": "4\n",
	} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			f := New("wide")
			f.AddTo(&cobra.Command{})
			f.Set(format)
			if err := f.Validate(); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := f.Write(&out, d, true, "test/a"); err != nil {
				t.Fatal(err)
			}
			if out.String() != want {
				t.Errorf("got %q, want %q", out.String(), want)
			}
		})
	}
}

func TestAnUnknownFormatIsAUsageError(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"xml", "Wide", "jsonpath={", "jsonpath="} {
		f := New("wide")
		f.AddTo(&cobra.Command{})
		f.Set(format)
		err := f.Validate()
		var e *exit.Error
		if !errors.As(err, &e) || e.Code != exit.Usage || e.Hint == "" {
			t.Errorf("%s: got %v", format, err)
		}
	}
}
