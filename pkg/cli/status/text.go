package status

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/reasons"
)

// TextOptions of WriteText.
type TextOptions struct {
	Width   int // columns; 0 in a pipe: nothing is left out or cut
	Color   bool
	Verbose int
	Now     time.Time
	Self    string
	NS      string // " -n prod" when the user has to say so
}

// wide tells whether the 100-column form is used.
func (o TextOptions) wide() bool { return o.Width == 0 || o.Width >= 100 }

// narrow tells whether the table becomes one record per replica.
func (o TextOptions) narrow() bool { return o.Width > 0 && o.Width < 72 }

// WriteText writes the screen: verdict, operation, summary, replicas, databases,
// problems; the last lines stand next to the prompt, so advice comes last.
func WriteText(w io.Writer, s *iostreams.IOStreams, d Document, o TextOptions) error {
	t := &text{d: d, o: o, s: s}
	t.verdict()
	t.operation()
	t.seeding()
	if d.Operation == nil && api.Phase(d.Phase) != api.PhaseBlocked {
		t.summary()
	}
	if d.Operation == nil {
		t.goesOn()
	}
	t.refusals()
	t.replicas()
	t.databases()
	t.details()
	t.problems()
	t.advice()
	t.unseen()
	t.next()
	return t.flush(w)
}

type text struct {
	d Document
	o TextOptions
	s *iostreams.IOStreams
	b strings.Builder
}

func (t *text) flush(w io.Writer) error {
	_, err := io.WriteString(w, iostreams.Wrap(t.s.Plain(t.b.String()), t.o.Width))
	return err
}

func (t *text) paint(st iostreams.Style, s string) string { return iostreams.Paint(t.o.Color, st, s) }

func (t *text) line(format string, args ...any) { fmt.Fprintf(&t.b, format+"\n", args...) }

// section starts a paragraph.
func (t *text) section(title string) { t.line("\n%s", title) }

func (t *text) row(label, format string, args ...any) {
	t.line("  %-18s  %s", label, fmt.Sprintf(format, args...))
}

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

func phaseWord(phase string) string {
	switch api.Phase(phase) {
	case api.PhaseSwitchingOver:
		return "Switching over"
	case api.PhaseFailingOver:
		return "Failing over"
	case api.PhaseBlocked:
		return "Failover blocked"
	default:
		return phase
	}
}

// verdict stands alone in a chat: mark, name, state, the one reason, writes, safe
// targets. In a terminal the reason is cut so that it stays one line.
func (t *text) verdict() {
	d := t.d
	reason, parts := "", []string{}
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
			add("%s", safeTargets(d.SafeTargets))
		}
	case api.PhaseSwitchingOver, api.PhaseFailingOver:
		t.moving(add, &reason)
	case api.PhaseBlocked:
		add("%s", t.writes())
		reason = blockedText(d, t.o.wide())
	default:
		reason = headline(d.Reason)
		if d.Doubt != nil && !t.o.wide() {
			reason = d.Doubt.Message
		}
		add("%s", t.writes())
		if api.Phase(d.Phase) == api.PhaseDegraded {
			if t.o.wide() {
				add("%d can take over without loss", d.SafeTargets)
			} else {
				add("%s", safeTargets(d.SafeTargets))
			}
		}
	}
	mark, st := levelStyle(d.Level)
	t.oneLine(mark, st, d.Namespace+"/"+d.Name, phaseWord(d.Phase), reason, parts, api.Phase(d.Phase) == api.PhaseBlocked)
}

// oneLine writes a verdict; the reason stands first unless it is told to stand last.
func (t *text) oneLine(mark string, st iostreams.Style, name, word, reason string, parts []string, last bool) {
	rest := strings.Join(parts, " · ")
	if reason != "" {
		room := t.o.Width - len([]rune(mark+" "+name+"  "+word+"   "+rest)) - 3
		if t.o.Width > 0 {
			reason = end(reason, max(room, 16))
		}
		switch {
		case rest == "":
			rest = reason
		case last:
			rest += " · " + reason
		default:
			rest = reason + " · " + rest
		}
	}
	t.line("%s", strings.TrimRight(fmt.Sprintf("%s %s  %s   %s", t.paint(st, mark), name, t.paint(st, word), rest), " "))
}

