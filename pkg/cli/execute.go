package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

// Args turns a call as kubectl_complete-mssql into cobra's completion call, so
// that a link of that name is the whole installation of completion.
func Args(argv []string) []string {
	if len(argv) == 0 {
		return nil
	}
	if strings.HasPrefix(filepath.Base(argv[0]), "kubectl_complete-") {
		return append([]string{cobra.ShellCompRequestCmd}, argv[1:]...)
	}
	return argv[1:]
}

// Execute runs the tree, prints an error with its hint, and gives the exit code.
func Execute(ctx context.Context, root *cobra.Command, s *iostreams.IOStreams, args []string) exit.Code {
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exit.OK
	}
	code := exit.Of(err)
	if code == exit.Unexpected && strings.HasPrefix(err.Error(), "unknown command") {
		code = exit.Usage
	}
	if exit.IsSilent(err) {
		return code
	}
	fmt.Fprintf(s.ErrOut, "%s %s\n", iostreams.Paint(s.ColorErr(), iostreams.StyleRed, "error:"), err)
	var e *exit.Error
	if errors.As(err, &e) && e.Hint != "" {
		fmt.Fprintf(s.ErrOut, "hint:  %s\n", e.Hint)
	}
	return code
}
