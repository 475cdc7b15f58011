package manifests

import (
	rbacv1 "k8s.io/api/rbac/v1"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// rule is one permission of the controller with the reason why it is needed.
// The reasons are printed in docs/reference/permissions.md.
type rule struct {
	why       string
	groups    []string
	resources []string
	verbs     []string
}

// namespacedRules are needed in every watched namespace.
func namespacedRules() []rule {
	return []rule{
		{"read the resources that it reconciles", []string{api.Group}, []string{"sqlserveravailabilitygroups", "sqlserverinstances"}, []string{"get", "list", "watch"}},
		{"write what it saw", []string{api.Group}, []string{"sqlserveravailabilitygroups/status", "sqlserverinstances/status"}, []string{"get", "patch", "update"}},
		{"make what it creates go with its owner, where the cluster asks who may set owners", []string{api.Group}, []string{"sqlserveravailabilitygroups/finalizers", "sqlserverinstances/finalizers"}, []string{"update"}},
		{"run one pod per replica, label its role, replace an outdated one", []string{""}, []string{"pods"}, []string{"get", "list", "watch", "create", "patch", "delete"}},
		{"make and grow data volumes; never delete them", []string{""}, []string{"persistentvolumeclaims"}, []string{"get", "list", "watch", "create", "patch"}},
		{"Services of the group and its configuration", []string{""}, []string{"services", "configmaps"}, []string{"get", "list", "watch", "create", "patch", "delete"}},
		{"whether the write Service has followed a new primary", []string{"discovery.k8s.io"}, []string{"endpointslices"}, []string{"list"}},
		{"the group's own passwords and certificates, and the Secrets that the spec names", []string{""}, []string{"secrets"}, []string{"get", "list", "watch", "create", "patch"}},
		{"one account per group", []string{""}, []string{"serviceaccounts"}, []string{"get", "list", "watch", "create", "patch"}},
		{"a role per group that lets its pods renew their own Lease", []string{"rbac.authorization.k8s.io"}, []string{"roles", "rolebindings"}, []string{"get", "list", "watch", "create", "patch"}},
		{"the record of who may write", []string{"coordination.k8s.io"}, []string{"leases"}, []string{"get", "list", "watch", "create", "update", "patch"}},
		{"budgets that follow the size of the group", []string{"policy"}, []string{"poddisruptionbudgets"}, []string{"get", "list", "watch", "create", "patch", "delete"}},
		{"tell what happened", []string{"", "events.k8s.io"}, []string{"events"}, []string{"create", "patch"}},
		{"its pods may read their own group (a role can only grant what the controller has)", []string{api.Group}, []string{"sqlserveravailabilitygroups", "sqlserverinstances"}, []string{"get"}},
	}
}

// clusterRules are needed once, for objects outside namespaces.
func clusterRules() []rule {
	return []rule{
		{"proof of death: a node's boot id and taints", []string{""}, []string{"nodes"}, []string{"get", "list", "watch"}},
		{"the reclaim policy of bound volumes", []string{""}, []string{"persistentvolumes"}, []string{"get", "patch"}},
		{"whether a class can expand", []string{"storage.k8s.io"}, []string{"storageclasses"}, []string{"get", "list", "watch"}},
	}
}

// ownRules are needed in the operator's own namespace.
func ownRules() []rule {
	return []rule{
		{"leader election", []string{"coordination.k8s.io"}, []string{"leases"}, []string{"get", "create", "update", "patch"}},
		{"leader election events", []string{"", "events.k8s.io"}, []string{"events"}, []string{"create", "patch"}},
	}
}

func policyRules(rules []rule) []rbacv1.PolicyRule {
	out := make([]rbacv1.PolicyRule, 0, len(rules))
	for _, r := range rules {
		out = append(out, rbacv1.PolicyRule{APIGroups: r.groups, Resources: r.resources, Verbs: r.verbs})
	}
	return out
}
