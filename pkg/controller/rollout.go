package controller

import (
	"context"
	"fmt"
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
	// Unhealthy is why the group is not writable with every replica in step; empty when it is.
	Unhealthy string
	// Busy is what is under way: an operation, or another pod that is missing or ending.
	Busy string
	// Recovering: a replica is on its way back.
	Recovering bool
	// Holder of the authority, and how many replicas could take over without loss.
	Holder string
	Safe   int
	// Alone: the holder is the only replica with data.
	Alone bool
}

// nextRollout names the pod to be replaced now, or says for what the next one waits: one
// at a time, secondaries first, the last ordinal first; the primary last, and only when
// somebody can take over (ending its pod hands the role over). An outdated pod that does
// not work is replaced whatever else is wrong, so that a bad change can be corrected, and
// so is a secondary that a person named; never the holder's.
func nextRollout(f rolloutFacts) (replica, waits string) {
	switch {
	case len(f.Outdated) == 0:
		return "", ""
	case f.Busy != "":
		return "", f.Busy
	}
	for _, r := range slices.Backward(f.Replicas) {
		if slices.Contains(f.Outdated, r) && (slices.Contains(f.Broken, r) || r == f.Ordered) && r != f.Holder {
			return r, ""
		}
	}
	if f.Alone && slices.Contains(f.Outdated, f.Holder) {
		return f.Holder, ""
	}
	switch {
	case f.Unhealthy != "":
		return "", f.Unhealthy
	case f.Recovering:
		return "", "a replica is on its way back"
	}
	for _, r := range slices.Backward(f.Replicas) {
		if slices.Contains(f.Outdated, r) && r != f.Holder {
			return r, ""
		}
	}
	if !slices.Contains(f.Outdated, f.Holder) {
		return "", "it is not known who is primary"
	}
	if f.Safe == 0 {
		return "", "no replica could take over from " + f.Holder + " without loss"
	}
	return f.Holder, ""
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
		Replicas: sc.server.Replicas, Outdated: sc.outdated, Busy: busy(f),
		Recovering: len(report.Memory.Recoveries) > 0,
		Holder:     f.holder(), Safe: f.safeTargets(), Alone: dataReplicas(report.Snapshot) == 1,
	}
	if v := healthy(f); v.reason != v1alpha1.ReasonAllGood {
		facts.Unhealthy = v.message
	}
	if sc.restart != nil {
		facts.Ordered = sc.restart.Target
	}
	for _, name := range sc.server.Replicas {
		if pod := sc.pods[name]; pod != nil && !podReady(pod) {
			facts.Broken = append(facts.Broken, name)
		}
	}
	sc.next, sc.waits = nextRollout(facts)
	pod := sc.pods[sc.next]
	if pod == nil {
		return nil
	}
	return r.removePod(ctx, sc, pod, replaceReason(sc, sc.next))
}

func replaceReason(sc *scope, replica string) string {
	if slices.Contains(sc.remount, replica) {
		return "its volume grows only when it is mounted anew"
	}
	if slices.Contains(sc.restarts, replica) {
		return "a restart was ordered by " + orUnknown(sc.restart.By)
	}
	return "its settings changed"
}

// busy is what must end before another pod may be replaced: an operation, an action of
// this very pass, or a pod that is missing or about to end.
func busy(f groupFacts) string {
	if op := f.operation(); op != nil {
		return fmt.Sprintf("the %s to %s", op.Kind, orUnknown(op.Target))
	}
	for _, name := range f.Scope.server.Replicas {
		switch p := f.Scope.pods[name]; {
		case p == nil:
			return name + " has no pod"
		case p.DeletionTimestamp != nil:
			return name + " is stopping"
		}
	}
	if len(f.Report.Outcomes) > 0 {
		return "the operator has just acted"
	}
	return ""
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
