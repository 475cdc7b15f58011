package agops_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// A server was away while another one came with a new volume, and so with a new certificate.
func TestAServerThatWasAwayIsToldOfANewCertificate(t *testing.T) {
	t.Parallel()
	w := newWorld(3, "app")
	e := w.engine()
	settle(t, w, e, 60)
	away, fresh := w.server("ag1-1"), w.server("ag1-2")
	away.down = true
	*fresh = server{w: w, name: fresh.name, role: ag.RoleNone, run: 2,
		certificates: map[string]bool{}, logins: map[string]bool{}, granted: map[string]bool{}, databases: map[string]*database{}}
	passes := func(n int) {
		t.Helper()
		for range n {
			r, err := e.Step(context.Background(), key)
			if err != nil {
				t.Fatal(err)
			}
			w.clock.Step(max(r.Next, time.Second))
		}
	}
	passes(20)
	if fresh.certificate == "" || away.granted[fresh.certificate] {
		t.Fatalf("certificate %q; trusted by a server that was away: %v", fresh.certificate, away.granted[fresh.certificate])
	}
	away.down, away.run = false, 2
	passes(20)
	got := map[string]bool{"away trusts fresh": away.granted[fresh.certificate], "fresh trusts away": fresh.granted[away.certificate]}
	if diff := cmp.Diff(map[string]bool{"away trusts fresh": true, "fresh trusts away": true}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	effects := w.effects
	passes(10)
	if w.effects != effects {
		t.Errorf("%d more effects where nothing was missing: %q", w.effects-effects, w.log)
	}
}
