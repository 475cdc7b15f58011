package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Peer values of a Cut that are no node.
const (
	// PeerAll is everything outside of the node.
	PeerAll = "all"
	// PeerAPI is the API server, and its calls to the node's kubelet.
	PeerAPI = "api"
)

// Direction says which packets of a Cut are lost, seen from the node.
type Direction string

const (
	// Both loses packets to and from the node.
	Both Direction = "both"
	// Out loses what the node and its pods send.
	Out Direction = "out"
	// In loses what is sent to the node and its pods.
	In Direction = "in"
)

// Cut is one loss of network between a node and a peer. Packets vanish, no
// connection is reset.
type Cut struct {
	// From is a node's name, PeerAPI or PeerAll; PeerAll when empty.
	From string `json:"from"`
	// Direction is Both when empty.
	Direction Direction `json:"direction"`
}

func (c Cut) normalise(node string) (Cut, error) {
	if c.From == "" {
		c.From = PeerAll
	}
	if c.Direction == "" {
		c.Direction = Both
	}
	if !slices.Contains([]Direction{Both, In, Out}, c.Direction) {
		return c, fmt.Errorf("direction %q: want %s, %s or %s", c.Direction, Both, In, Out)
	}
	if c.From == PeerAll || c.From == PeerAPI {
		return c, nil
	}
	if c.From == node {
		return c, fmt.Errorf("%s cannot be cut from itself", node)
	}
	if _, err := nodeIndex(c.From); err != nil {
		return c, fmt.Errorf("cut from %q: want a node, %s or %s", c.From, PeerAPI, PeerAll)
	}
	return c, nil
}

// faultTable is the nft table inside a node's network namespace.
const faultTable = "kubectl_mssql_faults"

// faultRules renders an nft script that puts exactly these cuts in force. The
// chains come before connection tracking and after address translation, so that
// a lost packet leaves no trace and pods behind a Service are met too.
func (p plan) faultRules(cuts []Cut) string {
	var in, out []string
	for _, c := range cuts {
		var matchIn, matchOut []string
		switch c.From {
		case PeerAll:
			matchIn, matchOut = []string{""}, []string{""}
		case PeerAPI:
			gw, api := p.network.gateway(), p.ports.API
			matchIn = []string{fmt.Sprintf("ip saddr %s tcp sport %d ", gw, api), fmt.Sprintf("ip saddr %s tcp dport 10250 ", gw)}
			matchOut = []string{fmt.Sprintf("ip daddr %s tcp dport %d ", gw, api), fmt.Sprintf("ip daddr %s tcp sport 10250 ", gw)}
		default:
			i, err := nodeIndex(c.From)
			if err != nil {
				continue
			}
			set := fmt.Sprintf("{ %s, %s } ", p.network.nodeIP(i), p.network.podCIDR(i))
			matchIn, matchOut = []string{"ip saddr " + set}, []string{"ip daddr " + set}
		}
		if c.Direction != Out {
			in = append(in, matchIn...)
		}
		if c.Direction != In {
			out = append(out, matchOut...)
		}
	}
	var b strings.Builder
	// Adding first makes the deletion work when there is no such table.
	fmt.Fprintf(&b, "add table inet %s\ndelete table inet %s\n", faultTable, faultTable)
	if len(in)+len(out) == 0 {
		return b.String()
	}
	fmt.Fprintf(&b, "table inet %s {\n\tchain in {\n\t\ttype filter hook prerouting priority -450; policy accept;\n", faultTable)
	for _, m := range in {
		fmt.Fprintf(&b, "\t\tiifname \"eth0\" %sdrop\n", m)
	}
	b.WriteString("\t}\n\tchain out {\n\t\ttype filter hook postrouting priority 350; policy accept;\n")
	for _, m := range out {
		fmt.Fprintf(&b, "\t\toifname \"eth0\" %sdrop\n", m)
	}
	b.WriteString("\t}\n}\n")
	return b.String()
}

// linkDown tells whether the cuts amount to a pulled cable.
func linkDown(cuts []Cut) bool {
	return slices.ContainsFunc(cuts, func(c Cut) bool { return c.From == PeerAll && c.Direction == Both })
}

// Kill implements Faults.
func (l *Local) Kill(ctx context.Context, node string) error {
	return l.change(ctx, node, func(s *session, n *nodeState) error {
		n.Killed, n.Frozen = true, false
		if err := s.save(); err != nil {
			return err
		}
		if err := s.stopNode(ctx, n.Index); err != nil {
			return err
		}
		l.say("%s is dead", node)
		return nil
	})
}

