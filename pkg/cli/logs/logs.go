// Package logs is `kubectl mssql logs`: all servers and the operator's lines about them, in time order.
package logs

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// Options of one call.
type Options struct {
	Name, Replica string
	Follow        bool
	Since         time.Duration
	Tail          int64
	Level         string
	NoOperator    bool
	Previous      bool
	Timestamps    bool

	Factory factory.Factory
	Streams *iostreams.IOStreams
}

// New is the command.
func New(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	o := &Options{Factory: f, Streams: s}
	cmd := &cobra.Command{
		Use:   "logs NAME [REPLICA]",
		Short: "Show the logs of all servers and the operator's lines about them, in time order",
		Example: fmt.Sprintf(`  # everything of the last ten minutes
  %[1]s logs demo --since 10m

  # follow one replica
  %[1]s logs demo demo-1 -f

  # errors only
  %[1]s logs demo --level error`, f.Name()),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > 2 {
				return exit.Errorf(exit.Usage, fmt.Sprintf("see %s --help", cmd.CommandPath()), "want a name and perhaps a replica, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			if len(args) == 2 {
				o.Replica = args[1]
			}
			return o.Run(cmd.Context())
		},
	}
	fl := cmd.Flags()
	fl.BoolVarP(&o.Follow, "follow", "f", false, "go on with new lines")
	fl.DurationVar(&o.Since, "since", 0, "only lines newer than this")
	fl.Int64Var(&o.Tail, "tail", -1, "only the last lines of each server; -1 means all")
	fl.StringVar(&o.Level, "level", "info", "least severity: debug, info or error")
	fl.BoolVar(&o.NoOperator, "no-operator", false, "leave out the operator's lines")
	fl.BoolVarP(&o.Previous, "previous", "p", false, "the container run before the present one")
	fl.BoolVar(&o.Timestamps, "timestamps", false, "print the time of each line")
	return cmd
}

// stream is one container's log.
type stream struct {
	namespace, pod, container, source string
	operator                          bool
}

// Run collects the streams and prints them.
func (o *Options) Run(ctx context.Context) error {
	switch o.Level {
	case "debug", "info", "error":
	default:
		return exit.Errorf(exit.Usage, "use debug, info or error", "unknown level %q", o.Level)
	}
	if o.Follow && o.Previous {
		return exit.Errorf(exit.Usage, "", "-f and --previous do not go together: a run that ended has no new lines")
	}
	c, err := o.Factory.Client()
	if err != nil {
		return err
	}
	config, err := o.Factory.RESTConfig()
	if err != nil {
		return err
	}
	following := *config
	following.Timeout = 0 // a followed log has no end
	cs, err := kubernetes.NewForConfig(&following)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	ns, _, err := o.Factory.Namespace()
	if err != nil {
		return err
	}
	streams, err := o.find(ctx, c, ns)
	if err != nil {
		return err
	}
	width := 0
	for _, s := range streams {
		width = max(width, len(s.source))
	}
	p := &printer{o: o, width: width}
	if o.Follow {
		return o.follow(ctx, cs, streams, ns, p)
	}
	return o.once(ctx, cs, streams, ns, p)
}

// find lists the pods of the group or instance, and the operator's.
func (o *Options) find(ctx context.Context, c client.Client, ns string) ([]stream, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(ns), client.MatchingLabels{api.LabelInstance: o.Name, api.LabelManagedBy: api.ManagedBy}); err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", o.Name, err)
	}
	var out []stream
	var names []string
	for _, p := range pods.Items {
		names = append(names, p.Name)
		if o.Replica == "" || p.Name == o.Replica {
			out = append(out, stream{namespace: ns, pod: p.Name, container: api.ContainerName, source: p.Name})
		}
	}
	if len(names) == 0 {
		return nil, exit.Errorf(exit.NotFound, o.Factory.Name()+" status lists what is there", "%s has no pods in namespace %s", o.Name, ns)
	}
	if len(out) == 0 {
		return nil, exit.Errorf(exit.NotFound, "its replicas: "+strings.Join(names, ", "), "%s has no replica %s", o.Name, o.Replica)
	}
	if o.NoOperator || o.Replica != "" {
		return out, nil
	}
	var ops corev1.PodList
	if err := c.List(ctx, &ops, client.MatchingLabels{manifests.LabelPart: manifests.LabelPartValue}); err != nil {
		if apierrors.IsForbidden(err) {
			fmt.Fprintln(o.Streams.ErrOut, "the operator's lines are left out: you may not list its pods")
			return out, nil
		}
		return nil, fmt.Errorf("list the operator's pods: %w", err)
	}
	for _, p := range ops.Items {
		out = append(out, stream{namespace: p.Namespace, pod: p.Name, container: "controller", source: "operator", operator: true})
	}
	return out, nil
}

