// Package reinit is `kubectl mssql reinit`: throw a replica's volume away and let the
// operator fill a new one from the primary.
package reinit

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/change"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/fence"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

// mark begins the reason of the fence under which a volume is replaced, with the UID of the
// claim that goes. A call that was interrupted is known by it and goes on: what is old is
// told by the UID, not by anybody's clock.
const mark = "reinit of volume "

// reason of the fence.
func reason(claim, why string) string {
	text := mark + claim
	if why != "" {
		text += ": " + why
	}
	return text
}

// claimOf is the UID in the reason of a fence; false when the fence is not ours.
func claimOf(f *api.FencedReplica) (string, bool) {
	rest, ours := strings.CutPrefix(f.Reason, mark)
	uid, _, _ := strings.Cut(rest, ":")
	return uid, ours && uid != ""
}

// Options of one call.
type Options struct {
	change.Call
	Target string
	// holding: the fence is there and the volume is not replaced yet.
	holding bool
	// loss was asked for: no other copy is complete, or this one may hold more.
	loss bool
}

// New is the command.
func New(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	o := &Options{Call: change.Call{Factory: f, Streams: s, Verb: "reinit"}}
	cmd := &cobra.Command{
		Use:   "reinit NAME REPLICA",
		Short: "Throw a replica's volume away and fill a new one from the primary",
		Long: `Throw a replica's volume away and fill a new one from the primary.

The replica is fenced first, so that it cannot become primary meanwhile. Then its volume's claim is deleted,
then its pod; the operator makes both anew, and SQL Server seeds every database from the primary, which is
the only source that automatic seeding has. At last the fence is taken away. The same command goes on where
one was interrupted. The primary, and what the others still need, is refused, and judged again before each
deletion. The operator must run: nothing is deleted before it shows the fence.`,
		Example: fmt.Sprintf(`  %[1]s reinit demo demo-2 --reason "its disk lost pages"`, f.Name()),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return exit.Errorf(exit.Usage, fmt.Sprintf("see %s --help", cmd.CommandPath()), "want the names of a group and of one of its replicas, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name, o.Target = args[0], args[1]
			return o.Run(cmd.Context())
		},
	}
	o.AddTo(cmd, 0)
	return cmd
}

// Run checks, asks, and replaces the volume step by step.
func (o *Options) Run(ctx context.Context) error {
	return o.Do(ctx, &change.Result{Target: o.Target}, o.run)
}

func (o *Options) run(ctx context.Context, r *change.Result) error {
	if err := o.LoadAny(ctx); err != nil {
		return err
	}
	if o.Instance != nil {
		return exit.Errorf(exit.Refused, "", "refused: %s is a standalone instance: there is no other copy that a new volume could be filled from", o.Name)
	}
	if err := o.Replica(o.Target); err != nil {
		return err
	}
	if err := o.Held(); err != nil {
		return err
	}
	f, err := o.fenced(o.Group)
	if err != nil {
		return err
	}
	ours := false
	if f != nil {
		_, ours = claimOf(f)
	}
	if f != nil && !ours {
		return exit.Errorf(exit.Refused, fmt.Sprintf("%s fence off %s %s", o.Factory.Name(), o.Name, o.Target), "refused: %s is %s", o.Target, fence.Text(*f))
	}
	w := change.Judge(o.Group, o.Target)
	if err := o.refuse(w); err != nil {
		return err
	}
	if f == nil {
		if err := o.Busy(); err != nil {
			return err
		}
		done, err := o.begin(ctx, r, w)
		if done || err != nil {
			return err
		}
	} else {
		done, err := o.resume(ctx, r, f, w)
		if done || err != nil {
			return err
		}
	}
	return o.follow(ctx, r)
}

