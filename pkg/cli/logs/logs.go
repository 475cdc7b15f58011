// Package logs is `kubectl mssql logs`: all servers and the operator's lines about them, in time order.
package logs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/complete"
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
	ErrorLog      bool
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
		Long: `Show the logs of every container of a group or instance and the operator's lines about it, merged in time
order, each replica in its own colour.

A container's log holds the lines of its instance manager and those of SQL Server's own error log, which the
server writes there too; --errorlog shows only the latter. With -f a container that ends and starts again,
and a replica that comes later, are followed too.`,
		Example: fmt.Sprintf(`  # everything of the last ten minutes
  %[1]s logs demo --since 10m

  # follow one replica
  %[1]s logs demo demo-1 -f

  # errors only; SQL Server's error log only
  %[1]s logs demo --level error
  %[1]s logs demo demo-0 --errorlog

  # the run before the present one
  %[1]s logs demo demo-0 --previous`, f.Name()),
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
	fl.Int64Var(&o.Tail, "tail", -1, "only the last lines of each container; -1 means all")
	fl.StringVar(&o.Level, "level", "info", "least severity: debug, info, warn or error")
	fl.BoolVar(&o.ErrorLog, "errorlog", false, "only SQL Server's error log")
	fl.BoolVar(&o.NoOperator, "no-operator", false, "leave out the operator's lines")
	fl.BoolVarP(&o.Previous, "previous", "p", false, "the container run before the present one")
	fl.BoolVar(&o.Timestamps, "timestamps", true, "print the time of each line")
	complete.Flag(cmd, "level", "debug", "info", "warn", "error")
	return cmd
}

// stream is one container's log.
type stream struct {
	namespace, pod, container, source string
	// run changes when the pod is made anew.
	run      string
	operator bool
}

func (s stream) key() string { return s.namespace + "/" + s.pod + "/" + s.container + "/" + s.run }

// found is what find saw.
type found struct {
	streams  []stream
	replicas []string
}

func (o *Options) validate() error {
	switch o.Level {
	case "debug", "info", "warn", "error":
	default:
		return exit.Errorf(exit.Usage, "use debug, info, warn or error", "unknown level %q", o.Level)
	}
	if o.Follow && o.Previous {
		return exit.Errorf(exit.Usage, "leave out one of them", "-f and --previous do not go together: a run that ended has no new lines")
	}
	if o.Since < 0 || o.Tail < -1 {
		return exit.Errorf(exit.Usage, "use --since 10m, --tail 100", "--since and --tail must not be negative")
	}
	return nil
}

// Run collects the streams and prints them.
func (o *Options) Run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	c, err := o.Factory.Client()
	if err != nil {
		return err
	}
	config, err := o.Factory.RESTConfig()
	if err != nil {
		return err
	}
	following := rest.CopyConfig(config)
	following.Timeout = 0 // a followed log has no end
	cs, err := kubernetes.NewForConfig(following)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	ns, _, err := o.Factory.Namespace()
	if err != nil {
		return err
	}
	seen, err := o.find(ctx, c, ns)
	if err != nil {
		return err
	}
	r := &reader{o: o, client: cs, namespace: ns, replicas: seen.replicas, pattern: errorPattern()}
	p := newPrinter(o, seen.streams)
	if !o.Follow {
		_, err := o.once(ctx, r, seen.streams, p)
		return err
	}
	return o.follow(ctx, r, seen.streams, p, func(ctx context.Context) ([]stream, error) {
		again, err := o.find(ctx, c, ns)
		return again.streams, err
	})
}

// find lists the containers of the group or instance, and the operator's.
func (o *Options) find(ctx context.Context, c client.Client, ns string) (found, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(ns), client.MatchingLabels{api.LabelInstance: o.Name, api.LabelManagedBy: api.ManagedBy}); err != nil {
		return found{}, fmt.Errorf("list the pods of %s: %w", o.Name, err)
	}
	var out found
	for i := range pods.Items {
		p := &pods.Items[i]
		out.replicas = append(out.replicas, p.Name)
		if o.Replica == "" || p.Name == o.Replica {
			out.streams = append(out.streams, containers(p)...)
		}
	}
	if len(out.replicas) == 0 {
		return found{}, exit.Errorf(exit.NotFound, o.Factory.Name()+" list shows what is there", "%s has no pods in namespace %s", o.Name, ns)
	}
	slices.Sort(out.replicas)
	if len(out.streams) == 0 {
		return found{}, exit.Errorf(exit.NotFound, "its replicas: "+strings.Join(out.replicas, ", "), "%s has no replica %s", o.Name, o.Replica)
	}
	slices.SortStableFunc(out.streams, func(a, b stream) int { return strings.Compare(a.source, b.source) })
	if o.NoOperator || o.Replica != "" || o.ErrorLog {
		return out, nil
	}
	var ops corev1.PodList
	if err := c.List(ctx, &ops, client.MatchingLabels{manifests.LabelPart: manifests.LabelPartValue}); err != nil {
		if apierrors.IsForbidden(err) {
			if !o.Follow {
				fmt.Fprintln(o.Streams.ErrOut, "Not seen  the operator's lines: you may not list pods in all namespaces")
			}
			return out, nil
		}
		return found{}, fmt.Errorf("list the operator's pods: %w", err)
	}
	for i := range ops.Items {
		p := &ops.Items[i]
		if len(p.Spec.Containers) > 0 {
			out.streams = append(out.streams, stream{
				namespace: p.Namespace, pod: p.Name, container: p.Spec.Containers[0].Name, source: "operator", run: string(p.UID), operator: true,
			})
		}
	}
	return out, nil
}

// containers of a pod: the server first, then the others by their names.
func containers(p *corev1.Pod) []stream {
	out := []stream{}
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		s := stream{namespace: p.Namespace, pod: p.Name, container: c.Name, source: p.Name + "/" + c.Name, run: string(p.UID)}
		if c.Name == api.ContainerName {
			s.source = p.Name
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		out = append(out, stream{namespace: p.Namespace, pod: p.Name, container: api.ContainerName, source: p.Name, run: string(p.UID)})
	}
	return out
}
