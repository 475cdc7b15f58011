package controller

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// path is a group in step whose primary has the label, and a cluster whose slice leads where the test says.
type path struct {
	t       *testing.T
	facts   groupFacts
	r       *GroupReconciler
	cli     client.Client
	refuse  error // what a list of slices answers
	lists   int
	patches int
}

func newPath(t *testing.T, leads ...string) *path {
	t.Helper()
	p := &path{t: t, facts: threeInStep()}
	g := p.facts.Group
	pod := p.facts.Scope.pods["shop-0"]
	pod.UID, pod.Labels = "p0", map[string]string{v1alpha1.LabelRole: v1alpha1.RolePrimary}
	scheme, err := NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: g.ListenerName(),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(g, v1alpha1.GroupVersion.WithKind("SQLServerAvailabilityGroup"))}}}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: "s", Labels: map[string]string{discoveryv1.LabelServiceName: g.ListenerName()}}}
	slice.AddressType = discoveryv1.AddressTypeIPv4
	for _, name := range leads {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.0.0.1"}, TargetRef: &corev1.ObjectReference{Kind: "Pod", Name: name}})
	}
	p.cli = fake.NewClientBuilder().WithScheme(scheme).WithObjects(service, slice).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			p.lists++
			if p.refuse != nil {
				return p.refuse
			}
			return c.List(ctx, list, o...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, o ...client.PatchOption) error {
			p.patches++
			return c.Patch(ctx, obj, patch, o...)
		},
	}).Build()
	p.r, _ = groupReconciler(p.cli, p.cli, nil)
	return p
}

// look is one pass after d, with the scope of a new one.
func (p *path) look(d time.Duration) (again time.Duration) {
	p.t.Helper()
	p.facts.Now = p.facts.Now.Add(d)
	p.facts.Scope.again = 0
	p.r.followPrimary(p.t.Context(), p.facts)
	return p.facts.Scope.again
}

func (p *path) nudgedAt() string {
	p.t.Helper()
	var s corev1.Service
	if err := p.cli.Get(p.t.Context(), types.NamespacedName{Namespace: p.facts.Group.Namespace, Name: p.facts.Group.ListenerName()}, &s); err != nil {
		p.t.Fatal(err)
	}
	return s.Annotations[v1alpha1.AnnotationNudged]
}

func TestAServiceThatHasFollowedIsLookedAtOnce(t *testing.T) {
	t.Parallel()
	p := newPath(t, "shop-0")
	for range 5 {
		if again := p.look(10 * time.Second); again != 0 {
			t.Errorf("looked at again after %s", again)
		}
	}
	if p.lists != 1 || p.patches != 0 {
		t.Errorf("%d reads and %d writes, want 1 and 0", p.lists, p.patches)
	}
}

func TestAServiceThatDoesNotFollowIsNudgedUntilItDoes(t *testing.T) {
	t.Parallel()
	for name, leads := range map[string][]string{"nowhere": nil, "to the old primary": {"shop-1"}, "to both": {"shop-0", "shop-1"}} {
		t.Run("it leads "+name, func(t *testing.T) {
			t.Parallel()
			p := newPath(t, leads...)
			for range 3 { // 0, 2 and 4 s after the label
				if again := p.look(lookAtPath); again != lookAtPath {
					t.Fatalf("looked at again after %s, want %s", again, lookAtPath)
				}
			}
			if p.patches != 0 {
				t.Fatalf("nudged before %s", pathPatience)
			}
			p.look(lookAtPath)
			first := p.nudgedAt()
			if p.patches != 1 || first == "" {
				t.Fatalf("%d nudges after 6 s, annotation %q", p.patches, first)
			}
			p.look(lookAtPath)
			p.look(lookAtPath)
			if p.patches != 1 {
				t.Errorf("nudged again within %s", pathPatience)
			}
			p.look(lookAtPath)
			if p.patches != 2 || p.nudgedAt() == first {
				t.Errorf("%d nudges, the annotation is %q as before", p.patches, p.nudgedAt())
			}
		})
	}
}

func TestANewPrimaryIsFollowedAnew(t *testing.T) {
	t.Parallel()
	p := newPath(t, "shop-0")
	p.look(0)
	p.facts.Scope.pods["shop-0"].UID = "another"
	p.look(time.Second)
	if p.lists != 2 {
		t.Errorf("%d reads, want one for each pod that was primary", p.lists)
	}
}

func TestNobodyIsFollowedWhoIsNotLabelledOrDoesNotWrite(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(f *groupFacts){
		"not labelled yet": func(f *groupFacts) { f.Scope.pods["shop-0"].Labels = nil },
		"not PRIMARY":      func(f *groupFacts) { f.Report.Snapshot.Replicas[0].Local.Role = "RESOLVING" },
		"paused":           func(f *groupFacts) { f.Scope.paused = true },
		"not looked at":    func(f *groupFacts) { f.Report = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPath(t)
			change(&p.facts)
			if again := p.look(time.Minute); again != 0 || p.lists != 0 {
				t.Errorf("looked %d times, and again after %s", p.lists, again)
			}
		})
	}
}

// An installation from before the right was asked for, and a Service that a user has made under our name.
func TestWhatMayNotBeSeenOrTouchedIsLeftAloneUntilTheNextPrimary(t *testing.T) {
	t.Parallel()
	t.Run("the slices may not be read", func(t *testing.T) {
		t.Parallel()
		p := newPath(t)
		p.refuse = apierrors.NewForbidden(discoveryv1.Resource("endpointslices"), "", nil)
		for range 5 {
			if again := p.look(pathPatience); again != 0 {
				t.Errorf("looked at again after %s", again)
			}
		}
		if p.lists != 1 || p.patches != 0 {
			t.Errorf("%d reads and %d writes, want 1 and 0", p.lists, p.patches)
		}
	})
	t.Run("the Service is somebody else's", func(t *testing.T) {
		t.Parallel()
		p := newPath(t)
		p.facts.Group.UID = "another group"
		for range 5 {
			p.look(pathPatience)
		}
		if p.lists != 0 || p.patches != 0 {
			t.Errorf("%d reads and %d writes, want none", p.lists, p.patches)
		}
	})
	t.Run("a failed read is tried again", func(t *testing.T) {
		t.Parallel()
		p := newPath(t)
		p.refuse = apierrors.NewServiceUnavailable("starting")
		if again := p.look(0); again != lookAtPath {
			t.Errorf("looked at again after %s, want %s", again, lookAtPath)
		}
	})
}
