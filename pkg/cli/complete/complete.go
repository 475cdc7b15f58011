// Package complete answers the Tab key: names, replicas that the verb may take, databases,
// namespaces, contexts and the words of flags. It asks the cluster for at most two
// seconds and says why when it has no answer.
package complete

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/cli/factory"
)

// Timeout of one completion.
const Timeout = 2 * time.Second

// Kinds whose names are completed.
type Kinds int

const (
	Any Kinds = iota
	Groups
	Instances
)

// Names completes the first argument.
func Names(f factory.Factory, kinds Kinds) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return answer(cmd, prefix, func(ctx context.Context) ([]cobra.Completion, error) { return names(ctx, f, kinds) })
	}
}

// answer runs a source with the deadline and filters by what was typed.
func answer(cmd *cobra.Command, prefix string, source func(context.Context) ([]cobra.Completion, error)) ([]cobra.Completion, cobra.ShellCompDirective) {
	parent := cmd.Context()
	if parent == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(parent, Timeout)
	defer cancel()
	words, err := source(ctx)
	out := []cobra.Completion{}
	for _, w := range words {
		if strings.HasPrefix(w, prefix) {
			out = append(out, w)
		}
	}
	if err != nil {
		out = cobra.AppendActiveHelp(out, "no names: "+why(err))
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func why(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return "you may not list them (" + firstLine(err) + ")"
	case strings.Contains(err.Error(), context.DeadlineExceeded.Error()):
		return "the cluster did not answer within " + Timeout.String()
	}
	return firstLine(err)
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func names(ctx context.Context, f factory.Factory, kinds Kinds) ([]cobra.Completion, error) {
	c, ns, err := connect(f)
	if err != nil {
		return nil, err
	}
	var out []cobra.Completion
	var failed error
	if kinds != Instances {
		var groups api.SQLServerAvailabilityGroupList
		if err := c.List(ctx, &groups, client.InNamespace(ns)); err != nil {
			failed = err
		}
		for i := range groups.Items {
			g := &groups.Items[i]
			text := "group, " + strings.ToLower(string(g.Status.Phase))
			if g.Status.PrimaryReplica != "" {
				text += ", primary " + g.Status.PrimaryReplica
			}
			out = append(out, cobra.CompletionWithDesc(g.Name, strings.TrimSuffix(text, ", ")))
		}
	}
	if kinds != Groups {
		var instances api.SQLServerInstanceList
		if err := c.List(ctx, &instances, client.InNamespace(ns)); err != nil && failed == nil {
			failed = err
		}
		for i := range instances.Items {
			x := &instances.Items[i]
			out = append(out, cobra.CompletionWithDesc(x.Name, strings.TrimSuffix("instance, "+strings.ToLower(string(x.Status.Phase)), ", ")))
		}
	}
	slices.Sort(out)
	return out, failed
}

func connect(f factory.Factory) (client.Client, string, error) {
	c, err := f.Client()
	if err != nil {
		return nil, "", err
	}
	ns, _, err := f.Namespace()
	return c, ns, err
}

// Flag completes a flag by fixed words.
func Flag(cmd *cobra.Command, flag string, words ...cobra.Completion) {
	// An error means that the flag is not there, or has its words already.
	_ = cmd.RegisterFlagCompletionFunc(flag, fixed(words))
}

// fixed offers those of the words that begin with what was typed.
func fixed(words []cobra.Completion) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		out := []cobra.Completion{}
		for _, w := range words {
			if strings.HasPrefix(w, prefix) {
				out = append(out, w)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// Tree completes every command below root by the words of its usage line, NAME and
// REPLICA, and by the names of its flags, where the command has not said so itself. So a
// new verb is completed without a word about it.
func Tree(root *cobra.Command, f factory.Factory, flags *genericclioptions.ConfigFlags) {
	for _, cmd := range root.Commands() {
		Tree(cmd, f, flags)
		one(cmd, f, flags)
	}
}

func one(cmd *cobra.Command, f factory.Factory, flags *genericclioptions.ConfigFlags) {
	words := arguments(cmd.Use)
	if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 && len(words) > 0 && !creates(cmd) {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) >= len(words) {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			switch words[len(args)] {
			case "NAME":
				return answer(cmd, prefix, func(ctx context.Context) ([]cobra.Completion, error) { return names(ctx, f, kindsOf(cmd)) })
			case "ID":
				return answer(cmd, prefix, func(ctx context.Context) ([]cobra.Completion, error) { return orders(ctx, f) })
			case "REPLICA":
				return answer(cmd, prefix, func(ctx context.Context) ([]cobra.Completion, error) {
					return replicas(ctx, f, nameOf(words, args), legal(cmd))
				})
			}
			if choices := strings.Split(words[len(args)], "|"); len(choices) > 1 {
				return fixed(choices)(cmd, args, prefix)
			}
			return nil, cobra.ShellCompDirectiveDefault
		}
	}
	byName := func(source func(ctx context.Context, name string) ([]cobra.Completion, error)) cobra.CompletionFunc {
		return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return answer(cmd, prefix, func(ctx context.Context) ([]cobra.Completion, error) { return source(ctx, nameOf(words, args)) })
		}
	}
	register := func(flag string, fn cobra.CompletionFunc) {
		if cmd.Flags().Lookup(flag) != nil || cmd.PersistentFlags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, fn) // fails where the command has its own
		}
	}
	for _, flag := range []string{"to", "replica"} {
		register(flag, byName(func(ctx context.Context, name string) ([]cobra.Completion, error) {
			return replicas(ctx, f, name, legal(cmd))
		}))
	}
	register("database", byName(func(ctx context.Context, name string) ([]cobra.Completion, error) { return databases(ctx, f, name) }))
	register("namespace", func(cmd *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return answer(cmd, prefix, func(ctx context.Context) ([]cobra.Completion, error) { return namespaces(ctx, f, flags) })
	})
	for flag, pick := range map[string]func(kubeconfig) []string{"context": kubeconfig.contexts, "cluster": kubeconfig.clusters, "user": kubeconfig.users} {
		register(flag, func(cmd *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return answer(cmd, prefix, func(context.Context) ([]cobra.Completion, error) {
				k, err := readKubeconfig(flags)
				if err != nil {
					return nil, err
				}
				return pick(k), nil
			})
		})
	}
	for flag, words := range map[string][]cobra.Completion{
		"color":   {"auto", "always", "never"},
		"dry-run": {"none", "client", "server"},
	} {
		if x := cmd.Flags().Lookup(flag); x != nil && x.Value.Type() == "bool" {
			continue
		}
		register(flag, fixed(words))
	}
}

