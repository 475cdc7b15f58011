package status

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubectl-mssql/kubectl-mssql/pkg/reasons"
)

// showTaints is the command that shows them.
const showTaints = "kubectl get nodes -o custom-columns=NAME:.metadata.name,TAINTS:.spec.taints"

// Taints are those of nodes that keep pods away; the scheduler counts them and names none.
type Taints struct {
	// Read is false when the nodes may not be listed.
	Read bool
	// Kept are sentences: "node1 and node2 have dedicated=db:NoSchedule".
	Kept []string
}

// namesNoTaint: the scheduler speaks of taints, and does not say which.
func namesNoTaint(text string) bool {
	return strings.Contains(text, "untolerated taint") && !strings.Contains(text, "taint {")
}

// readTaints asks for the nodes only where a pod waits because of their taints.
func (c *Collector) readTaints(ctx context.Context, pods []corev1.Pod) *Taints {
	i := slices.IndexFunc(pods, func(p corev1.Pod) bool { return namesNoTaint(waiting(&p)) })
	if i < 0 {
		return nil
	}
	var nodes corev1.NodeList
	if err := c.Client.List(ctx, &nodes); err != nil {
		return &Taints{}
	}
	return &Taints{Read: true, Kept: kept(nodes.Items, pods[i].Spec.Tolerations)}
}

// kept groups the nodes by the taints that are not tolerated.
func kept(nodes []corev1.Node, tolerations []corev1.Toleration) []string {
	var order []string
	names := map[string][]string{}
	for _, n := range nodes {
		var taints []string
		for _, x := range n.Spec.Taints {
			if x.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool { return tolerates(t, x) }) {
				taints = append(taints, x.ToString())
			}
		}
		if len(taints) == 0 {
			continue
		}
		key := reasons.Names(taints)
		if names[key] == nil {
			order = append(order, key)
		}
		names[key] = append(names[key], n.Name)
	}
	out := []string{}
	for _, key := range order {
		has := "has"
		if len(names[key]) > 1 {
			has = "have"
		}
		out = append(out, fmt.Sprintf("%s %s %s", reasons.Names(names[key]), has, key))
	}
	return out
}

// tolerates is the scheduler's rule for the two operators that everybody uses.
func tolerates(t corev1.Toleration, x corev1.Taint) bool {
	switch {
	case t.Effect != "" && t.Effect != x.Effect, t.Key != "" && t.Key != x.Key:
		return false
	case t.Operator == corev1.TolerationOpExists:
		return true
	}
	return (t.Operator == "" || t.Operator == corev1.TolerationOpEqual) && t.Value == x.Value
}

// say adds what is known of the taints to a problem that speaks of them.
func (x *Taints) say(text string, fix []string) (string, []string) {
	switch {
	case x == nil || !namesNoTaint(text):
	case !x.Read:
		fix = append(fix, showTaints)
	case len(x.Kept) > 0:
		text += ". Taints: " + strings.Join(x.Kept, "; ")
	}
	return text, fix
}
