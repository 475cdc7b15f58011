package engine

import "time"

// The statement methods. Every one takes the time and the calling session, checks the caller's
// rights and the database context, and returns the server's messages as error (see Errors).
// Methods that may block return a WaitID.

func unfinished(what string) error {
	return msg(40515, 16, 1, "%s is not available yet.", what)
}

// LoginRequest is a login attempt as LOGIN7 carries it.
type LoginRequest struct {
	User, Password    string
	Database          string // "" = the login's default
	HostName, AppName string
	ClientInterface   string
	Address           string
	Port              int
	Encrypted         bool
	ReadOnlyIntent    bool
	Admin             bool // dedicated administrator connection
}

// Login authenticates and opens a session: 18456, 18470 (disabled), 4060.
func (in *Instance) Login(now time.Time, r LoginRequest) (SessionID, error) {
	return 0, unfinished("login")
}

// Logout ends a session and rolls back its transaction.
func (in *Instance) Logout(now time.Time, s SessionID) {}

// ResetSession is sp_reset_connection: session context, transaction and database go back to the
// state after login (FG 1.4).
func (in *Instance) ResetSession(now time.Time, s SessionID) error { return unfinished("reset") }

// UseDatabase is USE: 911, 916, 976, 978, 983 and the database state errors of FG 1.11.
func (in *Instance) UseDatabase(now time.Time, s SessionID, name string) error {
	return unfinished("USE")
}

// CurrentDatabase is the session's database context.
func (in *Instance) CurrentDatabase(s SessionID) (DatabaseID, string) { return 0, "" }

// SetSessionContext is sp_set_session_context; the value is kept as text. 15664 if the key was
// set read-only before.
func (in *Instance) SetSessionContext(now time.Time, s SessionID, key, value string, isNull, readOnly bool) error {
	return unfinished("sp_set_session_context")
}

// SessionContext is SESSION_CONTEXT(key).
func (in *Instance) SessionContext(s SessionID, key string) (string, bool) { return "", false }

// BeginRequest tells that the session runs a batch (dm_exec_requests); EndRequest that it ended.
func (in *Instance) BeginRequest(now time.Time, s SessionID, command, text string) {}

// EndRequest ends what BeginRequest began.
func (in *Instance) EndRequest(now time.Time, s SessionID) {}

// CancelWait withdraws a waiting statement after an attention, time-out or kill. What it already
// changed stays: a commit that is in the log may still be acknowledged by the replicas.
func (in *Instance) CancelWait(now time.Time, id WaitID) {}
