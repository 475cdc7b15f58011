package engine

import (
	"slices"
	"strings"
	"time"
)

// The fixed server roles with the server permissions that they imply (the rest of their powers is
// checked by name). sysadmin implies everything.
func serverRoles() []struct {
	name   string
	grants []string
} {
	return []struct {
		name   string
		grants []string
	}{
		{"sysadmin", nil},
		{"securityadmin", []string{"ALTER ANY LOGIN", "VIEW ANY ERROR LOG"}},
		{"serveradmin", []string{"SHUTDOWN", "ALTER SERVER STATE", "ALTER SETTINGS", "ALTER ANY ENDPOINT", "ALTER RESOURCES"}},
		{"setupadmin", []string{"ALTER ANY LINKED SERVER"}},
		{"processadmin", []string{"ALTER ANY CONNECTION", "ALTER SERVER STATE", "SHUTDOWN"}},
		{"diskadmin", []string{"ALTER RESOURCES"}},
		{"dbcreator", []string{"CREATE ANY DATABASE", "ALTER ANY DATABASE"}},
		{"bulkadmin", []string{"ADMINISTER BULK OPERATIONS"}},
		{"##MS_ServerStateReader##", []string{"VIEW SERVER STATE"}},
		{"##MS_DefinitionReader##", []string{"VIEW ANY DEFINITION"}},
	}
}

// serverPermissions are the permissions of class SERVER, each with those that include it (besides
// CONTROL SERVER).
func serverPermission(name string) (implied []string, ok bool) {
	switch name {
	case "CONTROL SERVER", "ALTER ANY LOGIN", "ALTER ANY DATABASE", "ALTER ANY ENDPOINT", "ALTER ANY AVAILABILITY GROUP",
		"ALTER ANY CREDENTIAL", "ALTER ANY CONNECTION", "ALTER ANY LINKED SERVER", "ALTER ANY SERVER ROLE", "ALTER ANY SERVER AUDIT",
		"ALTER ANY EVENT SESSION", "ALTER SETTINGS", "ALTER RESOURCES", "ALTER TRACE", "CONNECT ANY DATABASE", "IMPERSONATE ANY LOGIN",
		"SELECT ALL USER SECURABLES", "ADMINISTER BULK OPERATIONS", "UNSAFE ASSEMBLY", "EXTERNAL ACCESS ASSEMBLY", "CONNECT SQL", "SHUTDOWN":
		return nil, true
	case "ALTER SERVER STATE":
		return nil, true
	case "CREATE ANY DATABASE":
		return []string{"ALTER ANY DATABASE"}, true
	case "VIEW ANY DATABASE":
		return []string{"VIEW ANY DEFINITION", "ALTER ANY DATABASE"}, true
	case "CREATE ENDPOINT":
		return []string{"ALTER ANY ENDPOINT"}, true
	case "CREATE AVAILABILITY GROUP":
		return []string{"ALTER ANY AVAILABILITY GROUP"}, true
	case "CREATE SERVER ROLE":
		return []string{"ALTER ANY SERVER ROLE"}, true
	case "CREATE LOGIN":
		return []string{"ALTER ANY LOGIN"}, true
	case "VIEW SERVER STATE":
		return []string{"ALTER SERVER STATE"}, true
	case "VIEW SERVER PERFORMANCE STATE", "VIEW SERVER SECURITY STATE":
		return []string{"VIEW SERVER STATE", "ALTER SERVER STATE"}, true
	case "VIEW ANY DEFINITION":
		return nil, true
	case "VIEW ANY SECURITY DEFINITION", "VIEW ANY PERFORMANCE DEFINITION":
		return []string{"VIEW ANY DEFINITION"}, true
	case "VIEW ANY ERROR LOG", "VIEW ANY CRYPTOGRAPHICALLY SECURED DEFINITION":
		return nil, true
	}
	return nil, false
}

