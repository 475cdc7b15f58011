package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// inputAgain is how soon a missing Secret is looked for again: Secrets of users are not watched.
const inputAgain = 5 * time.Second

// phaseInputs checks what the spec names and admission cannot see. What is refused
// here would otherwise show as a pod that hangs or ends again and again.
func (s *shared) phaseInputs(ctx context.Context, sc *scope) error {
	if g := sc.server.Group; g != nil {
		checkGroup(g, sc)
	} else if _, err := v1alpha1.ParseRequest(sc.obj.GetAnnotations()[v1alpha1.AnnotationRequest]); err != nil {
		sc.problem(Problem{Reason: v1alpha1.ReasonInvalidAnnotation, Message: err.Error() + ". It is not carried out"})
	}
	if sc.server.Spec.SAPasswordSecretRef == nil {
		return nil
	}
	name, key := sc.server.Spec.SAPasswordSecret(sc.server.Name)
	var secret corev1.Secret
	err := s.Live.Get(ctx, client.ObjectKey{Namespace: sc.server.Namespace, Name: name}, &secret)
	switch {
	case apierrors.IsNotFound(err):
		sc.refuse(v1alpha1.ReasonSecretMissing, fmt.Sprintf(
			"Secret %s, which spec.saPasswordSecretRef names, is not there. Create it: kubectl create secret generic %s --from-literal=%s='…'", name, name, key))
	case apierrors.IsForbidden(err):
		sc.refuse(v1alpha1.ReasonSecretMissing, fmt.Sprintf("Secret %s may not be read by the controller: %v", name, err))
	case err != nil:
		return fmt.Errorf("read Secret %s: %w", name, err)
	default:
		checkPasswordSecret(&secret, key, sc)
	}
	if sc.fatal {
		sc.requeue(inputAgain)
	}
	return nil
}

func checkPasswordSecret(secret *corev1.Secret, key string, sc *scope) {
	value, ok := secret.Data[key]
	if !ok {
		sc.refuse(v1alpha1.ReasonSecretKeyMissing, fmt.Sprintf(
			"Secret %s has no key %s, which spec.saPasswordSecretRef names. Add it, or name another key", secret.Name, key))
		return
	}
	if why := passwordWeakness(trimPassword(value)); why != "" {
		sc.refuse(v1alpha1.ReasonWeakPassword, fmt.Sprintf(
			"the password in Secret %s, key %s, does not meet SQL Server's policy: %s. It takes 8 to 128 characters of at least three of the classes upper case, lower case, digits and symbols", secret.Name, key, why))
	}
}

// checkGroup checks what CEL cannot see across defaults.
func checkGroup(g *v1alpha1.SQLServerAvailabilityGroup, sc *scope) {
	if err := g.Spec.AutomaticFailover.Timing.Effective().Validate(); err != nil {
		sc.refuse(v1alpha1.ReasonInvalidSpec, fmt.Sprintf("spec.automaticFailover.timing does not fit together: %v", err))
	}
	if p := g.Spec.PreferredPrimary; p != "" && !slices.Contains(g.ReplicaNames(), p) {
		sc.problem(Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: fmt.Sprintf(
			"spec.preferredPrimary is %q, which is no replica: they are %v", p, g.ReplicaNames())})
	}
	if _, err := v1alpha1.ParseFenced(g.Annotations[v1alpha1.AnnotationFenced]); err != nil {
		sc.problem(Problem{Reason: v1alpha1.ReasonInvalidAnnotation, Message: err.Error() +
			". Until it is readable nobody is promoted"})
	}
	order, err := v1alpha1.ParseRequest(g.Annotations[v1alpha1.AnnotationRequest])
	if err != nil {
		sc.problem(Problem{Reason: v1alpha1.ReasonInvalidAnnotation, Message: err.Error() + ". It is not carried out"})
	}
	if order != nil {
		switch order.Kind {
		case v1alpha1.RequestFailover, v1alpha1.RequestRestart, v1alpha1.RequestRebootstrap:
		default:
			sc.problem(Problem{Reason: v1alpha1.ReasonInvalidAnnotation, Message: fmt.Sprintf(
				"annotation %s orders %q, which this operator does not know: it is not carried out", v1alpha1.AnnotationRequest, order.Kind)})
		}
	}
}
