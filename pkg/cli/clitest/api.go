// Package clitest is a Kubernetes API server in memory, over HTTP, for tests of the
// plugin: it stores objects, records what was asked, refuses and delays on order. It
// knows the REST part of the API that a client needs; it validates nothing.
package clitest

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
)

// Request is one call that reached the server.
type Request struct {
	// Verb as RBAC names it: get, list, watch, create, update, patch, delete.
	Verb string
	// Resource is plural, with its subresource: "pods/log".
	Group, Resource string
	Namespace, Name string
	DryRun          bool
	UserAgent       string
}

// Write tells whether the call would change the cluster. Reviews and a port-forward
// are created, but nothing stays of them.
func (r Request) Write() bool {
	switch {
	case r.DryRun, strings.HasSuffix(r.Resource, "reviews"), strings.HasSuffix(r.Resource, "/portforward"), strings.HasSuffix(r.Resource, "/proxy"):
		return false
	}
	switch r.Verb {
	case "create", "update", "patch", "delete":
		return true
	}
	return false
}

// String is "patch sqlserveravailabilitygroups.kubectl-mssql.io default/demo".
func (r Request) String() string {
	s := r.Verb + " " + r.Resource
	if r.Group != "" {
		s += "." + r.Group
	}
	if r.Name != "" || r.Namespace != "" {
		s += " " + r.Namespace + "/" + r.Name
	}
	if r.DryRun {
		s += " (dry run)"
	}
	return s
}

// Reaction is told of every object that was written, before the answer is sent. It
// may change the object: what it leaves is stored.
type Reaction func(verb string, obj *unstructured.Unstructured)

// API is the server. Its methods may be called from any goroutine.
type API struct {
	server *httptest.Server

	mu        sync.Mutex
	objects   map[objectKey]*unstructured.Unstructured
	version   int64
	requests  []Request
	refusals  []refusal
	reactions []Reaction
	logs      map[string]string
	forwards  map[string]string
	pages     map[string]string
	delay     time.Duration
	gates     map[string]*gate
	watchers  map[*watcher]bool
	changed   chan struct{}
	absent    map[string]bool
}

type objectKey struct{ group, resource, namespace, name string }

type refusal struct {
	verb, resource string
	code           int32
}

// Start runs a server until the test ends. The plugin's own kinds are known.
func Start(t testing.TB) *API {
	t.Helper()
	a := &API{
		objects: map[objectKey]*unstructured.Unstructured{}, version: 100,
		logs: map[string]string{}, forwards: map[string]string{}, pages: map[string]string{}, gates: map[string]*gate{},
		watchers: map[*watcher]bool{}, changed: make(chan struct{}), absent: map[string]bool{},
	}
	a.server = httptest.NewServer(a)
	t.Cleanup(func() {
		a.server.CloseClientConnections() // a client that watches never ends by itself
		a.server.Close()
	})
	return a
}

// URL of the server.
func (a *API) URL() string { return a.server.URL }

// Config is a client's configuration.
func (a *API) Config() *rest.Config { return &rest.Config{Host: a.server.URL} }

