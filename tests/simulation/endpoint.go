//go:build linux

package simulation

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// link is one connection between two mirroring endpoints. Messages arrive in order; a network that
// fails keeps them back.
type link struct {
	w    *world
	ends [2]*server
	ids  [2]engine.LinkID
	open bool
	held [2][]engine.Message // by sender
	last [2]time.Duration    // arrival of the newest message, by sender
}

func (l *link) side(s *server) int {
	if l.ends[0] == s {
		return 0
	}
	return 1
}

// send takes a message from s; mu is held.
func (l *link) send(s *server, m engine.Message) {
	if !l.open {
		return
	}
	from := l.side(s)
	if len(l.held[from]) > 0 || !l.w.reaches(s.host, l.ends[1-from].host, kindEndpoint) {
		l.held[from] = append(l.held[from], m)
		return
	}
	at := max(l.w.now()+l.w.travel(s.station, l.ends[1-from].station, kindEndpoint), l.last[from]+1)
	l.last[from] = at
	l.w.at(at, func() { l.arrived(from, m) })
}

func (l *link) arrived(from int, m engine.Message) {
	to := l.ends[1-from]
	switch {
	case !l.open:
	case len(l.held[from]) > 0 || !l.w.reaches(l.ends[from].host, to.host, kindEndpoint):
		l.held[from] = append(l.held[from], m)
	default:
		to.input(func(in *engine.Instance) { in.Receive(to.local(), l.ids[1-from], m) })
	}
}

// release delivers what a cut has held back, if the way is free now; mu is held.
func (l *link) release() {
	for from := range 2 {
		to := l.ends[1-from]
		if !l.open || len(l.held[from]) == 0 || !l.w.reaches(l.ends[from].host, to.host, kindEndpoint) {
			continue
		}
		held := l.held[from]
		l.held[from] = nil
		for _, m := range held {
			at := max(l.w.now()+time.Millisecond, l.last[from]+1)
			l.last[from] = at
			l.w.at(at, func() { l.arrived(from, m) })
		}
	}
}

// shut closes the link from one side; the other hears of it when tell and the network allow it. mu is held.
func (l *link) shut(by *server, tell bool) {
	if !l.open {
		return
	}
	l.open = false
	other := l.ends[1-l.side(by)]
	delete(by.links, l.ids[l.side(by)])
	if tell && l.w.reaches(by.host, other.host, kindEndpoint) {
		l.w.after(l.w.travel(by.station, other.station, kindEndpoint), func() {
			delete(other.links, l.ids[1-l.side(by)])
			other.input(func(in *engine.Instance) { in.LinkDown(other.local(), l.ids[1-l.side(by)], "") })
		})
	}
}

// reset ends the link for both sides at once, as a middlebox does; mu is held.
func (l *link) reset() {
	if !l.open {
		return
	}
	l.open = false
	for i, s := range l.ends {
		delete(s.links, l.ids[i])
		s.input(func(in *engine.Instance) { in.LinkDown(s.local(), l.ids[i], "reset") })
	}
}

// dialEndpoint carries out a Dial effect; mu is held.
func (s *server) dialEndpoint(e engine.Dial) {
	w := s.w
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.ToLower(e.URL), "tcp://"), ".")
	name, _, _ = strings.Cut(name, ":")
	n := s.node.c.node(name)
	if n == nil {
		w.after(time.Millisecond, func() {
			s.input(func(in *engine.Instance) { in.LinkFailed(s.local(), e.Link, 11001, "no such host") })
		})
		return
	}
	if !w.reaches(s.host, n.host, kindEndpoint) || !w.reaches(n.host, s.host, kindEndpoint) {
		return // the engine's own time-out ends it
	}
	w.after(w.travel(s.station, n.sqlStation(), kindEndpoint), func() {
		if !w.reaches(s.host, n.host, kindEndpoint) || !w.reaches(n.host, s.host, kindEndpoint) || s.dead {
			return
		}
		to := n.server
		refused := func(why string) {
			s.input(func(in *engine.Instance) { in.LinkFailed(s.local(), e.Link, 10061, why) })
		}
		if to == nil || to.dead || !to.listen {
			refused("connection refused")
			return
		}
		if to.frozen {
			return
		}
		mine, ok1 := s.in.EndpointIdentity()
		theirs, ok2 := to.in.EndpointIdentity()
		if !ok1 || !ok2 {
			refused("no certificate")
			return
		}
		n.c.nextLink += 2
		l := &link{w: w, ends: [2]*server{s, to}, ids: [2]engine.LinkID{e.Link, n.c.nextLink}, open: true}
		s.links[l.ids[0]], to.links[l.ids[1]] = l, l
		to.input(func(in *engine.Instance) { in.LinkUp(to.local(), l.ids[1], mine.DER) })
		s.input(func(in *engine.Instance) { in.LinkUp(s.local(), l.ids[0], theirs.DER) })
	})
}

// allLinks lists the open links once each, in a fixed order; mu is held.
func (c *cluster) allLinks() []*link {
	var all []*link
	for _, n := range c.nodes {
		if n.server == nil {
			continue
		}
		for _, id := range sortedKeys(n.server.links) {
			if l := n.server.links[id]; l.ends[0] == n.server {
				all = append(all, l)
			}
		}
	}
	return all
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
