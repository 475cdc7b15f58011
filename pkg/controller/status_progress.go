package controller

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/sql/ag"
)

const (
	// mostFindings is what the resource has room for.
	mostFindings = 16
	// beat is the longest wait that is none: the engine looks again by itself.
	beat = time.Second
	// sameInstant is how far two computations of one instant may lie apart: waits are counted
	// in whole seconds, from the beginning of a pass that takes some time.
	sameInstant = 3 * time.Second
)

// fillProgress writes what goes on: who would be promoted, what is waited for, and why.
// A healthy group waits for nothing that a person must know. Instants instead of the time
// that is left, so that nothing is written while nothing happens.
func fillProgress(f groupFacts, s *v1alpha1.SQLServerAvailabilityGroupStatus) {
	d := f.Report.Decision
	s.Elected = elected(f)
	before := s.Waiting
	s.Waiting, s.Findings = nil, nil
	if s.Phase == v1alpha1.PhaseHealthy || s.Phase == v1alpha1.PhasePaused || !f.initialized() {
		return
	}
	if w := d.Wait; w != nil {
		s.Waiting = waitStatus(before, *w, f.Report.Now)
	}
	for _, x := range d.Findings {
		if len(s.Findings) == mostFindings {
			break
		}
		s.Findings = append(s.Findings, v1alpha1.FindingStatus{Replica: x.Replica, Message: x.Message})
	}
}

// elected is who would be promoted: in a role change that has a target, the target.
func elected(f groupFacts) string {
	if op := f.operation(); op != nil && op.Target != "" && op.Phase != ag.PhaseFencing {
		return op.Target
	}
	return f.Report.Decision.Elected
}

func waitStatus(before *v1alpha1.WaitStatus, w ag.Wait, now time.Time) *v1alpha1.WaitStatus {
	out := &v1alpha1.WaitStatus{For: w.For}
	if w.Until.Sub(now) <= beat {
		return out
	}
	until := metav1.NewTime(w.Until)
	if before != nil && before.For == w.For && before.Until != nil && before.Until.Sub(w.Until).Abs() <= sameInstant {
		until = *before.Until
	}
	out.Until = &until
	return out
}