func databasePermission(name string) bool {
	switch name {
	case "SELECT", "INSERT", "UPDATE", "DELETE", "EXECUTE", "REFERENCES", "CONTROL", "ALTER", "CONNECT", "VIEW DEFINITION", "VIEW DATABASE STATE",
		"TAKE OWNERSHIP", "CREATE TABLE", "CREATE VIEW", "CREATE PROCEDURE", "CREATE FUNCTION", "CREATE SCHEMA", "CREATE ROLE", "CREATE CERTIFICATE",
		"CREATE DATABASE", "BACKUP DATABASE", "BACKUP LOG", "CHECKPOINT", "ALTER ANY USER", "ALTER ANY ROLE", "ALTER ANY SCHEMA",
		"ALTER ANY CERTIFICATE", "CREATE SYMMETRIC KEY", "ALTER ANY SYMMETRIC KEY", "AUTHENTICATE", "SHOWPLAN", "UNMASK", "IMPERSONATE",
		"VIEW DATABASE PERFORMANCE STATE", "VIEW DATABASE SECURITY STATE", "VIEW CHANGE TRACKING":
		return true
	}
	return false
}

const (
	publicRole   PrincipalID = 2
	sysadminRole PrincipalID = 3
)

// memberOf tells whether the login is in the server role, directly or through other roles.
func (in *Instance) memberOf(login, role PrincipalID) bool {
	if role == publicRole {
		return true
	}
	for _, m := range in.srv.Members {
		if m.MemberID == login && (m.RoleID == role || in.memberOf(m.RoleID, role)) {
			return true
		}
	}
	return false
}

func (in *Instance) isSysadmin(s *session) bool {
	return s.login == 1 || in.memberOf(s.login, sysadminRole)
}

// can tells whether the session's login holds a server permission.
func (in *Instance) can(s *session, name string) bool {
	if s == in.nobody {
		return false
	}
	// Views ask again and again; the answer stays while the server's metadata does.
	if in.rightsOf != in.srv {
		in.rightsOf, in.rights = in.srv, map[right]bool{}
	}
	key := right{s.login, name}
	may, known := in.rights[key]
	if !known {
		may = in.decideRight(s, name)
		in.rights[key] = may
	}
	return may
}

// right is a permission on the server of one login.
type right struct {
	login PrincipalID
	name  string
}

func (in *Instance) decideRight(s *session, name string) bool {
	if in.isSysadmin(s) {
		return true
	}
	implied, _ := serverPermission(name)
	names := append([]string{name, "CONTROL SERVER"}, implied...)
	granted := false
	for _, p := range in.srv.Permissions {
		if p.Class != ClassServer || !in.appliesTo(p, s.login) {
			continue
		}
		if p.Verb == Deny && (p.Name == name || p.Name == "CONTROL SERVER") {
			return false
		}
		granted = granted || p.Verb == Grant && slices.Contains(names, p.Name)
	}
	for _, r := range serverRoles() {
		if rp := in.principalByName(r.name); rp != nil && in.memberOf(s.login, rp.ID) {
			for _, g := range r.grants {
				granted = granted || slices.Contains(names, g)
			}
		}
	}
	return granted
}

func (in *Instance) appliesTo(p *Permission, login PrincipalID) bool {
	return p.Grantee == login || in.memberOf(login, p.Grantee)
}

// canOn tells whether the login holds one of the permissions on a server securable itself.
func (in *Instance) canOn(s *session, class SecurableClass, object string, names ...string) bool {
	if s == in.nobody {
		return false
	}
	if in.isSysadmin(s) {
		return true
	}
	ok := false
	for _, p := range in.srv.Permissions {
		if p.Class != class || p.Object != object || !in.appliesTo(p, s.login) {
			continue
		}
		hit := p.Name == "CONTROL" || slices.Contains(names, p.Name)
		if p.Verb == Deny && hit {
			return false
		}
		ok = ok || hit
	}
	return ok
}

// mayAlterGroup: ALTER or CONTROL on the group, ALTER ANY AVAILABILITY GROUP or CONTROL SERVER (FG 1.8).
func (in *Instance) mayAlterGroup(s *session, id GUID) bool {
	return in.can(s, "ALTER ANY AVAILABILITY GROUP") || in.canOn(s, ClassGroup, id.String(), "ALTER")
}

