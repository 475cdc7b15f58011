package clitest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"sort"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.wait()
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/version":
		answer(w, http.StatusOK, map[string]string{"major": "1", "minor": "36", "gitVersion": "v1.36.3", "platform": "linux/amd64"})
		return
	case r.URL.Path == "/readyz" || r.URL.Path == "/livez" || r.URL.Path == "/healthz":
		_, _ = io.WriteString(w, "ok") // a client that is gone reads nothing
		return
	case r.URL.Path == "/api":
		answer(w, http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIVersions"}, Versions: []string{"v1"}})
		return
	case r.URL.Path == "/apis":
		answer(w, http.StatusOK, a.groupList())
		return
	case len(parts) == 2 && parts[0] == "apis":
		for _, g := range a.groupList().Groups {
			if g.Name == parts[1] {
				answer(w, http.StatusOK, g)
				return
			}
		}
	case len(parts) == 2 && parts[0] == "api":
		answer(w, http.StatusOK, a.resourceList("", parts[1]))
		return
	case len(parts) == 3 && parts[0] == "apis":
		if list := a.resourceList(parts[1], parts[2]); list != nil {
			answer(w, http.StatusOK, list)
			return
		}
	case len(parts) >= 3 && (parts[0] == "api" || parts[0] == "apis"):
		a.serveResource(w, r, parts)
		return
	}
	http.NotFound(w, r)
}

// call is one request for a resource, understood.
type call struct {
	Request
	kind kind
	sub  string
}

func parse(r *http.Request, parts []string) (call, bool) {
	c := call{Request: Request{UserAgent: r.UserAgent()}}
	rest := parts[2:]
	if parts[0] == "apis" {
		c.Group, rest = parts[1], parts[3:]
	}
	if len(rest) >= 3 && rest[0] == "namespaces" {
		c.Namespace, rest = rest[1], rest[2:]
	}
	if len(rest) == 0 {
		return c, false
	}
	k, ok := resourceOf(c.Group, rest[0])
	if !ok {
		return c, false
	}
	c.kind, c.Resource = k, rest[0]
	if len(rest) > 1 {
		c.Name = rest[1]
	}
	if len(rest) > 2 {
		c.sub = rest[2]
		c.Resource += "/" + c.sub
	}
	q := r.URL.Query()
	c.DryRun = q.Get("dryRun") == "All"
	switch r.Method {
	case http.MethodGet:
		c.Verb = "get"
		if c.Name == "" {
			c.Verb = "list"
			if q.Get("watch") == "true" || q.Get("watch") == "1" {
				c.Verb = "watch"
			}
		}
	case http.MethodPost:
		c.Verb = "create"
	case http.MethodPut:
		c.Verb = "update"
	case http.MethodPatch:
		c.Verb = "patch"
	case http.MethodDelete:
		c.Verb = "delete"
	}
	return c, true
}

func (a *API) serveResource(w http.ResponseWriter, r *http.Request, parts []string) {
	c, ok := parse(r, parts)
	a.mu.Lock()
	absent := a.absent[c.kind.resource]
	a.mu.Unlock()
	if !ok || absent {
		http.NotFound(w, r)
		return
	}
	a.record(c.Request)
	a.pass(r.Context(), c.Resource)
	gr := schema.GroupResource{Group: c.Group, Resource: c.Resource}
	if code, no := a.refused(c.Request); no {
		switch code {
		case http.StatusForbidden:
			fail(w, apierrors.NewForbidden(gr, c.Name, fmt.Errorf("User \"test\" cannot %s resource %q in API group %q in the namespace %q", c.Verb, c.Resource, c.Group, c.Namespace)))
		case http.StatusConflict:
			fail(w, apierrors.NewConflict(gr, c.Name, fmt.Errorf("refused by the test")))
		default:
			fail(w, apierrors.NewInternalError(fmt.Errorf("refused by the test")))
		}
		return
	}
	switch {
	case c.sub == "log":
		a.serveLog(w, r, c)
	case c.sub == "proxy":
		a.servePage(w, r, c)
	case c.sub == "portforward":
		a.serveForward(w, r, c)
	case c.Verb == "get":
		a.mu.Lock()
		u := a.objects[objectKey{c.Group, c.kind.resource, c.Namespace, c.Name}]
		a.mu.Unlock()
		if u == nil {
			fail(w, apierrors.NewNotFound(gr, c.Name))
			return
		}
		answer(w, http.StatusOK, u.Object)
	case c.Verb == "list":
		a.serveList(w, r, c)
	case c.Verb == "watch":
		a.serveWatch(w, r, c)
	case c.Verb == "delete":
		a.serveDelete(w, c, gr)
	default:
		a.serveWrite(w, r, c, gr)
	}
}

