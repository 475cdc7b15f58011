package status

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

// TextOptions of WriteText.
type TextOptions struct {
	Width   int // columns; 0 in a pipe: nothing is left out or cut
	Color   bool
	Verbose int
	Now     time.Time
	Self    string
}

// wide tells whether the 100-column form is used.
func (o TextOptions) wide() bool { return o.Width == 0 || o.Width >= 100 }

// WriteText writes the screen: verdict, operation, summary, replicas, databases, problems.
func WriteText(w io.Writer, s *iostreams.IOStreams, d Document, o TextOptions) error {
	t := &text{d: d, o: o, s: s}
	t.verdict()
	t.operation()
	if d.Operation == nil && api.Phase(d.Phase) != api.PhaseBlocked {
		t.summary()
	}
	t.refusals()
	t.replicas()
	t.databases()
	t.problems()
	t.next()
	_, err := io.WriteString(w, iostreams.Wrap(s.Plain(t.b.String()), o.Width))
	return err
}

type text struct {
	d Document
	o TextOptions
	s *iostreams.IOStreams
	b strings.Builder
}

func (t *text) paint(st iostreams.Style, s string) string { return iostreams.Paint(t.o.Color, st, s) }

func (t *text) line(format string, args ...any) { fmt.Fprintf(&t.b, format+"\n", args...) }

func levelStyle(l Level) (string, iostreams.Style) {
	switch l {
	case LevelOK:
		return "✔", iostreams.StyleGreen
	case LevelBad:
		return "✖", iostreams.StyleRed
	case LevelWarn:
	}
	return "!", iostreams.StyleYellow
}

var phaseWords = map[api.Phase]string{
	api.PhaseSwitchingOver: "Switching over", api.PhaseFailingOver: "Failing over", api.PhaseBlocked: "Failover blocked",
}

// verdict stands alone in a chat: mark, name, state, the one reason, writes, safe targets.
func (t *text) verdict() {
	d := t.d
	mark, st := levelStyle(d.Level)
	word := phaseWords[api.Phase(d.Phase)]
	if word == "" {
		word = d.Phase
	}
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	switch api.Phase(d.Phase) {
	case api.PhaseHealthy:
		if t.o.wide() {
			add("%d/%d replicas ready", d.ReadyReplicas, len(d.Replicas))
			add("primary %s", d.Primary)
			add("%d can take over without data loss", d.SafeTargets)
		} else {
			add("%d/%d ready", d.ReadyReplicas, len(d.Replicas))
			add("primary %s", d.Primary)
			add("%d safe targets", d.SafeTargets)
		}
	case api.PhaseSwitchingOver, api.PhaseFailingOver:
		if op := d.Operation; op != nil {
			add("%s -> %s", dash(op.From), dash(op.Target))
			if op.Started != nil {
				add("%s", age(t.o.Now.Sub(*op.Started)))
			}
		} else if d.Reason != "" {
			add("%s", d.Reason)
		}
		add("%s", t.writes())
	default:
		if d.Reason != "" {
			add("%s", d.Reason)
		}
		add("%s", t.writes())
		if api.Phase(d.Phase) == api.PhaseDegraded {
			if t.o.wide() {
				add("%d can take over without loss", d.SafeTargets)
			} else {
				add("%d safe", d.SafeTargets)
			}
		}
	}
	t.line("%s %s  %s   %s", t.paint(st, mark), d.Namespace+"/"+d.Name, t.paint(st, word), strings.Join(parts, " · "))
}

func (t *text) writes() string {
	switch {
	case t.d.Writable:
		return "writes fine"
	case t.d.WritesDownSeconds != nil:
		return "writes down for " + age(time.Duration(*t.d.WritesDownSeconds*float64(time.Second)))
	}
	return "no writes yet"
}