// maySeeGroup: VIEW ANY DEFINITION, or VIEW DEFINITION, ALTER or CONTROL on it (FG 1.8).
func (in *Instance) maySeeGroup(s *session, id GUID) bool {
	return in.can(s, "VIEW ANY DEFINITION") || in.mayAlterGroup(s, id) || in.canOn(s, ClassGroup, id.String(), "VIEW DEFINITION", "ALTER")
}

// viewState is the check of the dynamic management views: VIEW SERVER STATE up to 2019, VIEW SERVER
// PERFORMANCE STATE since (FG 1.8). 300 is what the server answers.
func (in *Instance) viewState(s *session) error {
	name := "VIEW SERVER STATE"
	if in.cfg.Major >= 16 {
		name = "VIEW SERVER PERFORMANCE STATE"
	}
	if in.can(s, name) {
		return nil
	}
	return Errors{msg(300, 14, 1, "%s permission was denied on object 'server', database 'master'.", name),
		msg(297, 16, 1, "The user does not have permission to perform this action.")}
}

// user is the session's principal inside a database; ok is false when it may not enter.
func (in *Instance) user(s *session, d *database) (PrincipalID, bool) {
	if s == in.nobody {
		return 0, false
	}
	if in.isSysadmin(s) || slices.Equal(d.state.Owner, s.sid()) {
		return 1, true
	}
	if m := d.member; m != nil && m.group.role == RoleSecondary {
		d.redo(d.end)
	}
	if d.content != nil {
		for _, p := range d.content.principals {
			if p.Type != "R" && len(p.SID) > 0 && slices.Equal(p.SID, s.sid()) {
				return p.ID, true
			}
		}
	}
	if d.state.ID == MasterID || d.state.ID == TempDBID || d.state.ID == MSDBID || in.can(s, "CONNECT ANY DATABASE") {
		return 2, true
	}
	return 0, false
}

func (in *Instance) isUser(s *session, d *database) bool {
	_, ok := in.user(s, d)
	return ok
}

// inRole tells whether a database principal is in a role of the database.
func (c *content) inRole(id PrincipalID, role PrincipalID) bool {
	if role == 0 {
		return true
	}
	for _, m := range c.members {
		if m.MemberID == id && (m.RoleID == role || c.inRole(m.RoleID, role)) {
			return true
		}
	}
	return false
}

func (c *content) principal(name string) *Principal {
	for _, p := range c.principals {
		if equalName(p.Name, name) {
			return p
		}
	}
	return nil
}

// fixed database roles by their permissions
func roleAllows(role, perm string) bool {
	switch role {
	case "db_owner":
		return true
	case "db_datareader":
		return perm == "SELECT"
	case "db_datawriter":
		return perm == "INSERT" || perm == "UPDATE" || perm == "DELETE"
	case "db_ddladmin":
		return strings.HasPrefix(perm, "CREATE ") && perm != "CREATE CERTIFICATE" || perm == "ALTER"
	case "db_accessadmin":
		return perm == "ALTER ANY USER"
	case "db_securityadmin":
		return perm == "ALTER ANY ROLE"
	case "db_backupoperator":
		return perm == "BACKUP DATABASE" || perm == "BACKUP LOG" || perm == "CHECKPOINT"
	}
	return false
}

