// Package install is `kubectl mssql install`: it brings the operator into a cluster.
package install

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/progress"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// Options of install.
type Options struct {
	Render         manifests.Options
	DryRun         string
	Output         string
	Wait           bool
	Timeout        time.Duration
	ForceConflicts bool
	Quiet          bool

	Factory factory.Factory
	Streams *iostreams.IOStreams
}

// New is the command.
func New(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	o := &Options{Render: manifests.Default(), Factory: f, Streams: s}
	pullPolicy := string(o.Render.ImagePullPolicy)
	replicas := int(o.Render.Replicas)
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Install the operator, or bring an installation up to date",
		Long: `Install the operator: namespace, custom resource definitions, roles and Deployment.

A second run changes nothing and says so. Availability groups and their data are never touched.`,
		Example: fmt.Sprintf(`  # into the namespace mssql-system
  %[1]s install

  # look at everything first, without a cluster
  %[1]s install --dry-run=client -o yaml

  # only for two namespaces, with Roles instead of a ClusterRole
  %[1]s install --watch-namespaces sales,crm`, f.Name()),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Render.ImagePullPolicy = corev1.PullPolicy(pullPolicy)
			o.Render.Replicas = int32(min(max(replicas, 0), 9))
			if ns := cmd.Flag("namespace"); ns != nil && ns.Changed {
				o.Render.Namespace = ns.Value.String()
			}
			if err := o.Validate(); err != nil {
				return err
			}
			return o.Run(cmd.Context())
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&o.Render.Image, "image", o.Render.Image, "the operator's image")
	fl.StringVar(&pullPolicy, "image-pull-policy", pullPolicy, "Always, IfNotPresent or Never")
	fl.StringSliceVar(&o.Render.ImagePullSecrets, "image-pull-secret", nil, "name of a Secret to pull the operator's image with")
	fl.IntVar(&replicas, "replicas", replicas, "number of controllers; one leads, the others wait")
	fl.StringSliceVar(&o.Render.WatchNamespaces, "watch-namespaces", nil, "look only at these namespaces")
	fl.StringVar(&o.Render.LogLevel, "log-level", o.Render.LogLevel, "debug, info or error")
	fl.StringToStringVar(&o.Render.NodeSelector, "node-selector", nil, "labels of the nodes that the controllers may run on")
	fl.StringVar(&o.DryRun, "dry-run", "", "client: print what would be applied; server: ask the API server; both change nothing")
	fl.StringVarP(&o.Output, "output", "o", "", "with --dry-run=client: yaml")
	fl.BoolVar(&o.Wait, "wait", true, "wait until the controllers are up")
	fl.DurationVar(&o.Timeout, "timeout", 5*time.Minute, "how long to wait")
	fl.BoolVar(&o.ForceConflicts, "force-conflicts", false, "take over fields that another tool owns")
	fl.BoolVarP(&o.Quiet, "quiet", "q", false, "no progress")
	return cmd
}

// Validate refuses what cannot work, before anything is sent.
func (o *Options) Validate() error {
	switch o.DryRun {
	case "", "client", "server":
	default:
		return exit.Errorf(exit.Usage, "use --dry-run=client or --dry-run=server", "unknown dry run %q", o.DryRun)
	}
	switch {
	case o.Output != "" && o.Output != "yaml":
		return exit.Errorf(exit.Usage, "use -o yaml", "unknown output format %q", o.Output)
	case o.Output != "" && o.DryRun != "client":
		return exit.Errorf(exit.Usage, "add --dry-run=client", "-o yaml prints manifests and goes with --dry-run=client")
	}
	switch o.Render.ImagePullPolicy {
	case corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever:
	default:
		return exit.Errorf(exit.Usage, "use Always, IfNotPresent or Never", "unknown image pull policy %q", o.Render.ImagePullPolicy)
	}
	switch o.Render.LogLevel {
	case "debug", "info", "error":
	default:
		return exit.Errorf(exit.Usage, "use debug, info or error", "unknown log level %q", o.Render.LogLevel)
	}
	if _, err := manifests.Render(o.Render); err != nil {
		return exit.With(exit.Usage, "", err)
	}
	return nil
}

