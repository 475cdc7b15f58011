package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

var (
	roleNames   = [...]string{"RESOLVING", "PRIMARY", "SECONDARY"}
	healthNames = [...]string{"NOT_HEALTHY", "PARTIALLY_HEALTHY", "HEALTHY"}
	syncNames   = [...]string{"NOT SYNCHRONIZING", "SYNCHRONIZING", "SYNCHRONIZED", "REVERTING", "INITIALIZING"}
)

const (
	syncNone         uint8 = 0
	syncing          uint8 = 1
	synchronised     uint8 = 2
	syncInitialising uint8 = 4
)

func availabilityName(m AvailabilityMode) string {
	switch m {
	case SynchronousCommit:
		return "SYNCHRONOUS_COMMIT"
	case ConfigurationOnly:
		return "CONFIGURATION_ONLY"
	}
	return "ASYNCHRONOUS_COMMIT"
}

// AvailabilityGroups is sys.availability_groups.
func (in *Instance) AvailabilityGroups(now time.Time, id SessionID) []AvailabilityGroupRow {
	in.begin(now)
	s := in.session(id)
	var l []AvailabilityGroupRow
	for _, g := range in.groups {
		if !in.maySeeGroup(s, g.id()) {
			continue
		}
		c := g.st.Config
		l = append(l, AvailabilityGroupRow{GroupID: c.GroupID, Name: c.Name, ResourceID: strings.ToLower(c.ResourceID.String()), ResourceGroupID: strings.ToLower(c.ResourceID.String()),
			FailureConditionLevel: c.FailureLevel, HealthCheckTimeout: int(c.HealthTimeout), BackupPreference: c.BackupPreference,
			BackupPreferenceDesc: [...]string{"primary", "secondary_only", "secondary", "none"}[c.BackupPreference&3], BasicFeatures: c.Basic, DTC: c.DTCPerDB, DBFailover: c.DBFailover,
			ClusterType: uint8(c.ClusterType), ClusterTypeDesc: [...]string{"WSFC", "NONE", "EXTERNAL"}[c.ClusterType], RequiredSecondariesToCommit: c.Required,
			SequenceNumber: c.Sequence, IsContained: c.Contained, IsDistributed: c.Distributed})
	}
	return l
}

// AvailabilityReplicas is sys.availability_replicas.
func (in *Instance) AvailabilityReplicas(now time.Time, id SessionID) []AvailabilityReplicaRow {
	in.begin(now)
	s := in.session(id)
	url := func(u string) Opt[string] { return Opt[string]{V: u, OK: u != ""} }
	var l []AvailabilityReplicaRow
	for _, g := range in.groups {
		l = slices.Grow(l, len(g.st.Config.Replicas))
		if !in.maySeeGroup(s, g.id()) {
			continue
		}
		for i := range g.st.Config.Replicas {
			r := &g.st.Config.Replicas[i]
			local := r.ID == g.st.Replica
			row := AvailabilityReplicaRow{ReplicaID: r.ID, GroupID: g.id(), ReplicaServerName: r.Server, EndpointURL: r.EndpointURL, AvailabilityMode: uint8(r.Availability),
				AvailabilityModeDesc: availabilityName(r.Availability), FailoverMode: uint8(r.Failover), FailoverModeDesc: [...]string{"AUTOMATIC", "MANUAL", "EXTERNAL"}[r.Failover],
				SessionTimeout: r.SessionTimeout, PrimaryConnections: r.PrimaryConnections, PrimaryConnectionsDesc: map[uint8]string{2: "ALL", 3: "READ_WRITE"}[r.PrimaryConnections],
				SecondaryConnections: r.SecondaryConnections, SecondaryConnectionsDesc: [...]string{"NO", "READ_ONLY", "ALL"}[r.SecondaryConnections%3],
				BackupPriority: r.BackupPriority, ReadOnlyRoutingURL: url(r.ReadOnlyRoutingURL), ReadWriteRoutingURL: url(r.ReadWriteRoutingURL), SeedingMode: 1, SeedingModeDesc: "MANUAL"}
			if r.SeedingAutomatic {
				row.SeedingMode, row.SeedingModeDesc = 0, "AUTOMATIC"
			}
			if local || g.role == RolePrimary {
				row.CreateDate, row.ModifyDate, row.OwnerSID = Some(r.Created), Some(r.Modified), []byte{1}
			}
			if local {
				row.ReplicaMetadataID = Some(g.metadataID)
			}
			l = append(l, row)
		}
	}
	return l
}

