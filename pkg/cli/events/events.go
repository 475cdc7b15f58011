// Package events is `kubectl mssql events`: what Kubernetes and the operator told about an
// availability group or instance, its pods, volumes, Lease and operator, in time order.
package events

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/arguments"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/output"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/reasons"
)

// Kinds of our resources, as events name them.
const (
	kindGroup    = "SQLServerAvailabilityGroup"
	kindInstance = "SQLServerInstance"
)

// Document is the machine-readable list, oldest first.
type Document struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Namespace  string   `json:"namespace"`
	Name       string   `json:"name"`
	Items      []Event  `json:"items"`
	Errors     []string `json:"errors"`
}

// Event is one event, or a series of equal ones.
type Event struct {
	Time    time.Time `json:"time"` // of the newest of the series
	First   time.Time `json:"first"`
	Count   int32     `json:"count"`
	Type    string    `json:"type"` // Normal or Warning
	Reason  string    `json:"reason"`
	Code    string    `json:"code"` // of explain; empty when there is none
	Object  string    `json:"object"`
	Message string    `json:"message"`

	uid string
}

// Options of one call.
type Options struct {
	Name       string
	Watch      bool
	Interval   time.Duration
	Timeout    time.Duration
	Since      time.Duration
	Warnings   bool
	NoOperator bool
	Output     *output.Flags

	Factory factory.Factory
	Streams *iostreams.IOStreams
}

// New is the command.
func New(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	o := &Options{Factory: f, Streams: s, Output: output.New()}
	cmd := &cobra.Command{
		Use:   "events NAME",
		Short: "Show what was told about a group or instance, in time order",
		Long: `Show the events of an availability group or instance, of its pods, volumes, Lease, Services and Secrets,
and of the operator, the latest last. Kubernetes keeps events for an hour unless it is told otherwise; the
role changes themselves are kept: see history.`,
		Example: fmt.Sprintf(`  # everything that is still there
  %[1]s events demo

  # go on with new ones
  %[1]s events demo -w

  # warnings of the last ten minutes
  %[1]s events demo --warnings --since 10m`, f.Name()),
		Args: arguments.OneName("group or instance"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return o.Run(cmd.Context())
		},
	}
	o.Output.AddTo(cmd)
	fl := cmd.Flags()
	fl.BoolVarP(&o.Watch, "watch", "w", false, "go on with new events")
	fl.DurationVar(&o.Interval, "interval", 2*time.Second, "with -w: how often to look")
	fl.DurationVar(&o.Timeout, "timeout", 0, "with -w: stop after this time; 0 means never")
	fl.DurationVar(&o.Since, "since", 0, "only events newer than this")
	fl.BoolVar(&o.Warnings, "warnings", false, "only warnings")
	fl.BoolVar(&o.NoOperator, "no-operator", false, "leave out the operator's own events")
	return cmd
}

// Run prints once, or goes on.
func (o *Options) Run(ctx context.Context) error {
	if err := o.Output.Validate(); err != nil {
		return err
	}
	switch {
	case o.Watch && o.Interval < 500*time.Millisecond:
		return exit.Errorf(exit.Usage, "use at least 500ms", "--interval %s is too short", o.Interval)
	case o.Timeout < 0 || o.Timeout > 0 && !o.Watch:
		return exit.Errorf(exit.Usage, "use -w --timeout 5m", "--timeout %s needs -w and must not be negative", o.Timeout)
	}
	c, err := o.Factory.Client()
	if err != nil {
		return err
	}
	ns, _, err := o.Factory.Namespace()
	if err != nil {
		return err
	}
	d, err := o.look(ctx, c, ns)
	if err != nil {
		return err
	}
	if err := o.write(d); err != nil || !o.Watch {
		return err
	}
	return o.follow(ctx, c, ns, d)
}

