// Package failover is `kubectl mssql failover`: it asks the operator to move the primary.
package failover

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/confirm"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/progress"
)

// Options of one call.
type Options struct {
	Name, To  string
	DataLoss  string
	Yes       bool
	Confirm   string
	DryRun    bool
	Output    string
	Wait      bool
	Timeout   time.Duration
	Reason    string
	Quiet     bool
	NewID     func() (string, error)
	Factory   factory.Factory
	Streams   *iostreams.IOStreams
	namespace string
}

// New is the command.
func New(f factory.Factory, s *iostreams.IOStreams) *cobra.Command {
	o := &Options{Factory: f, Streams: s, NewID: randomID}
	cmd := &cobra.Command{
		Use:     "failover NAME",
		Aliases: []string{"switchover"},
		Short:   "Move the primary to another replica, without loss",
		Long: `Move the primary of an availability group to another replica.

The planned form loses nothing: it is refused when the target does not hold every commit at the moment
of the move. With --allow-data-loss the target is forced, and what may be lost is said first.`,
		Example: fmt.Sprintf(`  # to the replica that the operator would choose
  %[1]s failover demo

  # to a certain one, without a question
  %[1]s failover demo --to demo-1 --yes

  # who could take over, and which rule refuses the others
  %[1]s failover demo --dry-run`, f.Name()),
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return exit.Errorf(exit.Usage, fmt.Sprintf("see %s --help", cmd.CommandPath()), "want the name of one availability group, got %d arguments", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name = args[0]
			return o.Run(cmd.Context())
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&o.To, "to", "", "replica that becomes primary; the operator's choice when left out")
	fl.StringVar(&o.DataLoss, "allow-data-loss", "", "force the move, and accept that commits are lost: at most this many seconds of them, or \"unlimited\"")
	fl.Lookup("allow-data-loss").NoOptDefVal = "unlimited"
	fl.BoolVarP(&o.Yes, "yes", "y", false, "do not ask")
	fl.StringVar(&o.Confirm, "confirm", "", "with --allow-data-loss: the group's name, instead of typing it")
	fl.BoolVar(&o.DryRun, "dry-run", false, "show who could take over and change nothing")
	fl.StringVarP(&o.Output, "output", "o", "", "output format: json")
	fl.BoolVar(&o.Wait, "wait", true, "wait for the result")
	fl.DurationVar(&o.Timeout, "timeout", 2*time.Minute, "how long to wait; the operator goes on afterwards")
	fl.StringVar(&o.Reason, "reason", "", "why, for the history")
	fl.BoolVarP(&o.Quiet, "quiet", "q", false, "no progress")
	return cmd
}

func randomID() (string, error) {
	b := make([]byte, 4)
	if _, err := rand.Read(b); err != nil {
		return "", fmt.Errorf("draw a request id: %w", err)
	}
	return "fo-" + hex.EncodeToString(b), nil
}

// Result is the machine-readable outcome.
type Result struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Name       string            `json:"name"`
	Namespace  string            `json:"namespace"`
	RequestID  string            `json:"requestID"`
	From       string            `json:"from"`
	To         string            `json:"to"`
	Result     string            `json:"result"`
	Reason     string            `json:"reason"`
	Message    string            `json:"message"`
	ExitCode   int               `json:"exitCode"`
	WritesDown float64           `json:"writesDownSeconds"`
	Replicas   []CandidateResult `json:"replicas"`
}

// CandidateResult is one row of the dry run.
type CandidateResult struct {
	Name    string `json:"name"`
	Role    string `json:"role"`
	Ready   bool   `json:"ready"`
	Refusal string `json:"refusal"`
}

