package engine

import (
	"slices"
	"strconv"
	"time"
)

// session is one connection that has logged in.
type session struct {
	id        SessionID
	req       LoginRequest
	login     PrincipalID
	since     time.Time
	db        DatabaseID
	firstDB   DatabaseID
	context   map[string]contextValue
	txn       *transaction
	wait      *wait
	dead      bool
	command   string
	text      string
	running   bool
	began     time.Time
	ended     time.Time
	percent   float64
	principal *Principal
}

type contextValue struct {
	text     string
	null     bool
	readOnly bool
}

func (s *session) process() string { return "spid" + strconv.Itoa(int(s.id)) }

func (s *session) sid() []byte { return s.principal.SID }

// uses tells whether the session is inside the database: its context or its open transaction.
func (s *session) uses(d *database) bool {
	return s.db == d.state.ID || s.txn != nil && s.txn.find(d) != nil
}

const firstUserSession SessionID = 51

func (in *Instance) session(id SessionID) *session {
	i, ok := slices.BinarySearchFunc(in.sessions, id, func(s *session, id SessionID) int { return int(s.id - id) })
	if !ok {
		return in.nobody
	}
	return in.sessions[i]
}

// Login authenticates and opens a session: 18456, 4060 + 18456.
func (in *Instance) Login(now time.Time, r LoginRequest) (SessionID, error) {
	in.begin(now)
	denied := func(why string) error {
		in.log(18456, "Logon", "Login failed for user '%s'. Reason: %s [CLIENT: %s]", r.User, why, orText(r.Address, "<local machine>"))
		return msg(18456, 14, 1, "Login failed for user '%s'.", r.User)
	}
	p := in.loginByName(r.User)
	switch {
	case p == nil || p.Type != "S":
		return 0, denied("Could not find a login matching the name provided.")
	case !p.passwordIs(r.Password):
		return 0, denied("Password did not match that for the login provided.")
	case p.IsDisabled:
		in.log(18456, "Logon", "Login failed for user '%s'. Reason: The account is disabled. [CLIENT: %s]", r.User, orText(r.Address, "<local machine>"))
		return 0, msg(18470, 14, 1, "Login failed for user '%s'. Reason: The account is disabled.", r.User)
	}
	s := &session{id: firstUserSession, req: r, login: p.ID, principal: p, since: in.wall(), db: MasterID, ended: in.wall()}
	i := 0
	for ; i < len(in.sessions) && in.sessions[i].id == s.id; i++ {
		s.id++
	}
	name := r.Database
	if name == "" {
		name = p.DefaultDatabase
	}
	if name != "" {
		d := in.databaseByName(name)
		if err := in.enter(s, d, name); err != nil {
			if r.Database == "" && d != nil {
				in.log(0, "Logon", "Login for user '%s' falls back to master: %v", r.User, err)
			}
			l := Errors{}
			if d != nil && d.member != nil {
				l = append(l, Messages(err)...)
			}
			in.log(18456, "Logon", "Login failed for user '%s'. Reason: Failed to open the explicitly specified database '%s'. [CLIENT: %s]", r.User, name, orText(r.Address, "<local machine>"))
			return 0, append(l, msg(4060, 11, 1, "Cannot open database \"%s\" requested by the login. The login failed.", name),
				msg(18456, 14, 1, "Login failed for user '%s'.", r.User))
		}
		s.db = d.state.ID
	}
	s.firstDB = s.db
	in.sessions = slices.Insert(in.sessions, i, s)
	return s.id, nil
}

