package clitest

import (
	"encoding/json"
	"net/http"
	"sort"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// watcher is one open watch. Its channel is closed by nobody: the request ends it.
type watcher struct {
	kind   kind
	match  func(*unstructured.Unstructured) bool
	events chan map[string]any
}

// notify tells the open watches, under the lock. A watch that does not read loses
// events, which no test should do 256 times.
func (a *API) notify(event string, k kind, u *unstructured.Unstructured) {
	for w := range a.watchers {
		if w.kind.group == k.group && w.kind.resource == k.resource && w.match(u) {
			select {
			case w.events <- map[string]any{"type": event, "object": u.DeepCopy().Object}:
			default:
			}
		}
	}
}

func (a *API) serveWatch(w http.ResponseWriter, r *http.Request, c call) {
	wt := &watcher{kind: c.kind, match: a.selected(r, c), events: make(chan map[string]any, 256)}
	a.mu.Lock()
	if v := r.URL.Query().Get("resourceVersion"); v == "" || v == "0" {
		var now []*unstructured.Unstructured
		for k, u := range a.objects {
			if k.group == c.Group && k.resource == c.kind.resource && wt.match(u) {
				now = append(now, u)
			}
		}
		sort.Slice(now, func(i, j int) bool { return now[i].GetName() < now[j].GetName() })
		for _, u := range now {
			wt.events <- map[string]any{"type": "ADDED", "object": u.DeepCopy().Object}
		}
	}
	a.watchers[wt] = true
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		delete(a.watchers, wt)
		a.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	flush := http.NewResponseController(w)
	_ = flush.Flush() // tells the client that the watch is open
	enc := json.NewEncoder(w)
	for {
		select {
		case <-r.Context().Done():
			return
		case e := <-wt.events:
			if enc.Encode(e) != nil || flush.Flush() != nil {
				return
			}
		}
	}
}
