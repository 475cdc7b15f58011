package change

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/output"
)

// fieldOwner of the plugin's writes.
const fieldOwner = "kubectl-mssql"

// DryRun is the value of --dry-run.
type DryRun string

const (
	// DryRunNone does it.
	DryRunNone DryRun = ""
	// DryRunClient shows the plan and what would be sent.
	DryRunClient DryRun = "client"
	// DryRunServer lets the API server and the operator's rules judge it too; nothing is changed.
	DryRunServer DryRun = "server"
)

// Flags are the common ones.
type Flags struct {
	Yes     bool
	Confirm string
	DryRun  string
	Wait    bool
	Timeout time.Duration
	Reason  string
	Quiet   bool
	Output  *output.Flags
}

// AddTo registers them. A time-out of 0 waits for ever.
func (f *Flags) AddTo(cmd *cobra.Command, timeout time.Duration) {
	f.Output = output.New()
	f.Output.AddTo(cmd)
	fl := cmd.Flags()
	fl.BoolVarP(&f.Yes, "yes", "y", false, "do not ask")
	fl.StringVar(&f.Confirm, "confirm", "", "the name that would have to be typed, where more than a y is asked for")
	fl.StringVar(&f.DryRun, "dry-run", "", "change nothing: client shows the plan and what would be sent, server lets the API server and the operator's rules judge it")
	fl.Lookup("dry-run").NoOptDefVal = string(DryRunClient)
	fl.BoolVar(&f.Wait, "wait", true, "wait for the result; without, return once the operator has accepted it")
	fl.DurationVar(&f.Timeout, "timeout", timeout, "how long to wait, 0 for ever; it limits the watching, never the operation")
	fl.StringVar(&f.Reason, "reason", "", "why, for the record")
	fl.BoolVarP(&f.Quiet, "quiet", "q", false, "no progress")
}

// Validate refuses values that cannot be, before anything is asked or done.
func (f *Flags) Validate() error {
	switch DryRun(f.DryRun) {
	case DryRunNone, DryRunClient, DryRunServer:
	default:
		return exit.Errorf(exit.Usage, "use --dry-run=client or --dry-run=server", "unknown dry run %q", f.DryRun)
	}
	if f.Timeout < 0 {
		return exit.Errorf(exit.Usage, "0 waits for ever", "the time-out %s is negative", f.Timeout)
	}
	return f.Output.Validate()
}

// Call is one run of a verb.
type Call struct {
	Flags
	Factory factory.Factory
	Streams *iostreams.IOStreams
	// Verb as it is typed: "fence on".
	Verb, Name string

	// Namespace, Client and Group are there after Load; Group is as its user saw it.
	Namespace string
	Client    client.Client
	Group     *api.SQLServerAvailabilityGroup

	// Instance is there after LoadAny when there is no group of that name.
	Instance *api.SQLServerInstance

	// loaded is the group as the API server gave it, whatever a verb does to its copy.
	loaded *api.SQLServerAvailabilityGroup
}

// Load reads the group.
func (c *Call) Load(ctx context.Context) error {
	if err := c.connect(); err != nil {
		return err
	}
	var err error
	if c.loaded, err = c.read(ctx); err != nil {
		return err
	}
	c.Group = c.loaded.DeepCopy()
	return nil
}

// LoadAny reads the group of that name, or the instance when there is no such group.
func (c *Call) LoadAny(ctx context.Context) error {
	err := c.Load(ctx)
	if exit.Of(err) != exit.NotFound {
		return err
	}
	i := &api.SQLServerInstance{}
	switch other := c.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, i); {
	case other == nil:
		c.Instance = i
		return nil
	case apierrors.IsNotFound(other), meta.IsNoMatchError(other), apierrors.IsForbidden(other):
		return exit.Errorf(exit.NotFound, fmt.Sprintf("%s status lists what is there", c.Factory.Name()),
			"there is no availability group or instance %s in namespace %s", c.Name, c.Namespace)
	default:
		return c.explain(other, "read", "get")
	}
}

func (c *Call) connect() error {
	ns, _, err := c.Factory.Namespace()
	if err != nil {
		return err
	}
	c.Namespace = ns
	c.Client, err = c.Factory.Client()
	return err
}

func (c *Call) read(ctx context.Context) (*api.SQLServerAvailabilityGroup, error) {
	g := &api.SQLServerAvailabilityGroup{}
	return g, c.get(ctx, g)
}