// Run renders, applies and waits.
func (o *Options) Run(ctx context.Context) error {
	objects, err := manifests.Render(o.Render)
	if err != nil {
		return err
	}
	if o.DryRun == "client" {
		text, err := manifests.YAML(objects)
		if err != nil {
			return err
		}
		_, err = o.Streams.Out.Write(text)
		return err
	}
	c, err := o.Factory.Client()
	if err != nil {
		return err
	}
	if err := o.checkOwner(ctx, c); err != nil {
		return err
	}
	report := progress.New(o.Streams, o.Factory.Clock(), o.Quiet)
	defer report.Stop()
	changed := 0
	_, err = manifests.Apply(ctx, c, objects, manifests.ApplyOptions{
		ForceConflicts: o.ForceConflicts, DryRun: o.DryRun == "server",
		Report: func(a manifests.Applied) {
			if a.Result != manifests.Unchanged {
				changed++
			}
			fmt.Fprintf(o.Streams.Out, "%s %s\n", strings.ToLower(a.Object.GetKind())+"/"+a.Object.GetName(), a.Result)
		},
	})
	if err != nil {
		return o.explain(err)
	}
	if o.DryRun != "" {
		report.Done("dry run: nothing was changed")
		return nil
	}
	if o.Wait {
		if err := o.waitAvailable(ctx, c, report); err != nil {
			return err
		}
	}
	if changed == 0 {
		report.Done("unchanged: the operator is installed in namespace %s", o.Render.Namespace)
		return nil
	}
	report.Done("the operator runs in namespace %s", o.Render.Namespace)
	if !o.Quiet {
		name := o.Factory.Name()
		fmt.Fprintf(o.Streams.ErrOut, "\nNext\n  %s create ag demo --replicas 3 --accept-eula\n  %s status\n  %s --help\n", name, name, name)
	}
	return nil
}

// checkOwner refuses to fight with another installer.
func (o *Options) checkOwner(ctx context.Context, c client.Client) error {
	if o.ForceConflicts {
		return nil
	}
	var d appsv1.Deployment
	err := c.Get(ctx, client.ObjectKey{Namespace: o.Render.Namespace, Name: manifests.Name}, &d)
	if err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("look for an installation: %w", err)
	}
	for label, tool := range map[string]string{
		"helm.toolkit.fluxcd.io/name":      "Flux (a HelmRelease)",
		"kustomize.toolkit.fluxcd.io/name": "Flux (a Kustomization)",
		"argocd.argoproj.io/instance":      "Argo CD",
		"olm.owner":                        "OLM",
	} {
		if _, ok := d.Labels[label]; ok {
			return exit.Errorf(exit.Refused, "change the version there, or use --force-conflicts to take it over",
				"the operator in namespace %s is managed by %s", o.Render.Namespace, tool)
		}
	}
	if d.Labels["app.kubernetes.io/managed-by"] == "Helm" {
		return exit.Errorf(exit.Refused, "use `helm upgrade`, or --force-conflicts to take it over",
			"the operator in namespace %s is managed by Helm", o.Render.Namespace)
	}
	return nil
}

// explain turns the API server's usual refusals into what to do next.
func (o *Options) explain(err error) error {
	switch {
	case apierrors.IsConflict(err):
		return exit.With(exit.Conflict, "another tool owns these fields; --force-conflicts takes them over", err)
	case apierrors.IsForbidden(err):
		return exit.With(exit.Forbidden, "installing needs the rights of a cluster administrator", err)
	}
	return err
}

func (o *Options) waitAvailable(ctx context.Context, c client.Client, report *progress.Reporter) error {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	key := client.ObjectKey{Namespace: o.Render.Namespace, Name: manifests.Name}
	ticker := o.Factory.Clock().NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	var last string
	for {
		var d appsv1.Deployment
		err := c.Get(ctx, key, &d)
		switch {
		case err == nil && d.Status.ObservedGeneration >= d.Generation &&
			d.Status.UpdatedReplicas == o.Render.Replicas && d.Status.AvailableReplicas == o.Render.Replicas:
			return nil
		case err == nil:
			last = fmt.Sprintf("waiting for the controllers: %d of %d up%s",
				d.Status.AvailableReplicas, o.Render.Replicas, waitingReason(ctx, c, o.Render.Namespace))
			report.Step("%s", last)
		case ctx.Err() == nil && !apierrors.IsNotFound(err):
			report.Step("waiting for the controllers: %v", err)
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return exit.Errorf(exit.Interrupted, "run the same command again to go on", "interrupted; what was applied stays")
			}
			return exit.Errorf(exit.Timeout,
				fmt.Sprintf("kubectl -n %s describe pods; nothing was rolled back, so that the cause can be seen", o.Render.Namespace),
				"the controllers were not up after %s: %s", o.Timeout, last)
		case <-ticker.C():
		}
	}
}

// waitingReason looks for the first container that cannot start.
func waitingReason(ctx context.Context, c client.Client, namespace string) string {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{manifests.LabelPart: manifests.LabelPartValue}); err != nil {
		return ""
	}
	for _, p := range pods.Items {
		for _, cs := range p.Status.ContainerStatuses {
			if w := cs.State.Waiting; w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
				return fmt.Sprintf(" (%s: %s %s)", p.Name, w.Reason, w.Message)
			}
		}
		for _, cond := range p.Status.Conditions {
			if cond.Type == corev1.PodScheduled && cond.Status == corev1.ConditionFalse {
				return fmt.Sprintf(" (%s: %s)", p.Name, cond.Message)
			}
		}
	}
	return ""
}
