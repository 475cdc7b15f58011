package engine

import (
	"maps"
	"slices"
	"time"
)

// transaction buffers the changes of a session.
type transaction struct {
	session *session
	began   time.Time
	parts   []*part // by database id
	locks   []*heldLock
	saves   []savepoint
	// refused is why it can only be rolled back.
	refused error
	// committing is set once its records are in the log: a kill no longer undoes it.
	committing bool
	open       int // parts not yet acknowledged
}

type savepoint struct {
	name    string
	changes []int // length of each part's changes, by position
}

// part is a transaction's view of one database.
type part struct {
	db      *database
	changes []Change
	tables  map[ObjectID]*overlay
}

// overlay is a transaction's own version of a table.
type overlay struct {
	base     *tableData // nil: created here, or emptied
	def      *Table     // nil: dropped
	inserted []tableRow
	updated  map[RowID]Row
	deleted  map[RowID]bool
	added    []map[string]RowID // per unique key
	removed  []map[string]bool
	gone     bool // dropped here
	counting bool
	identity int64
	nextRow  RowID
}

// Begin opens a transaction; it is an error of the caller if one is open.
func (in *Instance) Begin(now time.Time, id SessionID) {
	in.begin(now)
	s := in.session(id)
	if s.txn == nil && s != in.nobody {
		s.txn = &transaction{session: s, began: in.wall()}
	}
}

// InTransaction tells whether the session has a transaction.
func (in *Instance) InTransaction(id SessionID) bool { return in.session(id).txn != nil }

func (t *transaction) find(d *database) *part {
	for _, p := range t.parts {
		if p.db == d {
			return p
		}
	}
	return nil
}

func (t *transaction) part(d *database) *part {
	if p := t.find(d); p != nil {
		return p
	}
	p := &part{db: d, tables: map[ObjectID]*overlay{}}
	t.parts = append(t.parts, p)
	slices.SortFunc(t.parts, func(a, b *part) int { return int(a.db.state.ID - b.db.state.ID) })
	return p
}

func (in *Instance) rollback(s *session) {
	t := s.txn
	if t == nil {
		return
	}
	s.txn = nil
	in.unlock(t)
}

// Rollback drops the transaction.
func (in *Instance) Rollback(now time.Time, id SessionID) {
	in.begin(now)
	in.rollback(in.session(id))
}

// Commit hardens the transaction and waits for the group's commit rule. The transaction is closed
// in any case; an error means that nothing was committed, an error of the wait that the outcome is
// unknown to the client.
func (in *Instance) Commit(now time.Time, id SessionID) (WaitID, error) {
	in.begin(now)
	s := in.session(id)
	t := s.txn
	if t == nil {
		return 0, msg(3902, 16, 1, "The COMMIT TRANSACTION request has no corresponding BEGIN TRANSACTION.")
	}
	s.txn = nil
	t.parts = slices.DeleteFunc(t.parts, func(p *part) bool { return len(p.changes) == 0 })
	for _, p := range t.parts {
		err := in.usable(s, p.db, true)
		if err == nil {
			err = in.refuseCommit(p.db)
		}
		if err == nil && in.faults.diskFull {
			err = msg(9002, 17, 4, "The transaction log for database '%s' is full due to 'NOTHING' and the holdup lsn is (%d).", p.db.state.Name, p.db.applied)
		}
		if err != nil {
			in.unlock(t)
			return 0, err
		}
	}
	if len(t.parts) == 0 {
		in.unlock(t)
		return 0, nil
	}
	t.committing = true
	var w *wait
	for _, p := range t.parts {
		r := in.appendRecord(p.db, p.changes)
		in.crashPoint("commit")
		if p.db.member == nil && in.faults.slowIO == 0 && len(p.db.commits) == 0 {
			p.db.redo(r.LSN)
			in.checkpoint(p.db, p.db.isSystem() && len(p.db.log) > 64)
			continue
		}
		if w == nil {
			kind := "HADR_SYNC_COMMIT"
			if p.db.member == nil {
				kind = "WRITELOG"
			}
			w = in.newWait(s, kind, nil)
			w.left = 0
		}
		w.left++
		t.open++
		c := &pendingCommit{record: r, wait: w, txn: t, since: in.now, ready: in.now.Add(in.faults.slowIO)}
		if m := p.db.member; m != nil {
			c.required = m.required()
		}
		p.db.commits = append(p.db.commits, c)
		if in.faults.slowIO > 0 {
			d := p.db
			in.after(in.faults.slowIO, func() { in.flushed(d) })
		}
	}
	if w == nil {
		in.unlock(t)
		return 0, nil
	}
	for _, p := range t.parts {
		if m := p.db.member; m != nil {
			m.ship()
			m.acknowledge()
		}
	}
	if w.done {
		// Acknowledged at once: the Complete effect is withdrawn, nobody waits for it.
		_ = in.withdraw(w)
		return 0, nil
	}
	return w.id, nil
}