// follow prints what is new at each look; a look that fails is told once.
func (o *Options) follow(ctx context.Context, c client.Client, ns string, last Document) error {
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Timeout)
		defer cancel()
	}
	ticker := o.Factory.Clock().NewTicker(o.Interval)
	defer ticker.Stop()
	seen := map[string]int32{}
	remember := func(d Document) (fresh []Event) {
		for _, e := range d.Items {
			if n, ok := seen[e.uid]; !ok || n != e.Count {
				fresh = append(fresh, e)
			}
			seen[e.uid] = e.Count
		}
		return fresh
	}
	remember(last)
	failed := ""
	for {
		select {
		case <-ctx.Done():
			return nil // Ctrl-C, or the time that was asked for
		case <-ticker.C():
		}
		d, err := o.look(ctx, c, ns)
		if err != nil {
			if ctx.Err() == nil && err.Error() != failed {
				fmt.Fprintf(o.Streams.ErrOut, "Not seen  %v\n", err)
				failed = err.Error()
			}
			continue
		}
		failed = ""
		d.Errors = []string{}
		if d.Items = remember(d); len(d.Items) == 0 {
			continue
		}
		if err := o.write(d); err != nil {
			return err
		}
	}
}

// look lists the events of the namespace and of the operator's.
func (o *Options) look(ctx context.Context, c client.Client, ns string) (Document, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	d := Document{APIVersion: output.APIVersion, Kind: "Events", Namespace: ns, Name: o.Name, Items: []Event{}, Errors: []string{}}
	concerns, err := objects(ctx, c, ns, o.Name)
	switch {
	case meta.IsNoMatchError(err):
		return d, exit.Errorf(exit.NotFound, o.Factory.Name()+" install", "the operator is not installed in this cluster")
	case err != nil:
		return d, err
	}
	if d.Items, err = read(ctx, c, ns, concerns); err != nil {
		return d, err
	}
	if !o.NoOperator {
		o.operator(ctx, c, &d)
	}
	now := o.Factory.Clock().Now()
	d.Items = slices.DeleteFunc(d.Items, func(e Event) bool {
		return o.Warnings && e.Type != corev1.EventTypeWarning || o.Since > 0 && now.Sub(e.Time) > o.Since
	})
	inOrder(d.Items)
	return d, nil
}

// About are the events of a group or an instance and of what belongs to it, oldest first,
// without those of the operator.
func About(ctx context.Context, c client.Client, ns, name string) ([]Event, error) {
	concerns, err := objects(ctx, c, ns, name)
	if err != nil {
		return nil, err
	}
	list, err := read(ctx, c, ns, concerns)
	inOrder(list)
	return list, err
}

func read(ctx context.Context, c client.Client, ns string, concerns func(corev1.ObjectReference) bool) ([]Event, error) {
	var list corev1.EventList
	if err := c.List(ctx, &list, client.InNamespace(ns)); err != nil {
		return []Event{}, fmt.Errorf("list events in namespace %s: %w", ns, err)
	}
	out := []Event{}
	for i := range list.Items {
		if e := &list.Items[i]; concerns(e.InvolvedObject) {
			out = append(out, eventOf(e, ""))
		}
	}
	return out, nil
}

// inOrder sorts: the oldest first.
func inOrder(list []Event) {
	slices.SortStableFunc(list, func(a, b Event) int {
		if c := a.Time.Compare(b.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Object+a.Reason, b.Object+b.Reason)
	})
}

// objects tells which objects belong to the name. The resource may be gone: then its
// events and those of one replica's name are still shown.
func objects(ctx context.Context, c client.Client, ns, name string) (func(corev1.ObjectReference) bool, error) {
	own := map[string]bool{kindGroup: true, kindInstance: true}
	var replicas []string
	var g api.SQLServerAvailabilityGroup
	err := c.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, &g)
	switch {
	case err == nil:
		replicas = g.ReplicaNames()
	case !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err):
		return nil, fmt.Errorf("read %s: %w", name, err)
	default:
		replicas = []string{name + "-0"}
	}
	names := map[string]bool{}
	for _, n := range []string{
		name, name + "-rw", name + "-ro", g.ListenerName(), g.ReadOnlyListenerName(), api.LeaseName(name), api.OperatorSecretName(name),
		api.CASecretName(name), api.DefaultSAPasswordSecretName(name), api.ConfigMapName(name), api.ServiceAccountName(name), name + "-client",
	} {
		names[n] = true
	}
	for _, r := range replicas {
		names[r], names[api.ReplicaTLSSecretName(r)] = true, true
	}
	return func(ref corev1.ObjectReference) bool {
		switch {
		case own[ref.Kind]:
			return ref.Name == name
		case ref.Kind == "PersistentVolumeClaim": // <volume>-<replica>
			return slices.ContainsFunc(replicas, func(r string) bool { return strings.HasSuffix(ref.Name, "-"+r) })
		}
		return names[ref.Name]
	}, nil
}

