package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/iostreams"
)

// show writes one screen, or with -w one after the other: on a terminal in place,
// elsewhere a new one with a time stamp when something changed; documents one a line.
func (o *Options) show(ctx context.Context, look func(context.Context) (screen, error)) error {
	if !o.Watch {
		s, err := look(ctx)
		if err != nil {
			return err
		}
		if err := o.write(s, false); err != nil {
			return err
		}
		return o.result(s)
	}
	if o.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Timeout)
		defer cancel()
	}
	clk := o.Factory.Clock()
	ticker := clk.NewTicker(o.Interval)
	defer ticker.Stop()
	w := &watcher{o: o, stamp: func() string { return clk.Now().UTC().Format(time.RFC3339) }}
	for {
		s, err := look(ctx)
		switch {
		case err == nil:
			if err := w.next(s); err != nil {
				return err
			}
			if level, _, _ := s.verdict(); o.Until == "healthy" && level == LevelOK {
				return o.result(s)
			}
		case ctx.Err() != nil:
		case w.last == nil || !passing(err):
			return err
		default:
			// The API server may come back: a watch does not end because of one failed look.
			fmt.Fprintf(o.Streams.ErrOut, "Not seen  %s\n", firstLine(err))
			w.lines = 0
		}
		select {
		case <-ctx.Done():
			return o.ended(ctx, w.last)
		case <-ticker.C():
		}
	}
}

// passing errors may go away by themselves.
func passing(err error) bool {
	switch exit.Of(err) {
	case exit.NotFound, exit.Forbidden, exit.Usage:
		return false
	default:
		return true
	}
}

// ended by time or by Ctrl-C, which is how a person ends a watch.
func (o *Options) ended(ctx context.Context, last screen) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil
	}
	what := "nothing was seen"
	if last != nil {
		_, _, what = last.verdict()
		what = "still, " + what
	}
	return exit.Errorf(exit.Timeout, "", "%s after %s", what, o.Timeout)
}

// write writes text or the document.
func (o *Options) write(s screen, compact bool) error {
	if o.Output.Text() {
		return s.text(o.Streams.Out)
	}
	return s.document(o.Streams.Out, compact)
}

// watcher writes one screen after the other.
type watcher struct {
	o     *Options
	stamp func() string
	last  screen
	key   string
	// lines that the newest screen took on the terminal.
	lines int
}

func (w *watcher) next(s screen) error {
	key := s.fingerprint()
	changed := w.last == nil || key != w.key
	w.last, w.key = s, key
	out := w.o.Streams.Out
	if !w.o.Output.Text() {
		if !changed {
			return nil
		}
		return s.document(out, true)
	}
	if !w.o.Streams.StdoutTTY {
		if !changed {
			return nil
		}
		if _, err := fmt.Fprintf(out, "\n-- %s\n", w.stamp()); err != nil {
			return err
		}
		return s.text(out)
	}
	var b bytes.Buffer
	if err := s.text(&b); err != nil {
		return err
	}
	if w.lines > 0 {
		// Up to the first line of the last screen, and away with everything below.
		fmt.Fprintf(out, "\x1b[%dA\r\x1b[J", w.lines)
	}
	w.lines = iostreams.Rows(b.String(), w.o.Streams.Width)
	_, err := out.Write(b.Bytes())
	return err
}

// fingerprint of one look: numbers and ages move all the time and are no news.
func (x *oneScreen) fingerprint() string {
	if i := x.seen.Instance; i != nil {
		i := *i
		i.Doubt, i.Operator, i.Reason = i.Doubt.still(), i.Operator.still(), withoutNumbers(i.Reason)
		return asJSON(i)
	}
	d := *x.seen.Group
	d.Doubt, d.Operator = d.Doubt.still(), d.Operator.still()
	d.WritesDownSeconds = nil
	d.Reason = withoutNumbers(d.Reason)
	d.Replicas = slices.Clone(d.Replicas)
	for i := range d.Replicas {
		r := &d.Replicas[i]
		r.SendQueue, r.RedoQueue, r.Lag, r.MeasuredAgo = nil, nil, nil, nil
		r.State, _, _ = strings.Cut(r.State, " ")
		if strings.HasPrefix(r.IfPromoted, "loses") {
			r.IfPromoted = "loses"
		}
	}
	d.Databases = slices.Clone(d.Databases)
	for i := range d.Databases {
		d.Databases[i].SendQueue, d.Databases[i].RedoQueue, d.Databases[i].Lag = nil, nil, nil
	}
	if d.Lease != nil {
		l := *d.Lease
		l.Renewed, l.Silent = nil, nil
		d.Lease = &l
	}
	if d.Waiting != nil {
		w := *d.Waiting
		w.LeftSeconds = nil
		d.Waiting = &w
	}
	if d.Operation != nil {
		op := *d.Operation
		op.Now = withoutNumbers(op.Now)
		d.Operation = &op
	}
	d.Advice, d.Seeding = nil, nil
	for _, s := range x.seen.Group.Seeding {
		d.Seeding = append(d.Seeding, Seeding{Replica: s.Replica, Done: s.Done, Total: s.Total})
	}
	d.Problems = slices.Clone(d.Problems)
	for i := range d.Problems {
		d.Problems[i].Message = withoutNumbers(d.Problems[i].Message)
	}
	return asJSON(d)
}

// still is without what changes with time alone.
func (x *Doubt) still() *Doubt {
	if x == nil {
		return nil
	}
	return &Doubt{Message: withoutNumbers(x.Message), LastPhase: x.LastPhase}
}

func (o *Operator) still() *Operator {
	if o == nil {
		return nil
	}
	s := *o
	s.Silent = nil
	return &s
}

func withoutNumbers(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r == '.' {
			return -1
		}
		return r
	}, s)
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
