package cluster

import (
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestOptions_AreChecked(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		in   Options
		bad  string
	}{
		{name: "nothing said is a local cluster"},
		{name: "a long name", in: Options{Name: "averylongname"}, bad: "name"},
		{name: "a name with a slash", in: Options{Name: "a/b"}, bad: "name"},
		{name: "a root that nodes do not see", in: Options{Root: "/var/lib/x"}, bad: "/var/lib"},
		{name: "a mode of no kind", in: Options{Mode: "minikube"}, bad: "minikube"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.in.Cache = "/cache"
			_, err := New(tc.in)
			switch {
			case tc.bad == "" && err != nil:
				t.Error(err)
			case tc.bad != "" && (err == nil || !strings.Contains(err.Error(), tc.bad)):
				t.Errorf("got %v, want an error about %q", err, tc.bad)
			}
		})
	}
}

func TestWithin(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		path, dir string
		want      bool
	}{
		{"/a/b", "/a", true}, {"/a", "/a", true}, {"/ab", "/a", false}, {"/a/..b", "/a", true}, {"/", "/a", false}, {"/a/../c", "/a", false},
	} {
		if got := within(tc.path, tc.dir); got != tc.want {
			t.Errorf("within(%q, %q) = %t, want %t", tc.path, tc.dir, got, tc.want)
		}
	}
}

func TestFreeOctet_AvoidsTheMachinesNetworks(t *testing.T) {
	t.Parallel()
	got, err := freeOctet([]netip.Prefix{netip.MustParsePrefix("10.210.3.0/24"), netip.MustParsePrefix("192.0.2.0/24")})
	if err != nil || got != 211 {
		t.Errorf("got %d, %v, want 211", got, err)
	}
	if got, err := freeOctet([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}); err == nil {
		t.Errorf("got %d in a machine that has all of 10/8", got)
	}
}

func TestNetwork_AddressesDoNotOverlap(t *testing.T) {
	t.Parallel()
	n := network{Name: "kmssql", Octet: 210}
	all := []string{n.serviceCIDR(), n.gateway() + "/24"}
	for i := 1; i <= maxNodes; i++ {
		all = append(all, n.podCIDR(i))
		if veth := n.nodeVeth(i); len(veth) > 15 {
			t.Errorf("%s is too long for a link's name", veth)
		}
	}
	for i, a := range all {
		for _, b := range all[i+1:] {
			if netip.MustParsePrefix(a).Overlaps(netip.MustParsePrefix(b)) {
				t.Errorf("%s and %s overlap", a, b)
			}
		}
	}
	if routes := n.peerRoutes(2); strings.Contains(routes, n.podCIDR(2)) || strings.Count(routes, "\n") != maxNodes-1 {
		t.Errorf("routes of node2:\n%s", routes)
	}
}

