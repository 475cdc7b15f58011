package change

import (
	"fmt"
	"io"
	"strings"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/confirm"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

// Level of the ladder: how much a user must say before it is done.
type Level int

const (
	// Reversible, without an outage: it is done, and the way back is shown.
	Reversible Level = 1
	// Outage is short: y or --yes.
	Outage Level = 2
	// Copy: one copy, or the last one that could take over, is given up: its name is typed.
	Copy Level = 3
	// Loss of acknowledged data, or of all copies: the group's name is typed, and --yes alone is never enough.
	Loss Level = 4
)

// Line of a plan: a short label and a sentence.
type Line struct {
	Label string `json:"label"`
	Text  string `json:"text"`
}

// Plan is what a user is shown before anything is done.
type Plan struct {
	Title string
	Lines []Line
	Level Level
	// Word to be typed at levels Copy and Loss.
	Word string
	// Undo is the command that takes it back, at level Reversible.
	Undo string
}

// Add a line.
func (p *Plan) Add(label, format string, args ...any) {
	p.Lines = append(p.Lines, Line{label, fmt.Sprintf(format, args...)})
}

// Raise the level, never lower it.
func (p *Plan) Raise(l Level) { p.Level = max(p.Level, l) }

// Write the screen.
func (p *Plan) Write(w io.Writer, s *iostreams.IOStreams) {
	fmt.Fprintln(w, p.Title)
	width := planWidth
	if s.Width > 0 {
		width = max(min(width, s.Width-12), 30)
	}
	for _, l := range p.Lines {
		for i, part := range strings.Split(iostreams.Wrap(l.Text, width), "\n") {
			label := l.Label
			if i > 0 {
				label = ""
			}
			fmt.Fprintln(w, s.Plain(fmt.Sprintf("  %-8s %s", label, part)))
		}
	}
}

// planWidth leaves room for the label in 100 columns.
const planWidth = 88

// Ask shows the plan and asks as its level wants it. At level Reversible nothing is asked.
func (c *Call) Ask(p *Plan) error {
	if p.Level == Reversible {
		if !c.Quiet {
			p.Write(c.Streams.ErrOut, c.Streams)
		}
		return nil
	}
	p.Write(c.Streams.ErrOut, c.Streams)
	switch p.Level {
	case Copy:
		return confirm.Typed(c.Streams, c.Yes && c.Confirm == p.Word, c.Confirm, p.Word,
			fmt.Sprintf("Type %s to go on: ", p.Word), fmt.Sprintf("--yes --confirm=%s", p.Word))
	case Loss:
		return confirm.Typed(c.Streams, c.Confirm == p.Word, c.Confirm, p.Word,
			fmt.Sprintf("Type the name %s to accept the loss: ", p.Word), fmt.Sprintf("--confirm=%s", p.Word))
	case Reversible, Outage:
	}
	return confirm.YesNo(c.Streams, c.Yes, "--yes")
}

// ShowDryRun writes the plan to standard output, and what would be sent.
func (c *Call) ShowDryRun(p *Plan, r *Result, request string) {
	r.Plan, r.Result = p.Lines, ResultDryRun
	if !c.Output.Text() {
		return
	}
	p.Write(c.Streams.Out, c.Streams)
	asks := map[Level]string{
		Reversible: "nothing would be asked", Outage: "a y, or --yes, would be asked for",
		Copy: fmt.Sprintf("%s would have to be typed, or --yes --confirm=%s", p.Word, p.Word),
		Loss: fmt.Sprintf("%s would have to be typed, or --confirm=%s", p.Word, p.Word),
	}
	fmt.Fprintf(c.Streams.Out, "%s; nothing was changed\n", asks[p.Level])
	if DryRun(c.DryRun) == DryRunClient && request != "" {
		fmt.Fprintf(c.Streams.Out, "would send: %s\n", request)
	}
}

// Expected says how long writes were down at the newest planned move, in the user's words.
func Expected(g *api.SQLServerAvailabilityGroup) string {
	for _, h := range g.Status.History {
		if h.Kind == "planned" && h.Result == "done" && !h.CompletedAt.IsZero() {
			return fmt.Sprintf("for about %.0f s, as last time", max(1, h.CompletedAt.Sub(h.StartedAt.Time).Seconds()))
		}
	}
	return "for a few seconds"
}

// MoveEffect says what a rolling change does to writes.
func MoveEffect(g *api.SQLServerAvailabilityGroup) string {
	if on := g.Spec.PreStopFailover.Enabled; on != nil && !*on {
		return fmt.Sprintf("preStopFailover is off: the pod of %s ends without a hand-over, and writes stop until an automatic failover; move it first: failover %s", g.Status.PrimaryReplica, g.Name)
	}
	return fmt.Sprintf("one switchover: writes stop %s; sessions on %s are closed", Expected(g), g.Status.PrimaryReplica)
}
