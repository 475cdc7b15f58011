// Command cluster makes, breaks and removes the Kubernetes cluster of the tests
// and of the demonstration. See the package cluster.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/kubectl-mssql/kubectl-mssql/tests/cluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := root().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	o := cluster.OptionsFromEnv()
	o.Out = os.Stderr
	cmd := &cobra.Command{
		Use:   "cluster",
		Short: "A Kubernetes cluster for tests",
		Long: `A Kubernetes cluster for tests.

CLUSTER=local (default) makes it on this machine, as root, without a container
engine. CLUSTER=kind asks kind, where a Docker engine answers. CLUSTER=current
uses the cluster of KUBECONFIG and changes nothing about it.`,
		SilenceUsage: true, SilenceErrors: true,
	}
	cmd.PersistentFlags().StringVar(&o.Name, "name", o.Name, "name of the cluster, for more than one on a machine (default kmssql)")
	cmd.AddCommand(upCommand(&o), downCommand(&o), statusCommand(&o), nodeCommand(&o), loadCommand(&o),
		kubeconfigCommand(&o), logsCommand(&o), assetsCommand(), buildCommand(&o))
	return cmd
}

// with makes a command that needs the cluster.
func with(o *cluster.Options, use, short string, args cobra.PositionalArgs, f func(*cobra.Command, cluster.Cluster, []string) error) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Args: args, RunE: func(cmd *cobra.Command, args []string) error {
		c, err := cluster.New(*o)
		if err != nil {
			return err
		}
		return f(cmd, c, args)
	}}
}

func upCommand(o *cluster.Options) *cobra.Command {
	nodes := cluster.DefaultNodes
	cmd := with(o, "up", "Make the cluster, or what is missing of it", cobra.NoArgs, func(cmd *cobra.Command, c cluster.Cluster, _ []string) error {
		return c.Up(cmd.Context(), nodes)
	})
	cmd.Flags().IntVar(&nodes, "nodes", nodes, "number of nodes")
	return cmd
}

func downCommand(o *cluster.Options) *cobra.Command {
	return with(o, "down", "Remove everything that up made", cobra.NoArgs, func(cmd *cobra.Command, c cluster.Cluster, _ []string) error {
		return c.Down(cmd.Context())
	})
}

func statusCommand(o *cluster.Options) *cobra.Command {
	return with(o, "status", "Show nodes and components", cobra.NoArgs, func(cmd *cobra.Command, c cluster.Cluster, _ []string) error {
		s, err := c.Status(cmd.Context())
		if err != nil {
			return err
		}
		return s.Write(cmd.OutOrStdout())
	})
}

func loadCommand(o *cluster.Options) *cobra.Command {
	return with(o, "load-image FILE.tar...", "Give docker-archives to every node", cobra.MinimumNArgs(1), func(cmd *cobra.Command, c cluster.Cluster, files []string) error {
		for _, f := range files {
			if err := c.LoadImage(cmd.Context(), f); err != nil {
				return err
			}
		}
		return nil
	})
}

func kubeconfigCommand(o *cluster.Options) *cobra.Command {
	return with(o, "kubeconfig", "Print the path of the kubeconfig", cobra.NoArgs, func(cmd *cobra.Command, c cluster.Cluster, _ []string) error {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), c.Kubeconfig())
		return err
	})
}

func logsCommand(o *cluster.Options) *cobra.Command {
	return with(o, "logs COMPONENT", "Print the log of a component, such as kube-apiserver or kubelet/node1", cobra.ExactArgs(1), func(cmd *cobra.Command, c cluster.Cluster, args []string) error {
		return c.Logs(cmd.Context(), args[0], cmd.OutOrStdout())
	})
}

func buildCommand(o *cluster.Options) *cobra.Command {
	return with(o, "build", "Install and compile what a local cluster needs, without starting it", cobra.NoArgs, func(cmd *cobra.Command, c cluster.Cluster, _ []string) error {
		b, ok := c.(interface{ Build(context.Context) error })
		if !ok {
			_, err := fmt.Fprintln(cmd.ErrOrStderr(), "nothing to build for this kind of cluster")
			return err
		}
		return b.Build(cmd.Context())
	})
}

func assetsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "assets", Short: "Print the directory for KUBEBUILDER_ASSETS, filling it first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := cluster.EnvtestAssets(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), dir)
			return err
		},
	}
}

func nodeCommand(o *cluster.Options) *cobra.Command {
	cmd := &cobra.Command{Use: "node", Short: "Add, break and mend nodes"}
	cmd.AddCommand(with(o, "add", "Add one node", cobra.NoArgs, func(cmd *cobra.Command, c cluster.Cluster, _ []string) error {
		f, err := faults(c)
		if err != nil {
			return err
		}
		name, err := f.AddNode(cmd.Context())
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), name)
		return err
	}))
	for _, v := range []struct {
		verb, short string
		do          func(cluster.Faults, context.Context, string) error
	}{
		{"kill", "End every process of the node at once, as a power cut does", cluster.Faults.Kill},
		{"start", "Boot a killed node", cluster.Faults.Start},
		{"freeze", "Stop every process of the node without ending it", cluster.Faults.Freeze},
		{"thaw", "Let a frozen node run again", cluster.Faults.Thaw},
		{"heal", "Give the node its network back", cluster.Faults.Heal},
	} {
		cmd.AddCommand(with(o, v.verb+" NODE...", v.short, cobra.MinimumNArgs(1), func(cmd *cobra.Command, c cluster.Cluster, nodes []string) error {
			f, err := faults(c)
			for _, n := range nodes {
				if err == nil {
					err = v.do(f, cmd.Context(), n)
				}
			}
			return err
		}))
	}
	cmd.AddCommand(partitionCommand(o))
	return cmd
}

func partitionCommand(o *cluster.Options) *cobra.Command {
	var from, direction string
	var oneWay bool
	cmd := with(o, "partition NODE", "Cut the node from a peer; cuts add up until heal", cobra.ExactArgs(1), func(cmd *cobra.Command, c cluster.Cluster, args []string) error {
		f, err := faults(c)
		if err != nil {
			return err
		}
		if oneWay && cmd.Flags().Changed("direction") {
			return errors.New("--one-way and --direction exclude each other")
		}
		if oneWay {
			direction = string(cluster.Out)
		}
		return f.Partition(cmd.Context(), args[0], cluster.Cut{From: from, Direction: cluster.Direction(direction)})
	})
	cmd.Flags().StringVar(&from, "from", cluster.PeerAll, "node to cut it from; or api, the API server; or all")
	cmd.Flags().StringVar(&direction, "direction", string(cluster.Both), "packets that get lost, seen from the node: both, in or out")
	cmd.Flags().BoolVar(&oneWay, "one-way", false, "the same as --direction=out")
	return cmd
}

func faults(c cluster.Cluster) (cluster.Faults, error) {
	if f := c.Faults(); f != nil {
		return f, nil
	}
	return nil, fmt.Errorf("break a node: %w", cluster.ErrNotSupported)
}
