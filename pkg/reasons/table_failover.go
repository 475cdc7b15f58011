package reasons

// failover: who may write, who may be promoted, and what requests are refused.
func failover() []Entry {
	dry := []string{"kubectl mssql failover NAME --dry-run names the rule that refuses each replica."}
	return []Entry{
		{
			"MSSQL2001", "NoSafeCandidate", "No replica may be promoted without loss.", dry,
			[]string{
				"Bring back the replica that is missing or behind; the block ends by itself.",
				"Last resort, with loss: kubectl mssql failover NAME --to REPLICA --allow-data-loss",
			},
		},
		{
			"MSSQL2002", "PrimaryCutOffFromAPI", "The primary lives and its peers can see it; only the API server cannot. Writes go on.", nil,
			[]string{
				"Repair the path between its node and the API server.",
				"When the operator cannot reach it either, it is failed over after failsafeHoldOffSeconds, or on request.",
			},
		},
		{
			"MSSQL2003", "ConfigurationCommitPending", "A change of the group's configuration waits for its quorum: the primary acknowledges nothing.", nil,
			[]string{
				"Bring the secondaries back.",
				"Two replicas, and replicas that answer but do not follow: the operator promotes the primary onto itself, which loses nothing.",
				"When the majority is lost for longer: kubectl mssql failover NAME --to PRIMARY --allow-data-loss=unlimited. It is the last primary itself and loses nothing.",
			},
		},
		{
			"MSSQL2004", "NotEnoughAnswers",
			"Too few synchronous replicas answer to prove that the candidate holds every acknowledged commit (R13).", dry,
			[]string{
				"Bring one of the named replicas back: pod Pending (scheduler's message, volume still attached elsewhere), node NotReady, or network.",
				"If a node is powered off for good: kubectl taint node NODE node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
			},
		},
		{
			"MSSQL2005", "OldPrimaryNotFenced", "The old primary is silent and not yet proven unable to write (R9).", nil,
			[]string{
				"Nothing: the wait of at most D (24 s in the Balanced profile) is counted from its last sign of authority.",
				"A proof of death ends it at once.",
			},
		},
		{
			"MSSQL2006", "AllCandidatesUnsynchronized", "SQL Server itself refused every candidate (Msg 41142): none holds everything.", dry,
			[]string{
				"Bring the old primary back; it is complete by definition.",
				"If its volume is lost, restore a backup, or accept the loss with --allow-data-loss.",
			},
		},
		{
			"MSSQL2007", "AutomaticFailoverOff", "automaticFailover.enabled is false or the cluster type is NONE.", nil,
			[]string{"kubectl mssql failover NAME, or switch it on."},
		},
		{
			"MSSQL2008", "WriteLeaseUnusable",
			"The group was made without a write lease (Msg 47116), so a silent primary cannot be waited out: only proof of death counts.", nil,
			[]string{
				"For a dead node set the out-of-service taint.",
				"For the long run create the group anew.",
			},
		},
		{
			"MSSQL2009", "ManagersNotSealed",
			"A promotion must first make enough instance managers refuse the old primary's questions (R22), and too few answered.", nil,
			[]string{"Make port 8443 of the pods reachable from the operator and from each other."},
		},
		{
			"MSSQL2010", "PromotionPending", "A promotion was sent and its result was not seen yet.", nil,
			[]string{"Nothing: after the statement's own expiry it is looked at again."},
		},
		{
			"MSSQL2011", "NotFailoverReady", "Clients can write, but losing the primary now would block writes.", dry,
			[]string{"Bring the refused replicas in step before you take anything down."},
		},
		{
			"MSSQL2012", "PromiseMissing", "Too few secondaries could be taken off the old primary before the last reading (R11).", nil,
			[]string{"Bring the named replica back."},
		},
		{
			"MSSQL2013", "AuthorityLost",
			"The Lease was deleted or restored from a backup and nobody is primary by SQL Server's own word.",
			[]string{"kubectl mssql logs NAME shows which replica was primary last."},
			[]string{"Promote that one on request: kubectl mssql failover NAME --to REPLICA"},
		},
		{
			"MSSQL2014", "TwoPrimaries", "Two servers say PRIMARY. The one without the Lease is taken offline; nothing is discarded.", nil,
			[]string{"Nothing; then compare what was written by hand on the other one."},
		},
		{
			"MSSQL2015", "ForcedByHand", "Somebody forced a replica with T-SQL, so the other copies may differ.", nil,
			[]string{
				"Confirm: kubectl mssql failover NAME --to THAT_REPLICA --allow-data-loss",
				"Then resume or re-seed the others.",
			},
		},
		{
			"MSSQL2016", "PrimaryNotFollowed", "Somebody moved the primary with T-SQL to a replica that the rules refuse.", dry,
			[]string{"Move it back, or remove what the refusing rule names."},
		},
		{
			"MSSQL2017", "NoPrimary", "No replica is PRIMARY.", nil,
			[]string{"See the neighbouring condition FailoverBlocked, or the move under way."},
		},
		{
			"MSSQL2018", "ServiceLeadsElsewhere",
			"The Service for writes does not lead to the primary, or to nobody: its pod is not ready, or Kubernetes has not followed the new label. After an outage of the API server that can take minutes.",
			[]string{"kubectl get endpointslices -l kubernetes.io/service-name=NAME-rw", "kubectl get pod REPLICA -L kubectl-mssql.io/role"},
			[]string{
				"Wait a minute: the controllers of Kubernetes and kube-proxy ask again after an outage with pauses of up to 60 s.",
				"The operator changes an annotation of the Service every five seconds until it follows, as Kubernetes by itself tries again after 1, 2, 4, … 64 s and more. Where no operator runs: kubectl annotate service NAME-rw looked=$(date +%s) --overwrite",
				"If it stays: restart kube-controller-manager, or on the clients' nodes kube-proxy.",
			},
		},
		{
			"MSSQL2019", "StatusOutdated",
			"What the resource says is old, or the servers themselves say otherwise: the operator's lock or the primary's Lease was not renewed for a while, or the primary does not say that it is one. Roles and states are shown as the servers say them, and nobody has judged yet who could take over.",
			[]string{"kubectl mssql status NAME -w", "kubectl mssql check NAME"},
			[]string{
				"Wait some seconds: after an outage of the API server, or the loss of a primary, the operator has not looked yet.",
				"If it stays, and no operator looks: see its pods and their log, and move the primary yourself if you must: kubectl mssql failover NAME --direct",
			},
		},
		{
			"MSSQL2020", "CommitsWaitForSecondaries",
			"The primary acknowledges nothing: fewer secondaries are SYNCHRONIZED than the durability asks for. Nothing is lost, and nothing new is written.",
			[]string{"kubectl mssql status NAME", "kubectl mssql events NAME"},
			[]string{
				"Bring the named secondaries back: their pods, their network, or what RecoveryBlocked says of them.",
				"Until then, if writes matter more: durability: Preferred, or a smaller requiredSynchronizedSecondariesToCommit.",
			},
		},
		{
			"MSSQL2101", "DataLossNotBounded",
			"A forced move is bounded, by --allow-data-loss=SECONDS or maxReplicationLagSeconds, and the loss cannot be shown to be below it.", nil,
			[]string{"Wait for the old primary, or accept with --allow-data-loss=unlimited."},
		},
		{
			"MSSQL2102", "StaleView", "The request named another primary than the present one, or an older configuration.", nil,
			[]string{"Look again with kubectl mssql status NAME, then repeat."},
		},
		{"MSSQL2103", "UnknownReplica", "The request names no replica of the group.", nil, []string{"kubectl mssql status NAME lists them."}},
		{"MSSQL2104", "AlreadyPrimary", "The request names the present primary.", nil, []string{"Nothing: it is so already."}},
		{
			"MSSQL2105", "OperationInFlight", "Another move is under way.", nil,
			[]string{"Follow it with kubectl mssql status NAME -w, then repeat."},
		},
	}
}

