// Package output writes a command's document in the formats of kubectl's own -o: json,
// yaml, name, jsonpath=…, go-template=… and their -file forms. A document is a struct
// with apiVersion and kind and with every key always present.
package output

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
)

// APIVersion of the plugin's documents; within it there are only additions.
const APIVersion = "cli.kubectl-mssql.io/v1"

// Flags are -o and what belongs to it.
type Flags struct {
	print *genericclioptions.PrintFlags
	texts []string
}

// New makes the flags; texts are the command's own text formats besides the default one,
// for example "wide".
func New(texts ...string) *Flags {
	p := genericclioptions.NewPrintFlags("")
	p.NamePrintFlags = nil // a document is no Kubernetes object; Write knows the names
	p.JSONYamlPrintFlags.ShowManagedFields = true
	return &Flags{print: p, texts: texts}
}

// AddTo registers the flags and the completion of their values.
func (f *Flags) AddTo(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVarP(f.print.OutputFormat, "output", "o", "", "output format: "+strings.Join(f.Formats(), ", "))
	fl.StringVar(f.print.TemplatePrinterFlags.TemplateArgument, "template", "", "template text or file for -o go-template, go-template-file, jsonpath, jsonpath-file")
	allow := true
	f.print.TemplatePrinterFlags.AllowMissingKeys = &allow
	words := []cobra.Completion{}
	for _, w := range f.Formats() {
		if strings.HasSuffix(w, "=…") {
			w = strings.TrimSuffix(w, "…")
		}
		words = append(words, w)
	}
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
}

// Formats that are accepted, for messages.
func (f *Flags) Formats() []string {
	return append(slices.Clone(f.texts), "json", "yaml", "name", "jsonpath=…", "go-template=…")
}

// Format is the value of -o.
func (f *Flags) Format() string { return *f.print.OutputFormat }

// Set is for tests and callers without a command line.
func (f *Flags) Set(format string) { *f.print.OutputFormat = format }

// Text tells whether people are to read it: no format, or one of the command's own.
func (f *Flags) Text() bool { return f.Format() == "" || slices.Contains(f.texts, f.Format()) }

// JSONOrYAML tells whether whole documents are written.
func (f *Flags) JSONOrYAML() bool { return f.Format() == "json" || f.Format() == "yaml" }

// Validate refuses an unknown format before anything is asked or done.
func (f *Flags) Validate() error {
	if f.Text() || f.JSONOrYAML() || f.Format() == "name" {
		return nil
	}
	if _, err := f.print.ToPrinter(); err != nil {
		if genericclioptions.IsNoCompatiblePrinterError(err) {
			err = fmt.Errorf("unknown output format %q", f.Format())
		}
		return exit.With(exit.Usage, "use one of: "+strings.Join(f.Formats(), ", "), err)
	}
	return nil
}

// Write writes the document, JSON on one line when compact. Names are what -o name prints,
// as TYPE/NAME.
func (f *Flags) Write(w io.Writer, doc any, compact bool, names ...string) error {
	switch f.Format() {
	case "name":
		for _, n := range names {
			if _, err := fmt.Fprintln(w, n); err != nil {
				return err
			}
		}
		return nil
	case "json":
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		if !compact {
			enc.SetIndent("", "  ")
		}
		return enc.Encode(doc)
	case "yaml":
		text, err := yaml.Marshal(doc)
		if err != nil {
			return fmt.Errorf("write the document: %w", err)
		}
		if compact {
			text = append([]byte("---\n"), text...)
		}
		_, err = w.Write(text)
		return err
	}
	p, err := f.print.ToPrinter()
	if err != nil {
		return f.Validate()
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("write the document: %w", err)
	}
	var o unstructured.Unstructured
	if err := json.Unmarshal(text, &o.Object); err != nil {
		return fmt.Errorf("write the document: %w", err)
	}
	if o.GetKind() == "" {
		return errors.New("write the document: it has no kind")
	}
	if err := p.PrintObj(&o, w); err != nil {
		return exit.With(exit.Usage, "the keys are those of -o json", err)
	}
	_, err = fmt.Fprintln(w)
	return err
}
