package engine

import (
	"slices"
	"time"
)

// lockTable holds the table locks of one database. Object 0 stands for its catalog.
type lockTable struct {
	locks []*tableLock
}

type tableLock struct {
	object  ObjectID
	holders []*heldLock
	queue   []*lockRequest
}

type heldLock struct {
	lock *tableLock
	txn  *transaction
	mode LockMode
}

type lockRequest struct {
	txn  *transaction
	mode LockMode
	wait *wait
}

func (l *lockTable) get(id ObjectID) *tableLock {
	for _, t := range l.locks {
		if t.object == id {
			return t
		}
	}
	t := &tableLock{object: id}
	l.locks = append(l.locks, t)
	return t
}

func (t *tableLock) held(x *transaction) *heldLock {
	for _, h := range t.holders {
		if h.txn == x {
			return h
		}
	}
	return nil
}

func (t *tableLock) compatible(x *transaction, m LockMode) bool {
	for _, h := range t.holders {
		if h.txn != x && (m == LockExclusive || h.mode == LockExclusive) {
			return false
		}
	}
	return true
}

func (t *tableLock) grant(x *transaction, m LockMode) {
	if h := t.held(x); h != nil {
		h.mode = max(h.mode, m)
		return
	}
	h := &heldLock{lock: t, txn: x, mode: m}
	t.holders = append(t.holders, h)
	x.locks = append(x.locks, h)
}

// LockTable takes a table lock for the session's transaction: 1205 at once when waiting would
// close a cycle. The lock time-out (1222) is set with
// LimitLockWait.
func (in *Instance) LockTable(now time.Time, id SessionID, db DatabaseID, table ObjectID, m LockMode) (WaitID, error) {
	in.begin(now)
	s := in.session(id)
	d := in.database(db)
	if s.txn == nil || d == nil {
		return 0, msg(1204, 19, 4, "The instance of the SQL Server Database Engine cannot obtain a LOCK resource at this time: there is no transaction.")
	}
	t := d.locks.get(table)
	if h := t.held(s.txn); h != nil && h.mode >= m {
		return 0, nil
	}
	if t.compatible(s.txn, m) && (len(t.queue) == 0 || t.held(s.txn) != nil) {
		t.grant(s.txn, m)
		return 0, nil
	}
	if in.wouldDeadlock(s.txn, t, m) {
		in.rollback(s)
		return 0, msg(1205, 13, 51, "Transaction (Process ID %d) was deadlocked on lock resources with another process and has been chosen as the deadlock victim. Rerun the transaction.", s.id)
	}
	r := &lockRequest{txn: s.txn, mode: m}
	kind := "LCK_M_X"
	if m == LockShared {
		kind = "LCK_M_S"
	}
	r.wait = in.newWait(s, kind, func() {
		t.queue = slices.DeleteFunc(t.queue, func(q *lockRequest) bool { return q == r })
		in.serve(t)
	})
	for _, h := range t.holders {
		if h.txn != s.txn {
			r.wait.blocker = h.txn.session
			break
		}
	}
	t.queue = append(t.queue, r)
	return r.wait.id, nil
}

// wouldDeadlock looks for a path from the holders that x would wait for back to x.
func (in *Instance) wouldDeadlock(x *transaction, t *tableLock, m LockMode) bool {
	seen := map[*transaction]bool{}
	var blocked func(t *tableLock, by *transaction, m LockMode) bool
	blocked = func(t *tableLock, by *transaction, m LockMode) bool {
		for _, h := range t.holders {
			if h.txn == by || m != LockExclusive && h.mode != LockExclusive {
				continue
			}
			if h.txn == x {
				return true
			}
			if seen[h.txn] {
				continue
			}
			seen[h.txn] = true
			if nt, q := in.waitsFor(h.txn); nt != nil && blocked(nt, h.txn, q.mode) {
				return true
			}
		}
		return false
	}
	return blocked(t, x, m)
}

func (in *Instance) waitsFor(x *transaction) (*tableLock, *lockRequest) {
	for _, d := range in.dbs {
		for _, t := range d.locks.locks {
			for _, q := range t.queue {
				if q.txn == x {
					return t, q
				}
			}
		}
	}
	return nil, nil
}

// serve grants what the queue's head allows.
func (in *Instance) serve(t *tableLock) {
	for len(t.queue) > 0 && t.compatible(t.queue[0].txn, t.queue[0].mode) {
		r := t.queue[0]
		t.queue = t.queue[1:]
		t.grant(r.txn, r.mode)
		in.complete(r.wait, nil)
	}
}

// unlock gives back all locks of a transaction and withdraws the one that it waits for.
func (in *Instance) unlock(x *transaction) {
	if t, q := in.waitsFor(x); t != nil && !x.committing {
		t.queue = slices.DeleteFunc(t.queue, func(r *lockRequest) bool { return r == q })
		defer in.serve(t)
	}
	locks := x.locks
	x.locks = nil
	for _, h := range locks {
		h.lock.holders = slices.DeleteFunc(h.lock.holders, func(o *heldLock) bool { return o == h })
	}
	for _, h := range locks {
		in.serve(h.lock)
	}
}