// syncState is the synchronisation state of a copy as this replica knows it.
func (m *member) syncState(p *peer) uint8 {
	g := m.group
	cfg := g.st.Config
	if p == nil {
		if m.db == nil || m.db.content == nil {
			return syncNone
		}
		switch g.role {
		case RolePrimary:
			if in := g.in; in.status(m.db) != dbOnline {
				return syncNone
			}
			return synchronised
		case RoleSecondary:
			switch {
			case !g.attached || !m.live || m.db.state.Suspended:
				return syncNone
			case m.undoTo != 0:
				return syncInitialising
			case g.local().Availability == SynchronousCommit && g.local().synchronised(m.id) && g.st.Committed >= cfg.Sequence:
				return synchronised
			case g.local().Availability == SynchronousCommit && g.local().synchronised(m.id):
				return synchronised
			}
			return syncing
		}
		return syncNone
	}
	c := p.copyOf(m)
	switch {
	case !p.attached || !c.live:
		return syncNone
	case c.undoTo != 0:
		return syncInitialising
	}
	if r := g.committed.replica(p.id); r != nil && r.synchronised(m.id) && r.Availability == SynchronousCommit && cfg.replica(p.id).synchronised(m.id) {
		return synchronised
	}
	return syncing
}

// syncHealth is the health of a copy (FG 3.6).
func syncHealth(mode AvailabilityMode, state uint8) uint8 {
	switch state {
	case synchronised:
		return 2
	case syncing:
		if mode == SynchronousCommit {
			return 1
		}
		return 2
	}
	return 0
}

// rowsOf tells whether the primary knows of a copy on the replica.
func (m *member) joinedOn(id GUID) bool {
	if id == m.group.st.Replica {
		return m.db != nil
	}
	r := m.group.st.Config.replica(id)
	return r != nil && slices.Contains(r.JoinedDBs, m.id)
}

// health is the replica-level formula of FG 3.4.
func (g *group) health(r *Replica, p *peer) (health uint8, recovery Opt[uint8]) {
	connected := p == nil || p.attached
	if r.Availability == ConfigurationOnly {
		if connected {
			return 2, recovery
		}
		return 0, recovery
	}
	joined := 0
	health = 2
	online := true
	for _, m := range g.members {
		if !m.joinedOn(r.ID) {
			continue
		}
		joined++
		health = min(health, syncHealth(r.Availability, m.syncState(p)))
		if p == nil && (m.db == nil || g.in.status(m.db) != dbOnline) {
			online = false
		}
	}
	switch {
	case joined == 0:
		return 0, recovery
	case len(g.members) > joined:
		health, online = 0, false
	}
	if p == nil {
		recovery = Some(uint8(0))
		if online {
			recovery = Some(uint8(1))
		}
	}
	return health, recovery
}

func recoveryName(v Opt[uint8]) Opt[string] {
	if !v.OK {
		return Opt[string]{}
	}
	return Some([...]string{"ONLINE_IN_PROGRESS", "ONLINE"}[v.V])
}

// ReplicaStates is sys.dm_hadr_availability_replica_states. The rows are valid until the next call.
func (in *Instance) ReplicaStates(now time.Time, id SessionID) ([]ReplicaStateRow, error) {
	in.begin(now)
	s := in.session(id)
	if err := in.viewState(s); err != nil {
		return nil, err
	}
	l := in.scratch.replicas[:0]
	for _, g := range in.groups {
		for i := range g.st.Config.Replicas {
			r := &g.st.Config.Replicas[i]
			if r.ID == g.st.Replica {
				l = append(l, g.localState(r))
				continue
			}
			if g.role != RolePrimary && !(in.cfg.Readings.AllReplicaRowsOnSecondary && g.role == RoleSecondary) {
				continue
			}
			l = append(l, g.remoteState(r, g.peer(r.ID)))
		}
	}
	in.scratch.replicas = l
	return l, nil
}