// dbCan tells whether the session holds a database permission, on an object if object is not "".
func (in *Instance) dbCan(s *session, d *database, object, perm string) bool {
	id, ok := in.user(s, d)
	if !ok || d.content == nil {
		return ok && id == 1
	}
	if id == 1 {
		return true
	}
	c := d.content
	if c.inRole(id, 16384) {
		return true
	}
	ok = false
	for _, p := range c.permissions {
		if p.Grantee != id && !c.inRole(id, p.Grantee) {
			continue
		}
		if p.Object != "" && p.Object != object {
			continue
		}
		hit := p.Name == perm || p.Name == "CONTROL" ||
			perm == "VIEW DEFINITION" && p.Name == "ALTER" || perm == "ALTER" && object != "" && p.Name == "ALTER"
		if p.Verb == Deny && p.Name == perm {
			return false
		}
		ok = ok || hit && p.Verb == Grant
	}
	for _, p := range c.principals {
		if p.IsFixedRole && c.inRole(id, p.ID) {
			if p.Name == "db_denydatareader" && perm == "SELECT" || p.Name == "db_denydatawriter" && roleAllows("db_datawriter", perm) {
				return false
			}
			ok = ok || roleAllows(p.Name, perm)
		}
	}
	if perm == "SELECT" && in.can(s, "SELECT ALL USER SECURABLES") {
		return true
	}
	return ok
}

// DatabasePermitted tells whether the session holds a permission in a database: on an object if
// object is not 0.
func (in *Instance) DatabasePermitted(id SessionID, db DatabaseID, object ObjectID, perm string) bool {
	d := in.database(db)
	if d == nil {
		return false
	}
	o := ""
	if object != 0 {
		o = objectKey(object)
	}
	return in.dbCan(in.session(id), d, o, perm)
}

func (in *Instance) mayAlter(s *session, d *database) bool {
	return in.can(s, "ALTER ANY DATABASE") || in.dbCan(s, d, "", "ALTER") || in.dbCan(s, d, "", "CONTROL")
}

// HasPermission is HAS_PERMS_BY_NAME for the session's login: class "" asks for the server.
func (in *Instance) HasPermission(id SessionID, class SecurableClass, object, permission string) bool {
	s := in.session(id)
	permission = strings.ToUpper(permission)
	switch class {
	case "", ClassServer:
		return in.can(s, permission)
	case ClassDatabase:
		d := in.database(s.db)
		if object != "" {
			d = in.databaseByName(object)
		}
		return d != nil && in.dbCan(s, d, "", permission)
	case ClassGroup:
		if g := in.groupByName(object); g != nil {
			return in.can(s, "ALTER ANY AVAILABILITY GROUP") || in.canOn(s, class, g.id().String(), permission)
		}
	case ClassEndpoint:
		return in.can(s, "ALTER ANY ENDPOINT") || in.canOn(s, class, foldName(object), permission)
	case ClassLogin:
		return in.can(s, "ALTER ANY LOGIN") || in.canOn(s, class, foldName(object), permission)
	case ClassCertificate:
		return in.dbCan(s, in.database(MasterID), "CERTIFICATE::"+foldName(object), permission)
	}
	return false
}

