package engine

import (
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/sqltypes"
)

func foldName(s string) string { return sqltypes.Fold(s) }

func objectKey(id ObjectID) string { return strconv.Itoa(int(id)) }

func hashPassword(salt []byte, password string) []byte {
	h := sha256.Sum256(append(append([]byte(nil), salt...), password...))
	return h[:]
}

func (p *Principal) passwordIs(password string) bool {
	return len(p.Hash) > 0 && subtle.ConstantTimeCompare(p.Hash, hashPassword(p.Salt, password)) == 1
}

// weakPassword is the password policy of FG 7.6; "" means acceptable.
func weakPassword(password string) error {
	classes := map[int]bool{}
	for _, r := range password {
		switch {
		case unicode.IsUpper(r):
			classes[0] = true
		case unicode.IsLower(r):
			classes[1] = true
		case unicode.IsDigit(r):
			classes[2] = true
		default:
			classes[3] = true
		}
	}
	n := len([]rune(password))
	switch {
	case n < 8:
		return msg(15116, 16, 1, "Password validation failed. The password does not meet the operating system policy requirements because it is too short.")
	case n > 128:
		return msg(15117, 16, 1, "Password validation failed. The password does not meet the operating system policy requirements because it is too long.")
	case len(classes) < 3:
		return msg(15118, 16, 1, "Password validation failed. The password does not meet the operating system policy requirements because it is not complex enough.")
	}
	return nil
}

// WeakPassword tells why the server would refuse a password, nil if it would not (FG 7.6).
func WeakPassword(password string) error { return weakPassword(password) }

// changeServer replaces the instance-level state, durably.
func (in *Instance) changeServer(change func(*ServerState)) {
	n := *in.srv
	n.Principals = slices.Clone(n.Principals)
	n.Members = slices.Clone(n.Members)
	n.Permissions = slices.Clone(n.Permissions)
	n.Certificates = slices.Clone(n.Certificates)
	change(&n)
	in.srv = &n
	in.persist(PutServer{State: in.srv})
}

func (in *Instance) principalByName(name string) *Principal {
	for _, p := range in.srv.Principals {
		if equalName(p.Name, name) {
			return p
		}
	}
	return nil
}

func (in *Instance) loginByName(name string) *Principal {
	if p := in.principalByName(name); p != nil && p.Type != "R" {
		return p
	}
	return nil
}

// CreateLogin is CREATE LOGIN: 15025 exists, 15118 policy.
func (in *Instance) CreateLogin(now time.Time, id SessionID, l LoginSpec) error {
	in.begin(now)
	s := in.session(id)
	if !in.can(s, "CREATE LOGIN") {
		return msg(15247, 16, 1, "User does not have permission to perform this action.")
	}
	if in.principalByName(l.Name) != nil {
		return msg(15025, 16, 2, "The server principal '%s' already exists.", l.Name)
	}
	p := &Principal{PrincipalRow: PrincipalRow{Name: l.Name, Type: "S", TypeDesc: "SQL_LOGIN", CreateDate: in.wall(), ModifyDate: in.wall(),
		DefaultDatabase: "master", PolicyChecked: true}}
	switch {
	case l.Certificate != nil:
		c := in.certificate(*l.Certificate)
		if c == nil {
			return cannotFind("certificate", *l.Certificate)
		}
		for _, o := range in.srv.Principals {
			if o.Certificate == c.ID {
				return msg(15433, 16, 1, "Supplied parameter sid is in use.")
			}
		}
		p.Type, p.TypeDesc, p.Certificate, p.CertificateName = "C", "CERTIFICATE_MAPPED_LOGIN", c.ID, c.Name
		p.SID = append([]byte{1, 6, 0, 0, 0, 0, 0, 9, 1, 0, 0, 0}, c.Thumbprint...)
	case l.Password == nil:
		return msg(102, 15, 1, "Incorrect syntax near '%s'.", l.Name)
	default:
		set(&p.PolicyChecked, l.CheckPolicy)
		if p.PolicyChecked {
			if err := weakPassword(*l.Password); err != nil {
				return err
			}
		}
		p.Salt = in.rnd.bytes(16)
		p.Hash = hashPassword(p.Salt, *l.Password)
		p.SID = l.SID
		if p.SID == nil {
			p.SID = in.rnd.bytes(16)
		}
		for _, o := range in.srv.Principals {
			if slices.Equal(o.SID, p.SID) {
				return msg(15433, 16, 1, "Supplied parameter sid is in use.")
			}
		}
	}
	set(&p.DefaultDatabase, l.DefaultDatabase)
	in.changeServer(func(st *ServerState) {
		p.ID = st.NextPrincipal
		st.NextPrincipal++
		st.Principals = append(st.Principals, p)
	})
	return nil
}