// flushed acknowledges what a slow disk has written by now.
func (in *Instance) flushed(d *database) {
	if d.member != nil {
		d.member.acknowledge()
		return
	}
	for len(d.commits) > 0 && !d.commits[0].ready.After(in.now) {
		c := d.commits[0]
		d.commits = d.commits[1:]
		in.settle(d, c)
	}
}

// withdraw removes the Complete effect of a wait that ended before its statement returned.
func (in *Instance) withdraw(w *wait) error {
	for i := len(in.effects) - 1; i >= 0; i-- {
		if c, ok := in.effects[i].(Complete); ok && c.Wait == w.id {
			in.effects = slices.Delete(in.effects, i, i+1)
			return c.Err
		}
	}
	return nil
}

// settle ends a pending commit: its rows become visible and its locks go.
func (in *Instance) settle(d *database, c *pendingCommit) {
	d.redo(c.record.LSN)
	in.release(c)
	in.part(c.wait)
}

func (in *Instance) release(c *pendingCommit) {
	if c.txn == nil {
		return
	}
	c.txn.open--
	if c.txn.open == 0 {
		in.unlock(c.txn)
	}
}

// Savepoint marks the present state of the transaction.
func (in *Instance) Savepoint(id SessionID, name string) {
	t := in.session(id).txn
	if t == nil {
		return
	}
	sp := savepoint{name: name}
	for _, p := range t.parts {
		sp.changes = append(sp.changes, len(p.changes))
	}
	t.saves = append(t.saves, sp)
}

// RollbackTo undoes what the transaction did since the savepoint, and tells whether it exists.
func (in *Instance) RollbackTo(id SessionID, name string) bool {
	t := in.session(id).txn
	if t == nil {
		return false
	}
	for i := len(t.saves) - 1; i >= 0; i-- {
		if !equalName(t.saves[i].name, name) {
			continue
		}
		keep := t.saves[i].changes
		t.saves = t.saves[:i+1]
		for k, p := range t.parts {
			n := 0
			if k < len(keep) {
				n = keep[k]
			}
			old := p.changes[:n]
			p.changes, p.tables = nil, map[ObjectID]*overlay{}
			for c := range old {
				p.replay(old[c])
			}
		}
		return true
	}
	return false
}

// overlay gives the transaction's version of a table, nil if there is none.
func (p *part) overlay(id ObjectID) *overlay {
	o := p.tables[id]
	if o == nil {
		b := p.db.content.table(id)
		if b == nil {
			return nil
		}
		o = newOverlay(b.def, b)
		o.nextRow = b.nextRow
		p.tables[id] = o
	}
	if o.gone {
		return nil
	}
	return o
}

func newOverlay(def *Table, base *tableData) *overlay {
	return &overlay{base: base, def: def, nextRow: 1, added: make([]map[string]RowID, len(def.Keys)), removed: make([]map[string]bool, len(def.Keys))}
}

// lookup finds the row with a key value in the transaction's view.
func (o *overlay) lookup(key int, k string) (RowID, bool) {
	if id, ok := o.added[key][k]; ok {
		return id, true
	}
	if o.base == nil || o.removed[key][k] {
		return 0, false
	}
	if key >= len(o.base.keys) {
		return 0, false
	}
	id, ok := o.base.keys[key][k]
	return id, ok
}

func (o *overlay) get(id RowID) Row {
	if r, ok := o.updated[id]; ok {
		return r
	}
	if o.deleted[id] {
		return nil
	}
	i, ok := slices.BinarySearchFunc(o.inserted, id, func(r tableRow, id RowID) int { return int(r.id - id) })
	if ok {
		return o.inserted[i].row
	}
	if o.base != nil {
		return o.base.get(id)
	}
	return nil
}

func (o *overlay) addKeys(id RowID, r Row) {
	for i, k := range o.def.Keys {
		if !k.Unique && !k.Primary {
			continue
		}
		if o.added[i] == nil {
			o.added[i] = map[string]RowID{}
		}
		o.added[i][keyOf(k, r)] = id
	}
}

func (o *overlay) dropKeys(r Row) {
	for i, k := range o.def.Keys {
		if !k.Unique && !k.Primary {
			continue
		}
		v := keyOf(k, r)
		delete(o.added[i], v)
		if o.removed[i] == nil {
			o.removed[i] = map[string]bool{}
		}
		o.removed[i][v] = true
	}
}

