package agops_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/agops"
)

// silence makes the primary stop in the instant of its last renewal, and returns how long
// after that each thing is done by an engine that begins to act later.
func silence(t *testing.T, w *world, standby func(*agops.Engine), actsAfter time.Duration) (nominated, promoted time.Duration) {
	t.Helper()
	w.auth.Renewals = "the last one"
	lost := w.primary()
	lost.down = true
	e, last := w.engine(), w.clock.Now()
	if standby != nil {
		e.Sighted(w.auth.Clone())
	}
	for w.clock.Since(last) < actsAfter {
		w.clock.Step(2 * time.Second)
		if standby != nil {
			standby(e)
		}
	}
	for w.clock.Since(last) < 2*time.Minute {
		r, err := e.Step(context.Background(), key)
		if err != nil {
			t.Fatal(err)
		}
		at := w.clock.Since(last)
		for _, l := range w.log {
			if nominated == 0 && strings.Contains(l, "nominated") {
				nominated = at
			}
			if promoted == 0 && strings.Contains(l, "FAILOVER") {
				return nominated, at
			}
		}
		w.clock.Step(max(r.Next, 100*time.Millisecond))
	}
	t.Fatalf("nobody was promoted\n%s", strings.Join(w.log, "\n"))
	return 0, 0
}

func TestTheWaitIsNotBegunAnewByAnotherController(t *testing.T) {
	t.Parallel()
	look := func(e *agops.Engine) {
		if err := e.Look(context.Background(), key); err != nil {
			t.Fatal(err)
		}
	}
	w := settled(t)
	d := w.policy.Timing.D()
	nominated, promoted := silence(t, w, look, 10*time.Second)
	if nominated < w.policy.Timing.A+w.policy.Timing.L || nominated > d {
		t.Errorf("nominated %s after the last renewal, want between A + L and D", nominated)
	}
	if promoted < d || promoted > d+time.Second {
		t.Errorf("promoted %s after the last renewal, want %s and not more than a second later", promoted, d)
	}
	cold := settled(t)
	if _, p := silence(t, cold, nil, 10*time.Second); p < 10*time.Second+d {
		t.Errorf("a controller that has seen nothing promoted after %s: it cannot know that %s have passed", p, d)
	}
}

func TestAnEventNeverMakesAnElapsedTimeLonger(t *testing.T) {
	t.Parallel()
	w := settled(t)
	d := w.policy.Timing.D()
	renewed := w.clock.Now()
	// Renewals go on for a while; the events of the last ones are late.
	_, promoted := silence(t, w, func(e *agops.Engine) {
		switch since := w.clock.Since(renewed); {
		case since <= 8*time.Second:
			w.auth.Renewals = since.String()
		case since <= 12*time.Second:
			late := w.auth.Clone()
			late.Renewals = (since - 8*time.Second).String()
			e.Sighted(late)
		}
		old := ag.Authority{Exists: true, AGUID: w.policy.UID, Epoch: w.auth.Epoch - 1}
		e.Sighted(old)
	}, 12*time.Second)
	if promoted < 8*time.Second+d {
		t.Errorf("promoted %s after the last renewal, which is less than %s", promoted-8*time.Second, d)
	}
}

func TestTheWaitCountsFromTheLastRenewalThatPassesHaveSeen(t *testing.T) {
	t.Parallel()
	w := settled(t)
	e, d := w.engine(), w.policy.Timing.D()
	pass := func() time.Duration {
		r, err := e.Step(context.Background(), key)
		if err != nil {
			t.Fatal(err)
		}
		return max(r.Next, 100*time.Millisecond)
	}
	for range 10 { // renewals that nobody tells of but the passes themselves
		w.auth.Renewals = w.clock.Now().String()
		pass()
		w.clock.Step(2 * time.Second)
	}
	w.auth.Renewals = "the last one"
	pass()
	last := w.clock.Now()
	w.primary().down = true
	for w.clock.Since(last) < 2*time.Minute {
		w.clock.Step(pass())
		for _, l := range w.log {
			if strings.Contains(l, "FAILOVER") {
				if at := w.clock.Since(last); at < d || at > d+3*time.Second {
					t.Errorf("promoted %s after the last renewal, want %s and at most three seconds later", at, d)
				}
				return
			}
		}
	}
	t.Fatalf("nobody was promoted\n%s", strings.Join(w.log, "\n"))
}
