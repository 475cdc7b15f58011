// Package progress shows long work on standard error: a spinner on a terminal, one
// stamped line per change of state elsewhere. Data never goes through it.
package progress

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/briandowns/spinner"
	"k8s.io/utils/clock"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

// Reporter tells what a command is doing.
type Reporter struct {
	streams *iostreams.IOStreams
	clock   clock.PassiveClock
	quiet   bool

	mu   sync.Mutex
	spin *spinner.Spinner
	last string
	// now is what the spinner shows; it is read by the spinner's own goroutine.
	now atomic.Pointer[step]
}

type step struct {
	text  string
	since time.Time
}

// New makes a reporter; a quiet one prints only what Warn and Fail say.
func New(s *iostreams.IOStreams, c clock.PassiveClock, quiet bool) *Reporter {
	return &Reporter{streams: s, clock: c, quiet: quiet}
}

// Step says what is going on now. The same text again prints nothing.
func (r *Reporter) Step(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.quiet || text == r.last {
		return
	}
	r.last = text
	if !r.streams.StderrTTY {
		r.print(iostreams.MarkRunning, iostreams.StyleNone, text)
		return
	}
	r.now.Store(&step{text: text, since: r.clock.Now()})
	if r.spin != nil {
		return
	}
	set := spinner.CharSets[14]
	if r.streams.ASCII {
		set = spinner.CharSets[9]
	}
	r.spin = spinner.New(set, 120*time.Millisecond, spinner.WithWriter(r.streams.ErrOut))
	r.spin.PreUpdate = func(s *spinner.Spinner) {
		if now := r.now.Load(); now != nil {
			s.Suffix = " " + now.text + elapsed(r.clock.Since(now.since))
		}
	}
	r.spin.Suffix = " " + text
	r.spin.Start()
}

// elapsed is shown once a step has lasted long enough to be wondered about.
func elapsed(d time.Duration) string {
	if d < 2*time.Second {
		return ""
	}
	return "  " + d.Truncate(time.Second).String()
}

// Done ends the present step with a check mark.
func (r *Reporter) Done(format string, args ...any) {
	r.line(iostreams.MarkOK, iostreams.StyleGreen, format, args...)
}

// Warn prints a warning without ending anything.
func (r *Reporter) Warn(format string, args ...any) {
	r.line(iostreams.MarkWarn, iostreams.StyleYellow, format, args...)
}

// Fail ends the present step with a cross.
func (r *Reporter) Fail(format string, args ...any) {
	r.line(iostreams.MarkBad, iostreams.StyleRed, format, args...)
}

// Stop takes the spinner away.
func (r *Reporter) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopLocked()
}

func (r *Reporter) stopLocked() {
	if r.spin != nil {
		r.spin.Stop()
		r.spin = nil
	}
	r.last = ""
}

func (r *Reporter) line(m iostreams.Mark, st iostreams.Style, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopLocked()
	if r.quiet && m == iostreams.MarkOK {
		return
	}
	r.print(m, st, fmt.Sprintf(format, args...))
}

// print writes one line; where it ends up in a log, the line carries the time.
func (r *Reporter) print(m iostreams.Mark, st iostreams.Style, text string) {
	stamp := ""
	if !r.streams.StderrTTY {
		stamp = r.clock.Now().UTC().Format("15:04:05") + " "
	}
	fmt.Fprintf(r.streams.ErrOut, "%s%s %s\n", stamp, iostreams.Paint(r.streams.ColorErr(), st, r.streams.Mark(m)), text)
}
