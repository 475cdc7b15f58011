package agops

import (
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

func TestPace_APassBeginsWhenTheWaitEnds(t *testing.T) {
	t.Parallel()
	const took = 300 * time.Millisecond
	for _, c := range []struct {
		name string
		wait *ag.Wait
		want time.Duration
	}{
		{"no wait is a short pause", nil, brisk},
		{"a wait without an exact end is a short pause", &ag.Wait{}, brisk},
		{"a long wait is looked at briskly", &ag.Wait{Left: 10 * time.Second}, brisk},
		{"one that ends within the next pass is slept through to its end", &ag.Wait{Left: took + 450*time.Millisecond}, 450 * time.Millisecond},
		{"one that ends within the pause is not overslept", &ag.Wait{Left: took + 50*time.Millisecond}, 50 * time.Millisecond},
		{"one that has ended in this pass is a short pause", &ag.Wait{Left: took}, brisk},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := pace(c.wait, took); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