// Start implements Faults.
func (l *Local) Start(ctx context.Context, node string) error {
	return l.change(ctx, node, func(s *session, n *nodeState) error {
		n.Killed = false
		if err := s.save(); err != nil {
			return err
		}
		since := time.Now()
		if err := s.startNode(ctx, n.Index); err != nil {
			return err
		}
		if len(n.Cuts) > 0 || n.Frozen {
			l.say("%s runs, but is still cut off or frozen", node)
			return nil
		}
		return s.waitNodesReady(ctx, since, node)
	})
}

// Freeze implements Faults.
func (l *Local) Freeze(ctx context.Context, node string) error {
	return l.change(ctx, node, func(s *session, n *nodeState) error {
		if n.Killed {
			return fmt.Errorf("freeze %s: it is dead; start it first", node)
		}
		n.Frozen = true
		if err := s.save(); err != nil {
			return err
		}
		path := s.plan.cgroup(node)
		if err := s.cgroups.freeze(path, true); err != nil {
			return err
		}
		err := waitFor(ctx, 10*time.Second, "the freezing of "+node, nil, func(context.Context) error {
			frozen, err := s.cgroups.frozen(path)
			if err == nil && !frozen {
				err = errors.New("some processes still run")
			}
			return err
		})
		if err != nil {
			return err
		}
		l.say("%s is frozen", node)
		return nil
	})
}

// Thaw implements Faults.
func (l *Local) Thaw(ctx context.Context, node string) error {
	return l.change(ctx, node, func(s *session, n *nodeState) error {
		if err := s.cgroups.freeze(s.plan.cgroup(node), false); err != nil {
			return err
		}
		n.Frozen = false
		l.say("%s runs again", node)
		return s.save()
	})
}

// Partition implements Faults. Cuts add up until Heal.
func (l *Local) Partition(ctx context.Context, node string, cut Cut) error {
	cut, err := cut.normalise(node)
	if err != nil {
		return fmt.Errorf("partition %s: %w", node, err)
	}
	return l.change(ctx, node, func(s *session, n *nodeState) error {
		if n.Killed {
			return fmt.Errorf("partition %s: it is dead; start it first", node)
		}
		if !slices.Contains(n.Cuts, cut) {
			n.Cuts = append(n.Cuts, cut)
		}
		if err := s.save(); err != nil {
			return err
		}
		if err := s.applyCuts(ctx, n); err != nil {
			return err
		}
		l.say("%s is cut from %s (%s)", node, cut.From, cut.Direction)
		return nil
	})
}

// Heal implements Faults.
func (l *Local) Heal(ctx context.Context, node string) error {
	return l.change(ctx, node, func(s *session, n *nodeState) error {
		n.Cuts = nil
		if err := s.save(); err != nil {
			return err
		}
		if n.Killed {
			return nil
		}
		if err := s.applyCuts(ctx, n); err != nil {
			return err
		}
		l.say("%s has its network back", node)
		return nil
	})
}

// StopAPI implements Faults.
func (l *Local) StopAPI(ctx context.Context) error {
	return l.locked(ctx, func(s *session) error {
		p, ok := s.state.process(apiServer)
		if !ok {
			return errors.New("stop the API server: it does not run")
		}
		if err := p.kill(); err != nil {
			return err
		}
		l.say("the API server is down")
		return waitFor(ctx, 10*time.Second, "the end of the API server", nil, func(context.Context) error {
			if p.alive() {
				return errors.New("it still runs")
			}
			return nil
		})
	})
}

// StartAPI implements Faults.
func (l *Local) StartAPI(ctx context.Context) error {
	return l.locked(ctx, func(s *session) error {
		if err := s.startAPIServer(ctx); err != nil {
			return err
		}
		l.say("the API server is up")
		return nil
	})
}

// AddNode implements Faults.
func (l *Local) AddNode(ctx context.Context) (string, error) {
	var name string
	err := l.locked(ctx, func(s *session) error {
		index := 1
		for s.state.node(index) != nil {
			index++
		}
		if index > maxNodes {
			return fmt.Errorf("add a node: the cluster has %d already, which is the most", maxNodes)
		}
		name = nodeName(index)
		if err := s.addNode(ctx, index); err != nil {
			return err
		}
		return s.waitNodesReady(ctx, time.Time{}, name)
	})
	return name, err
}

// change runs f on the state of one node of a running cluster.
func (l *Local) change(ctx context.Context, node string, f func(*session, *nodeState) error) error {
	index, err := nodeIndex(node)
	if err != nil {
		return err
	}
	return l.locked(ctx, func(s *session) error {
		n := s.state.node(index)
		if n == nil {
			return fmt.Errorf("there is no %s in the cluster %s", node, l.options.Name)
		}
		return f(s, n)
	})
}
