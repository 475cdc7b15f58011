//go:build linux

package simulation

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/state"
)

// apiServer is a linearizable store of the objects that matter here.
type apiServer struct {
	*proc
	c        *cluster
	version  int64
	lease    *coordinationv1.Lease
	group    *v1alpha1.SQLServerAvailabilityGroup
	pods     map[string]*corev1.Pod
	claims   map[string]*corev1.PersistentVolumeClaim
	nodes    map[string]*corev1.Node
	podsSeen int64 // version of the newest change of a pod, claim or node
	leader   leaderRecord

	away int // outages in force: nothing is answered
	// Per thousand calls: executed late, answer late, answer lost.
	late, slow, lost uint64
}

// leaderRecord is the controllers' own lock.
type leaderRecord struct {
	holder  string
	version int64
}

func (a *apiServer) next() string {
	a.version++
	return strconv.FormatInt(a.version, 10)
}

// disturb draws what happens to one call; mu is held.
func (a *apiServer) disturb(from *proc) delay {
	if a.late+a.slow+a.lost == 0 {
		return delay{}
	}
	h := a.w.draw(counter{from.station, a.station, kindOther})
	n, d := h%1000, within(h>>10, 500*time.Millisecond, 12*time.Second)
	switch {
	case n < a.late:
		return delay{there: d}
	case n < a.late+a.slow:
		return delay{back: d}
	case n < a.late+a.slow+a.lost:
		return delay{lost: true}
	}
	return delay{}
}

// kube is the API server as one process sees it. Of client.Client it has what the product uses.
type kube struct {
	client.Client
	p *proc
	a *apiServer
	// cached reads of pods, claims and nodes, as of the last moment at which the watch worked.
	cached bool
	seen   *objects
}

type objects struct {
	version int64
	pods    map[string]*corev1.Pod
	claims  map[string]*corev1.PersistentVolumeClaim
	nodes   map[string]*corev1.Node
}

// ask runs do at the API server and returns what it gives. It takes mu.
func ask[T any](ctx context.Context, k *kube, do func(a *apiServer) (T, error)) (T, error) {
	a := k.a
	// A connection that has gone silent is given up as HTTP/2's ping does it: nothing waits for ever.
	if d, ok := ctx.Deadline(); !ok || time.Until(d) > deadConnection {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, deadConnection)
		defer cancel()
	}
	v, err := k.p.call(ctx, a.host, a.station, kindAPI, func() delay { return a.disturb(k.p) }, func() *proc { return a.proc }, func(back reply) {
		if a.away > 0 {
			return // requests hang until their own time-out
		}
		v, err := do(a)
		back(v, err)
	})
	t, _ := v.(T)
	if err != nil {
		if _, ok := err.(apierrors.APIStatus); ok { // made a line ago
			return t, err
		}
		return t, fmt.Errorf("ask the API server: %w", err)
	}
	return t, nil
}

// deadConnection is client-go's ReadIdleTimeout and PingTimeout together.
const deadConnection = 45 * time.Second

func gone(kind, name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: kind}, name)
}

func conflicting(kind, name string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: kind}, name, fmt.Errorf("the object has been modified"))
}

// Get implements client.Reader.
func (k *kube) Get(ctx context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	switch o := obj.(type) {
	case *coordinationv1.Lease:
		v, err := ask(ctx, k, func(a *apiServer) (*coordinationv1.Lease, error) {
			if a.lease == nil {
				return nil, gone("leases", key.Name)
			}
			return copyLease(a.lease), nil
		})
		if err == nil {
			*o = *v
		}
		return err
	case *v1alpha1.SQLServerAvailabilityGroup:
		v, err := ask(ctx, k, func(a *apiServer) (*v1alpha1.SQLServerAvailabilityGroup, error) {
			return a.group.DeepCopy(), nil
		})
		if err == nil {
			*o = *v
		}
		return err
	case *corev1.Pod:
		v := k.view().pods[key.Name]
		if v == nil {
			return gone("pods", key.Name)
		}
		*o = *v
		o.Labels = maps.Clone(v.Labels) // what the product changes; it reads the rest
		return nil
	case *corev1.PersistentVolumeClaim:
		v := k.view().claims[key.Name]
		if v == nil {
			return gone("persistentvolumeclaims", key.Name)
		}
		*o = *v
		return nil
	}
	return fmt.Errorf("the API server does not know %T", obj)
}

// view is the cache of a process with watches: up to date while the API server is in reach. It takes mu.
func (k *kube) view() *objects {
	w := k.p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	a := k.a
	if k.seen != nil && (k.seen.version == a.podsSeen || a.away > 0 || !w.reaches(a.host, k.p.host, kindAPI) || !w.reaches(k.p.host, a.host, kindAPI)) {
		return k.seen
	}
	o := &objects{version: a.podsSeen, pods: map[string]*corev1.Pod{}, claims: map[string]*corev1.PersistentVolumeClaim{}, nodes: map[string]*corev1.Node{}}
	for n, p := range a.pods {
		o.pods[n] = p
	}
	for n, p := range a.claims {
		o.claims[n] = p
	}
	for n, p := range a.nodes {
		o.nodes[n] = p
	}
	k.seen = o
	return o
}

