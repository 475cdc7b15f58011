// Package upgrade is `kubectl mssql upgrade`: it brings the operator to the plugin's
// version with the options of the last install.
package upgrade

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/installation"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/progress"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/version"
)

// Options of upgrade.
type Options struct {
	Namespace      string
	DryRun         string
	Wait           bool
	Timeout        time.Duration
	ForceConflicts bool
	Prune          bool
	Record         string
	Quiet          bool

	// Change puts options that were given over those of the last install; nil for none.
	Change  func(*manifests.Options) error
	Factory factory.Factory
	Streams *iostreams.IOStreams
}

// New is the command.
func New(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	o := &Options{Namespace: manifests.DefaultNamespace, Factory: f, Streams: s}
	var flags installation.Flags
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Bring the operator to the plugin's version, with the options of the last install",
		Long: `Bring the operator to the version of the plugin.

The options of the last install are repeated; a flag changes one of them. Resource definitions go first,
then roles and the Deployment; when the new controllers are up, what the new version does not have any
more is removed. Servers are not restarted: their instance managers stay of the old version until
restart is asked for.

Refused: a step back, a step over a minor version, definitions that would lose stored objects, and an
operator that Helm, OLM, Argo CD or Flux manages.

With --dry-run the difference is printed and nothing is changed. Exit status then: 0 when nothing would
change, 1 when something would, 2 or more for an error.`,
		Example: fmt.Sprintf(`  # what would change
  %[1]s upgrade --dry-run=server

  # do it
  %[1]s upgrade

  # and watch one more namespace from now on
  %[1]s upgrade --watch-namespaces sales,crm,billing`, f.Name()),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if ns := cmd.Flag("namespace"); ns != nil && ns.Changed {
				o.Namespace = ns.Value.String()
			}
			o.Change = flags.Apply
			return o.Run(cmd.Context())
		},
	}
	fl := cmd.Flags()
	flags.Add(fl)
	fl.StringVar(&o.DryRun, "dry-run", "", "print the difference and change nothing; client: compared here; server: as the API server would apply it")
	fl.BoolVar(&o.Wait, "wait", true, "wait until the controllers are up")
	fl.DurationVar(&o.Timeout, "timeout", 5*time.Minute, "how long to wait")
	fl.BoolVar(&o.ForceConflicts, "force-conflicts", false, "take over fields that another tool owns")
	fl.BoolVar(&o.Prune, "prune", true, "remove what the new version does not have any more")
	fl.StringVar(&o.Record, "record", "", "write the applied manifests to this file")
	fl.BoolVarP(&o.Quiet, "quiet", "q", false, "no progress")
	return cmd
}

// Run is the whole upgrade.
func (o *Options) Run(ctx context.Context) error {
	switch o.DryRun {
	case "":
		return o.run(ctx)
	case "client", "server":
		err := o.run(ctx)
		if err != nil && !exit.IsSilent(err) && exit.Of(err) == exit.Unexpected {
			hint := ""
			var e *exit.Error
			if errors.As(err, &e) {
				hint = e.Hint
			}
			return exit.With(exit.Usage, hint, err) // 1 says that something would change
		}
		return err
	}
	return exit.Errorf(exit.Usage, "use --dry-run=client or --dry-run=server", "unknown dry run %q", o.DryRun)
}

func (o *Options) run(ctx context.Context) error {
	c, err := o.Factory.Client()
	if err != nil {
		return err
	}
	present, err := installation.Get(ctx, c, o.Namespace)
	if err != nil {
		return installation.Explain(err)
	}
	if present == nil {
		return exit.Errorf(exit.NotFound, o.Factory.Name()+" install; with -n when it is in another namespace", "no operator is installed in namespace %s", o.Namespace)
	}
	if !o.ForceConflicts {
		if err := installation.RefuseForeign(present); err != nil {
			return err
		}
	}
	next, to, err := o.next(present)
	if err != nil {
		return err
	}
	if err := step(present.Version, to); err != nil {
		return err
	}
	objects, err := manifests.Render(next)
	if err != nil {
		return exit.With(exit.Usage, "", err)
	}
	if err := installation.NeedMonitoring(c, next); err != nil {
		return err
	}
	if err := stored(ctx, c, objects); err != nil {
		return installation.Explain(err)
	}
	left, skipped, err := o.leftovers(ctx, c, objects)
	if err != nil {
		return err
	}
	for _, s := range skipped {
		fmt.Fprintf(o.Streams.ErrOut, "not seen, so nothing of it is removed: %s\n", s)
	}
	if o.DryRun != "" {
		return o.show(ctx, c, objects, left)
	}
	return o.carryOut(ctx, c, present, to, objects, left)
}

