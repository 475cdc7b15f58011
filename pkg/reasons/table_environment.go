package reasons

// calm: nothing is wrong, or something is on its way.
func calm() []Entry {
	follow := []string{"kubectl mssql status NAME -w"}
	return []Entry{
		{"MSSQL0001", "AllGood", "Every replica is in step and the group could lose its primary.", nil, []string{"Nothing."}},
		{"MSSQL0002", "AsExpected", "This is as the spec wants it.", nil, []string{"Nothing."}},
		{"MSSQL0003", "NotBlocked", "Nothing is refused.", nil, []string{"Nothing."}},
		{"MSSQL0004", "ResizeComplete", "Every data volume has the size of the spec.", nil, []string{"Nothing."}},
		{"MSSQL0011", "Initializing", "The availability group is being made.", follow, []string{"Nothing, it goes on by itself."}},
		{"MSSQL0012", "NotInitialized", "The availability group does not exist yet.", follow, []string{"Nothing, it goes on by itself."}},
		{"MSSQL0013", "Starting", "Servers are starting.", follow, []string{"Nothing, it goes on by itself."}},
		{"MSSQL0014", "ResizeInProgress", "Volumes are growing; status names each one and for what it waits.", []string{"kubectl describe pvc data-REPLICA"}, []string{
			"Nothing, it goes on by itself.",
			"Where a file system grows only when the volume is mounted, its pod is replaced after three minutes, secondaries first.",
			"A driver that refuses to grow a volume in use (the message quotes it) needs the pod gone while it works: better re-create one replica after the other on another class.",
		}},
		{
			"MSSQL0015", "Paused", "The annotation kubectl-mssql.io/paused stops every change; the servers keep running.", []string{"kubectl mssql status NAME"},
			[]string{
				"End it when the work is done: kubectl mssql maintenance off NAME",
				"Until then nothing is failed over, repaired or replaced; a pod that ends is not made again.",
			},
		},
		{"MSSQL0016", "RolloutInProgress", "Pods are being replaced one at a time, secondaries first, the primary last.", follow, []string{"Nothing, it goes on by itself."}},
		{
			"MSSQL0017", "RolloutWaits", "Pods are to be replaced, and the next one waits for what the message names.", follow,
			[]string{"Remove what it waits for. A bad change is corrected by changing the spec again."},
		},
		{"MSSQL0018", "RolloutComplete", "Every pod runs with the settings of the spec.", nil, []string{"Nothing."}},
	}
}

// environment: the spec, its Secrets, the cluster around it.
func environment() []Entry {
	status := []string{"kubectl mssql status NAME -v"}
	return []Entry{
		{
			"MSSQL1001", "NotConfigured", "Something that the spec names is missing or cannot be used.", status,
			[]string{"The message names it, with a reason that has a code of its own."},
		},
		{
			"MSSQL1002", "BootstrapAttemptsUsedUp", "A step of making the group failed three times; the message names it.",
			[]string{"kubectl mssql logs NAME --level error"},
			[]string{
				"Remove the cause.",
				`Then: kubectl annotate sqlag NAME kubectl-mssql.io/request='{"id":"again-1","kind":"rebootstrap"}' --overwrite`,
			},
		},
		{"MSSQL1003", "InvalidSpec", "The spec cannot be carried out; the message names the field.", status, []string{"Correct the field."}},
		{
			"MSSQL1004", "InvalidAnnotation", "An annotation of the resource cannot be read; the message names it.", status,
			[]string{"Correct it, or remove it with kubectl annotate sqlag NAME KEY-"},
		},
		{
			"MSSQL1005", "SecretMissing", "The spec names a Secret that is not there.", []string{"kubectl get secrets"},
			[]string{"Create it, or leave the field out to have one made."},
		},
		{
			"MSSQL1006", "SecretKeyMissing", "A Secret that the spec names has no such key.", []string{"kubectl describe secret SECRET"},
			[]string{"Add the key, or name another one in the spec."},
		},
		{
			"MSSQL1007", "WeakPassword",
			"SQL Server would refuse the password of sa: it wants 8 to 128 characters with three of upper case, lower case, digits, symbols.",
			nil,
			[]string{"Change the Secret."},
		},
		{
			"MSSQL1008", "ImagePullFailed", "The image cannot be pulled.", []string{"kubectl describe pod REPLICA"},
			[]string{"Correct spec.image, or name a pull secret in spec.imagePullSecrets."},
		},
		{
			"MSSQL1009", "ContainerConfigError", "The kubelet cannot make the container; usually a Secret or ConfigMap is missing.",
			[]string{"kubectl describe pod REPLICA"},
			[]string{"Create what the message names."},
		},
		{
			"MSSQL1010", "Unschedulable", "No node fits.", []string{"The scheduler's words are in the message: memory, an amd64 node, a taint, or the volume's zone."},
			[]string{"Add such a node, lower the requests, or correct spec.nodeSelector, tolerations or affinity."},
		},
		{
			"MSSQL1011", "VolumePending", "The data volume is not bound.", []string{"kubectl describe pvc data-REPLICA"},
			[]string{"Check that the StorageClass exists and can provision where the pod may run."},
		},
		{
			"MSSQL1012", "ExpansionUnsupported", "The StorageClass does not allow its volumes to grow.",
			[]string{"kubectl get storageclass"},
			[]string{"Set allowVolumeExpansion where the driver can do it; else re-create one replica after the other on another class."},
		},
		{
			"MSSQL1013", "NameTaken", "An object of that name exists and is not ours.", status,
			[]string{"Remove it, or choose another name."},
		},
		{
			"MSSQL1014", "PreviousPodEndNotProven",
			"The replica's former pod vanished without a proof that its container ended; a second server on one volume would destroy it.",
			[]string{"kubectl get nodes"},
			[]string{
				"Bring its node back.",
				"If the node is really off: kubectl taint node NODE node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
			},
		},
		{
			"MSSQL1015", "ServerDoesNotStart", "sqlservr ends by itself; the message quotes it.",
			[]string{"kubectl mssql logs NAME REPLICA --previous"},
			[]string{"Remove the cause that it names: memory, disk, a setting in spec.config."},
		},
		{
			"MSSQL1016", "ServerNameMismatch", "The server calls itself by another name, usually because the volume came from another pod.",
			nil,
			[]string{"Restart the pod: kubectl delete pod REPLICA. The instance manager corrects the name at start."},
		},
		{
			"MSSQL1017", "LoginFailed", "The operator's login does not work on a replica.", nil,
			[]string{
				"Do not change the Secret NAME-operator by hand.",
				"Restart the pod: kubectl delete pod REPLICA. The instance manager sets the login again.",
			},
		},
		{
			"MSSQL1018", "CertificateFailed", "A certificate could not be made or read; the message says which.", nil,
			[]string{"kubectl delete secret REPLICA-tls makes it anew."},
		},
		{
			"MSSQL1019", "ControllerError", "The operator could not finish its pass; it tries again.",
			[]string{"kubectl mssql logs NAME --level error"},
			[]string{"If it stays, see what the API server refuses: kubectl mssql check"},
		},
	}
}
