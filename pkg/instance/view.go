//go:build linux

package instance

import (
	"sync"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/lease"
)

// phase of the server as the supervisor sees it; the words of ag.Manager.Server.
type phase string

const (
	phasePreparing phase = "preparing"
	phaseStarting  phase = "starting"
	phaseRunning   phase = "running"
	phaseHandover  phase = "handing over"
	phaseStopping  phase = "stopping"
	phaseStopped   phase = "stopped"
	phaseFenced    phase = "fenced"
)

// view is what the loops of one run have seen, for each other, the probes and the
// status. Every field is guarded by mu.
type view struct {
	mu sync.Mutex
	viewCopy
}

// viewCopy is one consistent reading of view; instants are monotonic.
type viewCopy struct {
	phase phase
	// alive: the process exists.
	alive bool
	// acceptedAt is when a login last worked, accepted whether one did in this run of sqlservr.
	accepted   bool
	acceptedAt time.Duration
	// loginProblem is why it does not, in words.
	loginProblem string

	local      localState
	localKnown bool
	// localProblem is why the newest attempt to read local failed.
	localProblem string
	lastRole     ag.Role
	primaryAt    time.Duration
	primaryKnown bool
	// lostAt is when a PRIMARY was first seen to be none any more.
	lostAt       time.Duration
	lostKnown    bool
	noWriteLease bool

	diagnostics      ag.Diagnostics
	diagnosticsAt    time.Duration
	diagnosticsKnown bool

	copies copiesSeen
	// copiesProblem is why the newest reading of copies failed.
	copiesProblem string

	// apiOK is when the API server last answered; apiKnown whether it ever did.
	apiOK    time.Duration
	apiKnown bool
	// commitPending is a condition that the keeper sees (FG 5.4).
	commitPending bool
}

func (v *view) with(f func(*view)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f(v)
}

// snapshot is a copy without the lock.
func (v *view) snapshot() viewCopy {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.viewCopy
}

// serving phases are those in which authority may be used.
func (v viewCopy) serving() bool {
	return v.alive && (v.phase == phaseStarting || v.phase == phaseRunning || v.phase == phaseHandover)
}

// server is the view in the words of the lease rules.
func (v viewCopy) server() lease.Server {
	s := lease.Server{Running: v.alive, LastRole: v.lastRole, NoWriteLease: v.noWriteLease}
	if v.localKnown {
		s.Role = v.local.role
	}
	return s
}

// saw enters an answer of the own server.
func (v *view) saw(s localState) {
	v.with(func(v *view) {
		if s.role == ag.RolePrimary && v.lastRole != ag.RolePrimary && v.lastRole != ag.RoleUnknown {
			v.primaryAt, v.primaryKnown = s.received, true
		}
		switch {
		case s.role == ag.RolePrimary:
			v.lostKnown = false
		case v.lastRole == ag.RolePrimary:
			v.lostAt, v.lostKnown = s.received, true
		}
		if s.role != ag.RolePrimary {
			v.primaryKnown = false
		}
		v.local, v.localKnown, v.localProblem = s, true, ""
		v.lastRole = s.role
		if !s.leaseOff {
			v.noWriteLease = false // only Msg 47116 says that there is none: a fresh primary's may begin with its first renewal (FG 11 no. 6)
		}
	})
}

// missed enters that the own server did not answer.
func (v *view) missed(why string) {
	v.with(func(v *view) { v.localKnown, v.localProblem = false, why })
}

// startsAnew forgets what an earlier process of sqlservr said.
func (v *view) startsAnew() {
	v.with(func(v *view) {
		v.phase, v.alive = phaseStarting, true
		v.accepted, v.loginProblem = false, "the server is starting"
		v.localKnown, v.localProblem, v.lastRole, v.primaryKnown = false, "the server is starting", ag.RoleUnknown, false
		v.lostKnown = false
		v.noWriteLease, v.diagnosticsKnown, v.diagnostics = false, false, ag.Diagnostics{}
		v.commitPending, v.copies, v.copiesProblem = false, copiesSeen{}, ""
	})
}