func (t *text) operation() {
	op := t.d.Operation
	if op == nil {
		return
	}
	t.line("")
	head := strings.ToUpper(op.Kind[:1]) + op.Kind[1:]
	at := ""
	if op.Started != nil {
		at = " · started " + op.Started.UTC().Format("15:04:05Z")
	}
	t.line("%s  %s -> %s%s · id %s", head, dash(op.From), dash(op.Target), at, op.ID)
	for _, s := range op.Steps {
		t.line("  %s %6s  %s", t.paint(iostreams.StyleGreen, "✔"), fmt.Sprintf("+%.0fs", s.After), s.What)
	}
	t.line("  %s         %s", "▸", t.paint(iostreams.StyleBold, phaseText(op)))
}

// phaseText says what the phase is about in a person's words.
func phaseText(op *Operation) string {
	switch op.Phase {
	case "demoting":
		return "taking " + op.From + " offline"
	case "fencing":
		return "making sure that the old primary cannot write"
	case "promoting":
		return "promoting " + op.Target
	case "publishing":
		return "pointing the write endpoint at " + op.Target
	case "aborting":
		return "taking the move back"
	case "creating":
		return "creating the group on " + op.Target
	}
	return op.Phase
}

func (t *text) summary() {
	d := t.d
	t.line("")
	t.line("Summary")
	row := func(label, format string, args ...any) { t.line("  %-18s  %s", label, fmt.Sprintf(format, args...)) }
	group := d.Group
	if d.Sequence > 0 {
		if t.o.wide() {
			group += fmt.Sprintf(" · configuration sequence %d, same on %d of %d", d.Sequence, d.SequenceAgree, len(d.Replicas))
		} else {
			group += fmt.Sprintf(" · sequence %d, %d of %d agree", d.Sequence, d.SequenceAgree, len(d.Replicas))
		}
	}
	row("Availability group", "%s", group)
	primary := dash(d.Primary)
	if d.PrimarySince != nil {
		primary += " for " + age(t.o.Now.Sub(*d.PrimarySince))
		if t.o.wide() {
			primary += fmt.Sprintf(" (since %s, %s)", d.PrimarySince.UTC().Format("2006-01-02 15:04:05Z"), d.PrimaryBy)
		} else {
			primary += fmt.Sprintf(" (%s)", d.PrimaryBy)
		}
	}
	row("Primary", "%s", primary)
	auto := d.AutomaticFailover
	if k := d.CommitsWaitFor; k != nil {
		if *k == 0 {
			auto += " · commits do not wait for a secondary"
		} else if t.o.wide() {
			auto += fmt.Sprintf(" · every commit waits for %d in-sync secondar%s", *k, plural(*k))
		} else {
			auto += fmt.Sprintf(" · commits wait for %d in-sync secondar%s", *k, plural(*k))
		}
	}
	row("Automatic failover", "%s", auto)
	if t.o.wide() && d.Primary != "" {
		readers := []string{}
		for _, r := range d.Replicas {
			if r.Role == "secondary" && r.Ready && r.Mode != "config" {
				readers = append(readers, r.Name)
			}
		}
		row("Endpoints", "write %s -> %s · read %s -> %s", d.WriteEndpoint, d.Primary, d.ReadEndpoint, dash(strings.Join(readers, ", ")))
	} else {
		row("Endpoints", "write %s · read %s", d.WriteEndpoint, d.ReadEndpoint)
	}
	for _, r := range d.Replicas {
		if r.Fenced {
			row("Fenced", "%s", r.Name)
		}
	}
	row("Versions", "SQL Server %s · plugin %s", dash(d.ServerVersion), d.PluginVersion)
}

func plural(n int32) string {
	if n == 1 {
		return "y"
	}
	return "ies"
}

// refusals say why the operator stopped.
func (t *text) refusals() {
	if api.Phase(t.d.Phase) != api.PhaseBlocked || len(t.d.Refusals) == 0 {
		return
	}
	t.line("")
	t.line("Why the operator stopped")
	for _, r := range t.d.Refusals {
		t.line("  %-9s  %s", dash(r.Replica), r.Message)
	}
}