// Run checks, asks, requests and waits.
func (o *Options) Run(ctx context.Context) error {
	if o.Output != "" && o.Output != "json" {
		return exit.Errorf(exit.Usage, "use -o json", "unknown output format %q", o.Output)
	}
	maxLoss, err := o.maxLoss()
	if err != nil {
		return err
	}
	ns, _, err := o.Factory.Namespace()
	if err != nil {
		return err
	}
	o.namespace = ns
	c, err := o.Factory.Client()
	if err != nil {
		return err
	}
	var g api.SQLServerAvailabilityGroup
	if err := c.Get(ctx, client.ObjectKey{Namespace: ns, Name: o.Name}, &g); err != nil {
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			return exit.Errorf(exit.NotFound, fmt.Sprintf("%s status lists what is there", o.Factory.Name()),
				"there is no availability group %s in namespace %s", o.Name, ns)
		}
		return fmt.Errorf("read %s: %w", o.Name, err)
	}
	if o.To != "" && !slices.Contains(g.ReplicaNames(), o.To) {
		return exit.Errorf(exit.NotFound, "its replicas: "+strings.Join(g.ReplicaNames(), ", "), "%s has no replica %s", o.Name, o.To)
	}
	if o.DryRun {
		return o.dryRun(&g)
	}
	if o.To != "" && g.Status.PrimaryReplica == o.To && g.Status.TargetPrimary == "" {
		fmt.Fprintf(o.Streams.ErrOut, "%s %s is primary already\n", o.Streams.Mark(iostreams.MarkOK), o.To)
		return o.printResult(Result{RequestID: "", From: o.To, To: o.To, Result: api.RequestDone, Message: "already primary"})
	}
	if err := o.attachable(&g); err != nil {
		return err
	}
	if err := o.plan(&g, maxLoss); err != nil {
		return err
	}
	return o.request(ctx, c, &g, maxLoss)
}

// maxLoss reads --allow-data-loss: 0 is planned, −1 unlimited.
func (o *Options) maxLoss() (int, error) {
	switch o.DataLoss {
	case "":
		return 0, nil
	case "unlimited":
		return -1, nil
	}
	d, err := time.ParseDuration(o.DataLoss)
	if err != nil {
		d, err = time.ParseDuration(o.DataLoss + "s")
	}
	if err != nil || d < time.Second {
		return 0, exit.Errorf(exit.Usage, "write it as --allow-data-loss=60, or --allow-data-loss=unlimited", "%q is no number of seconds", o.DataLoss)
	}
	return int(d / time.Second), nil
}

// attachable refuses when another operation runs.
func (o *Options) attachable(g *api.SQLServerAvailabilityGroup) error {
	a := g.Status.Authority
	if a == nil || a.Operation == nil {
		return nil
	}
	op := a.Operation
	if o.To == "" || op.Target == o.To {
		return nil // the same move: the operator answers for it
	}
	return exit.Errorf(exit.Conflict, fmt.Sprintf("wait for it: %s status %s -w", o.Factory.Name(), o.Name),
		"a %s from %s to %s is under way (%s)", op.Kind, op.From, op.Target, op.ID)
}

// dryRun prints what the operator's own rules say about every replica.
func (o *Options) dryRun(g *api.SQLServerAvailabilityGroup) error {
	rows := candidates(g)
	chosen := ""
	for _, r := range rows {
		if r.Ready && (o.To == "" || o.To == r.Name) {
			chosen = r.Name
			break
		}
	}
	if o.Output == "json" {
		res := Result{From: g.Status.PrimaryReplica, To: chosen, Result: "DryRun", Replicas: rows}
		if chosen == "" {
			res.Result, res.ExitCode = api.RequestRefused, int(exit.Refused)
		}
		if err := o.printResult(res); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(o.Streams.Out, "%s/%s: primary %s\n", g.Namespace, g.Name, orDash(g.Status.PrimaryReplica))
		for _, r := range rows {
			what := "could be promoted without loss"
			if !r.Ready {
				what = "refused  " + r.Refusal
			}
			fmt.Fprintf(o.Streams.Out, "  %-15s  %-10s  %s\n", r.Name, orDash(r.Role), what)
		}
	}
	if chosen == "" {
		return exit.Errorf(exit.Refused, "", "no replica could be promoted without loss now")
	}
	if o.Output == "" {
		fmt.Fprintf(o.Streams.Out, "would promote %s; nothing was changed\n", chosen)
	}
	return nil
}

