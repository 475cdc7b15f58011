package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"
)

// startNodes starts what is missing of the first count nodes and of those that
// were added later. A node that a test killed on purpose comes back too.
func (s *session) startNodes(ctx context.Context, count int) error {
	for i := 1; i <= count; i++ {
		if s.state.node(i) == nil {
			s.state.Nodes = append(s.state.Nodes, nodeState{Index: i})
		}
	}
	for i := range s.state.Nodes {
		s.state.Nodes[i].Killed = false
	}
	if err := s.save(); err != nil {
		return err
	}
	errs := make([]error, len(s.state.Nodes))
	var wg sync.WaitGroup
	for i, n := range s.state.Nodes {
		wg.Go(func() {
			if !n.Frozen {
				errs[i] = s.startNode(ctx, n.Index)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (s *session) addNode(ctx context.Context, index int) error {
	s.state.Nodes = append(s.state.Nodes, nodeState{Index: index})
	if err := s.save(); err != nil {
		return err
	}
	return s.startNode(ctx, index)
}

// startNode makes or completes one node.
func (s *session) startNode(ctx context.Context, index int) error {
	name := nodeName(index)
	holder, fresh, err := s.ensureNamespaces(ctx, name, index)
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	if err := s.writeNodeConfig(name, index); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	if fresh {
		s.say("starting %s (%s)", name, s.plan.network.nodeIP(index))
	}
	daemon := func(component string, argv []string) error {
		return s.ensureRunning(command{
			name: component + "/" + name, argv: argv, inside: holder.PID,
			cgroups: s.cgroups.dirs(s.plan.cgroup(name) + "/daemons"),
		})
	}
	if err := daemon("containerd", s.plan.containerdArgs(name)); err != nil {
		return err
	}
	err = waitFor(ctx, time.Minute, "containerd on "+name, s.gone("containerd/"+name), func(ctx context.Context) error {
		_, err := run(ctx, "", append(enterNamespaces(holder.PID), "ctr", "version")...)
		return err
	})
	if err != nil {
		return err
	}
	if err := s.importImages(ctx, name, holder.PID); err != nil {
		return err
	}
	return errors.Join(
		daemon("csi-driver", s.plan.csiNodeArgs(name)),
		daemon("kubelet", s.plan.kubeletArgs(name, index)),
		daemon("kube-proxy", s.plan.kubeProxyArgs(name)),
	)
}

// holderName is the process that holds a node's namespaces.
func holderName(node string) string { return "namespaces/" + node }

// ensureNamespaces makes the node's cgroup, namespaces and link. fresh tells
// that they are new, as after a boot.
func (s *session) ensureNamespaces(ctx context.Context, name string, index int) (holder process, fresh bool, err error) {
	s.mu.Lock()
	holder, ok := s.state.process(holderName(name))
	s.mu.Unlock()
	if ok && holder.alive() {
		if _, err := os.Stat(s.layout.node(name, "linked")); err == nil {
			return holder, false, nil
		}
	}
	// What is left of a node without namespaces, or with half of them, has no use.
	if err := s.stopNode(ctx, index); err != nil {
		return holder, false, err
	}
	daemons, err := s.cgroups.create(s.plan.cgroup(name) + "/daemons")
	if err != nil {
		return holder, false, err
	}
	for _, d := range []string{"lib", "log", "cni"} {
		if err := os.MkdirAll(s.layout.node(name, d), 0o755); err != nil {
			return holder, false, fmt.Errorf("make the node's directories: %w", err)
		}
	}
	err = s.ensureRunning(command{
		name: holderName(name), cgroups: daemons,
		argv: []string{"unshare", "--net", "--mount", "--propagation", "private", "--", "/bin/sh", "-c", nodeInit, "node-init", s.layout.node(name)},
	})
	if err != nil {
		return holder, false, err
	}
	s.mu.Lock()
	holder, _ = s.state.process(holderName(name))
	s.mu.Unlock()
	err = waitFor(ctx, 30*time.Second, "the namespaces of "+name, s.gone(holderName(name)), func(context.Context) error {
		_, err := os.Stat(s.layout.node(name, "init"))
		return err
	})
	if err != nil {
		return holder, false, err
	}
	if err := s.link(ctx, holder.PID, index); err != nil {
		return holder, false, err
	}
	if err := writeFileAtomic(s.layout.node(name, "linked"), nil, 0o644); err != nil {
		return holder, false, err
	}
	if n := s.state.node(index); n != nil && len(n.Cuts) > 0 {
		return holder, true, s.applyCuts(ctx, n)
	}
	return holder, true, nil
}

// link joins the node to the bridge.
func (s *session) link(ctx context.Context, pid, index int) error {
	n := s.plan.network
	veth := n.nodeVeth(index)
	if err := deleteLink(ctx, veth); err != nil {
		return err
	}
	outer := fmt.Sprintf("link add %s type veth peer name eth0 netns %d\nlink set %s master %s up\n", veth, pid, veth, n.bridge())
	if _, err := run(ctx, outer, "ip", "-batch", "-"); err != nil {
		return fmt.Errorf("make the link of %s: %w", nodeName(index), err)
	}
	inner := fmt.Sprintf("addr add %s/24 dev eth0\nlink set eth0 up\nroute add default via %s\n%s", n.nodeIP(index), n.gateway(), n.peerRoutes(index))
	if _, err := run(ctx, inner, append(enterNamespaces(pid), "ip", "-batch", "-")...); err != nil {
		return fmt.Errorf("set up the network of %s: %w", nodeName(index), err)
	}
	return nil
}

// applyCuts puts the node's recorded cuts in force.
func (s *session) applyCuts(ctx context.Context, n *nodeState) error {
	name := nodeName(n.Index)
	holder, ok := s.state.process(holderName(name))
	if !ok || !holder.alive() {
		return fmt.Errorf("change the network of %s: it does not run; start it first", name)
	}
	if _, err := run(ctx, s.plan.faultRules(n.Cuts), append(enterNamespaces(holder.PID), "nft", "-f", "-")...); err != nil {
		return fmt.Errorf("change the network of %s: %w", name, err)
	}
	word := "up"
	if linkDown(n.Cuts) {
		word = "down"
	}
	if _, err := run(ctx, "", "ip", "link", "set", s.plan.network.nodeVeth(n.Index), word); err != nil {
		return fmt.Errorf("change the link of %s: %w", name, err)
	}
	return nil
}

// stopNode ends every process of the node and removes what a power cut takes:
// namespaces with their mounts, and the link. Its disks stay.
func (s *session) stopNode(ctx context.Context, index int) error {
	name := nodeName(index)
	if err := s.cgroups.kill(ctx, s.plan.cgroup(name)); err != nil {
		return err
	}
	if err := deleteLink(ctx, s.plan.network.nodeVeth(index)); err != nil {
		return err
	}
	for _, mark := range []string{"init", "linked"} {
		if err := os.Remove(s.layout.node(name, mark)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("stop %s: %w", name, err)
		}
	}
	// The kubelet of the next boot would find full cgroups' names of dead pods.
	if err := s.cgroups.remove(ctx, s.plan.cgroup(name)); err != nil {
		return err
	}
	s.mu.Lock()
	s.state.forgetNode(name)
	s.mu.Unlock()
	return s.save()
}

func (s *session) writeNodeConfig(name string, index int) error {
	if err := s.pki.issue(name, "system:node:"+name, []string{"system:nodes"}, name, s.plan.network.nodeIP(index)); err != nil {
		return err
	}
	if err := s.pki.kubeconfig(s.layout.config(name), name, s.plan.apiURL()); err != nil {
		return err
	}
	kubelet, err := s.plan.kubeletConfig(name, index)
	if err != nil {
		return err
	}
	proxy, err := s.plan.kubeProxyConfig(name)
	if err != nil {
		return err
	}
	cni, err := s.plan.cniConfig(index)
	if err != nil {
		return err
	}
	snapshotter, err := snapshotterFor(s.layout.root)
	if err != nil {
		return err
	}
	for _, f := range [][2]string{
		{"kubelet.yaml", kubelet}, {"kube-proxy.yaml", proxy}, {"cni/10-pods.conflist", cni},
		{"containerd.toml", s.plan.containerdConfig(name, snapshotter)},
	} {
		if err := writeFileAtomic(s.layout.node(name, f[0]), []byte(f[1]), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// snapshotterFor chooses overlayfs, but not on top of another overlay, where
// the kernel refuses it.
func snapshotterFor(dir string) (string, error) {
	const overlayMagic = 0x794c7630
	var fsStat syscall.Statfs_t
	if err := syscall.Statfs(dir, &fsStat); err != nil {
		return "", fmt.Errorf("look at the file system of %s: %w", dir, err)
	}
	if fsStat.Type == overlayMagic {
		return "native", nil
	}
	return "overlayfs", nil
}
