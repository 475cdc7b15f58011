package engine

import "time"

// ReadOnlyRoute tells where a login with read-only intent for a database belongs: the
// routing URL of the first replica of the primary's routing list that can be read. ok is
// false when the login stays here: the database is in no group, this replica is not its
// primary, it has no list, or the list names this replica first (FG 1.2, 10.3).
func (in *Instance) ReadOnlyRoute(now time.Time, database string) (url string, ok bool) {
	in.begin(now)
	d := in.databaseByName(database)
	if d == nil || d.member == nil || d.member.group.role != RolePrimary {
		return "", false
	}
	g := d.member.group
	for _, set := range g.local().ReadOnlyRoutingList {
		for _, server := range set {
			if equalName(server, g.local().Server) {
				return "", false
			}
			p := g.peerOn(server)
			if p == nil || !p.attached || !p.link.ready() {
				continue
			}
			if r := p.replica(); r != nil && r.SecondaryConnections != 0 && r.ReadOnlyRoutingURL != "" {
				return r.ReadOnlyRoutingURL, true
			}
		}
	}
	return "", false
}