// AlterLogin is ALTER LOGIN: 15151 unknown.
func (in *Instance) AlterLogin(now time.Time, id SessionID, l LoginSpec) error {
	in.begin(now)
	s := in.session(id)
	old := in.loginByName(l.Name)
	self := old != nil && old.ID == s.login && l.OldPassword != nil && l.Password != nil && old.passwordIs(*l.OldPassword)
	if old == nil || !self && !in.can(s, "ALTER ANY LOGIN") {
		return cannotFind("login", l.Name)
	}
	n := *old
	set(&n.PolicyChecked, l.CheckPolicy)
	if l.Password != nil {
		if n.PolicyChecked {
			if err := weakPassword(*l.Password); err != nil {
				return err
			}
		}
		n.Salt = in.rnd.bytes(16)
		n.Hash = hashPassword(n.Salt, *l.Password)
	}
	set(&n.IsDisabled, l.Disabled)
	set(&n.DefaultDatabase, l.DefaultDatabase)
	if l.NewName != nil {
		if o := in.principalByName(*l.NewName); o != nil && o.ID != n.ID {
			return msg(15025, 16, 1, "The server principal '%s' already exists.", *l.NewName)
		}
		n.Name = *l.NewName
	}
	n.ModifyDate = in.wall()
	in.putPrincipal(&n)
	return nil
}

func (in *Instance) putPrincipal(p *Principal) {
	in.changeServer(func(st *ServerState) {
		for i := range st.Principals {
			if st.Principals[i].ID == p.ID {
				st.Principals[i] = p
			}
		}
	})
	for _, s := range in.sessions {
		if s.login == p.ID {
			s.principal = p
		}
	}
}

// DropLogin is DROP LOGIN: 15151, 15434 (logged in).
func (in *Instance) DropLogin(now time.Time, id SessionID, name string) error {
	in.begin(now)
	p := in.loginByName(name)
	if p == nil || !in.can(in.session(id), "ALTER ANY LOGIN") {
		return cannotFind("login", name)
	}
	for _, s := range in.sessions {
		if s.login == p.ID && !s.dead {
			return msg(15434, 16, 1, "Could not drop login '%s' as the user is currently logged in.", name)
		}
	}
	in.dropPrincipal(p.ID)
	return nil
}

func (in *Instance) dropPrincipal(id PrincipalID) {
	in.changeServer(func(st *ServerState) {
		st.Principals = slices.DeleteFunc(st.Principals, func(p *Principal) bool { return p.ID == id })
		st.Permissions = slices.DeleteFunc(st.Permissions, func(p *Permission) bool { return p.Grantee == id })
		st.Members = slices.DeleteFunc(st.Members, func(m RoleMemberRow) bool { return m.MemberID == id || m.RoleID == id })
	})
}

// buffered runs a change of a database's catalog in the session's transaction, or in one of its own
// that it commits; that one is not waited for.
func (in *Instance) buffered(now time.Time, s *session, db DatabaseID, f func(*part, view) error) error {
	own := s.txn == nil
	if own {
		in.Begin(now, s.id)
	}
	p, v, err := in.catalog(now, s.id, db)
	if err == nil {
		err = f(p, v)
	}
	if !own {
		return err
	}
	if err != nil {
		in.rollback(s)
		return err
	}
	_, err = in.Commit(now, s.id)
	return err
}

// principals are the users and roles that the session sees.
func (v view) principals() []*Principal { return v.security().principals }

func (v view) principal(name string) *Principal { return v.security().principal(name) }

// security is the users, roles, rights and members with the transaction's own changes.
func (v view) security() *content {
	c := v.db.content
	if v.part == nil {
		return c
	}
	n := &content{principals: slices.Clone(c.principals), permissions: slices.Clone(c.permissions), members: slices.Clone(c.members), nextPrincipal: c.nextPrincipal}
	for i := range v.part.changes {
		switch v.part.changes[i].Op {
		case OpPutPrincipal, OpDropPrincipal, OpPutPermission, OpDropPermission, OpAddMember, OpDropMember:
			n.change(&v.part.changes[i])
		}
	}
	return n
}