// resume what another call began. While the old volume is still there it is asked again: what
// the others hold may have changed since. done after a dry run.
func (o *Options) resume(ctx context.Context, r *change.Result, f *api.FencedReplica, w change.Without) (done bool, err error) {
	fmt.Fprintf(o.Streams.ErrOut, "%s it is under way: %s\n", o.Streams.Mark(iostreams.MarkOK), fence.Text(*f))
	if change.DryRun(o.DryRun) != change.DryRunNone {
		r.Result, r.Message = change.ResultAlreadySo, "it is under way: "+fence.Text(*f)
		return true, nil
	}
	c, err := o.claim(ctx)
	if err != nil {
		return true, err
	}
	if uid, _ := claimOf(f); c == nil || string(c.UID) != uid || c.DeletionTimestamp != nil {
		return false, nil
	}
	p := o.plan(w, true)
	r.Plan = p.Lines
	if err := o.Ask(p); err != nil {
		return true, err
	}
	// The fence is written anew: that the operator shows it is the proof that it runs.
	return false, o.Patch(ctx, "fence a replica of", func(g *api.SQLServerAvailabilityGroup) error {
		list, err := api.ParseFenced(g.Annotations[api.AnnotationFenced])
		if err != nil {
			return err
		}
		if x := fence.Find(list, o.Target); x != nil {
			x.Since = o.Now()
		}
		return fence.Write(g, list)
	})
}

// fenced is the order that keeps the replica out, or nil.
func (o *Options) fenced(g *api.SQLServerAvailabilityGroup) (*api.FencedReplica, error) {
	list, err := api.ParseFenced(g.Annotations[api.AnnotationFenced])
	if err != nil {
		return nil, exit.With(exit.Unexpected, fmt.Sprintf("see it with: kubectl get sqlag -n %s %s -o yaml", o.Namespace, o.Name), err)
	}
	return fence.Find(list, o.Target), nil
}

// refuse is the safety gate: no copy is given up while another may not be complete.
func (o *Options) refuse(w change.Without) error {
	g := o.Group
	status := fmt.Sprintf("%s status %s shows every replica", o.Factory.Name(), o.Name)
	switch {
	case !g.Status.InitializationComplete:
		return exit.Errorf(exit.Refused, status, "%s was not made yet", o.Name)
	case w.Primary:
		return exit.Errorf(exit.Refused, fmt.Sprintf("move it first: %s failover %s", o.Factory.Name(), o.Name), "refused: %s is the primary: the others are filled from it", o.Target)
	case w.Headless:
		return exit.Errorf(exit.Refused, status, "refused: nobody is primary now, and no copy is given up while it is not known which one is complete")
	case w.NoQuorum():
		return exit.Errorf(exit.Refused, status, "refused: %d of %d voters would be left, so that the primary could not change its configuration any more", w.Left, w.Voters)
	case w.Stalls() && w.Required:
		return exit.Errorf(exit.Refused, status, "refused: %s", w.Describe())
	}
	return nil
}

// mayHoldMore: it was primary and lost that without a confirmed hand-over.
func (o *Options) mayHoldMore() bool {
	a := o.Group.Status.Authority
	if a == nil {
		return false
	}
	for _, name := range a.Stale {
		if name == o.Target {
			return true
		}
	}
	return false
}

// plan is what will happen. Of a group whose replica is fenced already the others are often not
// ready to take over for want of its answer: then only their copies count.
func (o *Options) plan(w change.Without, fenced bool) *change.Plan {
	g := o.Group
	p := &change.Plan{Title: fmt.Sprintf("Fill %s/%s anew: %s", g.Namespace, g.Name, o.Target), Level: change.Copy, Word: o.Target}
	p.Add("effect", "its server is stopped, its data volume's claim is deleted, then its pod; a new volume is seeded from %s", g.Status.PrimaryReplica)
	if g.Spec.Storage.ReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		p.Add("volume", "reclaimPolicy is Delete: the old volume and what is on it are gone for good")
	} else {
		p.Add("volume", "reclaimPolicy is Retain: the old volume stays in the cluster, released, until somebody deletes it")
	}
	if text := w.Describe(); text != "" {
		p.Add("writes", "%s", text)
	}
	if w.Synchronized <= 0 || !fenced && len(w.Successors) == 0 {
		p.Add("risk", "until it is filled nobody could take over from %s: its loss would be the loss of all", g.Status.PrimaryReplica)
		p.Level, p.Word = change.Loss, g.Name
	}
	if o.mayHoldMore() {
		p.Add("risk", "it was primary and lost that without a hand-over: commits that it alone has are not anywhere else")
		p.Level, p.Word = change.Loss, g.Name
	}
	p.Add("after", "log is kept on the primary until the new copy has caught up")
	o.loss = p.Level == change.Loss
	return p
}

