// Package create is `kubectl mssql create ag` and `create instance`.
package create

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/arguments"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/progress"
)

// options of one call.
type options struct {
	group    groupOptions
	dryRun   string
	output   string
	wait     bool
	timeout  time.Duration
	quiet    bool
	instance bool

	factory factory.Factory
	streams *iostreams.IOStreams
}

// New is the command with its two children.
func New(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "create",
		Short:   "Create an availability group or a standalone instance",
		Example: fmt.Sprintf("  %s create ag demo --replicas 3 --database orders --accept-eula", f.Name()),
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newGroup(f, s), newInstance(f, s))
	return cmd
}

func newGroup(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	o := &options{factory: f, streams: s}
	cmd := &cobra.Command{
		Use:     "ag NAME",
		Aliases: []string{"availabilitygroup", "sqlag"},
		Short:   "Create an availability group and wait until it is healthy",
		Example: fmt.Sprintf(`  # three synchronous replicas with one database
  %[1]s create ag demo --replicas 3 --database orders --accept-eula

  # the complete, commented manifest, for Git
  %[1]s create ag demo --accept-eula --dry-run=client -o yaml

  # two replicas and a witness
  %[1]s create ag demo --replicas 2 --witness --accept-eula`, f.Name()),
		Args: arguments.OneName("group or instance to be made"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	fl := cmd.Flags()
	fl.IntVar(&o.group.Replicas, "replicas", 3, "number of replicas with data")
	fl.IntVar(&o.group.Async, "async", 0, "how many of them commit asynchronously")
	fl.BoolVar(&o.group.Witness, "witness", false, "add a configuration-only replica as third vote")
	fl.BoolVar(&o.group.Readable, "readable", true, "let clients read from secondaries")
	fl.StringSliceVar(&o.group.Databases, "database", nil, "database to create in the group; may be repeated")
	fl.StringVar(&o.group.Profile, "profile", "Balanced", "timing of failure detection: Balanced, Fast or Tolerant")
	fl.StringVar(&o.group.Required, "durability", "Preferred", "Preferred or Required")
	o.serverFlags(cmd)
	return cmd
}

func newInstance(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	o := &options{factory: f, streams: s, instance: true}
	cmd := &cobra.Command{
		Use:     "instance NAME",
		Aliases: []string{"sqli"},
		Short:   "Create a standalone SQL Server and wait until it is up",
		Example: fmt.Sprintf("  %s create instance reports --storage 20Gi --accept-eula", f.Name()),
		Args:    arguments.OneName("group or instance to be made"),
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
	}
	o.serverFlags(cmd)
	return cmd
}

func (o *options) serverFlags(cmd *cobra.Command) {
	fl := cmd.Flags()
	g := &o.group
	fl.BoolVar(&g.AcceptEULA, "accept-eula", false, "accept Microsoft's licence terms for SQL Server")
	fl.StringVar(&g.Image, "image", "", "SQL Server's image; the newest 2025 one when left out")
	fl.StringVar(&g.PullPolicy, "image-pull-policy", "", "Always, IfNotPresent or Never")
	fl.StringVar(&g.Edition, "edition", "Developer", "edition of SQL Server")
	fl.StringVar(&g.Storage, "storage", "10Gi", "size of each data volume")
	fl.StringVar(&g.StorageClass, "storage-class", "", "storage class; the cluster's default when left out")
	fl.StringVar(&g.Memory, "memory", "2Gi", "memory of each server, at least 2000Mi")
	fl.StringVar(&g.CPU, "cpu", "250m", "cpu request of each server")
	fl.StringVar(&g.SASecret, "sa-secret", "", "Secret with the password of sa, as NAME or NAME/KEY; made when left out")
	fl.StringVar(&o.dryRun, "dry-run", "", "client: print the manifest; server: let the API server check it; both change nothing")
	fl.StringVarP(&o.output, "output", "o", "", "with --dry-run: yaml")
	fl.BoolVar(&o.wait, "wait", true, "wait until it is up")
	fl.DurationVar(&o.timeout, "timeout", 10*time.Minute, "how long to wait; the operator goes on afterwards")
	fl.BoolVarP(&o.quiet, "quiet", "q", false, "no progress")
}

var nameForm = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

// validate says early and in one sentence what the API server would refuse.
func (o *options) validate() error {
	g := &o.group
	usage := func(hint, format string, args ...any) error { return exit.Errorf(exit.Usage, hint, format, args...) }
	switch {
	case !nameForm.MatchString(g.Name):
		return usage("start with a letter, then a-z, 0-9 and -", "%q is no valid name", g.Name)
	case len(g.Name) > 13:
		return usage("choose a name of at most 13 characters",
			"the name %q is too long: servers would be called %s-0, and SQL Server takes at most 15 characters", g.Name, g.Name)
	case !g.AcceptEULA:
		return usage("add --accept-eula once you have read them: https://go.microsoft.com/fwlink/?LinkId=746388",
			"SQL Server runs only when you accept Microsoft's licence terms")
	case o.dryRun != "" && o.dryRun != "client" && o.dryRun != "server":
		return usage("use --dry-run=client or --dry-run=server", "unknown dry run %q", o.dryRun)
	case o.output != "" && o.output != "yaml":
		return usage("use -o yaml", "unknown output format %q", o.output)
	case o.output != "" && o.dryRun == "":
		return usage("add --dry-run=client", "-o yaml goes with --dry-run")
	}
	if g.PullPolicy != "" && g.PullPolicy != string(corev1.PullAlways) && g.PullPolicy != string(corev1.PullIfNotPresent) && g.PullPolicy != string(corev1.PullNever) {
		return usage("use Always, IfNotPresent or Never", "unknown image pull policy %q", g.PullPolicy)
	}
	for flag, v := range map[string]string{"storage": g.Storage, "memory": g.Memory, "cpu": g.CPU} {
		if _, err := resource.ParseQuantity(v); err != nil {
			return usage("write it as 10Gi or 500m", "--%s %q is not a quantity: %v", flag, v, err)
		}
	}
	if m := resource.MustParse(g.Memory); m.Cmp(resource.MustParse("2000Mi")) < 0 {
		return usage("use at least --memory 2000Mi", "SQL Server does not start with less than 2000 MB of memory, --memory is %s", g.Memory)
	}
	if o.instance {
		return nil
	}
	switch {
	case g.Replicas < 1 || g.Replicas > 9:
		return usage("choose 1 to 9", "an availability group has 1 to 9 replicas, not %d", g.Replicas)
	case g.Async < 0 || g.Async >= g.Replicas:
		return usage("at least one replica commits synchronously", "--async %d leaves no synchronous replica of %d", g.Async, g.Replicas)
	case g.Replicas-g.Async > 5:
		return usage("make some of them asynchronous with --async", "at most five synchronous replicas, not %d", g.Replicas-g.Async)
	case g.Witness && g.Replicas-g.Async > 2:
		return usage("leave --witness out", "a witness goes with at most two synchronous replicas (Msg 47108)")
	case g.Witness && g.Replicas >= 9:
		return usage("", "a witness would be the tenth replica")
	}
	switch g.Profile {
	case "Balanced", "Fast", "Tolerant":
	default:
		return usage("use Balanced, Fast or Tolerant", "unknown profile %q", g.Profile)
	}
	switch g.Required {
	case "Preferred", "Required":
	default:
		return usage("use Preferred or Required", "unknown durability %q", g.Required)
	}
	return nil
}

func (o *options) run(ctx context.Context, name string) error {
	o.group.Name = name
	if err := o.validate(); err != nil {
		return err
	}
	ns, _, err := o.factory.Namespace()
	if err != nil && o.dryRun != "client" {
		return err
	}
	if ns == "" {
		ns = "default"
	}
	o.group.Namespace = ns
	var text []byte
	var obj client.Object
	if o.instance {
		text, obj, err = wrap(o.group.serverOptions.instanceManifest())
	} else {
		text, obj, err = wrap(o.group.manifest())
	}
	if err != nil {
		return err
	}
	if o.dryRun == "client" {
		_, err := o.streams.Out.Write(text)
		return err
	}
	c, err := o.factory.Client()
	if err != nil {
		return err
	}
	opts := []client.CreateOption{client.FieldOwner("kubectl-mssql"), client.FieldValidation("Strict")}
	if o.dryRun == "server" {
		opts = append(opts, client.DryRunAll)
	}
	if err := c.Create(ctx, obj, opts...); err != nil {
		return explain(err, o.factory.Name(), name)
	}
	if o.dryRun == "server" {
		if o.output == "yaml" {
			_, err := o.streams.Out.Write(text)
			return err
		}
		fmt.Fprintf(o.streams.Out, "%s/%s created (server dry run)\n", kindWord(o.instance), name)
		return nil
	}
	fmt.Fprintf(o.streams.Out, "%s/%s created\n", kindWord(o.instance), name)
	if !o.wait {
		return nil
	}
	return o.waitUp(ctx, c, obj)
}

func wrap[T client.Object](text []byte, obj T, err error) ([]byte, client.Object, error) {
	return text, obj, err
}

func kindWord(instance bool) string {
	if instance {
		return "sqlserverinstance"
	}
	return "sqlserveravailabilitygroup"
}

func explain(err error, self, name string) error {
	switch {
	case meta.IsNoMatchError(err) || (apierrors.IsNotFound(err) && !apierrors.IsAlreadyExists(err) && strings.Contains(err.Error(), "the server could not find the requested resource")):
		return exit.With(exit.NotFound, fmt.Sprintf("run `%s install` first", self), errors.New("the operator is not installed in this cluster"))
	case apierrors.IsAlreadyExists(err):
		return exit.With(exit.Conflict, fmt.Sprintf("see `%s status %s`; change it with kubectl edit", self, name), err)
	case apierrors.IsInvalid(err) || apierrors.IsBadRequest(err):
		return exit.With(exit.Usage, "", err)
	}
	return err
}

// waitUp follows the status until the object is up, cannot come up, or time is over.
func (o *options) waitUp(ctx context.Context, c client.Client, obj client.Object) error {
	report := progress.New(o.streams, o.factory.Clock(), o.quiet)
	defer report.Stop()
	clk := o.factory.Clock()
	begin := clk.Now()
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	ticker := clk.NewTicker(time.Second)
	defer ticker.Stop()
	follow := fmt.Sprintf("the operator goes on; watch with: %s status %s -w", o.factory.Name(), obj.GetName())
	last := "waiting for the operator"
	for {
		err := c.Get(ctx, client.ObjectKeyFromObject(obj), obj)
		if err != nil && ctx.Err() == nil {
			if apierrors.IsNotFound(err) {
				return exit.Errorf(exit.NotFound, "", "%s was deleted while it was being created", obj.GetName())
			}
			report.Step("cannot read the status: %v", err)
		}
		phase, reason, conditions := statusOf(obj)
		switch phase {
		case api.PhaseHealthy, api.PhaseRunning:
			report.Done("%s is %s after %s", obj.GetName(), strings.ToLower(string(phase)), clk.Since(begin).Round(time.Second))
			return nil
		case api.PhaseFailed:
			report.Fail("%s", reason)
			return exit.Errorf(exit.Unexpected, fmt.Sprintf("see %s status %s", o.factory.Name(), obj.GetName()), "%s cannot be brought up: %s", obj.GetName(), reason)
		case "":
		default:
			last = string(phase)
			if reason != "" {
				last += ": " + reason
			} else if m := firstProblem(conditions); m != "" {
				last += ": " + m
			}
		}
		report.Step("%s", last)
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return exit.Errorf(exit.Interrupted, follow, "interrupted at %q", last)
			}
			return exit.Errorf(exit.Timeout, follow, "not up after %s: %s", o.timeout, last)
		case <-ticker.C():
		}
	}
}
