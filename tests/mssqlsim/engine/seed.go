package engine

import (
	"slices"
	"time"
)

// seedJob is one automatic seeding (FG 4.10), on the secondary or on the primary.
type seedJob struct {
	member  *member
	op      GUID
	peer    *peer
	row     *AutomaticSeedingRow
	running bool
	started time.Time
	total   int64
	done    int64
	timer   *timer
}

const (
	seedStreams = 5 // databases seeded in parallel
	seedSteps   = 10
	seedRetry   = 10 * time.Second
)

var seedFailures = map[int]string{0: "Internal Error", 1: "User cancelled", 2: "SQL Error", 3: "Request denied", 4: "Seeding abort", 5: "Primary failure", 6: "Transport failure",
	7: "Replica transport failure", 8: "Check if needed failure", 9: "Send file info failure", 15: "Role change", 21: "Seeding Check Message Timeout", 22: "File message timeout", 23: "Database name exists",
	24: "Catch-up timeout", 25: "Restore stream ready timeout"}

func (in *Instance) seedRow(m *member, remote GUID, source bool, op GUID) *AutomaticSeedingRow {
	r := &AutomaticSeedingRow{StartTime: in.wall(), GroupID: m.group.id(), GroupDatabaseID: m.id, RemoteReplicaID: remote, OperationID: op, IsSource: source,
		CurrentState: "CHECK_IF_SEEDING_NEEDED", NumberOfAttempts: 1}
	for _, o := range in.seeding {
		if o.GroupDatabaseID == m.id && o.RemoteReplicaID == remote && o.IsSource == source {
			r.NumberOfAttempts++
		}
	}
	if len(in.seeding) > 500 {
		in.seeding = slices.Clone(in.seeding[250:])
	}
	in.seeding = append(in.seeding, r)
	return r
}

// seedEnd closes a row of the history; code 0 is success.
func (in *Instance) seedEnd(r *AutomaticSeedingRow, code int) {
	r.CompletionTime = Some(in.wall())
	r.CurrentState = "COMPLETED"
	if code != 0 {
		r.CurrentState, r.FailureState, r.FailureStateDesc = "FAILED", Some(code), Some(seedFailures[code%100])
	}
}

// seedRequested queues a seeding on the primary.
func (g *group) seedRequested(p *peer, r SeedRequest) {
	m := g.member(r.DB)
	if g.role != RolePrimary || !p.attached || m == nil || m.db == nil {
		return
	}
	m.dropJobs(p)
	j := &seedJob{member: m, op: r.Operation, peer: p, row: g.in.seedRow(m, p.id, true, r.Operation)}
	m.jobs = append(m.jobs, j)
	g.runSeeds()
}

// runSeeds starts queued seedings up to the limit of streams.
func (g *group) runSeeds() {
	in := g.in
	n := 0
	for _, m := range g.members {
		for _, j := range m.jobs {
			if j.running {
				n++
			}
		}
	}
	for _, m := range g.members {
		for _, j := range m.jobs {
			if j.running || n >= seedStreams {
				continue
			}
			n++
			j.running, j.started, j.total = true, in.wall(), in.dataBytes(m.db)
			j.row.CurrentState, j.row.PerformedSeeding = "SEEDING", true
			in.log(0, "Server", "Automatic seeding of database '%s' to replica '%s' started.", m.name, j.peer.replica().Server)
			j.step()
		}
	}
}

// step moves one tenth of the database.
func (j *seedJob) step() {
	in := j.member.group.in
	j.timer = in.after(in.cfg.Timings.SeedStep, func() {
		if in.faults.seedStall {
			j.step()
			return
		}
		g := j.member.group
		if in.faults.seedFail != 0 {
			code := in.faults.seedFail
			in.send(j.peer.link, SeedFailed{Group: g.id(), DB: j.member.id, Operation: j.op, Code: code})
			j.finish(100 + code)
			return
		}
		j.done = min(j.total, j.done+(j.total+seedSteps-1)/seedSteps)
		in.send(j.peer.link, SeedProgress{Group: g.id(), DB: j.member.id, Operation: j.op, Transferred: j.done, Total: j.total})
		if j.done < j.total {
			j.step()
			return
		}
		d := j.member.db
		in.send(j.peer.link, SeedImage{Group: g.id(), DB: j.member.id, Operation: j.op, State: d.state, Image: d.content.image(d.applied)})
		j.finish(0)
	})
}

// finish ends a job of the primary.
func (j *seedJob) finish(code int) {
	m := j.member
	in := m.group.in
	in.stop(j.timer)
	m.jobs = slices.DeleteFunc(m.jobs, func(x *seedJob) bool { return x == j })
	if !j.row.CompletionTime.OK {
		in.seedEnd(j.row, code)
	}
	if m.group.role == RolePrimary {
		m.group.runSeeds()
	}
}

// dropJobs cancels the seedings to a peer.
func (m *member) dropJobs(p *peer) {
	for _, j := range slices.Clone(m.jobs) {
		if j.peer == p {
			j.finish(106)
		}
	}
}