// Kubeconfig writes a kubeconfig whose context has the namespace, and returns its path.
func (a *API) Kubeconfig(t testing.TB, dir, namespace string) string {
	t.Helper()
	path := filepath.Join(dir, "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: test
contexts:
- name: test
  context: {cluster: test, user: test, namespace: %s}
clusters:
- name: test
  cluster: {server: %q}
users:
- name: test
  user: {}
`, namespace, a.server.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Add stores objects as they are, status included; their kind need not be filled in.
func (a *API) Add(t testing.TB, objects ...runtime.Object) {
	t.Helper()
	scheme, err := factory.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if o.GetObjectKind().GroupVersionKind().Empty() {
			kinds, _, err := scheme.ObjectKinds(o)
			if err != nil {
				t.Fatal(err)
			}
			o.GetObjectKind().SetGroupVersionKind(kinds[0])
		}
		m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.add(&unstructured.Unstructured{Object: m}); err != nil {
			t.Fatal(err)
		}
	}
}

// AddYAML stores the documents of a YAML text.
func (a *API) AddYAML(text string) error {
	for i, doc := range strings.Split("\n"+text, "\n---") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			return fmt.Errorf("document %d: %w", i+1, err)
		}
		if len(u.Object) == 0 {
			continue
		}
		if err := a.add(u); err != nil {
			return fmt.Errorf("document %d: %w", i+1, err)
		}
	}
	return nil
}

func (a *API) add(u *unstructured.Unstructured) error {
	k, ok := kindOf(u.GroupVersionKind())
	if !ok {
		return fmt.Errorf("the fake API server does not know the kind %s", u.GroupVersionKind())
	}
	if !k.namespaced {
		u.SetNamespace("")
	} else if u.GetNamespace() == "" {
		u.SetNamespace("default")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.store("create", k, u, nil)
	return nil
}

// Get returns a copy of a stored object, nil when there is none. Resource is plural.
func (a *API) Get(resource, namespace, name string) *unstructured.Unstructured {
	a.mu.Lock()
	defer a.mu.Unlock()
	for k, u := range a.objects {
		if k.resource == resource && k.namespace == namespace && k.name == name {
			return u.DeepCopy()
		}
	}
	return nil
}

// Change edits a stored object, as a controller would; false when there is none.
func (a *API) Change(resource, namespace, name string, edit func(*unstructured.Unstructured)) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for k, u := range a.objects {
		if k.resource == resource && k.namespace == namespace && k.name == name {
			next := u.DeepCopy()
			edit(next)
			kind, _ := resourceOf(k.group, k.resource)
			a.store("update", kind, next, u)
			return true
		}
	}
	return false
}

// Refuse makes calls fail with an HTTP status: 403, 409, 500. "*" matches any verb or resource.
func (a *API) Refuse(verb, resource string, code int32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refusals = append(a.refusals, refusal{verb, resource, code})
}

// Forbid refuses for want of a permission; a review of one's own rights says so too.
func (a *API) Forbid(verb, resource string) { a.Refuse(verb, resource, 403) }

// Remove takes a resource out of the API: the cluster does not know its kind.
func (a *API) Remove(resource string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.absent[resource] = true
}

// React adds a reaction to writes.
func (a *API) React(r Reaction) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reactions = append(a.reactions, r)
}

// Log sets the text that pods/log answers for a pod, or for one container as "pod/container".
func (a *API) Log(pod, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.logs[pod] = text
}

// Forward makes pods/portforward of a pod reach a TCP address.
func (a *API) Forward(pod, address string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forwards[pod] = address
}

// Requests returns what has been asked so far, discovery left out.
func (a *API) Requests() []Request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.requests)
}

// Writes returns the requests that changed something, or tried to.
func (a *API) Writes() []Request {
	return slices.DeleteFunc(a.Requests(), func(r Request) bool { return !r.Write() })
}

// Forget drops the record of requests.
func (a *API) Forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = nil
}

// Await returns when a request matched, or false after the time.
func (a *API) Await(within time.Duration, match func(Request) bool) bool {
	return a.AwaitAll(within, func(all []Request) bool { return slices.ContainsFunc(all, match) })
}

// AwaitAll returns when the requests so far match, or false after the time.
func (a *API) AwaitAll(within time.Duration, match func([]Request) bool) bool {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	for {
		a.mu.Lock()
		all, next := slices.Clone(a.requests), a.changed
		a.mu.Unlock()
		if match(all) {
			return true
		}
		select {
		case <-next:
		case <-deadline.C:
			return false
		}
	}
}

func (a *API) record(r Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests = append(a.requests, r)
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *API) refused(r Request) (int32, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, f := range a.refusals {
		if (f.verb == "*" || f.verb == r.Verb) && (f.resource == "*" || f.resource == r.Resource) {
			return f.code, true
		}
	}
	return 0, false
}

// store keeps an object under the lock. old is nil for a new one.
func (a *API) store(verb string, k kind, u, old *unstructured.Unstructured) {
	u.SetGroupVersionKind(k.gvk())
	settle(u)
	for _, r := range a.reactions {
		r(verb, u)
	}
	a.version++
	u.SetResourceVersion(fmt.Sprint(a.version))
	event := "MODIFIED"
	if old == nil {
		event = "ADDED"
		if u.GetUID() == "" {
			u.SetUID(uid(a.version))
		}
		if ts := u.GetCreationTimestamp(); ts.IsZero() {
			u.SetCreationTimestamp(metav1.Now())
		}
		if u.GetGeneration() == 0 {
			u.SetGeneration(1)
		}
	}
	a.objects[objectKey{k.group, k.resource, u.GetNamespace(), u.GetName()}] = u.DeepCopy()
	a.notify(event, k, u)
}

// Page is what a GET of the path on the port of a pod answers through the API server's
// proxy; a pod without any page cannot be reached.
func (a *API) Page(pod string, port int, path, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pages[fmt.Sprintf("http:%s:%d%s", pod, port, path)] = text
}

// Delay every answer, discovery too.
func (a *API) Delay(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.delay = d
}

// Together holds every request for the resource until n of them are under way at once: a
// client that asks one after the other gets no answer.
func (a *API) Together(resource string, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gates[resource] = &gate{missing: n, open: make(chan struct{})}
}

type gate struct {
	missing int
	open    chan struct{}
}

// pass waits at the gate of a resource, if it has one.
func (a *API) pass(ctx context.Context, resource string) {
	a.mu.Lock()
	g := a.gates[resource]
	if g == nil {
		a.mu.Unlock()
		return
	}
	if g.missing--; g.missing == 0 {
		close(g.open)
	}
	a.mu.Unlock()
	select {
	case <-g.open:
	case <-ctx.Done():
	}
}

// wait for the delay.
func (a *API) wait() {
	a.mu.Lock()
	d := a.delay
	a.mu.Unlock()
	if d > 0 {
		<-time.NewTimer(d).C
	}
}
