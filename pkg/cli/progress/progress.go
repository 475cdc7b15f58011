// Package progress shows long work on standard error: a spinner on a terminal,
// one line per change of state elsewhere. Data never goes through it.
package progress

import (
	"fmt"
	"sync"
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

	mu      sync.Mutex
	spin    *spinner.Spinner
	last    string
	started time.Time
}

// New makes a reporter; a quiet one prints only what Done and Warn say.
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
		fmt.Fprintf(r.streams.ErrOut, "%s %s\n", r.streams.Mark(iostreams.MarkRunning), text)
		return
	}
	if r.spin == nil {
		set := spinner.CharSets[14]
		if r.streams.ASCII {
			set = spinner.CharSets[9]
		}
		r.started = r.clock.Now()
		r.spin = spinner.New(set, 120*time.Millisecond, spinner.WithWriter(r.streams.ErrOut))
		r.spin.Start()
	}
	r.spin.Suffix = " " + text
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
	mark := iostreams.Paint(r.streams.ColorErr(), st, r.streams.Mark(m))
	fmt.Fprintf(r.streams.ErrOut, "%s %s\n", mark, fmt.Sprintf(format, args...))
}
