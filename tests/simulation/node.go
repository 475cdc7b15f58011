//go:build linux

package simulation

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/tsql"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
	simtsql "github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/tsql"
)

// node is one machine with a kubelet, the pod of one replica and its volume.
type node struct {
	c      *cluster
	index  int
	name   string // of pod and server
	host   *host
	config engine.Config
	disk   *engine.Disk
	pvc    string
	podUID string

	memoryMu sync.Mutex
	memory   []byte // of the manager, on the volume

	boot       int
	containers int
	startedAt  time.Time
	ended      *corev1.ContainerStateTerminated // of the newest container that ended
	server     *server
	manager    *manager
	gone       bool // it never comes back
	crashes    int  // in a row, for the kubelet's back-off

	volumes int
	swapped bool // the volume is another replica's
	pods    int  // that came after the first
	// terminating: the pod is deleted, and ends with its container.
	terminating bool
	// forced: a person has sent FORCE; outlaw: it has become PRIMARY by that, and nobody has confirmed it.
	forced, outlaw bool
	promoted       int  // order of its newest promotion, 0 never
	labelled       bool // its pod carries the primary's label
}

func (n *node) sqlStation() int     { return 10 + n.index }
func (n *node) managerStation() int { return 30 + n.index }

func (n *node) containerID() string { return fmt.Sprintf("containerd://%s-%d", n.name, n.containers) }
func (n *node) bootID() string      { return fmt.Sprintf("boot-%s-%d", n.name, n.boot) }

// alive tells whether the replica's container runs.
func (n *node) alive() bool { return n.manager != nil && !n.manager.dead }

// startContainer starts manager and server; mu is held.
func (n *node) startContainer() {
	if n.alive() || n.host.off || n.gone {
		return
	}
	w := n.c.w
	if n.terminating {
		n.nextPod()
	}
	n.containers++
	n.startedAt = n.host.local()
	fresh := n.disk.IsEmpty()
	m, err := n.startManager()
	if err != nil {
		n.c.violation("the manager of %s does not start: %v", n.name, err)
		return
	}
	n.syncPod()
	up := within(w.draw(counter{n.managerStation(), n.sqlStation(), kindOther}), time.Second, 4*time.Second)
	w.after(up, func() {
		m.arrive(func() {
			if m.dead {
				return
			}
			s := n.startServer()
			s.spawn(func(ctx context.Context) {
				if fresh {
					if err := n.firstStart(ctx, s); err != nil {
						w.say(s.name, "first start: %v", err)
					}
				}
				w.mu.Lock()
				defer w.mu.Unlock()
				m.arrive(m.loops.ServerAccepts)
			})
		})
	})
}

// Credentials that the world knows.
const (
	saPassword       = "Sa-Passw0rd"
	operatorLogin    = "kubectl_mssql"
	operatorPassword = "Op3rator;Passw0rd"
)

// firstStart makes the operator's login, as the manager does on a blank volume.
func (n *node) firstStart(ctx context.Context, s *server) error {
	session, err := simtsql.NewSession(s, engine.LoginRequest{User: "sa", Password: saPassword})
	if err != nil {
		return err
	}
	defer session.Close()
	for _, batch := range tsql.OperatorLogin(operatorLogin, operatorPassword, "M4ster;Key") {
		var r simtsql.Results
		if err := session.Run(ctx, simtsql.Request{SQL: batch}, &r); err != nil {
			return err
		}
		if err := r.Err(); err != nil {
			return err
		}
	}
	return nil
}

// kill ends the container's processes; mu is held.
func (n *node) kill(reason string, code int32) {
	if !n.alive() {
		return
	}
	n.c.w.fact(n.name, "container ends: %s", reason)
	if n.server != nil {
		n.server.end(true)
	}
	n.containerEnded("Error", code)
}