// CreateUser is CREATE USER in the current database; login "" means WITHOUT LOGIN: 15023, 15007.
func (in *Instance) CreateUser(now time.Time, id SessionID, name, login string) error {
	in.begin(now)
	s := in.session(id)
	return in.buffered(now, s, s.db, func(p *part, v view) error {
		if !in.dbCan(s, p.db, "", "ALTER ANY USER") {
			return msg(15247, 16, 1, "User does not have permission to perform this action.")
		}
		if v.principal(name) != nil {
			return msg(15023, 16, 1, "User, group, or role '%s' already exists in the current database.", name)
		}
		u := &Principal{PrincipalRow: PrincipalRow{ID: v.security().nextPrincipal, Name: name, Type: "S", TypeDesc: "SQL_USER", DefaultSchema: "dbo",
			CreateDate: in.wall(), ModifyDate: in.wall(), OwnerID: 1}}
		if login == "" {
			u.SID = in.rnd.bytes(28)
		} else {
			l := in.loginByName(login)
			if l == nil {
				return msg(15007, 16, 1, "'%s' is not a valid login or you do not have permission.", login)
			}
			for _, o := range v.principals() {
				if o.Type != "R" && slices.Equal(o.SID, l.SID) {
					return msg(15063, 16, 1, "The login already has an account under a different user name.")
				}
			}
			u.SID, u.Certificate = l.SID, l.Certificate
			if l.Type == "C" {
				u.Type, u.TypeDesc = "C", "CERTIFICATE_MAPPED_USER"
			}
		}
		p.changes = append(p.changes, Change{Op: OpPutPrincipal, Principal: u})
		return nil
	})
}

// DropUser is DROP USER: 15151, 15138 (owns a certificate).
func (in *Instance) DropUser(now time.Time, id SessionID, name string) error {
	in.begin(now)
	s := in.session(id)
	return in.buffered(now, s, s.db, func(p *part, v view) error {
		u := v.principal(name)
		if u == nil || u.Type == "R" || !in.dbCan(s, p.db, "", "ALTER ANY USER") {
			return cannotFind("user", name)
		}
		if u.ID <= 4 {
			return msg(15150, 16, 1, "Cannot drop the user '%s'.", name)
		}
		if p.db.state.ID == MasterID {
			for _, c := range in.srv.Certificates {
				if c.Owner == u.ID {
					return msg(15138, 16, 1, "The database principal owns a certificate in the database, and cannot be dropped.")
				}
			}
		}
		p.changes = append(p.changes, Change{Op: OpDropPrincipal, Object: ObjectID(u.ID)})
		return nil
	})
}

// CreateRole makes a database or server role.
func (in *Instance) CreateRole(now time.Time, id SessionID, server bool, name string) error {
	in.begin(now)
	s := in.session(id)
	row := PrincipalRow{Name: name, Type: "R", CreateDate: in.wall(), ModifyDate: in.wall(), OwnerID: 1}
	if server {
		if !in.can(s, "CREATE SERVER ROLE") {
			return msg(15247, 16, 1, "User does not have permission to perform this action.")
		}
		if in.principalByName(name) != nil {
			return msg(15025, 16, 1, "The server principal '%s' already exists.", name)
		}
		row.TypeDesc = "SERVER_ROLE"
		in.changeServer(func(st *ServerState) {
			row.ID = st.NextPrincipal
			st.NextPrincipal++
			st.Principals = append(st.Principals, &Principal{PrincipalRow: row})
		})
		return nil
	}
	return in.buffered(now, s, s.db, func(p *part, v view) error {
		if !in.dbCan(s, p.db, "", "CREATE ROLE") {
			return msg(15247, 16, 1, "User does not have permission to perform this action.")
		}
		if v.principal(name) != nil {
			return msg(15023, 16, 1, "User, group, or role '%s' already exists in the current database.", name)
		}
		row.ID, row.TypeDesc = v.security().nextPrincipal, "DATABASE_ROLE"
		p.changes = append(p.changes, Change{Op: OpPutPrincipal, Principal: &Principal{PrincipalRow: row}})
		return nil
	})
}

