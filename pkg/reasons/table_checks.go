package reasons

// checks: what `check` looks at. 50 before an installation, 51 the installation, 52 a group.
func checks() []Entry {
	return []Entry{
		{
			"MSSQL5001", "APIServerUnreachable", "The API server does not answer. Nothing could be looked at: the kubeconfig's server did not answer, or refused the credentials.",
			[]string{"kubectl cluster-info"},
			[]string{"Try `kubectl cluster-info` with the same --context and --kubeconfig."},
		},
		{
			"MSSQL5002", "KubernetesTooOld", "Kubernetes is too old. The resource definitions use validation rules that older API servers refuse.",
			nil,
			[]string{"Upgrade the cluster to the version that the row names, or newer."},
		},
		{
			"MSSQL5003", "LocalClockOff", "This machine's clock differs from the API server's. Ages that the plugin prints are wrong by that much, and client certificates may look not yet valid. No decision of the operator rests on it.",
			nil,
			[]string{"Set this machine's clock by NTP."},
		},
		{
			"MSSQL5004", "NodeClockOff", "A node's clock differs from the API server's. Certificates made by the operator may look not yet valid there, and log lines do not line up. Leases and write leases do not suffer: no two machines' clocks are ever compared.",
			[]string{"kubectl mssql check --pre"},
			[]string{"Set the node's clock by NTP."},
		},
		{
			"MSSQL5005", "NoNodeForSQLServer", "No node can run SQL Server. SQL Server has no build but for amd64, and no ready, schedulable amd64 node was found.",
			nil,
			[]string{"Add an amd64 node."},
		},
		{
			"MSSQL5006", "TooLittleMemory", "A node has little memory. SQL Server does not start with less than 2000 MB. No amd64 node has that much allocatable memory.",
			nil,
			[]string{"Add a node with at least 2 GiB of allocatable memory for each server."},
		},
		{
			"MSSQL5007", "NoStorageClass", "No StorageClass to make volumes with. Without a default class every group must name one, or its volumes stay Pending.",
			[]string{"kubectl get storageclass"},
			[]string{"Mark a class as the default, or name one with --storage-class when a group is created."},
		},
		{
			"MSSQL5008", "ClassCannotExpand", "Volumes of this StorageClass cannot grow. `resize --storage` will be refused for servers with such volumes.",
			nil,
			[]string{"Use a class with allowVolumeExpansion: true."},
		},
		{
			"MSSQL5009", "PermissionMissing", "A permission is missing. The row names the verb and the kind that you may not use.",
			[]string{"kubectl auth can-i VERB RESOURCE -n NAMESPACE"},
			[]string{"Ask a cluster administrator for it, or let one run the command."},
		},
		{
			"MSSQL5010", "ManagedByAnotherTool", "Another tool manages the operator. Helm, OLM, Argo CD or Flux would undo what install and upgrade change.",
			nil,
			[]string{"Change the version with that tool; the row says how."},
		},
		{
			"MSSQL5011", "DefinitionConflict", "The resource definitions belong to somebody else. Definitions of the same name are managed by another tool, or hold versions that this plugin does not know.",
			nil,
			[]string{"Use the plugin of the newer version, or the tool that manages them."},
		},
		{
			"MSSQL5012", "OtherOperator", "Another operator watches the same namespaces. Two operators that reconcile the same group fight over its pods. The Lease keeps its data safe, nothing else.",
			nil,
			[]string{"Uninstall one of them, or give them different --watch-namespaces."},
		},
		{
			"MSSQL5013", "NamespaceMissing", "A namespace is missing or going away. Nothing can be made in a namespace that does not exist or is being deleted.",
			nil,
			[]string{"Create it, or wait until it is gone and create it anew."},
		},
		{
			"MSSQL5099", "NotSeen", "Something could not be looked at. The row says what was refused. It is neither in order nor broken as far as is known.",
			nil,
			[]string{"Ask for the permission that the message names, or look by hand."},
		},
		{
			"MSSQL5101", "OperatorNotInstalled", "No operator is installed. No Deployment of the operator was found.",
			nil,
			[]string{"Run `kubectl mssql install`."},
		},
		{
			"MSSQL5102", "VersionSkew", "Plugin and operator are of different versions. One minor version apart is supported. Beyond it new orders may be refused and old screens may lack fields.",
			[]string{"kubectl mssql version"},
			[]string{"Upgrade the older one: `kubectl mssql upgrade`, or install the plugin of the operator's version."},
		},
		{
			"MSSQL5103", "DefinitionMissing", "A resource definition is missing or not served. The API server does not serve availability groups or instances.",
			[]string{"kubectl describe crd sqlserveravailabilitygroups.kubectl-mssql.io"},
			[]string{"Run `kubectl mssql install` again; see `kubectl describe crd`."},
		},
		{
			"MSSQL5104", "StoredVersionLost", "Objects are stored in a version that is not defined. status.storedVersions names a version that the definition does not serve; the next upgrade would lose such objects.",
			nil,
			[]string{"Rewrite all objects, then take the version out of status.storedVersions."},
		},
		{
			"MSSQL5105", "PodsNotReady", "Controllers are not up. Nobody fails over, and nothing is reconciled, while no controller is up. The servers keep running.",
			[]string{"kubectl get pods -A -l app.kubernetes.io/part-of=kubectl-mssql"},
			[]string{"The row has the pod's own reason; `kubectl -n NAMESPACE describe pods`."},
		},
		{
			"MSSQL5106", "NobodyLeads", "No controller leads. The lock of the leader election is missing or was not renewed.",
			nil,
			[]string{"See the controllers' logs: `kubectl mssql report` gathers them."},
		},
		{
			"MSSQL5107", "OperatorRoleIncomplete", "The operator's role lacks rules. Rules that this version needs are missing; some of its work fails with `forbidden`.",
			nil,
			[]string{"Run `kubectl mssql install` or `upgrade` again as a cluster administrator."},
		},
		{
			"MSSQL5108", "SettingsUnknown", "The options of the installation are not known. upgrade cannot repeat the options of an installation that kept none.",
			nil,
			[]string{"Give them once: `kubectl mssql install` with the same flags."},
		},
		{
			"MSSQL5109", "DeprecatedAPIVersion", "A deprecated API version is in use. Somebody writes objects in a version that will go away.",
			nil,
			[]string{"Change the apiVersion in manifests and pipelines; the row names the writers."},
		},
		{
			"MSSQL5201", "NotWell", "A group or instance is not well. The row quotes the operator's own verdict.",
			[]string{"kubectl mssql status NAME"},
			[]string{"`kubectl mssql status NAME` names causes and next commands."},
		},
		{
			"MSSQL5202", "NoTakeOver", "No replica could take over. If the primary were lost now, writes would stop until a person decides.",
			[]string{"kubectl mssql failover NAME --dry-run"},
			[]string{"`kubectl mssql failover NAME --dry-run` names the rule that refuses each replica."},
		},
		{
			"MSSQL5203", "LeaseMissing", "The Lease that says who may write is missing or unreadable. Without it no instance manager may renew the write lease. The operator makes it anew for the replica that is PRIMARY.",
			[]string{"kubectl get lease NAME-primary -o yaml"},
			[]string{"If it does not come back, see the controllers' logs."},
		},
		{
			"MSSQL5204", "LeaseNotRenewed", "The primary does not renew its Lease. Either its instance manager cannot reach the API server, or it is gone.",
			[]string{"kubectl mssql status NAME"},
			[]string{"`kubectl mssql status NAME` tells which."},
		},
		{
			"MSSQL5205", "NoWriteLease", "The group has no working write lease. SQL Server answered Msg 47116: a silent primary cannot be waited out, only a proof of its death counts.",
			nil,
			[]string{"For a dead node set the out-of-service taint; for the long run create the group anew on a newer SQL Server."},
		},
		{
			"MSSQL5206", "CertificateEnds", "A certificate ends soon. Certificates are made anew in the last third of their life. One that is nearer to its end is not renewed.",
			nil,
			[]string{"See the operator's logs. A TDS certificate is taken up when its server restarts: `kubectl mssql restart NAME`."},
		},
		{
			"MSSQL5207", "VolumeNotInOrder", "A data volume is not in order. The volume is not bound, or cannot grow.",
			[]string{"kubectl describe pvc data-REPLICA"},
			[]string{"`kubectl describe pvc data-REPLICA`."},
		},
		{
			"MSSQL5208", "BudgetMissing", "Evictions are not guarded. Without a PodDisruptionBudget a drain may evict several replicas at once.",
			nil,
			[]string{"The operator makes it; see why it could not in its logs."},
		},
		{
			"MSSQL5209", "ReplicasShareNode", "Replicas share a node. One lost node takes several replicas, and perhaps the quorum, with it.",
			[]string{"kubectl get pods -o wide"},
			[]string{"Add nodes, or lift what keeps the scheduler from spreading: affinity, node selector, volume zones."},
		},
		{
			"MSSQL5210", "RestoreSecretMissing", "A Secret that a restore needs is missing. Certificate authority and passwords exist nowhere else. Without them a restored volume cannot be taken into service.",
			nil,
			[]string{"Restore the Secret from a backup; have the backup contain the Secrets that the row names."},
		},
		{
			"MSSQL5211", "NamespaceNotWatched", "No operator watches this namespace. Nothing reconciles the group, and nobody fails it over.",
			nil,
			[]string{"Add the namespace to --watch-namespaces of an operator, or install one."},
		},
	}
}
