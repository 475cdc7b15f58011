// Package report is `kubectl mssql report`: one archive with all that somebody who was
// not there needs to understand what happened to a group or instance. What may be a
// secret is taken out on the way in; what cannot be gathered is a line in errors.txt.
package report

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/arguments"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/progress"
)

// Options of one call.
type Options struct {
	Name     string
	File     string
	Dir      string
	Since    time.Duration
	ErrorLog bool
	Timeout  time.Duration
	Quiet    bool

	Factory factory.Factory
	Streams *iostreams.IOStreams
}

// New is the command.
func New(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	o := &Options{Factory: f, Streams: s}
	cmd := &cobra.Command{
		Use:   "report NAME",
		Short: "Gather all that support needs into one archive, without secrets",
		Long: `Gather everything about a group or instance into one archive: resources, Lease, pods, volumes, events,
logs of servers and controllers, what every instance manager and server says, what the rules decide now,
history, versions and checks. README.txt in it says what is where.

Passwords, tokens, private keys and the contents of Secrets are taken out; values of environment
variables and annotations of other tools are, too. What cannot be gathered is a line in errors.txt.
Look through the archive before you hand it on: names of databases, hosts and people are in it.`,
		Example: fmt.Sprintf(`  # demo-report-<time>.tar.gz in the present folder
  %[1]s report demo

  # with the servers' own error logs, and no more than the last two hours of the others
  %[1]s report demo --errorlog --since 2h

  # as files below a folder
  %[1]s report demo -o /tmp`, f.Name()),
		Args: arguments.OneName("group or instance"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return o.Run(cmd.Context())
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&o.File, "file", "f", "", "name of the archive, .tar.gz")
	fl.StringVarP(&o.Dir, "dir", "o", "", "write files below this folder instead of an archive")
	fl.DurationVar(&o.Since, "since", 0, "only log lines newer than this; 0 means all")
	fl.BoolVar(&o.ErrorLog, "errorlog", false, "read the servers' error logs too, the present one and the one before; needs the password of sa")
	fl.DurationVar(&o.Timeout, "timeout", 3*time.Minute, "how long gathering may take; what is missing by then is left out")
	fl.BoolVarP(&o.Quiet, "quiet", "q", false, "no progress")
	return cmd
}

// gatherer holds what the parts of the gathering share.
type gatherer struct {
	o         *Options
	client    client.Client
	clientset kubernetes.Interface
	config    *rest.Config
	namespace string
	archive   *Archive
	facts     facts

	mu sync.Mutex
	// verdict is what the rules say, for the README.
	verdict string
}

// Run gathers and writes.
func (o *Options) Run(ctx context.Context) error {
	if o.File != "" && o.Dir != "" {
		return exit.Errorf(exit.Usage, "use one of them", "--file and --dir do not go together")
	}
	g, err := o.gatherer()
	if err != nil {
		return err
	}
	now := o.Factory.Clock().Now().UTC()
	root := o.Name + "-report-" + now.Format("20060102-150405")
	g.archive = newArchive(root, &Redactor{}, now)
	report := progress.New(o.Streams, o.Factory.Clock(), o.Quiet)
	defer report.Stop()
	report.Step("gathering everything about %s", o.Name)
	gathering, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	if err := g.gather(gathering); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return exit.Errorf(exit.Interrupted, "", "interrupted; nothing was written")
	}
	if gathering.Err() != nil {
		g.archive.Fail("gathering", fmt.Errorf("not finished after %s; --timeout gives it more time", o.Timeout))
	}
	g.finish(now)
	path, err := o.write(g.archive, root)
	if err != nil {
		return err
	}
	report.Done("%d files; %d things could not be gathered (errors.txt)", len(g.archive.Paths()), len(g.archive.Errors()))
	if !o.Quiet {
		fmt.Fprintln(o.Streams.ErrOut, "Look through it before you hand it on: names of databases, hosts and people are in it.")
	}
	_, err = fmt.Fprintln(o.Streams.Out, path)
	return err
}

func (o *Options) gatherer() (*gatherer, error) {
	config, err := o.Factory.RESTConfig()
	if err != nil {
		return nil, err
	}
	ns, _, err := o.Factory.Namespace()
	if err != nil {
		return nil, err
	}
	c, err := o.Factory.Client()
	if err != nil {
		return nil, err
	}
	cs, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &gatherer{o: o, client: c, clientset: cs, config: config, namespace: ns}, nil
}

func (o *Options) write(a *Archive, root string) (string, error) {
	if o.Dir != "" {
		return filepath.Join(o.Dir, root), a.WriteDir(o.Dir)
	}
	path := o.File
	if path == "" {
		path = root + ".tar.gz"
	}
	return path, a.WriteTar(path)
}