// DropRole drops it.
func (in *Instance) DropRole(now time.Time, id SessionID, server bool, name string) error {
	in.begin(now)
	s := in.session(id)
	if server {
		p := in.principalByName(name)
		if p == nil || p.Type != "R" || p.IsFixedRole || p.ID == publicRole || !in.can(s, "ALTER ANY SERVER ROLE") {
			return cannotFind("server role", name)
		}
		in.dropPrincipal(p.ID)
		return nil
	}
	return in.buffered(now, s, s.db, func(p *part, v view) error {
		r := v.principal(name)
		if r == nil || r.Type != "R" || r.IsFixedRole || r.ID == 0 || !in.dbCan(s, p.db, "", "ALTER ANY ROLE") {
			return cannotFind("role", name)
		}
		if slices.ContainsFunc(v.security().members, func(m RoleMemberRow) bool { return m.RoleID == r.ID }) {
			return msg(15144, 16, 1, "The role has members. It must be empty before it can be dropped.")
		}
		p.changes = append(p.changes, Change{Op: OpDropPrincipal, Object: ObjectID(r.ID)})
		return nil
	})
}

// AlterRole adds or removes a member of a server role (server true) or of a role of the current
// database: ALTER [SERVER] ROLE … ADD|DROP MEMBER.
func (in *Instance) AlterRole(now time.Time, id SessionID, server bool, role, member string, add bool) error {
	in.begin(now)
	s := in.session(id)
	if server {
		r, m := in.principalByName(role), in.principalByName(member)
		if r == nil || r.Type != "R" {
			return cannotFind("server role", role)
		}
		if m == nil {
			return cannotFind("login", member)
		}
		if !in.isSysadmin(s) && (r.ID == sysadminRole || !in.can(s, "ALTER ANY SERVER ROLE") && !in.memberOf(s.login, r.ID)) {
			return cannotFind("server role", role)
		}
		row := RoleMemberRow{RoleID: r.ID, MemberID: m.ID}
		in.changeServer(func(st *ServerState) {
			st.Members = slices.DeleteFunc(st.Members, func(x RoleMemberRow) bool { return x == row })
			if add {
				st.Members = append(st.Members, row)
			}
		})
		return nil
	}
	return in.buffered(now, s, s.db, func(p *part, v view) error {
		r, m := v.principal(role), v.principal(member)
		if r == nil || r.Type != "R" || !in.dbCan(s, p.db, "", "ALTER ANY ROLE") {
			return cannotFind("role", role)
		}
		if m == nil {
			return msg(15151, 16, 1, "Cannot add the principal '%s', because it does not exist or you do not have permission.", member)
		}
		c := Change{Op: OpAddMember, Member: &RoleMemberRow{RoleID: r.ID, MemberID: m.ID}}
		if !add {
			c.Op = OpDropMember
		}
		p.changes = append(p.changes, c)
		return nil
	})
}

// IsServerRoleMember is IS_SRVROLEMEMBER; ok is false for an unknown role or login. login "" is the
// session's own.
func (in *Instance) IsServerRoleMember(id SessionID, role, login string) (member, ok bool) {
	s := in.session(id)
	r := in.principalByName(role)
	if r == nil || r.Type != "R" {
		return false, false
	}
	who := s.login
	if login != "" {
		p := in.loginByName(login)
		if p == nil {
			return false, false
		}
		who = p.ID
	}
	if who == 1 && r.ID == sysadminRole {
		return true, true
	}
	return in.memberOf(who, r.ID), true
}

// IsDatabaseRoleMember is IS_ROLEMEMBER / IS_MEMBER in the session's database.
func (in *Instance) IsDatabaseRoleMember(id SessionID, role string) (member, ok bool) {
	s := in.session(id)
	d := in.database(s.db)
	if d == nil || d.content == nil {
		return false, false
	}
	r := d.content.principal(role)
	if r == nil || r.Type != "R" {
		return false, false
	}
	u, _ := in.user(s, d)
	return u == 1 && strings.EqualFold(role, "db_owner") || d.content.inRole(u, r.ID), true
}

// LoginName is SUSER_SNAME(), UserName is USER_NAME(), LoginSID is SUSER_SID().
func (in *Instance) LoginName(id SessionID) string { return in.session(id).principal.Name }

// LoginSID is SUSER_SID().
func (in *Instance) LoginSID(id SessionID) []byte { return in.session(id).principal.SID }

