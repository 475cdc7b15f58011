// Package resize is `kubectl mssql resize`: larger volumes, more or less memory and cpu.
package resize

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/arguments"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/change"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

// Options of one call.
type Options struct {
	change.Call
	Storage, CPU, Memory string

	storage, cpu, memory *resource.Quantity
}

// New is the command.
func New(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	o := &Options{Call: change.Call{Factory: f, Streams: s, Verb: "resize"}}
	cmd := &cobra.Command{
		Use:   "resize NAME",
		Short: "Give a group or an instance larger volumes, or other memory and cpu",
		Long: `Give the servers of an availability group, or a standalone instance, larger data volumes, or other memory and cpu.

Volumes grow on all replicas through the storage driver, without a restart where it can do so; they never
shrink. Memory and cpu are taken up by new pods: secondaries first, each waited for, one switchover, the old
primary last. SQL Server's own memory limit follows the container's.`,
		Example: fmt.Sprintf(`  # what would happen
  %[1]s resize demo --memory 8Gi --dry-run=server

  # larger volumes
  %[1]s resize demo --storage 50Gi --yes`, f.Name()),
		Args: arguments.OneName("group or instance"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return o.Run(cmd.Context())
		},
	}
	o.AddTo(cmd, 15*time.Minute)
	fl := cmd.Flags()
	fl.StringVar(&o.Storage, "storage", "", "size of each data volume; it only grows")
	fl.StringVar(&o.CPU, "cpu", "", "cpu request of each server; a cpu limit, where there is one, follows")
	fl.StringVar(&o.Memory, "memory", "", "memory of each server, request and limit, at least 2000Mi")
	return cmd
}

// Run checks, asks, patches the spec and follows.
func (o *Options) Run(ctx context.Context) error {
	return o.Do(ctx, &change.Result{}, o.run)
}

