// Package history is `kubectl mssql history`: the role changes of an availability group,
// who asked for them and why, how long they took and what they did step by step.
package history

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/arguments"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/output"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/status"
)

// Document is the machine-readable history, newest first.
type Document struct {
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Namespace  string   `json:"namespace"`
	Name       string   `json:"name"`
	Primary    string   `json:"primary"`
	Items      []Change `json:"items"`
}

// Change is one role change.
type Change struct {
	// Kind: bootstrap, planned, automatic, forced, manual; Result: done, aborted.
	Kind   string `json:"kind"`
	Result string `json:"result"`
	From   string `json:"from"`
	To     string `json:"to"`
	// By is who asked, empty when nobody did; Cause is why, in one sentence.
	By        string     `json:"by"`
	Cause     string     `json:"cause"`
	RequestID string     `json:"requestID"`
	Epoch     int64      `json:"epoch"`
	Started   *time.Time `json:"started"`
	Completed *time.Time `json:"completed"`
	// TookSeconds from the start of the move until the new primary took writes; null while
	// it is not known. Of a planned move it is the longest that writes can have been down;
	// a failover starts after the loss was seen.
	TookSeconds *float64 `json:"tookSeconds"`
	// Loss: "none", or "accepted" where commits may have been lost by request.
	Loss  string `json:"loss"`
	Steps []Step `json:"steps"`
}

// Step of a change.
type Step struct {
	At           time.Time `json:"at"`
	AfterSeconds float64   `json:"afterSeconds"`
	What         string    `json:"what"`
}

// Options of one call.
type Options struct {
	Name    string
	Verbose bool
	Output  *output.Flags

	Factory factory.Factory
	Streams *iostreams.IOStreams
}

// New is the command.
func New(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	o := &Options{Factory: f, Streams: s, Output: output.New("wide")}
	cmd := &cobra.Command{
		Use:   "history NAME",
		Short: "Show the role changes of an availability group: who, when, why, how long",
		Long: `Show the newest role changes of an availability group, the latest last.

TOOK counts from the start of the move until the new primary took writes. LOSS says whether commits may
have been lost; only a forced move that somebody asked for, or that the policy allows, can lose any.`,
		Example: fmt.Sprintf(`  # the last ten changes
  %[1]s history demo

  # with the steps of each
  %[1]s history demo -v

  # how long the newest one took
  %[1]s history demo -o jsonpath='{.items[0].tookSeconds}'`, f.Name()),
		Args: arguments.OneName("availability group"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return o.Run(cmd.Context())
		},
	}
	o.Output.AddTo(cmd)
	cmd.Flags().BoolVarP(&o.Verbose, "verbose", "v", false, "show the steps of each change")
	return cmd
}

// Run reads and prints.
func (o *Options) Run(ctx context.Context) error {
	if err := o.Output.Validate(); err != nil {
		return err
	}
	c, err := o.Factory.Client()
	if err != nil {
		return err
	}
	ns, _, err := o.Factory.Namespace()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	var g api.SQLServerAvailabilityGroup
	if err := c.Get(ctx, client.ObjectKey{Namespace: ns, Name: o.Name}, &g); err != nil {
		switch {
		case meta.IsNoMatchError(err):
			return exit.Errorf(exit.NotFound, o.Factory.Name()+" install", "the operator is not installed in this cluster")
		case apierrors.IsNotFound(err):
			return exit.Errorf(exit.NotFound, o.Factory.Name()+" list shows what is there", "there is no availability group %s in namespace %s", o.Name, ns)
		}
		return fmt.Errorf("read the availability group %s: %w", o.Name, err)
	}
	d := Build(&g)
	if !o.Output.Text() {
		var names []string
		for _, i := range d.Items {
			names = append(names, fmt.Sprintf("%d", i.Epoch))
		}
		return o.Output.Write(o.Streams.Out, d, false, names...)
	}
	return o.text(o.Streams.Out, d)
}

