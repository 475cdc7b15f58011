// Package status is `kubectl mssql status`: what an availability group or an instance is
// doing, on one screen.
package status

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/complete"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/output"
)

// Options of one call.
type Options struct {
	Name          string
	AllNamespaces bool
	Watch         bool
	Interval      time.Duration
	Until         string
	Timeout       time.Duration
	Output        *output.Flags
	Verbose       int
	ExitCode      bool

	Factory factory.Factory
	Streams *iostreams.IOStreams
}

// New is the command.
func New(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	o := &Options{Factory: f, Streams: s, Output: output.New("wide")}
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show what an availability group or instance is doing, or all of them",
		Long: `Show what an availability group or instance is doing.

The first line is the verdict. What follows is what is going on, the replicas with what would be lost if
each were promoted now, databases, and problems with the next command. Queues, lag and seeding are asked
of the servers' instance managers through the API server; what could not be seen is said, not guessed.`,
		Example: fmt.Sprintf(`  # one group
  %[1]s status demo

  # follow it until it is healthy
  %[1]s status demo -w --until=healthy --timeout 10m

  # all groups and instances, worst first
  %[1]s status -A

  # every database, condition and certificate; the Lease, mssql.conf and events too
  %[1]s status demo -v
  %[1]s status demo -vv

  # for scripts: 0 healthy, 8 degraded, 9 writes down
  %[1]s status demo --exit-code -o json
  %[1]s status demo -o jsonpath='{.primary}'`, f.Name()),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exit.Errorf(exit.Usage, fmt.Sprintf("see %s --help", cmd.CommandPath()), "want one name at most, got %d arguments", len(args))
			}
			return nil
		},
		ValidArgsFunction: complete.Names(f, complete.Any),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.Name = args[0]
			}
			return o.Run(cmd.Context())
		},
	}
	o.AddListFlags(cmd)
	cmd.Flags().CountVarP(&o.Verbose, "verbose", "v", "-v: every database, conditions, certificates, the disruption budget; -vv: the Lease, mssql.conf and events too")
	return cmd
}

// AddListFlags adds the flags that a list has too.
func (o *Options) AddListFlags(cmd *cobra.Command) {
	o.Output.AddTo(cmd)
	fl := cmd.Flags()
	fl.BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "groups and instances of all namespaces")
	fl.BoolVarP(&o.Watch, "watch", "w", false, "show it again whenever it changes")
	fl.DurationVar(&o.Interval, "interval", 2*time.Second, "with -w: how often to look")
	fl.StringVar(&o.Until, "until", "", "with -w: stop when it is \"healthy\"")
	fl.DurationVar(&o.Timeout, "timeout", 0, "with -w: stop after this time; 0 means never")
	fl.BoolVar(&o.ExitCode, "exit-code", false, "exit 8 when degraded, 9 when writes are down")
	complete.Flag(cmd, "until", "healthy")
}

// Run shows the status once, or again and again.
func (o *Options) Run(ctx context.Context) error {
	if err := o.Output.Validate(); err != nil {
		return err
	}
	switch {
	case o.Name != "" && o.AllNamespaces:
		return exit.Errorf(exit.Usage, "leave out the name or -A", "a name and all namespaces do not go together")
	case o.Until != "" && (o.Until != "healthy" || !o.Watch):
		return exit.Errorf(exit.Usage, "use -w --until=healthy", "--until=%s is not known, or -w is missing", o.Until)
	case o.Timeout < 0 || o.Timeout > 0 && !o.Watch:
		return exit.Errorf(exit.Usage, "use -w --timeout 5m", "--timeout %s needs -w and must not be negative", o.Timeout)
	case o.Watch && o.Interval < 500*time.Millisecond:
		return exit.Errorf(exit.Usage, "use at least 500ms", "--interval %s is too short", o.Interval)
	}
	c, err := NewCollector(o.Factory)
	if err != nil {
		return err
	}
	if o.Name == "" {
		return o.list(ctx, c)
	}
	c.Verbose = o.Verbose
	look := func(ctx context.Context) (screen, error) {
		seen, err := c.Look(ctx, o.Name)
		if err != nil {
			return nil, err
		}
		return &oneScreen{o: o, seen: seen, ns: c.suffix(), now: o.Factory.Clock().Now()}, nil
	}
	return o.show(ctx, look)
}

// screen is one look that can be written.
type screen interface {
	text(w io.Writer) error
	document(w io.Writer, compact bool) error
	// fingerprint leaves out what changes with time alone.
	fingerprint() string
	verdict() (Level, exit.Code, string)
}

// oneScreen is that of a group or an instance.
type oneScreen struct {
	o    *Options
	seen Seen
	ns   string
	now  time.Time
}

func (x *oneScreen) options() TextOptions {
	width := x.o.Streams.Width
	if x.o.Output.Format() == "wide" {
		width = 0
	}
	return TextOptions{
		Width: width, Color: x.o.Streams.ColorOut(), Verbose: x.o.Verbose, Now: x.now, Self: x.o.Factory.Name(), NS: x.ns,
	}
}

func (x *oneScreen) text(w io.Writer) error {
	if x.seen.Instance != nil {
		return WriteInstanceText(w, x.o.Streams, *x.seen.Instance, x.options())
	}
	return WriteText(w, x.o.Streams, *x.seen.Group, x.options())
}

func (x *oneScreen) document(w io.Writer, compact bool) error {
	if x.seen.Instance != nil {
		return x.o.Output.Write(w, x.seen.Instance, compact, "sqlserverinstance.kubectl-mssql.io/"+x.seen.Instance.Name)
	}
	return x.o.Output.Write(w, x.seen.Group, compact, "sqlserveravailabilitygroup.kubectl-mssql.io/"+x.seen.Group.Name)
}

func (x *oneScreen) verdict() (Level, exit.Code, string) {
	what := fmt.Sprintf("%s is %s", x.o.Name, strings.ToLower(phaseWord(x.seen.Phase())))
	return x.seen.Level(), exit.Code(x.seen.ExitCode()), what
}

// result turns the verdict into the exit status when that was asked for.
func (o *Options) result(s screen) error {
	_, code, what := s.verdict()
	if !o.ExitCode || code == exit.OK {
		return nil
	}
	return exit.Errorf(code, "", "%s", what)
}