func candidates(g *api.SQLServerAvailabilityGroup) []CandidateResult {
	var rows []CandidateResult
	for _, r := range g.Status.ReplicaStatuses {
		row := CandidateResult{Name: r.Name, Role: r.Role, Ready: r.FailoverReady, Refusal: r.FailoverRefusal}
		if r.Name == g.Status.PrimaryReplica {
			row.Ready, row.Refusal = false, "it is the primary"
		} else if !row.Ready && row.Refusal == "" {
			row.Refusal = "not seen yet"
		}
		rows = append(rows, row)
	}
	return rows
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// plan shows what will happen and asks.
func (o *Options) plan(g *api.SQLServerAvailabilityGroup, maxLoss int) error {
	to := orDash(o.To)
	if o.To == "" {
		to = "the best candidate"
	}
	w := o.Streams.ErrOut
	verb := "Switch over"
	if maxLoss != 0 {
		verb = "Force"
	}
	fmt.Fprintf(w, "%s %s/%s: %s -> %s\n", verb, g.Namespace, g.Name, orDash(g.Status.PrimaryReplica), to)
	for _, r := range candidates(g) {
		if (o.To == "" || r.Name == o.To) && r.Name != g.Status.PrimaryReplica {
			state := "holds every commit"
			if !r.Ready {
				state = "would be refused: " + r.Refusal
			}
			fmt.Fprintf(w, "  check    %s %s\n", r.Name, state)
		}
	}
	if maxLoss == 0 {
		fmt.Fprintln(w, "  effect   writes stop for a few seconds; sessions on the primary are closed")
		fmt.Fprintln(w, "  loss     none: refused if the target lacks anything at the moment of the move")
		repeat := "--yes"
		return confirm.YesNo(o.Streams, o.Yes, repeat)
	}
	loss := fmt.Sprintf("up to %d s of acknowledged commits", maxLoss)
	if maxLoss < 0 {
		loss = "an unknown number of acknowledged commits"
	}
	fmt.Fprintf(w, "  loss     %s; the other replicas are suspended until resumed\n", loss)
	if o.To == "" {
		return exit.Errorf(exit.Usage, "name it with --to", "a forced failover needs a target")
	}
	return confirm.Typed(o.Streams, o.Yes, o.Confirm, o.Name,
		fmt.Sprintf("Type the name %s to accept the loss: ", o.Name),
		fmt.Sprintf("--yes --confirm=%s", o.Name))
}

// request writes the annotation; what the user saw goes with it.
func (o *Options) request(ctx context.Context, c client.Client, g *api.SQLServerAvailabilityGroup, maxLoss int) error {
	id, err := o.NewID()
	if err != nil {
		return err
	}
	now := metav1.NewTime(o.Factory.Clock().Now().UTC().Truncate(time.Second))
	req := api.Request{ID: id, Kind: api.RequestFailover, Target: o.To, ExpectedPrimary: g.Status.PrimaryReplica,
		AllowDataLoss: maxLoss != 0, Reason: o.Reason, At: &now, By: o.whoAmI(ctx, c)}
	if maxLoss > 0 {
		req.MaxLossSeconds = maxLoss
	}
	patch := client.MergeFrom(g.DeepCopy())
	if g.Annotations == nil {
		g.Annotations = map[string]string{}
	}
	g.Annotations[api.AnnotationRequest] = req.String()
	if err := c.Patch(ctx, g, patch, client.FieldOwner("kubectl-mssql")); err != nil {
		return fmt.Errorf("request the failover of %s: %w", o.Name, err)
	}
	report := progress.New(o.Streams, o.Factory.Clock(), o.Quiet)
	defer report.Stop()
	report.Done("requested       %s", id)
	if !o.Wait {
		report.Step("waiting until the operator has accepted it")
	}
	return o.follow(ctx, c, req, report)
}

// follow prints each step once, until the operator has answered.
func (o *Options) follow(ctx context.Context, c client.Client, req api.Request, report *progress.Reporter) error {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	clk := o.Factory.Clock()
	ticker := clk.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	follow := fmt.Sprintf("the operator goes on; watch with: %s status %s -w", o.Factory.Name(), o.Name)
	printed, last := 0, "the operator has not answered yet"
	for {
		var g api.SQLServerAvailabilityGroup
		if err := c.Get(ctx, client.ObjectKey{Namespace: o.namespace, Name: o.Name}, &g); err == nil {
			if op := operation(&g, req.ID); op != nil {
				for ; printed < len(op.Steps); printed++ {
					last = op.Steps[printed].What
					report.Done("%s", last)
				}
				report.Step("%s: %s -> %s", op.Phase, op.From, op.Target)
			}
			if r := g.Status.LastRequest; r != nil && r.ID == req.ID {
				if r.Result != api.RequestRunning {
					return o.finish(&g, *r, printed, report)
				}
				if !o.Wait {
					report.Done("accepted; the operator goes on")
					return o.printResult(Result{RequestID: req.ID, From: req.ExpectedPrimary, To: r.Target, Result: r.Result})
				}
			}
		} else if ctx.Err() == nil {
			report.Step("cannot read the status: %v", err)
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return exit.Errorf(exit.Interrupted, follow, "interrupted at %q", last)
			}
			return exit.Errorf(exit.Timeout, follow, "no result after %s; last step: %s", o.Timeout, last)
		case <-ticker.C():
		}
	}
}