func (c *Call) readInstance(ctx context.Context) (*api.SQLServerInstance, error) {
	i := &api.SQLServerInstance{}
	return i, c.get(ctx, i)
}

func (c *Call) get(ctx context.Context, o client.Object) error {
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, o)
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return exit.Errorf(exit.NotFound, fmt.Sprintf("%s status lists what is there", c.Factory.Name()),
			"there is no %s %s in namespace %s", c.what(), c.Name, c.Namespace)
	}
	return c.explain(err, "read", "get")
}

// what is changed, and the plural of its kind.
func (c *Call) what() string {
	if c.Instance != nil {
		return "instance"
	}
	return "availability group"
}

func (c *Call) resource() string {
	if c.Instance != nil {
		return "sqlserverinstances"
	}
	return "sqlserveravailabilitygroups"
}

// explain names the permission that is missing, and what was tried.
func (c *Call) explain(err error, what, verb string) error {
	if apierrors.IsForbidden(err) {
		return exit.With(exit.Forbidden, fmt.Sprintf("ask for the verb %s on %s.%s in namespace %s; docs/reference/permissions.md has ready-made roles", verb, c.resource(), api.Group, c.Namespace),
			fmt.Errorf("you may not %s %s %s: %w", what, c.what(), c.Name, err))
	}
	return fmt.Errorf("%s %s %s: %w", what, c.what(), c.Name, err)
}

// Replica refuses a name that is none of the group's replicas.
func (c *Call) Replica(name string) error {
	if slices.Contains(c.Group.ReplicaNames(), name) {
		return nil
	}
	return exit.Errorf(exit.NotFound, "its replicas: "+strings.Join(c.Group.ReplicaNames(), ", "), "%s has no replica %s", c.Name, name)
}

// Patch sends a change with the version of the group that its user saw. When somebody
// else wrote meanwhile, it is sent again only if nothing that the user was shown has
// changed; else it is refused. A dry run on the server changes nothing.
func (c *Call) Patch(ctx context.Context, what string, apply func(*api.SQLServerAvailabilityGroup) error) error {
	next, err := patch(ctx, c, what, c.loaded, apply, c.read, changed)
	if err == nil && DryRun(c.DryRun) == DryRunNone {
		c.loaded, c.Group = next, next.DeepCopy()
	}
	return err
}

// PatchInstance is Patch for an instance.
func (c *Call) PatchInstance(ctx context.Context, what string, apply func(*api.SQLServerInstance) error) error {
	next, err := patch(ctx, c, what, c.Instance, apply, c.readInstance, changedInstance)
	if err == nil && DryRun(c.DryRun) == DryRunNone {
		c.Instance = next
	}
	return err
}

func patch[T client.Object](ctx context.Context, c *Call, what string, seen T, apply func(T) error, read func(context.Context) (T, error), changed func(seen, now T) string) (T, error) {
	var none T
	base := seen
	for range maxTries {
		next, ok := base.DeepCopyObject().(T)
		if !ok {
			return none, fmt.Errorf("%s %s: its copy is %T", what, c.Name, base.DeepCopyObject())
		}
		if err := apply(next); err != nil {
			return none, err
		}
		opts := []client.PatchOption{client.FieldOwner(fieldOwner)}
		if DryRun(c.DryRun) == DryRunServer {
			opts = append(opts, client.DryRunAll)
		}
		err := c.Client.Patch(ctx, next, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}), opts...)
		switch {
		case err == nil:
			return next, nil
		case apierrors.IsInvalid(err):
			return none, exit.With(exit.Refused, "", fmt.Errorf("the API server refuses it: %w", err))
		case ctx.Err() != nil:
			return none, exit.Errorf(exit.Interrupted, "the same command again follows it, or orders it", "stopped in the moment of the order: whether it was taken is not known")
		case !apierrors.IsConflict(err):
			return none, c.explain(err, what, "patch")
		}
		if base, err = read(ctx); err != nil {
			return none, err
		}
		if why := changed(seen, base); why != "" {
			return none, exit.Errorf(exit.Refused, fmt.Sprintf("look again: %s status %s", c.Factory.Name(), c.Name),
				"%s has changed since you looked: %s", c.Name, why)
		}
	}
	return none, exit.Errorf(exit.Unexpected, "repeat the command", "%s %s: it changes too often", what, c.Name)
}

