// Package rights says which permissions of the Kubernetes API each verb of the
// plugin needs. The help text, docs/reference/permissions.md and the roles in
// deploy/rbac come from this one table; tests/cli holds it against what the verbs
// really send.
package rights

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// Scope is where a permission is needed.
type Scope string

const (
	// InNamespace of the group or instance: a Role is enough.
	InNamespace Scope = "namespace"
	// InCluster needs a ClusterRole: cluster-scoped kinds, and -A.
	InCluster Scope = "cluster"
)

// Level is the ready-made role that holds a permission.
type Level string

const (
	// View reads and changes nothing.
	View Level = "view"
	// Operate changes groups and instances; it cannot read passwords.
	Operate Level = "operate"
	// Data logs in to the servers: whoever has it can read the password of sa.
	Data Level = "data"
	// Install is the administrator of the cluster: roles can only be granted by who has them.
	Install Level = "install"
)

// Levels in the order of the documentation.
func Levels() []Level { return []Level{View, Operate, Data, Install} }

// Rule is one permission with its reason.
type Rule struct {
	Why string
	// Group of the API, "" for the core; Resource is plural, with its subresource.
	Group, Resource string
	Verbs           []string
	Scope           Scope
	// Optional permissions cost one line of the output when they are missing.
	Optional bool
	// At puts the permission into another ready-made role than that of its verb; empty
	// for the verb's own. It keeps Secrets out of the roles that only look.
	At Level
}

// Name is the resource as kubectl writes it: "pods/log", "deployments.apps".
func (r Rule) Name() string {
	name, sub, has := strings.Cut(r.Resource, "/")
	if r.Group != "" {
		name += "." + r.Group
	}
	if has {
		name += "/" + sub
	}
	return name
}

// Need is what one verb needs.
type Need struct {
	Level Level
	// None explains a verb without rules.
	None  string
	Rules []Rule
}

// Of finds the need of a command; false for one that the table does not hold.
func Of(cmd *cobra.Command) (Need, bool) { return Lookup(Path(cmd)) }

// Path is the command's words without the program's name: "create ag".
func Path(cmd *cobra.Command) string {
	var words []string
	for c := cmd; c != nil && c.HasParent(); c = c.Parent() {
		words = append(words, c.Name())
	}
	slices.Reverse(words)
	return strings.Join(words, " ")
}

// Lookup by path; a path below a listed one has the same need.
func Lookup(path string) (Need, bool) {
	all := table()
	for path != "" {
		if n, ok := all[path]; ok {
			return withGate(n), true
		}
		i := strings.LastIndexByte(path, ' ')
		if i < 0 {
			return Need{}, false
		}
		path = path[:i]
	}
	return Need{}, false
}

// withGate adds what every verb that writes an order may look at first: whether the
// operator is of a version that understands it.
func withGate(n Need) Need {
	if n.Level == Operate {
		n.Rules = append(slices.Clone(n.Rules),
			optional(rule("compare the operator's version with the plugin's", apps, "deployments", InCluster, "get", "list")),
			optional(rule("read with what options the operator was installed", "", "configmaps", InCluster, "get")))
	}
	return n
}

// Paths lists the table's commands, sorted.
func Paths() []string {
	var out []string
	for p := range table() {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

// Write prints the permissions of a command as its help shows them.
func Write(w io.Writer, cmd *cobra.Command) {
	need, ok := Of(cmd)
	if !ok || !cmd.Runnable() || cmd.HasSubCommands() {
		return
	}
	fmt.Fprintln(w, "\nPermissions:")
	if len(need.Rules) == 0 {
		fmt.Fprintf(w, "  %s\n", need.None)
		return
	}
	for _, r := range need.Rules {
		note := ""
		if r.Scope == InCluster {
			note = " (cluster)"
		}
		if r.Optional {
			note += " (optional)"
		}
		fmt.Fprintf(w, "  %s %s%s: %s\n", strings.Join(r.Verbs, ","), r.Name(), note, r.Why)
	}
}

// Union merges the rules of all commands of the given levels: one rule a resource
// and scope, verbs in the order of the API's own lists.
func Union(scope Scope, levels ...Level) []Rule {
	type key struct{ group, resource string }
	found := map[key]map[string]bool{}
	for _, n := range table() {
		for _, r := range n.Rules {
			if r.Scope != scope || !slices.Contains(levels, cmp.Or(r.At, n.Level)) {
				continue
			}
			k := key{r.Group, r.Resource}
			if found[k] == nil {
				found[k] = map[string]bool{}
			}
			for _, v := range r.Verbs {
				found[k][v] = true
			}
		}
	}
	var out []Rule
	for k, verbs := range found {
		r := Rule{Group: k.group, Resource: k.resource, Scope: scope}
		for _, v := range verbOrder() {
			if verbs[v] {
				r.Verbs = append(r.Verbs, v)
			}
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Rule) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	return out
}

func verbOrder() []string {
	return []string{"get", "list", "watch", "create", "update", "patch", "delete"}
}

func rule(why, group, resource string, scope Scope, verbs ...string) Rule {
	return Rule{Why: why, Group: group, Resource: resource, Scope: scope, Verbs: verbs}
}

func optional(r Rule) Rule {
	r.Optional = true
	return r
}

// only puts a permission into the ready-made role of another level.
func only(l Level, r Rule) Rule {
	r.At = l
	return r
}

const (
	groups    = "sqlserveravailabilitygroups"
	instances = "sqlserverinstances"
	apps      = "apps"
	rbac      = "rbac.authorization.k8s.io"
)

func readGroup(verbs ...string) Rule {
	return rule("read the group", api.Group, groups, InNamespace, verbs...)
}

func readInstance(verbs ...string) Rule {
	return rule("read the instance", api.Group, instances, InNamespace, verbs...)
}
