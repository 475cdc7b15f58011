package engine

import (
	"maps"
	"strings"
	"time"
)

// RegisteredName is the name that sys.servers holds for this server: the one that takes effect at
// the next start, or "" after sp_dropserver (FG 7.4).
func (in *Instance) RegisteredName() string {
	switch {
	case in.srv.PendingName != "":
		return in.srv.PendingName
	case in.srv.Unregistered:
		return ""
	}
	return in.srv.ServerName
}

// DropServer is sp_dropserver of the server's own name: 15015, 15247.
func (in *Instance) DropServer(now time.Time, id SessionID, name string) error {
	in.begin(now)
	if !in.HasPermission(id, ClassServer, "", "ALTER ANY LINKED SERVER") {
		return msg(15247, 16, 1, "User does not have permission to perform this action.")
	}
	if r := in.RegisteredName(); r == "" || !strings.EqualFold(r, name) {
		return msg(15015, 16, 1, "The server '%s' does not exist. Use sp_helpserver to show available servers.", name)
	}
	in.changeServer(func(st *ServerState) { st.PendingName, st.Unregistered = "", true })
	return nil
}

// AddServer is sp_addserver name, 'local': the name takes effect at the next start: 15028, 15247.
func (in *Instance) AddServer(now time.Time, id SessionID, name string) error {
	in.begin(now)
	if !in.HasPermission(id, ClassServer, "", "ALTER ANY LINKED SERVER") {
		return msg(15247, 16, 1, "User does not have permission to perform this action.")
	}
	if r := in.RegisteredName(); r != "" {
		return msg(15028, 16, 1, "The server '%s' already exists.", r)
	}
	in.changeServer(func(st *ServerState) { st.PendingName, st.Unregistered = name, false })
	return nil
}

// Configuration gives the options that sp_configure has changed from their defaults: as configured
// and, since the last RECONFIGURE, in use.
func (in *Instance) Configuration() (configured, running map[int]int64) {
	return in.srv.Configured, in.srv.Running
}

// Configure is sp_configure of one option: 15247.
func (in *Instance) Configure(now time.Time, id SessionID, option int, value int64) error {
	in.begin(now)
	if !in.HasPermission(id, ClassServer, "", "ALTER SETTINGS") {
		return msg(15247, 16, 1, "User does not have permission to perform this action.")
	}
	in.changeServer(func(st *ServerState) {
		m := maps.Clone(st.Configured)
		if m == nil {
			m = map[int]int64{}
		}
		m[option] = value
		st.Configured = m
	})
	return nil
}

// Reconfigure is RECONFIGURE: 5812.
func (in *Instance) Reconfigure(now time.Time, id SessionID) error {
	in.begin(now)
	if !in.HasPermission(id, ClassServer, "", "ALTER SETTINGS") {
		return msg(5812, 14, 1, "You do not have permission to run the RECONFIGURE statement.")
	}
	in.changeServer(func(st *ServerState) { st.Running = maps.Clone(st.Configured) })
	return nil
}