// UserName is the session's user in its current database.
func (in *Instance) UserName(id SessionID) string {
	s := in.session(id)
	d := in.database(s.db)
	if d == nil || d.content == nil {
		return "guest"
	}
	u, _ := in.user(s, d)
	for _, p := range d.content.principals {
		if p.ID == u {
			return p.Name
		}
	}
	return "guest"
}

// ServerPrincipals is sys.server_principals.
func (in *Instance) ServerPrincipals(now time.Time, id SessionID) []PrincipalRow {
	in.begin(now)
	s := in.session(id)
	all := in.can(s, "VIEW ANY DEFINITION") || in.can(s, "ALTER ANY LOGIN")
	var l []PrincipalRow
	for _, p := range in.srv.Principals {
		if all || p.Type == "R" || p.ID == 1 || p.ID == s.login || in.canOn(s, ClassLogin, foldName(p.Name), "VIEW DEFINITION", "ALTER") {
			l = append(l, p.PrincipalRow)
		}
	}
	return l
}

// ServerRoleMembers is sys.server_role_members.
func (in *Instance) ServerRoleMembers(now time.Time, id SessionID) []RoleMemberRow {
	in.begin(now)
	return append([]RoleMemberRow{{RoleID: sysadminRole, MemberID: 1}}, in.srv.Members...)
}

// DatabasePrincipals is sys.database_principals of a database.
func (in *Instance) DatabasePrincipals(now time.Time, id SessionID, db DatabaseID) []PrincipalRow {
	_, v, err := in.open(now, id, db, false)
	if err != nil {
		return nil
	}
	var l []PrincipalRow
	for _, p := range v.principals() {
		l = append(l, p.PrincipalRow)
	}
	return l
}

// DatabaseRoleMembers is sys.database_role_members of a database.
func (in *Instance) DatabaseRoleMembers(now time.Time, id SessionID, db DatabaseID) []RoleMemberRow {
	_, v, err := in.open(now, id, db, false)
	if err != nil {
		return nil
	}
	return slices.Clone(v.security().members)
}

func permissionRow(p *Permission) PermissionRow {
	r := PermissionRow{ClassDesc: string(p.Class), GranteeID: p.Grantee, GrantorID: p.Grantor, Name: p.Name, State: "G", StateDesc: "GRANT"}
	switch p.Class {
	case ClassServer:
		r.Class = 100
	case ClassEndpoint:
		r.Class = 105
	case ClassLogin:
		r.Class, r.ClassDesc = 101, "SERVER_PRINCIPAL"
	case ClassGroup:
		r.Class = 108
	case ClassObject:
		r.Class, r.ClassDesc = 1, "OBJECT_OR_COLUMN"
		r.MajorID, _ = strconv.Atoi(p.Object)
	case ClassSchema:
		r.Class = 3
	case ClassCertificate:
		r.Class = 25
	}
	switch {
	case p.Verb == Deny:
		r.State, r.StateDesc = "D", "DENY"
	case p.Option:
		r.State, r.StateDesc = "W", "GRANT_WITH_GRANT_OPTION"
	}
	for _, w := range strings.Fields(p.Name) {
		r.Type += w[:min(2, len(w))]
	}
	r.Type = r.Type[:min(4, len(r.Type))]
	return r
}

// ServerPermissions is sys.server_permissions.
func (in *Instance) ServerPermissions(now time.Time, id SessionID) []PermissionRow {
	in.begin(now)
	s := in.session(id)
	all := in.can(s, "VIEW ANY DEFINITION")
	var l []PermissionRow
	for _, p := range in.srv.Permissions {
		if !all && !in.appliesTo(p, s.login) {
			continue
		}
		r := permissionRow(p)
		switch p.Class {
		case ClassEndpoint:
			r.MajorID = 65536
		case ClassGroup:
			for _, g := range in.groups {
				if g.id().String() == p.Object {
					r.MajorID = g.metadataID
				}
			}
		}
		l = append(l, r)
	}
	return l
}

// DatabasePermissions is sys.database_permissions of a database.
func (in *Instance) DatabasePermissions(now time.Time, id SessionID, db DatabaseID) []PermissionRow {
	_, v, err := in.open(now, id, db, false)
	if err != nil {
		return nil
	}
	var l []PermissionRow
	for _, p := range v.security().permissions {
		l = append(l, permissionRow(p))
	}
	return l
}