func TestParseCgroups(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, in string
		want     []string
		bad      bool
	}{
		{name: "version 1, two controllers together", in: "30 20 0:1 / /cg/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
			"31 20 0:2 / /cg/freezer rw shared:3 - cgroup cgroup rw,freezer\n32 20 0:3 / /cg/unified rw - cgroup2 cgroup2 rw\n",
			want: []string{"/cg/cpu,cpuacct/k/node1", "/cg/freezer/k/node1"}},
		{name: "version 2", in: "30 20 0:1 / /cg rw - cgroup2 cgroup2 rw,nsdelegate\n", want: []string{"/cg/k/node1"}},
		{name: "none", in: "30 20 0:1 / / rw - ext4 /dev/sda rw\n", bad: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			g, err := parseCgroups(strings.NewReader(tc.in))
			if tc.bad {
				if err == nil {
					t.Error("no error")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, g.dirs("k/node1")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseMountsBelow(t *testing.T) {
	t.Parallel()
	in := "1 0 8:1 / / rw - ext4 x rw\n2 1 0:4 / /r/a\\040b rw - tmpfs x rw\n3 2 0:5 / /r/a\\040b/c rw - tmpfs x rw\n4 1 0:6 / /rx rw - tmpfs x rw\nshort\n"
	if diff := cmp.Diff([]string{"/r/a b", "/r/a b/c"}, parseMountsBelow(in, "/r")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

const kubernetesGoMod = `{"Go": "1.26.0",
	"Require": [{"Path": "k8s.io/api", "Version": "v0.0.0"}, {"Path": "example.org/x", "Version": "v1.2.3"}],
	"Replace": [{"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}}]}`

func TestGeneratedModule_ReplacesStagingByWhatWasPublished(t *testing.T) {
	t.Parallel()
	got, err := generatedModule(kubernetesTools(), []byte(kubernetesGoMod), nil)
	if err != nil {
		t.Fatal(err)
	}
	want := "module kubernetes\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v1.36.3\nrequire k8s.io/api v0.36.3 // indirect\n" +
		"require example.org/x v1.2.3 // indirect\nreplace k8s.io/api => k8s.io/api v0.36.3\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGeneratedModule_PinsToTheVersionsOfKubernetes(t *testing.T) {
	t.Parallel()
	own := `{"Go": "1.26.0",
		"Require": [{"Path": "k8s.io/api", "Version": "v0.36.1"}, {"Path": "example.org/x", "Version": "v1.9.0"}, {"Path": "example.org/y", "Version": "v1.0.0"}],
		"Replace": [{"Old": {"Path": "example.org/z"}, "New": {"Path": "example.org/zz", "Version": "v2.0.0"}}]}`
	got, err := generatedModule(toolset{name: "tool", module: "example.org/tool", version: "v6.4.0"}, []byte(own), []byte(kubernetesGoMod))
	if err != nil {
		t.Fatal(err)
	}
	want := "module tool\n\ngo 1.26.0\n\nrequire example.org/tool v6.4.0\nrequire k8s.io/api v0.36.1 // indirect\n" +
		"require example.org/x v1.9.0 // indirect\nrequire example.org/y v1.0.0 // indirect\n" +
		"replace example.org/x => example.org/x v1.2.3\nreplace example.org/z => example.org/zz v2.0.0\nreplace k8s.io/api => k8s.io/api v0.36.3\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMergeSums_HasEachLineOnce(t *testing.T) {
	t.Parallel()
	got := string(mergeSums([]byte("b 1\na 1\n"), []byte("a 1\nc 1\n")))
	if want := "a 1\nb 1\nc 1\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestMissingPackages_AreNamedOnce(t *testing.T) {
	t.Parallel()
	got := missingPackages(func(file string) bool { return file != "nsenter" && file != "unshare" && file != "etcd" })
	if diff := cmp.Diff([]string{"etcd-server", "util-linux"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPKI_IssuesOnceAndIsReadBack(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Now()
	for range 2 {
		p, err := openPKI(dir, now)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.issue("node1", "system:node:node1", []string{"system:nodes"}, "10.0.0.1", "node1"); err != nil {
			t.Fatal(err)
		}
		cert, _, err := p.read("node1")
		if err != nil {
			t.Fatal(err)
		}
		if err := cert.CheckSignatureFrom(p.cert); err != nil {
			t.Error(err)
		}
		if err := cert.VerifyHostname("10.0.0.1"); err != nil {
			t.Error(err)
		}
		if cert.Subject.CommonName != "system:node:node1" || cert.Subject.Organization[0] != "system:nodes" {
			t.Errorf("subject %v", cert.Subject)
		}
		config := filepath.Join(dir, "kubeconfig")
		if err := p.kubeconfig(config, "node1", "https://127.0.0.1:1"); err != nil {
			t.Fatal(err)
		}
		if _, err := clientFor(config); err != nil {
			t.Error(err)
		}
	}
}

func TestReadySince_DoesNotTakeAnOldReport(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC)
	node := func(status corev1.ConditionStatus, at time.Time) *corev1.Node {
		return &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, LastHeartbeatTime: metav1.NewTime(start)},
			{Type: corev1.NodeReady, Status: status, LastHeartbeatTime: metav1.NewTime(at)},
		}}}
	}
	for _, tc := range []struct {
		name string
		node *corev1.Node
		want bool
	}{
		{"no report", &corev1.Node{}, false},
		{"ready in the report before", node(corev1.ConditionTrue, start.Add(-2*time.Second)), false},
		{"ready in the second of the start", node(corev1.ConditionTrue, start.Truncate(time.Second)), true},
		{"unknown since", node(corev1.ConditionUnknown, start.Add(time.Minute)), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got, why := readySince(tc.node, start); got != tc.want {
				t.Errorf("got %t (%s), want %t", got, why, tc.want)
			}
		})
	}
}

func TestCgroups_ThawTreeReachesEveryLevel(t *testing.T) {
	t.Parallel()
	mount := t.TempDir()
	g := cgroups{v1: map[string]string{"freezer": mount}}
	dirs := []string{"k", "k/node1", "k/node1/daemons"}
	for _, d := range dirs {
		if err := writeFileAtomic(filepath.Join(mount, d, "freezer.state"), []byte("FROZEN"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.thawTree("k"); err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		if frozen, err := g.frozen(d); err != nil || frozen {
			t.Errorf("%s: frozen %t, %v", d, frozen, err)
		}
	}
	if err := g.thawTree("missing"); err != nil {
		t.Errorf("a cgroup that is not there: %v", err)
	}
}

func TestSystemPath_KeepsTheOrderAndAddsWhatIsMissing(t *testing.T) {
	t.Parallel()
	if got, want := systemPath("/x:/usr/sbin:/bin"), "/x:/usr/sbin:/bin:/usr/local/sbin:/sbin"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
