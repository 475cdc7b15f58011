package cluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// EnvLoadImage is a command that brings an image to the nodes of a given
// cluster; the archive's path is its last argument.
const EnvLoadImage = "CLUSTER_LOAD_IMAGE"

// current is a cluster that somebody else made. It is never changed.
type current struct{ options Options }

func newCurrent(o Options) *current { return &current{options: o} }

func (c *current) say(format string, args ...any) {
	fmt.Fprintf(c.options.Out, format+"\n", args...)
}

func (c *current) Up(ctx context.Context, _ int) error {
	if _, err := os.Stat(c.Kubeconfig()); err != nil {
		return fmt.Errorf("CLUSTER=current uses a cluster that is there already: set KUBECONFIG to one file: %w", err)
	}
	client, err := clientFor(c.Kubeconfig())
	if err != nil {
		return err
	}
	if err := client.RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return fmt.Errorf("reach the cluster of %s: %w", c.Kubeconfig(), err)
	}
	c.say("CLUSTER=current: using the cluster of %s as it is", c.Kubeconfig())
	return nil
}

func (c *current) Down(context.Context) error {
	c.say("CLUSTER=current: the cluster of %s is not ours to take down", c.Kubeconfig())
	return nil
}

func (c *current) Status(ctx context.Context) (Status, error) {
	out := Status{Mode: ModeCurrent, Name: "current", Kubeconfig: c.Kubeconfig()}
	for name, ready := range nodeConditions(ctx, c.Kubeconfig()) {
		out.Up = true
		out.Nodes = append(out.Nodes, NodeStatus{Name: name, State: "running", Ready: ready})
	}
	return out, nil
}

func (c *current) Kubeconfig() string {
	if c.options.Kubeconfig != "" {
		return c.options.Kubeconfig
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".kube", "config")
}

func (c *current) LoadImage(ctx context.Context, archive string) error {
	command := os.Getenv(EnvLoadImage)
	if command == "" {
		c.say("CLUSTER=current: %s stays here; push it to a registry that the nodes can pull from, or set %s to a command that loads it", archive, EnvLoadImage)
		return nil
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command+` "$1"`, "sh", archive)
	cmd.Stdout, cmd.Stderr = c.options.Out, c.options.Out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("load %s with %s: %w", archive, EnvLoadImage, err)
	}
	return nil
}

func (c *current) Logs(context.Context, string, io.Writer) error {
	return fmt.Errorf("logs of a component: %w", ErrNotSupported)
}

func (c *current) Faults() Faults { return nil }
