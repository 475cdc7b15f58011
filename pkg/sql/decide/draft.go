package decide

import (
	"fmt"
	"slices"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// draft is a decision in the making.
type draft struct {
	v *view
	d ag.Decision
	// swapped is set once a Swap was asked for: at most one a pass, and upkeep leaves the record alone.
	swapped bool
	// disrupted is set once a disruptive action was asked for: at most one a pass.
	disrupted bool
	// stopped: not even upkeep may run.
	stopped bool
	// labelled are the replicas whose label was decided.
	labelled []string
}

func newDraft(v *view) *draft {
	return &draft{v: v, d: ag.Decision{Memory: cloneMemory(v.in.Memory), Watch: v.watch}}
}

// do adds an action. A second disruptive one, or a second swap, is refused and told.
func (d *draft) do(a ag.Action) bool {
	if _, swap := a.(ag.Swap); swap {
		if d.swapped {
			return false
		}
		d.swapped = true
	}
	if a.Disruptive() {
		if d.disrupted {
			return false
		}
		d.disrupted = true
	}
	d.d.Actions = append(d.d.Actions, a)
	return true
}

// label sets or takes a role label, once a pass for each replica.
func (d *draft) label(replica string, role ag.Role) {
	if contains(d.labelled, replica) {
		return
	}
	d.labelled = append(d.labelled, replica)
	d.do(ag.SetRoleLabel{Replica: replica, Role: role})
}

func (d *draft) block(reason string, rule ag.Rule, replica, format string, args ...any) {
	b := ag.Block{Reason: reason, Rule: rule, Replica: replica, Message: fmt.Sprintf(format, args...)}
	for _, x := range d.d.Blocks {
		if x == b {
			return
		}
	}
	d.d.Blocks = append(d.d.Blocks, b)
}

// blocked tells whether there is a block for this reason.
func (d *draft) blocked(reason string) bool {
	return slices.ContainsFunc(d.d.Blocks, func(b ag.Block) bool { return b.Reason == reason })
}

func (d *draft) find(replica string, s ag.Symptom, format string, args ...any) {
	f := ag.Finding{Replica: replica, Symptom: s, Message: fmt.Sprintf(format, args...)}
	for _, x := range d.d.Findings {
		if x == f {
			return
		}
	}
	d.d.Findings = append(d.d.Findings, f)
}

func (d *draft) event(kind, reason, format string, args ...any) {
	d.d.Events = append(d.d.Events, ag.Event{Type: kind, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// wait asks to be called again after that long at the latest; the shortest wish wins.
func (d *draft) wait(in time.Duration, format string, args ...any) {
	if in < time.Second {
		in = time.Second
	}
	until := d.v.now.Add(in)
	if d.d.Wait == nil || until.Before(d.d.Wait.Until) {
		d.d.Wait = &ag.Wait{Until: until, For: fmt.Sprintf(format, args...)}
	}
}

// due asks to be called again as soon as that time has passed since this pass began:
// nobody can write meanwhile, and a pass that begins a moment earlier is one for nothing.
func (d *draft) due(in time.Duration, format string, args ...any) {
	d.wait(in, format, args...)
	if w := d.d.Wait; w.For == fmt.Sprintf(format, args...) {
		w.Left = in
	}
}

// soon asks to be called again at the next beat.
func (d *draft) soon(format string, args ...any) { d.wait(time.Second, format, args...) }

func (d *draft) decision() ag.Decision { return d.d }
