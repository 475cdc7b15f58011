package report

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/exit"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/installation"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/manifests"
)

// facts are what the summary is made of.
type facts struct {
	group     *api.SQLServerAvailabilityGroup
	instance  *api.SQLServerInstance
	pods      []corev1.Pod
	operators []installation.Installation
}

// replicas are the names of the pods that the resource wants.
func (f *facts) replicas() []string {
	switch {
	case f.group != nil:
		return f.group.ReplicaNames()
	case f.instance != nil:
		return []string{f.instance.ReplicaName()}
	}
	var names []string
	for _, p := range f.pods {
		names = append(names, p.Name)
	}
	return names
}

func (f *facts) spec() *api.ServerSpec {
	switch {
	case f.group != nil:
		return &f.group.Spec.ServerSpec
	case f.instance != nil:
		return &f.instance.Spec.ServerSpec
	}
	return nil
}

// gather reads everything. It fails only when there is nothing of that name.
func (g *gatherer) gather(ctx context.Context) error {
	if err := g.resource(ctx); err != nil {
		return err
	}
	operators, err := installation.Find(ctx, g.client)
	if err != nil {
		g.archive.Fail("operators", err)
	}
	g.facts.operators = slices.DeleteFunc(operators, func(i installation.Installation) bool { return !i.Watches(g.namespace) })
	// Secrets first: what they hold must be known before any text goes in.
	g.secrets(ctx)
	var pods corev1.PodList
	if err := g.client.List(ctx, &pods, client.InNamespace(g.namespace), g.labels()); err != nil {
		g.archive.Fail("pods", err)
	}
	g.facts.pods = pods.Items
	g.parts(ctx)
	return nil
}

// grace is how long a part may go on after the time is up.
const grace = 5 * time.Second

// parts runs all parts side by side. One that does not heed the end of its time is left
// behind: a report with a gap is worth more than none.
func (g *gatherer) parts(ctx context.Context) {
	all := []struct {
		name string
		run  func(context.Context)
	}{
		{"objects", g.objects}, {"cluster", g.cluster}, {"events", g.events}, {"logs", g.logs},
		{"operator", g.operator}, {"instance managers", g.managers}, {"servers", g.servers}, {"status and checks", g.overview},
	}
	finished := make(chan int, len(all))
	running := map[int]string{}
	for i, part := range all {
		running[i] = part.name
		go func() {
			part.run(ctx)
			finished <- i
		}()
	}
	var late <-chan time.Time
	ended := ctx.Done()
	for len(running) > 0 {
		select {
		case i := <-finished:
			delete(running, i)
		case <-ended:
			ended, late = nil, g.o.Factory.Clock().After(grace)
		case <-late:
			for _, name := range running {
				g.archive.Fail(name, errors.New("still under way when the time was up"))
			}
			return
		}
	}
}

// resource reads the group or instance.
func (g *gatherer) resource(ctx context.Context) error {
	key := client.ObjectKey{Namespace: g.namespace, Name: g.o.Name}
	var group api.SQLServerAvailabilityGroup
	groupErr := g.client.Get(ctx, key, &group)
	if groupErr == nil {
		g.facts.group = &group
		return nil
	}
	var instance api.SQLServerInstance
	instanceErr := g.client.Get(ctx, key, &instance)
	if instanceErr == nil {
		g.facts.instance = &instance
		return nil
	}
	if manifests.NoSuchKind(groupErr) && manifests.NoSuchKind(instanceErr) {
		return exit.Errorf(exit.NotFound, g.o.Factory.Name()+" status lists what is there",
			"there is no availability group or instance %s in namespace %s", g.o.Name, g.namespace)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("read %s: %w", g.o.Name, errors.Join(groupErr, instanceErr))
	}
	for _, err := range []error{groupErr, instanceErr} {
		if !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
			return fmt.Errorf("read %s: %w", g.o.Name, err)
		}
		if apierrors.IsForbidden(err) {
			g.archive.Fail("the resource itself", err)
		}
	}
	return nil
}

func (g *gatherer) labels() client.MatchingLabels {
	return client.MatchingLabels{api.LabelInstance: g.o.Name, api.LabelManagedBy: api.ManagedBy}
}

// largestSecret value that is looked for in texts; larger ones are archives of other tools.
const largestSecret = 64 << 10

// secrets teaches the redactor what Secrets hold, and notes which there are, with the
// names and sizes of their keys. Their contents go nowhere.
func (g *gatherer) secrets(ctx context.Context) {
	namespaces := []string{g.namespace}
	for _, i := range g.facts.operators {
		if !slices.Contains(namespaces, i.Namespace) {
			namespaces = append(namespaces, i.Namespace)
		}
	}
	var b strings.Builder
	for _, ns := range namespaces {
		var list corev1.SecretList
		if err := g.client.List(ctx, &list, client.InNamespace(ns)); err != nil {
			g.archive.Fail("Secrets of namespace "+ns+" (their values are taken out of texts by their looks only)", err)
			continue
		}
		for i := range list.Items {
			s := &list.Items[i]
			for key, value := range s.Data {
				if !g.dull(key, value) {
					g.archive.redact.Learn(value)
				}
			}
			if ns == g.namespace && (s.Labels[api.LabelInstance] == g.o.Name || g.refersTo(s.Name)) {
				fmt.Fprintf(&b, "%s (%s)\n", s.Name, s.Type)
				keys := make([]string, 0, len(s.Data))
				for k := range s.Data {
					keys = append(keys, k)
				}
				slices.Sort(keys)
				for _, k := range keys {
					fmt.Fprintf(&b, "  %s  %d bytes\n", k, len(s.Data[k]))
				}
			}
		}
	}
	if b.Len() > 0 {
		g.archive.Add("resources/secrets.txt", "names and sizes of Secrets; never their contents", []byte(b.String()))
	}
}

// dull values are no secret and stand in every text: names of users, namespaces, hosts.
func (g *gatherer) dull(key string, value []byte) bool {
	if len(value) > largestSecret || string(value) == g.o.Name || string(value) == g.namespace {
		return true
	}
	return slices.Contains([]string{"namespace", "username", "user", "host", "hostname", "port", "database", "dbname", "type", "provider"}, strings.ToLower(key))
}

func (g *gatherer) refersTo(secret string) bool {
	spec := g.facts.spec()
	if spec == nil {
		return false
	}
	if name, _ := spec.SAPasswordSecret(g.o.Name); name == secret {
		return true
	}
	return slices.ContainsFunc(spec.ImagePullSecrets, func(r corev1.LocalObjectReference) bool { return r.Name == secret })
}

// list reads objects of one kind as they are.
func (g *gatherer) list(ctx context.Context, apiVersion, kind string, opts ...client.ListOption) ([]*unstructured.Unstructured, error) {
	l := &unstructured.UnstructuredList{}
	l.SetAPIVersion(apiVersion)
	l.SetKind(kind + "List")
	if err := g.client.List(ctx, l, opts...); err != nil {
		return nil, err
	}
	out := make([]*unstructured.Unstructured, len(l.Items))
	for i := range l.Items {
		out[i] = &l.Items[i]
		out[i].SetAPIVersion(apiVersion)
		out[i].SetKind(kind)
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out, nil
}
