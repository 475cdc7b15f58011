package engine

import "time"

// Effect is one thing that the host must do. Effects are carried out in their order; those after
// a Persist only when that Persist is durable.
type Effect interface{ effect() }

// Persist asks for records to be made durable. A host appends [EncodeRecords] of them to its
// write-ahead file and syncs, or applies them to a [Disk] in memory.
type Persist struct{ Records []Record }

// Send gives a message to the other end of a link. A link is like a TCP connection: messages arrive
// in order (under Readings.UnorderedConfiguration in order per Lane) and none is left out. A network
// that fails keeps them back until the link ends; it does not lose one and deliver the next.
type Send struct {
	Link    LinkID
	Message Message
	Lane    int
}

// Dial asks for a link to the endpoint URL (TCP://host:port). The host answers with
// [Instance.LinkUp] or [Instance.LinkFailed] for this Link. IDs that the engine chooses are odd;
// those of accepted links, which the host chooses, must be even and not be used twice.
type Dial struct {
	Link LinkID
	URL  string
}

// CloseLink ends a link at once, with no answer expected.
type CloseLink struct{ Link LinkID }

// Listen opens or closes the listener of the mirroring endpoint. IP "" means all addresses.
type Listen struct {
	Port int
	IP   string
	Open bool
}

// Complete ends a wait. Err as from the statement methods.
type Complete struct {
	Wait WaitID
	Err  error
}

// Kill ends sessions: a running statement fails with Err (severity 20: the connection breaks).
type Kill struct {
	Sessions []SessionID
	Err      *Error
}

// LogLine is a new line of the error log, for the host to write to its file.
type LogLine struct {
	Time    time.Time // as the server's wall clock shows it
	Process string    // ProcessInfo: spid or "Server"
	Number  int32     // message number, 0 for free text
	Text    string
}

// Exit ends the process: SHUTDOWN or a crash by fault. No further input is given to the instance.
type Exit struct {
	Code   int
	Reason string
}

// HostFault asks the host for a disturbance that lies outside the instance (see Fault). A host that
// cannot do it ignores it.
type HostFault struct {
	Kind string // freeze, droplinks, delaylinks, crashat
	Args map[string]string
}

func (HostFault) effect() {}
func (Persist) effect()   {}
func (Send) effect()      {}
func (Dial) effect()      {}
func (CloseLink) effect() {}
func (Listen) effect()    {}
func (Complete) effect()  {}
func (Kill) effect()      {}
func (LogLine) effect()   {}
func (Exit) effect()      {}

// Record is one write-ahead record; see Disk.Apply.
type Record interface{ record() }

// Message is what two instances say to each other over a link. It is immutable once sent, so a
// host in one process may pass it on as it is; another encodes it with [EncodeMessage].
type Message interface{ message() }
