package factory

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// serverClock keeps what the API server's answers say of the time.
type serverClock struct {
	mu   sync.Mutex
	date time.Time // of the newest answer, in whole seconds
	at   time.Time // when it came, by this machine's monotonic clock
}

// ServerTime implements Factory.
func (c *serverClock) ServerTime() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.date.IsZero() {
		return time.Time{}, false
	}
	return c.date.Add(time.Since(c.at)), true //nolint:forbidigo // monotonic time since the answer came; nothing waits for it
}

// listen takes the time from every answer that is the API server's own. What a proxied pod
// answers carries the time of the pod's node.
func (c *serverClock) listen(next http.RoundTripper) http.RoundTripper {
	return listener{next, c}
}

type listener struct {
	next  http.RoundTripper
	clock *serverClock
}

// RoundTrip implements http.RoundTripper.
func (l listener) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(r)
	if err != nil || strings.Contains(r.URL.Path, "/proxy") {
		return resp, err
	}
	if date, bad := http.ParseTime(resp.Header.Get("Date")); bad == nil {
		l.clock.mu.Lock()
		l.clock.date, l.clock.at = date, time.Now() //nolint:forbidigo // see ServerTime
		l.clock.mu.Unlock()
	}
	return resp, nil
}

// WrappedRoundTripper lets client-go find what is below.
func (l listener) WrappedRoundTripper() http.RoundTripper { return l.next }