func (g *group) localState(r *Replica) ReplicaStateRow {
	h, rec := g.health(r, nil)
	op := uint8(2)
	switch {
	case g.failingOver:
		op = 0
	case g.role == RoleResolving && g.change != nil:
		op = 1
	case g.role == RoleResolving:
		op = 3
	}
	row := ReplicaStateRow{ReplicaID: r.ID, GroupID: g.id(), IsLocal: true, Role: Some(uint8(g.role)), RoleDesc: Some(roleNames[g.role]),
		OperationalState: Some(op), OperationalStateDesc: Some([...]string{"PENDING_FAILOVER", "PENDING", "ONLINE", "OFFLINE", "FAILED", "FAILED_NO_QUORUM"}[op]),
		ConnectedState: Some(uint8(1)), ConnectedStateDesc: Some("CONNECTED"), RecoveryHealth: rec, RecoveryHealthDesc: recoveryName(rec),
		SynchronizationHealth: Some(h), SynchronizationDesc: Some(healthNames[h]), WriteLeaseRemainingTicks: Some(g.leaseRemaining())}
	if g.role == RoleSecondary && !g.attached {
		row.ConnectedState, row.ConnectedStateDesc = Some(uint8(0)), Some("DISCONNECTED")
		for _, p := range g.peers {
			row.fillError(p)
		}
	}
	if g.role == RolePrimary && !g.commitStart.IsZero() && g.in.cfg.Major >= 15 {
		row.ConfigurationCommitStart = Some(g.commitStart)
	}
	return row
}

func (row *ReplicaStateRow) fillError(p *peer) {
	if p.errNum != 0 {
		row.LastConnectErrorNumber, row.LastConnectErrorText, row.LastConnectErrorTime = Some(p.errNum), Some(p.errText), Some(p.errAt)
	}
}

func (g *group) remoteState(r *Replica, p *peer) ReplicaStateRow {
	row := ReplicaStateRow{ReplicaID: r.ID, GroupID: g.id()}
	h, _ := g.health(r, p)
	row.SynchronizationHealth, row.SynchronizationDesc = Some(h), Some(healthNames[h])
	connected := uint8(0)
	if p.attached {
		connected = 1
	}
	row.ConnectedState, row.ConnectedStateDesc = Some(connected), Some([...]string{"DISCONNECTED", "CONNECTED"}[connected])
	role := RoleResolving
	if p.known {
		role = p.status.Role
	}
	if p.attached {
		role = RoleSecondary
	}
	row.Role, row.RoleDesc = Some(uint8(role)), Some(roleNames[role])
	row.fillError(p)
	return row
}

// GroupStates is sys.dm_hadr_availability_group_states. A former primary that restarted shows
// itself (FG 3.5); OFFLINE clears that.
func (in *Instance) GroupStates(now time.Time, id SessionID) ([]GroupStateRow, error) {
	in.begin(now)
	s := in.session(id)
	if err := in.viewState(s); err != nil {
		return nil, err
	}
	var l []GroupStateRow
	for _, g := range in.groups {
		row := GroupStateRow{GroupID: g.id()}
		known := g.known
		if g.role == RoleSecondary && !g.attached {
			known = ""
		}
		if g.role == RoleResolving && !g.offlined && g.st.LastRole == RolePrimary && g.change == nil && !g.failingOver {
			known = in.srv.ServerName
		}
		row.PrimaryReplica = Some(known)
		h := uint8(0)
		lh, rec := g.health(g.local(), nil)
		h = lh
		switch g.role {
		case RolePrimary:
			row.PrimaryRecoveryHealth, row.PrimaryRecoveryHealthDesc = rec, recoveryName(rec)
			all, some := lh == 2, lh == 2
			for i := range g.st.Config.Replicas {
				if r := &g.st.Config.Replicas[i]; r.ID != g.st.Replica {
					rh, _ := g.health(r, g.peer(r.ID))
					all, some = all && rh == 2, some || rh == 2
				}
			}
			h = 0
			if all {
				h = 2
			} else if some {
				h = 1
			}
		default:
			row.SecondaryRecoveryHealth, row.SecondaryRecoveryHealthDesc = rec, recoveryName(rec)
		}
		row.SynchronizationHealth, row.SynchronizationHealthDesc = Some(h), Some(healthNames[h])
		l = append(l, row)
	}
	return l, nil
}

