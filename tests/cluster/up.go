package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kubectl-mssql/kubectl-mssql/tests/mssqlsim/image"
)

// Build fills the cache with everything that Up needs to run and nothing more.
func (l *Local) Build(ctx context.Context) error {
	if err := ensurePackages(ctx, l.say); err != nil {
		return err
	}
	return l.binaries().ensureAll(ctx)
}

// Up implements Cluster.
func (l *Local) Up(ctx context.Context, nodes int) error {
	if nodes < 1 || nodes > maxNodes {
		return fmt.Errorf("%d nodes: want 1 to %d", nodes, maxNodes)
	}
	unlock, err := l.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := l.Build(ctx); err != nil {
		return err
	}
	free, err := freeDisk(l.options.Root)
	if err != nil {
		return err
	}
	if err := enoughDisk(l.options.Root, free); err != nil {
		return err
	}
	s, err := l.openOrCreate(ctx)
	if err != nil {
		return err
	}
	steps := []func(context.Context) error{
		s.prepare, s.startEtcd, s.startAPIServer, s.startControllers,
		func(ctx context.Context) error { return s.startNodes(ctx, nodes) },
		s.startAddons, s.applyObjects, s.waitUsable,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	l.say("the cluster %s is up: export KUBECONFIG=%s", l.options.Name, l.Kubeconfig())
	if !haveFile("kubectl") {
		l.say("there is a kubectl in %s", filepath.Dir(l.Kubectl()))
	}
	return nil
}

// openOrCreate reads the state of an earlier Up, whole or not, or makes a new one.
func (l *Local) openOrCreate(ctx context.Context) (*session, error) {
	boot, err := bootID()
	if err != nil {
		return nil, err
	}
	st, err := loadState(l.layout.state())
	if err != nil {
		return nil, err
	}
	switch {
	case st == nil:
		// What a crashed run left without a state would only be in the way.
		if _, err := os.Stat(l.options.Root); err == nil {
			if err := l.down(ctx); err != nil {
				return nil, err
			}
		}
		if st, err = l.allocate(ctx, boot); err != nil {
			return nil, err
		}
	case st.BootID != boot:
		// After a reboot everything but the files has gone: start the same cluster again.
		st.BootID, st.Processes = boot, nil
		for i := range st.Nodes {
			st.Nodes[i].Frozen, st.Nodes[i].Killed, st.Nodes[i].Cuts = false, false, nil
		}
	}
	if err := st.save(l.layout.state()); err != nil {
		return nil, err
	}
	return l.session(st)
}

// prepare makes the bridge, the certificates, the kubeconfigs and the small
// programs of our own.
func (s *session) prepare(ctx context.Context) error {
	n := s.plan.network
	if data, err := os.ReadFile("/proc/sys/net/bridge/bridge-nf-call-iptables"); err == nil && strings.TrimSpace(string(data)) == "1" {
		s.say("note: this machine filters bridges (br_netfilter); should nodes not reach each other, its FORWARD chain drops their packets: allow %s there, or use CLUSTER=kind", n.cidr())
	}
	if !linkExists(n.bridge()) {
		s.say("making the bridge %s with %s", n.bridge(), n.cidr())
		batch := fmt.Sprintf("link add %s type bridge\nlink set %s up\naddr add %s/24 dev %s\n", n.bridge(), n.bridge(), n.gateway(), n.bridge())
		if _, err := run(ctx, batch, "ip", "-batch", "-"); err != nil {
			return fmt.Errorf("make the bridge: %w", err)
		}
	}
	if _, err := run(ctx, n.peerRoutes(0), "ip", "-batch", "-"); err != nil {
		return fmt.Errorf("route to the pods: %w", err)
	}
	if _, err := s.cgroups.create(s.plan.cgroup("control")); err != nil {
		return err
	}
	if err := s.writeIdentities(); err != nil {
		return err
	}
	for _, f := range [][2]string{{"Corefile", s.plan.corefile()}, {"resolv.conf", ""}} {
		if err := writeFileAtomic(s.layout.etc(f[0]), []byte(f[1]), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) writeIdentities() error {
	gw := s.plan.network.gateway()
	err := errors.Join(
		s.pki.signingKey("service-account"),
		s.pki.issue("apiserver", "kube-apiserver", nil, gw, "127.0.0.1", "localhost", s.plan.network.apiServiceIP(),
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"),
		s.pki.issue("apiserver-kubelet-client", "kube-apiserver-kubelet-client", []string{"system:masters"}),
		s.pki.issue("admin", "kubectl-mssql:admin", []string{"system:masters"}),
	)
	if err != nil {
		return err
	}
	if err := s.pki.kubeconfig(s.layout.kubeconfig(), "admin", s.plan.hostURL()); err != nil {
		return err
	}
	for _, i := range identities() {
		if err := s.pki.issue(i.name, i.user, i.groups); err != nil {
			return err
		}
		if err := s.pki.kubeconfig(s.layout.config(i.name), i.name, s.plan.apiURL()); err != nil {
			return err
		}
	}
	return nil
}

// ensureRunning starts a component unless it runs, and records it.
func (s *session) ensureRunning(c command) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.state.process(c.name); ok && p.alive() {
		return nil
	}
	c.log = s.layout.log(c.name)
	p, err := spawn(c)
	if err != nil {
		return err
	}
	s.state.put(p)
	return s.state.save(s.layout.state())
}

// control starts a component of the control plane.
func (s *session) control(name string, argv []string) error {
	return s.ensureRunning(command{name: name, argv: argv, cgroups: s.cgroups.dirs(s.plan.cgroup("control"))})
}

// gone is a waitFor condition: the error says that the component has ended.
func (s *session) gone(name string) func() error {
	return func() error {
		s.mu.Lock()
		p, ok := s.state.process(name)
		s.mu.Unlock()
		if ok && p.alive() {
			return nil
		}
		return fmt.Errorf("%s ended; the end of its log:\n%s", name, logTail(s.layout.log(name)))
	}
}

func (s *session) startEtcd(ctx context.Context) error {
	if err := s.control("etcd", s.plan.etcdArgs()); err != nil {
		return err
	}
	return waitFor(ctx, time.Minute, "etcd", s.gone("etcd"), func(ctx context.Context) error {
		return getOK(ctx, fmt.Sprintf("http://127.0.0.1:%d/health", s.plan.ports.EtcdClient))
	})
}

// apiServer is the component's name.
const apiServer = "kube-apiserver"

func (s *session) startAPIServer(ctx context.Context) error {
	s.say("starting the control plane")
	if err := s.control(apiServer, s.plan.apiserverArgs()); err != nil {
		return err
	}
	// While it starts: the small programs.
	if err := s.buildOwn(ctx); err != nil {
		return err
	}
	client, err := s.client()
	if err != nil {
		return err
	}
	return waitFor(ctx, 3*time.Minute, "the API server", s.gone(apiServer), func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		return client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// ownPackage is where the programs of our own are.
const ownPackage = "github.com/kubectl-mssql/kubectl-mssql/tests/cluster/cmd/"

// buildOwn builds the CSI driver and the pause image from the source around us.
func (s *session) buildOwn(ctx context.Context) error {
	archive := filepath.Join(s.layout.images(), "pause.tar")
	for _, name := range []string{"csi-driver", "pause"} {
		out := filepath.Join(s.layout.bin(), name)
		if _, err := os.Stat(out); err == nil {
			continue
		}
		if err := os.MkdirAll(s.layout.bin(), 0o755); err != nil {
			return fmt.Errorf("build %s: %w", name, err)
		}
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out+".new", ownPackage+name)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s, which needs the working directory to be in the project: %w: %s", name, err, tail(text, 2000))
		}
		if err := os.Rename(out+".new", out); err != nil {
			return fmt.Errorf("build %s: %w", name, err)
		}
	}
	if _, err := os.Stat(archive + ".sum"); err == nil {
		return nil
	}
	if err := os.MkdirAll(s.layout.images(), 0o755); err != nil {
		return fmt.Errorf("make the pause image: %w", err)
	}
	if err := image.BuildFile(archive, image.Pause(filepath.Join(s.layout.bin(), "pause"), pauseImage)); err != nil {
		return fmt.Errorf("make the pause image: %w", err)
	}
	_, sum, err := inspectArchive(archive)
	if err != nil {
		return err
	}
	return writeFileAtomic(archive+".sum", []byte(sum), 0o644)
}

func (s *session) startControllers(context.Context) error {
	return errors.Join(
		s.control("kube-controller-manager", s.plan.controllerManagerArgs()),
		s.control("kube-scheduler", s.plan.schedulerArgs()),
	)
}

func (s *session) startAddons(ctx context.Context) error {
	if err := errors.Join(
		s.control("coredns", s.plan.corednsArgs()),
		s.control("csi-controller", s.plan.csiControllerArgs()),
	); err != nil {
		return err
	}
	err := waitFor(ctx, 30*time.Second, "the CSI controller", s.gone("csi-controller"), func(ctx context.Context) error {
		return dial(ctx, "unix", s.layout.csiSocket())
	})
	if err != nil {
		return err
	}
	return errors.Join(
		s.control("csi-provisioner", s.plan.provisionerArgs()),
		s.control("csi-resizer", s.plan.resizerArgs()),
	)
}

// waitUsable returns when the nodes of the cluster are Ready, volumes can be
// mounted on them and DNS answers.
func (s *session) waitUsable(ctx context.Context) error {
	var names []string
	for _, n := range s.state.Nodes {
		if !n.Frozen && len(n.Cuts) == 0 {
			names = append(names, nodeName(n.Index))
		}
	}
	slices.Sort(names)
	if err := s.waitNodesReady(ctx, s.begin, names...); err != nil {
		return err
	}
	for _, c := range []string{"kube-controller-manager", "kube-scheduler", "csi-provisioner", "csi-resizer"} {
		if err := s.gone(c)(); err != nil {
			return err
		}
	}
	s.say("waiting for DNS")
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, fmt.Sprintf("%s:%d", s.plan.network.gateway(), s.plan.ports.DNS))
	}}
	return waitFor(ctx, time.Minute, "DNS", s.gone("coredns"), func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		got, err := resolver.LookupHost(ctx, "kubernetes.default.svc.cluster.local.")
		if err != nil {
			return fmt.Errorf("look the API server up: %w", err)
		}
		if !slices.Contains(got, s.plan.network.apiServiceIP()) {
			return fmt.Errorf("DNS has %v for the API server, want %s", got, s.plan.network.apiServiceIP())
		}
		return nil
	})
}