func (a *API) selected(r *http.Request, c call) func(*unstructured.Unstructured) bool {
	q := r.URL.Query()
	ls, err := labels.Parse(q.Get("labelSelector"))
	if err != nil {
		ls = labels.Nothing()
	}
	fs, err := fields.ParseSelector(q.Get("fieldSelector"))
	if err != nil {
		fs = fields.Nothing()
	}
	return func(u *unstructured.Unstructured) bool {
		if c.Namespace != "" && u.GetNamespace() != c.Namespace || !ls.Matches(labels.Set(u.GetLabels())) {
			return false
		}
		for _, req := range fs.Requirements() {
			v, _, _ := unstructured.NestedFieldNoCopy(u.Object, strings.Split(req.Field, ".")...)
			text := ""
			if v != nil {
				text = fmt.Sprint(v)
			}
			if (text == req.Value) != (req.Operator == "=" || req.Operator == "==") {
				return false
			}
		}
		return true
	}
}

func (a *API) serveList(w http.ResponseWriter, r *http.Request, c call) {
	match := a.selected(r, c)
	a.mu.Lock()
	var found []*unstructured.Unstructured
	for k, u := range a.objects {
		if k.group == c.Group && k.resource == c.kind.resource && match(u) {
			found = append(found, u)
		}
	}
	version := a.version
	a.mu.Unlock()
	sort.Slice(found, func(i, j int) bool {
		return found[i].GetNamespace()+"/"+found[i].GetName() < found[j].GetNamespace()+"/"+found[j].GetName()
	})
	items := make([]any, 0, len(found))
	for _, u := range found {
		items = append(items, u.Object)
	}
	answer(w, http.StatusOK, map[string]any{
		"apiVersion": c.kind.gvk().GroupVersion().String(), "kind": c.kind.kind + "List",
		"metadata": map[string]any{"resourceVersion": fmt.Sprint(version)}, "items": items,
	})
}

func (a *API) serveDelete(w http.ResponseWriter, c call, gr schema.GroupResource) {
	a.mu.Lock()
	key := objectKey{c.Group, c.kind.resource, c.Namespace, c.Name}
	u := a.objects[key]
	if u != nil && !c.DryRun {
		delete(a.objects, key)
		a.version++
		a.notify("DELETED", c.kind, u)
	}
	a.mu.Unlock()
	if u == nil {
		fail(w, apierrors.NewNotFound(gr, c.Name))
		return
	}
	answer(w, http.StatusOK, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess})
}

