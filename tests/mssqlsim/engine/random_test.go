package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// A careful manager runs a group of three with commit quorum 1 through random faults: it fences what
// it can reach, elects the highest sequence number among at least two answers (FG 5.2), and re-seats
// the others. Whatever was acknowledged must be on every new primary, and in the end everything must
// come together again.
func TestRandomFaultsLoseNothingUnderACarefulManager(t *testing.T) {
	t.Parallel()
	seeds := uint64(60)
	if testing.Short() {
		seeds = 10
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			m := &manager{t: t, r: rand.New(rand.NewPCG(seed, 7))}
			m.c, _, _, _ = trio(t, leased(20))
			m.c.delay = time.Duration(1+m.r.IntN(30)) * time.Millisecond
			m.primary = m.c.nodes[0]
			m.renew()
			if err := m.primary.setRequired(1); err != nil {
				t.Fatal(err)
			}
			for range 40 {
				m.fault()
				for range 4 {
					m.write()
					m.c.run(time.Duration(m.r.IntN(1500)) * time.Millisecond)
					m.renew()
					m.collect()
				}
				m.manage()
			}
			m.heal()
			for range 60 {
				m.write()
				m.c.run(2 * time.Second)
				m.renew()
				m.manage()
				m.collect()
			}
			m.check()
		})
	}
}

type manager struct {
	t       *testing.T
	c       *cluster
	r       *rand.Rand
	primary *node
	next    int
	acked   []int
	open    []openWrite
	trace   []string
	lost    time.Time // since when the primary does not answer
}

type openWrite struct {
	n   *node
	run int
	k   int
	w   engine.WaitID
}

func (m *manager) say(format string, a ...any) {
	m.trace = append(m.trace, m.c.now.Format("04:05.000 ")+fmt.Sprintf(format, a...))
}

func (m *manager) fault() {
	n := m.c.nodes[m.r.IntN(3)]
	o := m.c.nodes[m.r.IntN(3)]
	switch m.r.IntN(14) {
	case 0:
		m.say("kill %s", n.name)
		if !n.dead {
			n.kill()
		}
	case 1:
		if n != o {
			on := !m.c.isCut(n, o)
			m.say("cut %s-%s %v", n.name, o.name, on)
			m.c.partition(n, o, on)
		}
	case 2:
		m.say("freeze %s %v", n.name, !n.frozen)
		if !n.dead {
			n.freeze(!n.frozen)
		}
	case 3:
		if !n.dead && !n.frozen {
			m.say("bounce the endpoint of %s", n.name)
			n.endpointState(engine.EndpointStopped)
			n.endpointState(engine.EndpointStarted)
		}
	case 4:
		m.say("reset the links of %s", n.name)
		if !n.dead && !n.frozen {
			n.sa().exec(func(in *engine.Instance, now time.Time, id engine.SessionID) error {
				return in.Fault(now, id, "resetlinks", nil)
			})
		}
	case 5, 6:
		if n != o {
			m.c.partition(n, o, false)
		}
	default:
		m.mend(n)
	}
}

func (m *manager) mend(n *node) {
	if n.dead {
		m.say("start %s", n.name)
		n.frozen, n.thawed = false, nil
		n.start()
	} else if n.frozen {
		m.say("thaw %s", n.name)
		n.freeze(false)
	}
}

func (m *manager) heal() {
	m.say("heal")
	for _, n := range m.c.nodes {
		m.c.isolate(n, false)
	}
	for _, n := range m.c.nodes {
		m.mend(n)
	}
}

func (n *node) answers() bool { return !n.dead && !n.frozen }

func (m *manager) write() {
	for _, n := range m.c.nodes {
		if !n.answers() || n.role("ag") != 1 {
			continue
		}
		m.next++
		w, err := n.sa().insert("db", m.next)
		switch {
		case err != nil:
		case w == 0:
			m.acked = append(m.acked, m.next)
		default:
			m.open = append(m.open, openWrite{n, n.run, m.next, w})
		}
	}
}

// collect takes the acknowledgements.
func (m *manager) collect() {
	m.open = slices.DeleteFunc(m.open, func(o openWrite) bool {
		if o.n.run != o.run {
			return true
		}
		err, done := o.n.done[o.w]
		if done && err == nil {
			m.acked = append(m.acked, o.k)
		}
		return done
	})
}

func (m *manager) renew() {
	if m.primary.answers() && m.primary.role("ag") == 1 {
		_ = m.primary.renew(20)
	}
}

// sentTo runs a statement and lets it end on its own.
func (n *node) sent(f func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error)) error {
	_, err := n.sa().start(f)
	return err
}