func safeTargets(n int) string {
	if n == 1 {
		return "1 safe target"
	}
	return fmt.Sprintf("%d safe targets", n)
}

func (t *text) moving(add func(string, ...any), reason *string) {
	op := t.d.Operation
	if op == nil {
		*reason = headline(t.d.Reason)
		add("%s", t.writes())
		return
	}
	add("%s -> %s", dash(op.From), dash(op.Target))
	if op.Started != nil {
		run := age(t.o.Now.Sub(*op.Started))
		if t.o.wide() && op.Deadline != nil {
			run += " of at most " + age(op.Deadline.Sub(*op.Started))
		}
		add("%s", run)
	}
	add("%s", t.writes())
}

// blockedText is the reason in its own words, or its name where there is no room.
func blockedText(d Document, wide bool) string {
	e, ok := reasons.Find(d.BlockedReason)
	switch {
	case !ok:
		return headline(d.Reason)
	case !wide:
		return e.Name
	}
	summary := strings.TrimSuffix(e.Summary, ".")
	return strings.ToLower(summary[:1]) + summary[1:]
}

func (t *text) writes() string {
	switch {
	case t.d.Writable:
		return "writes fine"
	case t.d.WritesDownSeconds != nil && t.o.wide():
		return "writes down for " + age(time.Duration(*t.d.WritesDownSeconds*float64(time.Second)))
	case t.d.WritesDownSeconds != nil:
		return "writes down " + age(time.Duration(*t.d.WritesDownSeconds*float64(time.Second)))
	case !t.d.WritesKnown:
		return "writes not known"
	case t.d.Phase != PhaseUnattended && t.d.Phase != PhaseUnknown:
	case !t.answered():
		return "no server answers"
	default:
		return "writes down"
	}
	return "no writes yet"
}

// answered tells whether any server said what it is.
func (t *text) answered() bool {
	return slices.ContainsFunc(t.d.Replicas, func(r ReplicaRow) bool { return r.Role != "?" })
}

func (t *text) summary() {
	d := t.d
	t.section("Summary")
	group := d.Group
	if d.Sequence > 0 {
		if t.o.wide() {
			group += fmt.Sprintf(" · configuration sequence %d, same on %d of %d", d.Sequence, d.SequenceAgree, len(d.Replicas))
		} else {
			group += fmt.Sprintf(" · sequence %d, %d of %d agree", d.Sequence, d.SequenceAgree, len(d.Replicas))
		}
	}
	t.row("Availability group", "%s", group)
	primary := dash(d.Primary)
	switch {
	case d.PrimarySince != nil && t.o.wide():
		primary += fmt.Sprintf(" for %s (since %s, %s)", age(t.o.Now.Sub(*d.PrimarySince)), d.PrimarySince.Format("2006-01-02 15:04:05Z"), d.PrimaryBy)
	case d.PrimarySince != nil:
		primary += fmt.Sprintf(" for %s (%s)", age(t.o.Now.Sub(*d.PrimarySince)), d.PrimaryBy)
	case d.Primary == "" && d.LastPrimary != "":
		primary += " (last: " + d.LastPrimary + ")"
	}
	t.row("Primary", "%s", primary)
	t.row("Automatic failover", "%s", t.automatic())
	t.fences()
	t.endpoints()
	if api.Phase(d.Phase) == api.PhaseFailingOver {
		return // what goes on needs the room
	}
	versions := "SQL Server " + dash(d.ServerVersion)
	if d.Operator != nil && d.Operator.Version != "" {
		versions += " · operator " + d.Operator.Version
	}
	t.row("Versions", "%s · plugin %s", versions, d.PluginVersion)
}