// maxTries bounds how often a patch is sent again because the status was written meanwhile.
const maxTries = 10

// changed says what of that which a user was shown is not so any more; empty when all of it is.
func changed(seen, now *api.SQLServerAvailabilityGroup) string {
	for _, x := range []struct{ what, was, is string }{
		{"the resource was made anew", string(seen.UID), string(now.UID)},
		{"its spec was changed", fmt.Sprint(seen.Generation), fmt.Sprint(now.Generation)},
		{"another order was given", seen.Annotations[api.AnnotationRequest], now.Annotations[api.AnnotationRequest]},
		{"it was paused, or goes on", seen.Annotations[api.AnnotationPaused], now.Annotations[api.AnnotationPaused]},
		{"the fenced replicas are others", seen.Annotations[api.AnnotationFenced], now.Annotations[api.AnnotationFenced]},
		{"the primary is " + orNobody(now.Status.PrimaryReplica) + " now", seen.Status.PrimaryReplica, now.Status.PrimaryReplica},
		{"its configuration has another sequence number", fmt.Sprint(Sequence(seen)), fmt.Sprint(Sequence(now))},
		{"another operation has begun", operationID(seen), operationID(now)},
	} {
		if x.was != x.is {
			return x.what
		}
	}
	return ""
}

func changedInstance(seen, now *api.SQLServerInstance) string {
	switch {
	case seen.UID != now.UID:
		return "the resource was made anew"
	case seen.Generation != now.Generation:
		return "its spec was changed"
	case seen.Annotations[api.AnnotationRequest] != now.Annotations[api.AnnotationRequest]:
		return "another order was given"
	case seen.Annotations[api.AnnotationFenced] != now.Annotations[api.AnnotationFenced]:
		return "it was fenced, or taken back"
	case seen.Annotations[api.AnnotationPaused] != now.Annotations[api.AnnotationPaused]:
		return "it was paused, or goes on"
	}
	return ""
}

// Sequence is the primary's configuration sequence number as the status shows it, 0 when
// it is not known.
func Sequence(g *api.SQLServerAvailabilityGroup) int64 {
	if r := StatusOf(g, g.Status.PrimaryReplica); r != nil && r.Role == "PRIMARY" {
		return r.SequenceNumber
	}
	return 0
}

// StatusOf finds a replica's status, or nil.
func StatusOf(g *api.SQLServerAvailabilityGroup, replica string) *api.ReplicaStatus {
	for i := range g.Status.ReplicaStatuses {
		if g.Status.ReplicaStatuses[i].Name == replica {
			return &g.Status.ReplicaStatuses[i]
		}
	}
	return nil
}

// Operation in flight, or nil.
func Operation(g *api.SQLServerAvailabilityGroup) *api.OperationStatus {
	if g.Status.Authority == nil {
		return nil
	}
	return g.Status.Authority.Operation
}

func operationID(g *api.SQLServerAvailabilityGroup) string {
	if op := Operation(g); op != nil {
		return op.ID
	}
	return ""
}

func orNobody(s string) string {
	if s == "" {
		return "nobody"
	}
	return s
}

// Do runs a verb: flags that cannot be are refused before anything is asked or done, and
// whatever came of the rest is written down as one document.
func (c *Call) Do(ctx context.Context, r *Result, run func(context.Context, *Result) error) error {
	if err := c.Validate(); err != nil {
		return err
	}
	return c.Finish(r, run(ctx, r))
}

// Finish writes the run's one document, if one was asked for, whatever came of it.
func (c *Call) Finish(r *Result, err error) error {
	r.ExitCode = int(exit.Of(err))
	if err != nil {
		if r.Result == "" || r.Result == ResultRunning && !detached(err) {
			r.Result = resultOf(exit.Of(err))
		}
		if r.Message == "" {
			r.Message = err.Error()
		}
	}
	if c.Output == nil || c.Output.Text() {
		return err
	}
	r.fill(c)
	if printErr := c.Output.Write(c.Streams.Out, r, false, strings.TrimSuffix(c.resource(), "s")+"."+api.Group+"/"+c.Name); printErr != nil {
		return errors.Join(err, printErr)
	}
	return err
}

func detached(err error) bool {
	code := exit.Of(err)
	return code == exit.Timeout || code == exit.Interrupted
}
