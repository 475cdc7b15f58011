package rights

import (
	"slices"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// table holds every verb. A new verb adds its row here; tests/cli fails without it,
// and fails when the verb sends what its row does not hold.
func table() map[string]Need {
	return map[string]Need{
		"install":   {Level: Install, Rules: append(installRules("create", "patch"), preflight()...)},
		"upgrade":   {Level: Install, Rules: append(installRules("create", "patch", "list", "delete"), optional(rule("say what was told about a controller that does not start", "", "events", InCluster, "list")))},
		"uninstall": {Level: Install, Rules: append(usersOfCRDs(), installRules("list", "delete")...)},
		"check":     {Level: View, Rules: append(preflight(), checkRules()...)},
		"report":    {Level: Data, Rules: reportRules()},
		"version": {Level: View, Rules: []Rule{
			optional(rule("find operators and their versions", apps, "deployments", InCluster, "get", "list")),
			optional(rule("read with what options they were installed", "", "configmaps", InCluster, "get")),
			optional(rule("read the stored versions", "apiextensions.k8s.io", "customresourcedefinitions", InCluster, "get")),
			optional(rule("the build of each group's servers", api.Group, groups, InCluster, "list")),
			optional(rule("the build of each instance's server", api.Group, instances, InCluster, "list")),
			optional(rule("the versions of the instance managers", "", "pods", InCluster, "list")),
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
			optional(readInstance("get", "list")),
			optional(rule("the pods: ages, and what they wait for", "", "pods", InNamespace, "list")),
			optional(rule("the record of who may write, and the move under way", "coordination.k8s.io", "leases", InNamespace, "get")),
			optional(rule("queues, lag and seeding, from the servers' instance managers", "", "pods/proxy", InNamespace, "get")),
			only(Data, optional(rule("the same, where the API server's proxy cannot reach the pods", "", "pods/portforward", InNamespace, "create"))),
			optional(rule("tell where the write Service leads", "discovery.k8s.io", "endpointslices", InNamespace, "list")),
			optional(rule("tell that no operator runs", apps, "deployments", InCluster, "list")),
			optional(rule("tell that none looks: when the acting one last renewed its lock", "coordination.k8s.io", "leases", InCluster, "get")),
			optional(rule("name the taints that keep pods away", "", "nodes", InCluster, "list")),
			optional(rule("-v: how many pods may be evicted", "policy", "poddisruptionbudgets", InNamespace, "get")),
			optional(rule("-vv: what was told", "", "events", InNamespace, "list")),
		}},
		"list": {Level: View, Rules: []Rule{
			readGroup("list"),
			optional(readInstance("list")),
			optional(rule("tell that no operator runs", apps, "deployments", InCluster, "list")),
			optional(rule("tell that none looks: when the acting one last renewed its lock", "coordination.k8s.io", "leases", InCluster, "get")),
		}},
		"history": {Level: View, Rules: []Rule{readGroup("get")}},
		"events": {Level: View, Rules: []Rule{
			optional(readGroup("get")),
			rule("read what was told", "", "events", InNamespace, "list"),
			optional(rule("find the operator", apps, "deployments", InCluster, "list")),
			optional(rule("read what was told about it", "", "events", InCluster, "list")),
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
			optional(rule("--direct: see whether an operator acts; --dry-run: tell when it last did", "coordination.k8s.io", "leases", InCluster, "get")),
			optional(rule("--dry-run: tell that the primary does not renew", "coordination.k8s.io", "leases", InNamespace, "get")),
			only(Data, optional(rule("--direct: hold the group's Lease", "coordination.k8s.io", "leases", InNamespace, "get", "create", "update"))),
			only(Data, optional(rule("--direct: the operator's login and authority", "", "secrets", InNamespace, "get"))),
			only(Data, optional(rule("--direct: see and label the pods", "", "pods", InNamespace, "get", "patch"))),
			only(Data, optional(rule("--direct: see the volumes' claims", "", "persistentvolumeclaims", InNamespace, "get"))),
			only(Data, optional(rule("--direct: see the nodes", "", "nodes", InCluster, "list"))),
			only(Data, optional(rule("--direct: reach servers and instance managers", "", "pods/portforward", InNamespace, "create"))),
			only(Data, optional(rule("--direct: record the move", api.Group, groups+"/status", InNamespace, "patch"))),
		}},
		"restart": {Level: Operate, Rules: []Rule{
			readGroup("get"),
			rule("order the restart", api.Group, groups, InNamespace, "patch"),
			optional(rule("restart an instance", api.Group, instances, InNamespace, "get", "patch")),
		}},
		"cancel": {Level: Operate, Rules: []Rule{
			readGroup("get", "list"),
			rule("take back the order of a group", api.Group, groups, InNamespace, "patch"),
			optional(rule("take back that of an instance", api.Group, instances, InNamespace, "get", "list", "patch")),
		}},
		"fence on": {Level: Operate, Rules: []Rule{
			readGroup("get"),
			rule("fence the replica", api.Group, groups, InNamespace, "patch"),
			optional(rule("fence an instance", api.Group, instances, InNamespace, "get", "patch")),
			optional(rule("see whether an operator acts that moves the primary first", "coordination.k8s.io", "leases", InCluster, "get")),
		}},
		"fence off": {Level: Operate, Rules: []Rule{
			readGroup("get"),
			rule("take the fence away", api.Group, groups, InNamespace, "patch"),
			optional(rule("take that of an instance away", api.Group, instances, InNamespace, "get", "patch")),
		}},
		"maintenance on":  {Level: Operate, Rules: pauseRules("pause")},
		"maintenance off": {Level: Operate, Rules: pauseRules("end the maintenance of")},
		"fence list":      {Level: View, Rules: []Rule{readGroup("get", "list"), optional(readInstance("get", "list"))}},
		"scale": {Level: Operate, Rules: []Rule{
			readGroup("get"),
			rule("add replicas to the group's spec", api.Group, groups, InNamespace, "patch"),
		}},
		"reinit": {Level: Operate, Rules: []Rule{
			readGroup("get"),
			rule("fence the replica meanwhile", api.Group, groups, InNamespace, "patch"),
			optional(readInstance("get")),
			only(Data, rule("delete its volume's claim", "", "persistentvolumeclaims", InNamespace, "list", "delete")),
			only(Data, rule("delete its pod", "", "pods", InNamespace, "get", "delete")),
		}},
		"resize": {Level: Operate, Rules: []Rule{
			readGroup("get"),
			rule("change the group's spec", api.Group, groups, InNamespace, "patch"),
			optional(rule("change an instance's spec", api.Group, instances, InNamespace, "get", "patch")),
			optional(rule("see at once whether the volumes can grow", "storage.k8s.io", "storageclasses", InCluster, "get", "list")),
		}},
		"completion": {Level: View, None: "none: it works without a cluster"},
		"help":       {Level: View, None: "none: it works without a cluster"},
		"explain":    {Level: View, None: "none: it works without a cluster"},
	}
}

func pauseRules(what string) []Rule {
	return []Rule{
		readGroup("get"),
		rule(what+" a group", api.Group, groups, InNamespace, "patch"),
		optional(rule(what+" an instance", api.Group, instances, InNamespace, "get", "patch")),
	}
}

// installRules cover the kinds of manifests.Render. Roles can only be granted by
// somebody who has what they grant, so in practice this is cluster-admin.
func installRules(writes ...string) []Rule {
	verbs := append([]string{"get"}, writes...)
	what := "apply"
	removes := !slices.Contains(writes, "create")
	if removes {
		what = "remove"
	}
	all := []Rule{
		rule(what+" the resource definitions", "apiextensions.k8s.io", "customresourcedefinitions", InCluster, verbs...),
		rule(what+" the record of the installation's options", "", "configmaps", InCluster, verbs...),
		rule(what+" the operator's account", "", "serviceaccounts", InCluster, verbs...),
		rule(what+" the operator's roles", rbac, "clusterroles", InCluster, verbs...),
		rule(what+" the operator's bindings", rbac, "clusterrolebindings", InCluster, verbs...),
		rule(what+" the roles of the operator's namespace", rbac, "roles", InCluster, verbs...),
		rule(what+" the bindings of the operator's namespace", rbac, "rolebindings", InCluster, verbs...),
		rule(what+" the operator", apps, "deployments", InCluster, verbs...),
		rule(what+" the operator's disruption budget", "policy", "poddisruptionbudgets", InCluster, verbs...),
		optional(rule(what+" the operator's network policy, with --network-policy", "networking.k8s.io", "networkpolicies", InCluster, verbs...)),
		optional(rule(what+" where Prometheus gathers metrics, with --monitoring", "monitoring.coreos.com", "podmonitors", InCluster, verbs...)),
		optional(rule(what+" the alerts, with --monitoring", "monitoring.coreos.com", "prometheusrules", InCluster, verbs...)),
	}
	if removes {
		return all
	}
	return append([]Rule{rule("apply the operator's namespace", "", "namespaces", InCluster, "get", "create", "patch")},
		append(all, optional(rule("say why a controller does not start", "", "pods", InCluster, "list")))...)
}

// preflight is what check --pre, and install before it begins, look at.
func preflight() []Rule {
	return []Rule{
		rule("ask whether you may install; everybody may ask", "authorization.k8s.io", "selfsubjectaccessreviews", InCluster, "create"),
		optional(rule("find nodes that can run SQL Server", "", "nodes", InCluster, "list")),
		optional(rule("compare the nodes' clocks", "coordination.k8s.io", "leases", InCluster, "list")),
		optional(rule("find a class for the volumes", "storage.k8s.io", "storageclasses", InCluster, "list")),
		optional(rule("look at the namespaces", "", "namespaces", InCluster, "get")),
		optional(rule("find other operators", apps, "deployments", InCluster, "get", "list")),
		optional(rule("say what was told about a controller that does not start", "", "events", InCluster, "list")),
	}
}

// checkRules are what check looks at when the operator is installed. None is a must: a
// row that cannot be seen says so.
func checkRules() []Rule {
	return []Rule{
		optional(rule("read the resource definitions", "apiextensions.k8s.io", "customresourcedefinitions", InCluster, "get")),
		optional(rule("read with what options an operator was installed", "", "configmaps", InCluster, "get")),
		optional(rule("compare the operator's rules with those that it needs", rbac, "clusterroles", InCluster, "get")),
		optional(rule("the same for its Roles", rbac, "roles", InCluster, "get")),
		optional(rule("list groups", api.Group, groups, InNamespace, "list")),
		optional(rule("list instances", api.Group, instances, InNamespace, "list")),
		optional(rule("see who holds the Lease, and the leader's lock", "coordination.k8s.io", "leases", InNamespace, "get")),
		optional(rule("see the pods", "", "pods", InNamespace, "list")),
		optional(rule("see the volumes", "", "persistentvolumeclaims", InNamespace, "list")),
		optional(rule("see whether they can grow", "storage.k8s.io", "storageclasses", InCluster, "get")),
		optional(rule("see the disruption budget", "policy", "poddisruptionbudgets", InNamespace, "list")),
		only(Data, optional(rule("how long certificates last; nothing else of a Secret is looked at", "", "secrets", InNamespace, "get"))),
	}
}

// reportRules: nothing but the resource itself is a must; what may not be read is a line
// in errors.txt. Secrets are read so that their values can be taken out of everything else.
func reportRules() []Rule {
	out := []Rule{readGroup("get"), readInstance("get")}
	for _, r := range []Rule{
		rule("take their values out of every text; they go nowhere", "", "secrets", InNamespace, "get", "list"),
		rule("pods", "", "pods", InNamespace, "get", "list"),
		rule("their logs", "", "pods/log", InNamespace, "get"),
		rule("what the instance managers say", "", "pods/proxy", InNamespace, "get"),
		rule("what the servers say", "", "pods/portforward", InNamespace, "create"),
		rule("events", "", "events", InNamespace, "list"),
		rule("claims", "", "persistentvolumeclaims", InNamespace, "get", "list"),
		rule("Services", "", "services", InNamespace, "list"),
		rule("where they lead", "discovery.k8s.io", "endpointslices", InNamespace, "list"),
		rule("configuration", "", "configmaps", InNamespace, "get", "list"),
		rule("accounts", "", "serviceaccounts", InNamespace, "list"),
		rule("Roles", rbac, "roles", InNamespace, "get", "list"),
		rule("their bindings", rbac, "rolebindings", InNamespace, "list"),
		rule("budgets", "policy", "poddisruptionbudgets", InNamespace, "list"),
		rule("network policies", "networking.k8s.io", "networkpolicies", InNamespace, "list"),
		rule("the Lease, and the leader's lock", "coordination.k8s.io", "leases", InNamespace, "get"),
		rule("groups and instances, for their checks and versions", api.Group, groups, InNamespace, "list"),
		rule("the same for instances", api.Group, instances, InNamespace, "list"),
		rule("volumes", "", "persistentvolumes", InCluster, "get"),
		rule("nodes", "", "nodes", InCluster, "get", "list"),
		rule("storage classes", "storage.k8s.io", "storageclasses", InCluster, "get", "list"),
		rule("resource definitions", "apiextensions.k8s.io", "customresourcedefinitions", InCluster, "get"),
		rule("operators", apps, "deployments", InCluster, "get", "list"),
		rule("their roles", rbac, "clusterroles", InCluster, "get"),
		only(Install, rule("their pods", "", "pods", InCluster, "list")),
		only(Install, rule("their logs", "", "pods/log", InCluster, "get")),
		only(Install, rule("their events", "", "events", InCluster, "list")),
		only(Install, rule("their settings", "", "configmaps", InCluster, "list")),
		only(Install, rule("take the values of their Secrets out of every text", "", "secrets", InCluster, "list")),
	} {
		out = append(out, optional(r))
	}
	return out
}

func usersOfCRDs() []Rule {
	return []Rule{
		rule("say which groups would run without the operator", api.Group, groups, InCluster, "list"),
		rule("say which instances would run without the operator", api.Group, instances, InCluster, "list"),
	}
}
