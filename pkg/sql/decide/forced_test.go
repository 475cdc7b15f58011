package decide

import (
	"strings"
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// Whatever loss a person accepts, it is the loss on the replica that was named.
func TestAServerThatIsNotTheReplicaIsNotForced(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		spoil func(l *ag.Local)
		want  string
	}{
		"as it is":                                {func(*ag.Local) {}, ""},
		"on the volume of another replica":        {func(l *ag.Local) { l.ServerName = "mssql-2" }, "called mssql-2"},
		"on the volume of another group":          {func(l *ag.Local) { l.GroupID = "another" }, "group_id"},
		"on a volume that has not seen the group": {func(l *ag.Local) { l.Role = ag.RoleNone }, "no replica of the group"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(3)
			w.runQuietly(5 * time.Second)
			in, ok := w.input()
			if !ok {
				t.Fatal("the controller cannot read the Lease")
			}
			v := newView(in, knobs{})
			r := v.snap.Find("mssql-1")
			tt.spoil(&r.Local)
			got := v.forcible(r)
			if tt.want == "" && !got.none() || tt.want != "" && !strings.Contains(got.why, tt.want) {
				t.Errorf("refused with %q, want %q", got.why, tt.want)
			}
		})
	}
}
