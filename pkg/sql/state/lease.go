package state

import (
	"encoding/json"
	"fmt"
	"math"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// AnnotationAuthority on the Lease holds the record as JSON: all of ag.Authority but
// what the Lease's own fields and the object's version say.
const AnnotationAuthority = v1alpha1.Group + "/authority"

// renewLayout is the text of a renewTime: compared for change only.
const renewLayout = "2006-01-02T15:04:05.000000Z"

// Decode reads the authority from its Lease. A nil Lease, one of another custom
// resource (agUID), and one whose record is missing, unreadable or contradicts the
// Lease's own fields are no proof for anyone (R4): Exists is false, with the reason.
// Version is set whenever there is an object, so that it can be replaced by a swap.
//
// holderIdentity and leaseTransitions repeat the record for people; a difference
// means that somebody edited one of them by hand.
func Decode(l *coordinationv1.Lease, agUID string) (ag.Authority, string) {
	var d Decoder
	return d.Decode(l, agUID)
}

// Decoder is [Decode] for who reads one Lease again and again: the record, which seldom
// changes, is parsed only when its text is another one. Everything else is read and
// compared each time. It is not for use by several goroutines at once.
type Decoder struct {
	text   string
	record ag.Authority
}

// Decode reads the authority from its Lease.
func (d *Decoder) Decode(l *coordinationv1.Lease, agUID string) (ag.Authority, string) {
	if l == nil {
		return ag.Authority{}, "there is no Lease"
	}
	none := ag.Authority{Version: l.ResourceVersion}
	text := l.Annotations[AnnotationAuthority]
	if text == "" {
		return none, fmt.Sprintf("Lease %s has no annotation %s", l.Name, AnnotationAuthority)
	}
	if text != d.text {
		var record ag.Authority
		if err := json.Unmarshal([]byte(text), &record); err != nil {
			return none, fmt.Sprintf("Lease %s: annotation %s is unreadable: %v", l.Name, AnnotationAuthority, err)
		}
		d.text, d.record = text, record
	}
	a := d.record.Clone()
	if agUID != "" && a.AGUID != agUID {
		return none, fmt.Sprintf("Lease %s belongs to another availability group resource (UID %s)", l.Name, a.AGUID)
	}
	if got := deref(l.Spec.HolderIdentity); got != a.Holder.Identity() {
		return none, fmt.Sprintf("Lease %s: holderIdentity %q contradicts the record (%q)", l.Name, got, a.Holder.Identity())
	}
	if got := deref(l.Spec.LeaseTransitions); got != transitions(a.Epoch) {
		return none, fmt.Sprintf("Lease %s: leaseTransitions %d contradicts the record (epoch %d)", l.Name, got, a.Epoch)
	}
	a.Exists = true
	a.Version = l.ResourceVersion
	a.Renewals = ""
	if l.Spec.RenewTime != nil {
		a.Renewals = l.Spec.RenewTime.UTC().Format(renewLayout)
	}
	return a, ""
}

// Records keeps a [Decoder] for each availability group whose Lease is read. It is for
// use by several goroutines.
type Records struct {
	mu sync.Mutex
	by map[ag.Key]*Decoder
}

// maxRecords bounds the groups that are remembered; when there are more, all are
// forgotten, which costs a parse each.
const maxRecords = 1024

func (r *Records) decode(key ag.Key, l *coordinationv1.Lease, agUID string) (ag.Authority, string) {
	if r == nil {
		return Decode(l, agUID)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.by[key]
	if d == nil {
		if r.by == nil || len(r.by) >= maxRecords {
			r.by = map[ag.Key]*Decoder{}
		}
		d = &Decoder{}
		r.by[key] = d
	}
	return d.Decode(l, agUID)
}

// Encode writes the authority into a Lease: holder, epoch and record. The renewTime
// is kept when the grant is the same and taken away when a new one is made: only
// its holder may renew it. duration is for people: the write lease's length.
func Encode(l *coordinationv1.Lease, a ag.Authority, duration time.Duration) error {
	record := a.Clone()
	record.Exists, record.Version, record.Renewals = false, "", ""
	text, err := json.Marshal(record)
	if err != nil {
		return fmt.Errorf("encode the authority: %w", err)
	}
	sameGrant := deref(l.Spec.HolderIdentity) == a.Holder.Identity() && deref(l.Spec.LeaseTransitions) == transitions(a.Epoch)
	if l.Annotations == nil {
		l.Annotations = map[string]string{}
	}
	l.Annotations[AnnotationAuthority] = string(text)
	identity, epoch, seconds := a.Holder.Identity(), transitions(a.Epoch), int32(max(1, duration/time.Second))
	l.Spec.HolderIdentity = &identity
	l.Spec.LeaseTransitions = &epoch
	l.Spec.LeaseDurationSeconds = &seconds
	if !sameGrant {
		l.Spec.RenewTime = nil
		l.Spec.AcquireTime = nil
	}
	return nil
}

// Renew marks the Lease as renewed now by run, which must be its holder (safety.md
// §2). The caller updates the object with the resourceVersion of its last read; a
// conflict means that the record has changed, and is no renewal.
func Renew(l *coordinationv1.Lease, run ag.Run, now time.Time) error {
	if got := deref(l.Spec.HolderIdentity); got != run.Identity() || run.Zero() {
		return fmt.Errorf("renew Lease %s: its holder is %q, not %q", l.Name, got, run.Identity())
	}
	t := metav1.NewMicroTime(now)
	if l.Spec.AcquireTime == nil {
		l.Spec.AcquireTime = &t
	}
	l.Spec.RenewTime = &t
	return nil
}

// SameButRenewed tells whether two records differ by renewals alone (R1): every
// other byte, the whole operation included, is equal.
func SameButRenewed(a, b ag.Authority) bool {
	a, b = a.Clone(), b.Clone()
	a.Version, b.Version = "", ""
	a.Renewals, b.Renewals = "", ""
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

func transitions(epoch int64) int32 {
	if epoch > math.MaxInt32 {
		return math.MaxInt32
	}
	return int32(max(epoch, 0))
}

func deref[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}
