package engine

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// faults are the switched-on disturbances of the instance. They are volatile: a restart clears them.
type faults struct {
	clockOffset time.Duration
	diskFull    bool
	slowIO      time.Duration
	seedFail    int              // failure state to end the next seedings with, 0 none
	seedStall   bool             // seedings stop making progress
	components  []DiagnosticsRow // overrides of sp_server_diagnostics
	diagHang    bool
	stale       []staleTransport
	crashAt     string
}

// staleTransport is a connection to a peer that is up and carries nothing until the endpoints of both
// ends were restarted (FG 2.1, 4.7).
type staleTransport struct {
	server    string
	own, peer int // restarts when it went stale
}

// stale tells whether the link's transport is stale, and clears the fault once both ends were restarted.
func (in *Instance) stale(l *link) bool {
	for i, s := range in.faults.stale {
		if !equalName(s.server, l.server) {
			continue
		}
		if in.srv.Endpoint != nil && in.srv.Endpoint.Restarts > s.own && l.restarts > s.peer {
			in.faults.stale = slices.Delete(in.faults.stale, i, i+1)
			return false
		}
		return true
	}
	return false
}

// crashPoint ends the process if the fault names this point. Effects after it are not carried out.
func (in *Instance) crashPoint(name string) {
	if in.faults.crashAt == name && !in.exited {
		in.exited = true
		in.emit(Exit{Code: 137, Reason: "crash at " + name})
	}
}

