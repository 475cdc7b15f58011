package decide

import (
	"fmt"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// refusal is why a replica may not do something: which rule, and in words.
type refusal struct {
	rule ag.Rule
	why  string
}

// none is the absence of a refusal.
func (r refusal) none() bool { return r.why == "" }

func refuse(rule ag.Rule, format string, args ...any) refusal {
	return refusal{rule: rule, why: fmt.Sprintf(format, args...)}
}

// answers is the first half of R12: whether this replica's numbers count. It must be
// reached, be who it should be, on the recorded volume, and not be stale.
func (v *view) answers(r *ag.Replica) refusal {
	if x := v.answersOwnVolume(r); !x.none() {
		return x
	}
	if contains(v.auth.Stale, r.Name) && !v.knobs.without("stale") {
		return refuse("R12", "stale: it was, or may have been, primary and has not caught up under a later one")
	}
	return refusal{}
}

// answersOwnVolume is the same but for stale: all that R13 asks of the last primary.
func (v *view) answersOwnVolume(r *ag.Replica) refusal {
	if r == nil {
		return refuse("R12", "it is not in the spec")
	}
	if r.Mode != ag.ModeSynchronous {
		return refuse("R12", "it is %s", modeText(r.Mode))
	}
	pvc, recorded := v.recordedPVC(r.Name)
	switch {
	case !recorded:
		return refuse("R12", "it is not in the recorded set of synchronous replicas")
	case !reached(r):
		return refuse("R13", "%s", reachText(r))
	case pvc != "" && pvc != r.Pod.PVCUID:
		return refuse("R12", "its data volume is not the recorded one")
	}
	return v.identity(r)
}

// identity: the server that answered is this replica of this group, and its
// configuration is not older than one that was recorded for it.
func (v *view) identity(r *ag.Replica) refusal {
	if x := v.itself(r); !x.none() {
		return x
	}
	l := r.Local
	switch {
	case l.Sequence <= 0:
		return refuse("R12", "it has no sequence number: its volume is blank")
	case l.Sequence < v.recordedSequence(r.Name):
		return refuse("R12", "its sequence number %d is below %d, which was recorded for it: its volume was restored",
			l.Sequence, v.recordedSequence(r.Name))
	}
	return refusal{}
}

// itself: the server that answered is this replica of this group.
func (v *view) itself(r *ag.Replica) refusal {
	l := r.Local
	switch {
	case l.Role == ag.RoleNone:
		return refuse("R12", "its server has no replica of the group")
	case l.ServerName != "" && !sameServer(l.ServerName, r.Name):
		return refuse("R12", "the server that answers is called %s", l.ServerName)
	case l.GroupID != "" && v.auth.GroupID != "" && !sameServer(l.GroupID, v.auth.GroupID):
		return refuse("R12", "its group_id is not the recorded one")
	}
	return refusal{}
}

// mayWin is the second half of R12: what else a candidate needs. Planned moves by a
// person's word may go to a replica with failoverMode Manual.
func (v *view) mayWin(r *ag.Replica, planned bool) refusal {
	p := v.policyOf(r.Name)
	switch {
	case p == nil:
		return refuse("R12", "it is not in the spec")
	case !p.Auto && !planned:
		return refuse("R12", "its failoverMode is Manual")
	case p.Fenced || r.Fenced:
		return refuse("R12", "it is fenced")
	case r.Pod.Terminating:
		return refuse("R12", "its pod is terminating")
	case runOf(r).Zero():
		return refuse("R12", "its instance manager does not answer: no run can be granted the Lease")
	}
	if x, ok := v.refused(r); ok {
		return refuse("R12", "it answered FAILOVER with Msg %d at sequence number %d", ag.MsgNotSynchronized, x.Sequence)
	}
	return refusal{}
}

// refusalHolds is how long a 41142 keeps a replica from being asked again while its
// configuration does not change.
const refusalHolds = time.Minute

// refused finds a 41142 that still holds for this replica.
func (v *view) refused(r *ag.Replica) (ag.Refusal, bool) {
	for _, x := range v.in.Memory.Refusals {
		if x.Replica == r.Name && x.Sequence == r.Local.Sequence && elapsed(x.At, v.now) < refusalHolds {
			return x, true
		}
	}
	return ag.Refusal{}, false
}

// witnessAnswers: the configuration-only replica's number counts.
func (v *view) witnessAnswers() (*ag.Replica, refusal) {
	w := v.witness()
	switch {
	case w == nil:
		return nil, refuse("R13", "there is no configuration-only replica")
	case !reached(w):
		return w, refuse("R13", "%s", reachText(w))
	}
	return w, v.identity(w)
}

func (v *view) recordedPVC(name string) (string, bool) {
	for _, m := range v.auth.Rule.Set {
		if m.Replica == name {
			return m.PVCUID, true
		}
	}
	return "", false
}

func (v *view) recordedSequence(name string) int64 {
	for _, s := range v.auth.Sequences {
		if s.Replica == name {
			return s.Sequence
		}
	}
	return 0
}

func modeText(m ag.Mode) string {
	switch m {
	case ag.ModeSynchronous:
		return "SynchronousCommit"
	case ag.ModeAsynchronous:
		return "AsynchronousCommit: it may lack commits"
	case ag.ModeConfigurationOnly:
		return "ConfigurationOnly: it has no databases"
	case ag.ModeUnknown:
	}
	return "of unknown availability mode"
}

// elapsed is never negative: clocks step, and nodes differ.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), 0)
}
