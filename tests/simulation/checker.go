//go:build linux

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/decide"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// checker holds the run against I1–I5.
type checker struct {
	c          *cluster
	tableMade  bool
	acked      map[int64]int // value → order of the promotion that acknowledged it
	promotions int
	violations []string
	finished   bool
	commits    int
	lastAck    time.Duration
	gap        time.Duration // longest between two acknowledgements since watched
	gapAt      time.Duration
	watched    bool
	forcing    map[string]bool // replicas that a person forces now: losses are asked for
	excused    int
	byHand     bool           // a person has sent FORCE
	obeyed     int            // orders that a block has named, and a person has given
	discards   map[int64]bool // acknowledged values of which a fault has destroyed the only copy
	closely    closely
}

func (k *checker) violation(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	k.c.w.fact("CHECK", "%s", text)
	k.violations = append(k.violations, text)
	k.done()
}

// acknowledged enters a commit that a client was told of; mu is held.
func (k *checker) acknowledged(n *node, v int64) {
	w := k.c.w
	if n.outlawed() {
		return
	}
	if k.acked == nil {
		k.acked = map[int64]int{}
	}
	k.acked[v] = n.promoted
	k.commits++
	if k.watched {
		if d := w.now() - k.lastAck; d > k.gap {
			k.gap, k.gapAt = d, k.lastAck
		}
	}
	k.lastAck = w.now()
	for _, other := range k.c.nodes {
		if other.promoted > n.promoted && !holds(other.disk)[v] {
			k.violation("I1: %s acknowledged %d, which the newer primary %s lacks", n.name, v, other.name)
		}
	}
}

// promoted compares every acknowledged commit with the log of a new primary; mu is held.
func (k *checker) promoted(s *server) {
	if s.node.forced {
		s.node.forced, s.node.outlaw = false, true
		return
	}
	s.node.outlaw = false
	k.promotions++
	s.node.promoted = k.promotions
	if len(k.acked) == 0 {
		return
	}
	have := holds(s.node.disk)
	missing := 0
	example := int64(0)
	for v := range k.acked {
		if !have[v] {
			missing++
			example = max(example, v)
			if k.forcing[s.node.name] {
				delete(k.acked, v)
				k.forcedAway(v)
			}
		}
	}
	if missing == 0 {
		return
	}
	if k.forcing[s.node.name] {
		k.excused += missing
		return
	}
	k.violation("I2: %s became PRIMARY without %d of %d acknowledged commits (%d)", s.node.name, missing, len(k.acked), example)
}

// discarded hears of a volume that is about to hold no more than left, by no step of ours; mu is held.
func (k *checker) discarded(n *node, left map[int64]bool) {
	kept := map[int64]bool{}
	for _, o := range k.c.nodes {
		if o != n {
			for v := range holds(o.disk) {
				kept[v] = true
			}
		}
	}
	for v := range holds(n.disk) {
		if _, acked := k.acked[v]; acked && !kept[v] && !left[v] {
			if k.discards == nil {
				k.discards = map[int64]bool{}
			}
			k.discards[v] = true
		}
	}
}

// copiesEvery is how often the volumes are searched for what was acknowledged.
const copiesEvery = 30 * time.Second

// lookForCopies is I4 by its effect: each acknowledged commit is on one volume at least,
// whoever is primary, if no fault has destroyed the last that held it; mu is held.
func (k *checker) lookForCopies() {
	if k.finished {
		return
	}
	k.c.w.after(copiesEvery, k.lookForCopies)
	kept := map[int64]bool{}
	for _, n := range k.c.nodes {
		for v := range holds(n.disk) {
			kept[v] = true
		}
	}
	lost, example := 0, int64(0)
	for v := range k.acked {
		if !kept[v] && !k.discards[v] {
			lost++
			example = max(example, v)
		}
	}
	if lost > 0 {
		k.violation("I4: no volume holds %d of %d acknowledged commits any more (%d)", lost, len(k.acked), example)
	}
}

// holds lists the values that a volume holds, hardened.
func holds(d *engine.Disk) map[int64]bool {
	values := map[int64]bool{}
	for _, db := range d.Databases {
		if db.State.Name != database || db.Image == nil {
			continue
		}
		table := engine.ObjectID(0)
		for _, t := range db.Image.Tables {
			if t.Def.Name != "t" {
				continue
			}
			table = t.Def.ID
			for _, r := range t.Rows {
				values[r[0].Int64()] = true
			}
		}
		for _, r := range db.Log {
			for i := range r.Changes {
				ch := &r.Changes[i]
				switch {
				case ch.Op == engine.OpCreateTable && ch.Table.Name == "t":
					table = ch.Table.ID
				case ch.Op == engine.OpInsert && ch.Object == table:
					values[ch.Values[0].Int64()] = true
				}
			}
		}
	}
	return values
}

// healed starts the watch for I3; mu is held.
func (k *checker) healed() {
	k.c.w.after(30*time.Second, k.lookForWritable)
	if k.byHand || k.c.faults.handed {
		k.c.w.after(obeyAfter, k.obey)
	}
}

// settled is for how long writes must have worked at the end of a run.
const settled = 30 * time.Second