// Fault is EXEC mssqlsim.fault @kind = kind with named arguments; it needs sysadmin. Kinds:
//
//	clock @offset = '-1.5s'           the server's wall clock runs beside the host's
//	diskfull @on                      log writes fail with 9002, backups with 3202
//	slowio @delay = '200ms'           log writes on a secondary and commits take longer
//	suspect @database, @on            SUSPECT
//	pending @database, @on            RECOVERY_PENDING
//	diagnostics @component, @state    component state of sp_server_diagnostics (0–3)
//	diagnosticshang @on               sp_server_diagnostics never answers
//	seedfail @code                    seedings fail with this failure state (0: off)
//	seedstall @on                     seedings stop making progress
//	latch @ag                         SET (ROLE = SECONDARY) of a RESOLVING replica latches 41104
//	resetlinks                        all endpoint connections are reset
//	stale @server                     the transport to a peer carries nothing until both endpoints were restarted
//	crash                             the process ends at once with code 137
//	crash @at                         it ends at the next: commit (hardened, not shipped), harden (log of the primary
//	                                  hardened, not acknowledged), propose (configuration persisted, not sent),
//	                                  configure (persisted, not voted for), promote (accepted, not PRIMARY yet),
//	                                  promoted (PRIMARY, nobody told)
//
// and by the host, in real time only:
//
//	freeze @for = '10s'               no byte in or out, and nothing runs, as under SIGSTOP
//	droplinks @on                     endpoint traffic stops without a reset
//	delaylinks @delay = '50ms'        endpoint traffic is late
//	crashat @point, @after = '1'      the process ends at the n-th write to the log from now:
//	                                  before it, torn (half written) or after it, with nothing released
//
// @on is '1' by default. Anything else is 102.
func (in *Instance) Fault(now time.Time, id SessionID, kind string, args map[string]string) error {
	in.begin(now)
	if !in.isSysadmin(in.session(id)) {
		return msg(229, 14, 5, "The EXECUTE permission was denied on the object 'fault', database 'mssqlsim', schema 'dbo'.")
	}
	bad := func(what string) error { return msg(102, 15, 1, "Incorrect syntax near '%s'.", what) }
	on := args["on"] != "0"
	duration := func(key string) (time.Duration, error) {
		d, err := time.ParseDuration(args[key])
		if err != nil {
			return 0, bad(args[key])
		}
		return d, nil
	}
	db := func() (*database, error) {
		d := in.databaseByName(args["database"])
		if d == nil {
			return nil, msg(911, 16, 1, "Database '%s' does not exist. Make sure that the name is entered correctly.", args["database"])
		}
		return d, nil
	}
	switch strings.ToLower(kind) {
	case "clock":
		d, err := duration("offset")
		if err != nil {
			return err
		}
		in.faults.clockOffset = d
		for _, g := range in.groups {
			g.armLease()
		}
	case "diskfull":
		in.faults.diskFull = on
	case "slowio":
		d, err := duration("delay")
		if err != nil {
			return err
		}
		in.faults.slowIO = d
	case "suspect", "pending":
		d, err := db()
		if err != nil {
			return err
		}
		if strings.EqualFold(kind, "suspect") {
			d.suspect = on
		} else {
			d.pending = on
		}
		if on {
			in.kill(func(s *session) bool { return s.uses(d) && s.id != id }, killedError())
		}
		if d.member != nil {
			d.member.group.broadcast()
		}
	case "diagnostics":
		n, err := strconv.Atoi(args["state"])
		names := []string{"unknown", "clean", "warning", "error"}
		if err != nil || n < 0 || n > 3 {
			return bad(args["state"])
		}
		c := args["component"]
		in.faults.components = slices.DeleteFunc(in.faults.components, func(r DiagnosticsRow) bool { return r.ComponentName == c })
		in.faults.components = append(in.faults.components, DiagnosticsRow{ComponentName: c, State: n, StateDesc: names[n]})
	case "diagnosticshang":
		in.faults.diagHang = on
	case "seedfail":
		n, err := strconv.Atoi(args["code"])
		if err != nil || n < 0 || n > 25 {
			return bad(args["code"])
		}
		in.faults.seedFail = n
	case "seedstall":
		in.faults.seedStall = on
	case "latch":
		g := in.groupByName(args["ag"])
		if g == nil || len(g.peers) == 0 {
			return msg(15151, 16, 1, "Cannot alter the availability group '%s', because it does not exist or you do not have permission.", args["ag"])
		}
		p := g.peers[0]
		for _, x := range g.peers {
			if x.known && x.status.Role == RolePrimary {
				p = x
			}
		}
		g.latch(p)
	case "resetlinks":
		in.closeAllLinks("reset by fault")
		in.dialAll()
	case "stale":
		st := staleTransport{server: args["server"]}
		if in.srv.Endpoint != nil {
			st.own = in.srv.Endpoint.Restarts
		}
		l := in.linkTo(st.server)
		if l != nil {
			st.peer = l.restarts
		}
		in.faults.stale = append(in.faults.stale, st)
		if l != nil {
			in.closeLink(l, 10054, "the transport went stale")
		}
		in.dialAll()
	case "crash":
		switch args["at"] {
		case "":
		case "commit", "harden", "propose", "configure", "promote", "promoted":
			in.faults.crashAt = args["at"]
			return nil
		default:
			return bad(args["at"])
		}
		in.exited = true
		in.emit(Exit{Code: 137, Reason: "crash by fault"})
	case "freeze":
		if d, err := duration("for"); err != nil || d <= 0 {
			return bad(args["for"])
		}
		in.emit(HostFault{Kind: "freeze", Args: args})
	case "delaylinks":
		if _, err := duration("delay"); err != nil {
			return err
		}
		in.emit(HostFault{Kind: "delaylinks", Args: args})
	case "droplinks":
		in.emit(HostFault{Kind: "droplinks", Args: args})
	case "crashat":
		if p := args["point"]; p != "before" && p != "torn" && p != "after" {
			return bad(p)
		}
		in.emit(HostFault{Kind: "crashat", Args: args})
	default:
		return bad(kind)
	}
	return nil
}

// DiagnosticsHang tells whether sp_server_diagnostics must not answer.
func (in *Instance) DiagnosticsHang() bool { return in.faults.diagHang }