// GrantPermission runs GRANT, DENY or REVOKE: 15151, 4621 (permission unknown to the class). The
// database's own permissions are changes of the session's transaction.
func (in *Instance) GrantPermission(now time.Time, id SessionID, g GrantSpec) error {
	in.begin(now)
	s := in.session(id)
	for _, perm := range g.Permissions {
		perm = strings.ToUpper(perm)
		if perm == "ALL" || strings.HasPrefix(perm, "ALL ") {
			return msg(102, 15, 1, "Incorrect syntax near 'ALL'.")
		}
		class := g.Class
		if class == "" {
			class = ClassDatabase
			if _, ok := serverPermission(perm); ok {
				class = ClassServer
			}
		}
		var err error
		switch class {
		case ClassServer, ClassEndpoint, ClassLogin, ClassGroup:
			err = in.grantServer(s, class, perm, g)
		default:
			err = in.grantDatabase(now, s, class, perm, g)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func cannotFind(kind, name string) error {
	return msg(15151, 16, 1, "Cannot find the %s '%s', because it does not exist or you do not have permission.", kind, name)
}

func (in *Instance) grantServer(s *session, class SecurableClass, perm string, g GrantSpec) error {
	object := foldName(g.Object)
	allowed := in.can(s, "CONTROL SERVER")
	switch class {
	case ClassServer:
		object = ""
		if _, ok := serverPermission(perm); !ok {
			return msg(4621, 16, 10, "Permissions at the server scope can only be granted when the current database is master")
		}
		if s.db != MasterID {
			return msg(4621, 16, 10, "Permissions at the server scope can only be granted when the current database is master")
		}
		for _, p := range in.srv.Permissions {
			allowed = allowed || p.Class == class && p.Name == perm && p.Option && p.Verb == Grant && in.appliesTo(p, s.login)
		}
	case ClassGroup:
		ag := in.groupByName(g.Object)
		if ag == nil || !in.maySeeGroup(s, ag.id()) {
			return cannotFind("availability group", g.Object)
		}
		object = ag.id().String()
		allowed = allowed || in.canOn(s, class, object, "CONTROL")
	case ClassEndpoint:
		if in.srv.Endpoint == nil || foldName(in.srv.Endpoint.Name) != object {
			return cannotFind("endpoint", g.Object)
		}
		allowed = allowed || in.can(s, "ALTER ANY ENDPOINT") || in.canOn(s, class, object, "CONTROL") || in.srv.Endpoint.Owner == s.login
	case ClassLogin:
		if in.principalByName(g.Object) == nil {
			return cannotFind("login", g.Object)
		}
		allowed = allowed || in.can(s, "ALTER ANY LOGIN")
	}
	if !allowed {
		return msg(4613, 16, 1, "Grantor does not have GRANT permission.")
	}
	for _, to := range g.To {
		p := in.principalByName(to)
		if p == nil {
			return cannotFind("login", to)
		}
		if p.ID == 1 || p.ID == s.login && g.Verb != Revoke {
			return msg(4624, 16, 1, "Cannot grant, deny, or revoke permissions to sa, dbo, entity owner, information_schema, sys, or yourself.")
		}
		n := &Permission{Class: class, Object: object, Name: perm, Grantee: p.ID, Grantor: s.login, Verb: g.Verb, Option: g.WithGrantOption}
		in.changeServer(func(st *ServerState) {
			st.Permissions = slices.DeleteFunc(st.Permissions, func(p *Permission) bool { return p.same(n) })
			if g.Verb != Revoke {
				st.Permissions = append(st.Permissions, n)
			}
		})
	}
	return nil
}

func (in *Instance) grantDatabase(now time.Time, s *session, class SecurableClass, perm string, g GrantSpec) error {
	if !databasePermission(perm) {
		return msg(102, 15, 1, "Incorrect syntax near '%s'.", perm)
	}
	return in.buffered(now, s, s.db, func(p *part, v view) error {
		d := p.db
		object := ""
		switch class {
		case ClassObject:
			schema, name, ok := strings.Cut(g.Object, ".")
			if !ok {
				schema, name = "dbo", g.Object
			}
			if t := v.lookup(schema, name); t != nil {
				object = objectKey(t.ID)
			} else if m := v.module(schema, name); m != nil {
				object = objectKey(m.ID)
			} else {
				return cannotFind("object", g.Object)
			}
		case ClassSchema:
			object = "SCHEMA::" + foldName(g.Object)
		case ClassCertificate:
			if d.state.ID != MasterID || in.certificate(g.Object) == nil {
				return cannotFind("certificate", g.Object)
			}
			object = "CERTIFICATE::" + foldName(g.Object)
		}
		if !in.dbCan(s, d, object, "CONTROL") && !in.dbCan(s, d, "", "ALTER ANY ROLE") {
			return msg(4613, 16, 1, "Grantor does not have GRANT permission.")
		}
		for _, to := range g.To {
			u := v.principal(to)
			if u == nil {
				return cannotFind("user", to)
			}
			if u.ID == 1 {
				return msg(4624, 16, 1, "Cannot grant, deny, or revoke permissions to sa, dbo, entity owner, information_schema, sys, or yourself.")
			}
			c := Change{Op: OpPutPermission, Permission: &Permission{Class: class, Object: object, Name: perm, Grantee: u.ID, Grantor: 1, Verb: g.Verb, Option: g.WithGrantOption}}
			if g.Verb == Revoke {
				c.Op = OpDropPermission
			}
			p.changes = append(p.changes, c)
		}
		return nil
	})
}
