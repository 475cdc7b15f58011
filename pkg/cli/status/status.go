// Package status is `kubectl mssql status`: what an availability group is doing, on one screen.
package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/version"
)

// Options of one call.
type Options struct {
	Name          string
	AllNamespaces bool
	Watch         bool
	Interval      time.Duration
	Until         string
	Timeout       time.Duration
	Output        string
	Verbose       int
	ExitCode      bool

	Factory factory.Factory
	Streams *iostreams.IOStreams
	// Measure asks the instance managers for what the resource does not hold; nil skips it.
	Measure func(ctx context.Context, g *api.SQLServerAvailabilityGroup) (map[string]Measured, []string)
}

// New is the command.
func New(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	o := &Options{Factory: f, Streams: s}
	cmd := &cobra.Command{
		Use:   "status [NAME]",
		Short: "Show what an availability group is doing, or all of them",
		Example: fmt.Sprintf(`  # one group
  %[1]s status demo

  # follow it until it is healthy
  %[1]s status demo -w --until=healthy

  # all groups and instances, worst first
  %[1]s status -A

  # for scripts: 0 healthy, 8 degraded, 9 writes down
  %[1]s status demo --exit-code -o json`, f.Name()),
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				o.Name = args[0]
			}
			return o.Run(cmd.Context())
		},
	}
	fl := cmd.Flags()
	fl.BoolVarP(&o.AllNamespaces, "all-namespaces", "A", false, "groups and instances of all namespaces")
	fl.BoolVarP(&o.Watch, "watch", "w", false, "show it again whenever it changes")
	fl.DurationVar(&o.Interval, "interval", 2*time.Second, "with -w: how often to look")
	fl.StringVar(&o.Until, "until", "", "with -w: stop when it is \"healthy\"")
	fl.DurationVar(&o.Timeout, "timeout", 0, "with -w: stop after this time; 0 means never")
	fl.StringVarP(&o.Output, "output", "o", "", "output format: json, yaml, or wide for everything at any width")
	fl.CountVarP(&o.Verbose, "verbose", "v", "also list databases and conditions")
	fl.BoolVar(&o.ExitCode, "exit-code", false, "exit 8 when degraded, 9 when writes are down")
	return cmd
}

// Run shows the status once, or again and again.
func (o *Options) Run(ctx context.Context) error {
	switch o.Output {
	case "", "json", "yaml", "wide":
	default:
		return exit.Errorf(exit.Usage, "use json, yaml or wide", "unknown output format %q", o.Output)
	}
	switch {
	case o.Name != "" && o.AllNamespaces:
		return exit.Errorf(exit.Usage, "leave out the name or -A", "a name and all namespaces do not go together")
	case o.Until != "" && (o.Until != "healthy" || !o.Watch):
		return exit.Errorf(exit.Usage, "use -w --until=healthy", "--until=%s is not known, or -w is missing", o.Until)
	case o.Watch && o.Interval < 500*time.Millisecond:
		return exit.Errorf(exit.Usage, "use at least 500ms", "--interval %s is too short", o.Interval)
	}
	c, err := o.Factory.Client()
	if err != nil {
		return err
	}
	ns, _, err := o.Factory.Namespace()
	if err != nil {
		return err
	}
	if o.Name == "" {
		return o.list(ctx, c, ns)
	}
	if o.Watch {
		return o.watch(ctx, c, ns)
	}
	d, err := o.collect(ctx, c, ns)
	if err != nil {
		return err
	}
	if err := o.write(d); err != nil {
		return err
	}
	return o.result(d)
}

// result turns the verdict into the exit status when that was asked for.
func (o *Options) result(d Document) error {
	if !o.ExitCode || d.ExitCode == 0 {
		return nil
	}
	return exit.Errorf(exit.Code(d.ExitCode), "", "%s/%s is %s", d.Namespace, d.Name, strings.ToLower(d.Phase))
}

