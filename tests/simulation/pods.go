//go:build linux

package simulation

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/lease"
	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/engine"
)

// Pods that are told to end, and what a person does to volumes and to the custom resource.

// grace is terminationGracePeriodSeconds of the pods.
const grace = 60 * time.Second

// deletePod is a deletion with grace: the kubelet sends SIGTERM as soon as it hears of it, and
// SIGKILL when the grace is over. mu is held.
func (n *node) deletePod() {
	a := n.c.api
	if n.terminating || a.away > 0 {
		return
	}
	n.terminating = true
	a.changePod(n.name, func(p *corev1.Pod) { now := metav1.NewTime(time.Now()); p.DeletionTimestamp = &now })
	uid, w := n.podUID, n.c.w
	w.after(within(w.draw(counter{n.sqlStation(), n.managerStation(), kindOther}), 20*time.Millisecond, 800*time.Millisecond), func() { n.hearOfDeletion(uid) })
}

func (n *node) hearOfDeletion(uid string) {
	w := n.c.w
	if !n.terminating || n.podUID != uid || n.host.off { // at boot the pod is not started again
		return
	}
	if n.c.api.away > 0 || !w.reaches(n.host, n.c.api.host, kindAPI) {
		w.after(2*time.Second, func() { n.hearOfDeletion(uid) })
		return
	}
	if !n.alive() {
		return // the next container is that of the next pod
	}
	m := n.manager
	w.fact(n.name, "SIGTERM")
	next := m.loops.Stop()
	m.spawn(func(ctx context.Context) {
		told := ""
		for ctx.Err() == nil {
			step, why := next()
			if why != told {
				w.say(m.name, "stop: %s: %s", step, why)
				told = why
			}
			if step != lease.StopWait {
				break
			}
			if !m.sleep(200 * time.Millisecond) {
				return
			}
		}
		if !m.sleep(within(mix(w.seed, uint64(n.containers)), 500*time.Millisecond, 3*time.Second)) { //nolint:gosec // a draw
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		m.arrive(func() {
			if !m.dead {
				w.fact(n.name, "container ends: stopped")
				if n.server != nil {
					n.server.end(true)
				}
				n.containerEnded("Completed", 0)
			}
		})
	})
	w.after(grace, func() {
		if n.manager == m {
			n.kill("the grace period is over", 137)
		}
	})
}

// nextPod takes the place of a pod that has ended; mu is held.
func (n *node) nextPod() {
	a := n.c.api
	n.terminating = false
	n.pods++
	n.podUID, n.ended = fmt.Sprintf("pod-%s-%d", n.name, n.pods), nil
	p := n.podObject()
	p.ResourceVersion = a.next()
	a.pods[n.name], a.podsSeen = p, a.version
	n.labelled = false
	n.c.w.fact(n.name, "has a new pod")
}

// restoreVolume puts an earlier state back on a replica's volume; mu is held.
func (n *node) restoreVolume(s snapshot) {
	if !n.alive() || n == n.c.primary() || s.disk == nil {
		return
	}
	if len(s.disk.Groups) == 0 || len(n.disk.Groups) == 0 || s.disk.Groups[0].Config.Sequence == n.disk.Groups[0].Config.Sequence {
		return // of the same configuration: nothing tells that it was restored, and the only other copy may have been on it
	}
	n.kill("its volume is restored", 137)
	n.c.check.discarded(n, holds(s.disk))
	n.disk = s.disk.Clone()
	n.recall(s.memory)
	n.volumes++
}

// swapVolumes gives each of two pods the other's volume under its own claim, as a person does who
// restores volumes by hand and mixes them up; done once more, it is put right. mu is held.
func (n *node) swapVolumes(o *node) {
	n.swapped, o.swapped = !n.swapped, !o.swapped
	n.kill("its volume is swapped", 137)
	o.kill("its volume is swapped", 137)
	n.disk, o.disk = o.disk, n.disk
	mine := n.remembered()
	n.recall(o.remembered())
	o.recall(mine)
}

// snapshot is what a volume held at an earlier time.
type snapshot struct {
	disk   *engine.Disk
	memory []byte
}

// recreate is the custom resource deleted, with its pods, and made anew under the same name on the
// same volumes. mu is held.
func (c *cluster) recreate() {
	a := c.api
	if a.away > 0 {
		return
	}
	c.generation++
	g := c.topology.resource()
	c.faults.plan.resource(g)
	g.UID = types.UID(fmt.Sprintf("%s-%d", groupUID, c.generation))
	g.ResourceVersion = a.next()
	a.group = g
	c.config = instance.ConfigForGroup(g, 0)
	for _, n := range c.nodes {
		n.terminating = true
		n.kill("its pod is deleted", 137)
	}
	c.w.fact("person", "%s is deleted and made anew", instance.KindAvailabilityGroup)
}