// replicas: one replica, its copies of databases.
func replicas() []Entry {
	return []Entry{
		{
			"MSSQL3001", "AttemptsUsedUp", "The recovery ladder used up its attempts: the replica does not come back by itself.",
			[]string{"kubectl mssql logs NAME REPLICA"},
			[]string{
				"Do what the message says first: it names the rule that ended the ladder.",
				"Check that port 5022 is open between all pods.",
				"Then restart it: kubectl mssql restart NAME REPLICA",
				"A copy that cannot go on from where it is, with nothing in it that is needed: set spec.automaticReseed.",
				"A configuration that no promotion of the operator explains: somebody promoted it by hand. Save what only it holds, then drop the group there.",
			},
		},
		{
			"MSSQL3002", "SeedingFailed", "Automatic seeding of a database failed; the message has SQL Server's reason.",
			[]string{"kubectl mssql logs NAME REPLICA --level error"},
			[]string{"Free disk space on the target, or remove a database of the same name there; then it is retried."},
		},
		{
			"MSSQL3003", "ReplicaInTrouble", "A replica is not where it should be; the message says why.",
			[]string{"kubectl mssql logs NAME REPLICA"}, []string{"As the message says."},
		},
		{
			"MSSQL3004", "LogHeld",
			"The log of a database cannot be truncated while a copy is disconnected, suspended, fenced or being seeded (log_reuse_wait_desc = AVAILABILITY_REPLICA).",
			[]string{"kubectl mssql status NAME shows the replica that holds it, and how much in SEND Q."},
			[]string{
				"Bring that replica back, or lift the fence.",
				"When it stays away for long, remove it from spec.replicas before the volume is full (Msg 9002).",
			},
		},
		{
			"MSSQL3005", "CopySuspended",
			"A database copy is suspended, by a person or after a forced failover. Resuming discards what only that copy holds.", nil,
			[]string{
				"Copies suspended by an error of their own are resumed by the operator, five times; the server's log tells the error.",
				"Save it if it matters, then on that replica: ALTER DATABASE … SET HADR RESUME",
			},
		},
		{
			"MSSQL3006", "DatabasesMissing", "A declared database is not in the group everywhere yet.",
			[]string{"kubectl mssql status NAME shows seeding that is under way."}, []string{"As the message says."},
		},
		{
			"MSSQL3007", "ReplicasMissing", "A replica has no pod, or does not answer.",
			[]string{"kubectl mssql status NAME -w", "kubectl mssql events NAME"}, []string{"As the message says; often it is still on its way."},
		},
		{
			"MSSQL3008", "ReplicasBehind", "A replica answers, and its databases are not in step yet.",
			[]string{"kubectl mssql status NAME -w"}, []string{"Usually nothing: it catches up."},
		},
		{
			"MSSQL3009", "ReplicaFenced", "Somebody took the replica out of service; it is no candidate and it holds the log.", nil,
			[]string{"Lift the fence: kubectl mssql fence off NAME REPLICA"},
		},
		{
			"MSSQL3010", "DatabaseUnusable", "A database of the primary is SUSPECT, RECOVERY_PENDING, OFFLINE or EMERGENCY.",
			[]string{"kubectl mssql logs NAME REPLICA --errorlog"},
			[]string{"See SQL Server's error log for the cause: disk, a missing file, a damaged page. Restore what cannot be repaired."},
		},
	}
}
