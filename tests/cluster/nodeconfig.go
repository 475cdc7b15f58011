package cluster

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"
)

// pauseImage is the sandbox of every pod; LoadImage brings it like any other.
const pauseImage = "kmssql.local/pause:1"

// nodeInit makes the node's own view of the machine and stays, so that its
// namespaces can be entered: $1 is the node's directory.
//
// The root is made shared inside the new namespace only, for volumes with mount
// propagation. /run is as empty as after a boot.
const nodeInit = `set -eu
node=$1
mount --make-rshared /
mount --bind "$node/lib" /var/lib
mount --bind "$node/log" /var/log
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/netns /run/containerd /run/lock
ip link set lo up
for key in net/ipv4/ip_forward net/ipv4/conf/all/forwarding; do echo 1 > "/proc/sys/$key"; done
for key in net/ipv4/conf/all/rp_filter net/ipv4/conf/default/rp_filter; do echo 0 > "/proc/sys/$key"; done
echo done > "$node/init"
exec sleep infinity
`

func (p plan) cgroup(node string) string { return p.network.Name + "/" + node }

func (p plan) kubeletConfig(name string, index int) (string, error) {
	data, err := yaml.Marshal(map[string]any{
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"authentication": map[string]any{
			"anonymous": map[string]any{"enabled": false},
			"webhook":   map[string]any{"enabled": true, "cacheTTL": "1m0s"},
			"x509":      map[string]any{"clientCAFile": p.pkiFile("ca.crt")},
		},
		"authorization":            map[string]any{"mode": "Webhook"},
		"tlsCertFile":              p.pkiFile(name + ".crt"),
		"tlsPrivateKeyFile":        p.pkiFile(name + ".key"),
		"address":                  p.network.nodeIP(index),
		"containerRuntimeEndpoint": "unix://" + containerdSocket,
		"cgroupDriver":             "cgroupfs",
		"cgroupRoot":               "/" + p.cgroup(name),
		"failCgroupV1":             false,
		"failSwapOn":               false,
		// All nodes share one machine: nothing is reserved on any.
		"enforceNodeAllocatable":      []string{},
		"evictionHard":                map[string]string{"memory.available": "50Mi", "nodefs.available": nodeEviction},
		"imageGCHighThresholdPercent": 100,
		"imageGCLowThresholdPercent":  99,
		"clusterDomain":               "cluster.local",
		"clusterDNS":                  []string{p.network.dnsServiceIP()},
		"resolvConf":                  p.layout.etc("resolv.conf"),
		"nodeStatusUpdateFrequency":   "4s",
		"nodeLeaseDurationSeconds":    20,
		"volumeStatsAggPeriod":        "10s",
		"syncFrequency":               "10s",
		"makeIPTablesUtilChains":      false,
		// The machine may not let a score be lowered.
		"oomScoreAdj": 0,
	})
	if err != nil {
		return "", fmt.Errorf("render the kubelet's configuration: %w", err)
	}
	return string(data), nil
}

func (p plan) kubeletArgs(name string, index int) []string {
	return []string{
		p.kubernetes("kubelet"), "--config=" + p.layout.node(name, "kubelet.yaml"),
		"--kubeconfig=" + p.layout.config(name), "--hostname-override=" + name,
		"--node-ip=" + p.network.nodeIP(index), "--v=1",
	}
}

func (p plan) kubeProxyConfig(name string) (string, error) {
	data, err := yaml.Marshal(map[string]any{
		"apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
		"mode": "nftables", "hostnameOverride": name, "clusterCIDR": p.network.podsCIDR(),
		"detectLocalMode":  "ClusterCIDR",
		"clientConnection": map[string]any{"kubeconfig": p.layout.config("kube-proxy")},
		"nftables":         map[string]any{"syncPeriod": "30s", "minSyncPeriod": "100ms"},
		// The limits belong to the machine, not to a network namespace.
		"conntrack":   map[string]any{"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
		"oomScoreAdj": 0,
	})
	if err != nil {
		return "", fmt.Errorf("render kube-proxy's configuration: %w", err)
	}
	return string(data), nil
}

func (p plan) kubeProxyArgs(name string) []string {
	return []string{p.kubernetes("kube-proxy"), "--config=" + p.layout.node(name, "kube-proxy.yaml"), "--v=1"}
}

func (p plan) containerdConfig(name, snapshotter string) string {
	return fmt.Sprintf(`version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0

[grpc]
  address = %q

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  # The machine may lack CAP_SYS_RESOURCE, without which no score can be lowered.
  restrict_oom_score_adj = true

  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q

  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = %q

    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
`, containerdSocket, pauseImage, cniBin, p.layout.node(name, "cni"), snapshotter)
}

func (p plan) containerdArgs(name string) []string {
	return []string{"containerd", "--config=" + p.layout.node(name, "containerd.toml"), "--log-level=warn"}
}

// cniConfig joins a pod by a link of its own, not by a bridge: on a bridge the
// answer of a Service's pod on the same node would not pass the translation.
func (p plan) cniConfig(index int) (string, error) {
	data, err := json.MarshalIndent(map[string]any{
		"cniVersion": "0.4.0", "name": "pods",
		"plugins": []map[string]any{{
			"type": "ptp", "mtu": 1500,
			"ipam": map[string]any{
				"type": "host-local", "dataDir": "/run/cni-ipam",
				"routes": []map[string]string{{"dst": "0.0.0.0/0"}},
				"ranges": [][]map[string]string{{{"subnet": p.network.podCIDR(index)}}},
			},
		}},
	}, "", "  ")
	if err != nil {
		return "", fmt.Errorf("render the CNI configuration: %w", err)
	}
	return string(data), nil
}