// stopSeeding cancels all seedings of the database here: as secondary or as primary.
func (m *member) stopSeeding(code int) {
	in := m.group.in
	for _, j := range slices.Clone(m.jobs) {
		if j.peer.link != nil {
			in.send(j.peer.link, SeedFailed{Group: m.group.id(), DB: m.id, Operation: j.op, Code: code})
		}
		j.finish(100 + code)
	}
	if j := m.seed; j != nil {
		m.seed = nil
		if !j.row.CompletionTime.OK {
			in.seedEnd(j.row, 200+code)
		}
		in.log(19494, "Server", "Automatic seeding of availability database '%s' in availability group '%s' failed with a transient error. The operation will be retried.", m.name, m.group.st.Config.Name)
		if j.peer.link != nil && j.peer == m.group.upstream {
			in.send(j.peer.link, SeedFailed{Group: m.group.id(), DB: m.id, Operation: j.op, Code: code})
		}
		m.retrySeed()
	}
}

// retrySeed asks again after a transient failure.
func (m *member) retrySeed() {
	in := m.group.in
	if m.retry != nil {
		return
	}
	m.retry = in.after(seedRetry, func() {
		m.retry = nil
		m.group.seekCopies()
	})
}

// seedFailed ends a seeding that the other side gave up.
func (g *group) seedFailed(p *peer, f SeedFailed) {
	m := g.member(f.DB)
	if m == nil {
		return
	}
	for _, j := range slices.Clone(m.jobs) {
		if j.peer == p && j.op == f.Operation {
			j.finish(100 + f.Code)
		}
	}
	if j := m.seed; j != nil && j.op == f.Operation {
		m.seed = nil
		g.in.seedEnd(j.row, 200+f.Code)
		switch f.Code {
		case 5, 6, 7, 15, 21, 22, 24, 25:
			g.in.log(19494, "Server", "Automatic seeding of availability database '%s' in availability group '%s' failed with a transient error. The operation will be retried.", m.name, g.st.Config.Name)
			m.retrySeed()
		default:
			m.failed = true
			g.in.log(19496, "Server", "Automatic seeding of availability database '%s' in availability group '%s' failed with an unrecoverable error. Correct the problem, then issue an ALTER AVAILABILITY GROUP command to set SEEDING_MODE = AUTOMATIC on the replica to restart seeding.", m.name, g.st.Config.Name)
		}
	}
}

func (g *group) seedProgress(p *peer, s SeedProgress) {
	m := g.member(s.DB)
	if m == nil || m.seed == nil || m.seed.op != s.Operation {
		return
	}
	j := m.seed
	if !j.running {
		j.running, j.started = true, g.in.wall()
		j.row.CurrentState, j.row.PerformedSeeding = "SEEDING", true
	}
	j.done, j.total = s.Transferred, s.Total
}

// seedImage installs the copy and lets it catch up.
func (g *group) seedImage(p *peer, s SeedImage) {
	m := g.member(s.DB)
	in := g.in
	if m == nil || m.seed == nil || m.seed.op != s.Operation || g.upstream != p || !g.attached {
		return
	}
	j := m.seed
	m.seed = nil
	if in.databaseByName(m.name) != nil {
		in.seedEnd(j.row, 223)
		m.failed = true
		return
	}
	st := in.newDatabaseState(m.name)
	src := s.State
	st.GUID, st.Family, st.Recovery, st.Collation, st.Compatibility, st.Created = src.GUID, src.Family, src.Recovery, src.Collation, src.Compatibility, in.wall()
	st.FullBackup, st.LogBackup, st.Snapshot = src.FullBackup, src.LogBackup, src.Snapshot
	st.DataName, st.LogName, st.DataPath, st.LogPath = src.DataName, src.LogName, src.DataPath, src.LogPath
	for _, o := range in.srv.Principals {
		if o.ID == g.st.Grantor {
			st.Owner = o.SID
		}
	}
	st.Restoring = true
	j.row.CurrentState = "CATCHUP"
	d := in.install(st, s.Image)
	m.take(d)
	in.seedEnd(j.row, 0)
}

// AutomaticSeeding is sys.dm_hadr_automatic_seeding.
func (in *Instance) AutomaticSeeding(now time.Time, id SessionID) ([]AutomaticSeedingRow, error) {
	in.begin(now)
	if err := in.viewState(in.session(id)); err != nil {
		return nil, err
	}
	var l []AutomaticSeedingRow
	for _, r := range in.seeding {
		l = append(l, *r)
	}
	return l, nil
}

// PhysicalSeeding is sys.dm_hadr_physical_seeding_stats.
func (in *Instance) PhysicalSeeding(now time.Time, id SessionID) ([]PhysicalSeedingRow, error) {
	in.begin(now)
	if err := in.viewState(in.session(id)); err != nil {
		return nil, err
	}
	var l []PhysicalSeedingRow
	add := func(j *seedJob, role string) {
		if !j.running {
			return
		}
		r := PhysicalSeedingRow{LocalID: j.op, RemoteID: j.op, LocalDatabaseName: j.member.name, RemoteMachineName: j.peer.replica().Server, RoleDesc: role,
			InternalStateDesc: "ReadingAndSendingData", TransferredBytes: j.done, DatabaseBytes: j.total, StartTime: j.started}
		if role == "Destination" {
			r.InternalStateDesc = "WritingBackupStream"
		}
		if d := j.member.db; d != nil {
			r.LocalDatabaseID = d.state.ID
		}
		if t := in.wall().Sub(j.started).Seconds(); t > 0 {
			r.BytesPerSecond = int64(float64(j.done) / t)
		}
		l = append(l, r)
	}
	for _, g := range in.groups {
		for _, m := range g.members {
			for _, j := range m.jobs {
				add(j, "Source")
			}
			if m.seed != nil {
				add(m.seed, "Destination")
			}
		}
	}
	return l, nil
}
