package main

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLedger_KeepsRangesGapsAndUnknownRows(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	l := &ledger{client: "a"}
	l.ack(1, at)
	l.ack(2, at.Add(100*time.Millisecond))
	l.fail(3, true, errors.New("broken"), at.Add(time.Second))
	l.fail(4, false, errors.New("refused"), at.Add(2*time.Second))
	l.ack(4, at.Add(5*time.Second))
	got := l.report(at.Add(6 * time.Second))
	want := Report{Client: "a", Acknowledged: []Range{{1, 2}, {4, 4}}, Count: 3, Unknown: []int64{3},
		Gaps: []Gap{{at.Add(100 * time.Millisecond), 4.9, at.Add(time.Second)}}, LongestGap: 4.9, LastAck: at.Add(5 * time.Second), LastError: "refused"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := l.report(at.Add(15 * time.Second)).LongestGap; got != 10 {
		t.Errorf("the running gap is %v, want 10", got)
	}
	l.reset(at.Add(20 * time.Second))
	if got := l.report(at.Add(21 * time.Second)); got.LongestGap != 1 || len(got.Gaps) != 0 {
		t.Errorf("after a reset: %+v", got)
	}
}