func (t *text) automatic() string {
	auto := t.d.AutomaticFailover
	k := t.d.CommitsWaitFor
	switch {
	case k == nil:
	case *k == 0:
		auto += " · commits do not wait for a secondary"
	case auto != "armed":
		auto += fmt.Sprintf(" · commits wait for %d secondar%s", *k, plural(*k))
	case t.o.wide():
		auto += fmt.Sprintf(" · every commit waits for %d in-sync secondar%s", *k, plural(*k))
	default:
		auto += fmt.Sprintf(" · commits wait for %d in-sync secondar%s", *k, plural(*k))
	}
	return auto
}

func (t *text) fences() {
	for _, r := range t.d.Replicas {
		if !r.Fenced {
			continue
		}
		text := r.Name
		if r.FencedBy != "" {
			text += " by " + r.FencedBy
		}
		if r.FencedSince != nil {
			text += " " + age(t.o.Now.Sub(*r.FencedSince)) + " ago"
		}
		switch {
		case r.FenceReason == "":
			t.row("Fenced", "%s", text)
		case t.o.wide():
			t.row("Fenced", "%s: %q", text, r.FenceReason)
		default:
			t.row("Fenced", "%s", text)
			t.row("", "%q", r.FenceReason)
		}
	}
}

func (t *text) endpoints() {
	d := t.d
	if !t.o.wide() || d.Primary == "" {
		t.row("Endpoints", "write %s · read %s", d.WriteEndpoint, d.ReadEndpoint)
		return
	}
	readers := []string{}
	for _, r := range d.Replicas {
		if r.Role == "secondary" && r.Ready && r.Mode != "config" {
			readers = append(readers, r.Name)
		}
	}
	t.row("Endpoints", "write %s -> %s · read %s -> %s", d.WriteEndpoint, d.Primary, d.ReadEndpoint, dash(strings.Join(readers, ", ")))
}

func plural(n int32) string {
	if n == 1 {
		return "y"
	}
	return "ies"
}

func (t *text) problems() {
	var list []Problem
	for _, p := range t.d.Problems {
		if len(t.d.Refusals) > 0 && t.d.BlockedReason != "" && p.Reason == t.d.BlockedReason {
			continue // "Why the operator stopped" has said it
		}
		list = append(list, p)
	}
	if len(list) == 0 {
		return
	}
	t.section("Problems")
	for _, p := range list {
		t.line("  %s  %s", t.paint(iostreams.StyleYellow, p.Code), strings.ReplaceAll(p.Message, "\n", "\n             "))
		for _, f := range p.Fix {
			t.line("               %s", f)
		}
	}
}

func (t *text) advice() {
	if len(t.d.Advice) == 0 {
		return
	}
	t.section("What you can do, safest first")
	for i, a := range t.d.Advice {
		t.line("  %d  %s", i+1, a.Text)
		for _, l := range append(append([]string{}, a.Details...), a.Commands...) {
			t.line("       %s", l)
		}
	}
}

// unseen leaves out the managers of replicas that are known to be down: the table says so.
func (t *text) unseen() {
	down := map[string]bool{}
	for _, r := range t.d.Replicas {
		down["manager/"+r.Name] = !r.Ready
	}
	first := true
	for _, e := range t.d.Errors {
		if down[e.Source] && t.o.Verbose == 0 {
			continue
		}
		if first {
			t.line("")
			first = false
		}
		t.line("Not seen  %s", e.Message)
	}
}

func (t *text) next() {
	moving := []api.Phase{api.PhaseFailingOver, api.PhaseSwitchingOver, api.PhaseBootstrapping, api.PhaseStarting}
	if slices.Contains(moving, api.Phase(t.d.Phase)) {
		t.line("\nNext  Nothing to do. Follow with: %s status %s -w%s", t.o.Self, t.d.Name, t.o.NS)
	}
}
