package controller

import "testing"

func TestProblemText_TellsACauseOnceForAllWhoHaveIt(t *testing.T) {
	t.Parallel()
	got := problemText([]Problem{
		{Replica: "demo-0", Message: "no node fits"}, {Message: "Secret x is not there"},
		{Replica: "demo-1", Message: "no node fits"}, {Replica: "demo-2", Message: "it ends"}, {Replica: "demo-1", Message: "no node fits"},
	})
	want := "demo-0 and demo-1: no node fits\nSecret x is not there\ndemo-2: it ends"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
