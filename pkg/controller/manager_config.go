package controller

import (
	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/controller/desired"
	"github.com/kubectl-mssql/kubectl-mssql/pkg/instance"
)

// restartSettings are what an instance manager reads once, when it starts, and what
// is not already part of a pod's digest.
type restartSettings struct {
	Health  instance.HealthConfig  `json:"health"`
	PreStop instance.PreStopConfig `json:"preStop"`
	Commit  instance.CommitConfig  `json:"commit"`
}

// groupConfig puts the instance managers' file of a group into the scope.
func groupConfig(g *v1alpha1.SQLServerAvailabilityGroup, sc *scope) error {
	return useConfig(instance.ConfigForGroup(g, sc.server.MemoryLimitMB()), sc)
}

// instanceConfig puts that of a standalone instance into the scope.
func instanceConfig(i *v1alpha1.SQLServerInstance, sc *scope) error {
	return useConfig(instance.ConfigForInstance(i, sc.server.MemoryLimitMB()), sc)
}

func useConfig(c instance.Config, sc *scope) error {
	text, err := c.Encode()
	if err != nil {
		sc.fatal = true
		return err
	}
	if err := c.Validate(); err != nil {
		// Said here, with the resource, and not by a container that ends again and again.
		sc.refuse(v1alpha1.ReasonInvalidSpec, "the settings of the servers do not fit together: "+err.Error())
	}
	sc.config = text
	sc.configDigest = desired.DigestOf(restartSettings{Health: c.Health, PreStop: c.PreStop, Commit: c.Commit})
	return nil
}
