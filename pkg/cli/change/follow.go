package change

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/progress"
)

// pollInterval is how often the group is read while it is followed.
const pollInterval = 500 * time.Millisecond

// Trail is what is shown of something that goes on in the cluster.
type Trail struct {
	call   *Call
	report *progress.Reporter
	result *Result
	told   map[string]bool
	last   string
}

// Trail begins one.
func (c *Call) Trail(r *Result) *Trail {
	return &Trail{call: c, report: progress.New(c.Streams, c.Factory.Clock(), c.Quiet), result: r, told: map[string]bool{}}
}

// Stop takes the spinner away.
func (t *Trail) Stop() { t.report.Stop() }

// Step says what is going on now.
func (t *Trail) Step(format string, args ...any) {
	t.last = fmt.Sprintf(format, args...)
	t.report.Step("%s", t.last)
}

// Done tells of something that has been reached, once for each text.
func (t *Trail) Done(format string, args ...any) {
	t.once(t.report.Done, format, args...)
}

// Warn tells of something that needs attention, once for each text.
func (t *Trail) Warn(format string, args ...any) {
	t.once(t.report.Warn, format, args...)
}

func (t *Trail) once(tell func(string, ...any), format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if t.told[text] {
		return
	}
	t.told[text] = true
	t.last = text
	t.result.Steps = append(t.result.Steps, Step{At: t.call.Factory.Clock().Now().UTC(), What: text})
	tell("%s", text)
}

// Operation tells the steps of the operation in flight.
func (t *Trail) Operation(g *api.SQLServerAvailabilityGroup) {
	op := Operation(g)
	if op == nil {
		return
	}
	for _, s := range op.Steps {
		t.Done("%s", s.What)
	}
	t.Step("%s: %s -> %s", op.Phase, orNobody(op.From), orNobody(op.Target))
}

// Look judges the group as it is now: done, or an error that ends the waiting.
type Look func(g *api.SQLServerAvailabilityGroup) (done bool, err error)

// Follow reads the group until look says that it is done. The time-out and Ctrl-C end the
// watching, never what goes on in the cluster.
func (c *Call) Follow(ctx context.Context, t *Trail, look Look) error {
	return follow(ctx, c, t, c.Group.UID, c.read, func(g *api.SQLServerAvailabilityGroup) (bool, error) {
		c.Group = g
		return look(g)
	})
}

// FollowInstance is Follow for an instance.
func (c *Call) FollowInstance(ctx context.Context, t *Trail, look func(*api.SQLServerInstance) (bool, error)) error {
	return follow(ctx, c, t, c.Instance.UID, c.readInstance, look)
}

func follow[T client.Object](ctx context.Context, c *Call, t *Trail, uid types.UID, read func(context.Context) (T, error), look func(T) (bool, error)) error {
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Timeout, errTimeout)
		defer cancel()
	}
	ticker := c.Factory.Clock().NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		o, err := read(ctx)
		switch {
		case err == nil && o.GetUID() != uid:
			return exit.Errorf(exit.NotFound, "", "%s %s was deleted and made anew meanwhile", c.what(), c.Name)
		case err == nil:
			if done, err := look(o); done || err != nil {
				return err
			}
		case ctx.Err() != nil:
		case exit.Of(err) == exit.NotFound, apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
			return err
		default:
			t.Step("cannot read the status: %v", err)
		}
		select {
		case <-ctx.Done():
			return c.Detached(ctx, t)
		case <-ticker.C():
		}
	}
}

var errTimeout = errors.New("time-out")

// Detached is the error of a watching that ended before its subject. Its result is
// unknown, and it goes on.
func (c *Call) Detached(ctx context.Context, t *Trail) error {
	t.result.Result = ResultRunning
	hint := fmt.Sprintf("the operator goes on; watch with: %s status %s -w; the same command again follows it", c.Factory.Name(), c.Name)
	if id := t.result.RequestID; id != "" {
		hint += fmt.Sprintf("; where it can still be stopped: %s cancel %s", c.Factory.Name(), id)
	}
	last := t.last
	if last == "" {
		last = "the operator has not answered yet"
	}
	if errors.Is(context.Cause(ctx), errTimeout) {
		return exit.Errorf(exit.Timeout, hint, "no result after %s; last step: %s", c.Timeout, last)
	}
	return exit.Errorf(exit.Interrupted, hint, "stopped watching at: %s", last)
}
