// Package v1alpha1 holds the custom resources of the group kubectl-mssql.io:
// SQLServerInstance (one standalone server) and SQLServerAvailabilityGroup
// (an Always On availability group whose cluster manager we are).
//
// +kubebuilder:object:generate=true
// +groupName=kubectl-mssql.io
package v1alpha1