// containerEnded is the kubelet's side of it: status, and a new container after a while.
func (n *node) containerEnded(reason string, code int32) {
	w := n.c.w
	if !n.alive() {
		return
	}
	n.manager.kill()
	n.ended = &corev1.ContainerStateTerminated{
		ContainerID: n.containerID(), Reason: reason, ExitCode: code, StartedAt: metav1.NewTime(n.startedAt), FinishedAt: metav1.NewTime(n.host.local()),
	}
	n.syncPod()
	n.crashes++
	pause := min(time.Second<<min(n.crashes, 5), 20*time.Second)
	w.after(pause, n.startContainer)
	w.after(2*time.Minute, func() { n.crashes = max(0, n.crashes-1) })
}

// syncPod is the kubelet telling the API server, again and again until it is told; mu is held.
func (n *node) syncPod() {
	w := n.c.w
	w.after(within(w.draw(counter{n.sqlStation(), n.managerStation(), kindOther}), 20*time.Millisecond, 800*time.Millisecond), n.tellPod)
}

func (n *node) tellPod() {
	a := n.c.api
	switch {
	case n.host.off:
		return
	case a.away > 0 || !n.c.w.reaches(n.host, a.host, kindAPI) || n.manager != nil && n.manager.frozen:
		n.c.w.after(2*time.Second, n.tellPod)
		return
	}
	a.changePod(n.name, func(p *corev1.Pod) {
		s := corev1.ContainerStatus{Name: v1alpha1.ContainerName, RestartCount: int32(max(0, n.containers-1)), ContainerID: n.containerID()} //nolint:gosec // small
		if n.alive() {
			s.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(n.startedAt.Truncate(time.Second))}
			s.LastTerminationState.Terminated = n.ended
		} else {
			s.State.Terminated = n.ended
		}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{s}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: isReady(n.alive())}}
	})
}

// powerOff ends the machine without a word; mu is held.
func (n *node) powerOff() {
	if n.host.off {
		return
	}
	w := n.c.w
	w.fact(n.name, "machine is off")
	if n.server != nil {
		n.server.end(false)
	}
	if n.alive() {
		n.manager.kill()
	}
	n.host.off = true
	boot := n.boot
	w.after(40*time.Second, func() {
		if n.host.off && n.boot == boot {
			n.c.api.changeNode(n.name, func(o *corev1.Node) { o.Status.Conditions[0].Status = corev1.ConditionUnknown })
			n.c.api.changePod(n.name, func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
			})
		}
	})
}

// powerOn boots the machine; mu is held.
func (n *node) powerOn() {
	if !n.host.off || n.gone {
		return
	}
	w := n.c.w
	n.host.off = false
	n.boot++
	w.fact(n.name, "machine is on, boot %d", n.boot)
	n.ended = &corev1.ContainerStateTerminated{ContainerID: n.containerID(), Reason: "Unknown", ExitCode: 255, StartedAt: metav1.NewTime(n.startedAt), FinishedAt: metav1.NewTime(n.host.local())}
	var register func()
	register = func() {
		a := n.c.api
		if n.host.off {
			return
		}
		if a.away > 0 || !w.reaches(n.host, a.host, kindAPI) {
			w.after(2*time.Second, register)
			return
		}
		a.changeNode(n.name, func(o *corev1.Node) {
			o.Status.NodeInfo.BootID = n.bootID()
			o.Status.Conditions[0].Status = corev1.ConditionTrue
		})
	}
	w.after(3*time.Second, register)
	w.after(6*time.Second, n.startContainer)
}

// podObject is the pod before its first container.
func (n *node) podObject() *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: n.name, UID: types.UID(n.podUID), ResourceVersion: "1",
		Labels: map[string]string{v1alpha1.LabelAG: groupName},
	}}
	p.Spec.NodeName = n.name
	p.Spec.Containers = []corev1.Container{{Name: v1alpha1.ContainerName}}
	p.Status.Phase, p.Status.PodIP = corev1.PodRunning, fmt.Sprintf("10.0.0.%d", n.index+1)
	return p
}

func (n *node) claimObject() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.VolumeData + "-" + n.name, UID: types.UID(n.pvc)}}
}

// identity of the node's pod.
func (n *node) identity() instance.Identity {
	return instance.Identity{Pod: n.name, Namespace: namespace, UID: n.podUID, Node: n.name}
}