// DatabaseReplicaStates is sys.dm_hadr_database_replica_states. The rows are valid until the next call.
func (in *Instance) DatabaseReplicaStates(now time.Time, id SessionID) ([]DatabaseReplicaStateRow, error) {
	in.begin(now)
	s := in.session(id)
	if err := in.viewState(s); err != nil {
		return nil, err
	}
	l := in.scratch.copies[:0]
	for _, g := range in.groups {
		for _, m := range g.members {
			if m.db != nil {
				l = append(l, m.localRow())
			}
			if g.role != RolePrimary || m.db == nil {
				continue
			}
			for _, p := range g.peers {
				if p.replica().Availability != ConfigurationOnly && m.joinedOn(p.id) {
					l = append(l, m.remoteRow(p))
				}
			}
		}
	}
	in.scratch.copies = l
	return l, nil
}

func (m *member) localRow() DatabaseReplicaStateRow {
	g := m.group
	d := m.db
	st := m.syncState(nil)
	h := syncHealth(g.local().Availability, st)
	status := g.in.status(d)
	primary := g.role == RolePrimary
	row := DatabaseReplicaStateRow{DatabaseID: d.state.ID, GroupID: g.id(), ReplicaID: g.st.Replica, GroupDatabaseID: m.id, IsLocal: true, IsPrimaryReplica: Some(primary),
		SynchronizationState: st, SynchronizationStateDesc: syncNames[st], IsCommitParticipant: Some(primary), SynchronizationHealth: h, SynchronizationHealthDesc: healthNames[h],
		DatabaseState: Some(status), DatabaseStateDesc: Some(databaseStateNames[status]), IsSuspended: d.state.Suspended,
		RecoveryLSN: optLSN(d.image.LSN), TruncationLSN: optLSN(d.image.LSN), LastHardenedLSN: optLSN(d.next), LastHardenedTime: Some(d.endTime),
		EndOfLogLSN: optLSN(d.next), LastCommitLSN: optLSN(d.applied), LastCommitTime: Some(d.appliedTime), LowWaterMarkForGhosts: Some(int64(d.applied / lsnBlock)),
		FilestreamSendRate: Some(int64(0))}
	if d.state.Suspended {
		row.SuspendReason, row.SuspendReasonDesc = Some(d.state.Suspend), Some(suspendReasons[d.state.Suspend])
	}
	if primary {
		row.QuorumCommitLSN, row.QuorumCommitTime = optLSN(d.applied), Some(d.appliedTime)
	} else {
		row.LastReceivedLSN, row.LastRedoneLSN, row.LastRedoneTime = optLSN(d.next), optLSN(d.end), Some(d.endTime)
		row.LastCommitLSN, row.LastCommitTime = optLSN(d.end), Some(d.endTime)
		row.LogSendQueueSize, row.LogSendRate, row.RedoQueueSize, row.RedoRate = Some(int64(0)), Some(int64(0)), Some(int64(0)), Some(int64(1024))
		row.SecondaryLagSeconds = Some(int64(0))
		if !m.received.IsZero() {
			row.LastReceivedTime = Some(m.received)
		}
	}
	return row
}

