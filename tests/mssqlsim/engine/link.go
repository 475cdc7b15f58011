package engine

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"time"
)

// link is one endpoint connection.
type link struct {
	id       LinkID
	dialed   bool
	url      string // dialled
	server   string // the peer, once it has said Hello
	up       bool
	since    time.Time
	sent     time.Time
	received time.Time
	restarts int
	groups   []GroupStatus
	alive    *timer // keepalive
	dead     *timer // silence
	dialing  *timer
}

// ready tells whether both sides have introduced themselves.
func (l *link) ready() bool { return l != nil && l.up && l.server != "" }

func (l *link) status(group GUID) (GroupStatus, bool) {
	for _, s := range l.groups {
		if s.Group == group {
			return s, true
		}
	}
	return GroupStatus{}, false
}

func (in *Instance) link(id LinkID) *link {
	for _, l := range in.links {
		if l.id == id {
			return l
		}
	}
	return nil
}

// linkTo is the live link to a server, nil if there is none.
func (in *Instance) linkTo(server string) *link {
	for _, l := range in.links {
		if l.ready() && equalName(l.server, server) {
			return l
		}
	}
	return nil
}

// send gives a message to a peer. Configuration messages take a lane of their own when the reading
// says that they may overtake the log.
func (in *Instance) send(l *link, m Message) {
	lane := 0
	if in.cfg.Readings.UnorderedConfiguration {
		switch m.(type) {
		case Configure, Committed:
			lane = 1
		}
	}
	l.sent = in.now
	in.emit(Send{Link: l.id, Message: m, Lane: lane})
}

const dialTimeout = 10 * time.Second

// dial opens a link to an endpoint unless one is there or on its way.
func (in *Instance) dial(server, url string) {
	if _, ok := in.EndpointIdentity(); !ok || in.linkTo(server) != nil {
		return
	}
	for _, l := range in.links {
		if l.dialed && strings.EqualFold(l.url, url) {
			return
		}
	}
	l := &link{id: in.nextLink, dialed: true, url: url, since: in.now}
	in.nextLink += 2
	in.links = append(in.links, l)
	in.emit(Dial{Link: l.id, URL: url})
	l.dialing = in.after(dialTimeout, func() {
		in.emit(CloseLink{Link: l.id})
		in.linkFailed(l, 10060, "A connection timeout has occurred while attempting to establish a connection")
	})
}

// LinkFailed answers a Dial that did not succeed. number is the operating system's error number.
func (in *Instance) LinkFailed(now time.Time, id LinkID, number int, text string) {
	in.begin(now)
	if l := in.link(id); l != nil {
		in.linkFailed(l, number, text)
	}
}

func (in *Instance) linkFailed(l *link, number int, text string) {
	in.forget(l)
	for _, g := range in.groups {
		for _, p := range g.peers {
			if strings.EqualFold(p.replica().EndpointURL, l.url) {
				p.connectError(number, text)
			}
		}
	}
}

func (in *Instance) forget(l *link) {
	in.stop(l.alive)
	in.stop(l.dead)
	in.stop(l.dialing)
	l.up = false
	in.links = slices.DeleteFunc(in.links, func(x *link) bool { return x == l })
}

// LinkUp tells that a link exists: dialled by this instance (its Dial effect) or accepted by its
// listener. peer is the certificate that the other end proved to own, in DER.
func (in *Instance) LinkUp(now time.Time, id LinkID, peer []byte) {
	in.begin(now)
	l := in.link(id)
	if l == nil {
		if id%2 == 1 { // a dial that was given up
			in.emit(CloseLink{Link: id})
			return
		}
		l = &link{id: id}
		in.links = append(in.links, l)
	}
	in.stop(l.dialing)
	if why := in.refusePeer(peer); why != nil {
		in.emit(CloseLink{Link: id})
		in.log(28047, "Logon", "Database Mirroring login attempt failed with error: '%s'.", why.Message)
		in.linkFailed(l, int(why.Number), why.Message)
		return
	}
	l.up, l.since, l.received = true, in.now, in.now
	in.send(l, in.hello())
	in.watch(l)
}