func (t *text) replicas() {
	t.line("")
	t.line("Replicas")
	if t.o.Width > 0 && t.o.Width < 72 {
		for _, r := range t.d.Replicas {
			t.line("  %s", t.paint(iostreams.StyleBold, r.Name))
			t.line("    role         %s (%s)", r.Role, r.Mode)
			t.line("    state        %s", r.State)
			t.line("    if promoted  %s", r.IfPromoted)
			t.line("    lag          %s", seconds(r.Lag, r))
			t.line("    node         %s", dash(r.Node))
		}
		return
	}
	header := []string{"NAME", "ROLE", "MODE", "STATE", "IF PROMOTED", "SEND Q", "REDO Q", "LAG", "READY", "AGE", "NODE"}
	keep := func(col string) bool {
		return t.o.wide() || (col != "SEND Q" && col != "READY" && col != "AGE")
	}
	rows := [][]string{}
	for _, r := range t.d.Replicas {
		since := "?"
		if r.Since != nil {
			since = age(t.o.Now.Sub(*r.Since))
		}
		ready := "no"
		if r.Ready {
			ready = "yes"
		}
		rows = append(rows, []string{r.Name, r.Role, r.Mode, dash(r.State), r.IfPromoted,
			bytesText(r.SendQueue, r), bytesText(r.RedoQueue, r), seconds(r.Lag, r), ready, since, dash(r.Node)})
	}
	t.table(header, rows, keep, func(col, cell string, row int) string {
		switch {
		case col == "ROLE" && (cell == "PRIMARY" || cell == "RESOLVING"):
			return t.paint(iostreams.StyleBold, cell)
		case col == "IF PROMOTED" && cell == "no loss":
			return t.paint(iostreams.StyleGreen, cell)
		case col == "IF PROMOTED" && strings.HasPrefix(cell, "los"):
			return t.paint(iostreams.StyleRed, cell)
		case col == "IF PROMOTED" && cell == "never", cell == "?", col == "STATE" && t.d.Replicas[row].Fenced:
			return t.paint(iostreams.StyleYellow, cell)
		case col == "MODE" || col == "AGE" || col == "NODE" || cell == "-":
			return t.paint(iostreams.StyleDim, cell)
		}
		return cell
	})
}

// table writes aligned columns without borders, two spaces apart, indented by two.
func (t *text) table(header []string, rows [][]string, keep func(string) bool, paint func(col, cell string, row int) string) {
	right := map[string]bool{"SEND Q": true, "REDO Q": true, "LAG": true}
	var cols []string
	var align []tw.Align
	for _, h := range header {
		if keep(h) {
			cols = append(cols, h)
			if right[h] {
				align = append(align, tw.AlignRight)
			} else {
				align = append(align, tw.AlignLeft)
			}
		}
	}
	var b strings.Builder
	table := tablewriter.NewTable(&b,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders:  tw.BorderNone,
			Settings: tw.Settings{Lines: tw.LinesNone, Separators: tw.SeparatorsNone},
		})),
		tablewriter.WithConfig(tablewriter.Config{
			Header: tw.CellConfig{Formatting: tw.CellFormatting{AutoFormat: tw.Off, AutoWrap: tw.WrapNone},
				Alignment: tw.CellAlignment{PerColumn: align}, Padding: tw.CellPadding{Global: tw.Padding{Left: "", Right: "  ", Overwrite: true}}},
			Row: tw.CellConfig{Formatting: tw.CellFormatting{AutoWrap: tw.WrapNone},
				Alignment: tw.CellAlignment{PerColumn: align}, Padding: tw.CellPadding{Global: tw.Padding{Left: "", Right: "  ", Overwrite: true}}},
		}))
	table.Header(cols)
	for i, r := range rows {
		var cells []string
		for j, h := range header {
			if keep(h) {
				cells = append(cells, paint(h, r[j], i))
			}
		}
		if err := table.Append(cells); err != nil {
			t.line("  %s", strings.Join(r, "  "))
		}
	}
	if err := table.Render(); err != nil {
		t.line("  %v", err)
		return
	}
	for _, l := range strings.Split(strings.TrimRight(b.String(), "\n"), "\n") {
		t.line("  %s", strings.TrimRight(l, " "))
	}
}

