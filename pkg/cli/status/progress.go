package status

import (
	"strings"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/reasons"
)

// progress is what the operator says of its next step. While no operator runs, that is
// what one said who is gone.
func (d *Document) progress(in Input) {
	if d.byServers(in) {
		return
	}
	st := &in.Group.Status
	d.Elected, d.Waiting = st.Elected, waitOf(in, st.Waiting)
	for _, f := range st.Findings {
		rule, message := ruleOf(f.Message)
		d.Findings = append(d.Findings, Finding{f.Replica, rule, reasons.Code(rule), message})
	}
}

func waitOf(in Input, w *api.WaitStatus) *Waiting {
	if w == nil {
		return nil
	}
	out := &Waiting{For: w.For}
	if w.Until != nil {
		left := max(0, w.Until.Sub(in.Now).Seconds())
		out.Until, out.LeftSeconds = instant(w.Until.Time), &left
	}
	return out
}

// ruleOf splits "R13: no answer" into the rule and the sentence.
func ruleOf(text string) (rule, message string) {
	rule, message, ok := strings.Cut(text, ": ")
	if !ok || !strings.HasPrefix(rule, "R") || reasons.Code(rule) == "" {
		return "", text
	}
	return rule, message
}

// sentence is what is waited for, with the time that is left.
func (w Waiting) sentence() string {
	switch {
	case w.LeftSeconds == nil:
		return "for " + w.For
	case *w.LeftSeconds < 1:
		return "for " + w.For + ", any moment now"
	}
	return "for " + w.For + ", " + seconds(int64(*w.LeftSeconds)) + " left"
}

// sentence names the rule that it rests on.
func (f Finding) sentence() string {
	if f.Rule == "" {
		return f.Message
	}
	return f.Rule + ": " + f.Message
}

// goesOn says what was seen and what is waited for. A move under way has its own
// paragraph, to which this is added.
func (t *text) goesOn() {
	d := t.d
	moving := d.Operation != nil
	findings := d.Findings
	if api.Phase(d.Phase) == api.PhaseBlocked && !moving {
		findings = nil // "Why the operator stopped" says them
	}
	if len(findings) == 0 && (d.Waiting == nil || d.Waiting.Until == nil && !moving) {
		return
	}
	width := len("waiting")
	for _, r := range d.Replicas {
		width = max(width, len(r.Name))
	}
	say := func(who, what string) { t.line("  %-*s  %s", width, who, what) }
	if moving {
		say = func(who, what string) {
			t.line("  %s %6s  %s", t.paint(iostreams.StyleDim, "·"), "", strings.TrimSpace(who+" "+what))
		}
	} else {
		t.section("What goes on")
	}
	for _, f := range findings {
		who := orWord(f.Replica, "group")
		if moving {
			who = ""
			if f.Replica != "" && !strings.Contains(f.Message, f.Replica) {
				who = f.Replica + ":"
			}
		}
		say(who, f.sentence())
	}
	if d.Waiting != nil {
		say("waiting", d.Waiting.sentence())
	}
}
