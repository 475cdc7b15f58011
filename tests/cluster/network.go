package cluster

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// maxNodes bounds a cluster: routes to this many nodes are made in advance, so
// that a node can come and go without any change on the others.
const maxNodes = 16

// network is the address plan of one cluster: a /16 cut into the nodes' network
// (.0), one /24 of pods a node (.1 to .16) and the Services (.240 to .255).
type network struct {
	// Name is the cluster's.
	Name string
	// Octet is the X of 10.X.0.0/16.
	Octet int
}

func (n network) cidr() string        { return fmt.Sprintf("10.%d.0.0/16", n.Octet) }
func (n network) bridge() string      { return n.Name + "br" }
func (n network) gateway() string     { return fmt.Sprintf("10.%d.0.1", n.Octet) }
func (n network) serviceCIDR() string { return fmt.Sprintf("10.%d.240.0/20", n.Octet) }
func (n network) apiServiceIP() string {
	return fmt.Sprintf("10.%d.240.1", n.Octet)
}
func (n network) dnsServiceIP() string  { return fmt.Sprintf("10.%d.240.10", n.Octet) }
func (n network) nodeIP(i int) string   { return fmt.Sprintf("10.%d.0.%d", n.Octet, 10+i) }
func (n network) podCIDR(i int) string  { return fmt.Sprintf("10.%d.%d.0/24", n.Octet, i) }
func (n network) nodeVeth(i int) string { return fmt.Sprintf("%s-n%d", n.Name, i) }
func (n network) podsCIDR() string      { return fmt.Sprintf("10.%d.0.0/17", n.Octet) }
func nodeName(i int) string             { return fmt.Sprintf("node%d", i) }
func nodeIndex(name string) (int, error) {
	var i int
	if _, err := fmt.Sscanf(name, "node%d", &i); err != nil || nodeName(i) != name || i < 1 || i > maxNodes {
		return 0, fmt.Errorf("%q is no node's name: want node1 to node%d", name, maxNodes)
	}
	return i, nil
}

// peerRoutes are "ip -batch" lines that lead to the pods of every possible node
// but the one with the index self; 0 stands for the machine.
func (n network) peerRoutes(self int) string {
	var b strings.Builder
	for i := 1; i <= maxNodes; i++ {
		if i == self {
			continue
		}
		fmt.Fprintf(&b, "route replace %s via %s\n", n.podCIDR(i), n.nodeIP(i))
	}
	if self == 0 {
		// Services seen from the machine: node1's kube-proxy translates and, since
		// the machine's address is no pod's, masquerades.
		fmt.Fprintf(&b, "route replace %s via %s\n", n.serviceCIDR(), n.nodeIP(1))
	}
	return b.String()
}

// prefix is the whole /16.
func (n network) prefix() netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n.Octet), 0, 0}), 16)
}

// freeOctet returns the first /16 of 10.210 to 10.249 that none of the given
// networks overlaps.
func freeOctet(taken []netip.Prefix) (int, error) {
	for x := 210; x < 250; x++ {
		if !slices.ContainsFunc(taken, (network{Octet: x}).prefix().Overlaps) {
			return x, nil
		}
	}
	return 0, fmt.Errorf("every network from 10.210.0.0/16 to 10.249.0.0/16 overlaps one of this machine's: take one away")
}

// machineNetworks are the networks of this machine's interfaces.
func machineNetworks() ([]netip.Prefix, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("list this machine's addresses: %w", err)
	}
	var out []netip.Prefix
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			out = append(out, p.Masked())
		}
	}
	return out, nil
}

// freePort returns preferred when nothing listens on it and it is not taken, else
// any free port.
func freePort(preferred int, taken []int) (int, error) {
	for attempt := range 20 {
		port := 0
		if attempt == 0 {
			port = preferred
		}
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err != nil {
			continue
		}
		port = l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			return 0, fmt.Errorf("close the probe of port %d: %w", port, err)
		}
		if !slices.Contains(taken, port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("find a free port instead of %d: none to be had", preferred)
}