// collect reads what may be read; a missing permission costs one line, not the screen.
func (o *Options) collect(ctx context.Context, c client.Client, ns string) (Document, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	var g api.SQLServerAvailabilityGroup
	if err := c.Get(ctx, client.ObjectKey{Namespace: ns, Name: o.Name}, &g); err != nil {
		if meta.IsNoMatchError(err) {
			return Document{}, exit.Errorf(exit.NotFound, o.Factory.Name()+" install", "the operator is not installed in this cluster")
		}
		if apierrors.IsNotFound(err) {
			return Document{}, exit.Errorf(exit.NotFound, o.Factory.Name()+" status lists what is there", "there is no availability group %s in namespace %s", o.Name, ns)
		}
		return Document{}, fmt.Errorf("read the availability group %s: %w", o.Name, err)
	}
	in := Input{Group: &g, Pods: map[string]time.Time{}, Now: o.Factory.Clock().Now(), Plugin: version.Get().Version, Self: o.Factory.Name()}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(ns), client.MatchingLabels{api.LabelAG: o.Name}); err != nil {
		in.Errors = append(in.Errors, fmt.Sprintf("pods: you may not list pods in namespace %s (%v)", ns, apierrors.ReasonForError(err)))
	}
	for _, p := range pods.Items {
		in.Pods[p.Name] = p.CreationTimestamp.Time
	}
	if o.Measure != nil {
		m, errs := o.Measure(ctx, &g)
		in.Measured, in.Errors = m, append(in.Errors, errs...)
	}
	return Build(in), nil
}

func (o *Options) write(d Document) error {
	switch o.Output {
	case "json":
		enc := json.NewEncoder(o.Streams.Out)
		if !o.Watch {
			enc.SetIndent("", "  ")
		}
		return enc.Encode(d)
	case "yaml":
		text, err := yaml.Marshal(d)
		if err != nil {
			return fmt.Errorf("write the status: %w", err)
		}
		_, err = fmt.Fprintf(o.Streams.Out, "---\n%s", text)
		return err
	}
	width := o.Streams.Width
	if o.Output == "wide" {
		width = 0
	}
	return WriteText(o.Streams.Out, o.Streams, d, TextOptions{Width: width, Color: o.Streams.ColorOut(),
		Verbose: o.Verbose, Now: o.Factory.Clock().Now(), Self: o.Factory.Name()})
}

// watch redraws on a terminal; elsewhere it writes a new screen with a time stamp when something changed.
func (o *Options) watch(ctx context.Context, c client.Client, ns string) error {
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Timeout)
		defer cancel()
	}
	clk := o.Factory.Clock()
	ticker := clk.NewTicker(o.Interval)
	defer ticker.Stop()
	last := ""
	for {
		d, err := o.collect(ctx, c, ns)
		if err != nil && ctx.Err() == nil {
			return err
		}
		if err == nil {
			redraw := o.Streams.StdoutTTY && o.Output != "json" && o.Output != "yaml"
			key := fingerprint(d)
			switch {
			case redraw:
				fmt.Fprint(o.Streams.Out, "\x1b[H\x1b[2J")
				err = o.write(d)
			case key != last:
				if o.Output == "" || o.Output == "wide" {
					fmt.Fprintf(o.Streams.Out, "\n-- %s\n", clk.Now().UTC().Format(time.RFC3339))
				}
				err = o.write(d)
			}
			if err != nil {
				return err
			}
			last = key
			if o.Until == "healthy" && d.Level == LevelOK {
				return o.result(d)
			}
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return exit.Errorf(exit.Timeout, "", "still %s after %s", strings.ToLower(d.Phase), o.Timeout)
			}
			return nil // Ctrl-C is how a person ends a watch
		case <-ticker.C():
		}
	}
}

// fingerprint leaves out what changes with time alone.
func fingerprint(d Document) string {
	d.WritesDownSeconds = nil
	for i := range d.Replicas {
		d.Replicas[i].SendQueue, d.Replicas[i].RedoQueue, d.Replicas[i].Lag = nil, nil, nil
	}
	b, err := json.Marshal(d)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