func (a *API) serveWrite(w http.ResponseWriter, r *http.Request, c call, gr schema.GroupResource) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	sent, err := decode(r.Header.Get("Content-Type"), body)
	if err != nil {
		fail(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	if strings.HasSuffix(c.kind.resource, "reviews") {
		answer(w, http.StatusCreated, a.review(c, sent))
		return
	}
	sent.SetNamespace(c.Namespace)
	if c.Name == "" {
		c.Name = sent.GetName()
	}
	sent.SetName(c.Name)

	a.mu.Lock()
	old := a.objects[objectKey{c.Group, c.kind.resource, c.Namespace, c.Name}]
	apply := strings.HasPrefix(r.Header.Get("Content-Type"), "application/apply-patch")
	refusal := admit(c, gr, sent, old, apply)
	if refusal != nil {
		a.mu.Unlock()
		fail(w, refusal)
		return
	}
	next := sent
	if c.Verb == "patch" && old != nil {
		next = &unstructured.Unstructured{Object: merge(old.DeepCopy().Object, sent.Object)}
	}
	if old != nil {
		keep(next, old, c.sub)
	}
	code := http.StatusOK
	switch {
	case old != nil && reflect.DeepEqual(normal(next), normal(old)): // nothing changes, and no new version
		next = old
	case c.DryRun:
		next.SetGroupVersionKind(c.kind.gvk())
		next.SetResourceVersion("")
	default:
		if old == nil {
			code = http.StatusCreated
		}
		a.store(c.Verb, c.kind, next, old)
	}
	out := next.DeepCopy()
	a.mu.Unlock()
	answer(w, code, out.Object)
}

// admit refuses what the API server would: what is there already, what is not there,
// and what was changed since it was read.
func admit(c call, gr schema.GroupResource, sent, old *unstructured.Unstructured, apply bool) error {
	switch {
	case c.Verb == "create" && c.sub == "" && old != nil:
		return apierrors.NewAlreadyExists(gr, c.Name)
	case old == nil && (c.Verb == "update" || c.Verb == "patch" && !apply):
		return apierrors.NewNotFound(gr, c.Name)
	case old != nil && sent.GetResourceVersion() != "" && sent.GetResourceVersion() != old.GetResourceVersion():
		return apierrors.NewConflict(gr, c.Name, fmt.Errorf("the object has been modified"))
	}
	return nil
}

// keep carries over what a client cannot change, and of status and spec the one that
// the call is not about.
func keep(next, old *unstructured.Unstructured, sub string) {
	next.SetUID(old.GetUID())
	next.SetCreationTimestamp(old.GetCreationTimestamp())
	next.SetResourceVersion(old.GetResourceVersion())
	next.SetGeneration(old.GetGeneration())
	status, had := old.Object["status"]
	if sub == "status" {
		own := next.Object["status"]
		next.Object = old.DeepCopy().Object
		next.Object["status"] = own
		return
	}
	delete(next.Object, "status")
	if had {
		next.Object["status"] = status
	}
}

func normal(u *unstructured.Unstructured) any {
	var v any
	b, err := json.Marshal(u.Object)
	if err != nil || json.Unmarshal(b, &v) != nil {
		return nil
	}
	return v
}

// merge is RFC 7386: null removes, objects merge, everything else replaces.
func merge(into, patch map[string]any) map[string]any {
	if into == nil {
		into = map[string]any{}
	}
	for k, v := range patch {
		switch v := v.(type) {
		case nil:
			delete(into, k)
		case map[string]any:
			sub, _ := into[k].(map[string]any)
			into[k] = merge(sub, v)
		default:
			into[k] = v
		}
	}
	return into
}

func decode(contentType string, body []byte) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	switch {
	case strings.Contains(contentType, "protobuf"):
		obj, gvk, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			return nil, err
		}
		m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return nil, err
		}
		u.Object = m
		u.SetGroupVersionKind(*gvk)
	case strings.Contains(contentType, "json-patch"):
		return nil, fmt.Errorf("the fake API server takes no JSON patches")
	default:
		if err := yaml.Unmarshal(body, &u.Object); err != nil {
			return nil, err
		}
	}
	if u.Object == nil {
		u.Object = map[string]any{}
	}
	return u, nil
}

// review answers who one is, and what one may do.
func (a *API) review(c call, sent *unstructured.Unstructured) map[string]any {
	sent.SetGroupVersionKind(c.kind.gvk())
	switch c.kind.kind {
	case "SelfSubjectReview":
		sent.Object["status"] = map[string]any{"userInfo": map[string]any{"username": "jane@example.com"}}
	case "SelfSubjectAccessReview":
		get := func(f string) string {
			s, _, _ := unstructured.NestedString(sent.Object, "spec", "resourceAttributes", f)
			return s
		}
		resource := get("resource")
		if s := get("subresource"); s != "" {
			resource += "/" + s
		}
		_, no := a.refused(Request{Verb: get("verb"), Group: get("group"), Resource: resource})
		sent.Object["status"] = map[string]any{"allowed": !no}
	}
	return sent.Object
}

func (a *API) serveLog(w http.ResponseWriter, r *http.Request, c call) {
	a.mu.Lock()
	text, has := a.logs[c.Name+"/"+r.URL.Query().Get("container")]
	if !has {
		text, has = a.logs[c.Name]
	}
	a.mu.Unlock()
	if !has {
		fail(w, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, c.Name))
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(w, text) // a client that is gone reads nothing
}

func (a *API) servePage(w http.ResponseWriter, r *http.Request, c call) {
	_, path, _ := strings.Cut(r.URL.Path, "/proxy")
	a.mu.Lock()
	text, has := a.pages[c.Name+path]
	reachable := false
	for k := range a.pages {
		reachable = reachable || strings.HasPrefix(k, c.Name+"/")
	}
	a.mu.Unlock()
	switch {
	case !reachable:
		fail(w, apierrors.NewServiceUnavailable("error trying to reach service: dial tcp: connect: no route to host"))
	case !has:
		http.NotFound(w, r)
	default:
		_, _ = io.WriteString(w, text) // a client that is gone reads nothing
	}
}

func answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // a client that is gone reads nothing
}

func fail(w http.ResponseWriter, err error) {
	s, ok := err.(apierrors.APIStatus)
	if !ok {
		s = apierrors.NewInternalError(err)
	}
	st := s.Status()
	st.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	answer(w, int(st.Code), st)
}