// List implements client.Reader.
func (k *kube) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	l, ok := list.(*corev1.NodeList)
	if !ok {
		return fmt.Errorf("the API server does not list %T", list)
	}
	o := k.view()
	for _, n := range sortedKeys(o.nodes) {
		l.Items = append(l.Items, *o.nodes[n])
	}
	return nil
}

// Create implements client.Writer.
func (k *kube) Create(ctx context.Context, obj client.Object, _ ...client.CreateOption) error {
	l, ok := obj.(*coordinationv1.Lease)
	if !ok {
		return fmt.Errorf("the API server does not create %T", obj)
	}
	v, err := ask(ctx, k, func(a *apiServer) (*coordinationv1.Lease, error) {
		if a.lease != nil {
			return nil, apierrors.NewAlreadyExists(schema.GroupResource{Resource: "leases"}, l.Name)
		}
		return a.setLease(k.p, l), nil
	})
	if err == nil {
		*l = *v
	}
	return err
}

// Update implements client.Writer.
func (k *kube) Update(ctx context.Context, obj client.Object, _ ...client.UpdateOption) error {
	l, ok := obj.(*coordinationv1.Lease)
	if !ok {
		return fmt.Errorf("the API server does not update %T", obj)
	}
	sent := copyLease(l)
	v, err := ask(ctx, k, func(a *apiServer) (*coordinationv1.Lease, error) {
		switch {
		case a.lease == nil:
			return nil, gone("leases", sent.Name)
		case sent.ResourceVersion != a.lease.ResourceVersion && !(a.c.omit.Has("R1") && a.w.now() > quiet):
			return nil, conflicting("leases", sent.Name)
		}
		return a.setLease(k.p, sent), nil
	})
	if err == nil {
		*l = *v
	}
	return err
}

// setLease stores the Lease and tells who waits for its changes; mu is held.
func (a *apiServer) setLease(by *proc, l *coordinationv1.Lease) *coordinationv1.Lease {
	old := a.lease
	n := copyLease(l)
	n.ResourceVersion = a.next()
	if n.UID == "" {
		n.UID = "lease-uid"
	}
	a.lease = n
	if old == nil || old.Annotations[state.AnnotationAuthority] != n.Annotations[state.AnnotationAuthority] {
		var before ag.Authority
		if old != nil {
			before, _ = state.Decode(old, "")
		}
		after, _ := state.Decode(n, "")
		a.c.recordChanged(by, before, after)
	}
	return copyLease(n)
}

// copyLease copies what is ever changed in place: everything else in a Lease is replaced.
func copyLease(l *coordinationv1.Lease) *coordinationv1.Lease {
	n := *l
	n.Annotations, n.Labels = maps.Clone(l.Annotations), maps.Clone(l.Labels)
	return &n
}

// Patch implements client.Writer for what the product patches, a pod's labels: always with the version it read.
func (k *kube) Patch(ctx context.Context, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return fmt.Errorf("the API server does not patch %T", obj)
	}
	sent := p.DeepCopy()
	_, err := ask(ctx, k, func(a *apiServer) (*corev1.Pod, error) {
		now := a.pods[sent.Name]
		switch {
		case now == nil:
			return nil, gone("pods", sent.Name)
		case now.ResourceVersion != sent.ResourceVersion:
			return nil, conflicting("pods", sent.Name)
		}
		a.changePod(sent.Name, func(p *corev1.Pod) { p.Labels = sent.Labels })
		a.c.labelled()
		return nil, nil
	})
	return err
}

// changePod changes a pod; mu is held.
func (a *apiServer) changePod(name string, change func(*corev1.Pod)) {
	p := a.pods[name].DeepCopy()
	change(p)
	p.ResourceVersion = a.next()
	a.pods[name], a.podsSeen = p, a.version
}

func (a *apiServer) changeNode(name string, change func(*corev1.Node)) {
	n := a.nodes[name].DeepCopy()
	change(n)
	n.ResourceVersion = a.next()
	a.nodes[name], a.podsSeen = n, a.version
}

// Status implements client.StatusClient.
func (k *kube) Status() client.SubResourceWriter { return groupStatus{k: k} }

type groupStatus struct {
	client.SubResourceWriter
	k *kube
}

// Patch implements client.SubResourceWriter for the group's status: always with the version it read.
func (s groupStatus) Patch(ctx context.Context, obj client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	g, ok := obj.(*v1alpha1.SQLServerAvailabilityGroup)
	if !ok {
		return fmt.Errorf("the API server does not patch the status of %T", obj)
	}
	sent := g.DeepCopy()
	_, err := ask(ctx, s.k, func(a *apiServer) (*v1alpha1.SQLServerAvailabilityGroup, error) {
		if sent.ResourceVersion != a.group.ResourceVersion {
			return nil, conflicting("sqlserveravailabilitygroups", sent.Name)
		}
		n := a.group.DeepCopy()
		n.Status, n.ResourceVersion = sent.Status, a.next()
		a.group = n
		return nil, nil
	})
	return err
}

// annotate sets an annotation of the group; mu is held.
func (a *apiServer) annotate(name, text string) {
	n := a.group.DeepCopy()
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	n.Annotations[name], n.ResourceVersion = text, a.next()
	a.group = n
}

func isReady(ready bool) corev1.ConditionStatus {
	if ready {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}

func nodeObject(name, boot string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.NodeInfo.BootID = boot
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return n
}
