package decide

import (
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// A promotion of the primary onto itself that has not helped does not hide the block for another
// minute; a wait of some seconds without one is nothing to tell yet.
func TestAPrimaryThatWaitsAgainAfterItsRenewalIsBlockedAtOnce(t *testing.T) {
	t.Parallel()
	onto := ag.RoleChange{Kind: "planned", From: "mssql-0", To: "mssql-0", Result: "done"}
	automatic := ag.RoleChange{Kind: "automatic", From: "mssql-0", To: "mssql-0", Result: "done"}
	for name, tt := range map[string]struct {
		history []ag.RoleChange
		ago     time.Duration
		pending time.Duration
		want    bool
	}{
		"it waits again":                           {[]ag.RoleChange{onto}, 15 * time.Second, 12 * time.Second, true},
		"it has only just begun to":                {[]ag.RoleChange{onto}, 15 * time.Second, 5 * time.Second, false},
		"it has worked for a while since":          {[]ag.RoleChange{onto}, 10 * time.Minute, 12 * time.Second, false},
		"it came back by an ordinary failover":     {[]ag.RoleChange{automatic}, 15 * time.Second, 12 * time.Second, false},
		"it waits for the first time":              {nil, 15 * time.Second, 12 * time.Second, false},
		"nothing waits after it was promoted anew": {[]ag.RoleChange{onto}, 15 * time.Second, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := settledInput(t)
			for i := range tt.history {
				tt.history[i].CompletedAt = in.Now.Add(-tt.ago)
			}
			in.Memory.History, in.Memory.LastRoleChangeAt = tt.history, in.Now.Add(-tt.ago)
			for i := range in.Snapshot.Replicas {
				if r := &in.Snapshot.Replicas[i]; r.Name == "mssql-0" {
					r.Local.CommitPendingFor = tt.pending
				}
			}
			v := newView(in, knobs{})
			d := newDraft(v)
			if ruleRenew(v, d) || len(d.d.Actions) > 0 {
				t.Fatalf("it does something: %v", d.d.Actions)
			}
			if got := d.blocked(ag.ReasonCommitPending); got != tt.want {
				t.Errorf("blocked: %v (%v), want %v", got, d.d.Blocks, tt.want)
			}
		})
	}
}
