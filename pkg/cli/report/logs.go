package report

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// largestLog of one container run, in bytes.
const largestLog = 32 << 20

// logs of all containers of the servers, the present run and the one before.
func (g *gatherer) logs(ctx context.Context) { g.podLogs(ctx, "logs", g.facts.pods) }

func (g *gatherer) podLogs(ctx context.Context, folder string, pods []corev1.Pod) {
	var wg sync.WaitGroup
	limit := make(chan struct{}, 6)
	for i := range pods {
		p := &pods[i]
		restarted := map[string]bool{}
		started := map[string]bool{}
		for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses, p.Status.EphemeralContainerStatuses} {
			for _, s := range list {
				restarted[s.Name] = s.RestartCount > 0 || s.LastTerminationState.Terminated != nil
				started[s.Name] = s.State.Waiting == nil || restarted[s.Name]
			}
		}
		for _, name := range containers(p) {
			if seen, known := started[name]; known && !seen {
				continue // it has not begun: there is no log
			}
			for _, previous := range []bool{false, true} {
				if previous && !restarted[name] {
					continue
				}
				wg.Go(func() {
					limit <- struct{}{}
					defer func() { <-limit }()
					g.podLog(ctx, folder, p.Namespace, p.Name, name, previous)
				})
			}
		}
	}
	wg.Wait()
}

func containers(p *corev1.Pod) []string {
	var names []string
	for _, c := range p.Spec.InitContainers {
		names = append(names, c.Name)
	}
	for _, c := range p.Spec.Containers {
		names = append(names, c.Name)
	}
	for _, c := range p.Spec.EphemeralContainers {
		names = append(names, c.Name)
	}
	return names
}

func (g *gatherer) podLog(ctx context.Context, folder, namespace, pod, container string, previous bool) {
	path, what := fmt.Sprintf("%s/%s/%s.log", folder, pod, container), "log of "+pod+"/"+container
	if previous {
		path, what = fmt.Sprintf("%s/%s/%s.previous.log", folder, pod, container), "previous "+what
	}
	opts := &corev1.PodLogOptions{Container: container, Previous: previous, Timestamps: true, LimitBytes: ptr.To(int64(largestLog))}
	if g.o.Since > 0 {
		opts.SinceSeconds = ptr.To(int64(max(g.o.Since/time.Second, 1)))
	}
	r, err := g.clientset.CoreV1().Pods(namespace).GetLogs(pod, opts).Stream(ctx)
	if err != nil {
		g.archive.Fail(what, err)
		return
	}
	defer func() { _ = r.Close() }()
	text, err := io.ReadAll(io.LimitReader(r, largestLog))
	if err != nil {
		g.archive.Fail(what+" (cut off)", err)
	}
	g.archive.Add(path, "", text)
}

// operator: what runs of every operator that watches the namespace, with its logs and events.
func (g *gatherer) operator(ctx context.Context) {
	for _, i := range g.facts.operators {
		folder := "operator/" + i.Namespace
		m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&i.Deployment)
		if err != nil {
			g.archive.Fail(folder, err)
		} else {
			u := &unstructured.Unstructured{Object: m}
			u.SetAPIVersion("apps/v1")
			u.SetKind("Deployment")
			g.addObjects(folder+"/deployment.yaml", "the operator", []*unstructured.Unstructured{u})
		}
		lease := &unstructured.Unstructured{}
		lease.SetAPIVersion("coordination.k8s.io/v1")
		lease.SetKind("Lease")
		if err := g.client.Get(ctx, client.ObjectKey{Namespace: i.Namespace, Name: manifests.Name}, lease); err != nil {
			g.archive.Fail("the leader's lock in "+i.Namespace, err)
		} else {
			g.addObjects(folder+"/leader.yaml", "which controller leads", []*unstructured.Unstructured{lease})
		}
		part := client.MatchingLabels{manifests.LabelPart: manifests.LabelPartValue}
		if list, err := g.list(ctx, "v1", "ConfigMap", client.InNamespace(i.Namespace), part); err != nil {
			g.archive.Fail("settings of the operator in "+i.Namespace, err)
		} else {
			g.addObjects(folder+"/settings.yaml", "with what options it was installed", list)
		}
		list, err := g.list(ctx, "v1", "Pod", client.InNamespace(i.Namespace), part)
		if err != nil {
			g.archive.Fail("pods of the operator in "+i.Namespace, err)
			continue
		}
		g.addObjects(folder+"/pods.yaml", "the controllers' pods", list)
		var pods []corev1.Pod
		for _, u := range list {
			var p corev1.Pod
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &p); err != nil {
				g.archive.Fail(manifests.Describe(u), err)
				continue
			}
			pods = append(pods, p)
		}
		g.podLogs(ctx, folder+"/logs", pods)
		g.eventsOf(ctx, i.Namespace, folder+"/events.txt", "events about the operator", func(name string) bool { return strings.HasPrefix(name, manifests.Name) })
	}
}
