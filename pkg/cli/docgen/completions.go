package docgen

import (
	"bytes"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// Completions are the shells' scripts for the program kubectl-mssql, named as
// packages install them.
func Completions(root *cobra.Command) (map[string]string, error) {
	out := map[string]string{}
	for name, write := range map[string]func(io.Writer) error{
		"kubectl-mssql.bash": func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"_kubectl-mssql":     root.GenZshCompletion,
		"kubectl-mssql.fish": func(w io.Writer) error { return root.GenFishCompletion(w, true) },
		"kubectl-mssql.ps1":  root.GenPowerShellCompletionWithDesc,
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return nil, fmt.Errorf("write %s: %w", name, err)
		}
		out[name] = b.String()
	}
	return out, nil
}