// conflict checks the unique keys for a row that is to get id (0: new).
func (o *overlay) conflict(id RowID, r Row) error {
	for i, k := range o.def.Keys {
		if !k.Unique && !k.Primary {
			continue
		}
		other, ok := o.lookup(i, keyOf(k, r))
		if !ok || other == id {
			continue
		}
		text := ""
		for n, c := range k.Columns {
			if n > 0 {
				text += ", "
			}
			if r[c].IsNull() {
				text += "<NULL>"
			} else {
				text += r[c].String()
			}
		}
		table := o.def.Schema + "." + o.def.Name
		if k.Primary || k.Unique && k.Name != "" && !k.isIndex() {
			kind := "UNIQUE KEY"
			if k.Primary {
				kind = "PRIMARY KEY"
			}
			return msg(2627, 14, 1, "Violation of %s constraint '%s'. Cannot insert duplicate key in object '%s'. The duplicate key value is (%s).", kind, k.Name, table, text)
		}
		return msg(2601, 14, 1, "Cannot insert duplicate key row in object '%s' with unique index '%s'. The duplicate key value is (%s).", table, k.Name, text)
	}
	return nil
}

func (k Key) isIndex() bool { return !k.Primary && k.Index }

// replay redoes a change in the overlay and appends it.
func (p *part) replay(c Change) {
	p.changes = append(p.changes, c)
	switch c.Op {
	case OpInsert:
		o := p.overlay(c.Object)
		o.inserted = append(o.inserted, tableRow{c.Row, c.Values})
		o.nextRow = max(o.nextRow, c.Row+1)
		o.addKeys(c.Row, c.Values)
	case OpUpdate:
		o := p.overlay(c.Object)
		o.dropKeys(o.get(c.Row))
		i, ok := slices.BinarySearchFunc(o.inserted, c.Row, func(r tableRow, id RowID) int { return int(r.id - id) })
		if ok {
			o.inserted[i].row = c.Values
		} else {
			if o.updated == nil {
				o.updated = map[RowID]Row{}
			}
			o.updated[c.Row] = c.Values
		}
		o.addKeys(c.Row, c.Values)
	case OpDelete:
		o := p.overlay(c.Object)
		o.dropKeys(o.get(c.Row))
		i, ok := slices.BinarySearchFunc(o.inserted, c.Row, func(r tableRow, id RowID) int { return int(r.id - id) })
		if ok {
			o.inserted = slices.Delete(o.inserted, i, i+1)
		}
		delete(o.updated, c.Row)
		if o.deleted == nil {
			o.deleted = map[RowID]bool{}
		}
		o.deleted[c.Row] = true
	case OpTruncate:
		o := p.overlay(c.Object)
		n := newOverlay(o.def, nil)
		n.nextRow = o.nextRow
		p.tables[c.Object] = n
	case OpCreateTable:
		p.tables[c.Table.ID] = newOverlay(c.Table, nil)
	case OpAlterTable:
		next := RowID(1)
		if o := p.overlay(c.Table.ID); o != nil {
			next = o.nextRow
		}
		n := newOverlay(c.Table, nil)
		n.nextRow = next
		p.tables[c.Table.ID] = n
	case OpDropTable:
		p.tables[c.Object] = &overlay{gone: true}
	}
}

// view is what a session sees of a database: its own transaction over the committed content.
type view struct {
	db   *database
	part *part // nil: no changes of its own
}

func (in *Instance) view(s *session, d *database) view {
	v := view{db: d}
	if s.txn != nil {
		v.part = s.txn.find(d)
	}
	return v
}

func (v view) own(id ObjectID) *overlay {
	if v.part == nil {
		return nil
	}
	return v.part.tables[id]
}

func (v view) def(id ObjectID) *Table {
	if o := v.own(id); o != nil {
		if o.gone {
			return nil
		}
		return o.def
	}
	if t := v.db.content.table(id); t != nil {
		return t.def
	}
	return nil
}

func (v view) tables() []*Table {
	var l []*Table
	for _, t := range v.db.content.tables {
		if d := v.def(t.def.ID); d != nil {
			l = append(l, d)
		}
	}
	if v.part != nil {
		for _, id := range slices.Sorted(maps.Keys(v.part.tables)) {
			if o := v.part.tables[id]; !o.gone && v.db.content.table(id) == nil {
				l = append(l, o.def)
			}
		}
	}
	return l
}

// scan iterates the rows of a table.
func (v view) scan(id ObjectID) RowSeq {
	o := v.own(id)
	base := v.db.content.table(id)
	if o != nil {
		base = o.base
	}
	return func(yield func(RowID, Row) bool) {
		if base != nil {
			for i := range base.rows {
				r := &base.rows[i]
				row := r.row
				if row == nil {
					continue
				}
				if o != nil {
					if o.deleted[r.id] {
						continue
					}
					if u, ok := o.updated[r.id]; ok {
						row = u
					}
				}
				if !yield(r.id, row) {
					return
				}
			}
		}
		if o != nil {
			for _, r := range o.inserted {
				if !yield(r.id, r.row) {
					return
				}
			}
		}
	}
}