func (m *member) remoteRow(p *peer) DatabaseReplicaStateRow {
	g := m.group
	d := m.db
	c := p.copyOf(m)
	st := m.syncState(p)
	h := syncHealth(p.replica().Availability, st)
	row := DatabaseReplicaStateRow{DatabaseID: d.state.ID, GroupID: g.id(), ReplicaID: p.id, GroupDatabaseID: m.id, IsPrimaryReplica: Some(false),
		SynchronizationState: st, SynchronizationStateDesc: syncNames[st], IsCommitParticipant: Some(st == synchronised), SynchronizationHealth: h,
		SynchronizationHealthDesc: healthNames[h], IsSuspended: c.suspended, FilestreamSendRate: Some(int64(0))}
	if c.suspended {
		row.SuspendReason, row.SuspendReasonDesc = Some(c.reason), Some(suspendReasons[c.reason])
	}
	queue, redo := int64(0), int64(0)
	for _, r := range d.log[d.log.after(c.hardened):] {
		queue += int64(r.Bytes)
	}
	for _, r := range d.log[d.log.after(c.redone):d.log.after(c.hardened)] {
		redo += int64(r.Bytes)
	}
	if c.hardened != 0 {
		row.LastSentLSN, row.LastReceivedLSN, row.LastHardenedLSN = optLSN(c.sent), optLSN(c.hardened), optLSN(c.hardened)
		row.LastRedoneLSN, row.LastCommitLSN, row.EndOfLogLSN = optLSN(c.redone), optLSN(c.redone), optLSN(c.hardened)
		row.LogSendQueueSize, row.RedoQueueSize = Some(queue/1024), Some(redo/1024)
		row.LogSendRate, row.RedoRate = Some(int64(1024)), Some(int64(1024))
		if !c.hardenedAt.IsZero() {
			row.LastHardenedTime, row.LastReceivedTime, row.LastRedoneTime, row.LastCommitTime = Some(c.hardenedAt), Some(c.hardenedAt), Some(c.hardenedAt), Some(c.hardenedAt)
		}
		if !c.sentAt.IsZero() {
			row.LastSentTime = Some(c.sentAt)
		}
		lag := int64(0)
		if i := d.log.after(c.hardened); i < len(d.log) {
			lag = int64(g.in.wall().Sub(d.log[i].Time).Seconds())
		}
		row.SecondaryLagSeconds = Some(max(0, lag))
	}
	return row
}

// DatabaseClusterStates is sys.dm_hadr_database_replica_cluster_states. The rows are valid until the
// next call.
func (in *Instance) DatabaseClusterStates(now time.Time, id SessionID) ([]DatabaseClusterStateRow, error) {
	in.begin(now)
	s := in.session(id)
	if err := in.viewState(s); err != nil {
		return nil, err
	}
	l := in.scratch.members[:0]
	for _, g := range in.groups {
		for i := range g.st.Config.Replicas {
			r := &g.st.Config.Replicas[i]
			if r.Availability == ConfigurationOnly {
				continue
			}
			for _, m := range g.members {
				row := DatabaseClusterStateRow{ReplicaID: r.ID, GroupDatabaseID: m.id, DatabaseName: m.name,
					IsFailoverReady: r.synchronised(m.id) && r.Availability == SynchronousCommit, IsDatabaseJoined: slices.Contains(r.JoinedDBs, m.id)}
				if r.ID == g.st.Replica && m.db != nil {
					row.RecoveryLSN, row.TruncationLSN = optLSN(m.db.image.LSN), optLSN(m.db.image.LSN)
				}
				l = append(l, row)
			}
		}
	}
	in.scratch.members = l
	return l, nil
}

// ReplicaClusterStates is sys.dm_hadr_availability_replica_cluster_states.
func (in *Instance) ReplicaClusterStates(now time.Time, id SessionID) ([]ReplicaClusterStateRow, error) {
	in.begin(now)
	s := in.session(id)
	if err := in.viewState(s); err != nil {
		return nil, err
	}
	var l []ReplicaClusterStateRow
	for _, g := range in.groups {
		for i := range g.st.Config.Replicas {
			r := &g.st.Config.Replicas[i]
			row := ReplicaClusterStateRow{ReplicaID: r.ID, ReplicaServerName: r.Server, GroupID: g.id(), JoinStateDesc: "NOT_JOINED"}
			if r.Joined {
				row.JoinState, row.JoinStateDesc = 1, "JOINED_STANDALONE_INSTANCE"
			}
			l = append(l, row)
		}
	}
	return l, nil
}