// again judges right before a deletion, from the group as it is now: what was asked for was
// asked of another moment.
func (o *Options) again(done string) error {
	w := change.Judge(o.Group, o.Target)
	err := o.refuse(w)
	switch {
	case err != nil:
	case w.Synchronized <= 0 && !o.loss:
		err = exit.Errorf(exit.Refused, "", "refused: no other secondary is in step any more")
	case o.mayHoldMore() && !o.loss:
		err = exit.Errorf(exit.Refused, "", "refused: it may hold commits that no other has")
	default:
		return nil
	}
	return exit.With(exit.Refused, fmt.Sprintf("%s; %s stays fenced until: %s fence off %s %s", done, o.Target, o.Factory.Name(), o.Name, o.Target), err)
}

// begin asks and fences; done after a dry run.
func (o *Options) begin(ctx context.Context, r *change.Result, w change.Without) (done bool, err error) {
	claim, err := o.claim(ctx)
	if err != nil {
		return true, err
	}
	if claim == nil {
		return true, exit.Errorf(exit.Refused, fmt.Sprintf("%s events %s", o.Factory.Name(), o.Name), "refused: %s has no volume: the operator makes one anyway", o.Target)
	}
	p := o.plan(w, false)
	r.Plan = p.Lines
	dry := change.DryRun(o.DryRun)
	entry := api.FencedReplica{Replica: o.Target, Reason: reason(string(claim.UID), o.Reason), Since: o.Now()}
	if dry == change.DryRunNone {
		if err := o.Ask(p); err != nil {
			return true, err
		}
	}
	if dry != change.DryRunClient {
		entry.By = o.WhoAmI(ctx)
		err := o.Patch(ctx, "fence a replica of", func(g *api.SQLServerAvailabilityGroup) error {
			list, err := api.ParseFenced(g.Annotations[api.AnnotationFenced])
			if err != nil {
				return err
			}
			return fence.Write(g, append(list, entry))
		})
		if err != nil {
			return true, err
		}
	}
	r.Request = entry
	if dry != change.DryRunNone {
		o.ShowDryRun(p, r, "")
		return true, nil
	}
	return false, nil
}

// follow goes through the steps, each of which is judged by what is there: the server is
// stopped, the old claim is gone, the fence is taken away, the new copy is in step.
func (o *Options) follow(ctx context.Context, r *change.Result) error {
	t := o.Trail(r)
	defer t.Stop()
	t.Done("requested       %s is filled anew", o.Target)
	err := o.Follow(ctx, t, func(g *api.SQLServerAvailabilityGroup) (bool, error) {
		f, err := o.fenced(g)
		if err != nil {
			return false, err
		}
		s := change.StatusOf(g, o.Target)
		if f == nil {
			o.holding = false
			return o.filled(t, r, s), nil
		}
		uid, ours := claimOf(f)
		switch {
		case !ours:
			return false, exit.Errorf(exit.Conflict, "", "somebody else fenced %s meanwhile", o.Target)
		case g.Status.PrimaryReplica == o.Target:
			return false, exit.Errorf(exit.Refused, fmt.Sprintf("take the fence away: %s fence off %s %s", o.Factory.Name(), o.Name, o.Target), "refused: %s became primary in that very moment; nothing was deleted", o.Target)
		}
		o.holding = true
		if s == nil || s.Fence == nil || s.Fence.Reason != f.Reason || !s.Fence.Since.Equal(f.Since) {
			t.Step("waiting until the operator has seen the fence: without it nothing is deleted")
			return false, nil
		}
		fresh, err := o.replace(ctx, t, uid, s)
		if err != nil || !fresh {
			return false, err
		}
		t.Done("new volume      the fence is taken away")
		return false, o.unfence(ctx)
	})
	if code := exit.Of(err); o.holding && (code == exit.Timeout || code == exit.Interrupted) {
		return exit.With(code, fmt.Sprintf("the same command goes on; %s stays fenced until then, or until: %s fence off %s %s", o.Target, o.Factory.Name(), o.Name, o.Target), err)
	}
	return err
}