// refusePeer checks a peer's certificate: known, in force, and its owner may connect (FG 2.3).
func (in *Instance) refusePeer(der []byte) *Error {
	fail := func(state uint8, why string) *Error {
		return msg(28047, 16, state, "Connection handshake failed. %s State %d.", why, state)
	}
	e := in.srv.Endpoint
	if e == nil || e.State != EndpointStarted {
		return fail(1, "The endpoint is not started.")
	}
	own := in.certificateByID(e.Certificate)
	now := in.wall()
	if own == nil || len(own.Key) == 0 {
		return fail(88, "The local endpoint has no certificate.")
	}
	if now.Before(own.Start) || now.After(own.End) {
		return fail(87, "The certificate used by this endpoint was not found or is not valid now: "+own.Name+".")
	}
	var c *Certificate
	for _, k := range in.srv.Certificates {
		if bytes.Equal(k.DER, der) {
			c = k
		}
	}
	switch {
	case c == nil:
		return fail(89, "The certificate used by the peer does not match the certificate in MASTER database with same issuer name and serial number.")
	case now.Before(c.Start) || now.After(c.End):
		return fail(85, "The certificate used by the peer is invalid due to the following reason: it is not in its period of validity.")
	}
	for _, p := range in.srv.Principals {
		if p.Type == "R" || p.IsDisabled && p.Type != "C" {
			continue
		}
		if p.Certificate != c.ID && !in.ownsCertificate(p, c) {
			continue
		}
		if p.ID == 1 || in.memberOf(p.ID, sysadminRole) || p.ID == e.Owner && c.Owner != 1 {
			return nil
		}
		for _, x := range in.srv.Permissions {
			if x.Class == ClassEndpoint && x.Object == foldName(e.Name) && x.Verb == Grant && (x.Name == "CONNECT" || x.Name == "CONTROL") && in.appliesTo(x, p.ID) {
				return nil
			}
		}
	}
	return fail(84, "The login of the certificate's owner does not have CONNECT permission on the endpoint.")
}

// ownsCertificate tells whether the login's user in master owns the certificate.
func (in *Instance) ownsCertificate(p *Principal, c *Certificate) bool {
	if c.Owner == 1 {
		return p.ID == 1
	}
	for _, u := range in.database(MasterID).content.principals {
		if u.ID == c.Owner {
			return bytes.Equal(u.SID, p.SID)
		}
	}
	return false
}

func (in *Instance) hello() Hello {
	h := Hello{Server: in.srv.ServerName, Restarts: in.srv.Endpoint.Restarts}
	for _, g := range in.groups {
		h.Groups = append(h.Groups, g.status())
	}
	return h
}

// LinkDown tells that a link ended (reset by the other side or the network).
func (in *Instance) LinkDown(now time.Time, id LinkID, text string) {
	in.begin(now)
	if l := in.link(id); l != nil {
		in.drop(l, 10054, orText(text, "An existing connection was forcibly closed by the remote host."))
	}
}

// drop ends a link and everything that used it.
func (in *Instance) drop(l *link, number int, text string) {
	ready := l.ready()
	in.forget(l)
	if !ready {
		in.linkFailed(l, number, text)
		return
	}
	for _, g := range in.groups {
		g.linkLost(l, number, text)
	}
}

func (in *Instance) closeLink(l *link, number int, text string) {
	in.emit(CloseLink{Link: l.id})
	in.drop(l, number, text)
}

func (in *Instance) closeAllLinks(why string) {
	for len(in.links) > 0 {
		in.closeLink(in.links[0], 10054, why)
	}
}

// timeout is the session time-out that applies to a link: the smallest of the groups that use it.
func (in *Instance) timeout(l *link) time.Duration {
	t := 10 * time.Second
	for _, g := range in.groups {
		for i := range g.st.Config.Replicas {
			if r := &g.st.Config.Replicas[i]; equalName(r.Server, l.server) {
				t = time.Duration(r.SessionTimeout) * time.Second
			}
		}
	}
	return t
}

// watch keeps a link alive and notices when the peer is silent. Its timers are moved only when they
// fire, so that traffic costs nothing.
func (in *Instance) watch(l *link) {
	var alive, dead func()
	alive = func() {
		quiet := in.timeout(l) / 3
		if due := l.sent.Add(quiet); due.After(in.now) {
			l.alive = in.at(due, alive)
			return
		}
		in.send(l, Ping{})
		l.alive = in.after(quiet, alive)
	}
	t := in.timeout(l)
	expected := in.now.Add(t)
	dead = func() {
		limit := in.timeout(l)
		if in.now.Sub(expected) > time.Second {
			// This process stood still: what the peer sent meanwhile is looked at first.
			expected = in.now.Add(time.Second)
			l.dead = in.at(expected, dead)
			return
		}
		if due := l.received.Add(limit); due.After(in.now) {
			expected = due
			l.dead = in.at(due, dead)
			return
		}
		in.log(35206, "Server", "A connection timeout has occurred on a previously established connection to availability replica '%s'.  Either a networking or a firewall issue exists or the availability replica has transitioned to the resolving role.", orText(l.server, l.url))
		in.closeLink(l, 10060, "the session time-out has expired")
	}
	l.alive = in.after(t/3, alive)
	l.dead = in.after(t, dead)
}

