//go:build linux

package simulation

import (
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// closely is what the checker keeps of a run that is looked at closely: what each statement
// and each label does, not only what comes of it in the end.
type closely struct {
	sunk  map[int64]bool             // acknowledged values that a person's FORCE has lost, as far as asked
	stops map[string][]time.Duration // when the endpoint of a server was stopped
}

// Bounds on what the way back of replicas may cost: the ladder of the safety design stops an
// endpoint at most once more often in that time.
const (
	mostStops   = 7
	stopsWithin = 5 * time.Minute
)

// watch looks at a statement before it is run, and gives what to do after it; mu is not held
// now, and is held then.
func (s *server) watch(from *proc, sql string) (after func()) {
	nothing := func() {}
	if len(sql) > 2000 || from == s.node.c.clients {
		return nothing
	}
	c := s.node.c
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	switch {
	case strings.HasPrefix(sql, "SELECT SYSUTCDATETIME()"):
		if op := c.operation(); op != nil {
			c.faults.trigger("clock read, " + string(op.Phase))
		}
	case !c.faults.plan.closely:
	case strings.Contains(sql, "STATE = STOPPED"):
		c.check.stopped(s.node)
	case strings.Contains(sql, "SET (ROLE = SECONDARY)"):
		s.reseating = true
		return func() { s.reseating = false }
	case strings.Contains(sql, "DROP AVAILABILITY GROUP"):
		before := c.check.onlyOn(s.node)
		return func() {
			if before > 0 {
				c.violation("I4: the group was dropped on %s, which alone held %d acknowledged commits", s.node.name, before)
			}
		}
	}
	return nothing
}

// stopped counts what interrupts a server's connections on its replicas' way back.
func (k *checker) stopped(n *node) {
	now := k.c.w.now()
	if k.closely.stops == nil {
		k.closely.stops = map[string][]time.Duration{}
	}
	var recent []time.Duration
	for _, at := range append(k.closely.stops[n.name], now) {
		if now-at <= stopsWithin {
			recent = append(recent, at)
		}
	}
	k.closely.stops[n.name] = recent
	if len(recent) > mostStops {
		k.violation("caps: the endpoint of %s was stopped %d times within %s", n.name, len(recent), stopsWithin)
	}
}

// seedingFailed hears of a copy on its way that was given up; mu is held.
func (s *server) seedingFailed() {
	if s.reseating {
		s.node.c.violation("seeding: SET (ROLE = SECONDARY) on %s has cancelled the seeding of its copy", s.node.name)
	}
}

// onlyOn counts the acknowledged commits, those that a FORCE has lost included, that no other
// volume holds; mu is held.
func (k *checker) onlyOn(n *node) int {
	have := holds(n.disk)
	elsewhere := map[int64]bool{}
	for _, o := range k.c.nodes {
		if o != n {
			for v := range holds(o.disk) {
				elsewhere[v] = true
			}
		}
	}
	only := 0
	for v := range have {
		_, acked := k.acked[v]
		if (acked || k.closely.sunk[v]) && !elsewhere[v] {
			only++
		}
	}
	return only
}

// forcedAway enters an acknowledged commit that a person's FORCE has lost.
func (k *checker) forcedAway(v int64) {
	if k.closely.sunk == nil {
		k.closely.sunk = map[int64]bool{}
	}
	k.closely.sunk[v] = true
}

// copiesKept: what a FORCE has lost is still on the volume that had it, for a person to look at (I4).
func (k *checker) copiesKept() {
	if !k.c.faults.plan.closely || len(k.closely.sunk) == 0 {
		return
	}
	kept := map[int64]bool{}
	for _, n := range k.c.nodes {
		for v := range holds(n.disk) {
			kept[v] = true
		}
	}
	lost := 0
	for v := range k.closely.sunk {
		if !kept[v] {
			lost++
		}
	}
	if lost > 0 {
		k.violation("I4: %d acknowledged commits that were on the copy of a former primary alone have been discarded", lost)
	}
}

// published looks at who has just got the primary's label; mu is held.
func (c *cluster) published(primaries []string) {
	if !c.faults.plan.closely {
		return
	}
	for _, name := range primaries {
		n := c.node(name)
		if n.labelled || n.server == nil || n.server.dead || n.server.role != "PRIMARY" {
			continue
		}
		if state := n.server.databaseState(); state != "" && state != "ONLINE" {
			c.violation("labels: %s carries the primary's label while its database is %s", name, state)
		}
	}
	for _, n := range c.nodes {
		n.labelled = c.api.pods[n.name].Labels[v1alpha1.LabelRole] == v1alpha1.RolePrimary
	}
}

// databaseState is what sys.databases says of the database, "" when no session is there to ask; mu is held.
func (s *server) databaseState() string {
	for _, id := range sortedKeys(s.conns) {
		for _, d := range s.in.Databases(s.local(), id) {
			if d.Name == database {
				s.apply()
				return d.StateDesc
			}
		}
	}
	s.apply()
	return ""
}
