package decide

import (
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// What a forced failover has lost may be on the former primary alone: until it has caught
// up no step of the ladder may cost its copy, whatever role changes came since.
func TestACopyThatMayHoldMoreIsNotGivenUp(t *testing.T) {
	t.Parallel()
	forced := ag.RoleChange{Kind: "forced", From: "mssql-0", To: "mssql-1", Result: "done"}
	planned := ag.RoleChange{Kind: "planned", From: "mssql-1", To: "mssql-2", Result: "done"}
	onto := ag.RoleChange{Kind: "forced", From: "mssql-1", To: "mssql-1", Result: "done"}
	for name, tt := range map[string]struct {
		history []ag.RoleChange
		stale   []string
		want    bool
	}{
		"the former primary after FORCE":                  {[]ag.RoleChange{forced}, []string{"mssql-0"}, false},
		"the same after another, planned move":            {[]ag.RoleChange{planned, forced}, []string{"mssql-0"}, false},
		"once it has caught up":                           {[]ag.RoleChange{forced}, nil, true},
		"after FORCE of the last primary onto itself":     {[]ag.RoleChange{onto}, []string{"mssql-0"}, true},
		"a stale replica where nothing was forced":        {[]ag.RoleChange{planned}, []string{"mssql-0"}, true},
		"a group whose roles never changed has lost none": {nil, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(3)
			w.policy.AllowReseed = true
			w.runQuietly(5 * time.Second)
			in, ok := w.input()
			if !ok {
				t.Fatal("the controller cannot read the Lease")
			}
			in.Memory.History, in.Authority.Stale = tt.history, tt.stale
			v := newView(in, knobs{})
			r, p := v.snap.Find("mssql-0"), v.snap.Find("mssql-1")
			r.Remote = &ag.Remote{Connected: true}
			for what, x := range map[string]refusal{"rejoined": v.mayRejoin(r, p), "seeded anew": v.mayReseed(r, p)} {
				if x.none() != tt.want {
					t.Errorf("may be %s: %v (%s), want %v", what, x.none(), x.why, tt.want)
				}
			}
		})
	}
}
