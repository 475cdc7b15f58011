package engine

import "sort"

// Disk is the durable state of an instance: what its volume holds. A host applies the records of
// every Persist effect to it and opens a new instance from it after a kill. Objects are shared
// with the instance and never changed in place.
type Disk struct {
	Server    *ServerState
	Databases []*DiskDatabase // by id
	Groups    []*GroupState   // by order of creation
	Backups   []BackupSetRow
}

// DiskDatabase is one database on a Disk.
type DiskDatabase struct {
	State *DatabaseState
	Image *Image
	Log   []*LogRecord
}

// NewDisk is an empty volume: an instance opened on it initialises itself.
func NewDisk() *Disk { return &Disk{} }

// IsEmpty tells whether no instance was ever started on the volume.
func (d *Disk) IsEmpty() bool { return d.Server == nil }

// Clone copies the volume, for a snapshot of the state at a point in time.
func (d *Disk) Clone() *Disk {
	c := &Disk{Server: d.Server, Groups: append([]*GroupState(nil), d.Groups...),
		Backups: append([]BackupSetRow(nil), d.Backups...)}
	for _, db := range d.Databases {
		n := *db
		n.Log = append([]*LogRecord(nil), db.Log...)
		c.Databases = append(c.Databases, &n)
	}
	return c
}

// LogReaches tells whether the log on this volume still goes back to the point up to which a copy
// of the database on another volume agrees with it. From an earlier one the copy cannot go on: 1412.
func (d *Disk) LogReaches(database string, other *Disk) bool {
	mine, theirs := d.named(database), other.named(database)
	if mine == nil || theirs == nil {
		return false
	}
	common, ok := commonPoint(mine.forks(), mine.end(), theirs.forks(), theirs.end())
	return ok && common >= mine.Image.LSN
}

// named is the database of that name, nil without one that has content.
func (d *Disk) named(database string) *DiskDatabase {
	for _, db := range d.Databases {
		if db.State.Name == database && db.Image != nil {
			return db
		}
	}
	return nil
}

func (db *DiskDatabase) end() LSN {
	if n := len(db.Log); n > 0 {
		return max(db.Image.LSN, db.Log[n-1].LSN)
	}
	return db.Image.LSN
}

func (db *DiskDatabase) forks() []Fork {
	f := db.Image.Forks
	for _, r := range db.Log[logTail(db.Log).after(db.Image.LSN):] {
		for i := range r.Changes {
			if r.Changes[i].Op == OpFork {
				f = append(f[:len(f):len(f)], *r.Changes[i].Fork)
			}
		}
	}
	return f
}

func (d *Disk) find(id DatabaseID) (int, bool) {
	i := sort.Search(len(d.Databases), func(i int) bool { return d.Databases[i].State.ID >= id })
	return i, i < len(d.Databases) && d.Databases[i].State.ID == id
}

// Apply makes records durable.
func (d *Disk) Apply(records ...Record) {
	for _, r := range records {
		d.apply(r)
	}
}

func (d *Disk) apply(r Record) {
	switch r := r.(type) {
	case PutServer:
		d.Server = r.State
	case PutDatabase:
		i, ok := d.find(r.State.ID)
		if !ok {
			d.Databases = append(d.Databases, nil)
			copy(d.Databases[i+1:], d.Databases[i:])
			d.Databases[i] = &DiskDatabase{State: r.State}
			return
		}
		d.Databases[i].State = r.State
	case RemoveDatabaseRecord:
		if i, ok := d.find(r.ID); ok {
			d.Databases = append(d.Databases[:i], d.Databases[i+1:]...)
		}
	case PutGroup:
		for i, g := range d.Groups {
			if g.Config.GroupID == r.State.Config.GroupID {
				d.Groups[i] = r.State
				return
			}
		}
		d.Groups = append(d.Groups, r.State)
	case RemoveGroup:
		for i, g := range d.Groups {
			if g.Config.GroupID == r.ID {
				d.Groups = append(d.Groups[:i:i], d.Groups[i+1:]...)
				return
			}
		}
	case AppendLog:
		if i, ok := d.find(r.DB); ok {
			d.Databases[i].Log = append(d.Databases[i].Log, r.Records...)
		}
	case CutLog:
		if i, ok := d.find(r.DB); ok {
			l := d.Databases[i].Log
			d.Databases[i].Log = l[:logTail(l).after(r.After):logTail(l).after(r.After)]
		}
	case PutImage:
		if i, ok := d.find(r.DB); ok {
			db := d.Databases[i]
			db.Image = r.Image
			if r.Reset {
				db.Log = nil
				return
			}
			db.Log = append([]*LogRecord(nil), db.Log[logTail(db.Log).after(r.Image.LSN):]...)
		}
	case AddBackup:
		d.Backups = append(d.Backups, r.Set)
	}
}
