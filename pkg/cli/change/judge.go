package change

import (
	"fmt"
	"strings"

	api "github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// Without is what the group would be without one replica, as far as the status tells.
type Without struct {
	// Primary: it is the primary; Headless: nobody is.
	Primary, Headless bool
	// Successors are the other replicas to which the primary could be moved without loss.
	Successors []string
	// LastCandidate: it is one that could be promoted, or the primary, and after it is gone
	// nobody could take over from whoever is primary then.
	LastCandidate bool
	// Synchronized secondaries that would be left, and K that each commit waits for.
	Synchronized, K int
	// Voters that take part in changes of the configuration, and those of them that would be left.
	Voters, Left int
	// Required: k is never lowered.
	Required bool
	// RelaxAfter is how many seconds commits wait before k is lowered.
	RelaxAfter int32
}

// Judge one replica.
func Judge(g *api.SQLServerAvailabilityGroup, replica string) Without {
	w := Without{
		Headless:   g.Status.PrimaryReplica == "",
		Primary:    g.Status.PrimaryReplica == replica,
		Required:   g.Spec.Durability == api.DurabilityRequired || g.Spec.RequiredSynchronizedSecondariesToCommit != nil,
		RelaxAfter: g.Spec.RelaxAfterSeconds,
	}
	if g.Status.CommitRule != nil {
		w.K = int(g.Status.CommitRule.K)
	}
	candidate := w.Primary
	for i := range g.Status.ReplicaStatuses {
		r := &g.Status.ReplicaStatuses[i]
		if r.AvailabilityMode != api.AsynchronousCommit {
			w.Voters++
			if r.Name != replica && (r.Name == g.Status.PrimaryReplica || r.Connected) {
				w.Left++
			}
		}
		switch {
		case r.Name == replica:
			candidate = candidate || CouldTakeOver(r)
		case r.Name == g.Status.PrimaryReplica:
		default:
			if CouldTakeOver(r) {
				w.Successors = append(w.Successors, r.Name)
			}
			if InStep(r) && (r.AvailabilityMode == api.SynchronousCommit || r.AvailabilityMode == "") {
				w.Synchronized++
			}
		}
	}
	left := len(w.Successors)
	if w.Primary {
		left-- // one of them is the primary then
		w.Synchronized--
	}
	w.LastCandidate = candidate && left <= 0
	return w
}

// CouldTakeOver: the operator would move the primary to it now without loss. That
// automatic failover is off is no hindrance for a move by a person's word.
func CouldTakeOver(r *api.ReplicaStatus) bool {
	return r.FailoverReady || r.FailoverRefusal == "automatic failover is off"
}

// InStep: the replica is where its mode allows it to be.
func InStep(r *api.ReplicaStatus) bool {
	if r == nil || !r.Ready || r.Fenced || r.Outdated {
		return false
	}
	if r.Role == "PRIMARY" {
		return true
	}
	if r.Role != "SECONDARY" || !r.Connected {
		return false
	}
	switch r.AvailabilityMode {
	case api.ConfigurationOnly:
		return true
	case api.AsynchronousCommit:
		return r.SynchronizationState == "SYNCHRONIZING" || r.SynchronizationState == "SYNCHRONIZED" || r.SynchronizationState == ""
	case api.SynchronousCommit:
	}
	return r.SynchronizationState == "SYNCHRONIZED" || r.SynchronizationState == ""
}

// Stalls: commits would have to wait for secondaries that are not there.
func (w Without) Stalls() bool { return !w.Headless && w.Synchronized < w.K }

// NoQuorum: fewer than the majority of voters would be left, so that the server could not
// change its own configuration any more. Of two voters one alone is no majority either; a
// group of two is judged by its last candidate instead.
func (w Without) NoQuorum() bool { return !w.Headless && w.Voters > 2 && w.Left < w.Voters/2+1 }

// Describe the effect on writes, in the user's words; empty when there is none.
func (w Without) Describe() string {
	if !w.Stalls() {
		return ""
	}
	text := fmt.Sprintf("commits wait for %d synchronized %s and %d would be left", w.K, plural("secondary", "secondaries", w.K), max(w.Synchronized, 0))
	if w.Required {
		return text + ": durability is Required, so writes stop until one is back"
	}
	return fmt.Sprintf("%s: writes wait up to %d s, until the operator asks for fewer", text, w.RelaxAfter)
}

func plural(one, many string, n int) string {
	if n == 1 {
		return one
	}
	return many
}

// Order in which replicas are restarted: secondaries first, the last ordinal first, the
// primary last.
func Order(g *api.SQLServerAvailabilityGroup) []string {
	names := g.ReplicaNames()
	var out []string
	for i := len(names) - 1; i >= 0; i-- {
		if names[i] != g.Status.PrimaryReplica {
			out = append(out, names[i])
		}
	}
	if g.Status.PrimaryReplica != "" {
		out = append(out, g.Status.PrimaryReplica)
	}
	return out
}

// OrderText is the order for people.
func OrderText(g *api.SQLServerAvailabilityGroup) string {
	order := Order(g)
	if len(order) == 1 || g.Status.PrimaryReplica == "" {
		return strings.Join(order, ", then ")
	}
	last := len(order) - 1
	return strings.Join(order[:last], ", then ") + "; the primary moves away, then " + order[last]
}
