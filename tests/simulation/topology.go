//go:build linux

package simulation

import (
	"k8s.io/utils/ptr"

	"github.com/kubectl-mssql/kubectl-mssql/api/v1alpha1"
)

// topology is one shape of a group.
type topology struct {
	name    string
	modes   []v1alpha1.AvailabilityMode
	k       *int32
	require bool
}

const (
	synchronous  = v1alpha1.SynchronousCommit
	asynchronous = v1alpha1.AsynchronousCommit
	witness      = v1alpha1.ConfigurationOnly
)

func syncs(n int, more ...v1alpha1.AvailabilityMode) []v1alpha1.AvailabilityMode {
	var m []v1alpha1.AvailabilityMode
	for range n {
		m = append(m, synchronous)
	}
	return append(m, more...)
}

// topologies in the order in which seeds choose among them.
func topologies() []topology {
	return []topology{
		{name: "3 sync", modes: syncs(3)},
		{name: "2 sync", modes: syncs(2)},
		{name: "2 sync + witness", modes: syncs(2, witness)},
		{name: "3 sync, k=2", modes: syncs(3), k: ptr.To(int32(2))},
		{name: "2 sync, k=1", modes: syncs(2), k: ptr.To(int32(1))},
		{name: "3 sync, required", modes: syncs(3), require: true},
		{name: "2 sync + 1 async", modes: syncs(2, asynchronous)},
		{name: "5 sync", modes: syncs(5)},
		{name: "2 sync + witness, k=1", modes: syncs(2, witness), k: ptr.To(int32(1))},
		{name: "4 sync", modes: syncs(4)},
		{name: "1 sync", modes: syncs(1)},
	}
}

const (
	namespace = "ns"
	groupName = "ag1"
	groupUID  = "ag-uid"
	database  = "app"
)

// resource is the custom resource of this topology, with the API server's defaults.
func (t topology) resource() *v1alpha1.SQLServerAvailabilityGroup {
	g := &v1alpha1.SQLServerAvailabilityGroup{}
	g.Namespace, g.Name, g.UID, g.ResourceVersion = namespace, groupName, groupUID, "1"
	g.Spec.AcceptEula, g.Spec.Edition = "Y", "Developer"
	g.Spec.Port, g.Spec.EndpointPort = v1alpha1.PortTDS, v1alpha1.PortEndpoint
	g.Spec.TerminationGracePeriodSeconds = 60
	g.Spec.ClusterType = v1alpha1.ClusterTypeExternal
	for _, m := range t.modes {
		r := v1alpha1.AGReplicaSpec{AvailabilityMode: m, FailoverMode: v1alpha1.FailoverAutomatic}
		if m != synchronous {
			r.FailoverMode = v1alpha1.FailoverManual
		}
		g.Spec.Replicas = append(g.Spec.Replicas, r)
	}
	g.Spec.Databases = []v1alpha1.DatabaseSpec{{Name: database}}
	g.Spec.Durability = v1alpha1.DurabilityPreferred
	if t.require {
		g.Spec.Durability = v1alpha1.DurabilityRequired
	}
	g.Spec.RequiredSynchronizedSecondariesToCommit = t.k
	g.Spec.RelaxAfterSeconds, g.Spec.MaxSwitchoverDelaySeconds = 15, 60
	g.Spec.AutomaticFailover = v1alpha1.AutomaticFailoverSpec{
		FailoverThresholdSeconds: 30, HealthThreshold: "system", HealthCheckIntervalSeconds: 10, HealthCheckTimeoutSeconds: 15, HealthCheckFailures: 2,
		FailsafeHoldOffSeconds: 300, ForceFailoverGracePeriodSeconds: 300, MinTimeBetweenFailoversSeconds: 60, PrimaryStabilityWindowSeconds: 300,
		Timing: v1alpha1.TimingSpec{Profile: v1alpha1.TimingBalanced},
	}
	g.Spec.PreStopFailover.TimeoutSeconds = 30
	return g
}

// synchronousReplicas counts the replicas that hold data synchronously.
func (t topology) synchronousReplicas() int {
	n := 0
	for _, m := range t.modes {
		if m == synchronous {
			n++
		}
	}
	return n
}