// claim of the replica's data volume, or nil.
func (o *Options) claim(ctx context.Context) (*corev1.PersistentVolumeClaim, error) {
	var claims corev1.PersistentVolumeClaimList
	of := client.MatchingLabels{api.LabelInstance: o.Name, api.LabelReplica: o.Target}
	if err := o.Client.List(ctx, &claims, client.InNamespace(o.Namespace), of); err != nil {
		return nil, o.notAllowed(err, "list", "persistentvolumeclaims")
	}
	switch len(claims.Items) {
	case 0:
		return nil, nil
	case 1:
		return &claims.Items[0], nil
	}
	return nil, exit.Errorf(exit.Refused, fmt.Sprintf("kubectl get pvc -n %s -l %s=%s", o.Namespace, api.LabelReplica, o.Target),
		"refused: %d claims bear the name of %s, and it is not known which one is its volume", len(claims.Items), o.Target)
}

// replace deletes claim and pod once the server is stopped; fresh when another claim is there.
func (o *Options) replace(ctx context.Context, t *change.Trail, old string, s *api.ReplicaStatus) (fresh bool, err error) {
	c, err := o.claim(ctx)
	switch {
	case err != nil:
		return false, err
	case c == nil:
		t.Step("waiting for the new claim")
		return false, nil
	case string(c.UID) != old:
		return true, nil
	case !s.Fenced || s.State != "fenced" || s.Ready:
		t.Step("%s is stopping", o.Target)
		return false, nil
	case change.Operation(o.Group) != nil:
		t.Step("waiting until the move under way has ended")
		return false, nil
	case c.DeletionTimestamp == nil:
		if err := o.again("nothing was deleted"); err != nil {
			return false, err
		}
		if err := o.delete(ctx, c, "persistentvolumeclaims"); err != nil {
			return false, err
		}
		t.Done("deleted         the claim %s", c.Name)
	}
	return false, o.deletePod(ctx, t)
}

// deletePod ends the pod that holds the old claim. A pod that is not on a node holds none.
func (o *Options) deletePod(ctx context.Context, t *change.Trail) error {
	pod := &corev1.Pod{}
	err := o.Client.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Target}, pod)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return o.notAllowed(err, "get", "pods")
	case pod.DeletionTimestamp != nil || pod.Spec.NodeName == "":
		t.Step("waiting until the pod has ended")
		return nil
	}
	if err := o.again("the volume is there until its pod ends, which was not deleted"); err != nil {
		return err
	}
	if err := o.delete(ctx, pod, "pods"); err != nil {
		return err
	}
	t.Done("deleted         the pod %s", o.Target)
	return nil
}

// delete exactly the object that was looked at.
func (o *Options) delete(ctx context.Context, x client.Object, resource string) error {
	uid := x.GetUID()
	err := o.Client.Delete(ctx, x, client.Preconditions{UID: &uid})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return o.notAllowed(err, "delete", resource)
	}
	return nil
}

func (o *Options) notAllowed(err error, verb, resource string) error {
	if apierrors.IsForbidden(err) {
		return exit.With(exit.Forbidden, fmt.Sprintf("ask for the verb %s on %s in namespace %s; the same command goes on afterwards", verb, resource, o.Namespace), err)
	}
	return fmt.Errorf("%s %s of %s: %w", verb, resource, o.Target, err)
}

func (o *Options) unfence(ctx context.Context) error {
	if err := o.Load(ctx); err != nil { // the group has changed since it was judged, by ourselves
		return err
	}
	return o.Patch(ctx, "unfence a replica of", func(g *api.SQLServerAvailabilityGroup) error {
		list, err := api.ParseFenced(g.Annotations[api.AnnotationFenced])
		if err != nil {
			return err
		}
		var rest []api.FencedReplica
		for _, f := range list {
			if f.Replica != o.Target {
				rest = append(rest, f)
			}
		}
		return fence.Write(g, rest)
	})
}

// filled: the new copy is in step, or it is not waited for.
func (o *Options) filled(t *change.Trail, r *change.Result, s *api.ReplicaStatus) bool {
	switch {
	case s == nil || s.Fenced:
		t.Step("waiting until the operator has seen it")
		return false
	case change.InStep(s):
		t.Done("filled          %s is %s", o.Target, s.State)
		r.Result = change.ResultDone
		return true
	case !o.Wait:
		t.Done("accepted; the operator goes on")
		r.Result = change.ResultRunning
		return true
	}
	t.Step("%s is %s", o.Target, s.State)
	return false
}