// Build derives the document. It is pure.
func Build(g *api.SQLServerAvailabilityGroup) Document {
	d := Document{
		APIVersion: output.APIVersion, Kind: "AvailabilityGroupHistory", Namespace: g.Namespace, Name: g.Name,
		Primary: g.Status.PrimaryReplica, Items: []Change{},
	}
	for _, h := range g.Status.History {
		x := Change{
			Kind: h.Kind, Result: h.Result, From: h.From, To: h.To, By: by(h.Cause), Cause: h.Cause, RequestID: h.RequestID, Epoch: h.Epoch,
			Started: instant(h.StartedAt.Time), Completed: instant(h.CompletedAt.Time), Loss: "none", Steps: []Step{},
		}
		if x.Kind == "forced" {
			x.Loss = "accepted"
		}
		if x.Started != nil && x.Completed != nil {
			took := max(0, x.Completed.Sub(*x.Started).Seconds())
			x.TookSeconds = &took
		}
		for _, s := range h.Timeline {
			after := 0.0
			if x.Started != nil {
				after = max(0, s.At.Sub(*x.Started).Seconds())
			}
			x.Steps = append(x.Steps, Step{s.At.UTC(), after, s.What})
		}
		d.Items = append(d.Items, x)
	}
	return d
}

// by is who asked: the engine writes causes of requests as "requested by WHO: WHY".
func by(cause string) string {
	rest, ok := strings.CutPrefix(cause, "requested by ")
	if !ok {
		return ""
	}
	who, _, _ := strings.Cut(rest, ": ")
	return who
}

func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func (o *Options) text(w io.Writer, d Document) error {
	s := o.Streams
	if len(d.Items) == 0 {
		fmt.Fprintf(s.ErrOut, "No role change of %s is recorded.\n", d.Name)
		return nil
	}
	width := s.Width
	if o.Output.Format() == "wide" {
		width = 0
	}
	paint := func(st iostreams.Style, text string) string { return iostreams.Paint(s.ColorOut(), st, text) }
	table := status.Table{
		Header: []string{"WHEN", "KIND", "FROM", "TO", "TOOK", "LOSS", "RESULT", "WHY"},
		Right:  []string{"TOOK"}, Whole: []string{"WHEN", "KIND", "FROM", "TO", "TOOK", "LOSS", "RESULT"}, Width: width,
		Paint: func(col, cell string, _ int) string {
			switch {
			case col == "LOSS" && cell != "none":
				return paint(iostreams.StyleRed, cell)
			case col == "RESULT" && cell == "aborted":
				return paint(iostreams.StyleYellow, cell)
			case col == "WHEN" || cell == "-":
				return paint(iostreams.StyleDim, cell)
			}
			return cell
		},
	}
	// The newest stands last, next to the prompt.
	for i := len(d.Items) - 1; i >= 0; i-- {
		x := d.Items[i]
		table.Rows = append(table.Rows, []string{when(x), dash(x.Kind), dash(x.From), dash(x.To), took(x), x.Loss, dash(x.Result), dash(x.Cause)})
	}
	var b strings.Builder
	if !o.Verbose {
		b.WriteString(table.String())
	} else {
		for i := len(d.Items) - 1; i >= 0; i-- {
			o.change(&b, d.Items[i], paint)
		}
	}
	_, err := io.WriteString(w, iostreams.Wrap(s.Plain(b.String()), width))
	return err
}

func (o *Options) change(b *strings.Builder, x Change, paint func(iostreams.Style, string) string) {
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	fmt.Fprintf(b, "%s  %s  %s -> %s  %s\n", when(x), paint(iostreams.StyleBold, status.Kind(x.Kind)), dash(x.From), dash(x.To), dash(x.Result))
	fmt.Fprintf(b, "  why   %s\n", dash(x.Cause))
	fmt.Fprintf(b, "  took  %s · loss %s · epoch %d\n", took(x), x.Loss, x.Epoch)
	for _, s := range x.Steps {
		fmt.Fprintf(b, "  %s %6s  %s\n", paint(iostreams.StyleGreen, "✔"), fmt.Sprintf("+%.0fs", s.AfterSeconds), s.What)
	}
}

func when(x Change) string {
	t := x.Started
	if t == nil {
		t = x.Completed
	}
	if t == nil {
		return "?"
	}
	return t.Format("2006-01-02 15:04:05Z")
}

func took(x Change) string {
	if x.TookSeconds == nil {
		return "?"
	}
	return time.Duration(*x.TookSeconds * float64(time.Second)).Round(100 * time.Millisecond).String()
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
