package engine

import "time"

// Hello opens every link in both directions.
type Hello struct {
	Server   string
	Restarts int // of the sender's endpoint
	Groups   []GroupStatus
}

// GroupStatus is what a replica says about itself. It is sent at every change.
type GroupStatus struct {
	Group      GUID
	Name       string
	Replica    GUID
	Role       Role
	Sequence   int64
	PrimaryFor time.Duration // how long the sender has been PRIMARY
	Ready      bool          // PRIMARY and its databases ONLINE
	Gone       bool          // the sender has no replica of the group any more
}

// Ping keeps a quiet link alive.
type Ping struct{}

// JoinRequest asks the primary for the configuration of a group (FG 1.5).
type JoinRequest struct {
	Group       string
	Server      string
	ClusterType *ClusterType
}

// JoinReply answers it.
type JoinReply struct {
	Group     string
	Err       *Error
	Config    *Configuration
	Committed int64
}

// Attach starts following a primary.
type Attach struct {
	Group    GUID
	Replica  GUID
	Sequence int64
	Explicit bool // told to by SET (ROLE = SECONDARY) or JOIN
	Copies   []CopyState
}

// CopyState describes a secondary's copy of a database.
type CopyState struct {
	DB        GUID
	End       LSN
	Forks     []Fork
	Suspended bool
	Reason    uint8
}

// Attached accepts a follower.
type Attached struct {
	Group     GUID
	Config    *Configuration
	Committed int64
	Plans     []Plan
}

// AttachRefused refuses it.
type AttachRefused struct {
	Group    GUID
	Sequence int64
}

// Plan says how a copy catches up: keep the log up to Common, drop the rest, receive what follows.
type Plan struct {
	DB      GUID
	Common  LSN
	UndoTo  LSN  // the copy had log up to here that is to be replaced, 0 none
	Broken  bool // no common point: the copy must be seeded again
	Suspend bool // a forced failover came between: suspend until RESUME (FG 4.9)
}

// CopyReady offers a copy that was seeded or resumed.
type CopyReady struct {
	Group GUID
	Copy  CopyState
}

// CopyPlan answers it.
type CopyPlan struct {
	Group GUID
	Plan  Plan
}

// CopySuspended tells that data movement of a copy was suspended there.
type CopySuspended struct {
	Group  GUID
	DB     GUID
	Reason uint8
}

// SuspendCopy tells a copy to suspend or resume.
type SuspendCopy struct {
	Group  GUID
	DB     GUID
	Resume bool
	Reason uint8
}

// Configure carries a version of the configuration to be persisted (FG 5.1).
type Configure struct {
	Config    *Configuration
	Committed int64
}

// Configured acknowledges that it is persisted.
type Configured struct {
	Group    GUID
	Sequence int64
}

// Committed tells that a version is committed by its quorum.
type Committed struct {
	Group    GUID
	Sequence int64
}

// LogData carries log records; Prev is the record before the first of them.
type LogData struct {
	Group   GUID
	DB      GUID
	Prev    LSN
	Records []*LogRecord
}

// LogAck tells how far a copy has hardened and redone.
type LogAck struct {
	Group    GUID
	DB       GUID
	Hardened LSN
	Redone   LSN
}

// Detach ends following or being followed, without closing the link.
type Detach struct{ Group GUID }

// Handover asks the primary to let go for a FAILOVER on the sender (FG 4.5).
type Handover struct{ Group GUID }

// HandoverReady answers it; all log was sent before it.
type HandoverReady struct{ Group GUID }

// SeedRequest asks the primary to seed a database (FG 4.10).
type SeedRequest struct {
	Group     GUID
	DB        GUID
	Operation GUID
}

// SeedProgress reports how much was transferred.
type SeedProgress struct {
	Group       GUID
	DB          GUID
	Operation   GUID
	Transferred int64
	Total       int64
}

// SeedImage ends the transfer.
type SeedImage struct {
	Group     GUID
	DB        GUID
	Operation GUID
	State     *DatabaseState // of the primary's copy
	Image     *Image
}

// SeedFailed ends a seeding; Code is the failure state without its hundreds (FG 3.8).
type SeedFailed struct {
	Group     GUID
	DB        GUID
	Operation GUID
	Code      int
}

func (Hello) message()         {}
func (GroupStatus) message()   {}
func (Ping) message()          {}
func (JoinRequest) message()   {}
func (JoinReply) message()     {}
func (Attach) message()        {}
func (Attached) message()      {}
func (AttachRefused) message() {}
func (CopyReady) message()     {}
func (CopyPlan) message()      {}
func (CopySuspended) message() {}
func (SuspendCopy) message()   {}
func (Configure) message()     {}
func (Configured) message()    {}
func (Committed) message()     {}
func (LogData) message()       {}
func (LogAck) message()        {}
func (Detach) message()        {}
func (Handover) message()      {}
func (HandoverReady) message() {}
func (SeedRequest) message()   {}
func (SeedProgress) message()  {}
func (SeedImage) message()     {}
func (SeedFailed) message()    {}
