package engine

import "time"

// wait is a statement that has not finished.
type wait struct {
	id      WaitID
	session *session // nil for internal ones
	kind    string   // wait_type of dm_exec_requests
	since   time.Time
	blocker *session
	left    int    // parts still open
	cancel  func() // withdraws what can be withdrawn
	done    bool
}

func (in *Instance) newWait(s *session, kind string, cancel func()) *wait {
	in.nextWait++
	w := &wait{id: in.nextWait, session: s, kind: kind, since: in.now, cancel: cancel, left: 1}
	in.waits[w.id] = w
	if s != nil {
		s.wait = w
	}
	return w
}

// complete ends w; nil or already ended waits are ignored.
func (in *Instance) complete(w *wait, err error) {
	if w == nil || w.done {
		return
	}
	w.done = true
	delete(in.waits, w.id)
	if w.session != nil && w.session.wait == w {
		w.session.wait = nil
	}
	in.emit(Complete{Wait: w.id, Err: err})
}

// part ends one part of w, the last one completes it.
func (in *Instance) part(w *wait) {
	if w == nil || w.done {
		return
	}
	w.left--
	if w.left == 0 {
		in.complete(w, nil)
	}
}

// CancelWait withdraws a waiting statement after an attention, time-out or kill. What it already
// changed stays: a commit that is in the log may still be acknowledged by the replicas.
func (in *Instance) CancelWait(now time.Time, id WaitID) {
	in.begin(now)
	w := in.waits[id]
	if w == nil {
		return
	}
	w.done = true
	delete(in.waits, id)
	if w.session != nil && w.session.wait == w {
		w.session.wait = nil
	}
	if w.cancel != nil {
		w.cancel()
	}
}

// LimitLockWait ends a wait for a lock with 1222 after d (SET LOCK_TIMEOUT).
func (in *Instance) LimitLockWait(now time.Time, id WaitID, d time.Duration) {
	in.begin(now)
	w := in.waits[id]
	if w == nil {
		return
	}
	in.after(d, func() {
		if w.done {
			return
		}
		in.complete(w, msg(1222, 16, 51, "Lock request time out period exceeded."))
		if w.cancel != nil {
			w.cancel()
		}
	})
}
