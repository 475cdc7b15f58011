package rights

import api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"

// table holds every verb. A new verb adds its row here; tests/cli fails without it,
// and fails when the verb sends what its row does not hold.
func table() map[string]Need {
	return map[string]Need{
		"install":   {Level: Install, Rules: installRules("create", "patch")},
		"uninstall": {Level: Install, Rules: append(usersOfCRDs(), installRules("delete")...)},
		"version": {Level: View, Rules: []Rule{
			optional(rule("find operators and their versions", apps, "deployments", InCluster, "list")),
		}},
		"create ag": {Level: Operate, Rules: []Rule{
			rule("create the group", api.Group, groups, InNamespace, "create"),
			rule("wait until it is healthy", api.Group, groups, InNamespace, "get"),
		}},
		"create instance": {Level: Operate, Rules: []Rule{
			rule("create the instance", api.Group, instances, InNamespace, "create"),
			rule("wait until it is up", api.Group, instances, InNamespace, "get"),
		}},
		"status": {Level: View, Rules: []Rule{
			readGroup("get", "list"),
			optional(rule("list instances too", api.Group, instances, InNamespace, "list")),
			optional(rule("the ages of the pods", "", "pods", InNamespace, "list")),
		}},
		"logs": {Level: View, Rules: []Rule{
			rule("find the servers", "", "pods", InNamespace, "list"),
			rule("read their logs", "", "pods/log", InNamespace, "get"),
			optional(rule("find the operator", "", "pods", InCluster, "list")),
			optional(rule("read its lines about the group", "", "pods/log", InCluster, "get")),
		}},
		"sql": {Level: Data, Rules: []Rule{
			readGroup("get"),
			readInstance("get"),
			rule("the password of sa; not needed with --login", "", "secrets", InNamespace, "get"),
			rule("reach the server", "", "pods/portforward", InNamespace, "create"),
		}},
		"failover": {Level: Operate, Rules: []Rule{
			readGroup("get"),
			rule("request the move", api.Group, groups, InNamespace, "patch"),
		}},
		"completion": {Level: View, None: "none: it works without a cluster"},
		"help":       {Level: View, None: "none: it works without a cluster"},
		"explain":    {Level: View, None: "none: it works without a cluster"},
	}
}

func usersOfCRDs() []Rule {
	return []Rule{
		rule("say which groups would run without the operator", api.Group, groups, InCluster, "list"),
		rule("say which instances would run without the operator", api.Group, instances, InCluster, "list"),
	}
}

// installRules cover the kinds of manifests.Render. Roles can only be granted by
// somebody who has what they grant, so in practice this is cluster-admin.
func installRules(writes ...string) []Rule {
	verbs := writes
	if writes[0] != "delete" {
		verbs = append([]string{"get"}, writes...)
	}
	what := "apply"
	if writes[0] == "delete" {
		what = "remove"
	}
	all := []Rule{
		rule(what+" the resource definitions", "apiextensions.k8s.io", "customresourcedefinitions", InCluster, verbs...),
		rule(what+" the operator's account", "", "serviceaccounts", InCluster, verbs...),
		rule(what+" the operator's roles", rbac, "clusterroles", InCluster, verbs...),
		rule(what+" the operator's bindings", rbac, "clusterrolebindings", InCluster, verbs...),
		rule(what+" the roles of the operator's namespace", rbac, "roles", InCluster, verbs...),
		rule(what+" the bindings of the operator's namespace", rbac, "rolebindings", InCluster, verbs...),
		rule(what+" the operator", apps, "deployments", InCluster, verbs...),
		rule(what+" the operator's disruption budget", "policy", "poddisruptionbudgets", InCluster, verbs...),
	}
	if writes[0] == "delete" {
		return all
	}
	return append([]Rule{rule("apply the operator's namespace", "", "namespaces", InCluster, verbs...)},
		append(all, optional(rule("say why a controller does not start", "", "pods", InCluster, "list")))...)
}
