package engine

import "time"

// Metadata is a version of what an instance knows of its endpoints, certificates and availability
// group, as one session may see it. It is comparable.
type Metadata struct {
	server *ServerState
	login  PrincipalID
	group  *group
	config *Configuration
	role   Role
}

// Metadata tells the present version. As long as it stays equal, Endpoints, Certificates,
// AvailabilityGroups, AvailabilityReplicas and GroupDatabases give the session the same rows: the
// server's state and a group's configuration are replaced as a whole, never changed in place. ok is
// false where that is not so: for a login that sees certificates by a right inside of master, and
// with more than one group.
func (in *Instance) Metadata(now time.Time, id SessionID) (m Metadata, ok bool) {
	in.begin(now)
	s := in.session(id)
	if len(in.groups) > 1 || !in.can(s, "VIEW ANY DEFINITION") {
		return Metadata{}, false
	}
	m = Metadata{server: in.srv, login: s.login}
	for _, g := range in.groups {
		m.group, m.config, m.role = g, g.st.Config, g.role
	}
	return m, true
}