// operator adds the events of the operator's pods and of its own Lease, for who may see them.
func (o *Options) operator(ctx context.Context, c client.Client, d *Document) {
	var deployments appsv1.DeploymentList
	if err := c.List(ctx, &deployments, client.MatchingLabels{manifests.LabelPart: manifests.LabelPartValue}); err != nil {
		return // few may look into all namespaces, and few need to
	}
	for _, dep := range deployments.Items {
		var list corev1.EventList
		if err := c.List(ctx, &list, client.InNamespace(dep.Namespace)); err != nil {
			d.Errors = append(d.Errors, fmt.Sprintf("the operator's events in namespace %s: %s", dep.Namespace, apierrors.ReasonForError(err)))
			continue
		}
		for i := range list.Items {
			e := &list.Items[i]
			if e.InvolvedObject.Kind == "Lease" && dep.Namespace != d.Namespace || strings.HasPrefix(e.InvolvedObject.Name, dep.Name) {
				d.Items = append(d.Items, eventOf(e, "operator: "))
			}
		}
	}
}

func eventOf(e *corev1.Event, prefix string) Event {
	out := Event{
		First: e.FirstTimestamp.Time, Time: e.LastTimestamp.Time, Count: max(e.Count, 1), Type: e.Type, Reason: e.Reason, Code: reasons.Code(e.Reason),
		Object: prefix + kindWord(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name, Message: strings.TrimSpace(e.Message), uid: string(e.UID) + e.Namespace + "/" + e.Name,
	}
	if !e.EventTime.IsZero() && out.First.IsZero() {
		out.First = e.EventTime.Time
	}
	if s := e.Series; s != nil {
		out.Count, out.Time = max(s.Count, 1), s.LastObservedTime.Time
	}
	if out.Time.IsZero() {
		out.Time = out.First
	}
	if out.Time.IsZero() {
		out.Time = e.CreationTimestamp.Time
	}
	if out.First.IsZero() {
		out.First = out.Time
	}
	out.First, out.Time = out.First.UTC(), out.Time.UTC()
	return out
}

// kindWord is short, as people type it.
func kindWord(kind string) string {
	switch kind {
	case kindGroup:
		return "sqlag"
	case kindInstance:
		return "sqli"
	case "PersistentVolumeClaim":
		return "pvc"
	}
	return strings.ToLower(kind)
}

func (o *Options) write(d Document) error {
	s := o.Streams
	if !o.Output.Text() {
		var names []string
		for _, e := range d.Items {
			names = append(names, e.Object)
		}
		return o.Output.Write(s.Out, d, o.Watch, names...)
	}
	for _, e := range d.Errors {
		fmt.Fprintf(s.ErrOut, "Not seen  %s\n", e)
	}
	if len(d.Items) == 0 && !o.Watch {
		fmt.Fprintf(s.ErrOut, "No event about %s in namespace %s; Kubernetes forgets them after an hour.\n", d.Name, d.Namespace)
		return nil
	}
	width := 0
	for _, e := range d.Items {
		width = max(width, len(e.Object))
	}
	var b strings.Builder
	for _, e := range d.Items {
		b.WriteString(o.line(e, width))
	}
	_, err := io.WriteString(s.Out, iostreams.Wrap(s.Plain(b.String()), s.Width))
	return err
}

func (o *Options) line(e Event, width int) string {
	on := o.Streams.ColorOut()
	kind := fmt.Sprintf("%-7s", e.Type)
	if e.Type == corev1.EventTypeWarning {
		kind = iostreams.Paint(on, iostreams.StyleYellow, kind)
	}
	times := ""
	if e.Count > 1 {
		times = fmt.Sprintf(" (%d times since %s)", e.Count, e.First.Format("15:04:05Z"))
	}
	code := ""
	if e.Code != "" && e.Type == corev1.EventTypeWarning {
		code = " [" + e.Code + "]"
	}
	message := strings.ReplaceAll(e.Message, "\n", " ")
	return fmt.Sprintf("%s  %s  %-*s  %s: %s%s%s\n", iostreams.Paint(on, iostreams.StyleDim, e.Time.Format("2006-01-02 15:04:05Z")), kind, width, e.Object,
		e.Reason, message, times, code)
}
