package cluster

import "path/filepath"

// layout is where a local cluster's files are.
type layout struct{ root string }

func (l layout) state() string      { return filepath.Join(l.root, "state.json") }
func (l layout) kubeconfig() string { return filepath.Join(l.root, "kubeconfig") }
func (l layout) pki() string        { return filepath.Join(l.root, "pki") }
func (l layout) bin() string        { return filepath.Join(l.root, "bin") }
func (l layout) images() string     { return filepath.Join(l.root, "images") }
func (l layout) volumes() string    { return filepath.Join(l.root, "volumes") }
func (l layout) etc(file string) string {
	return filepath.Join(l.root, "etc", file)
}
func (l layout) config(user string) string { return l.etc(user + ".kubeconfig") }
func (l layout) log(component string) string {
	return filepath.Join(l.root, "log", filepath.FromSlash(component)+".log")
}
func (l layout) etcdData() string  { return filepath.Join(l.root, "etcd") }
func (l layout) csiSocket() string { return filepath.Join(l.root, "csi.sock") }

// node is a path below the node's own directory.
func (l layout) node(name string, elem ...string) string {
	return filepath.Join(append([]string{l.root, "nodes", name}, elem...)...)
}

// lock lies beside the root, which Down removes.
func (l layout) lock() string { return l.root + ".lock" }

// maskedDirs are the directories that a node has its own of.
func maskedDirs() []string { return []string{"/var/lib", "/var/log", "/run", "/var/run"} }

// Paths inside a node's mount namespace.
const (
	containerdSocket = "/run/containerd/containerd.sock"
	kubeletDir       = "/var/lib/kubelet"
)