func orText(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// Logout ends a session and rolls back its transaction.
func (in *Instance) Logout(now time.Time, id SessionID) {
	in.begin(now)
	s := in.session(id)
	if s == in.nobody {
		return
	}
	s.dead = true
	if s.wait != nil {
		in.CancelWait(now, s.wait.id)
	}
	in.rollback(s)
	in.sessions = slices.DeleteFunc(in.sessions, func(x *session) bool { return x == s })
}

// ResetSession is sp_reset_connection: session context, transaction and database go back to the
// state after login (FG 1.4).
func (in *Instance) ResetSession(now time.Time, id SessionID) error {
	in.begin(now)
	s := in.session(id)
	in.rollback(s)
	s.context = nil
	s.db = s.firstDB
	if d := in.database(s.db); d == nil || in.enter(s, d, "") != nil {
		s.db = MasterID
	}
	return nil
}

// enter checks that the session may use the database as its context.
func (in *Instance) enter(s *session, d *database, name string) error {
	if d == nil {
		return msg(911, 16, 1, "Database '%s' does not exist. Make sure that the name is entered correctly.", name)
	}
	if err := in.usable(s, d, false); err != nil {
		return err
	}
	if !in.isUser(s, d) {
		return msg(916, 14, 2, "The server principal \"%s\" is not able to access the database \"%s\" under the current security context.", s.principal.Name, d.state.Name)
	}
	return nil
}

// UseDatabase is USE: 911, 916, 976, 978, 983 and the database state errors of FG 1.11.
func (in *Instance) UseDatabase(now time.Time, id SessionID, name string) error {
	in.begin(now)
	s := in.session(id)
	d := in.databaseByName(name)
	if err := in.enter(s, d, name); err != nil {
		return err
	}
	s.db = d.state.ID
	return nil
}

// CurrentDatabase is the session's database context.
func (in *Instance) CurrentDatabase(id SessionID) (DatabaseID, string) {
	s := in.session(id)
	if d := in.database(s.db); d != nil {
		return s.db, d.state.Name
	}
	return MasterID, "master"
}

// SetSessionContext is sp_set_session_context; the value is kept as text. 15664 if the key was
// set read-only before.
func (in *Instance) SetSessionContext(now time.Time, id SessionID, key, value string, isNull, readOnly bool) error {
	in.begin(now)
	s := in.session(id)
	k := foldName(key)
	if s.context[k].readOnly {
		return msg(15664, 16, 1, "Cannot set key '%s' in the session context. The key has been set as read_only for this session.", key)
	}
	if s.context == nil {
		s.context = map[string]contextValue{}
	}
	s.context[k] = contextValue{text: value, null: isNull, readOnly: readOnly}
	return nil
}

// SessionContext is SESSION_CONTEXT(key).
func (in *Instance) SessionContext(id SessionID, key string) (string, bool) {
	v, ok := in.session(id).context[foldName(key)]
	return v.text, ok && !v.null
}

// BeginRequest tells that the session runs a batch (dm_exec_requests); EndRequest that it ended.
func (in *Instance) BeginRequest(now time.Time, id SessionID, command, text string) {
	in.begin(now)
	s := in.session(id)
	s.running, s.command, s.text, s.began, s.percent = true, command, text, in.wall(), 0
}

// EndRequest ends what BeginRequest began.
func (in *Instance) EndRequest(now time.Time, id SessionID) {
	in.begin(now)
	s := in.session(id)
	s.running, s.ended = false, in.wall()
}

func killedError() *Error {
	return msg(596, 21, 1, "Cannot continue the execution because the session is in the kill state.")
}

// kill ends the sessions that which selects: their transactions are rolled back and their waits end.
func (in *Instance) kill(which func(*session) bool, why *Error) {
	var ids []SessionID
	for _, s := range in.sessions {
		if s.dead || !which(s) {
			continue
		}
		s.dead = true
		ids = append(ids, s.id)
		if w := s.wait; w != nil {
			if w.cancel != nil {
				w.cancel()
			}
			in.complete(w, why)
		}
		in.rollback(s)
		s.db = MasterID
	}
	if len(ids) > 0 {
		in.emit(Kill{Sessions: ids, Err: why})
	}
}

// Shutdown is SHUTDOWN [WITH NOWAIT]; it ends in an Exit effect.
func (in *Instance) Shutdown(now time.Time, id SessionID, nowait bool) error {
	in.begin(now)
	s := in.session(id)
	if !in.can(s, "SHUTDOWN") {
		return msg(6004, 10, 1, "User does not have permission to perform this action.")
	}
	in.log(0, s.process(), "Server shut down by request from login %s.", s.principal.Name)
	in.stopServer(nowait)
	return nil
}

// Stop is a clean stop from outside (SIGTERM): SHUTDOWN without a session.
func (in *Instance) Stop(now time.Time) {
	in.begin(now)
	in.log(0, "Server", "SQL Server is terminating because of a system shutdown.")
	in.stopServer(false)
}

func (in *Instance) stopServer(nowait bool) {
	if !nowait {
		for _, d := range in.dbs {
			in.checkpoint(d, true)
		}
	}
	in.exited = true
	in.emit(Exit{Code: 0, Reason: "shutdown"})
}