// next are the options to be applied, and the version that they bring.
func (o *Options) next(present *installation.Installation) (manifests.Options, string, error) {
	options := last(present)
	image, kept := newImage(options.Image)
	options.Image = image
	if o.Change != nil {
		if err := o.Change(&options); err != nil {
			return options, "", err
		}
	}
	to := manifests.ImageVersion(options.Image)
	if kept && options.Image == image {
		fmt.Fprintf(o.Streams.ErrOut, "the tag of image %s is no version: it stays; --image names another one\n", image)
		to = version.Get().Version
	}
	return options, to, nil
}

func (o *Options) leftovers(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) (left []*unstructured.Unstructured, skipped []string, err error) {
	if !o.Prune {
		return nil, nil, nil
	}
	return installation.Leftovers(ctx, c, o.Namespace, objects)
}

// show prints the difference.
func (o *Options) show(ctx context.Context, c client.Client, objects, left []*unstructured.Unstructured) error {
	var changes []change
	var err error
	if o.DryRun == "client" {
		changes, err = local(ctx, c, objects)
	} else {
		changes, err = remote(ctx, c, objects, o.ForceConflicts)
	}
	if err != nil {
		return installation.Explain(err)
	}
	differs := len(left) > 0
	for _, ch := range changes {
		name := manifests.Describe(ch.object)
		if text := unified(name, ch.before, ch.after); text != "" {
			differs = true
			if _, err := fmt.Fprint(o.Streams.Out, o.paint(text)); err != nil {
				return fmt.Errorf("print the difference: %w", err)
			}
		}
	}
	for _, u := range left {
		fmt.Fprintf(o.Streams.Out, "%s\n", o.paint("--- "+manifests.Describe(u)+" (would be removed)"))
	}
	if !differs {
		fmt.Fprintln(o.Streams.ErrOut, "nothing would change")
		return nil
	}
	return exit.Silent(exit.Code(1))
}

func (o *Options) paint(text string) string {
	if !o.Streams.ColorOut() {
		return text
	}
	rows := strings.Split(text, "\n")
	for i, r := range rows {
		switch {
		case strings.HasPrefix(r, "---"), strings.HasPrefix(r, "+++"):
			rows[i] = iostreams.Paint(true, iostreams.StyleBold, r)
		case strings.HasPrefix(r, "-"):
			rows[i] = iostreams.Paint(true, iostreams.StyleRed, r)
		case strings.HasPrefix(r, "+"):
			rows[i] = iostreams.Paint(true, iostreams.StyleGreen, r)
		case strings.HasPrefix(r, "@@"):
			rows[i] = iostreams.Paint(true, iostreams.StyleDim, r)
		}
	}
	return strings.Join(rows, "\n")
}

// carryOut applies, waits, and then removes leftovers: the old controllers may still
// need them while the new ones start.
func (o *Options) carryOut(ctx context.Context, c client.Client, present *installation.Installation, to string, objects, left []*unstructured.Unstructured) error {
	report := progress.New(o.Streams, o.Factory.Clock(), o.Quiet)
	defer report.Stop()
	from := present.Version
	if from == "" {
		from = "an unknown version"
	}
	changed := 0
	_, err := manifests.Apply(ctx, c, objects, manifests.ApplyOptions{ForceConflicts: o.ForceConflicts, Report: func(a manifests.Applied) {
		if a.Result != manifests.Unchanged {
			changed++
		}
		fmt.Fprint(o.Streams.Out, installation.Line(a.Object, string(a.Result)))
	}})
	if err != nil {
		return installation.Explain(err)
	}
	if err := installation.Record(o.Record, objects); err != nil {
		return err
	}
	if !o.Wait {
		for _, u := range left {
			fmt.Fprint(o.Streams.Out, installation.Line(u, "left over; the next upgrade that waits removes it"))
		}
		report.Done("applied; the controllers start in namespace %s", o.Namespace)
		return nil
	}
	if err := installation.Wait(ctx, c, o.Factory.Clock(), o.Namespace, o.Timeout, report); err != nil {
		return err
	}
	if err := installation.Remove(ctx, c, left, func(u *unstructured.Unstructured, result string) {
		changed++
		fmt.Fprint(o.Streams.Out, installation.Line(u, result))
	}); err != nil {
		return errors.Join(fmt.Errorf("the operator is upgraded, but not everything old could be removed"), installation.Explain(err))
	}
	if changed == 0 {
		report.Done("unchanged: the operator in namespace %s is of version %s", o.Namespace, to)
		return nil
	}
	report.Done("upgraded the operator in namespace %s: %s -> %s", o.Namespace, from, to)
	if from != to && !o.Quiet {
		fmt.Fprintf(o.Streams.ErrOut, "\nServers were not restarted; their instance managers are of the old version until they are.\nNext\n  %[1]s check\n  %[1]s restart NAME\n", o.Factory.Name())
	}
	return nil
}
