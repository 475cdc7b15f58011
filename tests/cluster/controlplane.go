package cluster

import (
	"fmt"

	"github.com/kubectl-mssql/kubectl-mssql/tests/cluster/csi"
)

// plan is everything that the configuration of the components follows from.
type plan struct {
	network network
	ports   ports
	layout  layout
	bins    binaries
}

func (p plan) kubernetes(name string) string { return p.bins.path(kubernetesTools(), name) }

// apiURL is the API server as nodes and pods reach it.
func (p plan) apiURL() string { return fmt.Sprintf("https://%s:%d", p.network.gateway(), p.ports.API) }

// hostURL is the API server as the machine reaches it.
func (p plan) hostURL() string { return fmt.Sprintf("https://127.0.0.1:%d", p.ports.API) }

func (p plan) pkiFile(name string) string { return p.layout.pki() + "/" + name }

func (p plan) etcdArgs() []string {
	client := fmt.Sprintf("http://127.0.0.1:%d", p.ports.EtcdClient)
	peer := fmt.Sprintf("http://127.0.0.1:%d", p.ports.EtcdPeer)
	return []string{
		"etcd", "--name=" + p.network.Name, "--data-dir=" + p.layout.etcdData(),
		"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + p.network.Name + "=" + peer,
		// The cluster lives as long as its tests: nothing is worth an fsync.
		"--unsafe-no-fsync",
		"--logger=zap", "--log-level=warn",
	}
}

func (p plan) apiserverArgs() []string {
	return []string{
		p.kubernetes("kube-apiserver"),
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", p.ports.EtcdClient),
		"--bind-address=0.0.0.0", fmt.Sprintf("--secure-port=%d", p.ports.API),
		"--advertise-address=" + p.network.gateway(),
		"--service-cluster-ip-range=" + p.network.serviceCIDR(),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--client-ca-file=" + p.pkiFile("ca.crt"),
		"--tls-cert-file=" + p.pkiFile("apiserver.crt"), "--tls-private-key-file=" + p.pkiFile("apiserver.key"),
		"--kubelet-certificate-authority=" + p.pkiFile("ca.crt"),
		"--kubelet-client-certificate=" + p.pkiFile("apiserver-kubelet-client.crt"),
		"--kubelet-client-key=" + p.pkiFile("apiserver-kubelet-client.key"),
		// Else exec and logs look the node's name up in DNS.
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + p.pkiFile("service-account.key"),
		"--service-account-signing-key-file=" + p.pkiFile("service-account.key"),
		// The machine reaches pods but is no node: webhooks are called at their
		// pods' addresses, not at a Service's.
		"--enable-aggregator-routing=true",
		"--profiling=false", "--v=1",
	}
}

func (p plan) controllerManagerArgs() []string {
	return []string{
		p.kubernetes("kube-controller-manager"),
		"--kubeconfig=" + p.layout.config("kube-controller-manager"),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", p.ports.ControllerManager),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + p.pkiFile("service-account.key"),
		"--root-ca-file=" + p.pkiFile("ca.crt"),
		"--cluster-signing-cert-file=" + p.pkiFile("ca.crt"), "--cluster-signing-key-file=" + p.pkiFile("ca.key"),
		"--leader-elect=false",
		// A node that a test breaks shows as NotReady soon.
		"--node-monitor-period=2s", "--node-monitor-grace-period=20s",
		"--profiling=false", "--v=1",
	}
}

func (p plan) schedulerArgs() []string {
	return []string{
		p.kubernetes("kube-scheduler"),
		"--kubeconfig=" + p.layout.config("kube-scheduler"),
		"--authentication-kubeconfig=" + p.layout.config("kube-scheduler"),
		"--authorization-kubeconfig=" + p.layout.config("kube-scheduler"),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", p.ports.Scheduler),
		"--leader-elect=false", "--v=1",
	}
}

func (p plan) corefile() string {
	// Answers are kept for a second only: a test that moves a pod must not wait
	// for a name.
	return fmt.Sprintf(`.:%d {
    bind %s
    errors
    ready 127.0.0.1:%d
    kubernetes cluster.local in-addr.arpa {
        kubeconfig %s
        ttl 2
    }
    cache 1 {
        disable denial
    }
}
`, p.ports.DNS, p.network.gateway(), p.ports.DNSReady, p.layout.config("coredns"))
}

func (p plan) corednsArgs() []string {
	return []string{p.bins.path(corednsTools(), "coredns"), "-conf", p.layout.etc("Corefile")}
}

func (p plan) csiControllerArgs() []string {
	return []string{p.layout.bin() + "/csi-driver", "--volumes=" + p.layout.volumes(), "--socket=" + p.layout.csiSocket()}
}

func (p plan) provisionerArgs() []string {
	return []string{
		p.bins.path(provisionerTools(), "csi-provisioner"), "--csi-address=" + p.layout.csiSocket(),
		"--kubeconfig=" + p.layout.config("csi"), "--volume-name-prefix=pvc", "--extra-create-metadata=false",
		"--retry-interval-start=500ms", "--timeout=30s", "--v=2",
	}
}

func (p plan) resizerArgs() []string {
	return []string{
		p.bins.path(resizerTools(), "csi-resizer"), "--csi-address=" + p.layout.csiSocket(),
		"--kubeconfig=" + p.layout.config("csi"), "--handle-volume-inuse-error=false",
		"--retry-interval-start=500ms", "--timeout=30s", "--v=2",
	}
}

func (p plan) csiNodeArgs(node string) []string {
	return []string{
		p.layout.bin() + "/csi-driver", "--volumes=" + p.layout.volumes(), "--node=" + node,
		"--socket=" + kubeletDir + "/plugins/" + csi.DriverName + "/csi.sock",
		"--registration-dir=" + kubeletDir + "/plugins_registry",
	}
}

// identity is one user of the API server.
type identity struct {
	name, user string
	groups     []string
}

// identities are the users with a kubeconfig in etc.
func identities() []identity {
	return []identity{
		{"kube-controller-manager", "system:kube-controller-manager", nil},
		{"kube-scheduler", "system:kube-scheduler", nil},
		{"kube-proxy", "system:kube-proxy", nil},
		// Parts of the cluster itself, whose exact roles nothing here depends on.
		{"coredns", "kubectl-mssql:coredns", []string{"system:masters"}},
		{"csi", "kubectl-mssql:csi", []string{"system:masters"}},
	}
}
