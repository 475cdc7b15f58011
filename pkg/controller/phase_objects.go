package controller

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// configKey is the instance manager's file in the ConfigMap.
const configKey = "instance.json"

// phaseNetwork keeps Services and the disruption budget.
func (s *shared) phaseNetwork(ctx context.Context, sc *scope) error {
	var objects []client.Object
	for _, svc := range sc.server.Services() {
		objects = append(objects, svc)
	}
	if pdb := sc.server.PodDisruptionBudget(); pdb != nil {
		objects = append(objects, pdb)
	}
	return s.applyAll(ctx, sc, objects)
}

// phaseConfiguration keeps the pods' account, its rights, and the instance manager's file.
func (s *shared) phaseConfiguration(ctx context.Context, sc *scope) error {
	return s.applyAll(ctx, sc, []client.Object{
		sc.server.ServiceAccount(), sc.server.Role(), sc.server.RoleBinding(),
		sc.server.ConfigMap(configKey, sc.config),
	})
}

// applyAll goes on after a failure: a Service that cannot be made must not keep the others from being made.
func (s *shared) applyAll(ctx context.Context, sc *scope, objects []client.Object) error {
	var errs []error
	for _, o := range objects {
		_, err := s.apply(ctx, o)
		if errors.Is(err, errNameTaken) {
			sc.refuse(v1alpha1.ReasonNameTaken, err.Error()+". Rename one of the two, or delete the other")
			sc.requeue(inputAgain)
			continue
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
