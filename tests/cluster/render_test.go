package cluster

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testPlan is a plan whose rendering does not depend on the machine.
func testPlan() plan {
	return plan{
		network: network{Name: "kmssql", Octet: 210},
		ports:   ports{API: 16443, EtcdClient: 12379, EtcdPeer: 12380, ControllerManager: 16257, Scheduler: 16259, DNS: 16053, DNSReady: 16081},
		layout:  layout{root: "/root-dir"}, bins: binaries{cache: "/cache"},
	}
}

// golden compares with testdata; -update writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if flag.Lookup("update") != nil && flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs; -update rewrites it (-want +got):\n%s", file, diff)
	}
}

var _ = flag.Bool("update", false, "rewrite the golden files")

func TestPlan_RendersTheConfigurationOfANode(t *testing.T) {
	t.Parallel()
	p := testPlan()
	render := func(text string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	golden(t, "kubelet.yaml", render(p.kubeletConfig("node2", 2)))
	golden(t, "kube-proxy.yaml", render(p.kubeProxyConfig("node2")))
	golden(t, "cni.json", render(p.cniConfig(2)))
	golden(t, "containerd.toml", p.containerdConfig("node2", "overlayfs"))
	golden(t, "Corefile", p.corefile())
}

func TestPlan_RendersTheCommandsOfTheControlPlane(t *testing.T) {
	t.Parallel()
	p := testPlan()
	var b strings.Builder
	for _, argv := range [][]string{
		p.etcdArgs(), p.apiserverArgs(), p.controllerManagerArgs(), p.schedulerArgs(), p.corednsArgs(),
		p.csiControllerArgs(), p.provisionerArgs(), p.resizerArgs(), p.kubeletArgs("node1", 1),
		p.kubeProxyArgs("node1"), p.containerdArgs("node1"), p.csiNodeArgs("node1"),
	} {
		fmt.Fprintln(&b, strings.Join(argv, "\n    "))
	}
	golden(t, "commands.txt", b.String())
}

func TestFaultRules_LoseWhatTheCutsSay(t *testing.T) {
	t.Parallel()
	p := testPlan()
	for _, tc := range []struct {
		name string
		cuts []Cut
	}{
		{"no-cut", nil},
		{"from-a-node", []Cut{{From: "node3", Direction: Both}}},
		{"one-way-from-a-node", []Cut{{From: "node3", Direction: In}}},
		{"from-the-api-and-one-way-to-all", []Cut{{From: PeerAPI, Direction: Both}, {From: PeerAll, Direction: Out}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			rules := p.faultRules(tc.cuts)
			golden(t, "faults-"+tc.name+".nft", rules)
			if nft, err := exec.LookPath("nft"); err == nil && os.Geteuid() == 0 {
				// --check parses and asks the kernel, and changes nothing.
				cmd := exec.CommandContext(t.Context(), nft, "--check", "-f", "-")
				cmd.Stdin = strings.NewReader(rules)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("nft refuses the rules: %v\n%s", err, out)
				}
			}
		})
	}
}

func TestCut_IsChecked(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		in   Cut
		want Cut
		bad  bool
	}{
		{name: "empty means everything, both ways", want: Cut{From: PeerAll, Direction: Both}},
		{name: "a node, one way", in: Cut{From: "node2", Direction: Out}, want: Cut{From: "node2", Direction: Out}},
		{name: "itself", in: Cut{From: "node1"}, bad: true},
		{name: "no node", in: Cut{From: "node0"}, bad: true},
		{name: "a name with a tail", in: Cut{From: "node2; flush ruleset"}, bad: true},
		{name: "no direction", in: Cut{Direction: "up"}, bad: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := tc.in.normalise("node1")
			if (err != nil) != tc.bad {
				t.Fatalf("error %v, want one: %t", err, tc.bad)
			}
			if !tc.bad && got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestLinkDown_OnlyForAPulledCable(t *testing.T) {
	t.Parallel()
	if linkDown([]Cut{{From: PeerAll, Direction: Out}, {From: PeerAPI, Direction: Both}}) {
		t.Error("a one-way cut pulled the cable")
	}
	if !linkDown([]Cut{{From: "node1", Direction: Out}, {From: PeerAll, Direction: Both}}) {
		t.Error("a cut from everything left the cable in")
	}
}

func TestNodeIndex(t *testing.T) {
	t.Parallel()
	for i := 1; i <= maxNodes; i++ {
		if got, err := nodeIndex(nodeName(i)); got != i || err != nil {
			t.Errorf("%s: got %d, %v", nodeName(i), got, err)
		}
	}
	for _, bad := range []string{"", "node", "node0", "node17", "node01", "node1x", "x", "Node1"} {
		if got, err := nodeIndex(bad); err == nil {
			t.Errorf("%q: got %d, want an error", bad, got)
		}
	}
}

func TestKindConfig_HasOneControlPlane(t *testing.T) {
	t.Parallel()
	got, err := kindConfig(3)
	if err != nil {
		t.Fatal(err)
	}
	if c, w := strings.Count(got, "role: control-plane"), strings.Count(got, "role: worker"); c != 1 || w != 3 {
		t.Errorf("got %d control planes and %d workers, want 1 and 3:\n%s", c, w, got)
	}
}
