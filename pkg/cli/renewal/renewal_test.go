package renewal

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type fixed struct {
	now time.Time
	ok  bool
}

func (f fixed) ServerTime() (time.Time, bool) { return f.now, f.ok }

func TestAge_IsByTheAPIServersClockOrNotKnown(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 8, 22, 8, 15, 35, 0, time.UTC)
	at := func(d time.Duration) metav1.ManagedFieldsEntry {
		written := metav1.NewTime(now.Add(-d))
		return metav1.ManagedFieldsEntry{Time: &written}
	}
	for name, c := range map[string]struct {
		fields []metav1.ManagedFieldsEntry
		clock  fixed
		want   time.Duration
		known  bool
	}{
		"the newest writer counts":              {[]metav1.ManagedFieldsEntry{at(time.Hour), at(41 * time.Second), {}, at(time.Minute)}, fixed{now, true}, 41 * time.Second, true},
		"no time was kept":                      {[]metav1.ManagedFieldsEntry{{}}, fixed{now, true}, 0, false},
		"the API server has told no time":       {[]metav1.ManagedFieldsEntry{at(time.Minute)}, fixed{}, 0, false},
		"another API server is a second behind": {[]metav1.ManagedFieldsEntry{at(-time.Second)}, fixed{now, true}, 0, true},
	} {
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ManagedFields: c.fields}}
		l.Spec.RenewTime = &metav1.MicroTime{Time: now.Add(12 * time.Hour)} // by a clock that is wrong
		if got, known := Age(l, c.clock); got != c.want || known != c.known {
			t.Errorf("%s: %s, %v, want %s, %v", name, got, known, c.want, c.known)
		}
	}
}

func TestLock_IsSilentOnceAnotherControllerWouldHaveTakenOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lock Lock
		want bool
	}{
		"renewed":              {Lock{Age: time.Second, Known: true, Limit: 12 * time.Second}, false},
		"may be taken over":    {Lock{Age: 12 * time.Second, Known: true, Limit: 12 * time.Second}, false},
		"nobody has":           {Lock{Age: 13 * time.Second, Known: true, Limit: 12 * time.Second}, true},
		"it could not be read": {Lock{Age: time.Hour}, false},
	} {
		if got := c.lock.Silent(); got != c.want {
			t.Errorf("%s: silent %v, want %v", name, got, c.want)
		}
	}
}