func (t *text) databases() {
	d := t.d
	t.line("")
	if d.DatabasesTotal == 0 {
		t.line("Databases  none in the group")
		return
	}
	where := ""
	if t.o.wide() && d.DatabasesInStep == d.DatabasesTotal {
		where = " on every replica"
	}
	hint := ""
	if t.o.Verbose == 0 && d.DatabasesInStep == d.DatabasesTotal {
		hint = "   (-v lists them)"
	}
	t.line("Databases  %d of %d synchronized%s%s", d.DatabasesInStep, d.DatabasesTotal, where, hint)
	for _, db := range d.Databases {
		inStep := db.Sync == "SYNCHRONIZED"
		if inStep && t.o.Verbose == 0 {
			continue
		}
		note := ""
		if db.Message != "" {
			note = "  " + db.Message
		}
		t.line("  %s on %s: %s, %s%s", db.Name, db.Replica, dash(strings.ToLower(db.State)), dash(strings.ToLower(db.Sync)), note)
	}
	if t.o.Verbose > 0 {
		t.line("")
		t.line("Conditions")
		for _, c := range d.Conditions {
			t.line("  %-28s %-8s %s  %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
}

func (t *text) problems() {
	if len(t.d.Problems) > 0 {
		t.line("")
		t.line("Problems")
		for _, p := range t.d.Problems {
			t.line("  %s  %s", t.paint(iostreams.StyleYellow, p.Code), p.Message)
			for _, f := range p.Fix {
				t.line("               %s", f)
			}
		}
	}
	for _, e := range t.d.Errors {
		t.line("")
		t.line("Not seen  %s", e)
	}
}

func (t *text) next() {
	switch api.Phase(t.d.Phase) {
	case api.PhaseFailingOver, api.PhaseSwitchingOver, api.PhaseBootstrapping, api.PhaseStarting:
		t.line("")
		t.line("Next  Nothing to do. Follow with: %s status %s -w", t.o.Self, t.d.Name)
	}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// bytesText prints a queue: a dash where there is none, a question mark where it was not measured.
func bytesText(v *int64, r ReplicaRow) string {
	if v == nil {
		if r.Role == "PRIMARY" || r.Mode == "config" {
			return "-"
		}
		return "?"
	}
	units := []string{"B", "KB", "MB", "GB", "TB"}
	f, i := float64(*v), 0
	for f >= 1000 && i < len(units)-1 {
		f, i = f/1024, i+1
	}
	if i == 0 || f >= 10 {
		return fmt.Sprintf("%.0f%s", f, units[i])
	}
	return fmt.Sprintf("%.1f%s", f, units[i])
}

func seconds(v *int64, r ReplicaRow) string {
	if v == nil {
		if r.Role == "PRIMARY" || r.Mode == "config" {
			return "-"
		}
		return "?"
	}
	return age(time.Duration(*v) * time.Second)
}

// age prints a duration as people say it: 8s, 5m10s, 3h12m, 41d.
func age(d time.Duration) string {
	d = max(d, 0).Round(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d/time.Second))
	case d < 10*time.Minute:
		return fmt.Sprintf("%dm%ds", int(d/time.Minute), int(d%time.Minute/time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d/time.Minute))
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d/time.Hour), int(d%time.Hour/time.Minute))
	}
	return fmt.Sprintf("%dd", int(d/(24*time.Hour)))
}