func (o *Options) logOptions(s stream) *corev1.PodLogOptions {
	opts := &corev1.PodLogOptions{Container: s.container, Follow: o.Follow, Timestamps: true, Previous: o.Previous && !s.operator}
	if o.Since > 0 {
		sec := int64(max(o.Since/time.Second, 1))
		opts.SinceSeconds = &sec
	}
	if o.Tail >= 0 {
		opts.TailLines = &o.Tail
	}
	return opts
}

// read gives every line of one stream that passes the filters.
func (o *Options) read(ctx context.Context, cs kubernetes.Interface, s stream, ns string, each func(Line)) error {
	r, err := cs.CoreV1().Pods(s.namespace).GetLogs(s.pod, o.logOptions(s)).Stream(ctx)
	if err != nil {
		return fmt.Errorf("read the log of %s: %w", s.pod, err)
	}
	defer r.Close()
	br := bufio.NewReaderSize(r, 64<<10)
	for {
		raw, err := br.ReadString('\n')
		if raw != "" && (!s.operator || Concerns(raw, ns, o.Name)) {
			if l := Parse(s.source, raw); Keep(l, o.Level) {
				each(l)
			}
		}
		if err != nil {
			if err == io.EOF || ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("read the log of %s: %w", s.pod, err)
		}
	}
}

// once merges what is there in time order. A stream that cannot be read costs one line.
func (o *Options) once(ctx context.Context, cs kubernetes.Interface, streams []stream, ns string, p *printer) error {
	all := make([][]Line, len(streams))
	errs := make([]error, len(streams))
	var wg sync.WaitGroup
	for i, s := range streams {
		wg.Go(func() { errs[i] = o.read(ctx, cs, s, ns, func(l Line) { all[i] = append(all[i], l) }) })
	}
	wg.Wait()
	lines := slices.Concat(all...)
	slices.SortStableFunc(lines, func(a, b Line) int { return a.At.Compare(b.At) })
	for _, l := range lines {
		p.print(l)
	}
	failed := 0
	for _, err := range errs {
		if err != nil {
			failed++
			fmt.Fprintf(o.Streams.ErrOut, "Not seen  %v\n", err)
		}
	}
	if failed == len(streams) {
		return exit.Errorf(exit.Unexpected, "", "no log could be read")
	}
	return nil
}

func (o *Options) follow(ctx context.Context, cs kubernetes.Interface, streams []stream, ns string, p *printer) error {
	var wg sync.WaitGroup
	for _, s := range streams {
		wg.Go(func() {
			if err := o.read(ctx, cs, s, ns, p.print); err != nil && ctx.Err() == nil {
				fmt.Fprintf(o.Streams.ErrOut, "Not seen  %v\n", err)
			}
		})
	}
	wg.Wait()
	return nil
}

// printer writes whole lines, one at a time, each source in its own colour.
type printer struct {
	mu     sync.Mutex
	o      *Options
	width  int
	colors map[string]iostreams.Style
}

func (p *printer) print(l Line) {
	p.mu.Lock()
	defer p.mu.Unlock()
	on := p.o.Streams.ColorOut()
	stamp := ""
	if p.o.Timestamps && !l.At.IsZero() {
		stamp = l.At.UTC().Format("15:04:05.000") + " "
	}
	text := l.Text
	if severity(l.Level) == 2 {
		text = iostreams.Paint(on, iostreams.StyleRed, text)
	}
	fmt.Fprintf(p.o.Streams.Out, "%s%s %s\n", stamp, iostreams.Paint(on, p.color(l.Source), fmt.Sprintf("%-*s", p.width, l.Source)), text)
}

func (p *printer) color(source string) iostreams.Style {
	if p.colors == nil {
		p.colors = map[string]iostreams.Style{}
	}
	palette := []iostreams.Style{"\x1b[36m", "\x1b[35m", "\x1b[34m", "\x1b[32m", "\x1b[33m"}
	if _, ok := p.colors[source]; !ok {
		p.colors[source] = palette[len(p.colors)%len(palette)]
	}
	return p.colors[source]
}
