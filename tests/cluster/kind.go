package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// kindVersion is built from source like the rest when there is no kind in PATH.
const kindVersion = "v0.31.0"

func kindTools() toolset {
	return toolset{
		name: "kind", version: kindVersion, module: "sigs.k8s.io/kind",
		binaries: map[string]string{"kind": "sigs.k8s.io/kind"},
	}
}

// kind is a cluster of containers of a Docker engine. Its node1 to nodeN are
// kind's workers, in the order of their names.
type kind struct {
	options Options
	// local lends its progress lines and its binaries.
	local *Local
}

func newKind(o Options) *kind { return &kind{options: o, local: newLocal(o)} }

// kindConfig has one control plane and as many workers as nodes.
func kindConfig(nodes int) (string, error) {
	list := []map[string]string{{"role": "control-plane"}}
	for range nodes {
		list = append(list, map[string]string{"role": "worker"})
	}
	data, err := yaml.Marshal(map[string]any{
		"kind": "Cluster", "apiVersion": "kind.x-k8s.io/v1alpha4", "nodes": list,
		"kubeadmConfigPatches": []string{
			"kind: ClusterConfiguration\ncontrollerManager:\n  extraArgs:\n    node-monitor-period: 2s\n    node-monitor-grace-period: 20s\n",
		},
	})
	if err != nil {
		return "", fmt.Errorf("render kind's configuration: %w", err)
	}
	return string(data), nil
}

func (k *kind) binary(ctx context.Context) (string, error) {
	if path, err := exec.LookPath("kind"); err == nil {
		return path, nil
	}
	if err := k.local.binaries().ensure(ctx, kindTools(), "kind"); err != nil {
		return "", err
	}
	return k.local.binaries().path(kindTools(), "kind"), nil
}

func (k *kind) run(ctx context.Context, args ...string) (string, error) {
	bin, err := k.binary(ctx)
	if err != nil {
		return "", err
	}
	return run(ctx, "", append([]string{bin}, args...)...)
}

func (k *kind) exists(ctx context.Context) (bool, error) {
	out, err := k.run(ctx, "get", "clusters")
	return slices.Contains(strings.Fields(out), k.options.Name), err
}

// Up implements Cluster.
func (k *kind) Up(ctx context.Context, nodes int) error {
	if _, err := run(ctx, "", "docker", "info"); err != nil {
		return fmt.Errorf("CLUSTER=kind needs a Docker engine that answers: %w", err)
	}
	there, err := k.exists(ctx)
	if err != nil {
		return err
	}
	if there {
		k.local.say("the kind cluster %s is there", k.options.Name)
		_, err := k.run(ctx, "export", "kubeconfig", "--name", k.options.Name, "--kubeconfig", k.Kubeconfig())
		return err
	}
	config, err := kindConfig(nodes)
	if err != nil {
		return err
	}
	file := filepath.Join(k.options.Cache, "kind-"+k.options.Name+".yaml")
	if err := writeFileAtomic(file, []byte(config), 0o644); err != nil {
		return err
	}
	k.local.say("kind makes the cluster %s", k.options.Name)
	_, err = k.run(ctx, "create", "cluster", "--name", k.options.Name, "--config", file, "--kubeconfig", k.Kubeconfig(), "--wait", "3m")
	if err != nil {
		return err
	}
	k.local.say("the cluster %s is up: export KUBECONFIG=%s", k.options.Name, k.Kubeconfig())
	return nil
}

// Down implements Cluster.
func (k *kind) Down(ctx context.Context) error {
	if _, err := k.run(ctx, "delete", "cluster", "--name", k.options.Name, "--kubeconfig", k.Kubeconfig()); err != nil {
		return err
	}
	return errors.Join(
		os.RemoveAll(k.Kubeconfig()),
		os.RemoveAll(filepath.Join(k.options.Cache, "kind-"+k.options.Name+".yaml")),
	)
}

// Kubeconfig implements Cluster.
func (k *kind) Kubeconfig() string {
	return filepath.Join(k.options.Cache, "kind-"+k.options.Name+".kubeconfig")
}

// Status implements Cluster.
func (k *kind) Status(ctx context.Context) (Status, error) {
	out := Status{Mode: ModeKind, Name: k.options.Name, Kubeconfig: k.Kubeconfig()}
	there, err := k.exists(ctx)
	if err != nil || !there {
		return out, err
	}
	out.Up = true
	for name, ready := range nodeConditions(ctx, k.Kubeconfig()) {
		out.Nodes = append(out.Nodes, NodeStatus{Name: name, State: "running", Ready: ready})
	}
	slices.SortFunc(out.Nodes, func(a, b NodeStatus) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// LoadImage implements Cluster.
func (k *kind) LoadImage(ctx context.Context, archive string) error {
	_, err := k.run(ctx, "load", "image-archive", archive, "--name", k.options.Name)
	return err
}

// Logs implements Cluster.
func (k *kind) Logs(_ context.Context, component string, _ io.Writer) error {
	return fmt.Errorf("log of %s: %w; run kind export logs --name %s", component, ErrNotSupported, k.options.Name)
}

// Faults implements Cluster.
func (k *kind) Faults() Faults { return kindFaults{k} }

// kindFaults breaks the containers that are the nodes.
type kindFaults struct{ *kind }

// AddNode implements Faults.
func (k kindFaults) AddNode(context.Context) (string, error) {
	return "", fmt.Errorf("add a node to a kind cluster: %w; make it with more nodes", ErrNotSupported)
}

func (k kindFaults) docker(ctx context.Context, args ...string) error {
	_, err := run(ctx, "", append([]string{"docker"}, args...)...)
	return err
}

// Kill implements Faults.
func (k kindFaults) Kill(ctx context.Context, node string) error {
	return k.docker(ctx, "kill", "--signal=KILL", node)
}

// Start implements Faults.
func (k kindFaults) Start(ctx context.Context, node string) error {
	return k.docker(ctx, "start", node)
}

// Freeze implements Faults.
func (k kindFaults) Freeze(ctx context.Context, node string) error {
	return k.docker(ctx, "pause", node)
}

// Thaw implements Faults.
func (k kindFaults) Thaw(ctx context.Context, node string) error {
	return k.docker(ctx, "unpause", node)
}

// Partition implements Faults: of all kinds of cuts only the pulled cable.
func (k kindFaults) Partition(ctx context.Context, node string, cut Cut) error {
	if (cut.From != "" && cut.From != PeerAll) || (cut.Direction != "" && cut.Direction != Both) {
		return fmt.Errorf("cut %s from %s (%s): %w; kind can only cut a node from everything", node, cut.From, cut.Direction, ErrNotSupported)
	}
	// Not "network disconnect", after which the node would get another address.
	return k.docker(ctx, "exec", node, "ip", "link", "set", "eth0", "down")
}

// Heal implements Faults.
func (k kindFaults) Heal(ctx context.Context, node string) error {
	return k.docker(ctx, "exec", node, "ip", "link", "set", "eth0", "up")
}

// StopAPI implements Faults: the API server of kind lives in a node that has more in it.
func (k kindFaults) StopAPI(context.Context) error {
	return fmt.Errorf("stop the API server of a kind cluster: %w", ErrNotSupported)
}

// StartAPI implements Faults.
func (k kindFaults) StartAPI(context.Context) error {
	return fmt.Errorf("start the API server of a kind cluster: %w", ErrNotSupported)
}
