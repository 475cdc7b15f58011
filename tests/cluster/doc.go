// Package cluster makes a Kubernetes cluster of several real nodes on one Linux
// machine, without a container engine, an image registry or systemd.
//
// A node is one network namespace and one mount namespace with a containerd, a
// kubelet, a kube-proxy and a CSI node driver of its own, all inside one cgroup.
// The control plane runs in the machine's own namespaces. Every process that the
// package starts is put into a cgroup before it runs, so that a node can be
// frozen or killed as a whole and nothing outlives [Local.Down], even when the
// run that started it crashed.
//
//	machine ── etcd, kube-apiserver, controller-manager, scheduler, CoreDNS, CSI controller
//	   │
//	bridge <name>br 10.X.0.1/24
//	   ├── veth ── node1 10.X.0.11, pods 10.X.1.0/24
//	   ├── veth ── node2 10.X.0.12, pods 10.X.2.0/24
//	   └── veth ── node3 10.X.0.13, pods 10.X.3.0/24       Services 10.X.240.0/20
//
// [New] chooses by the mode: local (this), kind (where a Docker engine answers)
// or current (a cluster that somebody else made).
package cluster
