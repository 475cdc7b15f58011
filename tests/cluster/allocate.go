package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
)

// allocate chooses the address range and the ports of a new cluster and records
// them. Clusters beside it count before they use theirs: two that start at the
// same time must not choose the same.
func (l *Local) allocate(ctx context.Context, boot string) (*state, error) {
	dir := filepath.Dir(l.layout.root)
	unlock, err := lockDir(ctx, dir, func() {})
	if err != nil {
		return nil, err
	}
	defer unlock()
	networks, err := machineNetworks()
	if err != nil {
		return nil, err
	}
	others, taken, err := neighbours(dir)
	if err != nil {
		return nil, err
	}
	st := &state{Version: stateVersion, BootID: boot}
	if st.Octet, err = freeOctet(append(networks, others...)); err != nil {
		return nil, err
	}
	preferred := ports{
		API: 16443, EtcdClient: 12379, EtcdPeer: 12380, ControllerManager: 16257, Scheduler: 16259, DNS: 16053, DNSReady: 16081,
	}
	for i, want := range preferred.all() {
		port := st.Ports.all()[i]
		if *port, err = freePort(*want, taken); err != nil {
			return nil, err
		}
		taken = append(taken, *port)
	}
	return st, st.save(l.layout.state())
}

// all are the ports in a fixed order.
func (p *ports) all() []*int {
	return []*int{&p.API, &p.EtcdClient, &p.EtcdPeer, &p.ControllerManager, &p.Scheduler, &p.DNS, &p.DNSReady}
}

// neighbours reads what the clusters below dir have recorded.
func neighbours(dir string) ([]netip.Prefix, []int, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", "state.json"))
	if err != nil {
		return nil, nil, fmt.Errorf("look for other clusters: %w", err)
	}
	var networks []netip.Prefix
	var taken []int
	for _, f := range files {
		st, err := loadState(f)
		if err != nil || st == nil {
			// A cluster with a state that cannot be read is only good for down.
			continue
		}
		networks = append(networks, network{Octet: st.Octet}.prefix())
		for _, p := range st.Ports.all() {
			taken = append(taken, *p)
		}
	}
	return networks, taken, nil
}
