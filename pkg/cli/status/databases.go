package status

import (
	"slices"
	"strings"
	"time"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance/managerapi"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// databases counts a database as in step only when every replica with data says so.
// The primary's manager knows all copies; without it the resource names those that are
// not in step, and a replica that was not reached is no proof.
func (d *Document) databases(in Input) {
	names := map[string]bool{}
	for _, db := range in.Group.Spec.Databases {
		names[db.Name] = true
	}
	if p := primaryReport(in.Reports); p != nil && p.MeasuredAgoSeconds != nil {
		for _, c := range p.Copies {
			names[c.Database] = true
			d.Databases = append(d.Databases, databaseOf(in, c))
		}
	} else {
		for _, r := range in.Group.Status.ReplicaStatuses {
			for _, db := range r.Databases {
				names[db.Name] = true
				d.Databases = append(d.Databases, Database{
					Name: db.Name, Replica: r.Name, State: db.State, Sync: db.SynchronizationState, Message: db.Message,
				})
			}
		}
	}
	d.DatabasesTotal = len(names)
	for name := range names {
		if d.everywhere(in, name) {
			d.DatabasesInStep++
		}
	}
	slices.SortStableFunc(d.Databases, func(a, b Database) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return strings.Compare(a.Replica, b.Replica)
	})
}

func databaseOf(in Input, c managerapi.Copy) Database {
	db := Database{
		Name: c.Database, Replica: c.Replica, State: c.State, Sync: string(c.Sync),
		SendQueue: c.SendQueue, RedoQueue: c.RedoQueue, Lag: c.LagSeconds,
		InStep: !c.Suspended && inStep(string(c.Sync), modeOf(in, c.Replica)),
	}
	if c.Suspended {
		db.Message = "suspended: " + c.SuspendReason
	}
	return db
}

func modeOf(in Input, replica string) api.AvailabilityMode {
	for i, r := range in.Group.Spec.Replicas {
		if in.Group.ReplicaName(i) == replica {
			return r.AvailabilityMode
		}
	}
	return api.SynchronousCommit
}

func inStep(sync string, mode api.AvailabilityMode) bool {
	return sync == "SYNCHRONIZED" || (sync == "SYNCHRONIZING" && mode == api.AsynchronousCommit)
}

// everywhere tells whether the database is in step on every replica with data.
func (d *Document) everywhere(in Input, name string) bool {
	p := primaryReport(in.Reports)
	measured := p != nil && p.MeasuredAgoSeconds != nil
	status := map[string]api.ReplicaStatus{}
	for _, r := range in.Group.Status.ReplicaStatuses {
		status[r.Name] = r
	}
	for i, spec := range in.Group.Spec.Replicas {
		if spec.AvailabilityMode == api.ConfigurationOnly {
			continue
		}
		replica := in.Group.ReplicaName(i)
		ok := false
		if measured {
			ok = slices.ContainsFunc(d.Databases, func(x Database) bool { return x.Name == name && x.Replica == replica && x.InStep })
		} else {
			ok = !in.unattended() && databaseInStep(status[replica], name)
		}
		if !ok {
			return false
		}
	}
	return true
}

func databaseInStep(r api.ReplicaStatus, name string) bool {
	if !r.Reachable {
		return false
	}
	for _, db := range r.Databases {
		if db.Name == name {
			return !db.Suspended && inStep(db.SynchronizationState, r.AvailabilityMode)
		}
	}
	return inStep(r.SynchronizationState, r.AvailabilityMode)
}

// seeding lists the replicas with a database that is on its way or failed.
func (d *Document) seeding(in Input) {
	p := primaryReport(in.Reports)
	if p == nil {
		return
	}
	for i := range d.Replicas {
		row := &d.Replicas[i]
		s := Seeding{Replica: row.Name, From: p.Replica, Databases: []SeedingStatus{}}
		going := false
		for _, c := range p.CopiesOf(row.Name) {
			x := seedingOf(p, c)
			s.Total++
			switch x.State {
			case "done":
				s.Done++
			case "behind":
				// Not seeding's business: it catches up, or the ladder brings it back.
				continue
			default:
				going = true
			}
			if h := historyOf(p, c); h != nil && h.StartedAt != nil && x.State != "done" && (s.Started == nil || h.StartedAt.Before(*s.Started)) {
				s.Started = instant(*h.StartedAt)
			}
			if x.LeftSeconds != nil && (s.LeftSeconds == nil || *x.LeftSeconds > *s.LeftSeconds) {
				s.LeftSeconds = x.LeftSeconds
			}
			s.Databases = append(s.Databases, x)
		}
		if !going || row.Fenced {
			continue
		}
		d.Seeding = append(d.Seeding, s)
		if row.State == "seeding" || row.State == "not synchronizing" || row.State == "initializing" {
			row.State = "seeding " + fraction(s.Done, s.Total)
		}
	}
}

func historyOf(p *managerapi.Report, c managerapi.Copy) *managerapi.Seeding {
	for i, s := range p.Seeding {
		if s.Replica == c.Replica && s.Database == c.Database {
			return &p.Seeding[i]
		}
	}
	return nil
}

func seedingOf(p *managerapi.Report, c managerapi.Copy) SeedingStatus {
	x := SeedingStatus{Database: c.Database}
	h := historyOf(p, c)
	if h != nil {
		x.Attempts, x.Failure = h.Attempts, h.Failure
		x.Transferred, x.Size, x.Rate = h.TransferredBytes, h.SizeBytes, h.BytesPerSecond
	}
	switch {
	case c.Sync == ag.SyncSynchronized || c.Sync == ag.SyncSynchronizing:
		x.State, x.Failure, x.Rate = "done", "", nil
	case h == nil:
		x.State = "behind"
	case h.CompletedAt != nil && h.State == "FAILED":
		x.State = "failed"
	case h.CompletedAt != nil:
		x.State = "behind"
	case h.TransferredBytes != nil:
		x.State = "copying"
		if x.Size != nil && x.Rate != nil && *x.Rate > 0 {
			left := max(0, float64(*x.Size-*x.Transferred)/float64(*x.Rate))
			left = float64(time.Duration(left*float64(time.Second)).Round(time.Second)) / float64(time.Second)
			x.LeftSeconds = &left
		}
	case h.State == "CATCHUP":
		x.State = "catching up"
	case h.Attempts > 1:
		x.State = "retry"
	default:
		x.State = "waiting"
	}
	return x
}