func operation(g *api.SQLServerAvailabilityGroup, id string) *api.OperationStatus {
	if g.Status.Authority == nil || g.Status.Authority.Operation == nil || g.Status.LastRequest == nil || g.Status.LastRequest.ID != id {
		return nil
	}
	return g.Status.Authority.Operation
}

func (o *Options) finish(g *api.SQLServerAvailabilityGroup, r api.LastRequestStatus, printed int, report *progress.Reporter) error {
	res := Result{RequestID: r.ID, To: r.Target, Result: r.Result, Reason: r.Reason, Message: r.Message}
	change := roleChange(g, r.ID)
	if change != nil {
		res.From, res.To = change.From, change.To
		for ; printed < len(change.Timeline); printed++ {
			report.Done("%s", change.Timeline[printed].What)
		}
		if !change.CompletedAt.IsZero() {
			res.WritesDown = change.CompletedAt.Sub(change.StartedAt.Time).Seconds()
		}
	}
	switch r.Result {
	case api.RequestDone:
		took := ""
		if change != nil {
			took = fmt.Sprintf(", the move took %.0f s", res.WritesDown)
		}
		report.Done("switched over   %s is primary%s", res.To, took)
		return o.printResult(res)
	case api.RequestRefused:
		res.ExitCode = int(exit.Refused)
		if err := o.printResult(res); err != nil {
			return err
		}
		return exit.Errorf(exit.Refused, fmt.Sprintf("%s failover %s --dry-run shows every replica", o.Factory.Name(), o.Name), "refused: %s", r.Message)
	}
	res.ExitCode = int(exit.Unexpected)
	if err := o.printResult(res); err != nil {
		return err
	}
	return exit.Errorf(exit.Unexpected, fmt.Sprintf("%s status %s", o.Factory.Name(), o.Name), "the move did not succeed: %s", r.Message)
}

func roleChange(g *api.SQLServerAvailabilityGroup, id string) *api.RoleChange {
	for i := range g.Status.History {
		if g.Status.History[i].RequestID == id {
			return &g.Status.History[i]
		}
	}
	return nil
}

func (o *Options) printResult(r Result) error {
	if o.Output != "json" {
		return nil
	}
	r.APIVersion, r.Kind, r.Name, r.Namespace = "cli.kubectl-mssql.io/v1", "OperationResult", o.Name, o.namespace
	if r.Replicas == nil {
		r.Replicas = []CandidateResult{}
	}
	enc := json.NewEncoder(o.Streams.Out)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}
