package engine

import (
	"slices"
	"time"
)

// Credential is a server credential. Its secret is not kept: nothing in the simulation uses it.
type Credential struct {
	ID                int
	Name, Identity    string
	Created, Modified time.Time
}

// PutCredential is CREATE (create true) and ALTER CREDENTIAL: 15151 unknown.
func (in *Instance) PutCredential(now time.Time, id SessionID, name, identity string, create bool) error {
	in.begin(now)
	if !in.can(in.session(id), "ALTER ANY CREDENTIAL") {
		return msg(15247, 16, 1, "User does not have permission to perform this action.")
	}
	i := slices.IndexFunc(in.srv.Credentials, func(c Credential) bool { return equalName(c.Name, name) })
	if create && i >= 0 {
		return msg(15530, 16, 1, "The credential with name \"%s\" already exists.", name)
	}
	if !create && i < 0 {
		return cannotFind("credential", name)
	}
	in.changeServer(func(st *ServerState) {
		if create {
			st.Credentials = append(slices.Clone(st.Credentials), Credential{ID: 65536 + st.NextCert, Name: name, Identity: identity, Created: in.wall(), Modified: in.wall()})
			st.NextCert++
			return
		}
		st.Credentials = slices.Clone(st.Credentials)
		st.Credentials[i].Identity, st.Credentials[i].Modified = identity, in.wall()
	})
	return nil
}

// DropCredential is DROP CREDENTIAL.
func (in *Instance) DropCredential(now time.Time, id SessionID, name string) error {
	in.begin(now)
	i := slices.IndexFunc(in.srv.Credentials, func(c Credential) bool { return equalName(c.Name, name) })
	if i < 0 || !in.can(in.session(id), "ALTER ANY CREDENTIAL") {
		return cannotFind("credential", name)
	}
	in.changeServer(func(st *ServerState) { st.Credentials = slices.Delete(slices.Clone(st.Credentials), i, i+1) })
	return nil
}

// Credentials is sys.credentials.
func (in *Instance) Credentials(now time.Time, id SessionID) []Credential {
	in.begin(now)
	s := in.session(id)
	if !in.can(s, "ALTER ANY CREDENTIAL") && !in.can(s, "VIEW ANY DEFINITION") {
		return nil
	}
	return slices.Clone(in.srv.Credentials)
}

// HasCredentialFor tells whether a credential's name is a prefix of the URL (FG 9.1).
func (in *Instance) HasCredentialFor(url string) bool {
	return slices.ContainsFunc(in.srv.Credentials, func(c Credential) bool {
		return len(c.Name) <= len(url) && equalName(c.Name, url[:len(c.Name)])
	})
}
