package cluster

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Status is what a cluster consists of at one moment.
type Status struct {
	Mode       Mode
	Name       string
	Kubeconfig string
	// Up is false when there is no cluster.
	Up         bool
	Nodes      []NodeStatus
	Components []ComponentStatus
}

// NodeStatus is one node.
type NodeStatus struct {
	Name string
	// State is "running", "dead" or "frozen".
	State string
	// Ready is what Kubernetes thinks: "True", "False" or "Unknown".
	Ready   string
	Address string
	Cuts    []Cut
}

// ComponentStatus is one process.
type ComponentStatus struct {
	Name    string
	PID     int
	Running bool
}

// Status implements Cluster.
func (l *Local) Status(ctx context.Context) (Status, error) {
	out := Status{Mode: ModeLocal, Name: l.options.Name, Kubeconfig: l.Kubeconfig()}
	st, err := loadState(l.layout.state())
	if err != nil || st == nil {
		return out, err
	}
	out.Up = true
	for _, p := range st.Processes {
		out.Components = append(out.Components, ComponentStatus{Name: p.Name, PID: p.PID, Running: p.alive()})
	}
	slices.SortFunc(out.Components, func(a, b ComponentStatus) int { return strings.Compare(a.Name, b.Name) })
	ready := nodeConditions(ctx, l.Kubeconfig())
	for _, n := range st.Nodes {
		name := nodeName(n.Index)
		ns := NodeStatus{
			Name: name, State: "running", Ready: ready[name], Cuts: n.Cuts,
			Address: network{Octet: st.Octet}.nodeIP(n.Index),
		}
		if h, ok := st.process(holderName(name)); !ok || !h.alive() {
			ns.State = "dead"
		} else if n.Frozen {
			ns.State = "frozen"
		}
		if ns.Ready == "" {
			ns.Ready = "Unknown"
		}
		out.Nodes = append(out.Nodes, ns)
	}
	return out, nil
}

// nodeConditions asks the API server; without an answer the map is empty.
func nodeConditions(ctx context.Context, kubeconfig string) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out := map[string]string{}
	client, err := clientFor(kubeconfig)
	if err != nil {
		return out
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return out
	}
	for _, n := range nodes.Items {
		for _, c := range n.Status.Conditions {
			if c.Type == "Ready" {
				out[n.Name] = string(c.Status)
			}
		}
	}
	return out
}

// Write prints the status for people.
func (s Status) Write(w io.Writer) error {
	if !s.Up {
		_, err := fmt.Fprintf(w, "The %s cluster %s is not up.\n", s.Mode, s.Name)
		return err
	}
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintf(t, "KUBECONFIG=%s\n\nNODE\tSTATE\tREADY\tADDRESS\tCUT FROM\n", s.Kubeconfig)
	for _, n := range s.Nodes {
		var cuts []string
		for _, c := range n.Cuts {
			cuts = append(cuts, fmt.Sprintf("%s (%s)", c.From, c.Direction))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", n.Name, n.State, n.Ready, n.Address, strings.Join(cuts, ", "))
	}
	if len(s.Components) > 0 {
		fmt.Fprint(t, "\nCOMPONENT\tPID\tRUNNING\n")
	}
	for _, c := range s.Components {
		fmt.Fprintf(t, "%s\t%d\t%t\n", c.Name, c.PID, c.Running)
	}
	return t.Flush()
}
