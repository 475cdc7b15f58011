package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
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
	if hint := hintOf(err); hint != "" {
		fmt.Fprintf(s.ErrOut, "hint:  %s\n", hint)
	}
	return code
}

// hintOf says what to do next: what the verb says, or for an API server that does not
// answer how to find out which one was asked.
func hintOf(err error) string {
	var e *exit.Error
	var unanswered *url.Error
	switch {
	case errors.As(err, &e):
		return e.Hint
	case errors.As(err, &unanswered) && !errors.Is(err, context.Canceled):
		return "the API server does not answer: check --kubeconfig and --context; `kubectl cluster-info` must work with the same flags"
	}
	return ""
}
