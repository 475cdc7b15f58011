package controller

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/controller/desired"
)

// scope is one pass over one resource: what it found, and when to look again.
type scope struct {
	server desired.Server
	obj    client.Object
	// config is the text of the instance manager's file, configDigest what of it needs a restart.
	config       string
	configDigest string
	// paused: nothing is changed; what is there is only looked at.
	paused bool
	// problems that a person must solve; fatal ones keep pods from being made.
	problems []Problem
	fatal    bool
	// pods and claims by replica, as found.
	pods   map[string]*corev1.Pod
	claims map[string]*corev1.PersistentVolumeClaim
	// growing and cannotGrow are claims whose size is below the spec's.
	growing    []string
	cannotGrow []Problem
	// volumeNotes say of a replica's volume why it does not grow, or for what it waits.
	volumeNotes map[string]string
	// outdated are replicas whose pod was made from older settings, or before the restart
	// that was ordered.
	outdated []string
	// restart is the order to restart that is not carried out yet, or nil; restarts are
	// the replicas that it still waits for.
	restart  *v1alpha1.Request
	restarts []string
	// restartRefused is why the order is not carried out, or nil.
	restartRefused *Problem
	// next is the replica whose pod is being replaced; waits is what keeps the next
	// outdated one from being replaced now.
	next, waits string
	// remount are replicas whose volume grows only when it is mounted anew.
	remount []string

	again time.Duration
}

func newScope(server desired.Server, obj client.Object) *scope {
	return &scope{
		server: server, obj: obj,
		paused: obj.GetAnnotations()[v1alpha1.AnnotationPaused] == "true",
		pods:   map[string]*corev1.Pod{}, claims: map[string]*corev1.PersistentVolumeClaim{}, volumeNotes: map[string]string{},
	}
}

// requeue asks for another pass after d at the latest.
func (s *scope) requeue(d time.Duration) {
	if d > 0 && (s.again == 0 || d < s.again) {
		s.again = d
	}
}

// problem notes what a person must solve.
func (s *scope) problem(p Problem) { s.problems = append(s.problems, p) }

// refuse notes a problem that keeps pods from being made.
func (s *scope) refuse(reason, message string) {
	s.fatal = true
	s.problem(Problem{Reason: reason, Message: message})
}

// grows notes a volume that is on its way to its new size.
func (s *scope) grows(replica, how string) {
	s.volumeNotes[replica] = how
	s.growing = append(s.growing, replica+" "+how)
}

// ready counts the pods that the kubelet calls ready.
func (s *scope) ready() int {
	n := 0
	for _, p := range s.pods {
		if podReady(p) {
			n++
		}
	}
	return n
}

func podReady(p *corev1.Pod) bool {
	if p == nil || p.DeletionTimestamp != nil {
		return false
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
