package controller

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

const (
	// lookAtPath is how often the write Service's slices are looked at until they follow.
	lookAtPath = 2 * time.Second
	// pathPatience is how long they may take by themselves, and between two nudges.
	pathPatience = 5 * time.Second
)

// writePaths makes the write Service follow a new primary. Kubernetes' EndpointSlice
// controller doubles its pause after every failure, up to minutes, and after an outage of the
// API server it fails for a while because its cache is old: the primary is up and labelled, and
// the Service leads nowhere. Any change of the Service makes it try again at once, so the
// Service is nudged until the slices lead to the primary. From then on until the next
// primary nothing is read and nothing written.
type writePaths struct {
	mu    sync.Mutex
	known map[types.UID]writePath // by group
}

// writePath is one group's: since when its primary has the label, when it was nudged last,
// and whether the slices have followed. A controller that has just come looks once.
type writePath struct {
	primary  types.UID // the pod
	since    time.Time
	nudged   time.Time
	followed bool
}

// nudge tells whether the slices have had their time.
func (p writePath) nudge(now time.Time) bool {
	last := p.since
	if p.nudged.After(last) {
		last = p.nudged
	}
	return now.Sub(last) >= pathPatience
}

// followPrimary is one look. A failure is no error of the pass: the next look comes soon.
func (r *GroupReconciler) followPrimary(ctx context.Context, f groupFacts) {
	pod := labelledPrimary(f)
	if pod == nil || f.Scope.paused {
		return
	}
	p := r.paths.of(f.Group.UID, pod.UID, f.Now)
	if p.followed {
		return
	}
	defer func() {
		r.paths.keep(f.Group.UID, p)
		if !p.followed {
			f.Scope.requeue(lookAtPath)
		}
	}()
	service := &corev1.Service{}
	if err := r.Get(ctx, client.ObjectKey{Namespace: f.Group.Namespace, Name: f.Group.ListenerName()}, service); err != nil {
		return
	}
	if !metav1.IsControlledBy(service, f.Group) {
		p.followed = true // somebody else's, which phase network reports: not ours to touch
		return
	}
	leads, err := r.writesLeadTo(ctx, f.Group)
	switch {
	case apierrors.IsForbidden(err):
		p.followed = true // an installation without this right is not asked every two seconds
		return
	case err != nil:
		return
	case slices.Equal(leads, []string{pod.Name}):
		p.followed = true
		return
	case !p.nudge(f.Now):
		return
	}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, v1alpha1.AnnotationNudged, f.Now.UTC().Format(time.RFC3339))
	if err := r.Patch(ctx, service, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(fieldManager)); err == nil {
		p.nudged = f.Now
	}
}

// labelledPrimary is the pod of the holder, if it carries the label that the Service follows.
func labelledPrimary(f groupFacts) *corev1.Pod {
	if w, _ := f.writable(); w != writable {
		return nil
	}
	pod := f.Scope.pods[f.holder()]
	if pod == nil || pod.Labels[v1alpha1.LabelRole] != v1alpha1.RolePrimary {
		return nil
	}
	return pod
}

// writesLeadTo are the pods behind the write Service, as they are now.
func (r *GroupReconciler) writesLeadTo(ctx context.Context, g *v1alpha1.SQLServerAvailabilityGroup) ([]string, error) {
	var list discoveryv1.EndpointSliceList
	if err := r.Live.List(ctx, &list, client.InNamespace(g.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: g.ListenerName()}); err != nil {
		return nil, err
	}
	var pods []string
	for _, s := range list.Items {
		for _, e := range s.Endpoints {
			if e.TargetRef != nil && !slices.Contains(pods, e.TargetRef.Name) {
				pods = append(pods, e.TargetRef.Name)
			}
		}
	}
	return pods, nil
}

func (w *writePaths) of(group, primary types.UID, now time.Time) writePath {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p, ok := w.known[group]; ok && p.primary == primary {
		return p
	}
	return writePath{primary: primary, since: now}
}

func (w *writePaths) keep(group types.UID, p writePath) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known == nil {
		w.known = map[types.UID]writePath{}
	}
	w.known[group] = p
}

func (w *writePaths) forget(group types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.known, group)
}
