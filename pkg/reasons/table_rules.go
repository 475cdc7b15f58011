package reasons

import "fmt"

// rules are the safety rules R1–R22 in a sentence or two; docs/concepts/failover.md
// tells how they work together.
func rules() []Entry {
	text := [...]struct{ summary, do string }{
		{"Whoever changes roles, grants or the commit rule swaps the Lease; who loses the swap stops and looks again.", "Nothing: another controller was faster."},
		{"Every operation has a deadline; after it anybody finishes or cancels it.", "Nothing: it is taken over."},
		{"A run that restarted has no authority until it is granted anew.", "Nothing: the next pass grants it or promotes another replica."},
		{"A Lease that is missing, older than what the managers have seen, or of another resource is no proof for anyone.",
			"Do not restore Leases from backups. The operator makes it anew once SQL Server itself names a primary."},
		{"A statement that changes a role carries its own expiry and does nothing when it arrives late.", "Nothing: it is looked at again."},
		{"A jump of a node's clock voids all proofs of authority until a new one.", "Check the time synchronisation of that node."},
		{"A primary without authority is stopped before another can be promoted.", "See why it lost its authority: kubectl mssql logs NAME REPLICA"},
		{"Only a container reported as ended, a later run that holds the volume's lock, another boot of the node, or the out-of-service taint prove that a server is dead.",
			"For a node that is really off: kubectl taint node NODE node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"},
		{"A promotion needs every earlier holder of the Lease to be fenced: dead, demoted, or waited out.", "Nothing: the wait ends by itself, and a proof of death ends it at once."},
		{"A candidate is chosen twice: before the fence and again right before the promotion.", "Nothing: the better one is taken."},
		{"Where the old primary's death is not proven, enough secondaries first stop following it.", "Bring the named replica back."},
		{"Who may win: synchronous, automatic, not fenced, not stale, on its own recorded volume, with the highest sequence number and nobody ahead of it in any database.",
			"Bring the replica in step, or lift what excludes it; `kubectl mssql failover NAME --dry-run` says what."},
		{"A promotion needs answers from enough synchronous replicas to prove that every acknowledged commit is among them.", "Bring one of the silent replicas back."},
		{"A weaker commit rule is recorded before it is set.", "Nothing."},
		{"A stronger commit rule is recorded only after it is in force.", "Nothing."},
		{"A replica that becomes synchronous is recorded before it is added.", "Nothing."},
		{"A replica that leaves is recorded only after it is gone and the rest holds the rule.", "Nothing."},
		{"A record counts only when its swap was answered with success in that very step.", "Nothing: it is tried again."},
		{"A value on the server that is weaker than the record lowers the record first.", "Do not change REQUIRED_SYNCHRONIZED_SECONDARIES_TO_COMMIT by hand; use the spec."},
		{"A planned move goes on only when the target is level with the old primary in number and in every database.", "Wait until it is synchronized, then repeat."},
		{"An aborted move is a failover away from its target.", "Nothing: the old primary is promoted again, or the election decides."},
		{"A promotion first makes the instance managers refuse the old primary's questions.", "Make port 8443 of the pods reachable from the operator."},
	}
	out := make([]Entry, 0, len(text))
	for i, t := range text {
		n := i + 1
		out = append(out, Entry{Code: fmt.Sprintf("MSSQL90%02d", n), Name: fmt.Sprintf("R%d", n), Summary: t.summary, Do: []string{t.do}})
	}
	return out
}

// plugin: what the plugin itself could not do.
func plugin() []Entry {
	return []Entry{
		{
			"MSSQL6001", "NotMeasured", "A replica's instance manager could not be asked, so its queues and its lag are not known.",
			[]string{"The message names the replica and the reason."},
			[]string{"Wait for the pod, or ask for the missing permission; everything else on the screen holds."},
		},
		{
			"MSSQL6002", "Forbidden", "You lack a permission; the message names the verb and the resource.",
			[]string{"kubectl auth can-i VERB RESOURCE -n NAMESPACE"},
			[]string{"Ask for it. A viewer of status needs: get and list of sqlserveravailabilitygroups and sqlserverinstances, list of pods, get of pods/proxy."},
		},
		{
			"MSSQL6003", "OperatorSilent", "No controller holds the leader's Lease freshly: what the resource says is old, and nothing is failed over.",
			[]string{"kubectl mssql version", "kubectl get pods -A -l app.kubernetes.io/part-of=kubectl-mssql"},
			[]string{"Bring the operator back. The servers keep running meanwhile."},
		},
	}
}