func (o *Options) run(ctx context.Context, r *change.Result) error {
	if err := o.parse(); err != nil {
		return err
	}
	if err := o.LoadAny(ctx); err != nil {
		return err
	}
	if err := o.Held(); err != nil {
		return err
	}
	if o.Instance != nil {
		return o.instance(ctx, r)
	}
	r.From, r.Order = o.Group.Status.PrimaryReplica, change.Order(o.Group)
	want := o.Group.DeepCopy()
	o.apply(&want.Spec.ServerSpec)
	rolls, grows := resourcesDiffer(&o.Group.Spec.ServerSpec, &want.Spec.ServerSpec), o.storageDiffers(&o.Group.Spec.ServerSpec)
	dry := change.DryRun(o.DryRun)
	if !rolls && !grows {
		if dry == change.DryRunNone && !o.reached(o.Group) {
			fmt.Fprintf(o.Streams.ErrOut, "%s the spec asks for it already; following\n", o.Streams.Mark(iostreams.MarkOK))
			return o.follow(ctx, r)
		}
		fmt.Fprintf(o.Streams.ErrOut, "%s %s has that already\n", o.Streams.Mark(iostreams.MarkOK), o.Name)
		r.Result, r.Message = change.ResultAlreadySo, "already so"
		return nil
	}
	p, err := o.judge(ctx, want, rolls, grows)
	if err != nil {
		return err
	}
	r.Plan, r.Request = p.Lines, o.patch(&o.Group.Spec.ServerSpec)
	if !rolls {
		r.Order = nil
	}
	if dry == change.DryRunNone {
		if err := o.Ask(p); err != nil {
			return err
		}
	}
	if dry != change.DryRunClient {
		err := o.Patch(ctx, "resize", func(g *api.SQLServerAvailabilityGroup) error {
			o.apply(&g.Spec.ServerSpec)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if dry != change.DryRunNone {
		o.ShowDryRun(p, r, o.patchText(&o.Group.Spec.ServerSpec))
		return nil
	}
	return o.follow(ctx, r)
}

// parse reads the quantities.
func (o *Options) parse() error {
	for _, x := range []struct {
		flag, text string
		to         **resource.Quantity
	}{{"storage", o.Storage, &o.storage}, {"cpu", o.CPU, &o.cpu}, {"memory", o.Memory, &o.memory}} {
		if x.text == "" {
			continue
		}
		q, err := resource.ParseQuantity(x.text)
		if err != nil || q.Sign() <= 0 {
			return exit.Errorf(exit.Usage, "write it as --storage 50Gi, --memory 8Gi or --cpu 2", "--%s is %q, which is no quantity above zero", x.flag, x.text)
		}
		*x.to = &q
	}
	if o.storage == nil && o.cpu == nil && o.memory == nil {
		return exit.Errorf(exit.Usage, "give --storage, --cpu or --memory", "nothing to change is named")
	}
	if o.memory != nil && o.memory.Cmp(minMemory()) < 0 {
		return exit.Errorf(exit.Refused, "use at least --memory 2000Mi", "refused: SQL Server does not start with less than 2000 MB of memory, --memory is %s", o.Memory)
	}
	return nil
}

// minMemory is what SQL Server needs to start (FG 7.1).
func minMemory() resource.Quantity { return resource.MustParse("2000Mi") }

// apply writes the wish into a spec.
func (o *Options) apply(spec *api.ServerSpec) {
	if o.storage != nil {
		spec.Storage.DataVolumeSize = *o.storage
	}
	set := func(list *corev1.ResourceList, name corev1.ResourceName, q resource.Quantity) {
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[name] = q
	}
	res := &spec.Resources
	if o.memory != nil {
		set(&res.Requests, corev1.ResourceMemory, *o.memory)
		set(&res.Limits, corev1.ResourceMemory, *o.memory)
	}
	if o.cpu != nil {
		set(&res.Requests, corev1.ResourceCPU, *o.cpu)
		if _, limited := res.Limits[corev1.ResourceCPU]; limited {
			set(&res.Limits, corev1.ResourceCPU, *o.cpu)
		}
	}
}

func resourcesDiffer(a, b *api.ServerSpec) bool {
	return !equal(a.Resources.Requests, b.Resources.Requests) || !equal(a.Resources.Limits, b.Resources.Limits)
}

func equal(a, b corev1.ResourceList) bool {
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		x, hasX := a[name]
		y, hasY := b[name]
		if hasX != hasY || x.Cmp(y) != 0 {
			return false
		}
	}
	return true
}

func (o *Options) storageDiffers(spec *api.ServerSpec) bool {
	return o.storage != nil && spec.Storage.DataVolumeSize.Cmp(*o.storage) != 0
}

// reached: the operator has seen the present spec, every pod runs with it, and every
// volume has its size.
func (o *Options) reached(g *api.SQLServerAvailabilityGroup) bool {
	if g.Status.ObservedGeneration != g.Generation {
		return false
	}
	if o.storage != nil && len(o.small(g)) > 0 {
		return false
	}
	if o.cpu == nil && o.memory == nil {
		return true
	}
	c := change.Condition(g, api.ConditionRollingChange)
	if c.Status != metav1.ConditionFalse || c.ObservedGeneration != g.Generation {
		return false
	}
	for _, s := range g.Status.ReplicaStatuses {
		if s.Outdated {
			return false
		}
	}
	return true
}

// small are the replicas whose volume has not reached the size.
func (o *Options) small(g *api.SQLServerAvailabilityGroup) []string {
	var out []string
	for _, name := range g.ReplicaNames() {
		if s := change.StatusOf(g, name); s == nil || o.smaller(s.Volume) {
			out = append(out, name)
		}
	}
	return out
}

// smaller: the volume has not reached the size.
func (o *Options) smaller(v *api.VolumeStatus) bool {
	if v == nil {
		return true
	}
	q, err := resource.ParseQuantity(v.Capacity)
	return err != nil || q.Cmp(*o.storage) < 0
}

// follow until all replicas have what was asked for.
func (o *Options) follow(ctx context.Context, r *change.Result) error {
	t := o.Trail(r)
	defer t.Stop()
	t.Done("requested       %s", o.wish())
	return o.Follow(ctx, t, func(g *api.SQLServerAvailabilityGroup) (bool, error) {
		if g.Status.ObservedGeneration != g.Generation {
			t.Step("waiting until the operator has accepted it")
			return false, nil
		}
		if o.storage != nil {
			if err := o.growth(t, g); err != nil {
				return false, err
			}
		}
		if !o.Wait {
			t.Done("accepted; the operator goes on")
			r.Result = change.ResultRunning
			return true, nil
		}
		if o.cpu != nil || o.memory != nil {
			r.To = change.Rolling(t, g, r.Order, r.From)
		}
		if !o.reached(g) {
			return false, nil
		}
		t.Done("resized         every replica has %s", o.wish())
		r.Result = change.ResultDone
		return true, nil
	})
}

// growth tells how far the volumes are; a class that cannot grow ends the waiting.
func (o *Options) growth(t *change.Trail, g *api.SQLServerAvailabilityGroup) error {
	if err := o.unsupported(change.Condition(g, api.ConditionStorageResizing), g.Generation); err != nil {
		return err
	}
	small := map[string]bool{}
	for _, name := range o.small(g) {
		small[name] = true
	}
	var texts []string
	waiting := map[string][]string{} // replicas by what their volumes wait for
	for _, name := range g.ReplicaNames() {
		s, text := change.StatusOf(g, name), "waits to grow"
		if !small[name] {
			t.Done("grown           the volume of %s has %s", name, s.Volume.Capacity)
			continue
		}
		if s != nil && s.Volume != nil && s.Volume.Message != "" {
			text = s.Volume.Message
		}
		if waiting[text] == nil {
			texts = append(texts, text)
		}
		waiting[text] = append(waiting[text], name)
	}
	// One step for all: what is repeated unchanged is not printed again.
	for i, text := range texts {
		texts[i] = strings.Join(waiting[text], ", ") + " " + text
	}
	if len(texts) > 0 {
		t.Step("%s", strings.Join(texts, "; "))
	}
	return nil
}

// unsupported: the operator says that the class cannot grow.
func (o *Options) unsupported(c metav1.Condition, generation int64) error {
	if c.Reason != api.ReasonExpansionUnsupported || c.ObservedGeneration != generation {
		return nil
	}
	return exit.Errorf(exit.Refused, fmt.Sprintf("%s explain %s", o.Factory.Name(), api.ReasonExpansionUnsupported), "refused: %s", c.Message)
}