func (m *manager) manage() {
	p := m.primary
	if p.answers() {
		switch p.role("ag") {
		case 1:
			m.lost = time.Time{}
			m.reseat()
			return
		case 2: // it follows somebody else: cannot be, the manager alone promotes
			m.t.Fatalf("the primary became SECONDARY by itself\n%v", m.trace)
		}
	}
	if m.lost.IsZero() {
		m.lost = m.c.now
	}
	// Fence: a dead process, one that says RESOLVING, or one whose lease has run out on its own.
	fenced := p.dead || p.answers() && p.role("ag") == 0 || m.c.now.Sub(m.lost) > 25*time.Second
	if !fenced {
		return
	}
	var best *node
	answers := 0
	var bestLSN engine.LSN
	for _, n := range m.c.nodes {
		if !n.answers() || n.role("ag") == 1 {
			continue
		}
		answers++
		seq, lsn := n.sequence(), n.hardened()
		if best == nil || seq > best.sequence() || seq == best.sequence() && lsn > bestLSN {
			best, bestLSN = n, lsn
		}
	}
	if answers < 2 {
		return
	}
	if err := best.renew(20); err != nil && number(err) != 47119 {
		m.t.Fatalf("renew on the candidate: %v", err)
	}
	err := best.failover(false)
	m.say("failover to %s (%x): %v", best.name, best.sequence(), err)
	if err != nil {
		return
	}
	end := m.c.now.Add(8 * time.Second)
	for best.answers() && best.role("ag") != 1 && m.c.now.Before(end) {
		m.c.run(100 * time.Millisecond)
	}
	if !best.answers() || best.role("ag") != 1 {
		m.primary, m.lost = best, time.Time{}
		return
	}
	m.collect()
	m.primary, m.lost = best, time.Time{}
	m.complete(best)
}

// complete compares everything acknowledged so far with a new primary.
func (m *manager) complete(n *node) {
	m.c.run(time.Second)
	if n.role("ag") != 1 {
		return
	}
	got, err := n.sa().rows("db")
	if err != nil {
		m.t.Fatalf("read on the new primary %s: %v", n.name, err)
	}
	for _, k := range m.acked {
		if !slices.Contains(got, k) {
			for _, x := range m.c.nodes {
				m.t.Logf("%s: role %d, seq %x\n%v", x.name, x.role("ag"), x.sequence(), last(x.lines, 10))
			}
			for _, l := range m.trace {
				m.t.Log(l)
			}
			m.t.Fatalf("row %d was acknowledged and is not on the new primary %s", k, n.name)
		}
	}
}

func (m *manager) reseat() {
	for _, n := range m.c.nodes {
		if n == m.primary || !n.answers() {
			continue
		}
		switch n.role("ag") {
		case 1:
			m.say("OFFLINE %s", n.name)
			_ = n.sent(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
				return in.Offline(now, id, "ag")
			})
		case 0:
			_ = n.sent(func(in *engine.Instance, now time.Time, id engine.SessionID) (engine.WaitID, error) {
				return in.SetRoleSecondary(now, id, "ag")
			})
		}
	}
}

func (n *node) hardened() (l engine.LSN) {
	s := n.sa()
	n.do(n.run, func(in *engine.Instance) {
		rows, _ := in.DatabaseReplicaStates(n.c.now, s.id)
		for _, r := range rows {
			if r.IsLocal {
				l = r.LastHardenedLSN.V
			}
		}
	})
	return l
}

func (m *manager) check() {
	p := m.primary
	if p.role("ag") != 1 {
		for _, l := range m.trace {
			m.t.Log(l)
		}
		m.t.Fatalf("in the end %s is not PRIMARY: %d", p.name, p.role("ag"))
	}
	for _, n := range m.c.nodes {
		if n != p && p.sync(n) != "SYNCHRONIZED" {
			for _, x := range m.c.nodes {
				m.t.Logf("%s: role %d, seq %x, %s\n%v", x.name, x.role("ag"), x.sequence(), x.sync(x), last(x.lines, 10))
			}
			for _, l := range m.trace {
				m.t.Log(l)
			}
			m.t.Fatalf("in the end %s is %s", n.name, p.sync(n))
		}
	}
	m.complete(p)
	want, _ := p.sa().rows("db")
	for _, n := range m.c.nodes {
		got, err := n.sa().rows("db")
		if err != nil || !slices.Equal(got, want) {
			for _, x := range m.c.nodes {
				m.t.Logf("%s: role %d, seq %x, %s\n%v", x.name, x.role("ag"), x.sequence(), x.sync(x), last(x.lines, 10))
			}
			for _, l := range m.trace {
				m.t.Log(l)
			}
			m.t.Fatalf("%s differs from the primary: %v %v, want %v", n.name, got, err, want)
		}
	}
	if len(m.acked) < 10 {
		m.t.Fatalf("only %d commits were acknowledged", len(m.acked))
	}
}
