package controller

import (
	"context"
	"slices"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

// rolloutFacts is what the choice of the next pod to be replaced rests on.
type rolloutFacts struct {
	// Replicas by ordinal, and those of them whose pod is outdated.
	Replicas, Outdated []string
	// Ordered is the one replica that a person wants restarted now; empty when none is named.
	Ordered string
	// Broken pods are not ready.
	Broken []string
	// Healthy: writable and every replica in step.
	Healthy bool
	// Busy: an operation is in flight, or another pod is missing or ending.
	Busy bool
	// Recovering: a replica is on its way back.
	Recovering bool
	// Holder of the authority, and how many replicas could take over without loss.
	Holder string
	Safe   int
	// Alone: the holder is the only replica with data.
	Alone bool
}

// nextRollout names the pod to be replaced now, or "": one at a time, secondaries
// first, the last ordinal first; the primary last, and only when somebody can take
// over (ending its pod hands the role over). An outdated pod that does not work is
// replaced whatever else is wrong, so that a bad change can be corrected, and so is a
// secondary that a person named; never the holder's.
func nextRollout(f rolloutFacts) string {
	if f.Busy || len(f.Outdated) == 0 {
		return ""
	}
	for _, r := range slices.Backward(f.Replicas) {
		if slices.Contains(f.Outdated, r) && (slices.Contains(f.Broken, r) || r == f.Ordered) && r != f.Holder {
			return r
		}
	}
	if f.Alone && slices.Contains(f.Outdated, f.Holder) {
		return f.Holder
	}
	if !f.Healthy || f.Recovering {
		return ""
	}
	for _, r := range slices.Backward(f.Replicas) {
		if slices.Contains(f.Outdated, r) && r != f.Holder {
			return r
		}
	}
	if f.Safe > 0 && slices.Contains(f.Outdated, f.Holder) {
		return f.Holder
	}
	return ""
}

// rollout replaces at most one outdated pod.
func (r *GroupReconciler) rollout(ctx context.Context, sc *scope, group *v1alpha1.SQLServerAvailabilityGroup, report *Report) error {
	if len(sc.outdated) == 0 || sc.paused || sc.fatal {
		return nil
	}
	f := groupFacts{Group: group, Scope: sc, Report: report}
	if !f.initialized() {
		// Before there is a group, a pod that does not work is simply made anew.
		for _, name := range sc.outdated {
			if pod := sc.pods[name]; pod != nil && pod.DeletionTimestamp == nil && !podReady(pod) {
				return r.removePod(ctx, sc, pod, replaceReason(sc, name))
			}
		}
		return nil
	}
	facts := rolloutFacts{
		Replicas: sc.server.Replicas, Outdated: sc.outdated, Healthy: healthy(f).reason == v1alpha1.ReasonAllGood,
		Busy:       f.operation() != nil || len(report.Outcomes) > 0 || incomplete(sc),
		Recovering: len(report.Memory.Recoveries) > 0,
		Holder:     f.holder(), Safe: f.safeTargets(), Alone: dataReplicas(report.Snapshot) == 1,
	}
	if sc.restart != nil {
		facts.Ordered = sc.restart.Target
	}
	for _, name := range sc.server.Replicas {
		if pod := sc.pods[name]; pod != nil && !podReady(pod) {
			facts.Broken = append(facts.Broken, name)
		}
	}
	name := nextRollout(facts)
	pod := sc.pods[name]
	if name == "" || pod == nil {
		return nil
	}
	return r.removePod(ctx, sc, pod, replaceReason(sc, name))
}

func replaceReason(sc *scope, replica string) string {
	if slices.Contains(sc.restarts, replica) {
		return "a restart was ordered by " + orUnknown(sc.restart.By)
	}
	return "its settings changed"
}

// incomplete: a pod is missing or about to end.
func incomplete(sc *scope) bool {
	for _, p := range sc.pods {
		if p.DeletionTimestamp != nil {
			return true
		}
	}
	return len(sc.pods) < len(sc.server.Replicas)
}

func dataReplicas(s ag.Snapshot) int {
	n := 0
	for _, r := range s.Replicas {
		if r.Mode != ag.ModeConfigurationOnly {
			n++
		}
	}
	return n
}