// arguments are the words of a usage line after the verb: "fence off NAME REPLICA"
// gives NAME, REPLICA; brackets and dots fall away.
func arguments(use string) []string {
	words := strings.Fields(use)
	if len(words) == 0 {
		return nil
	}
	out := words[1:]
	for i, w := range out {
		out[i] = strings.Trim(w, "[].…")
	}
	if i := slices.IndexFunc(out, func(w string) bool { return strings.HasPrefix(w, "-") || strings.EqualFold(w, "flags") }); i >= 0 {
		out = out[:i]
	}
	return out
}

// creates: a name that is new cannot be completed.
func creates(cmd *cobra.Command) bool {
	return cmd.Name() == "create" || cmd.HasParent() && cmd.Parent().Name() == "create"
}

// kindsOf is which resources the verb takes.
func kindsOf(cmd *cobra.Command) Kinds {
	switch cmd.Name() {
	case "failover", "switchover", "history", "cancel", "scale", "reinit":
		return Groups
	}
	return Any
}

func nameOf(words, args []string) string {
	for i, w := range words {
		if w == "NAME" && i < len(args) {
			return args[i]
		}
	}
	return ""
}

func namespaces(ctx context.Context, f factory.Factory, flags *genericclioptions.ConfigFlags) ([]cobra.Completion, error) {
	c, err := f.Client()
	if err != nil {
		return nil, err
	}
	var list corev1.NamespaceList
	if err := c.List(ctx, &list); err != nil {
		// Who may not list namespaces gets those of his contexts.
		k, kerr := readKubeconfig(flags)
		if kerr != nil {
			return nil, err
		}
		return k.namespaces(), nil
	}
	var out []cobra.Completion
	for i := range list.Items {
		out = append(out, list.Items[i].Name)
	}
	slices.Sort(out)
	return out, nil
}