func (k *checker) lookForWritable() {
	w, p := k.c.w, k.c.faults.plan
	if w.now() >= p.end && k.working() {
		if p.gap > 0 && k.gap > p.gap {
			k.violation("I5: no acknowledgement for %s from %s on, where a single fault may cost %s", k.gap.Round(10*time.Millisecond), k.gapAt.Round(10*time.Millisecond), p.gap)
		}
		k.done()
		return
	}
	if w.now() >= p.limit {
		if why := k.stuck(); why != "" {
			k.tell()
			k.violation("I3: %s", why)
		}
		k.done()
		return
	}
	w.after(5*time.Second, k.lookForWritable)
}

func (k *checker) done() {
	if !k.finished {
		k.finished = true
		k.copiesKept()
		close(k.c.stopped)
	}
}

// working tells whether clients write now and did so lately.
func (k *checker) working() bool { return k.lastAck > 0 && k.c.w.now()-k.lastAck < 5*time.Second }

// blocks are what the resource's status names, and what the acting controller has said in its newest
// pass: a PRIMARY that may not acknowledge anything is told of by a condition only.
func (k *checker) blocks() []ag.Block {
	var all []ag.Block
	if m := k.c.api.group.Status.Memory; m != nil {
		for _, b := range m.Blocks {
			all = append(all, ag.Block{Reason: b.Reason, Rule: ag.Rule(b.Rule), Replica: b.Replica, Message: b.Message})
		}
	}
	if l := k.c.faults.leader(); l != nil && l.known {
		for _, b := range append(slices.Clone(l.report.Decision.Blocks), l.report.Setup.Blocks...) {
			if !slices.Contains(all, b) {
				all = append(all, b)
			}
		}
	}
	return all
}

// tell writes what the acting controller saw last, for whoever reads the trace of a dead end.
func (k *checker) tell() {
	l := k.c.faults.leader()
	if l == nil || !l.known {
		return
	}
	for i := range l.report.Snapshot.Replicas {
		r := &l.report.Snapshot.Replicas[i]
		k.c.w.fact("SEEN", "%s: %+v; as the primary sees it: %+v", r.Name, r.Local, r.Remote)
	}
	a := l.report.Authority
	k.c.w.fact("SEEN", "by hand %v, given up %v, sequences %v, no write lease %t, recoveries %+v", a.ByHand, a.GivenUp, a.Sequences, a.NoWriteLease, l.report.Memory.Recoveries)
	k.c.w.fact("SEEN", "setup: %+v", l.report.Setup)
	for _, line := range strings.Split(strings.TrimSpace(decide.Explain(l.report.Decision)), "\n") {
		k.c.w.fact("SEEN", "%s", line)
	}
}

// leftBehind: the primary waits for as many secondaries as the user wants, and the block names one
// whose copy cannot go on from the primary's log, which a person must have seeded anew.
func (k *checker) leftBehind(n *node, b ag.Block) bool {
	p := k.c.primary()
	return p != nil && p != n && b.Reason == ag.ReasonAttemptsUsedUp && b.Replica == n.name && strings.Contains(b.Message, "automaticReseed") &&
		(k.c.topology.k != nil || k.c.topology.require) && !p.disk.LogReaches(database, n.disk)
}

// setupWaitsForTheGone: a resource that was made anew adopts no group before every replica has told what
// it holds; the status names those that it waits for.
func (k *checker) setupWaitsForTheGone() bool {
	l := k.c.faults.leader()
	if k.c.generation == 0 || l == nil || !l.known || l.report.Memory.Initialized {
		return false
	}
	for _, n := range k.c.nodes {
		for _, waited := range l.report.Setup.Waiting {
			if n.gone && strings.Contains(waited, n.name) {
				return true
			}
		}
	}
	return false
}

// stuck says why a group that cannot be written is a dead end; "" when it is blocked for a true reason.
func (k *checker) stuck() string {
	if k.working() {
		return ""
	}
	c := k.c
	blocks, waits := "", false
	for _, b := range k.blocks() {
		blocks += fmt.Sprintf("; %s %s %s: %s", b.Rule, b.Reason, b.Replica, b.Message)
		if k.byHand && (b.Reason == ag.ReasonCopySuspended || b.Reason == ag.ReasonForcedByHand || b.Reason == ag.ReasonTwoPrimaries ||
			b.Reason == ag.ReasonAttemptsUsedUp && strings.Contains(b.Message, "was forced to primary")) {
			return "" // after FORCE only a person can tell which copies are still needed
		}
		if b.Reason == ag.ReasonTwoPrimaries && c.faults.handed {
			return "" // a person's FAILOVER, of which the numbers do not prove what it has left behind
		}
		if b.Reason == ag.ReasonCommitsWait {
			waits = true
			continue // true, but it does not tell why they do not follow
		}
		for _, n := range c.nodes {
			if (n.gone || n.volumes > 0) && (b.Replica == n.name || strings.Contains(b.Message, n.name)) || k.leftBehind(n, b) {
				return ""
			}
		}
	}
	if k.setupWaitsForTheGone() {
		return ""
	}
	roles := ""
	gone := 0
	for _, n := range c.nodes {
		role := "down"
		if n.server != nil && !n.server.dead {
			role = n.server.role
		}
		if n.gone {
			gone++
		}
		roles += " " + n.name + "=" + role
	}
	if p := c.primary(); p != nil && gone > 0 && waits && (c.topology.k != nil || c.topology.require) {
		return "" // it waits for secondaries, as the user wants, and says so
	}
	return fmt.Sprintf("not writable %s after all faults ended;%s%s", (c.w.now() - c.faults.plan.heal).Round(time.Second), roles, blocks)
}