// GroupDatabases is sys.availability_databases_cluster.
func (in *Instance) GroupDatabases(now time.Time, id SessionID) []GroupDatabaseRow {
	in.begin(now)
	s := in.session(id)
	var l []GroupDatabaseRow
	for _, g := range in.groups {
		if !in.maySeeGroup(s, g.id()) {
			continue
		}
		for _, d := range g.st.Config.Databases {
			l = append(l, GroupDatabaseRow{GroupID: g.id(), GroupDatabaseID: d.ID, DatabaseName: d.Name})
		}
	}
	return l
}

// GroupListeners is sys.availability_group_listeners.
func (in *Instance) GroupListeners(now time.Time, id SessionID) []ListenerRow {
	in.begin(now)
	s := in.session(id)
	var l []ListenerRow
	for _, g := range in.groups {
		if !in.maySeeGroup(s, g.id()) {
			continue
		}
		for _, x := range g.st.Config.Listeners {
			l = append(l, ListenerRow{GroupID: g.id(), ListenerID: strings.ToLower(x.ID.String()), DNSName: x.DNSName, Port: x.Port, IsConformant: true})
		}
	}
	return l
}

// Diagnostics is one result of sp_server_diagnostics (FG 6). The wait of about 5 s before it is the
// executor's (Host.Sleep).
func (in *Instance) Diagnostics(now time.Time, id SessionID) ([]DiagnosticsRow, error) {
	in.begin(now)
	s := in.session(id)
	if !in.can(s, "VIEW SERVER STATE") {
		return nil, Errors{msg(300, 14, 1, "VIEW SERVER STATE permission was denied on object 'server', database 'master'."),
			msg(297, 16, 1, "The user does not have permission to perform this action.")}
	}
	t := in.wall()
	data := map[string]string{
		"system":           `<system spinlockBackoffs="0" sickSpinlockType="none" sickSpinlockTypeAfterAv="none" latchWarnings="0" isAccessViolationOccurred="0" writeAccessViolationCount="0" totalDumpRequests="0" intervalDumpRequests="0" nonYieldingTasksReported="0" pageFaults="0" systemCpuUtilization="1" sqlCpuUtilization="1" BadPagesDetected="0" BadPagesFixed="0"/>`,
		"resource":         `<resource lastNotification="RESOURCE_MEMPHYSICAL_HIGH" outOfMemoryExceptions="0" isAnyPoolOutOfMemory="0" processOutOfMemoryPeriod="0"><memoryReport name="Process/System Counts" unit="Value"/></resource>`,
		"query_processing": fmt.Sprintf(`<queryProcessing maxWorkers="512" workersCreated="%d" workersIdle="20" tasksCompletedWithinInterval="10" pendingTasks="0" oldestPendingTaskWaitingTime="0" hasUnresolvableDeadlockOccurred="0" hasDeadlockedSchedulersOccurred="0" trackingNonYieldingScheduler="0x0"/>`, 30+len(in.sessions)),
		"io_subsystem":     `<ioSubsystem ioLatchTimeouts="0" intervalLongIos="0" totalLongIos="0"><longestPendingRequests/></ioSubsystem>`,
		"events":           `<events/>`,
	}
	var l []DiagnosticsRow
	for _, n := range []string{"system", "resource", "query_processing", "io_subsystem", "events"} {
		r := DiagnosticsRow{CreateTime: t, ComponentType: "instance", ComponentName: n, State: 1, StateDesc: "clean", Data: data[n]}
		if n == "events" {
			r.State, r.StateDesc = 0, "unknown"
		}
		for _, c := range in.faults.components {
			if c.ComponentName == n {
				r.State, r.StateDesc = c.State, c.StateDesc
			}
		}
		l = append(l, r)
	}
	for _, g := range in.groups {
		if g.role == RolePrimary {
			l = append(l, DiagnosticsRow{CreateTime: t, ComponentType: "Always On:AvailabilityGroup", ComponentName: g.st.Config.Name, State: 1, StateDesc: "clean",
				Data: fmt.Sprintf(`<availabilityGroup name="%s" resourceID="%s" leaseValid="%t"/>`, g.st.Config.Name, g.st.Config.ResourceID, g.leaseValid())})
		}
	}
	return l, nil
}
