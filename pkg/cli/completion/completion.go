// Package completion is `kubectl mssql completion`: scripts for shells, and the link
// by which kubectl itself completes `kubectl mssql …`.
package completion

import (
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

// LinkName is the program that kubectl 1.26 and newer runs to complete the plugin's words.
const LinkName = "kubectl_complete-mssql"

// Shim does what the link does, where a script is easier to install than a link.
const Shim = `#!/usr/bin/env sh
# kubectl 1.26 and newer asks this program, found on PATH, to complete ` + "`kubectl mssql …`" + `.
# A symbolic link of this name to kubectl-mssql does the same.
exec kubectl-mssql __complete "$@"
`

// options of `completion kubectl`.
type options struct {
	install bool
	dir     string
	force   bool

	argv0    string
	pathList []string
	streams  *iostreams.IOStreams
}

// New is the command with a child for each shell. argv0 is how the program was
// started; pathList are the directories of PATH; name is what the user types.
func New(argv0 string, pathList []string, name string, s *iostreams.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "completion",
		Short: "Complete names and flags with the Tab key",
		Long: `Print a completion script for a shell, or make kubectl complete the plugin's words.

The scripts complete the program kubectl-mssql. For "kubectl mssql" kubectl's own completion must be on
(kubectl completion --help), and kubectl must find kubectl_complete-mssql on PATH: completion kubectl
--install makes it. Packages of Debian, RPM and Homebrew bring it along.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for shell, how := range map[string]struct {
		write func(root *cobra.Command, w io.Writer, descriptions bool) error
		load  string
	}{
		"bash": {func(r *cobra.Command, w io.Writer, d bool) error { return r.GenBashCompletionV2(w, d) },
			"source <(kubectl-mssql completion bash)"},
		"zsh": {func(r *cobra.Command, w io.Writer, d bool) error {
			if d {
				return r.GenZshCompletion(w)
			}
			return r.GenZshCompletionNoDesc(w)
		}, "source <(kubectl-mssql completion zsh)"},
		"fish": {func(r *cobra.Command, w io.Writer, d bool) error { return r.GenFishCompletion(w, d) },
			"kubectl-mssql completion fish | source"},
		"powershell": {func(r *cobra.Command, w io.Writer, d bool) error {
			if d {
				return r.GenPowerShellCompletionWithDesc(w)
			}
			return r.GenPowerShellCompletion(w)
		}, "kubectl-mssql completion powershell | Out-String | Invoke-Expression"},
	} {
		var bare bool
		child := &cobra.Command{
			Use:     shell,
			Short:   "Print the script for " + shell,
			Example: "  # in this session\n  " + how.load,
			Args:    cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				if err := how.write(cmd.Root(), s.Out, !bare); err != nil {
					return fmt.Errorf("write the script: %w", err)
				}
				return nil
			},
		}
		child.Flags().BoolVar(&bare, "no-descriptions", false, "complete words without saying what they mean")
		cmd.AddCommand(child)
	}
	cmd.AddCommand(newKubectl(argv0, pathList, name, s))
	return cmd
}

func newKubectl(argv0 string, pathList []string, name string, s *iostreams.IOStreams) *cobra.Command {
	o := &options{argv0: argv0, pathList: pathList, streams: s}
	cmd := &cobra.Command{
		Use:   "kubectl",
		Short: "Make kubectl complete the plugin's words",
		Example: fmt.Sprintf(`  # a link beside the plugin, as after krew install
  %[1]s completion kubectl --install

  # the script that does the same, to be put on PATH as kubectl_complete-mssql
  %[1]s completion kubectl`, name),
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return o.run() },
	}
	fl := cmd.Flags()
	fl.BoolVar(&o.install, "install", false, "make the link kubectl_complete-mssql beside the plugin")
	fl.StringVar(&o.dir, "dir", "", "with --install: directory for the link; the plugin's own when left out")
	fl.BoolVar(&o.force, "force", false, "with --install: replace a file of that name")
	return cmd
}

func (o *options) run() error {
	if !o.install {
		if o.dir != "" || o.force {
			return exit.Errorf(exit.Usage, "add --install", "--dir and --force go with --install")
		}
		_, err := io.WriteString(o.streams.Out, Shim)
		return err
	}
	plugin, err := o.plugin()
	if err != nil {
		return err
	}
	dir := o.dir
	if dir == "" {
		dir = filepath.Dir(plugin)
	}
	link, state, err := Install(dir, plugin, o.force)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.streams.Out, "%s %s\n", link, state)
	if !o.onPath(dir) {
		fmt.Fprintf(o.streams.ErrOut, "%s %s is not on PATH: kubectl will not find the link there\n", o.streams.Mark(iostreams.MarkWarn), dir)
	}
	return nil
}

// plugin is the path by which the program was found: under krew the link on PATH, not
// the file in krew's store that an upgrade replaces.
func (o *options) plugin() (string, error) {
	path := o.argv0
	if !strings.ContainsAny(path, `/\`) {
		found, err := exec.LookPath(path)
		if err != nil {
			return "", exit.With(exit.Usage, "name a directory with --dir, and start the plugin by its path", fmt.Errorf("find the plugin: %w", err))
		}
		path = found
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find the plugin: %w", err)
	}
	return abs, nil
}

func (o *options) onPath(dir string) bool {
	for _, d := range o.pathList {
		if filepath.Clean(d) == filepath.Clean(dir) {
			return true
		}
	}
	return false
}

func exeSuffix() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}