// Receive delivers a message from the other end of a link.
func (in *Instance) Receive(now time.Time, id LinkID, m Message) {
	in.begin(now)
	l := in.link(id)
	if l == nil || !l.up {
		return
	}
	l.received = in.now
	switch m := m.(type) {
	case Hello:
		in.introduced(l, m)
		return
	case Ping:
		return
	}
	if l.ready() && in.stale(l) {
		return
	}
	switch m := m.(type) {
	case JoinRequest:
		in.joinRequested(l, m)
		return
	case JoinReply:
		in.joinReplied(l, m)
		return
	case GroupStatus:
		if !l.ready() {
			return
		}
		i := slices.IndexFunc(l.groups, func(s GroupStatus) bool { return s.Group == m.Group })
		switch {
		case i < 0 && !m.Gone:
			l.groups = append(l.groups, m)
		case i >= 0 && m.Gone:
			l.groups = slices.Delete(l.groups, i, i+1)
		case i >= 0:
			l.groups[i] = m
		}
		if g := in.group(m.Group); g != nil {
			g.peerStatus(l, m)
		}
		in.tryJoins(l)
		return
	}
	if !l.ready() {
		return
	}
	if g := in.group(groupOf(m)); g != nil {
		g.receive(l, m)
	}
}

func groupOf(m Message) GUID {
	switch m := m.(type) {
	case Attach:
		return m.Group
	case Attached:
		return m.Group
	case AttachRefused:
		return m.Group
	case CopyReady:
		return m.Group
	case CopyPlan:
		return m.Group
	case CopySuspended:
		return m.Group
	case SuspendCopy:
		return m.Group
	case Configure:
		return m.Config.GroupID
	case Configured:
		return m.Group
	case Committed:
		return m.Group
	case LogData:
		return m.Group
	case LogAck:
		return m.Group
	case Detach:
		return m.Group
	case Handover:
		return m.Group
	case HandoverReady:
		return m.Group
	case SeedRequest:
		return m.Group
	case SeedProgress:
		return m.Group
	case SeedImage:
		return m.Group
	case SeedFailed:
		return m.Group
	}
	return GUID{}
}

// introduced takes a peer's Hello. When both sides dialled at once, both keep the link that the
// server with the smaller name dialled; otherwise a new link replaces an old one, which the peer
// must have given up.
func (in *Instance) introduced(l *link, h Hello) {
	if old := in.linkTo(h.Server); old != nil && old != l {
		crossed := old.dialed != l.dialed && in.now.Sub(old.since) < 2*time.Second
		smaller := foldName(in.srv.ServerName) < foldName(h.Server)
		if crossed && old.dialed == smaller {
			in.closeLink(l, 10054, "replaced")
			return
		}
		in.closeLink(old, 10054, "replaced by a new connection")
	}
	l.server, l.groups, l.restarts = h.Server, slices.Clone(h.Groups), h.Restarts
	if in.stale(l) {
		l.groups = nil
	}
	for _, g := range in.groups {
		g.linked(l)
	}
	in.tryJoins(l)
}

// dialAll lets every group connect to its replicas again.
func (in *Instance) dialAll() {
	for _, g := range in.groups {
		g.connect()
	}
}

// broadcast tells the group's peers the present status.
func (g *group) broadcast() {
	st := g.status()
	for _, l := range g.in.links {
		if l.ready() {
			g.in.send(l, st)
		}
	}
}

// parseEndpointURL splits TCP://host:port.
func parseEndpointURL(url string) (host string, port int, ok bool) {
	rest, found := cutPrefixFold(url, "tcp://")
	if !found {
		return "", 0, false
	}
	i := strings.LastIndexByte(rest, ':')
	if i <= 0 {
		return "", 0, false
	}
	port, err := strconv.Atoi(rest[i+1:])
	if err != nil || port < 1 || port > 65535 || strings.ContainsAny(rest[:i], " /'\"") {
		return "", 0, false
	}
	return rest[:i], port, true
}

func cutPrefixFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}
